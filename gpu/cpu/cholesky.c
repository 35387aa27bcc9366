/* Cholesky's factorisation in blocks of columns, so that nearly all of the work
 * is products of matrices, which use all cores and answer an interrupt. Source:
 * Golub and Van Loan, Matrix Computations, 4th edition, 4.2.9. */
#include "cpu.h"

enum {
    PANEL = 192, /* columns that are factored before the rest hears of it */
    WIDE = 512   /* columns of the rest that are updated at a time */
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

/* The lower triangle of what is behind the columns at .. at + n - 1 loses their
 * product with themselves. */
static gpu_status update(const gpu_view *a, int64_t at, int64_t n)
{
    gpu_status status = GPU_OK;
    for (int64_t first = at + n; first < a->rows && status == GPU_OK;
         first += WIDE) {
        int64_t rows = a->rows - first, cols = gpu_cpu_smaller(WIDE, rows);
        gpu_view left = gpu_cpu_part(a, first, at, cols, n);
        gpu_view right = gpu_cpu_part(a, first, at, rows, n);
        gpu_view rest = gpu_cpu_part(a, first, first, rows, cols);
        status = gpu_cpu_subtract_product(left, turned(right), turned(rest));
    }
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
            status = update(&f->a, at, n);
    }
    return status;
}
