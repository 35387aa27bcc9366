/* Rows told apart by code, and folds of each group's rows.
 *
 * Folds are cut where shapes and groups say, and partial results joined in that
 * order, so that bits do not depend on threads. What limits all of it is that
 * places are far apart: several are on their way at a time. */
#include <math.h>
#include <string.h>
#include "cpu.h"

enum { PIECE = 1024 }; /* elements a thread holds at a time */

/* --- codes ---------------------------------------------------------------- */

/* The groups of so many rows; `groups` itself stands for none. */
static void load_groups(const gpu_view *codes, double base, int64_t groups,
                        int64_t first, int64_t n, int32_t *restrict to)
{
    double room[PIECE], none = (double)groups;
    const double *x = room;
    if (codes->dtype == GPU_F64 && codes->row_stride == 1)
        x = (const double *)codes->data + first;
    else
        gpu_cpu_load(codes, first, n, GPU_F64, room);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double code = x[i] - base;
        to[i] = (int32_t)(((code >= 0) & (code < none)) ? code : none);
    }
}

typedef struct grouping {
    const gpu_grouping *g;
    int64_t rows, chunk;
    int64_t *count; /* by chunk and group, then where each one's rows go */
} grouping;

enum { ABREAST = 4, FEW_GROUPS = PIECE / ABREAST };

/* Of few groups neighbours are often the same: they are counted apart, as each
 * count waits for the one before. */
static void count_few(const int32_t *group, int64_t n, int64_t groups,
                      int64_t *count)
{
    uint32_t own[ABREAST][FEW_GROUPS + 1];
    for (int k = 0; k < ABREAST; k++)
        memset(own[k], 0, (size_t)(groups + 1) * sizeof own[k][0]);
    int64_t i = 0;
    for (; i + ABREAST <= n; i += ABREAST)
        for (int k = 0; k < ABREAST; k++)
            own[k][group[i + k]]++;
    for (; i < n; i++)
        own[0][group[i]]++;
    for (int64_t g = 0; g <= groups; g++)
        for (int k = 0; k < ABREAST; k++)
            count[g] += own[k][g];
}

static gpu_status count_chunks(void *context, int64_t first, int64_t last)
{
    const grouping *c = context;
    int64_t groups = c->g->groups;
    int32_t group[PIECE];
    for (int64_t chunk = first; chunk < last; chunk++) {
        int64_t *count = c->count + chunk * (groups + 1);
        int64_t end = gpu_cpu_smaller((chunk + 1) * c->chunk, c->rows);
        memset(count, 0, (size_t)(groups + 1) * sizeof *count);
        for (int64_t i = chunk * c->chunk, n; i < end; i += n) {
            n = gpu_cpu_smaller(end - i, PIECE);
            if (gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            load_groups(&c->g->codes, c->g->first, groups, i, n, group);
            if (groups <= FEW_GROUPS)
                count_few(group, n, groups, count);
            for (int64_t k = 0; groups > FEW_GROUPS && k < n; k++)
                count[group[k]]++;
        }
    }
    return GPU_OK;
}

/* Where each chunk's rows of each group begin, in the order of the chunks. */
static void place_groups(const grouping *c, int64_t chunks)
{
    int64_t start = 0, groups = c->g->groups;
    for (int64_t g = 0; g <= groups; g++) {
        int64_t before = start;
        for (int64_t k = 0; k < chunks; k++) {
            int64_t *count = &c->count[k * (groups + 1) + g], own = *count;
            *count = start;
            start += own;
        }
        if (c->g->counts.data && g < groups)
            gpu_cpu_store_one(&c->g->counts, g, 0, (double)(start - before));
    }
}

static gpu_status order_chunks(void *context, int64_t first, int64_t last)
{
    const grouping *c = context;
    int64_t groups = c->g->groups;
    int32_t group[PIECE];
    int64_t stride = c->g->order.row_stride;
    double *order = c->g->order.data;
    for (int64_t chunk = first; chunk < last; chunk++) {
        int64_t *place = c->count + chunk * (groups + 1);
        int64_t end = gpu_cpu_smaller((chunk + 1) * c->chunk, c->rows);
        for (int64_t i = chunk * c->chunk, n; i < end; i += n) {
            n = gpu_cpu_smaller(end - i, PIECE);
            if (gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            load_groups(&c->g->codes, c->g->first, groups, i, n, group);
            for (int64_t k = 0; k < n; k++)
                order[place[group[k]]++ * stride] = (double)(i + k + 1);
        }
    }
    return GPU_OK;
}

/* Chunks as many as a table of all their counts is worth, two for a thread. */
gpu_status gpu_cpu_group(void *device, const gpu_grouping *g)
{
    enum { LEAST = 1 << 16 };
    int64_t rows = g->codes.rows, most = 2 * gpu_cpu_threads();
    int64_t worth = rows / (g->groups + LEAST) + 1;
    int64_t chunks = gpu_cpu_smaller(most, worth);
    grouping c = {g, rows, gpu_cpu_pieces(rows, chunks), NULL};
    size_t bytes = (size_t)(chunks * (g->groups + 1)) * sizeof *c.count;
    void *room;
    (void)device;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    c.count = room;
    gpu_status status = gpu_cpu_parallel(chunks, rows, count_chunks, &c);
    if (status == GPU_OK) {
        place_groups(&c, chunks);
        if (g->order.data)
            status = gpu_cpu_parallel(chunks, rows, order_chunks, &c);
    }
    gpu_cpu_free(NULL, room, bytes);
    return status;
}

/* --- folds ---------------------------------------------------------------- */

/* Of extremes, where there was no element yet: a NaN that no result is. */
#define NOTHING 0x7ff8dead00000000

static double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int is_nothing(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits == NOTHING;
}

static double neutral(gpu_fold_kind kind)
{
    switch (kind) {
    case GPU_FOLD_PROD:
        return 1;
    case GPU_FOLD_MAX:
    case GPU_FOLD_MIN:
        return from_bits(NOTHING);
    default:
        return 0;
    }
}

/* x, which is not NOTHING, is taken to what was folded so far; so are two
 * partial results joined, where it may be that. */
INLINE double extreme(double so_far, double x, int is_max)
{
    if (is_max ? x > so_far : x < so_far)
        return x;
    if (is_max ? x <= so_far : x >= so_far)
        return so_far;
    if (is_nothing(so_far) && x == x)
        return x;
    return is_nothing(x) ? so_far : (double)NAN;
}

INLINE double with(double so_far, double x, double about, gpu_fold_kind kind,
                   int skips_nan)
{
    if (skips_nan && x != x)
        return so_far;
    switch (kind) {
    case GPU_FOLD_SUM:
        return so_far + x;
    case GPU_FOLD_PROD:
        return so_far * x;
    case GPU_FOLD_COUNT:
        return so_far + (x == x);
    case GPU_FOLD_SPREAD:
        return so_far + (x - about) * (x - about);
    default:
        return extreme(so_far, x, kind == GPU_FOLD_MAX);
    }
}

static double joined(double a, double b, gpu_fold_kind kind)
{
    if (kind == GPU_FOLD_PROD)
        return a * b;
    if (kind == GPU_FOLD_MAX || kind == GPU_FOLD_MIN)
        return extreme(a, b, kind == GPU_FOLD_MAX);
    return a + b;
}

/* What a group's result is; a NaN as any other. */
static double finished(double x)
{
    return is_nothing(x) ? (double)NAN : x;
}

/* Calls loop(arguments, kind, skips_nan) with both known where it is put
 * together. */
#define FOR_SKIPS(skips, loop, kind, ...) \
    do {                                  \
        if (skips)                        \
            loop(__VA_ARGS__, kind, 1);   \
        else                              \
            loop(__VA_ARGS__, kind, 0);   \
    } while (0)
#define FOR_KIND(f, loop, ...)                                         \
    switch ((f)->kind) {                                               \
    case GPU_FOLD_SUM:                                                 \
        FOR_SKIPS((f)->skips_nan, loop, GPU_FOLD_SUM, __VA_ARGS__);    \
        break;                                                         \
    case GPU_FOLD_PROD:                                                \
        FOR_SKIPS((f)->skips_nan, loop, GPU_FOLD_PROD, __VA_ARGS__);   \
        break;                                                         \
    case GPU_FOLD_MAX:                                                 \
        FOR_SKIPS((f)->skips_nan, loop, GPU_FOLD_MAX, __VA_ARGS__);    \
        break;                                                         \
    case GPU_FOLD_MIN:                                                 \
        FOR_SKIPS((f)->skips_nan, loop, GPU_FOLD_MIN, __VA_ARGS__);    \
        break;                                                         \
    case GPU_FOLD_COUNT:                                               \
        FOR_SKIPS(0, loop, GPU_FOLD_COUNT, __VA_ARGS__);               \
        break;                                                         \
    case GPU_FOLD_SPREAD:                                              \
        FOR_SKIPS((f)->skips_nan, loop, GPU_FOLD_SPREAD, __VA_ARGS__); \
        break;                                                         \
    case GPU_FOLD_MEDIAN:                                              \
        break; /* is none */                                           \
    }

/* --- by codes ---------------------------------------------------------------
 * Accumulators of all groups for each of some parts of the rows, so many that
 * it takes less to join them than to fill them. */

enum { MOST_PARTS = 8, WORTH_PARTS = 1 << 16 /* rows */ };

typedef struct code_fold {
    const gpu_folding *f;
    gpu_view from;
    int64_t cols, rows, parts;
    double *about;        /* without gaps, of one more than there are groups */
    double *accumulators; /* of each part as many: the last are of no group */
    int64_t part;         /* how many these are */
} code_fold;

/* Rows of so many columns, x without gaps. */
INLINE void fold_rows(const double *x, const int32_t *group, int64_t n,
                      int64_t cols, double *to, const double *about,
                      gpu_fold_kind kind, int skips)
{
    for (int64_t i = 0; i < n; i++, x += cols)
        for (int64_t j = 0, at = group[i] * cols; j < cols; j++)
            to[at + j] =
                with(to[at + j], x[j],
                     kind == GPU_FOLD_SPREAD ? about[at + j] : 0, kind, skips);
}

INLINE void fold_column(const double *x, const int32_t *group, int64_t n,
                        double *to, const double *about, gpu_fold_kind kind,
                        int skips)
{
    fold_rows(x, group, n, 1, to, about, kind, skips);
}

static gpu_status fold_codes(const code_fold *c, int64_t first, int64_t last,
                             double *to)
{
    const gpu_folding *f = c->f;
    double x[PIECE];
    int32_t group[PIECE];
    int64_t step = PIECE / c->cols;
    for (int64_t i = first, n; i < last; i += n) {
        n = gpu_cpu_smaller(last - i, step);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        load_groups(&f->codes, f->first, f->groups, i, n, group);
        gpu_view rows = gpu_cpu_part(&c->from, i, 0, n, c->cols);
        gpu_view dense = {x, GPU_F64, n, c->cols, c->cols, 1};
        gpu_cpu_convert(&rows, &dense);
        if (c->cols == 1)
            FOR_KIND(f, fold_column, x, group, n, to, c->about)
        else
            FOR_KIND(f, fold_rows, x, group, n, c->cols, to, c->about)
    }
    return GPU_OK;
}

static gpu_status fold_parts(void *context, int64_t first, int64_t last)
{
    const code_fold *c = context;
    gpu_status status = GPU_OK;
    for (int64_t p = first; p < last && status == GPU_OK; p++) {
        double *to = c->accumulators + p * c->part;
        for (int64_t i = 0; i < c->part; i++)
            to[i] = neutral(c->f->kind);
        status = fold_codes(c, c->rows * p / c->parts,
                            c->rows * (p + 1) / c->parts, to);
    }
    return status;
}

/* The groups first .. last - 1. */
static gpu_status join_parts(void *context, int64_t first, int64_t last)
{
    const code_fold *c = context;
    gpu_fold_kind kind = c->f->kind;
    double *to = c->accumulators + first * c->cols;
    for (int64_t i = 0; i < (last - first) * c->cols; i++) {
        double all = to[i];
        for (int64_t p = 1; p < c->parts; p++)
            all = joined(all, to[p * c->part + i], kind);
        to[i] = finished(all);
    }
    gpu_view made = {to, GPU_F64, last - first, c->cols, c->cols, 1};
    gpu_view there = gpu_cpu_part(&c->f->to, first, 0, last - first, c->cols);
    gpu_cpu_convert(&made, &there);
    return GPU_OK;
}

/* With room for c's accumulators, and behind them for about. */
static gpu_status fold_in(code_fold *c, double *room)
{
    int64_t groups = c->f->groups;
    c->accumulators = room;
    c->about = room + c->parts * c->part;
    if (c->f->kind == GPU_FOLD_SPREAD) {
        gpu_view dense = {c->about, GPU_F64, groups, c->cols, c->cols, 1};
        gpu_cpu_convert(&c->f->about, &dense);
        memset(c->about + groups * c->cols, 0, (size_t)c->cols * sizeof *room);
    }
    gpu_status status =
        gpu_cpu_parallel(c->parts, c->rows * c->cols, fold_parts, c);
    return status == GPU_OK
               ? gpu_cpu_parallel(groups, c->parts * c->part, join_parts, c)
               : status;
}

/* The columns from `col` on, so many, which fit a piece. */
static gpu_status fold_some(const gpu_folding *f, int64_t col, int64_t cols)
{
    gpu_folding some = *f;
    code_fold c = {.f = &some,
                   .from = gpu_cpu_part(&f->from, 0, col, f->from.rows, cols),
                   .cols = cols,
                   .rows = f->from.rows,
                   .parts = f->from.rows >= WORTH_PARTS ? MOST_PARTS : 1,
                   .part = (f->groups + 1) * cols};
    some.to = gpu_cpu_part(&f->to, 0, col, f->groups, cols);
    if (f->kind == GPU_FOLD_SPREAD)
        some.about = gpu_cpu_part(&f->about, 0, col, f->groups, cols);
    while (c.parts > 1 && 2 * c.parts * f->groups > c.rows)
        c.parts /= 2;
    size_t bytes = (size_t)((c.parts + 1) * c.part) * sizeof(double);
    void *room;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    gpu_status status = fold_in(&c, room);
    gpu_cpu_free(NULL, room, bytes);
    return status;
}

static gpu_status fold_by_codes(const gpu_folding *f)
{
    enum { MOST = 64 };
    gpu_status status = GPU_OK;
    for (int64_t j = 0; j < f->from.cols && status == GPU_OK; j += MOST)
        status = fold_some(f, j, gpu_cpu_smaller(f->from.cols - j, MOST));
    return status;
}

/* --- by starts --------------------------------------------------------------
 * Each group's rows one after the other; long groups are cut. */

enum { CUT = 1 << 16 }; /* rows of a long group that are folded in one go */

typedef struct start_fold {
    const gpu_folding *f;
    int64_t rows, group, first, last; /* in order; of a long group: its rows */
    double *partial;                  /* of each of its cuts, by column */
} start_fold;

/* Where the group begins among the ordered rows, from 0. */
static int64_t start_of(const start_fold *s, int64_t group)
{
    double start = 0;
    gpu_view one = gpu_cpu_part(&s->f->starts, group, 0, 1, 1);
    gpu_view to = {&start, GPU_F64, 1, 1, 1, 1};
    gpu_cpu_convert(&one, &to);
    int64_t place = start >= 1 ? (int64_t)start - 1 : 0;
    return gpu_cpu_smaller(place, s->rows);
}

INLINE double fold_list(const void *data, gpu_dtype t, int64_t stride,
                        const int64_t *row, int64_t n, double so_far,
                        double about, gpu_fold_kind kind, int skips)
{
    const double *x = data;
    const float *single = data;
    for (int64_t i = 0; i < n; i++)
        so_far = with(so_far,
                      t == GPU_F64 ? x[row[i] * stride]
                                   : (double)single[row[i] * stride],
                      about, kind, skips);
    return so_far;
}

/* For macros that hand on a loop: into *result. */
INLINE void fold_list_into(double *result, const gpu_view *column,
                           const int64_t *row, int64_t n, double about,
                           gpu_fold_kind kind, int skips)
{
    *result = column->dtype == GPU_F64
                  ? fold_list(column->data, GPU_F64, column->row_stride, row, n,
                              *result, about, kind, skips)
                  : fold_list(column->data, GPU_F32, column->row_stride, row, n,
                              *result, about, kind, skips);
}

/* from's rows of the ordered ones first .. first + n - 1. */
static void load_rows(const start_fold *s, int64_t first, int64_t n,
                      int64_t *to)
{
    double x[PIECE];
    int64_t most = s->f->from.rows - 1;
    if (!s->f->places.data) {
        for (int64_t i = 0; i < n; i++)
            to[i] = first + i;
        return;
    }
    gpu_cpu_load(&s->f->places, first, n, GPU_F64, x);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = x[i] >= 1 ? (int64_t)x[i] - 1 : 0;
        to[i] = gpu_cpu_smaller(row, most);
    }
}

static double about_of(const gpu_folding *f, int64_t group, int64_t col)
{
    double about = 0;
    if (f->kind == GPU_FOLD_SPREAD) {
        gpu_view one = gpu_cpu_part(&f->about, group, col, 1, 1);
        gpu_view there = {&about, GPU_F64, 1, 1, 1, 1};
        gpu_cpu_convert(&one, &there);
    }
    return about;
}

/* The ordered rows first .. last - 1 of a group, each column to one of `to`. */
static gpu_status fold_ordered(const start_fold *s, int64_t group,
                               int64_t first, int64_t last, double *to)
{
    const gpu_folding *f = s->f;
    int64_t row[PIECE], cols = f->from.cols;
    for (int64_t j = 0; j < cols; j++)
        to[j] = neutral(f->kind);
    for (int64_t i = first, n; i < last; i += n) {
        n = gpu_cpu_smaller(last - i, PIECE);
        if (n == PIECE && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        load_rows(s, i, n, row);
        for (int64_t j = 0; j < cols; j++) {
            gpu_view column = gpu_cpu_part(&f->from, 0, j, f->from.rows, 1);
            double about = about_of(f, group, j);
            FOR_KIND(f, fold_list_into, &to[j], &column, row, n, about)
        }
    }
    return GPU_OK;
}

static void store_group(const start_fold *s, int64_t group, double *result)
{
    int64_t cols = s->f->from.cols;
    for (int64_t j = 0; j < cols; j++)
        gpu_cpu_store_one(&s->f->to, group, j, finished(result[j]));
}

/* Some of the ordered rows, those of several groups: all columns of so many
 * from the first-th on, row by row. */
typedef struct row_window {
    int64_t first, rows, most;
    double x[PIECE];
} row_window;

/* Rows from the first-th on, up to the last-th at most: they are far apart, and
 * on their way side by side. */
static void load_window(const start_fold *s, int64_t first, int64_t last,
                        row_window *w)
{
    const gpu_view *from = &s->f->from;
    int64_t row[PIECE], cols = from->cols;
    const double *wide = from->data;
    const float *narrow = from->data;
    w->first = first;
    w->rows = gpu_cpu_smaller(last - first, w->most);
    load_rows(s, first, w->rows, row);
    int64_t down = from->row_stride, across = from->col_stride;
    if (from->dtype == GPU_F64)
        for (int64_t j = 0; j < cols; j++)
            for (int64_t i = 0; i < w->rows; i++)
                w->x[i * cols + j] = wide[row[i] * down + j * across];
    else
        for (int64_t j = 0; j < cols; j++)
            for (int64_t i = 0; i < w->rows; i++)
                w->x[i * cols + j] = (double)narrow[row[i] * down + j * across];
}

/* For macros that hand on a loop: n numbers `step` apart, into *result. */
INLINE void fold_near_into(double *result, const double *x, int64_t step,
                           int64_t n, double about, gpu_fold_kind kind,
                           int skips)
{
    double so_far = *result;
    for (int64_t i = 0; i < n; i++)
        so_far = with(so_far, x[i * step], about, kind, skips);
    *result = so_far;
}

/* A group of the rows begin .. end - 1; others follow up to the last-th. */
static void fold_near(const start_fold *s, int64_t group, int64_t begin,
                      int64_t end, int64_t last, row_window *w, double *to)
{
    const gpu_folding *f = s->f;
    int64_t cols = f->from.cols;
    for (int64_t j = 0; j < cols; j++)
        to[j] = neutral(f->kind);
    for (int64_t i = begin, n; i < end; i += n) {
        if (i < w->first || i >= w->first + w->rows)
            load_window(s, i, last, w);
        n = gpu_cpu_smaller(end, w->first + w->rows) - i;
        for (int64_t j = 0; j < cols; j++) {
            const double *x = w->x + (i - w->first) * cols + j;
            double about = about_of(f, group, j);
            FOR_KIND(f, fold_near_into, &to[j], x, cols, n, about)
        }
    }
}

static gpu_status fold_groups(void *context, int64_t first, int64_t last)
{
    const start_fold *s = context;
    int64_t cols = s->f->from.cols;
    row_window w = {.most = cols > 0 ? PIECE / cols : 0};
    void *room;
    size_t bytes = (size_t)cols * sizeof(double);
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return GPU_MEMORY;
    gpu_status status = GPU_OK;
    int64_t begin = start_of(s, first), rows = start_of(s, last);
    for (int64_t g = first; g < last && status == GPU_OK; g++) {
        int64_t end = start_of(s, g + 1);
        if (g % PIECE == 0 && gpu_cpu_interrupted())
            status = GPU_INTERRUPTED;
        if (status == GPU_OK && end - begin <= CUT) {
            if (w.most > 0)
                fold_near(s, g, begin, end, rows, &w, room);
            else
                status = fold_ordered(s, g, begin, end, room);
            store_group(s, g, room);
        }
        begin = end;
    }
    gpu_cpu_free(NULL, room, bytes);
    return status;
}

static gpu_status fold_cuts(void *context, int64_t first, int64_t last)
{
    const start_fold *s = context;
    gpu_status status = GPU_OK;
    for (int64_t c = first; c < last && status == GPU_OK; c++) {
        int64_t from = s->first + c * CUT;
        int64_t to = gpu_cpu_smaller(from + CUT, s->last);
        status = fold_ordered(s, s->group, from, to,
                              s->partial + c * s->f->from.cols);
    }
    return status;
}

static gpu_status fold_long(start_fold *s)
{
    int64_t cols = s->f->from.cols;
    int64_t cuts = gpu_cpu_pieces(s->last - s->first, CUT);
    size_t bytes = (size_t)(cuts * cols) * sizeof(double);
    void *room;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    s->partial = room;
    gpu_status status =
        gpu_cpu_parallel(cuts, (s->last - s->first) * cols, fold_cuts, s);
    for (int64_t c = 1; c < cuts; c++)
        for (int64_t j = 0; j < cols; j++)
            s->partial[j] =
                joined(s->partial[j], s->partial[c * cols + j], s->f->kind);
    if (status == GPU_OK)
        store_group(s, s->group, s->partial);
    gpu_cpu_free(NULL, room, bytes);
    return status;
}

/* --- medians --------------------------------------------------------------
 * A group's elements are cut by one of them until the middle is alone. */

static void exchange(double *a, double *b)
{
    double x = *a;
    *a = *b;
    *b = x;
}

static double middle_of(double a, double b, double c)
{
    return a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
}

/* x[k] becomes what stands there in order, those before it are not larger and
 * those behind not smaller. Source: Hoare, Find (Algorithm 65), 1961. */
static void select_place(double *x, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        double pivot = middle_of(x[low], x[low + (high - low) / 2], x[high]);
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot)
                i++;
            while (x[j] > pivot)
                j--;
            if (i <= j)
                exchange(&x[i++], &x[j--]);
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return;
    }
}

/* Of n numbers, which change places; NaN of none. */
static double median(double *x, int64_t n)
{
    if (n == 0)
        return NAN;
    select_place(x, n, n / 2);
    if (n % 2 == 1)
        return x[n / 2];
    double below = x[0];
    for (int64_t i = 1; i < n / 2; i++)
        below = x[i] > below ? x[i] : below;
    return below == x[n / 2] ? below : below / 2 + x[n / 2] / 2;
}

/* Column j of the ordered rows begin .. end - 1: those that are numbers; 0
 * where NaN is among them and counts. */
static int load_numbers(const start_fold *s, int64_t begin, int64_t end,
                        int64_t j, double *to, int64_t *count)
{
    int64_t row[PIECE], n, found = 0;
    gpu_view from = gpu_cpu_part(&s->f->from, 0, j, s->f->from.rows, 1);
    const double *x = from.data;
    const float *single = from.data;
    for (int64_t i = begin; i < end; i += n) {
        n = gpu_cpu_smaller(end - i, PIECE);
        load_rows(s, i, n, row);
        for (int64_t k = 0; k < n; k++) {
            double value = from.dtype == GPU_F64
                               ? x[row[k] * from.row_stride]
                               : (double)single[row[k] * from.row_stride];
            to[found] = value;
            found += value == value;
        }
    }
    *count = found;
    return s->f->skips_nan || found == end - begin;
}

static gpu_status median_groups(void *context, int64_t first, int64_t last)
{
    const start_fold *s = context;
    void *room = NULL;
    size_t bytes = 0;
    gpu_status status = GPU_OK;
    for (int64_t g = first; g < last && status == GPU_OK; g++) {
        int64_t begin = start_of(s, g), end = start_of(s, g + 1), count;
        size_t needs = (size_t)(end - begin) * sizeof(double);
        if (gpu_cpu_interrupted())
            status = GPU_INTERRUPTED;
        if (needs > bytes) {
            if (room)
                gpu_cpu_free(NULL, room, bytes);
            bytes = 2 * needs;
            if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
                return GPU_MEMORY;
        }
        for (int64_t j = 0; j < s->f->from.cols && status == GPU_OK; j++) {
            double x = NAN;
            if (end > begin && load_numbers(s, begin, end, j, room, &count))
                x = median(room, count);
            gpu_cpu_store_one(&s->f->to, g, j, x);
        }
    }
    if (room)
        gpu_cpu_free(NULL, room, bytes);
    return status;
}

static gpu_status fold_by_starts(const gpu_folding *f)
{
    start_fold s = {.f = f,
                    .rows = f->places.data ? f->places.rows : f->from.rows};
    if (f->kind == GPU_FOLD_MEDIAN)
        return gpu_cpu_parallel(f->groups, 4 * s.rows * f->from.cols,
                                median_groups, &s);
    gpu_status status =
        gpu_cpu_parallel(f->groups, s.rows * f->from.cols, fold_groups, &s);
    if (s.rows <= CUT)
        return status;
    int64_t begin = start_of(&s, 0);
    for (int64_t g = 0; g < f->groups && status == GPU_OK; g++) {
        int64_t end = start_of(&s, g + 1);
        s.group = g;
        s.first = begin;
        s.last = end;
        if (end - begin > CUT)
            status = fold_long(&s);
        begin = end;
    }
    return status;
}

gpu_status gpu_cpu_fold(void *device, const gpu_folding *f)
{
    (void)device;
    return f->codes.data ? fold_by_codes(f) : fold_by_starts(f);
}
