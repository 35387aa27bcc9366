/* matmul cublas, cublas-tf32, cublas-bf16 and dot cublas: the CUDA toolkit's
 * own products, the peers that the other rungs are measured against.
 *
 * cuBLAS reads column-major matrices and their transposes, so rows or columns
 * of neighbours at any distance are passed as they are; a row-major c = a b is
 * its c^T = b^T a^T. Views of another kind are refused: copying them would be
 * a rung of ours. Only cublas-bf16 copies, since rounding a and b to bf16
 * first is how one gets that speed. */
#include "kernel.h"
#include "la.h"

#include <cuda_bf16.h>

/* --- matmul --------------------------------------------------------------- */

static void turn(gpu_gemm *g)
{
    gpu_view a = g->a;
    g->a = g->b;
    g->b = a;
    swap_axes(&g->a);
    swap_axes(&g->b);
    swap_axes(&g->c);
}

static gpu_status refuse(const char *rung, const char *which, const gpu_view *v)
{
    return FAIL(GPU_UNSUPPORTED,
                "matmul: kernel %s cannot read %s: it needs rows or columns of "
                "neighbours that do not overlap, not %lldx%lld with strides "
                "%lld and %lld",
                rung, which, (long long)v->rows, (long long)v->cols,
                (long long)v->row_stride, (long long)v->col_stride);
}

/* Turns the product so that c lies in columns. The turned one is tried first:
 * c comes with its columns nearer, and a row of c then is a column, which is
 * the matrix times vector that cuBLAS does best. */
static gpu_status begin(const char *rung, const gpu_gemm *p, la_mode mode,
                        gpu_gemm *g, la_product *out)
{
    TRY(gpu_cuda_begin_matmul(rung, p, g));
    turn(g);
    bool fits = gpu_cuda_is_columns(&g->c, &out->c);
    if (!fits) {
        turn(g);
        fits = gpu_cuda_is_columns(&g->c, &out->c);
    }
    out->mode = mode;
    out->m = g->c.rows;
    out->n = g->c.cols;
    out->k = g->a.cols;
    out->alpha = g->alpha;
    out->beta = g->beta;
    return fits ? GPU_OK : refuse(rung, "its result", &g->c);
}

static gpu_status read_operand(const char *rung, const gpu_view *v,
                               la_operand *out)
{
    gpu_view turned = *v;
    if (gpu_cuda_is_columns(v, out))
        return GPU_OK;
    swap_axes(&turned);
    bool fits = gpu_cuda_is_columns(&turned, out);
    out->transposed = 1;
    return fits ? GPU_OK : refuse(rung, "its operands", v);
}

static gpu_status multiply_in_place(cuda_device *d, const char *rung,
                                    const gpu_gemm *p, la_mode mode)
{
    gpu_gemm g;
    la_product product = {};
    TRY(begin(rung, p, mode, &g, &product));
    TRY(read_operand(rung, &g.a, &product.a));
    TRY(read_operand(rung, &g.b, &product.b));
    return gpu_cuda_la_matmul(d, rung, &product);
}

/* --- rounding to bf16 ----------------------------------------------------- */

/* A column of the rounded operand is a whole number of 16-byte blocks, so
 * that every column starts on one: the fast kernels of cuBLAS want that. */
enum { BLOCK = 8, THREADS = 256 };

struct alignas(16) block {
    __nv_bfloat162 at[BLOCK / 2];
};

/* Eight neighbours of column j from row i on, zeros beyond its end. */
__device__ __forceinline__ void read_eight(const gpu_view &v, int64_t i,
                                           int64_t j, bool wide, float *x)
{
    const float *from = (const float *)v.data + place(v, i, j);
    if (wide && i + BLOCK <= v.rows) {
        *(float4 *)x = *(const float4 *)from;
        *(float4 *)(x + 4) = *(const float4 *)(from + 4);
        return;
    }
#pragma unroll
    for (int e = 0; e < BLOCK; e++)
        x[e] = i + e < v.rows ? from[e * v.row_stride] : 0;
}

/* Limited by bytes: 6 an element. */
__global__ void __launch_bounds__(THREADS)
    round_kernel(const __grid_constant__ gpu_view v, int64_t per_column,
                 bool wide, block *to)
{
    int64_t blocks = per_column * v.cols;
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t t = blockIdx.x * (int64_t)THREADS + threadIdx.x; t < blocks;
         t += step) {
        alignas(16) float x[BLOCK];
        block rounded;
        int64_t j = divide(t, per_column);
        read_eight(v, (t - j * per_column) * BLOCK, j, wide, x);
#pragma unroll
        for (int e = 0; e < BLOCK / 2; e++)
            rounded.at[e] = __floats2bfloat162_rn(x[2 * e], x[2 * e + 1]);
        to[t] = rounded;
    }
}

/* v with its nearer neighbours along its columns. */
static gpu_view along_columns(const gpu_view *v, int *turned)
{
    gpu_view columns = *v;
    *turned = stride_size(v->row_stride) > stride_size(v->col_stride);
    if (*turned)
        swap_axes(&columns);
    return columns;
}

static size_t rounded_bytes(const gpu_view *v)
{
    int turned;
    gpu_view columns = along_columns(v, &turned);
    return (size_t)(ceil_div(columns.rows, BLOCK) * columns.cols) *
           sizeof(block);
}

static gpu_status round_operand(cuda_device *d, const gpu_view *v, void *data,
                                la_operand *out)
{
    gpu_view columns = along_columns(v, &out->transposed);
    int64_t per_column = ceil_div(columns.rows, BLOCK);
    bool wide = columns.row_stride == 1 && columns.col_stride % 4 == 0 &&
                is_aligned(columns.data);
    int64_t blocks = ceil_div(per_column * columns.cols, THREADS);
    out->data = data;
    out->ld = per_column * BLOCK;
    round_kernel<<<grid_for(blocks), THREADS, 0, d->stream>>>(
        columns, per_column, wide, (block *)data);
    LAUNCHED(d);
    return GPU_OK;
}

static gpu_status multiply_rounded(cuda_device *d, const char *rung,
                                   const gpu_gemm *p)
{
    gpu_gemm g;
    la_product product = {};
    char *data;
    TRY(begin(rung, p, LA_BF16, &g, &product));
    size_t bytes = (rounded_bytes(&g.a) + 255) / 256 * 256;
    TRY(gpu_cuda_scratch(d, bytes + rounded_bytes(&g.b), (void **)&data));
    TRY(round_operand(d, &g.a, data, &product.a));
    TRY(round_operand(d, &g.b, data + bytes, &product.b));
    return gpu_cuda_la_matmul(d, rung, &product);
}

/* --- dot ------------------------------------------------------------------ */

/* The sum goes straight into the pinned slot. */
static gpu_status multiply_vectors(void *device, const gpu_view *x,
                                   const gpu_view *y, double *out)
{
    ENTER(d, device);
    TRY(gpu_cuda_begin_dot("cublas", x, y));
    bool is_f64 = x->dtype == GPU_F64;
    la_dot p = {x->dtype,
                x->rows * x->cols,
                x->data,
                y->data,
                x->cols == 1 ? x->row_stride : x->col_stride,
                y->cols == 1 ? y->row_stride : y->col_stride,
                d->slot};
    *out = 0;
    if (p.n == 0)
        return GPU_OK;
    if (p.n == 1)
        p.x_stride = p.y_stride = 1;
    if (p.x_stride == 0 || p.y_stride == 0)
        return FAIL(GPU_UNSUPPORTED,
                    "dot: kernel cublas cannot read a vector of stride 0");
    TRY(gpu_cuda_la_dot(d, "cublas", &p));
    TRY(gpu_cuda_wait(d));
    *out = is_f64 ? *d->slot : (double)*(const float *)d->slot;
    return GPU_OK;
}

static gpu_status multiply_exactly(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    la_mode mode = p->c.dtype == GPU_F64 ? LA_F64 : LA_F32;
    return multiply_in_place(d, "cublas", p, mode);
}

static gpu_status multiply_tf32(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    return multiply_in_place(d, "cublas-tf32", p, LA_TF32);
}

static gpu_status multiply_bf16(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    return multiply_rounded(d, "cublas-bf16", p);
}

/* --- bounds --------------------------------------------------------------- */

/* Sums of the operands' own type, in any order. */
static double dot_bound(gpu_dtype dtype, int64_t k)
{
    return gpu_cuda_gamma(dtype, k);
}

/* Each factor off by u, then the sum in f32: (1 + u)^2 (1 + gamma) - 1.
 * Source: Blanchard, Higham, Lopez, Mary and Pranesh, Mixed Precision Block
 * Fused Multiply-Add: Error Analysis and Application to GPU Tensor Cores,
 * 2020. The tensor cores cut their sums off where f32 would round, but only
 * once for eight products or more: gamma covers it. */
static double low_bound(double u, int64_t k)
{
    double gamma = gpu_cuda_matmul_bound(GPU_F32, k);
    return 2 * u + u * u + (1 + u) * (1 + u) * gamma;
}

/* TF32 keeps 11 bits. Operands that reach the tensor cores as they are lose
 * the others, unrounded: a whole unit, 2^-10. */
static double tf32_bound(gpu_dtype dtype, int64_t k)
{
    (void)dtype;
    return low_bound(0x1p-10, k);
}

/* bf16 keeps 8 bits, rounded to nearest. */
static double bf16_bound(gpu_dtype dtype, int64_t k)
{
    (void)dtype;
    return low_bound(0x1p-8, k);
}

const gpu_kernel gpu_cuda_dot_cublas = {
    .operation = "dot",
    .name = "cublas",
    .idea = "the toolkit's SDOT or DDOT: the peer",
    .needs = "cuBLAS",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = dot_bound,
    .matmul = NULL,
    .dot = multiply_vectors,
};

const gpu_kernel gpu_cuda_matmul_cublas = {
    .operation = "matmul",
    .name = "cublas",
    .idea = "the toolkit's SGEMM or DGEMM: the peer",
    .needs = "cuBLAS",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = gpu_cuda_matmul_bound, /* a sum in any order, alpha and beta */
    .matmul = multiply_exactly,
    .dot = NULL,
};

const gpu_kernel gpu_cuda_matmul_cublas_tf32 = {
    .operation = "matmul",
    .name = "cublas-tf32",
    .idea = "SGEMM on the tensor cores, factors cut to TF32: the peer of tf32",
    .needs = "cuBLAS, sm_80",
    .precision = "tf32",
    .capability = 80,
    .dtypes = 1u << GPU_F32,
    .bound = tf32_bound,
    .matmul = multiply_tf32,
    .dot = NULL,
};

const gpu_kernel gpu_cuda_matmul_cublas_bf16 = {
    .operation = "matmul",
    .name = "cublas-bf16",
    .idea = "operands rounded to bf16, then GEMM: the peer of bf16",
    .needs = "cuBLAS, sm_80",
    .precision = "bf16",
    .capability = 80,
    .dtypes = 1u << GPU_F32,
    .bound = bf16_bound,
    .matmul = multiply_bf16,
    .dot = NULL,
};
