/* spmm rows: a warp takes a row of s and 32 columns, reads 32 entries at once
 * and hands them round.
 *
 * Limited by the bytes of d, read in whole lines where its rows are contiguous;
 * a row much longer than others makes its warp late. Of cuSPARSE's algorithms
 * none adds in a fixed order what entries alone give: CSR_ALG3 multiplies
 * padding by d's first row, CSR_ALG2 adds in an order that changes from run to
 * run. Any GPU, any strides. */
#include "sparse_rows.h"

enum { WARPS = 8, LANES = 32, MOST_ROWS = 1 << 20, MOST_ACROSS = 65535 };

template <class V>
__device__ __forceinline__ sum_of<V> add_entries(const sparse_product<V> &p,
                                                 const V *d, int first, int end,
                                                 int lane, bool inside)
{
    sum_of<V> sum = {};
    for (int base = first; base < end; base += LANES) {
        int mine = base + lane < end ? p.columns[base + lane] : 0;
        V value = base + lane < end ? p.values[base + lane] : V();
        int count = min(LANES, end - base);
#pragma unroll 4
        for (int e = 0; e < count; e++) {
            int64_t column = __shfl_sync(~0u, mine, e);
            V v = shuffled(~0u, value, e, LANES);
            if (inside)
                add(&sum, times(v, d[column * p.d_row]));
        }
    }
    return sum;
}

template <class V>
__global__ void __launch_bounds__(WARPS *LANES)
    spmm_row_kernel(const __grid_constant__ sparse_product<V> p)
{
    int lane = threadIdx.x % LANES;
    int64_t j = blockIdx.y * (int64_t)LANES + lane;
    int64_t step = (int64_t)gridDim.x * WARPS;
    bool inside = j < p.n;
    for (int64_t i = blockIdx.x * (int64_t)WARPS + threadIdx.x / LANES;
         i < p.rows; i += step) {
        sum_of<V> sum = add_entries(p, p.d + j * p.d_col, p.starts[i],
                                    p.starts[i + 1], lane, inside);
        if (inside)
            write_sum(p, i, j, sum);
    }
}

template <class V>
static gpu_status launch(cuda_device *d, const gpu_sparse_call *call)
{
    sparse_product<V> p = typed_sparse<V>(call);
    int64_t across = ceil_div(p.n, LANES);
    if (across > MOST_ACROSS)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: kernel rows cannot multiply a sparse matrix by "
                    "%lld columns at once",
                    (long long)p.n);
    dim3 grid((unsigned)smaller(ceil_div(p.rows, WARPS), MOST_ROWS),
              (unsigned)across);
    spmm_row_kernel<V><<<grid, WARPS * LANES, 0, d->stream>>>(p);
    LAUNCHED(d);
    return GPU_OK;
}

static gpu_status rows(void *device, const gpu_sparse_call *p)
{
    ENTER(d, device);
    return with_type(p->s.dtype,
                     [=](auto x) { return launch<decltype(x)>(d, p); });
}

const gpu_kernel gpu_cuda_spmm_rows = {
    .operation = "spmm",
    .name = "rows",
    .idea = "a warp, one row and 32 columns; entries handed round",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = ANY_NUMBERS,
    .bound = gpu_cuda_sparse_bound,
    .sparse = rows,
};
