/* Cholesky's factorisation in blocks of columns, so that nearly all of the work
 * is products of matrices, which use all cores and answer an interrupt. Source:
 * Golub and Van Loan, Matrix Computations, 4th edition, 4.2.9. */
#include "cpu.h"

enum {
    PANEL = 192, /* columns that are factored before the rest hears of it */
    SQUARE = 64  /* side from which a triangle is no longer done whole */
};

static gpu_view turned(gpu_view v)
{
    return (gpu_view){.data = v.data,
                      .dtype = v.dtype,
                      .rows = v.cols,
                      .cols = v.rows,
                      .row_stride = v.col_stride,
                      .col_stride = v.row_stride};
}

/* The part of so many rows and columns, from `first` and `col` on, loses the
 * product of its rows and its columns as they are in the n columns at `at`. */
static gpu_status update_block(const gpu_view *a, int64_t at, int64_t n,
                               int64_t first, int64_t rows, int64_t col,
                               int64_t cols)
{
    gpu_view left = gpu_cpu_part(a, col, at, cols, n);
    gpu_view right = gpu_cpu_part(a, first, at, rows, n);
    gpu_view rest = gpu_cpu_part(a, first, col, rows, cols);
    return gpu_cpu_subtract_product(left, turned(right), turned(rest));
}

/* The lower triangle of the `side` rows and columns from `first` on loses the
 * product of the columns at .. at + n - 1 with themselves: what is below its
 * two halves as one product, these alike, down to squares that are done whole,
 * as little of them is above the diagonal. */
static gpu_status update(const gpu_view *a, int64_t at, int64_t n,
                         int64_t first, int64_t side)
{
    if (side <= SQUARE)
        return update_block(a, at, n, first, side, first, side);
    int64_t half = gpu_cpu_pieces(side / 2, 16) * 16, rest = side - half;
    gpu_status status = update(a, at, n, first, half);
    if (status == GPU_OK)
        status = update_block(a, at, n, first + half, rest, first, half);
    if (status == GPU_OK)
        status = update(a, at, n, first + half, rest);
    return status;
}

gpu_status gpu_cpu_cholesky(gpu_factoring *f,
                            int64_t (*factor_block)(const gpu_view *a))
{
    gpu_status status = GPU_OK;
    for (int64_t at = 0; at < f->a.rows && status == GPU_OK; at += PANEL) {
        int64_t n = gpu_cpu_smaller(PANEL, f->a.rows - at);
        int64_t rows = f->a.rows - at - n;
        gpu_cpu_triangle corner = {1, 0, gpu_cpu_part(&f->a, at, at, n, n)};
        int64_t minor = factor_block(&corner.block);
        if (minor > 0) {
            f->trouble = at + minor;
            return GPU_OK;
        }
        gpu_view below = gpu_cpu_part(&f->a, at + n, at, rows, n);
        if (rows > 0)
            status = gpu_cpu_solve_triangle(&corner, turned(below));
        if (status == GPU_OK)
            status = update(&f->a, at, n, at + n, rows);
    }
    return status;
}
