/* Means, extremes, variances and medians of moving windows.
 *
 * A line is cut into pieces by the window's length alone, so that bits do not
 * depend on threads. A window that is long is two runs of elements that are
 * known already: from its first one to the end of a block of its length, and
 * from there to its last one. So nothing is subtracted that was added before:
 * there is no cancellation, and NaN stays in the windows that hold it. Source:
 * van Herk, A fast algorithm for local minimum and maximum filters, 1992. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"

enum {
    SHORT = 12,      /* elements of windows that are gone through one by one */
    LEAST = 1 << 13, /* results of a piece at least, */
    TIMES = 4,       /* or so many windows */
    LINES = 8        /* that are converted together */
};

/* What is known of a run of elements: of a variance all three. */
typedef struct run {
    double count, value, spread; /* value: sum, extreme or mean */
} run;

/* Both together. Source of the variance's: Chan, Golub, LeVeque, Updating
 * formulae and a pairwise algorithm for computing sample variances, 1979. */
INLINE run joined(run a, run b, gpu_window_kind kind)
{
    run r = {a.count + b.count, 0, 0};
    double apart = b.value - a.value;
    switch (kind) {
    case GPU_WINDOW_MEAN:
        r.value = a.value + b.value;
        break;
    case GPU_WINDOW_MAX:
        r.value =
            ((b.value > a.value) | (b.value != b.value)) ? b.value : a.value;
        break;
    case GPU_WINDOW_MIN:
        r.value =
            ((b.value < a.value) | (b.value != b.value)) ? b.value : a.value;
        break;
    default:
        r.value = a.value + apart * (b.count / r.count);
        r.spread = a.spread + b.spread +
                   apart * apart * (a.count * (b.count / r.count));
    }
    return r;
}

INLINE double finished(run r, gpu_window_kind kind)
{
    if (kind == GPU_WINDOW_MEAN)
        return r.value / r.count;
    if (kind == GPU_WINDOW_VAR) /* NaN, too, of what is infinite */
        return r.spread / (r.count - 1) + (r.value - r.value);
    return r.value;
}

/* A line's elements from..end - 1 are in x; the window of result i begins at
 * first + i and is cut to what there is. Elements count from the line's first,
 * of which there are n. */
typedef struct piece {
    const double *x;
    int64_t from, end, n, length, first;
    double *value, *spread; /* room for as many as x, twice */
} piece;

INLINE void short_windows(const piece *p, int64_t begin, int64_t end,
                          double *to, gpu_window_kind kind)
{
    for (int64_t i = begin; i < end; i++) {
        int64_t low = i + p->first < 0 ? 0 : i + p->first;
        int64_t high = gpu_cpu_smaller(i + p->first + p->length, p->n);
        const double *x = p->x - p->from;
        run r = {1, x[low], 0};
        for (int64_t j = low + 1; j < high; j++)
            r = joined(r, (run){1, x[j], 0}, kind);
        to[i - begin] = finished(r, kind);
    }
}

/* value and spread: of the run from the element's block's first one to it, and
 * behind these, count elements further, of that from it to its block's last. */
INLINE void make_runs(const piece *p, gpu_window_kind kind)
{
    int64_t count = p->end - p->from, length = p->length;
    for (int64_t b = 0; b < count; b += length) {
        int64_t last = gpu_cpu_smaller(b + length, count) - 1;
        run r = {1, p->x[b], 0};
        for (int64_t i = b;; r = joined(r, (run){1, p->x[i], 0}, kind)) {
            p->value[i] = r.value;
            p->spread[i] = r.spread;
            if (i++ == last)
                break;
        }
        r = (run){1, p->x[last], 0};
        for (int64_t i = last;; r = joined((run){1, p->x[i], 0}, r, kind)) {
            p->value[count + i] = r.value;
            p->spread[count + i] = r.spread;
            if (i-- == b)
                break;
        }
    }
}

/* A window that is cut begins or ends with the line: so it is a run, or two
 * that meet where a block begins. */
INLINE void long_windows(const piece *p, int64_t begin, int64_t end, double *to,
                         gpu_window_kind kind)
{
    int64_t count = p->end - p->from, length = p->length;
    make_runs(p, kind);
    for (int64_t i = begin; i < end; i++) {
        int64_t low = i + p->first < 0 ? 0 : i + p->first;
        int64_t high = gpu_cpu_smaller(i + p->first + length, p->n);
        low -= p->from;
        high -= p->from + 1; /* the last one */
        int64_t block = low / length * length, next = block + length;
        run before = {(double)(next - low), p->value[count + low],
                      p->spread[count + low]};
        run whole = {(double)(high - low + 1), p->value[high], p->spread[high]};
        if (high >= next) {
            run behind = {(double)(high - next + 1), p->value[high],
                          p->spread[high]};
            whole = joined(before, behind, kind);
        } else if (low != block) {
            before.count = whole.count;
            whole = before;
        }
        to[i - begin] = finished(whole, kind);
    }
}

/* --- medians ----------------------------------------------------------------
 * The window's numbers in order, and how many NaN it has. */

typedef struct ordered {
    double *x;
    int64_t count, nans;
} ordered;

/* How many are below v. */
static int64_t rank(const ordered *w, double v)
{
    int64_t low = 0, high = w->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (w->x[middle] < v)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void enter(ordered *w, double v)
{
    if (isnan(v)) {
        w->nans++;
        return;
    }
    int64_t at = rank(w, v);
    memmove(w->x + at + 1, w->x + at, (size_t)(w->count++ - at) * sizeof v);
    w->x[at] = v;
}

static void leave(ordered *w, double v)
{
    if (isnan(v)) {
        w->nans--;
        return;
    }
    int64_t at = rank(w, v);
    memmove(w->x + at, w->x + at + 1, (size_t)(--w->count - at) * sizeof v);
}

static double median(const ordered *w)
{
    int64_t half = w->count / 2;
    if (w->nans > 0)
        return NAN;
    if (w->count % 2 == 1)
        return w->x[half];
    double a = w->x[half - 1], b = w->x[half];
    return a == b ? a : a / 2 + b / 2;
}

static gpu_status medians(const piece *p, int64_t begin, int64_t end,
                          double *to)
{
    ordered w = {p->value, 0, 0};
    const double *x = p->x - p->from;
    int64_t low = begin + p->first < 0 ? 0 : begin + p->first, high = low;
    for (int64_t i = begin; i < end; i++) {
        int64_t last = gpu_cpu_smaller(i + p->first + p->length, p->n);
        if (i % 64 == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        for (; high < last; high++)
            enter(&w, x[high]);
        for (; low < i + p->first; low++)
            leave(&w, x[low]);
        to[i - begin] = median(&w);
    }
    return GPU_OK;
}

/* --- pieces ----------------------------------------------------------------
 */

typedef struct windowing {
    const gpu_windows *w;
    int64_t results, bands, band; /* of a piece; of lines, and how many each */
} windowing;

static gpu_status run_piece(const gpu_windows *w, const piece *p, int64_t begin,
                            int64_t end, double *to)
{
    int is_short = w->length <= SHORT;
    switch (w->kind) {
    case GPU_WINDOW_MEDIAN:
        return medians(p, begin, end, to);
    case GPU_WINDOW_MEAN:
        if (is_short)
            short_windows(p, begin, end, to, GPU_WINDOW_MEAN);
        else
            long_windows(p, begin, end, to, GPU_WINDOW_MEAN);
        break;
    case GPU_WINDOW_MIN:
        if (is_short)
            short_windows(p, begin, end, to, GPU_WINDOW_MIN);
        else
            long_windows(p, begin, end, to, GPU_WINDOW_MIN);
        break;
    case GPU_WINDOW_MAX:
        if (is_short)
            short_windows(p, begin, end, to, GPU_WINDOW_MAX);
        else
            long_windows(p, begin, end, to, GPU_WINDOW_MAX);
        break;
    case GPU_WINDOW_VAR:
        if (is_short)
            short_windows(p, begin, end, to, GPU_WINDOW_VAR);
        else
            long_windows(p, begin, end, to, GPU_WINDOW_VAR);
    }
    return GPU_OK;
}

/* The results begin .. end - 1 of some lines. room: for as many
 * lines of elements, of results, and four lines more. */
static gpu_status window_lines(const gpu_windows *w, int64_t line,
                               int64_t lines, int64_t begin, int64_t end,
                               double *room)
{
    int64_t n = w->from.rows,
            from = begin + w->first < 0 ? 0 : begin + w->first;
    int64_t last = gpu_cpu_smaller(end + w->first + w->length - 1, n);
    int64_t count = last - from, results = end - begin;
    double *to = room + lines * count, *spare = to + lines * results;
    gpu_view source = gpu_cpu_part(&w->from, from, line, count, lines);
    gpu_view target = gpu_cpu_part(&w->to, begin, line, results, lines);
    gpu_view dense = {room, GPU_F64, count, lines, 1, count};
    gpu_view made = {to, GPU_F64, results, lines, 1, results};
    gpu_cpu_convert(&source, &dense);
    gpu_status status = GPU_OK;
    for (int64_t l = 0; l < lines && status == GPU_OK; l++) {
        piece p = {room + l * count, from,     last,  n,
                   w->length,        w->first, spare, spare + 2 * count};
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        status = run_piece(w, &p, begin, end, to + l * results);
    }
    gpu_cpu_convert(&made, &target);
    return status;
}

static gpu_status window_range(void *context, int64_t first, int64_t last)
{
    const windowing *j = context;
    const gpu_windows *w = j->w;
    int64_t most = j->results + w->length;
    size_t bytes = (size_t)((2 * j->band + 5) * most) * sizeof(double);
    void *room;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return GPU_MEMORY;
    gpu_status status = GPU_OK;
    for (int64_t i = first; i < last && status == GPU_OK; i++) {
        int64_t line = i % j->bands * j->band,
                begin = i / j->bands * j->results;
        int64_t lines = gpu_cpu_smaller(w->from.cols - line, j->band);
        int64_t end = gpu_cpu_smaller(begin + j->results, w->to.rows);
        status = window_lines(w, line, lines, begin, end, room);
    }
    gpu_cpu_free(NULL, room, bytes);
    return status;
}

gpu_status gpu_cpu_windows(void *device, const gpu_windows *w)
{
    int64_t results = TIMES * w->length > LEAST ? TIMES * w->length : LEAST;
    (void)device;
    results = gpu_cpu_smaller(results, w->to.rows);
    int is_beside = w->length <= LEAST && w->from.cols > 1 &&
                    llabs(w->from.col_stride) < llabs(w->from.row_stride);
    windowing j = {w, results, 0, is_beside ? LINES : 1};
    j.bands = gpu_cpu_pieces(w->from.cols, j.band);
    int64_t pieces = gpu_cpu_pieces(w->to.rows, results);
    return gpu_cpu_parallel(pieces * j.bands, 4 * w->to.rows * w->to.cols,
                            window_range, &j);
}
