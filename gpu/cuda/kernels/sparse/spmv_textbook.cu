/* spmv scalar and vector: the kernels of the textbooks. Source: Bell and
 * Garland, Implementing sparse matrix-vector multiplication on throughput-
 * oriented processors, SC 2009.
 *
 * scalar: a thread takes a row. Neighbouring threads read entries a row apart,
 * so lines of memory are read for a few bytes each, and a warp waits for its
 * longest row. vector: lanes of a warp, up to all 32, take a row together and
 * read side by side, each several entries, as then several reads of x are under
 * way; how many lanes are best was measured on an H200. A row much longer than
 * others still makes its warp late. Any GPU, any strides. */
#include "sparse_rows.h"

enum { THREADS = 256, LANES = 32, MOST_BLOCKS = 1 << 20 };

template <class V, int WIDTH>
__global__ void __launch_bounds__(THREADS)
    spmv_row_kernel(const __grid_constant__ sparse_product<V> p)
{
    int lane = threadIdx.x % WIDTH;
    int64_t step = gridDim.x * (int64_t)(THREADS / WIDTH);
    int64_t first = blockIdx.x * (int64_t)(THREADS / WIDTH);
    for (; first < p.rows; first += step) { /* for all threads alike */
        int64_t i = first + threadIdx.x / WIDTH;
        bool inside = i < p.rows;
        int32_t e = inside ? p.starts[i] + lane : 0;
        int32_t end = inside ? p.starts[i + 1] : 0;
        sum_of<V> sum = {};
#pragma unroll 4
        for (; e < end; e += WIDTH)
            add(&sum, times(p.values[e], p.d[p.columns[e] * p.d_row]));
        sum = sum_of_lanes(sum, threadIdx.x % LANES, WIDTH);
        if (inside && lane == 0)
            write_sum(p, i, 0, sum);
    }
}

template <class V, int WIDTH>
static gpu_status launch(cuda_device *d, const gpu_sparse_call *call)
{
    int64_t blocks = ceil_div(call->s.rows, THREADS / WIDTH);
    spmv_row_kernel<V, WIDTH>
        <<<(unsigned)smaller(blocks, MOST_BLOCKS), THREADS, 0, d->stream>>>(
            typed_sparse<V>(call));
    LAUNCHED(d);
    return GPU_OK;
}

static gpu_status scalar(void *device, const gpu_sparse_call *p)
{
    ENTER(d, device);
    return with_type(p->s.dtype,
                     [=](auto x) { return launch<decltype(x), 1>(d, p); });
}

template <class V>
static gpu_status launch_vector(cuda_device *d, const gpu_sparse_call *p)
{
    int64_t mean = ceil_div(p->s.count, p->s.rows);
    return mean <= 6     ? launch<V, 1>(d, p)
           : mean <= 48  ? launch<V, 4>(d, p)
           : mean <= 64  ? launch<V, 8>(d, p)
           : mean <= 160 ? launch<V, 16>(d, p)
                         : launch<V, LANES>(d, p);
}

static gpu_status vector(void *device, const gpu_sparse_call *p)
{
    ENTER(d, device);
    return with_type(p->s.dtype,
                     [=](auto x) { return launch_vector<decltype(x)>(d, p); });
}

const gpu_kernel gpu_cuda_spmv_scalar = {
    .operation = "spmv",
    .name = "scalar",
    .idea = "one thread, one row",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = ANY_NUMBERS,
    .bound = gpu_cuda_sparse_bound,
    .sparse = scalar,
};

const gpu_kernel gpu_cuda_spmv_vector = {
    .operation = "spmv",
    .name = "vector",
    .idea = "1 to 32 lanes a row, as rows are long on average",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = ANY_NUMBERS,
    .bound = gpu_cuda_sparse_bound,
    .sparse = vector,
};
