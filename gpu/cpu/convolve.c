/* Convolutions as they are defined, which for a short y takes less than Fourier
 * transforms, and rounds once: sums are in f64. */
#include <string.h>
#include "cpu.h"
#include "vector.h"

enum { SUMS = 512, TAPS = 4 }; /* elements of a row, of y, at once */

/* Elements of a row of y, and for each where the row of x begins. */
typedef struct taps {
    double by[TAPS];
    const void *x[TAPS];
    int64_t step; /* of x */
    int count;
} taps;

/* sums[j] += x[j] times a number, for each tap, one after the other. */
#define ADD_TAPS(type, name)                                               \
    VECTORS static void add_##name(const taps *t, int64_t n, double *sums) \
    {                                                                      \
        const type *a = t->x[0], *b = t->x[1], *c = t->x[2], *d = t->x[3]; \
        double p = t->by[0], q = t->by[1], r = t->by[2], s = t->by[3];     \
        if (t->count == TAPS && t->step == 1)                              \
            for (int64_t j = 0; j < n; j++)                                \
                sums[j] = sums[j] + (double)a[j] * p + (double)b[j] * q +  \
                          (double)c[j] * r + (double)d[j] * s;             \
        else                                                               \
            for (int k = 0; k < t->count; k++) {                           \
                const type *x = t->x[k];                                   \
                for (int64_t j = 0; j < n; j++)                            \
                    sums[j] += (double)x[j * t->step] * t->by[k];          \
            }                                                              \
    }
ADD_TAPS(float, f32)
ADD_TAPS(double, f64)

static double read(const gpu_view *v, int64_t i, int64_t j)
{
    int64_t at = i * v->row_stride + j * v->col_stride;
    return v->dtype == GPU_F64 ? ((const double *)v->data)[at]
                               : (double)((const float *)v->data)[at];
}

/* Those with numbers v … of y's row, for n elements from `col` of x's row on,
 * where all have one. */
static void add_some(const gpu_convolution *c, int64_t u, int64_t v, int count,
                     int64_t row, int64_t col, int64_t n, double *sums)
{
    taps t = {.step = c->x.col_stride, .count = count};
    size_t size = gpu_cpu_size(c->x.dtype);
    for (int k = 0; k < count; k++) {
        int64_t at = row * c->x.row_stride + (col - k) * c->x.col_stride;
        t.by[k] = read(&c->y, u, v + k);
        t.x[k] = (const char *)c->x.data + at * (int64_t)size;
    }
    if (c->x.dtype == GPU_F64)
        add_f64(&t, n, sums);
    else
        add_f32(&t, n, sums);
}

/* The same where some meet no x. */
static void add_one(const gpu_convolution *c, int64_t u, int64_t v, int64_t row,
                    int64_t col, int64_t n, double *sums)
{
    int64_t first = col < 0 ? -col : 0;
    int64_t last = gpu_cpu_smaller(n, c->x.cols - col);
    if (first < last)
        add_some(c, u, v, 1, row, col + first, last - first, sums + first);
}

/* Elements col .. col + n - 1 of out's row i. */
static void sum_piece(const gpu_convolution *c, int64_t i, int64_t col,
                      int64_t n, double *sums)
{
    memset(sums, 0, (size_t)n * sizeof *sums);
    for (int64_t u = 0; u < c->y.rows; u++) {
        int64_t row = i + c->row - u, count;
        for (int64_t v = 0; v < c->y.cols && row >= 0 && row < c->x.rows;
             v += count) {
            int64_t from = col + c->col - v;
            int is_inside = v + TAPS <= c->y.cols && from - TAPS + 1 >= 0 &&
                            from + n <= c->x.cols;
            count = is_inside ? TAPS : 1;
            if (is_inside)
                add_some(c, u, v, TAPS, row, from, n, sums);
            else
                add_one(c, u, v, row, from, n, sums);
        }
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
        gpu_cpu_convert(&(gpu_view){sums, GPU_F64, 1, n, n, 1}, &to);
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
