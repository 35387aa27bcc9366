/* What is used of cuBLAS and cuSPARSE, computing nothing. */
#include <stddef.h>
#include "fake_library.h"

MAKE(cublasCreate_v2)
END(cublasDestroy_v2)
NOTHING(cublasSetStream_v2)
NOTHING(cublasSetWorkspace_v2)
NOTHING(cublasSetMathMode)
NOTHING(cublasSetPointerMode_v2)
NOTHING(cublasDgemm_v2_64)
NOTHING(cublasSgemm_v2_64)
NOTHING(cublasGemmEx_64)
NOTHING(cublasDdot_v2_64)
NOTHING(cublasSdot_v2_64)

MAKE(cusparseCreate)
END(cusparseDestroy)
NOTHING(cusparseSetStream)
MAKE(cusparseCreateConstCsr)
MAKE(cusparseCreateConstDnVec)
MAKE(cusparseCreateDnVec)
END(cusparseDestroySpMat)
END(cusparseDestroyDnVec)
NOTHING(cusparseSpMV)

extern "C" int cusparseSpMV_bufferSize(void *, int, void *, void *, void *,
                                       void *, void *, int, int, size_t *bytes)
{
    *bytes = 512;
    return 0;
}
extern "C" const char *cublasGetStatusName(int)
{
    return "an error that is injected";
}
extern "C" const char *cusparseGetErrorName(int)
{
    return "an error that is injected";
}
