/* matmul tf32: f32 operands rounded to TF32, multiplied on the tensor cores,
 * added in f32 (narrow_hopper.cu on Hopper,
 * narrow_mma.cu elsewhere). On Hopper an operand that lies along k is rounded
 * by the tensor copy engine on its way; others are rounded, and turned,
 * before (narrow_planes.cu). Eleven bits of every factor count, so it runs only
 * when it is asked for. Limited by the tensor cores' power. */
#include "narrow.h"

static gpu_status multiply(void *device, const gpu_gemm *p)
{
    return gpu_cuda_narrow_matmul(device, p, NARROW_TF32, "tf32");
}

/* Eleven bits: 2^-10 holds for factors that are cut off as for those that are
 * rounded. */
static double bound(gpu_dtype dtype, int64_t k)
{
    (void)dtype;
    return narrow_bound(0x1p-10, k);
}

const gpu_kernel gpu_cuda_matmul_tf32 = {
    .operation = "matmul",
    .name = "tf32",
    .idea = "tensor cores at TF32: factors of 11 bits, sums in f32",
    .needs = "sm_80",
    .precision = "tf32",
    .capability = 80,
    .dtypes = 1u << GPU_F32,
    .bound = bound,
    .matmul = multiply,
    .dot = NULL,
};
