/* Looking on the CPU: block means and histograms. Every block is the work of
 * one thread, so the bits do not depend on how many there are. */
#include <math.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "cpu.h"
#include "vector.h"

enum { PIECE = 1024 };

/* With rows along memory, where the view has any. */
static gpu_view along_memory(const gpu_view *v)
{
    int turns = v->cols == 1 ||
                (v->rows > 1 && llabs(v->row_stride) < llabs(v->col_stride));
    return turns ? gpu_cpu_turned(*v) : *v;
}

/* --- blocks --------------------------------------------------------------- */

typedef struct blocks_job {
    gpu_block_kind kind;
    const gpu_view *from, *to;
} blocks_job;

/* What is known of a block so far. */
typedef struct folded {
    double value;
    int any; /* min, max: some element was not NaN */
} folded;

static void fold_extreme(const double *x, int64_t n, int smallest, folded *f)
{
    for (int64_t k = 0; k < n; k++) {
        if (isnan(x[k]))
            continue;
        if (!f->any || (smallest ? x[k] < f->value : x[k] > f->value))
            f->value = x[k];
        f->any = 1;
    }
}

static void fold(gpu_block_kind kind, const double *x, int64_t n, folded *f)
{
    size_t count = (size_t)n;
    if (kind == GPU_BLOCK_MEAN) {
        f->value += gpu_cpu_vectors->sum[GPU_F64](x, count);
    } else if (kind == GPU_BLOCK_LARGEST) {
        double low = fabs(gpu_cpu_vectors->smallest[GPU_F64](x, count));
        double high = fabs(gpu_cpu_vectors->largest[GPU_F64](x, count));
        double most = isnan(low) || low > high ? low : high;
        f->value = isnan(most) || most > f->value ? most : f->value;
    } else {
        int smallest = kind == GPU_BLOCK_MIN;
        double best = smallest ? gpu_cpu_vectors->smallest[GPU_F64](x, count)
                               : gpu_cpu_vectors->largest[GPU_F64](x, count);
        fold_extreme(isnan(best) ? x : &best, isnan(best) ? n : 1, smallest, f);
    }
}

static gpu_status fold_block(const blocks_job *job, const gpu_view *part,
                             double *out)
{
    alignas(64) double x[PIECE];
    gpu_view v = along_memory(part);
    int64_t size = v.rows * v.cols;
    folded f = {0, 0};
    for (int64_t first = 0; first < size; first += PIECE) {
        int64_t n = size - first < PIECE ? size - first : PIECE;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        gpu_cpu_load(&v, first, n, GPU_F64, x);
        fold(job->kind, x, n, &f);
    }
    if (job->kind == GPU_BLOCK_MEAN)
        *out = f.value / (double)size;
    else
        *out = f.any || job->kind == GPU_BLOCK_LARGEST ? f.value : (double)NAN;
    return GPU_OK;
}

/* Where block b of so many over a length begins. */
static int64_t edge(int64_t b, int64_t blocks, int64_t length)
{
    return b * length / blocks;
}

static gpu_status fold_blocks(void *context, int64_t first, int64_t last)
{
    const blocks_job *job = context;
    const gpu_view *v = job->from, *to = job->to;
    for (int64_t number = first; number < last; number++) {
        int64_t p = number / to->cols, q = number % to->cols;
        int64_t row = edge(p, to->rows, v->rows);
        int64_t col = edge(q, to->cols, v->cols);
        gpu_view part =
            gpu_cpu_part(v, row, col, edge(p + 1, to->rows, v->rows) - row,
                         edge(q + 1, to->cols, v->cols) - col);
        double value;
        gpu_status status = fold_block(job, &part, &value);
        if (status != GPU_OK)
            return status;
        gpu_cpu_store_one(to, p, q, value);
    }
    return GPU_OK;
}

gpu_status gpu_cpu_blocks(void *device, gpu_block_kind kind, const gpu_view *v,
                          const gpu_view *to)
{
    (void)device;
    blocks_job job = {kind, v, to};
    return gpu_cpu_parallel(to->rows * to->cols, v->rows * v->cols, fold_blocks,
                            &job);
}

/* --- histograms ----------------------------------------------------------- */

typedef struct bins_job {
    gpu_view from;
    const gpu_bins *how;
    atomic_llong *counts;
} bins_job;

/* As gpu_edge has it. */
static double edge_of(const gpu_edges *e, int i)
{
    return i == e->count ? e->high : (e->from + i * e->by) / e->over;
}

static int mend_bin(const gpu_edges *e, double x, int bin)
{
    while (bin > 0 && x < edge_of(e, bin))
        bin--;
    while (bin < e->count - 1 && x >= edge_of(e, bin + 1))
        bin++;
    return bin;
}

static void count_piece(const gpu_bins *how, const double *x, int64_t n,
                        int64_t *counts)
{
    const gpu_edges *e = &how->edges;
    for (int64_t k = 0; k < n; k++) {
        if (!(x[k] >= how->low && x[k] <= e->high))
            continue;
        double place = (x[k] * e->over - e->from) * how->per_unit;
        int bin = place < e->count ? (int)place : e->count - 1;
        double behind = place - bin;
        if (!(behind > how->near && behind < 1 - how->near))
            bin = mend_bin(e, x[k], bin);
        counts[bin]++;
    }
}

/* first and last are pieces. */
static gpu_status count_pieces(void *context, int64_t first, int64_t last)
{
    const bins_job *job = context;
    alignas(64) double x[PIECE];
    int64_t counts[GPU_MOST_BINS] = {0};
    int64_t size = job->from.rows * job->from.cols, end = last * PIECE;
    end = end < size ? end : size;
    for (int64_t at = first * PIECE; at < end; at += PIECE) {
        int64_t n = end - at < PIECE ? end - at : PIECE;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        gpu_cpu_load(&job->from, at, n, GPU_F64, x);
        count_piece(job->how, x, n, counts);
    }
    for (int b = 0; b < job->how->edges.count; b++)
        atomic_fetch_add(&job->counts[b], counts[b]);
    return GPU_OK;
}

gpu_status gpu_cpu_bins(void *device, const gpu_view *v, const gpu_bins *how,
                        int64_t *counts)
{
    (void)device;
    atomic_llong sums[GPU_MOST_BINS];
    bins_job job = {along_memory(v), how, sums};
    int64_t size = v->rows * v->cols;
    for (int b = 0; b < how->edges.count; b++)
        atomic_init(&sums[b], 0);
    gpu_status status =
        gpu_cpu_parallel((size + PIECE - 1) / PIECE, size, count_pieces, &job);
    for (int b = 0; status == GPU_OK && b < how->edges.count; b++)
        counts[b] = atomic_load(&sums[b]);
    return status;
}
