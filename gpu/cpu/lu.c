/* LU factorization with partial pivoting, and what follows from it, in blocks
 * small enough for an interrupt to be answered between two of them: LAPACK
 * factors a panel, BLAS does the rest. Source: Golub and Van Loan, Matrix
 * Computations, 4th edition, 3.4.
 *
 * A row-major matrix A is, to LAPACK, its transpose; that is factored, as
 * P L U, so A = U' L' P'. In A's own layout U' is the lower triangle, L' the
 * upper one with ones on its diagonal, and LAPACK's rows are columns.
 *
 * BLAS and LAPACK multiply by the reciprocals of pivots. Those overflow for
 * pivots below 2.9e-39 (f32) or 5.6e-309 (f64), and lose bits for the largest.
 * Panels and triangles with such pivots, and small matrices, are worked out in
 * plain loops, which divide. */
#include <math.h>
#include <string.h>
#include "blas.h"
#include "cpu.h"

enum {
    PANEL = 192,
    NARROW = 128,  /* panel of a matrix so large that a panel takes long: */
    LARGE = 16384, /* from this order on */
    SMALL = GPU_CPU_SMALL_SYSTEM
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

/* Zero, Inf and NaN are not extreme: dividing by them gains nothing. */
static int is_extreme(gpu_dtype t, double pivot)
{
    double size = fabs(pivot), least = t == GPU_F64 ? 0x1p-1022 : 0x1p-126;
    return size != 0 && isfinite(size) && (size < least || size > 1 / least);
}

/* Has the block's diagonal a pivot for the plain loops? */
static int has_extremes(const gpu_view *block)
{
    int64_t step = block->row_stride + block->col_stride;
    int64_t n = smaller(block->rows, block->cols);
    for (int64_t i = 0; i < n; i++)
        if (is_extreme(block->dtype,
                       block->dtype == GPU_F64
                           ? ((const double *)block->data)[i * step]
                           : ((const float *)block->data)[i * step]))
            return 1;
    return 0;
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

static int is_turned(const gpu_view *block)
{
    return block->row_stride == 1;
}

static CBLAS_UPLO other_half(CBLAS_UPLO half)
{
    return half == CblasLower ? CblasUpper : CblasLower;
}

/* By BLAS: the block lies in rows, or is turned; x lies in rows. */
static void call_blas(triangle t, const gpu_view *block, const gpu_view *x)
{
    CBLAS_TRANSPOSE turned = is_turned(block) ? CblasTrans : CblasNoTrans;
    CBLAS_UPLO half = turned == CblasTrans ? other_half(t.half) : t.half;
    int m = (int)x->rows, n = (int)x->cols, ldx = (int)x->row_stride;
    int ld =
        (int)(turned == CblasTrans ? block->col_stride : block->row_stride);
    if (t.side == CblasLeft && n == 1 && x->dtype == GPU_F64)
        gpu_cpu_blas.dtrsv(CblasRowMajor, half, turned, t.diagonal, m,
                           block->data, ld, x->data, ldx);
    else if (t.side == CblasLeft && n == 1)
        gpu_cpu_blas.strsv(CblasRowMajor, half, turned, t.diagonal, m,
                           block->data, ld, x->data, ldx);
    else if (x->dtype == GPU_F64)
        gpu_cpu_blas.dtrsm(CblasRowMajor, t.side, half, turned, t.diagonal, m,
                           n, 1, block->data, ld, x->data, ldx);
    else
        gpu_cpu_blas.strsm(CblasRowMajor, t.side, half, turned, t.diagonal, m,
                           n, 1, block->data, ld, x->data, ldx);
}

/* A factor of zero takes nothing away, not even from Inf. */
#define DIVIDE_OUT(type)                                                 \
    {                                                                    \
        const type *a = block->data;                                     \
        for (int64_t s = 0; s < n; s++) {                                \
            int64_t i = down ? s : n - 1 - s;                            \
            type *to = (type *)x->data + i * x->row_stride;              \
            type pivot = a[i * (block->row_stride + block->col_stride)]; \
            for (int64_t r = 0; r < s; r++) {                            \
                int64_t k = down ? r : n - 1 - r;                        \
                const type *from = (type *)x->data + k * x->row_stride;  \
                type factor =                                            \
                    a[i * block->row_stride + k * block->col_stride];    \
                for (int64_t j = 0; factor != 0 && j < x->cols; j++)     \
                    to[j] -= factor * from[j];                           \
            }                                                            \
            for (int64_t j = 0; divides && j < x->cols; j++)             \
                to[j] /= pivot;                                          \
        }                                                                \
    }

/* By plain loops: block x = x. */
static void divide_out(triangle t, const gpu_view *block, const gpu_view *x)
{
    int64_t n = block->rows;
    int down = t.half == CblasLower, divides = t.diagonal == CblasNonUnit;
    if (x->dtype == GPU_F64)
        DIVIDE_OUT(double)
    else
        DIVIDE_OUT(float)
}

static int is_for_loops(triangle t, const gpu_view *block)
{
    return t.side == CblasLeft &&
           (block->rows <= SMALL ||
            (t.diagonal == CblasNonUnit && has_extremes(block)));
}

/* x becomes the solution of block x = x, or of x block = x. */
static gpu_status solve_triangle(triangle t, gpu_view block, gpu_view x)
{
    double step = (double)block.rows * (double)block.rows;
    int by_rows = t.side == CblasRight, loops = is_for_loops(t, &block);
    int64_t count = by_rows ? x.rows : x.cols, most = (int64_t)(STEPS / step);
    for (int64_t i = 0; i < count; i += most) {
        int64_t n = smaller(most, count - i);
        gpu_view part = by_rows ? gpu_cpu_part(&x, i, 0, n, x.cols)
                                : gpu_cpu_part(&x, 0, i, x.rows, n);
        if (gpu_cpu_interrupted())
            return gpu_cpu_stop(GPU_INTERRUPTED);
        (loops ? divide_out : call_blas)(t, &block, &part);
    }
    return GPU_OK;
}

/* --- factoring ------------------------------------------------------------ */

typedef struct factoring {
    gpu_view a;
    int *pivots;         /* from 1, as LAPACK has them */
    int64_t first, last; /* the panel's rows of a */
} factoring;

static gpu_view panel_view(const factoring *f)
{
    int64_t at = f->first, n = f->a.rows;
    return gpu_cpu_part(&f->a, at, at, f->last - at, n - at);
}

/* As LAPACK's getf2 does it, whose columns are rows here. */
#define FACTOR(type)                                          \
    for (int64_t k = 0; k < panel.rows; k++) {                \
        type *row = (type *)panel.data + k * ld;              \
        int64_t best = k;                                     \
        for (int64_t j = k + 1; j < panel.cols; j++)          \
            best = fabs(row[j]) > fabs(row[best]) ? j : best; \
        pivots[k] = (int)best + 1;                            \
        if (row[best] == 0) {                                 \
            zero = zero > 0 ? zero : (int)k + 1;              \
            continue;                                         \
        }                                                     \
        for (int64_t i = 0; i < panel.rows; i++) {            \
            type *x = (type *)panel.data + i * ld;            \
            type held = x[k];                                 \
            x[k] = x[best];                                   \
            x[best] = held;                                   \
        }                                                     \
        for (int64_t j = k + 1; j < panel.cols; j++)          \
            row[j] /= row[k];                                 \
        for (int64_t i = k + 1; i < panel.rows; i++) {        \
            type *x = (type *)panel.data + i * ld;            \
            type factor = x[k];                               \
            for (int64_t j = k + 1; j < panel.cols; j++)      \
                x[j] -= factor * row[j];                      \
        }                                                     \
    }

/* Like the next, by plain loops. */
static int factor_by_loops(gpu_view panel, int *pivots)
{
    int64_t ld = panel.row_stride;
    int zero = 0;
    if (panel.dtype == GPU_F64)
        FACTOR(double)
    else
        FACTOR(float)
    return zero;
}

/* Pivots count from the panel's first. Returns LAPACK's info: 0, or the first
 * pivot that is zero. */
static int factor_by_lapack(gpu_view panel, int *pivots)
{
    int rows = (int)panel.cols, columns = (int)panel.rows;
    int ld = (int)panel.row_stride, info;
    if (panel.dtype == GPU_F64)
        gpu_cpu_blas.dgetrf(&rows, &columns, panel.data, &ld, pivots, &info);
    else
        gpu_cpu_blas.sgetrf(&rows, &columns, panel.data, &ld, pivots, &info);
    return info;
}

static void copy_panel(const gpu_view *panel, char *room, int back)
{
    size_t bytes = (size_t)panel->cols * gpu_cpu_size(panel->dtype);
    for (int64_t i = 0; i < panel->rows; i++) {
        gpu_view row = gpu_cpu_part(panel, i, 0, 1, panel->cols);
        char *kept = room + (size_t)i * bytes;
        memcpy(back ? row.data : kept, back ? kept : row.data, bytes);
    }
}

/* By LAPACK, and again by loops where a pivot was none for it. */
static gpu_status factor_or_repeat(gpu_view panel, int *pivots, int *info)
{
    size_t bytes =
        (size_t)(panel.rows * panel.cols) * gpu_cpu_size(panel.dtype);
    void *room;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    copy_panel(&panel, room, 0);
    *info = factor_by_lapack(panel, pivots);
    if (has_extremes(&panel)) {
        copy_panel(&panel, room, 1);
        *info = factor_by_loops(panel, pivots);
    }
    gpu_cpu_free(NULL, room, bytes);
    return GPU_OK;
}

static gpu_status factor_panel(const factoring *f, int *info)
{
    int *pivots = f->pivots + f->first;
    gpu_status status = GPU_OK;
    if (f->a.rows <= SMALL)
        *info = factor_by_loops(panel_view(f), pivots);
    else
        status = factor_or_repeat(panel_view(f), pivots, info);
    for (int64_t i = f->first; i < f->last && status == GPU_OK; i++)
        f->pivots[i] += (int)f->first;
    return status;
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
        int info = 0;
        f.first = at;
        f.last = smaller(at + step, n);
        status = factor_panel(&f, &info);
        if (info > 0 && *zero == 0)
            *zero = (int)at + info;
        int64_t done = f.last - at, left = n - f.last;
        if (status == GPU_OK)
            status = gpu_cpu_parallel(n, n * done, exchange, &f);
        if (status == GPU_OK)
            status = update(&f);
        gpu_cpu_advance(done * (left * left + left * done + done * done / 3));
    }
    return status;
}

/* --- solving -------------------------------------------------------------- */

/* The lower triangle of a y = b, from the top. */
static gpu_status go_down(gpu_view a, const gpu_view *b, CBLAS_DIAG diagonal)
{
    triangle lower = {CblasLeft, CblasLower, diagonal};
    int64_t n = a.rows, step = panel_of(n);
    gpu_status status = GPU_OK;
    for (int64_t at = 0; at < n && status == GPU_OK; at += step) {
        int64_t rows = smaller(step, n - at);
        gpu_view x = gpu_cpu_part(b, at, 0, rows, b->cols);
        status = subtract_product(gpu_cpu_part(&a, at, 0, rows, at),
                                  gpu_cpu_part(b, 0, 0, at, b->cols), x);
        if (status == GPU_OK)
            status =
                solve_triangle(lower, gpu_cpu_part(&a, at, at, rows, rows), x);
        gpu_cpu_advance(rows * (at + rows / 2) * b->cols);
    }
    return status;
}

/* The upper triangle of a y = b, from the bottom. */
static gpu_status go_up(gpu_view a, const gpu_view *b, CBLAS_DIAG diagonal)
{
    triangle upper = {CblasLeft, CblasUpper, diagonal};
    int64_t n = a.rows, step = panel_of(n);
    gpu_status status = GPU_OK;
    for (int64_t end = n; end > 0 && status == GPU_OK;) {
        int64_t at = (end - 1) / step * step, rows = end - at;
        gpu_view x = gpu_cpu_part(b, at, 0, rows, b->cols);
        status = subtract_product(gpu_cpu_part(&a, at, end, rows, n - end),
                                  gpu_cpu_part(b, end, 0, n - end, b->cols), x);
        if (status == GPU_OK)
            status =
                solve_triangle(upper, gpu_cpu_part(&a, at, at, rows, rows), x);
        gpu_cpu_advance(rows * (n - end + rows / 2) * b->cols);
        end = at;
    }
    return status;
}

gpu_status gpu_cpu_undo_factors(const gpu_view *a, const gpu_view *b,
                                int turned)
{
    gpu_view first = turned ? gpu_cpu_turned(*a) : *a;
    gpu_status status = go_down(first, b, turned ? CblasUnit : CblasNonUnit);
    if (status == GPU_OK)
        status = go_up(first, b, turned ? CblasNonUnit : CblasUnit);
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
    gpu_status status = gpu_cpu_undo_factors(a, b, 0);
    if (status == GPU_OK)
        status = gpu_cpu_parallel(b->cols, b->rows * b->cols, permute, &p);
    return status;
}
