/* LU and Cholesky of complex matrices in blocks of columns, by the library's
 * routines: a block is factored by one core, then all take strips of what is
 * left, so that nearly all of the work is products of matrices on every core,
 * which answer an interrupt. Source: Golub and Van Loan, Matrix Computations,
 * 4th edition, 3.4.7 and 4.2.9. */
#include <string.h>
#include "complex_numbers.h"
#include "cpu.h"

enum {
    PANEL = 128, /* columns that are factored before the rest hears of it */
    STRIP = 64   /* columns, or rows, that a thread takes at a time */
};

/* Columns at .. at + n - 1 have been factored, with these exchanges of rows,
 * counted from 1 at row `at`. */
typedef struct block {
    const gpu_cpu_complex_blas *blas;
    gpu_factoring *f;
    int rows, at, n;
    int pivots[PANEL];
} block;

static void *element(const block *b, int64_t i, int64_t j)
{
    const gpu_view *a = &b->f->a;
    return (char *)a->data + (size_t)(i + j * a->rows) * gpu_cpu_size(a->dtype);
}

/* 1 and -1 of a type. */
static const void *number(gpu_dtype t, int is_negative)
{
    static const float f32[2][2] = {{1, 0}, {-1, 0}};
    static const double f64[2][2] = {{1, 0}, {-1, 0}};
    return t == GPU_C64 ? (const void *)f32[is_negative]
                        : (const void *)f64[is_negative];
}

/* c -= x y, of b->n columns of x; y: so many rows, or the conjugate transpose
 * of so many columns. */
static void subtract(const block *b, const void *x, const char *turned,
                     const void *y, void *c, int rows, int cols)
{
    gpu_dtype t = b->f->a.dtype;
    b->blas->gemm("N", turned, &rows, &cols, &b->n, number(t, 1), x, &b->rows,
                  y, &b->rows, number(t, 0), c, &b->rows, 1, 1);
}

/* --- LU ------------------------------------------------------------------- */

static void exchange(const block *b, int64_t column)
{
    size_t size = gpu_cpu_size(b->f->a.dtype);
    char held[sizeof(gpu_complex)];
    for (int k = 0; k < b->n; k++) {
        char *x = element(b, b->at + k, column);
        char *y = element(b, b->at + b->pivots[k] - 1, column);
        memcpy(held, x, size);
        memmove(x, y, size);
        memcpy(y, held, size);
    }
}

/* Strips of the columns before the block and behind it. */
static gpu_status update_columns(void *context, int64_t first, int64_t last)
{
    const block *b = context;
    gpu_dtype t = b->f->a.dtype;
    int64_t before = gpu_cpu_pieces(b->at, STRIP), end = b->at + b->n;
    for (int64_t s = first; s < last; s++) {
        int is_before = s < before;
        int64_t from = is_before ? s * STRIP : end + (s - before) * STRIP;
        int64_t most = is_before ? b->at : b->f->a.cols;
        int cols = (int)gpu_cpu_smaller(STRIP, most - from);
        int below = b->rows - (int)end;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        for (int j = 0; j < cols; j++)
            exchange(b, from + j);
        if (is_before)
            continue;
        b->blas->trsm("L", "L", "N", "U", &b->n, &cols, number(t, 0),
                      element(b, b->at, b->at), &b->rows,
                      element(b, b->at, from), &b->rows, 1, 1, 1, 1);
        if (below > 0)
            subtract(b, element(b, end, b->at), "N", element(b, b->at, from),
                     element(b, end, from), below, cols);
    }
    return GPU_OK;
}

static gpu_status factor_columns(block *b)
{
    gpu_factoring *f = b->f;
    int info = 0, left = b->rows - b->at;
    b->blas->getrf(&left, &b->n, element(b, b->at, b->at), &b->rows, b->pivots,
                   &info);
    if (info > 0 && f->trouble == 0)
        f->trouble = b->at + info;
    for (int k = 0; k < b->n; k++) {
        int64_t *x = &f->places[b->at + k];
        int64_t *y = &f->places[b->at + b->pivots[k] - 1], held = *x;
        *x = *y;
        *y = held;
    }
    int64_t behind = f->a.cols - b->at - b->n;
    int64_t strips =
        gpu_cpu_pieces(b->at, STRIP) + gpu_cpu_pieces(behind, STRIP);
    return gpu_cpu_parallel(strips, 4 * behind * left * b->n, update_columns,
                            b);
}

/* --- Cholesky ------------------------------------------------------------- */

static gpu_status finish_rows(void *context, int64_t first, int64_t last)
{
    const block *b = context;
    gpu_dtype t = b->f->a.dtype;
    for (int64_t s = first; s < last; s++) {
        int64_t from = b->at + b->n + s * STRIP;
        int rows = (int)gpu_cpu_smaller(STRIP, b->rows - from);
        b->blas->trsm("R", "L", "C", "N", &rows, &b->n, number(t, 0),
                      element(b, b->at, b->at), &b->rows,
                      element(b, from, b->at), &b->rows, 1, 1, 1, 1);
    }
    return GPU_OK;
}

static gpu_status update_triangle(void *context, int64_t first, int64_t last)
{
    const block *b = context;
    for (int64_t s = first; s < last; s++) {
        int64_t from = b->at + b->n + s * STRIP;
        int rows = b->rows - (int)from;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        subtract(b, element(b, from, b->at), "C", element(b, from, b->at),
                 element(b, from, from), rows,
                 (int)gpu_cpu_smaller(STRIP, rows));
    }
    return GPU_OK;
}

static gpu_status factor_corner(block *b)
{
    int info = 0;
    int64_t left = b->rows - b->at - b->n, strips = gpu_cpu_pieces(left, STRIP);
    b->blas->potrf("L", &b->n, element(b, b->at, b->at), &b->rows, &info, 1);
    if (info > 0)
        b->f->trouble = b->at + info;
    if (info > 0 || left == 0)
        return GPU_OK;
    gpu_status status =
        gpu_cpu_parallel(strips, 4 * left * b->n * b->n, finish_rows, b);
    if (status == GPU_OK)
        status = gpu_cpu_parallel(strips, 2 * left * left * b->n,
                                  update_triangle, b);
    return status;
}

gpu_status gpu_cpu_complex_blocks(gpu_factoring *f,
                                  const gpu_cpu_complex_blas *blas)
{
    int is_lu = f->kind == GPU_FACTOR_LU;
    int64_t steps = gpu_cpu_smaller(f->a.rows, f->a.cols);
    block b = {.blas = blas, .f = f, .rows = (int)f->a.rows};
    gpu_status status = GPU_OK;
    f->trouble = 0;
    for (int64_t at = 0; at < steps && status == GPU_OK; at += PANEL) {
        if (gpu_cpu_interrupted())
            return gpu_cpu_stop(GPU_INTERRUPTED);
        b.at = (int)at;
        b.n = (int)gpu_cpu_smaller(PANEL, steps - at);
        status = is_lu ? factor_columns(&b) : factor_corner(&b);
        if (!is_lu && f->trouble > 0)
            break;
    }
    return status;
}
