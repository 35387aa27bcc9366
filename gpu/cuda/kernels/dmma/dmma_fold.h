/* matmul dmma where k is cut into parts: what makes one result of theirs. */
#ifndef GPU_CUDA_DMMA_FOLD_H
#define GPU_CUDA_DMMA_FOLD_H

#include "kernel.h"

enum { FOLD_THREADS = 256 };

__device__ __forceinline__ void wait_for_parts(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* c from the parts' results (m lines of `line` elements each): every row of
 * threads adds up some of the parts, the first adds up the rows. */
static __global__ void __launch_bounds__(FOLD_THREADS)
    fold_kernel(const __grid_constant__ product<double> p,
                const double *results, int64_t line, int parts)
{
    __shared__ double sums[FOLD_THREADS];
    int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    wait_for_parts();
    if (e < p.m * line) {
#pragma unroll 8
        for (int part = threadIdx.y; part < parts; part += blockDim.y)
            sum += results[part * (p.m * line) + e];
    }
    sums[threadIdx.y * blockDim.x + threadIdx.x] = sum;
    __syncthreads(); /* every row of threads has its sum */
    int64_t i = divide(e, line), j = e - i * line;
    if (threadIdx.y > 0 || i >= p.m || j >= p.n)
        return;
    for (int y = 1; y < blockDim.y; y++)
        sum += sums[y * blockDim.x + threadIdx.x];
    write_c(p, i, j, sum);
}

static gpu_status fold(cuda_device *d, const product<double> &p,
                       const double *results, int64_t line, int parts)
{
    int height = 1;
    while (height < 8 && 4 * height < parts)
        height *= 2;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(FOLD_THREADS / height, height);
    config.gridDim = dim3((unsigned)ceil_div(p.m * line, config.blockDim.x));
    config.stream = d->stream;
    config.attrs = &early;
    config.numAttrs = d->capability >= 90;
    CHECK(d, cudaLaunchKernelEx(&config, fold_kernel, p, results, line, parts));
    return GPU_OK;
}

#endif
