/* LU by either rung, and linear systems by it: solve, determinant, how large
 * the inverse is.
 *
 * What is factored for these is the transpose of the row-major matrix A, as
 * LAPACK sees it: A^T = P L U. So A x = b is a turned solve, without a copy of
 * A; only a b of several columns, which lies row by row, is turned and turned
 * back. */
#include <math.h>
#include <stdlib.h>
#include "factor.h"

extern "C" {
#include "complex_numbers.h"
#include "inverse_size.h"
}

/* --- which rung -----------------------------------------------------------
 * Ours is never slower where it is taken: from LEAST_OWN on, from measurements
 * against cuSOLVER on one H200. LU of up to MOST_SMALL is the CPU's: there and
 * back it takes a third of cuSOLVER's time, which is launches. */

static const int64_t MOST_SMALL = 128;
static const int64_t LEAST_OWN = 129, LEAST_OWN_TALL = 256,
                     LEAST_OWN_CHOLESKY = 5120;
static const int64_t LEAST_OWN_COMPLEX = 1536, LEAST_COMPLEX_AHEAD = 6144;
static const int64_t LEAST_REFINED = 3072;

static const gpu_kernel *choose_lu(const cuda_device *d, const gpu_view *a)
{
    int64_t least = a->rows == a->cols ? LEAST_OWN : LEAST_OWN_TALL;
    if (a->cols >= least && gpu_cuda_can_own_lu(d, a))
        return gpu_cuda_is_for_ahead(a->cols) ? &gpu_cuda_lu_ahead
                                              : &gpu_cuda_lu_split16;
    if (a->rows >= LEAST_OWN_COMPLEX && gpu_cuda_can_complex_lu(d, a))
        return a->rows >= LEAST_COMPLEX_AHEAD ? &gpu_cuda_lu_complex_ahead
                                              : &gpu_cuda_lu_complex;
    return &gpu_cuda_lu_cusolver;
}

static const gpu_kernel *choose_cholesky(const cuda_device *d,
                                         const gpu_view *a)
{
    if (a->rows >= LEAST_OWN_CHOLESKY && gpu_cuda_can_own_cholesky(d, a))
        return &gpu_cuda_chol_split16;
    return &gpu_cuda_chol_cusolver;
}

static const gpu_kernel *choose_qr(const cuda_device *d, const gpu_view *a)
{
    int64_t side = larger(a->rows, a->cols);
    int loses = a->dtype == GPU_C64 && side >= 192 && side < 384;
    return gpu_cuda_can_own_qr(d, a) && !loses ? &gpu_cuda_qr_split16
                                               : &gpu_cuda_qr_cusolver;
}

/* NULL: the CPU's. QR with pivoting is not among cuSOLVER's. */
const gpu_kernel *gpu_cuda_choose_factor(void *device, const gpu_factoring *f)
{
    if (f->kind == GPU_FACTOR_BATCH)
        return gpu_cuda_can_batch(&f->a) ? &gpu_cuda_batch : NULL;
    if (!gpu_cuda_has_solver() || (f->kind == GPU_FACTOR_QR && f->places))
        return NULL;
    if (f->kind == GPU_FACTOR_LU)
        return larger(f->a.rows, f->a.cols) <= MOST_SMALL
                   ? NULL
                   : choose_lu((const cuda_device *)device, &f->a);
    if (f->kind == GPU_FACTOR_CHOLESKY)
        return choose_cholesky((const cuda_device *)device, &f->a);
    if (f->kind == GPU_FACTOR_QR || f->kind == GPU_FACTOR_Q ||
        f->kind == GPU_FACTOR_APPLY_Q)
        return choose_qr((const cuda_device *)device, &f->a);
    return &gpu_cuda_factor_cusolver;
}

gpu_status gpu_cuda_factor(void *device, gpu_factoring *f)
{
    return f->rung->factor(device, f);
}

/* --- LU
 * ----------------------------------------------------------------------- */

/* GPU_OK without an order: it is not for our own. */
static gpu_status try_own(cuda_device *d, const gpu_kernel *rung, cuda_lu *lu)
{
    int is_fine = 0;
    size_t bytes = (size_t)lu->a.rows * sizeof *lu->order;
    gpu_status status = gpu_cuda_take_room(d, bytes, (void **)&lu->order);
    if (status == GPU_OK && lu->a.dtype == GPU_C64)
        status = gpu_cuda_complex_lu(
            d, &lu->a, rung == &gpu_cuda_lu_complex_ahead, lu->order, &is_fine);
    else if (status == GPU_OK)
        status = gpu_cuda_own_lu(d, &lu->a, rung == &gpu_cuda_lu_ahead,
                                 lu->order, &is_fine);
    if (status == GPU_OK && is_fine)
        return GPU_OK;
    gpu_cuda_free(d, lu->order, bytes);
    lu->order = NULL;
    return status == GPU_MEMORY ? GPU_OK : status; /* the other takes less */
}

static gpu_status by_cusolver(cuda_device *d, cuda_lu *lu)
{
    size_t bytes = (size_t)smaller(lu->a.rows, lu->a.cols);
    TRY(gpu_cuda_take_room(d, bytes * sizeof *lu->pivots,
                           (void **)&lu->pivots));
    return gpu_cuda_getrf(d, &lu->a, lu->pivots);
}

template <class T> __global__ void look_for_odd(const T *a, int64_t n, int *odd)
{
    T sum = 0; /* zero times anything finite */
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        sum += a[i] * 0;
    if (!(sum == 0))
        *odd = 1;
}

/* Of factors with a zero for a pivot: was that there? Of NaN and Inf cuSOLVER
 * leaves zeros, too, and of subnormal numbers. Small ones are left to the CPU,
 * large ones that hold Inf or NaN are not singular. */
static gpu_status doubt_zero(cuda_device *d, cuda_lu *lu)
{
    enum { SMALL = 1024 };
    int *odd = (int *)d->slot, blocks = 4 * d->sms;
    int64_t n = lu->a.rows * lu->a.cols;
    int is_f64 = gpu_dtype_of_parts(lu->a.dtype) == GPU_F64;
    if (gpu_dtype_is_complex(lu->a.dtype))
        n *= 2; /* numbers */
    if (lu->a.rows <= SMALL && lu->a.cols <= SMALL)
        return FAIL(GPU_UNSUPPORTED, "lu: pivot %lld is zero on the GPU",
                    (long long)lu->zero);
    TRY(gpu_cuda_wait(d)); /* nothing writes to the slot */
    *odd = 0;
    if (is_f64)
        look_for_odd<<<blocks, 256, 0, d->stream>>>((const double *)lu->a.data,
                                                    n, odd);
    else
        look_for_odd<<<blocks, 256, 0, d->stream>>>((const float *)lu->a.data,
                                                    n, odd);
    LAUNCHED(d);
    TRY(gpu_cuda_wait(d));
    lu->zero = *odd ? 0 : lu->zero;
    return GPU_OK;
}

gpu_status gpu_cuda_begin_lu(cuda_device *d, const gpu_kernel *rung,
                             const gpu_view *a, cuda_lu *lu)
{
    gpu_status status = GPU_OK;
    *lu = {*a, NULL, NULL, 0};
    if (rung != &gpu_cuda_lu_cusolver)
        status = try_own(d, rung, lu);
    if (status == GPU_OK && lu->order == NULL)
        status = by_cusolver(d, lu);
    if (status == GPU_OK)
        status = gpu_cuda_look_at_diagonal(d, "lu", a, &lu->zero);
    if (status == GPU_OK && lu->zero > 0)
        status = doubt_zero(d, lu);
    if (status != GPU_OK)
        gpu_cuda_end_lu(d, lu);
    return status;
}

void gpu_cuda_end_lu(cuda_device *d, cuda_lu *lu)
{
    size_t k = (size_t)smaller(lu->a.rows, lu->a.cols);
    gpu_cuda_free(d, lu->pivots, k * sizeof *lu->pivots);
    gpu_cuda_free(d, lu->order, (size_t)lu->a.rows * sizeof *lu->order);
    lu->pivots = NULL;
    lu->order = NULL;
}

/* The exchanges, one after the other, as the order they lead to. */
static void follow_exchanges(const int64_t *pivots, int64_t count, int64_t rows,
                             int64_t *places)
{
    for (int64_t i = 0; i < rows; i++)
        places[i] = i;
    for (int64_t i = 0; i < count; i++) {
        int64_t other = pivots[i] - 1, place = places[i];
        if (other < i || other >= rows)
            continue; /* none, of what is no number */
        places[i] = places[other];
        places[other] = place;
    }
}

gpu_status gpu_cuda_read_places(cuda_device *d, const cuda_lu *lu,
                                int64_t *places)
{
    int64_t rows = lu->a.rows, k = smaller(rows, lu->a.cols);
    void *host = malloc((size_t)rows * sizeof *places + 1);
    if (host == NULL)
        return FAIL(GPU_MEMORY, "lu: out of host memory");
    gpu_status status =
        lu->order ? gpu_cuda_download(d, host, lu->order,
                                      (size_t)rows * sizeof *lu->order)
                  : gpu_cuda_download(d, host, lu->pivots,
                                      (size_t)k * sizeof *lu->pivots);
    if (status == GPU_OK && lu->order)
        for (int64_t i = 0; i < rows; i++)
            places[i] = ((int *)host)[i];
    else if (status == GPU_OK)
        follow_exchanges((int64_t *)host, k, rows, places);
    free(host);
    return status;
}

gpu_status gpu_cuda_factor_lu(cuda_device *d, gpu_factoring *f)
{
    cuda_lu lu;
    TRY(gpu_cuda_begin_lu(d, f->rung, &f->a, &lu));
    f->trouble = lu.zero;
    gpu_status status = gpu_cuda_read_places(d, &lu, f->places);
    gpu_cuda_end_lu(d, &lu);
    return status;
}

/* to's row i is from's row order[i]; or from's row i goes to order[i]. Both
 * n x cols, column by column. */
template <class T>
__global__ void order_rows(const T *from, T *to, const int *order, int64_t n,
                           int64_t cols, int is_back)
{
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int64_t other = order[i];
    for (int64_t j = blockIdx.y; j < cols; j += gridDim.y)
        if (is_back)
            to[other + j * n] = from[i + j * n];
        else
            to[i + j * n] = from[other + j * n];
}

/* b, without gaps, comes into the factors' order, or back. */
static gpu_status order_b(cuda_device *d, const cuda_lu *lu, const gpu_view *b,
                          int is_back)
{
    size_t bytes = gpu_cuda_view_bytes(b);
    void *held;
    dim3 grid((unsigned)ceil_div(b->rows, 256),
              (unsigned)smaller(b->cols, 65535));
    TRY(gpu_cuda_take_room(d, bytes, &held));
    gpu_status status =
        gpu_cuda_check(d, cudaMemcpyAsync(held, b->data, bytes,
                                          cudaMemcpyDeviceToDevice, d->stream));
    if (status == GPU_OK && b->dtype == GPU_F64)
        order_rows<<<grid, 256, 0, d->stream>>>((double *)held,
                                                (double *)b->data, lu->order,
                                                b->rows, b->cols, is_back);
    else if (status == GPU_OK)
        order_rows<<<grid, 256, 0, d->stream>>>((float *)held, (float *)b->data,
                                                lu->order, b->rows, b->cols,
                                                is_back);
    if (status == GPU_OK)
        status = gpu_cuda_check(d, cudaGetLastError());
    gpu_cuda_free(d, held, bytes);
    return status;
}

/* b becomes L^-1 b or U^-1 b, or that of their transposes. */
static gpu_status undo(cuda_device *d, const gpu_view *a, int is_lower,
                       int is_turned, const gpu_view *b)
{
    gpu_factoring how = {};
    how.is_lower = how.is_unit = is_lower;
    how.is_turned = is_turned;
    return gpu_cuda_solve_triangle(d, &how, a, b);
}

gpu_status gpu_cuda_solve_lu(cuda_device *d, const cuda_lu *lu, int turned,
                             const gpu_view *b)
{
    if (lu->order == NULL)
        return gpu_cuda_getrs(d, &lu->a, lu->pivots, turned, b);
    if (!turned)
        TRY(order_b(d, lu, b, 0));
    TRY(undo(d, &lu->a, !turned, turned, b));
    TRY(undo(d, &lu->a, turned, turned, b));
    return turned ? order_b(d, lu, b, 1) : GPU_OK;
}

/* The transpose of what lies row by row. */
static gpu_view as_columns(const gpu_view *rows)
{
    return {rows->data, rows->dtype, rows->cols, rows->rows, 1, rows->cols};
}

/* --- how large the inverse is --------------------------------------------- */

typedef struct inverting {
    cuda_device *d;
    const gpu_view *lu; /* column by column: A^T without its exchanges */
    void *host, *there; /* n of its type */
} inverting;

/* A gpu_invert, but for the exchanges: A^-1 is L^-T U^-T. */
static gpu_status invert(void *context, double *x, double start, int turned)
{
    const inverting *v = (const inverting *)context;
    int64_t n = v->lu->rows;
    int is_f64 = v->lu->dtype == GPU_F64;
    size_t bytes = (size_t)n * dtype_bytes(v->lu->dtype);
    for (int64_t i = 0; i < n; i++)
        if (is_f64)
            ((double *)v->host)[i] = x[i] * start;
        else
            ((float *)v->host)[i] = (float)(x[i] * start);
    TRY(gpu_cuda_upload(v->d, v->there, v->host, bytes));
    gpu_view b = {v->there, v->lu->dtype, n, 1, 1, n};
    TRY(undo(v->d, v->lu, turned, !turned, &b));
    TRY(undo(v->d, v->lu, !turned, !turned, &b));
    TRY(gpu_cuda_download(v->d, v->host, v->there, bytes));
    for (int64_t i = 0; i < n; i++)
        x[i] = is_f64 ? ((double *)v->host)[i] : (double)((float *)v->host)[i];
    return GPU_OK;
}

static gpu_status measure(cuda_device *d, const cuda_lu *lu,
                          gpu_inverse_size *out)
{
    size_t n = (size_t)lu->a.rows, bytes = n * dtype_bytes(lu->a.dtype);
    inverting v = {d, &lu->a, NULL, NULL};
    double *room = (double *)malloc(3 * n * sizeof *room);
    if (room == NULL)
        return FAIL(GPU_MEMORY, "rcond: out of host memory");
    v.host = room + 2 * n;
    gpu_status status = gpu_cuda_take_room(d, bytes, &v.there);
    if (status == GPU_OK) {
        status = gpu_measure_inverse((int64_t)n, room, invert, &v, out);
        gpu_cuda_free(d, v.there, bytes);
    }
    free(room);
    return status;
}

/* --- the entries ---------------------------------------------------------- */

/* b, row by row: X of A X = b. */
static gpu_status substitute(cuda_device *d, const cuda_lu *lu,
                             const gpu_view *b)
{
    gpu_view x = {b->data, b->dtype, b->rows, b->cols, 1, b->rows};
    if (b->cols == 1)
        return gpu_cuda_solve_lu(d, lu, 1, &x);
    TRY(gpu_cuda_take_room(d, gpu_cuda_view_bytes(b), &x.data));
    gpu_status status = gpu_cuda_copy_view(d, b, &x);
    if (status == GPU_OK)
        status = gpu_cuda_solve_lu(d, lu, 1, &x);
    if (status == GPU_OK)
        status = gpu_cuda_copy_view(d, &x, b);
    gpu_cuda_free(d, x.data, gpu_cuda_view_bytes(b));
    return status;
}

/* Where f32 factors are so much faster that refinement pays. */
static int is_worth_refining(const cuda_device *d, const gpu_view *a,
                             const gpu_view *b, const gpu_inverse_size *inverse)
{
    return a->rows >= LEAST_REFINED &&
           (inverse == NULL || !inverse->is_direct) &&
           gpu_cuda_can_refine(d, a, b);
}

gpu_status gpu_cuda_solve(void *device, const gpu_view *a, const gpu_view *b,
                          gpu_inverse_size *inverse)
{
    ENTER(d, device);
    gpu_view turned = as_columns(a);
    cuda_lu lu;
    if (inverse != NULL)
        inverse->steps = 0;
    if (a->rows == 0 || b->cols == 0)
        return GPU_OK;
    if (is_worth_refining(d, a, b, inverse)) {
        gpu_status refined = gpu_cuda_solve_by_refinement(d, a, b, inverse);
        if (refined != GPU_UNSUPPORTED && refined != GPU_MEMORY)
            return refined;
        if (inverse != NULL)
            inverse->steps = 0;
    }
    TRY(gpu_cuda_begin_lu(d, choose_lu(d, &turned), &turned, &lu));
    gpu_status status = GPU_OK;
    if (lu.zero > 0)
        status = FAIL(GPU_SINGULAR,
                      "solve: the matrix is singular (pivot %lld is zero)",
                      (long long)lu.zero);
    if (status == GPU_OK)
        status = substitute(d, &lu, b);
    if (status == GPU_OK && inverse != NULL)
        status = measure(d, &lu, inverse);
    if (status == GPU_OK)
        status = gpu_cuda_wait(d);
    gpu_cuda_end_lu(d, &lu);
    return status;
}

gpu_status gpu_cuda_inverse_norm(void *device, const gpu_view *a,
                                 gpu_inverse_size *inverse)
{
    ENTER(d, device);
    gpu_view turned = as_columns(a);
    cuda_lu lu;
    inverse->norm_1 = inverse->norm_2 = (double)INFINITY;
    TRY(gpu_cuda_begin_lu(d, choose_lu(d, &turned), &turned, &lu));
    gpu_status status = GPU_OK;
    if (lu.zero == 0)
        status = measure(d, &lu, inverse);
    gpu_cuda_end_lu(d, &lu);
    return status;
}

/* The diagonal of the factors, as f64, and their order. */
static gpu_status read_diagonal(cuda_device *d, const cuda_lu *lu,
                                double *diagonal, int64_t *places)
{
    int64_t n = lu->a.rows;
    gpu_view from = {lu->a.data, lu->a.dtype, n, 1, n + 1, 1};
    gpu_view to = {NULL, GPU_F64, n, 1, 1, 1};
    TRY(gpu_cuda_take_room(d, gpu_cuda_view_bytes(&to), &to.data));
    gpu_status status = gpu_cuda_copy_view(d, &from, &to);
    if (status == GPU_OK)
        status =
            gpu_cuda_download(d, diagonal, to.data, gpu_cuda_view_bytes(&to));
    gpu_cuda_free(d, to.data, gpu_cuda_view_bytes(&to));
    return status == GPU_OK ? gpu_cuda_read_places(d, lu, places) : status;
}

/* So that nothing overflows on the way. Uses places up. */
static double product_of(const double *diagonal, int64_t *places, int64_t n)
{
    double mantissa = 1;
    int64_t exponent = 0, most = 1 << 14;
    for (int64_t i = 0; i < n; i++) {
        int more = 0, carried = 0;
        mantissa = frexp(mantissa * frexp(diagonal[i], &more), &carried);
        exponent += more + carried;
        if (mantissa == 0 || !isfinite(mantissa))
            exponent = 0;
        while (places[i] != i) { /* an exchange each */
            int64_t to = places[i];
            places[i] = places[to];
            places[to] = to;
            mantissa = -mantissa;
        }
    }
    return ldexp(mantissa, (int)larger(-most, smaller(exponent, most)));
}

gpu_status gpu_cuda_determinant(void *device, const gpu_view *a, double *out)
{
    ENTER(d, device);
    gpu_view turned = as_columns(a);
    int64_t n = a->rows;
    cuda_lu lu;
    *out = 1;
    if (n == 0)
        return GPU_OK;
    double *diagonal = (double *)malloc((size_t)n * sizeof *diagonal);
    int64_t *places = (int64_t *)malloc((size_t)n * sizeof *places);
    gpu_status status = GPU_OK;
    if (diagonal == NULL || places == NULL)
        status = FAIL(GPU_MEMORY, "det: out of host memory");
    if (status == GPU_OK)
        status = gpu_cuda_begin_lu(d, choose_lu(d, &turned), &turned, &lu);
    if (status == GPU_OK) {
        status = read_diagonal(d, &lu, diagonal, places);
        if (status == GPU_OK)
            *out = product_of(diagonal, places, n);
        gpu_cuda_end_lu(d, &lu);
    }
    free(diagonal);
    free(places);
    return status;
}
