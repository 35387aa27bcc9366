/* Linear systems: solving, the determinant, how large the inverse is, by LU
 * factorization with partial pivoting. It goes by halves, down to blocks of a
 * few rows, so that nearly all of the work is products of matrices, which use
 * all cores and answer an interrupt. Source: Toledo, Locality of reference in
 * LU decomposition with partial pivoting, 1997.
 *
 * What is factored is the transpose of the row-major matrix A, as LAPACK would
 * see it: A^T = P L U, so A = U' L' P'. In A's own layout U' is the lower
 * triangle, L' the upper one with ones on its diagonal, and pivots exchange
 * columns.
 *
 * Loops divide by pivots: their reciprocals would overflow below 2.9e-39 (f32)
 * or 5.6e-309 (f64), and lose bits of the largest. */
#include <math.h>
#include <string.h>
#include "cpu.h"
#include "inverse_size.h"
#include "vector.h"

enum {
    PANEL = 192, /* rows that are factored before the rest hears of it */
    BLOCK = GPU_CPU_CORNER, /* rows and columns from which halves are made */
    STRIP = 64, /* rows or columns of x that a thread takes at a time */
    FEW = 16    /* elements for which loops are as fast as calls */
};

/* Of n, more than a block, the first half in whole blocks. */
static int64_t half_of(int64_t n)
{
    return gpu_cpu_pieces(n / 2, BLOCK) * BLOCK;
}

gpu_status gpu_cpu_subtract_product(gpu_view a, gpu_view b, gpu_view c)
{
    gpu_gemm p = {.a = a, .b = b, .c = c, .alpha = -1, .beta = 1};
    gpu_status status = gpu_cpu_matmul_packed.matmul(NULL, &p);
    gpu_cpu_advance(c.rows * c.cols * a.cols);
    return status;
}

/* --- triangles ------------------------------------------------------------ */

typedef gpu_cpu_triangle triangle;

static triangle part_of(const triangle *t, int64_t at, int64_t n)
{
    triangle part = *t;
    part.block = gpu_cpu_part(&t->block, at, at, n, n);
    return part;
}

typedef struct solving {
    const triangle *t;
    const gpu_view *x;
} solving;

/* A factor of zero takes nothing away, not even from Inf. */
#define DIVIDE_OUT(type)                                                 \
    {                                                                    \
        const type *a = block->data;                                     \
        for (int64_t done = 0; done < n; done++) {                       \
            int64_t i = down ? done : n - 1 - done;                      \
            type *to = (type *)x->data + i * x->row_stride;              \
            type pivot = a[i * (block->row_stride + block->col_stride)]; \
            for (int64_t r = 0; r < done; r++) {                         \
                int64_t k = down ? r : n - 1 - r;                        \
                const type *row = (type *)x->data + k * x->row_stride;   \
                type factor =                                            \
                    a[i * block->row_stride + k * block->col_stride];    \
                if (factor != 0 && x->cols > FEW)                        \
                    v->subtract_row[x->dtype](to, row, factor, cols);    \
                else if (factor != 0)                                    \
                    for (size_t j = 0; j < cols; j++)                    \
                        to[j] -= factor * row[j];                        \
            }                                                            \
            if (divides)                                                 \
                v->divide_row[x->dtype](to, pivot, cols);                \
        }                                                                \
    }

/* block x = x in STRIP columns of x, first .. last - 1. */
static gpu_status divide_out(void *context, int64_t first, int64_t last)
{
    const solving *s = context;
    const gpu_view *block = &s->t->block;
    int64_t n = block->rows, from = first * STRIP;
    int64_t end = gpu_cpu_smaller(last * STRIP, s->x->cols);
    gpu_view part = gpu_cpu_part(s->x, 0, from, n, end - from), *x = &part;
    const gpu_cpu_vector *v = gpu_cpu_vectors;
    int down = s->t->is_lower, divides = !s->t->is_unit;
    size_t cols = (size_t)x->cols;
    if (x->dtype == GPU_F64)
        DIVIDE_OUT(double)
    else
        DIVIDE_OUT(float)
    return GPU_OK;
}

/* Of the blocks alone; with their x. */
static gpu_status solve_block(const triangle *t, const gpu_view *x)
{
    solving s = {t, x};
    int64_t n = t->block.rows, products = n * n / 2 * x->cols;
    gpu_status status = gpu_cpu_parallel(gpu_cpu_pieces(x->cols, STRIP),
                                         products, divide_out, &s);
    gpu_cpu_advance(products);
    return status;
}

gpu_status gpu_cpu_solve_triangle(const triangle *t, gpu_view x)
{
    int64_t n = t->block.rows, half = half_of(n), rest = n - half;
    if (n <= BLOCK)
        return solve_block(t, &x);
    triangle top = part_of(t, 0, half), bottom = part_of(t, half, rest);
    gpu_view above = gpu_cpu_part(&x, 0, 0, half, x.cols);
    gpu_view below = gpu_cpu_part(&x, half, 0, rest, x.cols);
    gpu_view corner = t->is_lower
                          ? gpu_cpu_part(&t->block, half, 0, rest, half)
                          : gpu_cpu_part(&t->block, 0, half, half, rest);
    gpu_status status = t->is_lower ? gpu_cpu_solve_triangle(&top, above)
                                    : gpu_cpu_solve_triangle(&bottom, below);
    if (status == GPU_OK)
        status = t->is_lower ? gpu_cpu_subtract_product(corner, above, below)
                             : gpu_cpu_subtract_product(corner, below, above);
    if (status == GPU_OK)
        status = t->is_lower ? gpu_cpu_solve_triangle(&bottom, below)
                             : gpu_cpu_solve_triangle(&top, above);
    return status;
}

/* x block = x in strips of x's rows; the block is an upper one with ones on
 * its diagonal. */
static gpu_status solve_rows(void *context, int64_t first, int64_t last)
{
    const solving *s = context;
    const gpu_view *block = &s->t->block;
    int64_t from = first * STRIP,
            end = gpu_cpu_smaller(last * STRIP, s->x->rows);
    gpu_view x = gpu_cpu_part(s->x, from, 0, end - from, block->rows);
    gpu_cpu_vectors->solve_rows[x.dtype](x.data, x.row_stride, x.rows,
                                         block->data, block->row_stride,
                                         block->rows);
    return GPU_OK;
}

/* x becomes the solution of x block = x, block being upper, with ones. */
static gpu_status solve_from_right(const triangle *t, gpu_view x)
{
    int64_t n = t->block.rows, half = half_of(n), rest = n - half;
    solving s = {t, &x};
    if (n <= BLOCK) {
        int64_t products = n * n / 2 * x.rows;
        gpu_cpu_advance(products);
        return gpu_cpu_parallel(gpu_cpu_pieces(x.rows, STRIP), products,
                                solve_rows, &s);
    }
    triangle top = part_of(t, 0, half), bottom = part_of(t, half, rest);
    gpu_view left = gpu_cpu_part(&x, 0, 0, x.rows, half);
    gpu_view right = gpu_cpu_part(&x, 0, half, x.rows, rest);
    gpu_status status = solve_from_right(&top, left);
    if (status == GPU_OK)
        status = gpu_cpu_subtract_product(
            left, gpu_cpu_part(&t->block, 0, half, half, rest), right);
    if (status == GPU_OK)
        status = solve_from_right(&bottom, right);
    return status;
}

/* --- factoring ------------------------------------------------------------ */

/* Rows first .. last - 1 of a, and the pivots that exchange columns there. */
typedef struct factoring {
    gpu_view a;
    int *pivots; /* from 1, as LAPACK has them */
    int *zero;   /* gets the first pivot that is, from 1 */
    int64_t first, last;
} factoring;

static factoring rows_of(const factoring *f, int64_t first, int64_t last)
{
    factoring part = *f;
    part.first = first;
    part.last = last;
    return part;
}

/* As LAPACK's getf2 does it, whose columns are rows here. */
#define FACTOR(type)                                                    \
    for (int64_t k = 0; k < panel.rows; k++) {                          \
        type *row = (type *)panel.data + k * ld, *behind = row + k + 1; \
        size_t left = (size_t)(panel.cols - k - 1);                     \
        int64_t best = k + (int64_t)v->farthest[t](row + k, left + 1);  \
        pivots[k] = (int)(f->first + best) + 1;                         \
        if (row[best] == 0) {                                           \
            if (*f->zero == 0)                                          \
                *f->zero = (int)(f->first + k) + 1;                     \
            continue;                                                   \
        }                                                               \
        for (int64_t i = 0; i < panel.rows; i++) {                      \
            type *x = (type *)panel.data + i * ld;                      \
            type held = x[k];                                           \
            x[k] = x[best];                                             \
            x[best] = held;                                             \
        }                                                               \
        v->divide_row[t](behind, row[k], left);                         \
        for (int64_t i = k + 1; i < panel.rows; i++) {                  \
            type *x = (type *)panel.data + i * ld + k;                  \
            if (left > FEW)                                             \
                v->subtract_row[t](x + 1, behind, x[0], left);          \
            else                                                        \
                for (size_t j = 0; j < left; j++)                       \
                    x[j + 1] -= x[0] * behind[j];                       \
        }                                                               \
    }

static void factor_block(const factoring *f)
{
    int64_t at = f->first, n = f->a.rows;
    gpu_view panel = gpu_cpu_part(&f->a, at, at, f->last - at, n - at);
    int64_t ld = panel.row_stride;
    int *pivots = f->pivots + at;
    const gpu_cpu_vector *v = gpu_cpu_vectors;
    gpu_dtype t = panel.dtype;
    if (panel.dtype == GPU_F64)
        FACTOR(double)
    else
        FACTOR(float)
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

/* The exchanges, in rows of a that were not factored with them. */
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

/* What the rows factored mean for those up to `end`, whose columns have been
 * exchanged. */
static gpu_status update(const factoring *f, int64_t end)
{
    int64_t at = f->first, n = f->last - at, rows = end - f->last;
    int64_t left = f->a.cols - f->last;
    triangle square = {0, 1, gpu_cpu_part(&f->a, at, at, n, n)};
    gpu_view right = gpu_cpu_part(&f->a, at, f->last, n, left);
    gpu_view below = gpu_cpu_part(&f->a, f->last, at, rows, n);
    gpu_view rest = gpu_cpu_part(&f->a, f->last, f->last, rows, left);
    if (rows == 0)
        return GPU_OK;
    gpu_status status = solve_from_right(&square, below);
    if (status == GPU_OK)
        status = gpu_cpu_subtract_product(below, right, rest);
    return status;
}

static gpu_status factor_panel(const factoring *f)
{
    int64_t n = f->last - f->first, middle = f->first + half_of(n);
    if (gpu_cpu_interrupted())
        return gpu_cpu_stop(GPU_INTERRUPTED);
    if (n <= BLOCK) {
        factor_block(f);
        gpu_cpu_advance(n * n / 2 * (f->a.cols - f->first));
        return GPU_OK;
    }
    factoring top = rows_of(f, f->first, middle);
    factoring bottom = rows_of(f, middle, f->last);
    gpu_status status = factor_panel(&top);
    if (status == GPU_OK)
        status = exchange(&top, middle, f->last);
    if (status == GPU_OK)
        status = update(&top, f->last);
    if (status == GPU_OK)
        status = factor_panel(&bottom);
    if (status == GPU_OK)
        status = exchange(&bottom, f->first, middle);
    return status;
}

/* Factors what LAPACK sees as columns in row-major a, n x n, in place. zero
 * gets the number of the first pivot that is zero, or 0. */
static gpu_status factor(const gpu_view *a, int *pivots, int *zero)
{
    int64_t n = a->rows;
    factoring f = {.a = *a, .pivots = pivots, .zero = zero};
    gpu_status status = GPU_OK;
    *zero = 0;
    for (int64_t at = 0; at < n && status == GPU_OK; at += PANEL) {
        f.first = at;
        f.last = gpu_cpu_smaller(at + PANEL, n);
        status = factor_panel(&f);
        if (status == GPU_OK)
            status = gpu_cpu_parallel(n, n * (f.last - at), exchange, &f);
        if (status == GPU_OK)
            status = update(&f, n);
    }
    return status;
}

/* --- solving -------------------------------------------------------------- */

/* b becomes the solution of a x = b but for the order of the rows of x, a being
 * factored; both contiguous. Turned: of the transposed a, but for the order of
 * the rows of b. */
static gpu_status undo_factors(const gpu_view *a, const gpu_view *b,
                               int is_turned)
{
    gpu_view first = is_turned ? gpu_cpu_turned(*a) : *a;
    triangle lower = {1, is_turned, first}, upper = {0, !is_turned, first};
    gpu_status status = gpu_cpu_solve_triangle(&lower, *b);
    if (status == GPU_OK)
        status = gpu_cpu_solve_triangle(&upper, *b);
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

/* The same with the rows of x in their order. */
static gpu_status substitute(const gpu_view *a, const int *pivots,
                             const gpu_view *b)
{
    permuting p = {b, pivots};
    gpu_status status = undo_factors(a, b, 0);
    if (status == GPU_OK)
        status = gpu_cpu_parallel(b->cols, b->rows * b->cols, permute, &p);
    return status;
}

/* --- how large the inverse is -----------------------------------------------
 * The factors lack LAPACK's exchanges, so what is measured is A^-1 with its
 * rows in another order, whose norms are the same. */

enum { SMALL_SYSTEM = 16 }; /* order up to which no memory is asked for */

typedef struct inverting {
    const gpu_view *factors;
    void *room; /* n of the factors' type */
} inverting;

/* A gpu_invert. */
static gpu_status invert(void *context, double *x, double start, int turned)
{
    const inverting *v = context;
    int64_t n = v->factors->rows;
    gpu_view b = {v->room, v->factors->dtype, n, 1, 1, 1};
    int is_f64 = b.dtype == GPU_F64;
    for (int64_t i = 0; i < n; i++)
        if (is_f64)
            ((double *)v->room)[i] = x[i] * start;
        else
            ((float *)v->room)[i] = (float)(x[i] * start);
    gpu_status status = undo_factors(v->factors, &b, turned);
    for (int64_t i = 0; i < n; i++)
        x[i] = is_f64 ? ((double *)v->room)[i] : ((float *)v->room)[i];
    return status;
}

/* The norms of the inverse, as backend.h has them. */
static gpu_status measure_inverse(const gpu_view *factors,
                                  gpu_inverse_size *out)
{
    size_t n = (size_t)factors->rows, bytes = 3 * n * sizeof(double);
    double few[3 * SMALL_SYSTEM];
    void *room = few;
    int is_small = n <= SMALL_SYSTEM;
    if (!is_small && gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    double *x = room;
    inverting v = {factors, x + 2 * n};
    gpu_status status = gpu_measure_inverse(factors->rows, x, invert, &v, out);
    if (!is_small)
        gpu_cpu_free(NULL, room, bytes);
    return status;
}

/* --- the entries ---------------------------------------------------------- */

enum { ESTIMATE = 2 }; /* right sides that the norm of the inverse costs */

/* A matrix that is being factored. */
typedef struct work {
    const gpu_view *a;
    int *pivots;
    int zero;    /* the first pivot that is, or 0 */
    int counted; /* progress */
} work;

static size_t pivot_bytes(const gpu_view *a)
{
    return (size_t)a->rows * sizeof(int);
}

static void end(work *w)
{
    gpu_cpu_end_stage(w->counted);
    gpu_cpu_free(NULL, w->pivots, pivot_bytes(w->a));
}

/* Factors a, which is not empty; `columns` will be solved for. To be ended
 * where it succeeds. */
static gpu_status begin(work *w, const gpu_view *a, int64_t columns)
{
    void *pivots;
    int64_t n = a->rows;
    if (gpu_cpu_alloc(NULL, pivot_bytes(a), &pivots) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    *w = (work){.a = a, .pivots = pivots};
    w->counted = gpu_cpu_begin_stage(n * n / 3 * n + n * n * columns);
    gpu_status status = factor(a, pivots, &w->zero);
    if (status != GPU_OK)
        end(w);
    return status;
}

gpu_status gpu_cpu_solve(void *device, const gpu_view *a, const gpu_view *b,
                         gpu_inverse_size *inverse)
{
    (void)device;
    work w;
    if (a->rows == 0 || b->cols == 0)
        return GPU_OK;
    gpu_status status = begin(&w, a, b->cols + (inverse ? ESTIMATE : 0));
    if (status != GPU_OK)
        return status;
    if (w.zero > 0)
        status = gpu_cpu_host->fail(
            GPU_SINGULAR, "solve: the matrix is singular (pivot %d is zero)",
            w.zero);
    if (status == GPU_OK)
        status = substitute(a, w.pivots, b);
    if (status == GPU_OK && inverse)
        status = measure_inverse(a, inverse);
    end(&w);
    return status;
}

static double diagonal_product(const gpu_view *a, const int *pivots)
{
    gpu_cpu_scaled product = {1, 0};
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t at = i * (a->rows + 1);
        gpu_cpu_scale(&product, a->dtype == GPU_F64
                                    ? ((const double *)a->data)[at]
                                    : ((const float *)a->data)[at]);
        if (pivots[i] != i + 1)
            product.mantissa = -product.mantissa;
    }
    return gpu_cpu_unscale(product);
}

gpu_status gpu_cpu_determinant(void *device, const gpu_view *a, double *out)
{
    (void)device;
    work w;
    *out = 1;
    if (a->rows == 0)
        return GPU_OK;
    gpu_status status = begin(&w, a, 0);
    if (status != GPU_OK)
        return status;
    *out = diagonal_product(a, w.pivots);
    end(&w);
    return GPU_OK;
}

gpu_status gpu_cpu_inverse_norm(void *device, const gpu_view *a,
                                gpu_inverse_size *inverse)
{
    (void)device;
    work w;
    inverse->norm_1 = inverse->norm_2 = INFINITY;
    gpu_status status = begin(&w, a, ESTIMATE);
    if (status != GPU_OK)
        return status;
    if (w.zero == 0)
        status = measure_inverse(a, inverse);
    end(&w);
    return status;
}
