/* Runs of equal elements in a sorted vector: their values, where they begin and
 * how long they are.
 * Pieces are counted on all cores, and then written where they belong. */
#include <string.h>
#include "cpu.h"

enum { PIECE = 1 << 14 };

typedef struct run_job {
    const void *sorted; /* without gaps */
    int is_f64;
    int64_t size;
    int64_t *before; /* for each piece, how many runs begin before it, */
    int64_t *last;   /* and where the last of these does */
    gpu_runs *out;
} run_job;

/* Of one type: how many runs begin in first .. last, of which first is not 0,
 * and where the last one does, if any; and the same runs, written from place
 * `at` on, up to `end`, with the lengths of those before them, the first of
 * which begins at `from`. No branch on the elements, as none could be foreseen.
 */
#define TYPED(T)                                                       \
    static int64_t count_##T(const T *x, int64_t first, int64_t last)  \
    {                                                                  \
        int64_t count = 0;                                             \
        for (int64_t i = first; i < last; i++)                         \
            count += x[i] != x[i - 1];                                 \
        return count;                                                  \
    }                                                                  \
    static int64_t last_##T(const T *x, int64_t first, int64_t last)   \
    {                                                                  \
        while (last > first && x[last - 1] == x[last - 2])             \
            last--;                                                    \
        return last - 1;                                               \
    }                                                                  \
    static void put_##T(const run_job *j, int64_t first, int64_t from, \
                        int64_t at, int64_t end)                       \
    {                                                                  \
        const T *x = j->sorted;                                        \
        T *values = j->out->values.data;                               \
        double *starts = j->out->starts.data;                          \
        double *lengths = j->out->lengths.data;                        \
        for (int64_t i = first; at < end; i++) {                       \
            int is_new = x[i] != x[i - 1];                             \
            if (values)                                                \
                values[at] = x[i];                                     \
            if (starts)                                                \
                starts[at] = (double)(i + 1);                          \
            if (lengths)                                               \
                lengths[at - 1] = (double)(i - from);                  \
            from = is_new ? i : from;                                  \
            at += is_new;                                              \
        }                                                              \
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
        int64_t count = j->is_f64 ? count_double(j->sorted, from, to)
                                  : count_float(j->sorted, from, to);
        j->before[piece] = count;
        if (count > 0)
            j->last[piece] = j->is_f64 ? last_double(j->sorted, from, to)
                                       : last_float(j->sorted, from, to);
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
            put_double(j, from, j->last[piece], at, end);
        else
            put_float(j, from, j->last[piece], at, end);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
    }
    return GPU_OK;
}

/* What begins without a look at what comes before it, and ends all; the last
 * run begins at `last`. */
static void put_ends(const run_job *j, int64_t last)
{
    double *starts = j->out->starts.data, *lengths = j->out->lengths.data;
    if (starts) {
        starts[0] = 1;
        starts[j->out->count] = (double)(j->size + 1);
    }
    if (lengths)
        lengths[j->out->count - 1] = (double)(j->size - last);
    if (j->out->values.data)
        memcpy(j->out->values.data, j->sorted, j->is_f64 ? 8 : 4);
}

static gpu_status find_runs(run_job *j)
{
    int64_t pieces = gpu_cpu_pieces(j->size, PIECE), count = 1, last = 0;
    gpu_status status = gpu_cpu_parallel(pieces, j->size, count_pieces, j);
    if (status != GPU_OK)
        return status;
    for (int64_t k = 0; k <= pieces; k++) {
        int64_t own = k < pieces ? j->before[k] : 0, own_last = j->last[k];
        j->before[k] = count;
        j->last[k] = last;
        count += own;
        last = own > 0 ? own_last : last;
    }
    j->out->count = count;
    status = j->out->make_room(j->out);
    if (status != GPU_OK)
        return status;
    put_ends(j, last);
    return gpu_cpu_parallel(pieces, j->size, put_pieces, j);
}

gpu_status gpu_cpu_runs(void *device, const gpu_view *sorted, gpu_runs *r)
{
    run_job j = {.size = sorted->rows, .out = r};
    int64_t pieces = gpu_cpu_pieces(j.size, PIECE) + 1;
    size_t bytes = 2 * (size_t)pieces * sizeof *j.before;
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
    j.last = j.before + pieces;
    if (status == GPU_OK)
        status = find_runs(&j);
    if (copy)
        gpu_cpu_free(NULL, copy, gpu_cpu_view_bytes(sorted));
    gpu_cpu_free(NULL, room, bytes);
    return status;
}
