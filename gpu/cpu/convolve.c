/* Convolutions as they are defined, which for a short y takes less than Fourier
 * transforms, and rounds once: sums are in f64. */
#include <string.h>
#include "cpu.h"

enum { SUMS = 512 }; /* elements of a row that are summed at once */

/* sums[j] += x[j] times a number, for the elements that there are. */
#define ADD_ROW(type)                                       \
    do {                                                    \
        const type *from = (const type *)x->data + start;   \
        if (x->col_stride == 1)                             \
            for (int64_t j = first; j < last; j++)          \
                sums[j] += (double)from[j] * by;            \
        else                                                \
            for (int64_t j = first; j < last; j++)          \
                sums[j] += (double)from[j * step] * by;     \
    } while (0)

/* sums of n elements: of row i of x those from `col` on, where x has any. */
static void add_row(const gpu_view *x, int64_t i, int64_t col, int64_t n,
                    double by, double *sums)
{
    int64_t first = col < 0 ? -col : 0;
    int64_t last = gpu_cpu_smaller(n, x->cols - col), step = x->col_stride;
    int64_t start = i * x->row_stride + col * step;
    if (x->dtype == GPU_F64)
        ADD_ROW(double);
    else
        ADD_ROW(float);
}

static double read(const gpu_view *v, int64_t i, int64_t j)
{
    int64_t at = i * v->row_stride + j * v->col_stride;
    return v->dtype == GPU_F64 ? ((const double *)v->data)[at]
                               : (double)((const float *)v->data)[at];
}

/* Elements col .. col + n - 1 of out's row i. */
static void sum_piece(const gpu_convolution *c, int64_t i, int64_t col,
                      int64_t n, double *sums)
{
    memset(sums, 0, (size_t)n * sizeof *sums);
    for (int64_t u = 0; u < c->y.rows; u++) {
        int64_t from = i + c->row - u;
        for (int64_t v = 0; v < c->y.cols && from >= 0 && from < c->x.rows; v++)
            add_row(&c->x, from, col + c->col - v, n, read(&c->y, u, v), sums);
    }
}

/* Pieces are counted row by row. */
static gpu_status convolve_pieces(void *context, int64_t first, int64_t last)
{
    const gpu_convolution *c = context;
    int64_t pieces = gpu_cpu_pieces(c->out.cols, SUMS);
    double sums[SUMS];
    for (int64_t p = first; p < last; p++) {
        int64_t i = p / pieces, col = p % pieces * SUMS;
        int64_t n = gpu_cpu_smaller(SUMS, c->out.cols - col);
        gpu_view to = gpu_cpu_part(&c->out, i, col, 1, n);
        sum_piece(c, i, col, n, sums);
        for (int64_t j = 0; j < n; j++)
            gpu_cpu_store_one(&to, 0, j, sums[j]);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
    }
    return GPU_OK;
}

gpu_status gpu_cpu_convolve(void *device, const gpu_convolution *call)
{
    gpu_convolution c = *call;
    (void)device;
    if (c.out.cols == 1) { /* a vector, or a column */
        c.x = gpu_cpu_turned(c.x);
        c.y = gpu_cpu_turned(c.y);
        c.out = gpu_cpu_turned(c.out);
        c.row = call->col;
        c.col = call->row;
    }
    int64_t pieces = c.out.rows * gpu_cpu_pieces(c.out.cols, SUMS);
    int64_t work = c.out.rows * c.out.cols * c.y.rows * c.y.cols;
    return gpu_cpu_parallel(pieces, work, convolve_pieces, &c);
}
