/* cusolver: factorisations by the CUDA toolkit's cuSOLVER, column by column as
 * they come. What it has not, QR with pivoting, is left to the CPU.
 *
 * The numbers that say what went wrong come back with a wait, which an
 * interrupt ends: what was issued goes on, on memory that is freed in the
 * stream's order. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "factor.h"
#include "kernel.h"
#include "la.h"
#include "op_list.h"

extern "C" {
#include "complex_numbers.h"
#include "la/solver_table.h"
}

enum { MOST_DEVICES = 64 };

static found_library<solver_table> library;

static solver_device *opened[MOST_DEVICES]; /* by ordinal */

bool gpu_cuda_has_solver(void)
{
    return find_table(&library, "liblumat-cuda-solver.so", SOLVER_SYMBOL,
                      SOLVER_ABI) != NULL;
}

static gpu_status open_solver(cuda_device *d, solver_device **out)
{
    if (!gpu_cuda_has_solver())
        return FAIL(GPU_UNSUPPORTED,
                    "factor: kernel cusolver cannot run: it needs "
                    "liblumat-cuda-solver.so and the CUDA toolkit's cuSOLVER: "
                    "%s",
                    library.why);
    if (d->ordinal >= MOST_DEVICES)
        return FAIL(GPU_UNSUPPORTED,
                    "factor: kernel cusolver serves no device above cuda:%d",
                    MOST_DEVICES - 1);
    la_setup setup = gpu_cuda_la_setup(d);
    if (opened[d->ordinal] == NULL)
        TRY(library.table->open(&setup, &opened[d->ordinal]));
    *out = opened[d->ordinal];
    return GPU_OK;
}

void gpu_cuda_solver_close(cuda_device *d)
{
    if (d->ordinal >= MOST_DEVICES || opened[d->ordinal] == NULL)
        return;
    library.table->close(opened[d->ordinal]);
    opened[d->ordinal] = NULL;
}

/* The library does not say that the device is lost; the stream does. */
static gpu_status finish(cuda_device *d, gpu_status status)
{
    if (status == GPU_INTERNAL)
        TRY(gpu_cuda_wait(d));
    return status;
}

/* --- views, copies, numbers ----------------------------------------------- */

static solver_matrix columns(const gpu_view *v)
{
    int64_t ld = v->cols == 1 ? v->rows : v->col_stride;
    return {v->data, v->dtype, v->rows, v->cols, larger(ld, 1)};
}

size_t gpu_cuda_view_bytes(const gpu_view *v)
{
    size_t elements = (size_t)(v->rows * v->cols);
    size_t numbers = gpu_dtype_is_complex(v->dtype) ? 2 : 1;
    return numbers * elements * dtype_bytes(gpu_dtype_of_parts(v->dtype));
}

/* A part of a complex v, where it lies. */
static gpu_view part_of(const gpu_view *v, gpu_complex_part part)
{
    gpu_dtype t = gpu_dtype_of_parts(v->dtype);
    void *data = (char *)v->data + (int)part * dtype_bytes(t);
    return {data, t, v->rows, v->cols, 2 * v->row_stride, 2 * v->col_stride};
}

static gpu_status copy_reals(cuda_device *d, const gpu_view *from,
                             const gpu_view *to)
{
    gpu_program p = {};
    p.inputs = 1;
    p.compute = (uint8_t)to->dtype;
    return gpu_cuda_map(d, &p, from, to);
}

/* An element of c64 is moved as one of f64, those of c128 part by part. */
gpu_status gpu_cuda_copy_view(cuda_device *d, const gpu_view *from,
                              const gpu_view *to)
{
    if (!gpu_dtype_is_complex(to->dtype))
        return copy_reals(d, from, to);
    if (to->dtype == GPU_C64) {
        gpu_view source = *from, target = *to;
        source.dtype = target.dtype = GPU_F64;
        return copy_reals(d, &source, &target);
    }
    gpu_view re[] = {part_of(from, GPU_REAL_PART), part_of(to, GPU_REAL_PART)};
    gpu_view im[] = {part_of(from, GPU_IMAGINARY_PART),
                     part_of(to, GPU_IMAGINARY_PART)};
    TRY(copy_reals(d, &re[0], &re[1]));
    return copy_reals(d, &im[0], &im[1]);
}

/* v becomes its conjugate. */
static gpu_status conjugate(cuda_device *d, const gpu_view *v)
{
    gpu_view im = part_of(v, GPU_IMAGINARY_PART);
    gpu_program p = {};
    p.inputs = p.length = 1;
    p.code[0] = {GPU_OP_neg, 0, 0, 0};
    p.compute = (uint8_t)im.dtype;
    return gpu_cuda_map(d, &p, &im, &im);
}

gpu_status gpu_cuda_take_room(cuda_device *d, size_t bytes, void **data)
{
    gpu_status status = gpu_cuda_alloc(d, bytes, data);
    if (status == GPU_MEMORY)
        return FAIL(GPU_MEMORY, "factor: no memory for %zu MiB to work in",
                    (bytes >> 20) + 1);
    return status;
}

/* A number on the device that a routine says in what is wrong. */
static gpu_status take_info(cuda_device *d, int **info)
{
    TRY(gpu_cuda_take_room(d, sizeof **info, (void **)info));
    gpu_status status =
        gpu_cuda_check(d, cudaMemsetAsync(*info, 0, sizeof **info, d->stream));
    if (status != GPU_OK)
        gpu_cuda_free(d, *info, sizeof **info);
    return status;
}

/* It is given back, and what it says read where the status is fine. */
static gpu_status read_info(cuda_device *d, int *info, gpu_status status,
                            int64_t *trouble)
{
    int value = 0;
    status = finish(d, status);
    if (status == GPU_OK)
        status = gpu_cuda_download(d, &value, info, sizeof value);
    gpu_cuda_free(d, info, sizeof *info);
    if (status == GPU_OK && value < 0)
        return FAIL(GPU_ARGUMENT, "factor: cuSOLVER refuses argument %d",
                    -value);
    *trouble = value;
    return status;
}

/* --- diagonals -------------------------------------------------------------
 * A number without an exact reciprocal, subnormal or nearly too large, is no
 * pivot for kernels that multiply by it: then the CPU, which divides, does it
 * all. One block looks: a diagonal is short. */

enum { LOOKING = 256 };

__device__ __forceinline__ bool is_odd(float x)
{
    unsigned e = __float_as_uint(x) >> 23 & 0xff;
    return e == 0 ? x != 0 : e == 253 || e == 254;
}

__device__ __forceinline__ bool is_odd(double x)
{
    unsigned e = (unsigned)__double2hiint(x) >> 20 & 0x7ff;
    return e == 0 ? x != 0 : e == 2045 || e == 2046;
}

/* The same of complex numbers whose squares might be such: nobody says by which
 * formula kernels divide. */
__device__ __forceinline__ bool is_odd(float re, float im)
{
    float size = fmaxf(fabsf(re), fabsf(im));
    return size != 0 && size < INFINITY && (size < 0x1p-60f || size > 0x1p60f);
}

__device__ __forceinline__ bool is_odd(double re, double im)
{
    double size = fmax(fabs(re), fabs(im));
    return size != 0 && size < (double)INFINITY &&
           (size < 0x1p-500 || size > 0x1p500);
}

/* out[0]: the first zero, from 1, or INT_MAX; out[1]: are there odd ones? a: of
 * real numbers, or of complex ones by their parts, which then are 2. */
template <class T, int PARTS>
__global__ void __launch_bounds__(LOOKING)
    look_at_diagonal(const T *a, int64_t step, int n, int *out)
{
    __shared__ int first;
    int odd = 0, zero = INT_MAX;
    if (threadIdx.x == 0)
        first = INT_MAX;
    __syncthreads(); /* it is set */
    for (int i = threadIdx.x; i < n; i += LOOKING) {
        T re = a[i * step * PARTS];
        T im = PARTS == 2 ? a[i * step * PARTS + 1] : 0;
        odd |= PARTS == 2 ? is_odd(re, im) : is_odd(re);
        if (re == 0 && im == 0 && zero == INT_MAX)
            zero = i + 1;
    }
    if (zero < INT_MAX)
        atomicMin(&first, zero);
    odd = __syncthreads_or(odd); /* and all have told their zeros */
    if (threadIdx.x == 0) {
        out[0] = first;
        out[1] = odd;
    }
}

template <class T, int PARTS>
static void launch_look(cuda_device *d, const gpu_view *a)
{
    look_at_diagonal<T, PARTS><<<1, LOOKING, 0, d->stream>>>(
        (const T *)a->data, a->row_stride + a->col_stride,
        (int)smaller(a->rows, a->cols), (int *)d->slot);
}

gpu_status gpu_cuda_look_at_diagonal(cuda_device *d, const char *name,
                                     const gpu_view *a, int64_t *zero)
{
    const int *out = (const int *)d->slot;
    int most = 126;
    switch (a->dtype) {
    case GPU_F64:
        launch_look<double, 1>(d, a);
        most = 1022;
        break;
    case GPU_C64:
        launch_look<float, 2>(d, a);
        most = 60;
        break;
    case GPU_C128:
        launch_look<double, 2>(d, a);
        most = 500;
        break;
    default:
        launch_look<float, 1>(d, a);
    }
    LAUNCHED(d);
    TRY(gpu_cuda_wait(d));
    *zero = out[0] == INT_MAX ? 0 : out[0];
    if (out[1])
        return FAIL(GPU_UNSUPPORTED,
                    "%s: on a GPU pivots have to be within 2^-%d and 2^%d",
                    name, most, most);
    return GPU_OK;
}

/* --- LU ------------------------------------------------------------------- */

/* info says no more than the pivots do, of what is no mistake of ours. */
gpu_status gpu_cuda_getrf(cuda_device *d, const gpu_view *a, int64_t *pivots)
{
    solver_device *s = NULL;
    int *info;
    solver_matrix m = columns(a);
    TRY(open_solver(d, &s));
    TRY(take_info(d, &info));
    gpu_status status = finish(d, library.table->lu(s, &m, pivots, info));
    gpu_cuda_free(d, info, sizeof *info);
    return status;
}

gpu_status gpu_cuda_getrs(cuda_device *d, const gpu_view *a,
                          const int64_t *pivots, int turned, const gpu_view *b)
{
    solver_device *s = NULL;
    int *info;
    solver_matrix m = columns(a), x = columns(b);
    TRY(open_solver(d, &s));
    TRY(take_info(d, &info));
    gpu_status status =
        finish(d, library.table->lu_solve(s, turned, &m, pivots, &x, info));
    gpu_cuda_free(d, info, sizeof *info);
    return status;
}

/* --- Cholesky, QR --------------------------------------------------------- */

static gpu_status cholesky(cuda_device *d, solver_device *s, gpu_factoring *f)
{
    int *info;
    solver_matrix a = columns(&f->a);
    TRY(take_info(d, &info));
    return read_info(d, info, library.table->cholesky(s, &a, info),
                     &f->trouble);
}

static gpu_status factor_qr(cuda_device *d, solver_device *s, gpu_factoring *f)
{
    int *info;
    solver_matrix a = columns(&f->a);
    TRY(take_info(d, &info));
    return read_info(d, info, library.table->qr(s, &a, f->values.data, info),
                     &f->trouble);
}

static gpu_status make_q(cuda_device *d, solver_device *s, gpu_factoring *f)
{
    int *info;
    solver_matrix q = columns(&f->b);
    gpu_view from = f->a, to = f->b;
    int64_t k = smaller(smaller(f->a.rows, f->a.cols), f->b.cols);
    from.cols = to.cols = k;
    TRY(gpu_cuda_copy_view(d, &from, &to));
    TRY(take_info(d, &info));
    return read_info(d, info,
                     library.table->make_q(s, &q, f->values.data, k, info),
                     &f->trouble);
}

static gpu_status apply_q(cuda_device *d, solver_device *s, gpu_factoring *f)
{
    int *info;
    solver_matrix a = columns(&f->a), b = columns(&f->b);
    TRY(take_info(d, &info));
    return read_info(
        d, info,
        library.table->apply_q(s, f->is_turned, &a, f->values.data, &b, info),
        &f->trouble);
}

/* --- triangles ------------------------------------------------------------ */

gpu_status gpu_cuda_solve_triangle(cuda_device *d, const gpu_factoring *how,
                                   const gpu_view *a, const gpu_view *b)
{
    solver_device *s = NULL;
    solver_half half = {how->is_lower, how->is_unit, how->is_turned,
                        how->is_conjugated};
    solver_matrix t = columns(a), x = columns(b);
    TRY(open_solver(d, &s));
    return finish(d, library.table->triangle(s, &half, &t, &x));
}

static gpu_status triangle(cuda_device *d, gpu_factoring *f)
{
    if (!f->is_unit)
        TRY(gpu_cuda_look_at_diagonal(d, "solve", &f->a, &f->trouble));
    if (f->trouble > 0)
        return GPU_OK;
    TRY(gpu_cuda_solve_triangle(d, f, &f->a, &f->b));
    return gpu_cuda_wait(d);
}

/* --- singular values -------------------------------------------------------
 * Of a matrix with more columns than rows it is the transpose that is worked
 * on: a = u s v^T, a^T = v s u^T. Above SMALL by the polar decomposition, which
 * is several times faster than QR. A value near zero makes it shift all: then
 * again by QR. */

enum { SMALL = 64 };

/* What a call of the library's works on: copies, as it wants them. The polar
 * one works in u and v where only values are wanted, too. */
typedef struct svd_work {
    gpu_view a, u, v; /* v: without the transpose by polar, else with it */
    size_t bytes[3];
    int is_turned, is_polar, wants_vectors, is_full;
} svd_work;

static gpu_view dense_columns(gpu_dtype t, int64_t rows, int64_t cols)
{
    return {NULL, t, rows, cols, 1, rows};
}

static svd_work plan_svd(const gpu_factoring *f)
{
    svd_work w = {};
    int64_t m = larger(f->a.rows, f->a.cols), n = smaller(f->a.rows, f->a.cols);
    w.is_turned = f->a.rows < f->a.cols;
    w.is_polar = n > SMALL;
    w.wants_vectors = f->b.data != NULL;
    w.is_full = f->b.cols > n || f->v.rows > n;
    w.a = dense_columns(f->a.dtype, m, n);
    w.u = dense_columns(f->a.dtype, m, w.is_full ? m : n);
    w.v = dense_columns(f->a.dtype, n, n);
    int has_both = w.wants_vectors || w.is_polar;
    if (!w.is_turned && w.wants_vectors)
        w.u.data = f->b.data; /* where it is wanted */
    w.bytes[0] = gpu_cuda_view_bytes(&w.a);
    w.bytes[1] = has_both && w.u.data == NULL ? gpu_cuda_view_bytes(&w.u) : 0;
    w.bytes[2] = has_both ? gpu_cuda_view_bytes(&w.v) : 0;
    return w;
}

static void end_svd(cuda_device *d, svd_work *w)
{
    void *data[] = {w->a.data, w->u.data, w->v.data};
    for (int i = 0; i < 3; i++)
        if (w->bytes[i] > 0 && data[i] != NULL)
            gpu_cuda_free(d, data[i], w->bytes[i]);
}

static gpu_status take_svd(cuda_device *d, svd_work *w)
{
    void **data[] = {&w->a.data, &w->u.data, &w->v.data};
    for (int i = 0; i < 3; i++)
        if (w->bytes[i] > 0)
            TRY(gpu_cuda_take_room(d, w->bytes[i], data[i]));
    return GPU_OK;
}

/* One attempt. off: of all values, by the polar decomposition. */
static gpu_status try_svd(cuda_device *d, solver_device *s, gpu_factoring *f,
                          svd_work *w, int is_polar, double *off)
{
    int *info;
    gpu_view from = f->a;
    if (w->is_turned)
        swap_axes(&from);
    TRY(gpu_cuda_copy_view(d, &from, &w->a));
    TRY(take_info(d, &info));
    solver_svd p = {columns(&w->a),
                    columns(&w->u),
                    columns(&w->v),
                    f->values.data,
                    w->wants_vectors,
                    is_polar,
                    0};
    gpu_status status = library.table->svd(s, &p, info);
    status = read_info(d, info, status, &f->trouble);
    *off = p.off;
    return status;
}

/* u and v^T of f's matrix out of those of what was worked on, which of a
 * complex one are u and v^H; of a turned one, a^T = u s v^H, a's are conj(v)
 * and u^T. */
static gpu_status give_vectors(cuda_device *d, gpu_factoring *f,
                               const svd_work *w, int is_polar)
{
    gpu_view u = w->u, v = w->v; /* v becomes v^T */
    if (!w->wants_vectors)
        return GPU_OK;
    if (is_polar) {
        if (gpu_dtype_is_complex(v.dtype))
            TRY(conjugate(d, &v));
        swap_axes(&v);
    }
    if (w->is_turned) { /* a's u is (v^T)^T, its v^T is u^T */
        gpu_view held = u;
        u = v;
        v = held;
        swap_axes(&u);
        swap_axes(&v);
    }
    if (u.data != f->b.data)
        TRY(gpu_cuda_copy_view(d, &u, &f->b));
    return gpu_cuda_copy_view(d, &v, &f->v);
}

/* Is a value that was shifted so far away not what it should be? */
static gpu_status is_off(cuda_device *d, const gpu_factoring *f, double off,
                         int *out)
{
    int is_f64 = f->values.dtype == GPU_F64;
    double eps = is_f64 ? 0x1p-52 : 0x1p-23, largest = 0;
    if (is_f64) {
        TRY(gpu_cuda_download(d, &largest, f->values.data, sizeof largest));
    } else {
        float value;
        TRY(gpu_cuda_download(d, &value, f->values.data, sizeof value));
        largest = (double)value;
    }
    *out = f->trouble > 0 || !(off <= eps * largest);
    return GPU_OK;
}

/* There are elements, as a matrix of zeros, for which a kernel of cuSOLVER's
 * fails: then the other way is tried, and where that fails none is left here. A
 * device that is lost says so when it is asked next. */
static gpu_status find_svd(cuda_device *d, solver_device *s, gpu_factoring *f,
                           svd_work *w)
{
    double off;
    int again = 1, is_polar = w->is_polar;
    TRY(take_svd(d, w));
    if (is_polar) {
        gpu_status status = try_svd(d, s, f, w, 1, &off);
        if (status == GPU_OK)
            TRY(is_off(d, f, off, &again));
        else if (status != GPU_INTERNAL)
            return status;
    }
    if (again) {
        is_polar = 0;
        gpu_status status = try_svd(d, s, f, w, 0, &off);
        if (status != GPU_OK)
            return status == GPU_INTERNAL ? GPU_UNSUPPORTED : status;
    }
    if (f->trouble == 0)
        TRY(give_vectors(d, f, w, is_polar));
    return gpu_cuda_wait(d);
}

static gpu_status factor_svd(cuda_device *d, solver_device *s, gpu_factoring *f)
{
    svd_work w = plan_svd(f);
    gpu_status status = find_svd(d, s, f, &w);
    end_svd(d, &w);
    return status;
}

static gpu_status factor_eigh(cuda_device *d, solver_device *s,
                              gpu_factoring *f)
{
    int *info;
    solver_matrix a = columns(&f->a);
    TRY(take_info(d, &info));
    return read_info(
        d, info,
        library.table->eigh(s, f->wants_vectors, &a, f->values.data, info),
        &f->trouble);
}

/* --- the rung ------------------------------------------------------------- */

static gpu_status run(cuda_device *d, gpu_factoring *f)
{
    solver_device *s = NULL;
    f->trouble = 0;
    TRY(open_solver(d, &s));
    switch (f->kind) {
    case GPU_FACTOR_CHOLESKY:
        return cholesky(d, s, f);
    case GPU_FACTOR_LU:
        return gpu_cuda_factor_lu(d, f);
    case GPU_FACTOR_QR:
        return factor_qr(d, s, f);
    case GPU_FACTOR_Q:
        return make_q(d, s, f);
    case GPU_FACTOR_APPLY_Q:
        return apply_q(d, s, f);
    case GPU_FACTOR_TRIANGLE:
        return triangle(d, f);
    case GPU_FACTOR_SVD:
        return factor_svd(d, s, f);
    case GPU_FACTOR_EIGH:
        return factor_eigh(d, s, f);
    }
    return FAIL(GPU_UNSUPPORTED, "factor: not on a GPU");
}

static gpu_status factor_by_cusolver(void *device, gpu_factoring *f)
{
    ENTER(d, device);
    return run(d, f);
}

constexpr unsigned DTYPES = FLOATS | 1u << GPU_C64 | 1u << GPU_C128;

#define RUNG(symbol, what)                     \
    const gpu_kernel symbol = {                \
        .operation = what,                     \
        .name = "cusolver",                    \
        .idea = "the CUDA toolkit's cuSOLVER", \
        .needs = "cuSOLVER",                   \
        .precision = "f32",                    \
        .capability = 0,                       \
        .dtypes = DTYPES,                      \
        .bound = NULL,                         \
        .matmul = NULL,                        \
        .dot = NULL,                           \
        .factor = factor_by_cusolver,          \
    }
RUNG(gpu_cuda_lu_cusolver, "lu");
RUNG(gpu_cuda_chol_cusolver, "chol");
RUNG(gpu_cuda_qr_cusolver, "qr");
RUNG(gpu_cuda_factor_cusolver, "factor");
