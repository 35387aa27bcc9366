/* Runs of equal elements in a sorted vector: their values and where they begin.
 * Pieces are counted on all cores, and then written where they belong. */
#include <string.h>
#include "cpu.h"

enum { PIECE = 1 << 14 };

typedef struct run_job {
    const void *sorted; /* without gaps */
    int is_f64;
    int64_t size;
    int64_t *before; /* for each piece, how many runs begin before it */
    gpu_runs *out;
} run_job;

/* Of one type: how many runs begin in first .. last, of which first is not 0;
 * and the same runs, written from place `at` on, up to `end`. No branch on the
 * elements, as none could be foreseen. */
#define TYPED(T)                                                      \
    static int64_t count_##T(const T *x, int64_t first, int64_t last) \
    {                                                                 \
        int64_t count = 0;                                            \
        for (int64_t i = first; i < last; i++)                        \
            count += x[i] != x[i - 1];                                \
        return count;                                                 \
    }                                                                 \
    static void put_##T(const run_job *j, int64_t first, int64_t at,  \
                        int64_t end)                                  \
    {                                                                 \
        const T *x = j->sorted;                                       \
        T *values = j->out->values.data;                              \
        double *starts = j->out->starts.data;                         \
        for (int64_t i = first; at < end; i++) {                      \
            if (values)                                               \
                values[at] = x[i];                                    \
            if (starts)                                               \
                starts[at] = (double)(i + 1);                         \
            at += x[i] != x[i - 1];                                   \
        }                                                             \
    }
TYPED(float)
TYPED(double)
#undef TYPED

static int64_t piece_begin(int64_t piece)
{
    return piece > 0 ? piece * PIECE : 1; /* the first run begins anyway */
}

static gpu_status count_pieces(void *context, int64_t first, int64_t last)
{
    const run_job *j = context;
    for (int64_t piece = first; piece < last; piece++) {
        int64_t from = piece_begin(piece);
        int64_t to = gpu_cpu_smaller((piece + 1) * PIECE, j->size);
        j->before[piece] = j->is_f64 ? count_double(j->sorted, from, to)
                                     : count_float(j->sorted, from, to);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
    }
    return GPU_OK;
}

static gpu_status put_pieces(void *context, int64_t first, int64_t last)
{
    const run_job *j = context;
    for (int64_t piece = first; piece < last; piece++) {
        int64_t from = piece_begin(piece);
        int64_t at = j->before[piece], end = j->before[piece + 1];
        if (j->is_f64)
            put_double(j, from, at, end);
        else
            put_float(j, from, at, end);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
    }
    return GPU_OK;
}

/* What begins without a look at what comes before it, and ends all. */
static void put_ends(const run_job *j)
{
    double *starts = j->out->starts.data;
    if (starts) {
        starts[0] = 1;
        starts[j->out->count] = (double)(j->size + 1);
    }
    if (j->out->values.data)
        memcpy(j->out->values.data, j->sorted, j->is_f64 ? 8 : 4);
}

static gpu_status find_runs(run_job *j)
{
    int64_t pieces = gpu_cpu_pieces(j->size, PIECE), count = 1;
    gpu_status status = gpu_cpu_parallel(pieces, j->size, count_pieces, j);
    if (status != GPU_OK)
        return status;
    for (int64_t k = 0; k <= pieces; k++) {
        int64_t own = k < pieces ? j->before[k] : 0;
        j->before[k] = count;
        count += own;
    }
    j->out->count = count;
    status = j->out->make_room(j->out);
    if (status != GPU_OK)
        return status;
    put_ends(j);
    return gpu_cpu_parallel(pieces, j->size, put_pieces, j);
}

gpu_status gpu_cpu_runs(void *device, const gpu_view *sorted, gpu_runs *r)
{
    run_job j = {.size = sorted->rows, .out = r};
    size_t bytes =
        (size_t)(gpu_cpu_pieces(j.size, PIECE) + 1) * sizeof *j.before;
    gpu_view v = *sorted;
    void *copy = NULL, *room;
    gpu_status status = GPU_OK;
    (void)device;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    if (v.rows > 1 && v.row_stride != 1)
        status = gpu_cpu_make_dense(&v, 1, &copy);
    j.sorted = v.data;
    j.is_f64 = v.dtype == GPU_F64;
    j.before = room;
    if (status == GPU_OK)
        status = find_runs(&j);
    if (copy)
        gpu_cpu_free(NULL, copy, gpu_cpu_view_bytes(sorted));
    gpu_cpu_free(NULL, room, bytes);
    return status;
}
