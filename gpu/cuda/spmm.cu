/* Sparse times dense for more than one column: a warp takes a row of s and 32
 * columns, reads 32 entries at once and hands them round.
 *
 * Limited by the bytes of d, read in whole lines where its rows are
 * contiguous. Sums are in f64 and in the order of the entries: the bits
 * repeat, and what is no entry is not multiplied. Of cuSPARSE's algorithms
 * none does both: CSR_ALG3 multiplies padding by d's first row, CSR_ALG2 adds
 * in an order that changes from run to run. Any GPU, any strides. */
#include "spmm.h"
#include "view.h"

constexpr int WARPS = 8, LANES = 32, MOST_ROWS = 1 << 20;

template <class T> struct sparse_rows {
    const int32_t *starts, *columns;
    const T *values;
    int64_t rows;
};

template <class T>
__device__ __forceinline__ double
add_entries(const sparse_rows<T> &s, const T *d, int64_t d_row, int first,
            int end, int lane, bool inside)
{
    double sum = 0;
    for (int base = first; base < end; base += LANES) {
        int mine = base + lane < end ? s.columns[base + lane] : 0;
        T value = base + lane < end ? s.values[base + lane] : (T)0;
        int count = min(LANES, end - base);
#pragma unroll 4
        for (int e = 0; e < count; e++) {
            int64_t column = __shfl_sync(~0u, mine, e);
            double v = (double)__shfl_sync(~0u, value, e);
            if (inside)
                sum += v * (double)d[column * d_row];
        }
    }
    return sum;
}

template <class T>
__global__ void __launch_bounds__(WARPS *LANES)
    spmm_kernel(const sparse_rows<T> s, const gpu_view d, const gpu_view c,
                double alpha, double beta)
{
    int lane = threadIdx.x % LANES;
    int64_t j = blockIdx.y * (int64_t)LANES + lane;
    int64_t step = (int64_t)gridDim.x * WARPS;
    bool inside = j < c.cols;
    for (int64_t i = blockIdx.x * (int64_t)WARPS + threadIdx.x / LANES;
         i < s.rows; i += step) {
        double sum =
            add_entries(s, (const T *)d.data + j * d.col_stride, d.row_stride,
                        s.starts[i], s.starts[i + 1], lane, inside);
        T *to = (T *)c.data + place(c, i, j);
        if (inside)
            *to =
                (T)(beta == 0 ? alpha * sum : alpha * sum + beta * (double)*to);
    }
}

template <class T>
static gpu_status launch(cuda_device *d, const gpu_csr *s, const gpu_view *x,
                         const gpu_view *c, double alpha, double beta)
{
    sparse_rows<T> rows = {s->starts, s->columns, (const T *)s->values,
                           s->rows};
    int64_t across = ceil_div(c->cols, LANES);
    if (across > 65535)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: a sparse matrix times %lld columns is more than "
                    "a GPU does at once",
                    (long long)c->cols);
    dim3 grid((unsigned)smaller(ceil_div(s->rows, WARPS), MOST_ROWS),
              (unsigned)across);
    spmm_kernel<T>
        <<<grid, WARPS * LANES, 0, d->stream>>>(rows, *x, *c, alpha, beta);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_spmm(cuda_device *d, const gpu_csr *s, const gpu_view *x,
                         const gpu_view *c, double alpha, double beta)
{
    return s->dtype == GPU_F64 ? launch<double>(d, s, x, c, alpha, beta)
                               : launch<float>(d, s, x, c, alpha, beta);
}
