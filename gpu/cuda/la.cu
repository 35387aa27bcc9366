/* Products that other libraries do: loads liblumat-cuda-la.so and calls it.
 * Sparse products go there for one column; for more there is a kernel here. */
#include <stdio.h>
#include "la.h"
#include "cuda_device.h"
#include "op_list.h"

/* --- sparse times dense -----------------------------------------------------
 * For more than one column: a warp takes a row of s and 32 columns, reads 32
 * entries at once and hands them round.
 *
 * Limited by the bytes of d, read in whole lines where its rows are
 * contiguous. Sums are in f64 and in the order of the entries: the bits
 * repeat, and what is no entry is not multiplied. Of cuSPARSE's algorithms
 * none does both: CSR_ALG3 multiplies padding by d's first row, CSR_ALG2 adds
 * in an order that changes from run to run. Any GPU, any strides. */

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

/* c = alpha s x + beta c, as gpu_backend's sparse_product. */
static gpu_status multiply_columns(cuda_device *d, const gpu_csr *s,
                                   const gpu_view *x, const gpu_view *c,
                                   double alpha, double beta)
{
    return s->dtype == GPU_F64 ? launch<double>(d, s, x, c, alpha, beta)
                               : launch<float>(d, s, x, c, alpha, beta);
}

enum { MOST_DEVICES = 64, DEVICE_LANES = 4 };

static found_library<la_table> library;

static la_device *opened[MOST_DEVICES][DEVICE_LANES]; /* by ordinal */

/* --- finding it ----------------------------------------------------------- */

/* What a call is for, in words: the operation, what does it, and the part of
 * the CUDA toolkit it needs. */
typedef struct purpose {
    const char *operation, *by, *toolkit;
} purpose;

static gpu_status open_library(cuda_device *d, purpose p, la_device **out)
{
    if (!find_table(&library, "liblumat-cuda-la.so", LA_SYMBOL, LA_ABI))
        return FAIL(GPU_UNSUPPORTED,
                    "%s: kernel %s cannot run: it needs liblumat-cuda-la.so "
                    "and the CUDA toolkit's "
                    "%s: %s",
                    p.operation, p.by, p.toolkit, library.why);
    if (d->ordinal >= MOST_DEVICES)
        return FAIL(GPU_UNSUPPORTED, "%s: %s serves no device above cuda:%d",
                    p.operation, p.by, MOST_DEVICES - 1);
    la_setup setup = gpu_cuda_la_setup(d);
    la_device **la = &opened[d->ordinal][d->lane];
    if (*la == NULL)
        TRY(library.table->open(&setup, la));
    *out = *la;
    return GPU_OK;
}

void gpu_cuda_la_close(cuda_device *d)
{
    for (int i = 0; i < DEVICE_LANES && d->ordinal < MOST_DEVICES; i++) {
        if (opened[d->ordinal][i] != NULL)
            library.table->close(opened[d->ordinal][i]);
        opened[d->ordinal][i] = NULL;
    }
}

/* The libraries do not say that the device is lost; the stream does. */
static gpu_status finish(cuda_device *d, gpu_status status)
{
    if (status == GPU_INTERNAL)
        TRY(gpu_cuda_wait(d));
    return status;
}

/* --- dense products ------------------------------------------------------- */

bool gpu_cuda_is_columns(const gpu_view *v, la_operand *out)
{
    bool near = v->rows == 1 || v->row_stride == 1;
    bool apart = v->cols == 1 || v->col_stride >= v->rows;
    *out = {v->data, v->cols == 1 ? v->rows : v->col_stride, 0};
    return near && apart;
}

gpu_status gpu_cuda_la_matmul(cuda_device *d, const char *rung,
                              const la_product *p)
{
    la_device *la = NULL;
    TRY(open_library(d, {"matmul", rung, "cuBLAS"}, &la));
    return finish(d, library.table->matmul(la, p));
}

gpu_status gpu_cuda_la_dot(cuda_device *d, const char *rung, const la_dot *p)
{
    la_device *la = NULL;
    TRY(open_library(d, {"dot", rung, "cuBLAS"}, &la));
    return finish(d, library.table->dot(la, p));
}

/* --- sparse products ------------------------------------------------------ */

static gpu_status copy(cuda_device *d, const gpu_view *from, const gpu_view *to)
{
    gpu_program p = {};
    p.inputs = 1;
    p.compute = (uint8_t)to->dtype;
    return gpu_cuda_map(d, &p, from, to);
}

/* c = beta c, without reading c when beta is 0. */
static gpu_status scale(cuda_device *d, const gpu_view *c, double beta)
{
    gpu_program p = {};
    p.inputs = p.length = beta != 0;
    p.constants = 1;
    p.compute = (uint8_t)c->dtype;
    p.constant[0] = beta;
    p.code[0] = {GPU_OP_mul, 0, 1, 0};
    return gpu_cuda_map(d, &p, c, c);
}

/* c = product + beta c. */
static gpu_status add(cuda_device *d, const gpu_view *product,
                      const gpu_view *c, double beta)
{
    gpu_view in[2] = {*product, *c};
    gpu_program p = {};
    if (beta == 0)
        return copy(d, product, c);
    p.inputs = p.length = 2;
    p.constants = 1;
    p.compute = (uint8_t)c->dtype;
    p.constant[0] = beta;
    p.code[0] = {GPU_OP_mul, 1, 2, 0}; /* value 3 */
    p.code[1] = {GPU_OP_add, 0, 3, 0};
    return gpu_cuda_map(d, &p, in, c);
}

static bool has_gaps(const gpu_view *column)
{
    return column->rows > 1 && column->row_stride != 1;
}

/* Of a column without gaps, rounded up for what lies behind it. */
static size_t column_bytes(const gpu_view *column)
{
    size_t bytes = (size_t)column->rows * dtype_bytes(column->dtype);
    return (bytes + 255) / 256 * 256;
}

/* c = alpha s x + beta c for columns, through scratch memory where they have
 * gaps, or where c takes more than the product. beta stays here: la_library.c
 * says why. */
static gpu_status multiply_column(cuda_device *d, const gpu_csr *s,
                                  const gpu_view *x, const gpu_view *c,
                                  double alpha, double beta)
{
    la_device *la = NULL;
    bool x_apart = has_gaps(x);
    bool c_apart = has_gaps(c) || beta != 0 || c->data == x->data;
    size_t x_bytes = x_apart ? column_bytes(x) : 0;
    size_t c_bytes = c_apart ? column_bytes(c) : 0;
    gpu_view own_x = *x, own_c = *c;
    char *scratch = NULL;
    TRY(open_library(d, {"matmul", "a sparse product", "cuSPARSE"}, &la));
    if (x_bytes + c_bytes > 0)
        TRY(gpu_cuda_scratch(d, x_bytes + c_bytes, (void **)&scratch));
    if (x_apart) {
        own_x.data = scratch;
        own_x.row_stride = 1;
        TRY(copy(d, x, &own_x));
    }
    if (c_apart) {
        own_c.data = scratch + x_bytes;
        own_c.row_stride = 1;
    }
    la_sparse p = {*s, own_x.data, own_c.data, alpha};
    TRY(finish(d, library.table->sparse_product(la, &p)));
    return c_apart ? add(d, &own_c, c, beta) : GPU_OK;
}

gpu_status gpu_cuda_sparse_product(void *device, const gpu_csr *s,
                                   const gpu_view *x, const gpu_view *c,
                                   double alpha, double beta)
{
    ENTER(d, device);
    if (c->rows == 0 || c->cols == 0)
        return GPU_OK;
    if (s->count == 0 || s->cols == 0)
        return scale(d, c, beta);
    if (c->cols > 1)
        return multiply_columns(d, s, x, c, alpha, beta);
    return multiply_column(d, s, x, c, alpha, beta);
}
