/* What is used of cuSOLVER, and of cuBLAS beside it, computing nothing. */
#include <stddef.h>
#include <stdint.h>
#include "fake_library.h"

/* With the arguments between the parameters and the two sizes. */
#define SIZES(name, ...)                                           \
    extern "C" int name##_bufferSize(void *, void *, __VA_ARGS__,  \
                                     size_t *device, size_t *host) \
    {                                                              \
        *device = 512;                                             \
        *host = 64;                                                \
        return 0;                                                  \
    }
#define ASK(name, ...)       \
    SIZES(name, __VA_ARGS__) \
    NOTHING(name)
/* One that can be told to fail as the real one does for some matrices. */
#define ASK_OR_FAIL(name, ...)                                              \
    SIZES(name, __VA_ARGS__)                                                \
    extern "C" int name(...)                                                \
    {                                                                       \
        const int execution_failed = 6;                                     \
        return getenv("LUMAT_FAKE_" #name "_FAILS") ? execution_failed : 0; \
    }
#define ASK_ONE(name, ...)                                           \
    extern "C" int name##_bufferSize(void *, __VA_ARGS__, int *size) \
    {                                                                \
        *size = 128;                                                 \
        return 0;                                                    \
    }                                                                \
    NOTHING(name)

MAKE(cublasCreate_v2)
END(cublasDestroy_v2)
NOTHING(cublasSetStream_v2)
NOTHING(cublasStrsv_v2_64)
NOTHING(cublasDtrsv_v2_64)
NOTHING(cublasCtrsv_v2_64)
NOTHING(cublasZtrsv_v2_64)
NOTHING(cublasStrsm_v2_64)
NOTHING(cublasDtrsm_v2_64)
NOTHING(cublasCtrsm_v2_64)
NOTHING(cublasZtrsm_v2_64)
extern "C" const char *cublasGetStatusName(int)
{
    return "an error that is injected";
}

MAKE(cusolverDnCreate)
END(cusolverDnDestroy)
MAKE(cusolverDnCreateParams)
END(cusolverDnDestroyParams)
NOTHING(cusolverDnSetStream)
typedef int64_t n;
typedef void *data;
typedef int type;
ASK(cusolverDnXgetrf, n, n, type, data, n, type)
NOTHING(cusolverDnXgetrs)
ASK(cusolverDnXpotrf, int, n, type, data, n, type)
ASK(cusolverDnXgeqrf, n, n, type, data, n, type, data, type)
ASK(cusolverDnXsyevd, int, int, n, type, data, n, type, data, type)
ASK_OR_FAIL(cusolverDnXgesvd, char, char, n, n, type, data, n, type, data, type,
            data, n, type, data, n, type)
ASK_OR_FAIL(cusolverDnXgesvdp, int, int, n, n, type, data, n, type, data, type,
            data, n, type, data, n, type)
ASK_ONE(cusolverDnSorgqr, int, int, int, data, int, data)
ASK_ONE(cusolverDnDorgqr, int, int, int, data, int, data)
ASK_ONE(cusolverDnCungqr, int, int, int, data, int, data)
ASK_ONE(cusolverDnZungqr, int, int, int, data, int, data)
ASK_ONE(cusolverDnSormqr, int, int, int, int, int, data, int, data, data, int)
ASK_ONE(cusolverDnDormqr, int, int, int, int, int, data, int, data, data, int)
ASK_ONE(cusolverDnCunmqr, int, int, int, int, int, data, int, data, data, int)
ASK_ONE(cusolverDnZunmqr, int, int, int, int, int, data, int, data, data, int)
