/* LU factorization with partial pivoting, and what follows from it, in blocks
 * small enough for an interrupt to be answered between two of them: LAPACK
 * factors a panel, BLAS does the rest. Source: Golub and Van Loan, Matrix
 * Computations, 4th edition, 3.4.
 *
 * A row-major matrix A is, to LAPACK, its transpose; that is factored, as
 * P L U, so A = U' L' P'. In A's own layout U' is the lower triangle, L' the
 * upper one with ones on its diagonal, and LAPACK's rows are columns. */
#include "blas.h"
#include "cpu.h"

enum {
    PANEL = 192,
    NARROW = 128, /* panel of a matrix so large that a panel takes long: */
    LARGE = 16384 /* from this order on */
};

/* Multiplications between two looks at the interrupt flag. */
static const double STEPS = 1e9;

static int64_t panel_of(int64_t n)
{
    return n >= LARGE ? NARROW : PANEL;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- pieces --------------------------------------------------------------- */

/* c -= a b */
static gpu_status subtract_product(gpu_view a, gpu_view b, gpu_view c)
{
    gpu_gemm p = {.a = a, .b = b, .c = c, .alpha = -1, .beta = 1};
    if (c.rows == 0 || c.cols == 0 || a.cols == 0)
        return GPU_OK;
    return gpu_cpu_matmul_openblas.matmul(NULL, &p);
}

/* A triangle of a square block, and on which side of x it stands. */
typedef struct triangle {
    CBLAS_SIDE side;
    CBLAS_UPLO half;
    CBLAS_DIAG diagonal;
} triangle;

static void call_trsm(triangle t, const gpu_view *block, const gpu_view *x)
{
    int m = (int)x->rows, n = (int)x->cols;
    int ld = (int)block->row_stride, ldx = (int)x->row_stride;
    if (x->dtype == GPU_F64)
        gpu_cpu_blas.dtrsm(CblasRowMajor, t.side, t.half, CblasNoTrans,
                           t.diagonal, m, n, 1, block->data, ld, x->data, ldx);
    else
        gpu_cpu_blas.strsm(CblasRowMajor, t.side, t.half, CblasNoTrans,
                           t.diagonal, m, n, 1, block->data, ld, x->data, ldx);
}

/* x becomes the solution of block x = x, or of x block = x. */
static gpu_status solve_triangle(triangle t, gpu_view block, gpu_view x)
{
    double step = (double)block.rows * (double)block.rows;
    int by_rows = t.side == CblasRight;
    int64_t count = by_rows ? x.rows : x.cols, most = (int64_t)(STEPS / step);
    for (int64_t i = 0; i < count; i += most) {
        int64_t n = smaller(most, count - i);
        gpu_view part = by_rows ? gpu_cpu_part(&x, i, 0, n, x.cols)
                                : gpu_cpu_part(&x, 0, i, x.rows, n);
        if (gpu_cpu_interrupted())
            return gpu_cpu_stop(GPU_INTERRUPTED);
        call_trsm(t, &block, &part);
    }
    return GPU_OK;
}

/* --- factoring ------------------------------------------------------------ */

typedef struct factoring {
    gpu_view a;
    int *pivots;         /* from 1, as LAPACK has them */
    int64_t first, last; /* the panel's rows of a */
} factoring;

/* Factors the panel. Returns LAPACK's info: 0, or the first pivot in it that
 * is zero. */
static int factor_panel(const factoring *f)
{
    int64_t at = f->first, n = f->a.rows;
    gpu_view panel = gpu_cpu_part(&f->a, at, at, f->last - at, n - at);
    int rows = (int)panel.cols, columns = (int)panel.rows, ld = (int)n, info;
    if (panel.dtype == GPU_F64)
        gpu_cpu_blas.dgetrf(&rows, &columns, panel.data, &ld, f->pivots + at,
                            &info);
    else
        gpu_cpu_blas.sgetrf(&rows, &columns, panel.data, &ld, f->pivots + at,
                            &info);
    for (int64_t i = at; i < f->last; i++)
        f->pivots[i] += (int)at;
    return info;
}

#define SWAP(type)                                     \
    {                                                  \
        type *x = row.data;                            \
        for (int64_t k = f->first; k < f->last; k++) { \
            type held = x[k];                          \
            x[k] = x[f->pivots[k] - 1];                \
            x[f->pivots[k] - 1] = held;                \
        }                                              \
    }

/* The panel's exchanges, in rows of a that are not in it. */
static gpu_status exchange(void *context, int64_t from, int64_t to)
{
    const factoring *f = context;
    for (int64_t i = from; i < to; i++) {
        gpu_view row = gpu_cpu_part(&f->a, i, 0, 1, f->a.cols);
        if (i >= f->first && i < f->last)
            continue;
        if (row.dtype == GPU_F64)
            SWAP(double)
        else
            SWAP(float)
    }
    return GPU_OK;
}

/* What is right of and below the panel's square. */
static gpu_status update(const factoring *f)
{
    static const triangle upper = {CblasRight, CblasUpper, CblasUnit};
    int64_t at = f->first, n = f->last - at, left = f->a.rows - f->last;
    gpu_view square = gpu_cpu_part(&f->a, at, at, n, n);
    gpu_view right = gpu_cpu_part(&f->a, at, f->last, n, left);
    gpu_view below = gpu_cpu_part(&f->a, f->last, at, left, n);
    gpu_view rest = gpu_cpu_part(&f->a, f->last, f->last, left, left);
    if (left == 0)
        return GPU_OK;
    gpu_status status = solve_triangle(upper, square, below);
    if (status == GPU_OK)
        status = subtract_product(below, right, rest);
    return status;
}

gpu_status gpu_cpu_factor(const gpu_view *a, int *pivots, int *zero)
{
    int64_t n = a->rows, step = panel_of(n);
    factoring f = {.a = *a, .pivots = pivots};
    gpu_status status = GPU_OK;
    *zero = 0;
    for (int64_t at = 0; at < n && status == GPU_OK; at += step) {
        f.first = at;
        f.last = smaller(at + step, n);
        int info = factor_panel(&f);
        if (info > 0 && *zero == 0)
            *zero = (int)at + info;
        int64_t done = f.last - at, left = n - f.last;
        status = gpu_cpu_parallel(n, n * done, exchange, &f);
        if (status == GPU_OK)
            status = update(&f);
        gpu_cpu_advance(done * (left * left + left * done + done * done / 3));
    }
    return status;
}

/* --- solving -------------------------------------------------------------- */

/* U' y = b, from the top. */
static gpu_status go_down(const gpu_view *a, const gpu_view *b)
{
    static const triangle lower = {CblasLeft, CblasLower, CblasNonUnit};
    int64_t n = a->rows, step = panel_of(n);
    gpu_status status = GPU_OK;
    for (int64_t at = 0; at < n && status == GPU_OK; at += step) {
        int64_t rows = smaller(step, n - at);
        gpu_view x = gpu_cpu_part(b, at, 0, rows, b->cols);
        status = subtract_product(gpu_cpu_part(a, at, 0, rows, at),
                                  gpu_cpu_part(b, 0, 0, at, b->cols), x);
        if (status == GPU_OK)
            status =
                solve_triangle(lower, gpu_cpu_part(a, at, at, rows, rows), x);
        gpu_cpu_advance(rows * (at + rows / 2) * b->cols);
    }
    return status;
}

/* L' z = y, from the bottom. */
static gpu_status go_up(const gpu_view *a, const gpu_view *b)
{
    static const triangle upper = {CblasLeft, CblasUpper, CblasUnit};
    int64_t n = a->rows, step = panel_of(n);
    gpu_status status = GPU_OK;
    for (int64_t end = n; end > 0 && status == GPU_OK;) {
        int64_t at = (end - 1) / step * step, rows = end - at;
        gpu_view x = gpu_cpu_part(b, at, 0, rows, b->cols);
        status = subtract_product(gpu_cpu_part(a, at, end, rows, n - end),
                                  gpu_cpu_part(b, end, 0, n - end, b->cols), x);
        if (status == GPU_OK)
            status =
                solve_triangle(upper, gpu_cpu_part(a, at, at, rows, rows), x);
        gpu_cpu_advance(rows * (n - end + rows / 2) * b->cols);
        end = at;
    }
    return status;
}

typedef struct permuting {
    const gpu_view *b;
    const int *pivots;
} permuting;

#define EXCHANGE(type)                                         \
    for (int64_t j = from; j < to; j++) {                      \
        type *x = (type *)b->data + i * b->row_stride + j;     \
        type *y = (type *)b->data + other * b->row_stride + j; \
        type held = *x;                                        \
        *x = *y;                                               \
        *y = held;                                             \
    }

/* The exchanges, last first, in columns from .. to - 1 of b. */
static gpu_status permute(void *context, int64_t from, int64_t to)
{
    const permuting *p = context;
    const gpu_view *b = p->b;
    for (int64_t i = b->rows - 1; i >= 0; i--) {
        int64_t other = p->pivots[i] - 1;
        if (other == i)
            continue;
        if (b->dtype == GPU_F64)
            EXCHANGE(double)
        else
            EXCHANGE(float)
    }
    return GPU_OK;
}

gpu_status gpu_cpu_substitute(const gpu_view *a, const int *pivots,
                              const gpu_view *b)
{
    permuting p = {b, pivots};
    gpu_status status = go_down(a, b);
    if (status == GPU_OK)
        status = go_up(a, b);
    if (status == GPU_OK)
        status = gpu_cpu_parallel(b->cols, b->rows * b->cols, permute, &p);
    return status;
}
