/* Elements by their rank, without sorting what is not asked for: quantiles.
 *
 * A sample says between which two values the wanted element lies, all but
 * surely; one pass counts what is below them and keeps what is between. Lines
 * that fit a cache are looked at one by one, others by all cores. What comes is
 * the same whatever the sample was.
 *
 * Source: Floyd and Rivest, Expected time bounds for selection, 1975. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"
#include "vector.h"

enum {
    FEW = 48,           /* elements that are compared with each other, */
    SORTED = 400,       /* or sorted, where vectors do that */
    PIECE = 2048,       /* elements at a time */
    MOST_SAMPLED = 512, /* of a line in a cache, */
    LONG_SAMPLE = 2048, /* of a longer one */
    LONG_LINE = 1 << 17,
    BAND = 16, /* lines that are turned at a time, where memory crosses them, */
    BAND_ROOM = 1 << 22 /* if they have no more elements */
};

#define FIRST_PLACE 0x9e3779b97f4a7c15

/* --- samples ---------------------------------------------------------------
 */

/* low, high: ranks in the sorted sample, -1 and size where there is no bound.
 */
typedef struct sampling {
    int64_t n, size, low, high;
    uint64_t place;
} sampling;

/* The bounds of a rank of n lie so many standard deviations beside it. */
static void place_bounds(sampling *s, int64_t n, int64_t rank, int pair,
                         double deviations)
{
    double share = (double)s->size / (double)n;
    double at = ((double)rank + 0.5) * share;
    double beside = deviations * sqrt(at * (1 - at / (double)s->size)) + 1;
    s->low = at - beside < 0 ? -1 : (int64_t)(at - beside);
    at += pair * share;
    s->high = at + beside >= (double)s->size ? s->size : (int64_t)(at + beside);
}

static sampling begin_sampling(int64_t n, int64_t rank, int pair)
{
    sampling s = {.n = n, .size = n / 16, .place = FIRST_PLACE};
    s.size = s.size < 16 ? 16 : s.size;
    s.size = gpu_cpu_smaller(s.size, MOST_SAMPLED);
    place_bounds(&s, n, rank, pair, 1.5);
    return s;
}

/* Places that repeat with n alone. */
static int64_t next_place(sampling *s)
{
    s->place = s->place * 6364136223846793005 + 1442695040888963407;
    return (int64_t)((s->place >> 33) * (uint64_t)s->n >> 31);
}

/* --- what is wanted --------------------------------------------------------
 */

typedef struct selection {
    gpu_view from, to;     /* lines are rows */
    const int64_t *places; /* rising */
    int64_t count;
    int spreads_nan;
} selection;

/* Is the next place beside this one, of so many elements? */
static int is_pair(const selection *s, int64_t i, int64_t elements)
{
    return i + 1 < s->count && s->places[i + 1] == s->places[i] + 1 &&
           s->places[i + 1] < elements;
}

/* One line in its pass. Bounds are inclusive. */
typedef struct long_line {
    gpu_view v; /* n elements, of any shape */
    int64_t n;
    int is_plain; /* the elements lie as they are counted */
    double low, high;
    void *items; /* what lies between them, as far as there is room */
    int64_t room;
    atomic_llong below, nans, inside;
} long_line;

/* --- first elements --------------------------------------------------------
 */

enum {
    FEW_FIRST = 64,
    MANY_FIRST = 256, /* without their places */
    MOST_FIRST = 1 << 14,
    BESIDE = 16
};

/* An element that may be wanted: itself, or its negative, as the order rises;
 * and its place in its line. */
typedef struct first_item {
    double key;
    int64_t place;
} first_item;

/* Of a long line: what is no farther in the order than the bound, as far as
 * there is room. */
typedef struct first_line {
    const long_line *l;
    double bound;
    int descending;
    int64_t room;
    first_item *item;
    atomic_llong found;
} first_line;

#define PASTE(a, b) a##_##b
#define T float
#define COUNT int32_t
#define TYPE GPU_F32
#define TYPED(name) PASTE(name, f32)
#define neighbour_f32 nextafterf
#include "select_body.h"
#define T double
#define COUNT int64_t
#define TYPE GPU_F64
#define TYPED(name) PASTE(name, f64)
#define neighbour_f64 nextafter
#include "select_body.h"

static gpu_dtype type_of(const gpu_view *v)
{
    return v->dtype == GPU_F64 ? GPU_F64 : GPU_F32;
}

/* --- a long line, by all cores ---------------------------------------------
 */

static gpu_status sift_pieces(void *context, int64_t first, int64_t last)
{
    long_line *l = context;
    for (int64_t piece = first; piece < last; piece++) {
        int64_t from = piece * PIECE, n = gpu_cpu_smaller(l->n - from, PIECE);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (type_of(&l->v) == GPU_F64)
            sift_f64(l, from, n);
        else
            sift_f32(l, from, n);
    }
    return GPU_OK;
}

static gpu_status sift_line(long_line *l)
{
    l->below = l->nans = l->inside = 0;
    return gpu_cpu_parallel(gpu_cpu_pieces(l->n, PIECE), l->n, sift_pieces, l);
}

/* Room for so many items, and as many beside them. */
static gpu_status make_room(long_line *l, int64_t items)
{
    size_t size = gpu_cpu_size(type_of(&l->v));
    if (l->items)
        gpu_cpu_free(NULL, l->items, (size_t)l->room * size);
    l->room = items;
    l->items = NULL;
    return gpu_cpu_alloc(NULL, (size_t)items * size, &l->items);
}

/* Bounds of f32 stay f32's. */
static double beyond(const long_line *l, double value, double towards)
{
    if (type_of(&l->v) == GPU_F64)
        return nextafter(value, towards);
    return (double)nextafterf((float)value, (float)towards);
}

/* Moves the bounds where they missed the wanted ranks; 0: they did not. */
static int move_bounds(long_line *l, int64_t rank, int pair)
{
    int64_t below = l->below, upto = below + l->inside, last = rank + pair;
    double infinite = (double)INFINITY;
    if (rank >= below && last < upto)
        return 0;
    if (last < below) {
        l->high = beyond(l, l->low, -infinite);
        l->low = -infinite;
    } else if (rank >= upto) {
        l->low = beyond(l, l->high, infinite);
        l->high = infinite;
    } else if (rank < below)
        l->low = -infinite;
    else
        l->high = infinite;
    return 1;
}

static void pick_items(long_line *l, int64_t rank, int pair, double *to)
{
    if (type_of(&l->v) == GPU_F64) {
        pick_f64(l->items, l->inside, rank, pair, l->items, to);
        return;
    }
    float out[2];
    pick_f32(l->items, l->inside, rank, pair, l->items, out);
    to[0] = (double)out[0];
    to[1] = (double)out[1];
}

/* The element at rank, and the next one of a pair. NaN ranks last, or spreads.
 */
static gpu_status select_one(const selection *s, long_line *l, int64_t rank,
                             int pair, double *to)
{
    to[0] = to[1] = (double)NAN;
    if (type_of(&l->v) == GPU_F64)
        bound_f64(l, rank, pair);
    else
        bound_f32(l, rank, pair);
    for (;;) {
        gpu_status status = sift_line(l);
        if (status != GPU_OK)
            return status;
        int64_t numbers = l->n - l->nans;
        if (rank + pair >= numbers || (s->spreads_nan && l->nans > 0))
            return GPU_OK; /* of a pair both are numbers: see is_pair */
        if (move_bounds(l, rank, pair))
            continue;
        if (l->low == l->high) {
            to[0] = to[1] = l->low;
            return GPU_OK;
        }
        if (l->inside <= l->room)
            break;
        status = make_room(l, l->inside);
        if (status != GPU_OK)
            return status;
    }
    pick_items(l, rank - l->below, pair, to);
    return GPU_OK;
}

static gpu_status select_long(const selection *s, const gpu_view *v,
                              int64_t line)
{
    int64_t n = v->rows * v->cols;
    long_line l = {.v = *v, .n = n};
    double to[2];
    l.is_plain = v->rows == 1 && v->col_stride == 1 && v->dtype != GPU_BOOL;
    gpu_status status = make_room(&l, n / 6);
    for (int64_t i = 0; i < s->count && status == GPU_OK; i++) {
        /* NaN may be at the second place of a pair alone: one at a time then */
        int pair = is_pair(s, i, n);
        status = select_one(s, &l, s->places[i], pair, to);
        if (status == GPU_OK && pair && to[0] != to[0]) {
            pair = 0;
            status = select_one(s, &l, s->places[i], 0, to);
        }
        for (int k = 0; k <= pair && status == GPU_OK; k++)
            gpu_cpu_store_one(&s->to, line, i + k, to[k]);
        i += pair;
    }
    if (l.items)
        gpu_cpu_free(NULL, l.items,
                     (size_t)l.room * gpu_cpu_size(type_of(&l.v)));
    return status;
}

/* --- lines one by one ------------------------------------------------------
 */

static void select_line(const selection *s, int64_t line, const void *x,
                        void *room, double *to)
{
    int64_t n = s->from.cols;
    if (type_of(&s->from) == GPU_F64)
        pick_line_f64(s, x, n, room, to);
    else
        pick_line_f32(s, x, n, room, to);
    for (int64_t i = 0; i < s->count; i++)
        gpu_cpu_store_one(&s->to, line, i, to[i]);
}

/* Room of a thread: what select_line needs, a result, and a band of lines. */
static gpu_status select_lines(void *context, int64_t first, int64_t last)
{
    const selection *s = context;
    int64_t n = s->from.cols;
    gpu_dtype type = type_of(&s->from);
    size_t size = gpu_cpu_size(type), line_bytes = (size_t)n * size;
    size_t results = ((size_t)s->count + 1) * sizeof(double);
    int is_plain = s->from.col_stride == 1 && s->from.dtype == type;
    int64_t step = is_plain ? 1 : gpu_cpu_smaller(BAND, BAND_ROOM / n + 1);
    size_t bytes = results + (size_t)(is_plain ? 2 : 2 + step) * line_bytes;
    void *memory;
    if (gpu_cpu_alloc(NULL, bytes, &memory) != GPU_OK)
        return GPU_MEMORY;
    char *room = (char *)memory + results, *band = room + 2 * line_bytes;
    gpu_status status = GPU_OK;
    for (int64_t line = first; line < last && status == GPU_OK; line += step) {
        int64_t lines = gpu_cpu_smaller(last - line, step);
        gpu_view some = gpu_cpu_part(&s->from, line, 0, lines, n);
        gpu_view dense = {band, type, lines, n, n, 1};
        const char *x = is_plain ? some.data : band;
        if (!is_plain)
            gpu_cpu_convert(&some, &dense);
        for (int64_t i = 0; i < lines; i++)
            select_line(s, line + i, x + (size_t)i * line_bytes, room, memory);
        if (gpu_cpu_interrupted())
            status = GPU_INTERRUPTED;
    }
    gpu_cpu_free(NULL, memory, bytes);
    return status;
}

/* All elements of a view are one line. */
static gpu_status select_of_all(selection *s)
{
    void *memory = NULL;
    gpu_status status;
    s->from = gpu_cpu_flat(s->from);
    s->to = gpu_cpu_turned(s->to);
    if (s->from.rows > 1 && s->from.rows * s->from.cols < LONG_LINE) {
        size_t bytes = gpu_cpu_view_bytes(&s->from);
        status = gpu_cpu_make_dense(&s->from, 1, &memory);
        s->from = gpu_cpu_flat(s->from);
        if (status == GPU_OK)
            status = select_lines(s, 0, 1);
        if (memory)
            gpu_cpu_free(NULL, memory, bytes);
        return status;
    }
    return s->from.cols < LONG_LINE && s->from.rows == 1
               ? select_lines(s, 0, 1)
               : select_long(s, &s->from, 0);
}

gpu_status gpu_cpu_select(void *device, int axis, int spreads_nan,
                          const gpu_view *from, const int64_t *places,
                          int64_t count, const gpu_view *to)
{
    (void)device;
    selection s = {*from, *to, places, count, spreads_nan};
    gpu_status status = GPU_OK;
    if (axis == 0) {
        status = select_of_all(&s);
        return status == GPU_OK ? status : gpu_cpu_stop(status);
    }
    if (axis == 1) {
        s.from = gpu_cpu_turned(s.from);
        s.to = gpu_cpu_turned(s.to);
    }
    int64_t n = s.from.cols, all = s.from.rows * n;
    if (n < LONG_LINE || s.from.rows >= 4 * gpu_cpu_threads())
        return gpu_cpu_parallel(s.from.rows, all, select_lines, &s);
    for (int64_t i = 0; i < s.from.rows && status == GPU_OK; i++) {
        gpu_view line = gpu_cpu_part(&s.from, i, 0, 1, n);
        status = select_long(&s, &line, i);
    }
    return status == GPU_OK ? status : gpu_cpu_stop(status);
}

/* --- the first elements of lines -------------------------------------------
 * Of a line in a cache so many are kept in order as are wanted. Of a long one
 * what reaches an element of a sample that is all but surely behind the last
 * wanted one is kept, and sorted: little as a rule. */

/* Lines are rows; of to and order one may have no data. */
typedef struct first_job {
    gpu_view from, to, order;
    int64_t count;
    int descending;
    atomic_int is_missed; /* a line has fewer numbers than are wanted */
} first_job;

static int compare_items(const void *a, const void *b)
{
    const first_item *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* The element itself, as zeros of both signs have one key. */
static double value_at(const gpu_view *from, int64_t line, int64_t place)
{
    int64_t at = line * from->row_stride + place * from->col_stride;
    return from->dtype == GPU_F64 ? ((const double *)from->data)[at]
                                  : (double)((const float *)from->data)[at];
}

static void store_first(const first_job *f, int64_t line,
                        const first_item *item)
{
    double value[FEW_FIRST], place[FEW_FIRST];
    int64_t done = 0;
    while (done < f->count) {
        int64_t n = gpu_cpu_smaller(f->count - done, FEW_FIRST);
        for (int64_t i = 0; i < n; i++) {
            place[i] = (double)item[done + i].place;
            value[i] = value_at(&f->from, line, item[done + i].place);
        }
        if (f->to.data) {
            gpu_view to = gpu_cpu_part(&f->to, line, done, 1, n);
            gpu_cpu_store(&to, 0, n, GPU_F64, value);
        }
        if (f->order.data) {
            gpu_view to = gpu_cpu_part(&f->order, line, done, 1, n);
            gpu_cpu_store(&to, 0, n, GPU_F64, place);
        }
        done += n;
    }
}

static int64_t first_of(const first_job *f, const void *x, first_item *item)
{
    int64_t n = f->from.cols;
    return type_of(&f->from) == GPU_F64
               ? first_of_line_f64(x, n, f->count, f->descending, item)
               : first_of_line_f32(x, n, f->count, f->descending, item);
}

static gpu_status first_of_lines(void *context, int64_t first, int64_t last)
{
    first_job *f = context;
    gpu_dtype type = type_of(&f->from);
    int64_t n = f->from.cols;
    size_t line_bytes = (size_t)n * gpu_cpu_size(type);
    int is_plain = f->from.col_stride == 1;
    int64_t step = is_plain ? 1 : gpu_cpu_smaller(BAND, BAND_ROOM / n + 1);
    size_t bytes = is_plain ? 1 : (size_t)step * line_bytes;
    first_item item[FEW_FIRST + 1];
    gpu_status status = GPU_OK;
    void *band;
    if (gpu_cpu_alloc(NULL, bytes, &band) != GPU_OK)
        return GPU_MEMORY;
    for (int64_t line = first; line < last && status == GPU_OK; line += step) {
        int64_t lines = gpu_cpu_smaller(last - line, step);
        gpu_view some = gpu_cpu_part(&f->from, line, 0, lines, n);
        gpu_view dense = {band, type, lines, n, n, 1};
        const char *x = is_plain ? some.data : band;
        if (!is_plain)
            gpu_cpu_convert(&some, &dense);
        for (int64_t i = 0; i < lines; i++)
            if (first_of(f, x + (size_t)i * line_bytes, item) == f->count)
                store_first(f, line + i, item);
            else
                f->is_missed = 1;
        if (gpu_cpu_interrupted())
            status = GPU_INTERRUPTED;
    }
    gpu_cpu_free(NULL, band, bytes);
    return status;
}

static gpu_status gather_pieces(void *context, int64_t first, int64_t last)
{
    first_line *g = context;
    for (int64_t piece = first; piece < last; piece++) {
        int64_t from = piece * PIECE;
        int64_t n = gpu_cpu_smaller(g->l->n - from, PIECE);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (type_of(&g->l->v) == GPU_F64)
            gather_f64(g, from, n);
        else
            gather_f32(g, from, n);
    }
    return GPU_OK;
}

static gpu_status first_of_long(first_job *f, int64_t line, first_line *g)
{
    gpu_view v = gpu_cpu_part(&f->from, line, 0, 1, f->from.cols);
    long_line l = {.v = v, .n = v.cols, .is_plain = v.col_stride == 1};
    int64_t rank = f->descending ? l.n - f->count : f->count - 1;
    if (type_of(&v) == GPU_F64)
        bound_f64(&l, rank, 0);
    else
        bound_f32(&l, rank, 0);
    g->l = &l;
    g->bound = f->descending ? l.low : l.high;
    g->found = 0;
    gpu_status status =
        gpu_cpu_parallel(gpu_cpu_pieces(l.n, PIECE), l.n, gather_pieces, g);
    if (status != GPU_OK)
        return status;
    int64_t found = g->found;
    if (found < f->count || found > g->room)
        return GPU_UNSUPPORTED;
    qsort(g->item, (size_t)found, sizeof *g->item, compare_items);
    store_first(f, line, g->item);
    return GPU_OK;
}

/* Room for what a sample lets through, which may be some times as much. */
static gpu_status first_of_long_lines(first_job *f)
{
    first_line g = {.descending = f->descending,
                    .room = 4 * f->count + f->from.cols / 64};
    size_t bytes = (size_t)g.room * sizeof *g.item;
    gpu_status status = GPU_OK;
    void *room;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return GPU_MEMORY;
    g.item = room;
    for (int64_t i = 0; i < f->from.rows && status == GPU_OK; i++)
        status = first_of_long(f, i, &g);
    gpu_cpu_free(NULL, room, bytes);
    return status;
}

gpu_status gpu_cpu_first(void *device, int axis, int descending,
                         const gpu_view *from, const gpu_view *to,
                         const gpu_view *order)
{
    (void)device;
    first_job f = {.from = *from, .descending = descending};
    if (to)
        f.to = *to;
    if (order)
        f.order = *order;
    if (axis == 1) {
        f.from = gpu_cpu_turned(f.from);
        f.to = gpu_cpu_turned(f.to);
        f.order = gpu_cpu_turned(f.order);
    }
    int64_t n = f.from.cols, all = f.from.rows * n;
    int is_long = n >= LONG_LINE && f.from.rows < 4 * gpu_cpu_threads();
    f.count = to ? f.to.cols : f.order.cols;
    gpu_status status = GPU_UNSUPPORTED;
    if (!order && f.count > MANY_FIRST)
        status = gpu_cpu_first_numbers(descending, &f.from, &f.to);
    if (status != GPU_UNSUPPORTED)
        return status;
    if (is_long && f.count <= MOST_FIRST && f.count <= n / 16)
        status = first_of_long_lines(&f);
    else if (!is_long && f.count <= FEW_FIRST)
        status = gpu_cpu_parallel(f.from.rows, all, first_of_lines, &f);
    if (status == GPU_OK && f.is_missed)
        status = GPU_UNSUPPORTED;
    return status == GPU_OK || status == GPU_UNSUPPORTED ? status
                                                         : gpu_cpu_stop(status);
}
