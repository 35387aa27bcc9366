/* Asks the driver for maps of operands: it is not linked, so its function is
 * looked up where it is first needed. */
#include "hopper.h"

typedef CUresult encode_function(CUtensorMap *, CUtensorMapDataType, cuuint32_t,
                                 void *, const cuuint64_t *, const cuuint64_t *,
                                 const cuuint32_t *, const cuuint32_t *,
                                 CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill);

/* Finds NULL where the driver has none. */
static gpu_status find_encode(cuda_device *d, encode_function **out)
{
    static encode_function *found;
    cudaDriverEntryPointQueryResult result;
    if (!found)
        CHECK(d, cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled",
                                                  (void **)&found, 12000,
                                                  cudaEnableDefault, &result));
    *out = found;
    return GPU_OK;
}

gpu_status gpu_cuda_make_map(cuda_device *d, const char *kernel,
                             const void *data, const map_shape *shape,
                             CUtensorMap *out)
{
    const cuuint32_t ones[] = {1, 1, 1, 1};
    encode_function *encode;
    TRY(find_encode(d, &encode));
    if (!encode)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: kernel %s cannot run: it needs a driver for "
                    "CUDA 12 or newer",
                    kernel);
    static gpu_fault_site site = {"cuTensorMapEncodeTiled",
                                  CUDA_ERROR_INVALID_VALUE};
    CUresult result = (CUresult)gpu_cuda_fault(&site);
    if (result == CUDA_SUCCESS)
        result =
            encode(out, shape->type, (cuuint32_t)shape->rank, (void *)data,
                   shape->size, shape->bytes, shape->box, ones,
                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                   shape->line, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        return FAIL(GPU_INTERNAL,
                    "matmul: kernel %s: the driver makes no map of an operand "
                    "(error %d)",
                    kernel, (int)result);
    return GPU_OK;
}
