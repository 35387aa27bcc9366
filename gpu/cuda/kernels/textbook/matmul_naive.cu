/* matmul naive: one thread computes one element of c, reading its row of a
 * and its column of b from global memory.
 *
 * Limited by loads: two for every multiply-add, most of them served by the L1
 * cache. Neighbouring threads hold neighbouring columns of c, so that with
 * row-major operands a warp reads one element of a and a line of b. Any GPU,
 * any strides. */
#include "kernel.h"

enum { THREADS = 256, WIDTH = 32 };

template <class T>
__global__ void __launch_bounds__(THREADS) naive_kernel(const product<T> p)
{
    int64_t down = (p.m + blockDim.y - 1) / blockDim.y;
    int64_t across = (p.n + blockDim.x - 1) / blockDim.x;
    for (int64_t t = blockIdx.x; t < down * across; t += gridDim.x) {
        int64_t row, col;
        tile_of(t, down, across, &row, &col);
        int64_t i = row * blockDim.y + threadIdx.y;
        int64_t j = col * blockDim.x + threadIdx.x;
        if (i >= p.m || j >= p.n)
            continue;
        const T *a = p.a + i * p.a_row, *b = p.b + j * p.b_col;
        T sum = 0;
        for (int64_t k = 0; k < p.k; k++, a += p.a_col, b += p.b_row)
            sum += *a * *b;
        write_c(p, i, j, sum);
    }
}

template <class T> static gpu_status launch(cuda_device *d, const gpu_gemm *g)
{
    product<T> p = typed_product<T>(g);
    unsigned width = 1;
    while (width < WIDTH && width < p.n)
        width *= 2;
    dim3 block(width, THREADS / width);
    int64_t tiles = ceil_div(p.m, block.y) * ceil_div(p.n, block.x);
    naive_kernel<T><<<grid_for(tiles), block, 0, d->stream>>>(p);
    LAUNCHED(d);
    return GPU_OK;
}

static gpu_status naive(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul("naive", p, &g));
    return g.c.dtype == GPU_F64 ? launch<double>(d, &g) : launch<float>(d, &g);
}

const gpu_kernel gpu_cuda_matmul_naive = {
    .operation = "matmul",
    .name = "naive",
    .idea = "one thread, one element of c; global memory only",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = gpu_cuda_matmul_bound,
    .matmul = naive,
    .dot = NULL,
};
