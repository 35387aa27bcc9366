/* matmul bf16: f32 operands rounded to bf16 (narrow_planes.cu), multiplied on
 * the tensor cores, added in f32 (narrow_hopper.cu on Hopper,
 * narrow_mma.cu elsewhere). Eight bits of every
 * factor count, so it runs only when it is asked for. A factor that rounds
 * past the largest bf16 becomes Inf. Limited by the tensor cores' power. */
#include "narrow.h"

static gpu_status multiply(void *device, const gpu_gemm *p)
{
    return gpu_cuda_narrow_matmul(device, p, NARROW_BF16, "bf16");
}

/* Eight bits, rounded to nearest: u = 2^-8. */
static double bound(gpu_dtype dtype, int64_t k)
{
    (void)dtype;
    return narrow_bound(0x1p-8, k);
}

const gpu_kernel gpu_cuda_matmul_bf16 = {
    .operation = "matmul",
    .name = "bf16",
    .idea = "tensor cores at bf16: factors of 8 bits, sums in f32",
    .needs = "sm_80",
    .precision = "bf16",
    .capability = 80,
    .dtypes = 1u << GPU_F32,
    .bound = bound,
    .matmul = multiply,
    .dot = NULL,
};
