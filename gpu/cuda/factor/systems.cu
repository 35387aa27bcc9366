/* Linear systems by LU: solve, determinant, how large the inverse is.
 *
 * What is factored is the transpose of the row-major matrix A, as LAPACK sees
 * it: A^T = P L U. So A x = b is a turned solve, without a copy of A; only a b
 * of several columns, which lies row by row, is turned and turned back. */
#include <math.h>
#include <stdlib.h>
#include "factor.h"

extern "C" {
#include "inverse_size.h"
}

static size_t bytes_of(const gpu_view *v)
{
    return (size_t)(v->rows * v->cols) * dtype_bytes(v->dtype);
}

/* The transpose of what lies row by row. */
static gpu_view as_columns(const gpu_view *rows)
{
    return {rows->data, rows->dtype, rows->cols, rows->rows, 1, rows->cols};
}

/* --- how large the inverse is ------------------------------------------------
 */

typedef struct inverting {
    cuda_device *d;
    const gpu_view *lu; /* column by column: A^T without its exchanges */
    void *host, *there; /* n of its type */
} inverting;

static gpu_status undo(const inverting *v, int is_lower, int is_turned)
{
    gpu_factoring how = {};
    gpu_view x = {v->there, v->lu->dtype, v->lu->rows, 1, 1, v->lu->rows};
    how.is_lower = how.is_unit = is_lower;
    how.is_turned = is_turned;
    return gpu_cuda_solve_triangle(v->d, &how, v->lu, &x);
}

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
    TRY(undo(v, turned, !turned));
    TRY(undo(v, !turned, !turned));
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

/* --- the entries -------------------------------------------------------------
 */

/* b, row by row: X of A X = b. */
static gpu_status substitute(cuda_device *d, const cuda_lu *lu,
                             const gpu_view *b)
{
    gpu_view x = {b->data, b->dtype, b->rows, b->cols, 1, b->rows};
    if (b->cols == 1)
        return gpu_cuda_solve_lu(d, lu, 1, &x);
    TRY(gpu_cuda_take_room(d, bytes_of(b), &x.data));
    gpu_status status = gpu_cuda_copy_view(d, b, &x);
    if (status == GPU_OK)
        status = gpu_cuda_solve_lu(d, lu, 1, &x);
    if (status == GPU_OK)
        status = gpu_cuda_copy_view(d, &x, b);
    gpu_cuda_free(d, x.data, bytes_of(b));
    return status;
}

gpu_status gpu_cuda_solve(void *device, const gpu_view *a, const gpu_view *b,
                          gpu_inverse_size *inverse)
{
    ENTER(d, device);
    gpu_view turned = as_columns(a);
    cuda_lu lu;
    if (a->rows == 0 || b->cols == 0)
        return GPU_OK;
    TRY(gpu_cuda_begin_lu(d, &turned, &lu));
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
    TRY(gpu_cuda_begin_lu(d, &turned, &lu));
    gpu_status status = GPU_OK;
    if (lu.zero == 0)
        status = measure(d, &lu, inverse);
    gpu_cuda_end_lu(d, &lu);
    return status;
}

/* The diagonal of factors and the exchanges, which are read and multiplied so
 * that nothing overflows on the way. */
static gpu_status read_diagonal(cuda_device *d, const cuda_lu *lu,
                                double *diagonal, int64_t *pivots)
{
    int64_t n = lu->a.rows;
    gpu_view from = {lu->a.data, lu->a.dtype, n, 1, n + 1, 1};
    gpu_view to = {NULL, GPU_F64, n, 1, 1, 1};
    TRY(gpu_cuda_take_room(d, bytes_of(&to), &to.data));
    gpu_status status = gpu_cuda_copy_view(d, &from, &to);
    if (status == GPU_OK)
        status = gpu_cuda_download(d, diagonal, to.data, bytes_of(&to));
    gpu_cuda_free(d, to.data, bytes_of(&to));
    if (status == GPU_OK)
        status = gpu_cuda_download(d, pivots, lu->pivots, lu->bytes);
    return status;
}

static double product_of(const double *diagonal, const int64_t *pivots,
                         int64_t n)
{
    double mantissa = 1;
    int64_t exponent = 0;
    for (int64_t i = 0; i < n; i++) {
        int more = 0, carried = 0;
        mantissa = frexp(mantissa * frexp(diagonal[i], &more), &carried);
        exponent += more + carried;
        if (mantissa == 0 || !isfinite(mantissa))
            exponent = 0;
        if (pivots[i] != i + 1)
            mantissa = -mantissa;
    }
    int64_t most = 1 << 14;
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
    int64_t *pivots = (int64_t *)malloc((size_t)n * sizeof *pivots);
    gpu_status status = GPU_OK;
    if (diagonal == NULL || pivots == NULL)
        status = FAIL(GPU_MEMORY, "det: out of host memory");
    if (status == GPU_OK)
        status = gpu_cuda_begin_lu(d, &turned, &lu);
    if (status == GPU_OK) {
        status = read_diagonal(d, &lu, diagonal, pivots);
        if (status == GPU_OK)
            *out = product_of(diagonal, pivots, n);
        gpu_cuda_end_lu(d, &lu);
    }
    free(diagonal);
    free(pivots);
    return status;
}
