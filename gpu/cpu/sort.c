/* Stable sorting along an axis. Where places are wanted values become keys in
 * the right order, each paired with its own; else numbers are all there is, and
 * sorted in vectors where the processor has them (sort_in_vectors.c). Else
 * short lines are merged, and longer ones go through a radix sort that skips
 * the passes that say nothing. A line that fills no cache is first cut by
 * splitters from a sample into buckets that do, which all cores sort.
 *
 * Source of the latter: Frazer and McKellar, Samplesort: a sampling approach to
 * minimal storage tree sorting, 1970. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "sort_parts.h"
#include "vector.h"

enum {
    RUN = 16, /* sorted by insertion */
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS,
    BAND = 16,        /* lines that are turned at a time, */
    BESIDE = 1 << 14, /* of views of more bytes */
    POLL = 1 << 18
};

/* How many items have each digit, by pass: room of a thread, on its stack. */
typedef int64_t digit_counts[PASSES * DIGITS];

typedef struct pair {
    uint64_t key, place;
} pair;

static size_t item_size(item_kind kind)
{
    return kind == SHORT_NUMBERS ? 4 : kind == PAIRS ? sizeof(pair) : 8;
}

/* --- sorting items ---------------------------------------------------------
 * The kind is known where these functions are put together. */

/* The bits of a number so that they rise with it: -0 is below 0. */
INLINE uint64_t rising(uint64_t bits)
{
    return bits ^ ((uint64_t)((int64_t)bits >> 63) | SIGN);
}

INLINE uint32_t short_rising(uint32_t bits)
{
    return bits ^ ((uint32_t)((int32_t)bits >> 31) | SHORT_SIGN);
}

/* What items are ordered by; those of SHORT_PAIRS by their places as well. */
INLINE uint64_t key_at(const char *items, int64_t i, item_kind kind)
{
    uint32_t low;
    uint64_t key;
    if (kind == SHORT_NUMBERS) {
        memcpy(&low, items + (size_t)i * sizeof low, sizeof low);
        return short_rising(low);
    }
    memcpy(&key, items + (size_t)i * item_size(kind), sizeof key);
    return kind == NUMBERS ? rising(key) : key;
}

INLINE void move_item(char *to, int64_t j, const char *from, int64_t i,
                      item_kind kind)
{
    size_t size = item_size(kind);
    memcpy(to + (size_t)j * size, from + (size_t)i * size, size);
}

INLINE void insertion_sort(char *p, int64_t n, item_kind kind)
{
    char x[sizeof(pair)];
    for (int64_t i = 1; i < n; i++) {
        uint64_t key = key_at(p, i, kind);
        int64_t j = i;
        move_item(x, 0, p, i, kind);
        for (; j > 0 && key_at(p, j - 1, kind) > key; j--)
            move_item(p, j, p, j - 1, kind);
        move_item(p, j, x, 0, kind);
    }
}

INLINE void merge_runs(const char *a, int64_t na, const char *b, int64_t nb,
                       char *to, item_kind kind)
{
    int64_t i = 0, j = 0;
    size_t size = item_size(kind);
    while (i < na && j < nb)
        if (key_at(b, j, kind) < key_at(a, i, kind))
            move_item(to, i + j, b, j, kind), j++;
        else
            move_item(to, i + j, a, i, kind), i++;
    if (i < na)
        memcpy(to + (size_t)(i + j) * size, a + (size_t)i * size,
               (size_t)(na - i) * size);
    else if (j < nb)
        memcpy(to + (size_t)(i + j) * size, b + (size_t)j * size,
               (size_t)(nb - j) * size);
}

/* Returns whichever of p and spare holds the result. */
INLINE char *merge_sort(char *p, char *spare, int64_t n, item_kind kind)
{
    size_t size = item_size(kind);
    for (int64_t i = 0; i < n; i += RUN)
        insertion_sort(p + (size_t)i * size, gpu_cpu_smaller(n - i, RUN), kind);
    for (int64_t width = RUN; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t na = gpu_cpu_smaller(n - i, width),
                    nb = gpu_cpu_smaller(n - i - na, width);
            const char *a = p + (size_t)i * size;
            merge_runs(a, na, a + (size_t)na * size, nb,
                       spare + (size_t)i * size, kind);
        }
        char *t = p;
        p = spare;
        spare = t;
    }
    return p;
}

/* A digit of the lower or the upper half of a key. Keys of 32 bits are the
 * upper half of SHORT_PAIRS; their places need no passes, as items that are
 * equal stay in their order. */
INLINE unsigned digit(uint64_t key, int pass, int is_upper)
{
    return (unsigned)(key >> (pass * DIGIT_BITS + 32 * is_upper)) &
           (DIGITS - 1);
}

INLINE gpu_status count_digits(const sorting *s, const char *p, int64_t n,
                               int64_t *count, int is_upper, item_kind kind)
{
    memset(count, 0, sizeof(digit_counts));
    for (int64_t first = 0; first < n; first += POLL) {
        int64_t last = first + gpu_cpu_smaller(n - first, POLL);
        if (!goes_on(s, last - first))
            return GPU_INTERRUPTED;
        for (int64_t i = first; i < last; i++) {
            uint64_t key = key_at(p, i, kind);
#pragma GCC unroll 4
            for (int pass = 0; pass < PASSES; pass++)
                count[pass * DIGITS + (int)digit(key, pass, is_upper)]++;
        }
    }
    return GPU_OK;
}

INLINE gpu_status spread(const sorting *s, const char *p, int64_t n, int pass,
                         int64_t *count, char *to, int is_upper, item_kind kind)
{
    int64_t start = 0;
    for (int d = 0; d < DIGITS; d++) {
        int64_t length = count[d];
        count[d] = start;
        start += length;
    }
    for (int64_t first = 0; first < n; first += POLL) {
        int64_t last = first + gpu_cpu_smaller(n - first, POLL);
        if (!goes_on(s, last - first))
            return GPU_INTERRUPTED;
        for (int64_t i = first; i < last; i++) {
            unsigned d = digit(key_at(p, i, kind), pass, is_upper);
            move_item(to, count[d]++, p, i, kind);
        }
    }
    return GPU_OK;
}

/* Fresh memory comes when it is first written to, page by page: the first
 * pass would ask for nearly all of it within its first few elements. */
static gpu_status take_pages(const sorting *s, char *p, size_t bytes)
{
    enum { PAGE = 4096, PART = PAGE * 64 };
    for (size_t i = 0; i < bytes; i += PAGE) {
        if (i % PART == 0 && !goes_on(s, 0))
            return GPU_INTERRUPTED;
        p[i] = 0;
    }
    return GPU_OK;
}

/* By one half of the keys. */
INLINE gpu_status radix_sort(const sorting *s, char *p, char *spare, int64_t n,
                             int64_t *count, int is_upper, item_kind kind,
                             char **result)
{
    if (count_digits(s, p, n, count, is_upper, kind) != GPU_OK)
        return GPU_INTERRUPTED;
    for (int pass = 0; pass < PASSES; pass++) {
        int64_t *of_pass = count + (int64_t)pass * DIGITS;
        if (of_pass[digit(key_at(p, 0, kind), pass, is_upper)] == n)
            continue;
        if (spread(s, p, n, pass, of_pass, spare, is_upper, kind) != GPU_OK)
            return GPU_INTERRUPTED;
        char *t = p;
        p = spare;
        spare = t;
    }
    *result = p;
    return GPU_OK;
}

/* One run of items that are equal in the upper half, at `first` of p. */
INLINE gpu_status sort_run(const sorting *s, char *p, char *spare,
                           int64_t first, int64_t n, int64_t *count,
                           item_kind kind)
{
    size_t size = item_size(kind);
    char *run = p + (size_t)first * size, *sorted;
    char *room = spare + (size_t)first * size;
    if (n <= RUN) {
        insertion_sort(run, n, kind);
        return GPU_OK;
    }
    if (n <= SHORT_LINE)
        sorted = merge_sort(run, room, n, kind);
    else if (radix_sort(s, run, room, n, count, 0, kind, &sorted) != GPU_OK)
        return GPU_INTERRUPTED;
    if (sorted != run)
        memcpy(run, sorted, (size_t)n * size);
    return GPU_OK;
}

/* Sorted by the upper half, in which few items are equal as a rule. */
INLINE gpu_status sort_runs(const sorting *s, char *p, char *spare, int64_t n,
                            int64_t *count, item_kind kind)
{
    int64_t first = 0;
    uint64_t upper = key_at(p, 0, kind) >> 32;
    for (int64_t i = 1; i <= n; i++) {
        uint64_t next = i < n ? key_at(p, i, kind) >> 32 : 0;
        if (i < n && next == upper)
            continue;
        if (i - first > 1 &&
            sort_run(s, p, spare, first, i - first, count, kind) != GPU_OK)
            return GPU_INTERRUPTED;
        if (first / POLL != i / POLL && !goes_on(s, 0))
            return GPU_INTERRUPTED;
        first = i;
        upper = next;
    }
    return GPU_OK;
}

INLINE gpu_status sort_kind(const sorting *s, char *p, char *spare, int64_t n,
                            int64_t *count, item_kind kind, char **result)
{
    int is_short = kind == SHORT_NUMBERS || kind == SHORT_PAIRS;
    if ((kind == SHORT_NUMBERS || kind == NUMBERS) && n <= AT_ONCE &&
        gpu_cpu_vectors->sort[kind == NUMBERS]) {
        gpu_cpu_vectors->sort[kind == NUMBERS](p, (size_t)n);
        *result = p;
        return goes_on(s, n * (1 + PASSES)) ? GPU_OK : GPU_INTERRUPTED;
    }
    if (n <= SHORT_LINE) {
        *result = merge_sort(p, spare, n, kind);
        return GPU_OK;
    }
    if (take_pages(s, spare, (size_t)n * item_size(kind)) != GPU_OK ||
        radix_sort(s, p, spare, n, count, kind != SHORT_NUMBERS, kind,
                   result) != GPU_OK)
        return GPU_INTERRUPTED;
    return is_short ? GPU_OK
                    : sort_runs(s, *result, *result == p ? spare : p, n, count,
                                kind);
}

/* Sorts n items at p with room for as many at spare; *result is p or spare. */
static gpu_status sort_items(const sorting *s, char *p, char *spare, int64_t n,
                             int64_t *count, char **result)
{
    switch (s->kind) {
    case SHORT_NUMBERS:
        return sort_kind(s, p, spare, n, count, SHORT_NUMBERS, result);
    case NUMBERS:
        return sort_kind(s, p, spare, n, count, NUMBERS, result);
    case SHORT_PAIRS:
        return sort_kind(s, p, spare, n, count, SHORT_PAIRS, result);
    default:
        return sort_kind(s, p, spare, n, count, PAIRS, result);
    }
}

/* --- values with their places --------------------------------------------- */

VECTORS uint64_t gpu_cpu_keys_of_double(const double *x, int64_t n,
                                        int descending, uint64_t like,
                                        uint64_t *key)
{
    uint64_t turn = descending ? UINT64_MAX : 0, differ = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits;
        double value = x[i] + 0; /* -0 is 0 */
        memcpy(&bits, &value, sizeof bits);
        bits = (bits ^ (-(bits >> 63) | SIGN)) ^ turn;
        key[i] = x[i] != x[i] ? UINT64_MAX : bits;
        differ |= key[i] ^ like;
    }
    return differ;
}

VECTORS uint64_t gpu_cpu_keys_of_float(const float *x, int64_t n,
                                       int descending, uint64_t like,
                                       uint64_t *key)
{
    uint32_t turn = descending ? UINT32_MAX : 0, differ = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        float value = x[i] + 0;
        memcpy(&bits, &value, sizeof bits);
        bits = (bits ^ (-(bits >> 31) | SHORT_SIGN)) ^ turn;
        bits = x[i] != x[i] ? UINT32_MAX : bits;
        key[i] = bits;
        differ |= bits ^ (uint32_t)like;
    }
    return differ;
}

/* Items first .. last - 1 of a line. */
static gpu_status make_pairs(const sorting *s, const gpu_view *line,
                             int64_t first, int64_t last, char *items)
{
    piece value;
    uint64_t key[PIECE];
    pair *wide = (pair *)(void *)items;
    uint64_t *narrow = (uint64_t *)(void *)items;
    for (; first < last; first += PIECE) {
        int64_t n = gpu_cpu_smaller(last - first, PIECE);
        if (!goes_on(s, n))
            return GPU_INTERRUPTED;
        gpu_cpu_load(line, first, n, s->kind == PAIRS ? GPU_F64 : GPU_F32,
                     &value);
        if (s->kind == PAIRS)
            gpu_cpu_keys_of_double(value.d, n, s->descending, 0, key);
        else
            gpu_cpu_keys_of_float(value.f, n, s->descending, 0, key);
        for (int64_t i = 0; i < n; i++) {
            uint64_t place = (uint64_t)(first + i);
            if (s->kind == PAIRS)
                wide[place] = (pair){key[i], place};
            else
                narrow[place] = key[i] << 32 | place;
        }
    }
    return GPU_OK;
}

static int64_t place_at(const sorting *s, const char *items, int64_t i)
{
    if (s->kind == PAIRS)
        return (int64_t)((const pair *)(const void *)items)[i].place;
    return (int64_t)(((const uint64_t *)(const void *)items)[i] & UINT32_MAX);
}

/* The values come from the source by place: keys have lost the sign of zero
 * and what a NaN carries. */
static void take_values(const gpu_view *from, const int64_t *place, int64_t n,
                        piece *value)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at = place[i] * from->col_stride;
        if (from->dtype == GPU_F64)
            value->d[i] = ((const double *)from->data)[at];
        else if (from->dtype == GPU_F32)
            value->f[i] = ((const float *)from->data)[at];
        else
            value->b[i] = ((const uint8_t *)from->data)[at];
    }
}

void gpu_cpu_store_places(const gpu_view *from, const gpu_view *to,
                          const gpu_view *order, int64_t first, int64_t n,
                          const int64_t *place)
{
    piece value;
    if (to->data) {
        take_values(from, place, n, &value);
        gpu_cpu_store(to, first, n, from->dtype, &value);
    }
    int64_t i = 0;
    do
        value.d[i] = (double)place[i];
    while (++i < n);
    gpu_cpu_store(order, first, n, GPU_F64, &value);
}

/* Places first .. last - 1 of the results. */
static gpu_status store_pairs(const sorting *s, const gpu_view *from,
                              const gpu_view *to, const gpu_view *order,
                              int64_t first, int64_t last, const char *items)
{
    int64_t place[PIECE];
    for (; first < last; first += PIECE) {
        int64_t n = gpu_cpu_smaller(last - first, PIECE);
        if (!goes_on(s, n))
            return GPU_INTERRUPTED;
        for (int64_t i = 0; i < n; i++)
            place[i] = place_at(s, items, first + i);
        gpu_cpu_store_places(from, to, order, first, n, place);
    }
    return GPU_OK;
}

/* --- numbers alone ----------------------------------------------------------
 * Zeros of both signs, in whatever order they came, and NaN are put in the
 * order of the source afterwards. */

/* For each type: source to items, counting; and items to values, where the
 * order falls. */
#define TYPED(T, BITS, SIGN_BIT)                                            \
    VECTORS static void items_of_##T(const T *x, int64_t n, int descending, \
                                     T *item, oddities *o)                  \
    {                                                                       \
        BITS nans = 0, zero = 0, minus = 0;                                 \
        for (int64_t i = 0; i < n; i++) {                                   \
            BITS bits;                                                      \
            memcpy(&bits, &x[i], sizeof bits);                              \
            zero |= bits == 0;                                              \
            minus |= bits == (SIGN_BIT);                                    \
            nans += x[i] != x[i];                                           \
            T y = descending ? -x[i] : x[i];                                \
            item[i] = x[i] != x[i] ? (T)INFINITY : y;                       \
        }                                                                   \
        if (zero | minus)                                                   \
            atomic_fetch_or(&o->zeros, (int)(zero | minus << 1));           \
        if (nans)                                                           \
            atomic_fetch_add(&o->nans, (long long)nans);                    \
    }                                                                       \
    VECTORS static void turn_##T(const T *x, int64_t n, T *to)              \
    {                                                                       \
        for (int64_t i = 0; i < n; i++)                                     \
            to[i] = -x[i];                                                  \
    }
TYPED(float, uint32_t, SHORT_SIGN)
TYPED(double, uint64_t, SIGN)
#undef TYPED

gpu_status gpu_cpu_make_numbers(const sorting *s, const gpu_view *line,
                                int64_t first, int64_t last, char *items,
                                oddities *o)
{
    piece value;
    int is_wide = s->kind == NUMBERS;
    for (; first < last; first += PIECE) {
        int64_t n = gpu_cpu_smaller(last - first, PIECE);
        if (!goes_on(s, n))
            return GPU_INTERRUPTED;
        gpu_cpu_load(line, first, n, is_wide ? GPU_F64 : GPU_F32, &value);
        void *to = items + (size_t)first * item_size(s->kind);
        if (is_wide)
            items_of_double(value.d, n, s->descending, to, o);
        else
            items_of_float(value.f, n, s->descending, to, o);
    }
    return GPU_OK;
}

gpu_status gpu_cpu_store_numbers(const sorting *s, const gpu_view *to,
                                 int64_t first, int64_t last, const char *items)
{
    piece value;
    int is_wide = s->kind == NUMBERS;
    for (; first < last; first += PIECE) {
        int64_t n = gpu_cpu_smaller(last - first, PIECE);
        const void *from = items + (size_t)first * item_size(s->kind);
        if (!goes_on(s, n))
            return GPU_INTERRUPTED;
        if (s->descending && is_wide)
            turn_double(from, n, value.d);
        else if (s->descending)
            turn_float(from, n, value.f);
        gpu_cpu_store(to, first, n, is_wide ? GPU_F64 : GPU_F32,
                      s->descending ? &value : from);
    }
    return GPU_OK;
}

/* Where the first item stands that is not below `key`. */
static int64_t find_key(const sorting *s, const char *items, int64_t n,
                        uint64_t key)
{
    int64_t low = 0;
    while (low < n) {
        int64_t middle = low + (n - low) / 2;
        if (key_at(items, middle, s->kind) < key)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

int64_t gpu_cpu_find_zero(const sorting *s, const char *items, int64_t n)
{
    return find_key(s, items, n,
                    s->kind == NUMBERS ? rising(SIGN)
                                       : (uint64_t)short_rising(SHORT_SIGN));
}

static mixture find_mixture(const sorting *s, const char *items, int64_t n,
                            const oddities *o)
{
    mixture m = {-1, o->nans > 0 ? n - o->nans : -1};
    if (o->zeros == 3)
        m.zeros = gpu_cpu_find_zero(s, items, n);
    return m;
}

gpu_status gpu_cpu_mend_mixture(const sorting *s, const gpu_view *from,
                                const gpu_view *to, mixture m)
{
    piece value;
    gpu_dtype type = from->dtype;
    for (int64_t first = 0; first < from->cols; first += PIECE) {
        int64_t n = gpu_cpu_smaller(from->cols - first, PIECE);
        if (!goes_on(s, 0))
            return GPU_INTERRUPTED;
        gpu_cpu_load(from, first, n, type, &value);
        for (int64_t i = 0; i < n; i++) {
            double x = type == GPU_F64 ? value.d[i] : (double)value.f[i];
            const void *at = type == GPU_F64 ? (const void *)&value.d[i]
                                             : (const void *)&value.f[i];
            if (x == 0 && m.zeros >= 0 && m.zeros < to->cols)
                gpu_cpu_store(to, m.zeros++, 1, type, at);
            else if (x != x && m.nans >= 0)
                gpu_cpu_store(to, m.nans++, 1, type, at);
        }
    }
    return GPU_OK;
}

/* --- a line -----------------------------------------------------------------
 */

line_views gpu_cpu_line_of(const sorting *s, int64_t line, oddities *odd)
{
    int64_t n = s->from.cols;
    line_views v = {gpu_cpu_part(&s->from, line, 0, 1, n), s->to, s->order,
                    odd};
    if (s->to.data)
        v.to = gpu_cpu_part(&s->to, line, 0, 1, s->to.cols);
    if (s->order.data)
        v.order = gpu_cpu_part(&s->order, line, 0, 1, n);
    return v;
}

static gpu_status make_items(const sorting *s, const line_views *v,
                             int64_t first, int64_t last, char *items)
{
    return s->order.data
               ? make_pairs(s, &v->from, first, last, items)
               : gpu_cpu_make_numbers(s, &v->from, first, last, items, v->odd);
}

static gpu_status store_items(const sorting *s, const line_views *v,
                              int64_t first, int64_t last, const char *items)
{
    return s->order.data
               ? store_pairs(s, &v->from, &v->to, &v->order, first, last, items)
               : gpu_cpu_store_numbers(s, &v->to, first, last, items);
}

gpu_status gpu_cpu_end_line(const sorting *s, const line_views *v,
                            const char *items)
{
    if (s->order.data)
        return GPU_OK;
    mixture m = find_mixture(s, items, s->from.cols, v->odd);
    if (m.zeros < 0 && m.nans < 0)
        return GPU_OK;
    return gpu_cpu_mend_mixture(s, &v->from, &v->to, m);
}

/* room: of line_bytes. */
static gpu_status sort_by_passes(const sorting *s, int64_t line, char *room,
                                 int64_t *count)
{
    int64_t n = s->from.cols;
    size_t bytes = (size_t)n * item_size(s->kind);
    oddities odd = {0, 0};
    line_views v = gpu_cpu_line_of(s, line, &odd);
    char *sorted;
    gpu_status status = make_items(s, &v, 0, n, room);
    if (status == GPU_OK)
        status = sort_items(s, room, room + bytes, n, count, &sorted);
    if (status == GPU_OK)
        status = store_items(s, &v, 0, n, sorted);
    if (status == GPU_OK)
        status = gpu_cpu_end_line(s, &v, sorted);
    return status;
}

static size_t line_bytes(const sorting *s)
{
    return (size_t)s->from.cols * 2 * item_size(s->kind);
}

/* room: of line_bytes. */
static gpu_status sort_line(const sorting *s, int64_t line, char *room,
                            int64_t *count)
{
    gpu_status status = GPU_UNSUPPORTED;
    if (gpu_cpu_fits_packed(s) && s->from.cols <= AT_ONCE)
        status = gpu_cpu_sort_packed_line(s, line, room);
    return status == GPU_UNSUPPORTED ? sort_by_passes(s, line, room, count)
                                     : status;
}

/* --- a long line, on all cores ----------------------------------------------
 */

enum {
    LONG_LINE = 1 << 16,
    BUCKET = 1 << 17, /* items, about */
    MOST_LEVELS = 9,  /* of the tree of splitters */
    SAMPLES = 16,     /* a bucket */
    CHUNK = 1 << 16,  /* items at least */
    TOGETHER = 8      /* items that go down the tree side by side */
};

typedef struct long_line {
    const sorting *s;
    line_views v;
    oddities odd;
    int64_t n, chunk, chunks;
    int levels, buckets;
    uint64_t tree[1 << MOST_LEVELS]; /* splitters, from 1 on: those of the two
                                        halves below i at 2 i and 2 i + 1 */
    char *items, *spare;
    uint16_t *bucket; /* of each item */
    int64_t *count;   /* items by chunk and bucket, then where they go */
    int64_t start[(1 << MOST_LEVELS) + 1];
    uint64_t sample[SAMPLES << MOST_LEVELS];
} long_line;

static int64_t end_of_chunk(const long_line *l, int64_t chunk)
{
    return gpu_cpu_smaller((chunk + 1) * l->chunk, l->n);
}

static gpu_status make_chunks(void *context, int64_t first, int64_t last)
{
    const long_line *l = context;
    gpu_status status = GPU_OK;
    for (int64_t c = first; c < last && status == GPU_OK; c++) {
        int64_t from = c * l->chunk, to = end_of_chunk(l, c);
        status = make_items(l->s, &l->v, from, to, l->items);
        if (status == GPU_OK)
            status = take_pages(l->s,
                                l->spare + (size_t)from * item_size(l->s->kind),
                                (size_t)(to - from) * item_size(l->s->kind));
    }
    return status;
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The middle of sorted[low .. high - 1] is the splitter of node i. */
static void plant(long_line *l, const uint64_t *sorted, int i, int low,
                  int high)
{
    int middle = low + (high - low) / 2;
    if (i >= l->buckets)
        return;
    l->tree[i] = sorted[middle];
    plant(l, sorted, 2 * i, low, middle);
    plant(l, sorted, 2 * i + 1, middle, high);
}

/* A sample of places that repeat with the length alone. */
static void choose_splitters(long_line *l)
{
    uint64_t *sample = l->sample, place = 0x9e3779b97f4a7c15;
    int count = SAMPLES * l->buckets;
    for (int i = 0; i < count; i++) {
        place = place * 6364136223846793005 + 1442695040888963407;
        int64_t at = (int64_t)((place >> 33) * (uint64_t)l->n >> 31);
        sample[i] = key_at(l->items, at, l->s->kind);
    }
    qsort(l->sample, (size_t)count, sizeof *l->sample, compare_keys);
    plant(l, sample, 1, 0, count);
}

/* n items from the i-th on go down the tree, n known where this is put
 * together. */
INLINE void classify_some(const long_line *l, int64_t i, int n, int64_t *count,
                          item_kind kind)
{
    uint64_t key[TOGETHER];
    uint32_t node[TOGETHER];
    for (int k = 0; k < n; k++) {
        key[k] = key_at(l->items, i + k, kind);
        node[k] = 1;
    }
    for (int level = 0; level < l->levels; level++)
        for (int k = 0; k < n; k++)
            node[k] = 2 * node[k] + (key[k] > l->tree[node[k]]);
    for (int k = 0; k < n; k++) {
        uint32_t b = node[k] - (uint32_t)l->buckets;
        l->bucket[i + k] = (uint16_t)b;
        count[b]++;
    }
}

INLINE void classify(const long_line *l, int64_t first, int64_t last,
                     int64_t *count, item_kind kind)
{
    int64_t i = first;
    for (; i + TOGETHER <= last; i += TOGETHER)
        classify_some(l, i, TOGETHER, count, kind);
    for (; i < last; i++)
        classify_some(l, i, 1, count, kind);
}

static gpu_status classify_chunks(void *context, int64_t first, int64_t last)
{
    const long_line *l = context;
    for (int64_t c = first; c < last; c++) {
        int64_t *count = l->count + c * l->buckets;
        int64_t from = c * l->chunk, to = end_of_chunk(l, c);
        memset(count, 0, (size_t)l->buckets * sizeof *count);
        if (!goes_on(l->s, to - from))
            return GPU_INTERRUPTED;
        switch (l->s->kind) {
        case SHORT_NUMBERS:
            classify(l, from, to, count, SHORT_NUMBERS);
            break;
        case NUMBERS:
            classify(l, from, to, count, NUMBERS);
            break;
        case SHORT_PAIRS:
            classify(l, from, to, count, SHORT_PAIRS);
            break;
        default:
            classify(l, from, to, count, PAIRS);
        }
    }
    return GPU_OK;
}

/* Where each chunk's items of each bucket begin: in the order of the chunks, so
 * that equal ones stay in theirs. */
static void place_buckets(long_line *l)
{
    int64_t start = 0;
    for (int b = 0; b < l->buckets; b++) {
        l->start[b] = start;
        for (int64_t c = 0; c < l->chunks; c++) {
            int64_t *count = &l->count[c * l->buckets + b], length = *count;
            *count = start;
            start += length;
        }
    }
    l->start[l->buckets] = start;
}

INLINE void scatter(const long_line *l, int64_t first, int64_t last,
                    int64_t *place, item_kind kind)
{
    for (int64_t i = first; i < last; i++)
        move_item(l->spare, place[l->bucket[i]]++, l->items, i, kind);
}

static gpu_status scatter_chunks(void *context, int64_t first, int64_t last)
{
    const long_line *l = context;
    for (int64_t c = first; c < last; c++) {
        int64_t *place = l->count + c * l->buckets;
        int64_t from = c * l->chunk, to = end_of_chunk(l, c);
        if (!goes_on(l->s, to - from))
            return GPU_INTERRUPTED;
        switch (l->s->kind) {
        case SHORT_NUMBERS:
            scatter(l, from, to, place, SHORT_NUMBERS);
            break;
        case PAIRS:
            scatter(l, from, to, place, PAIRS);
            break;
        default:
            scatter(l, from, to, place, NUMBERS);
        }
    }
    return GPU_OK;
}

/* Sorts buckets into `spare`, and stores them. */
static gpu_status sort_buckets(void *context, int64_t first, int64_t last)
{
    const long_line *l = context;
    size_t size = item_size(l->s->kind);
    gpu_status status = GPU_OK;
    digit_counts count;
    for (int64_t b = first; b < last && status == GPU_OK; b++) {
        int64_t from = l->start[b], n = l->start[b + 1] - from;
        char *p = l->spare + (size_t)from * size, *sorted;
        if (n == 0)
            continue;
        status = sort_items(l->s, p, l->items + (size_t)from * size, n, count,
                            &sorted);
        if (status == GPU_OK && sorted != p)
            memcpy(p, sorted, (size_t)n * size);
        if (status == GPU_OK)
            status = store_items(l->s, &l->v, from, from + n, l->spare);
    }
    return status;
}

static gpu_status run_stages(long_line *l)
{
    gpu_status status = gpu_cpu_parallel(l->chunks, l->n, make_chunks, l);
    if (status != GPU_OK)
        return status;
    choose_splitters(l);
    status = gpu_cpu_parallel(l->chunks, l->n, classify_chunks, l);
    if (status != GPU_OK)
        return status;
    place_buckets(l);
    status = gpu_cpu_parallel(l->chunks, l->n, scatter_chunks, l);
    if (status == GPU_OK)
        status = gpu_cpu_parallel(l->buckets, l->n, sort_buckets, l);
    if (status != GPU_OK)
        return status;
    status = gpu_cpu_end_line(l->s, &l->v, l->spare);
    return status == GPU_OK ? status : gpu_cpu_stop(status);
}

static gpu_status sort_long_line(const sorting *s, int64_t line)
{
    int64_t n = s->from.cols;
    size_t bytes = (size_t)n * item_size(s->kind);
    size_t counts = sizeof(int64_t) * MOST_CHUNKS << MOST_LEVELS;
    size_t head = (sizeof(long_line) + 63) / 64 * 64;
    size_t all = head + counts + 2 * bytes + (size_t)n * sizeof(uint16_t);
    void *room;
    if (gpu_cpu_alloc(NULL, all, &room) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    long_line *l = room;
    l->s = s;
    l->odd.zeros = 0;
    l->odd.nans = 0;
    l->v = gpu_cpu_line_of(s, line, &l->odd);
    l->n = n;
    l->levels = 1;
    while (l->levels < MOST_LEVELS && n >> l->levels > BUCKET)
        l->levels++;
    l->buckets = 1 << l->levels;
    l->chunk = n / MOST_CHUNKS + 1;
    l->chunk = l->chunk > CHUNK ? l->chunk : CHUNK;
    l->chunks = (n + l->chunk - 1) / l->chunk;
    l->count = (int64_t *)(void *)((char *)room + head);
    l->items = (char *)room + head + counts;
    l->spare = l->items + bytes;
    l->bucket = (uint16_t *)(void *)(l->spare + bytes);
    gpu_status status = run_stages(l);
    gpu_cpu_free(NULL, room, all);
    return status;
}

/* --- all lines -------------------------------------------------------------
 */

/* Lines whose elements lie apart, and beside each other's, are sorted where
 * they lie together: turned, so many at a time. */
static int is_crossed(const gpu_view *v)
{
    return v->rows > 1 && llabs(v->row_stride) == 1 &&
           llabs(v->col_stride) > 1 && gpu_cpu_view_bytes(v) > BESIDE;
}

static gpu_status sort_band(const sorting *s, int64_t line, int64_t lines,
                            char *room, int64_t *count, char *dense)
{
    int64_t n = s->from.cols;
    size_t size = gpu_cpu_size(s->from.dtype);
    gpu_view views[] = {s->from, s->to, s->order};
    sorting band = *s;
    gpu_status status = GPU_OK;
    for (int i = 0; i < 3; i++) {
        if (!views[i].data)
            continue;
        views[i] = gpu_cpu_part(&views[i], line, 0, lines, n);
    }
    gpu_view from = {dense, s->from.dtype, lines, n, n, 1};
    gpu_view to = {
        dense + (size_t)(n * BAND) * size, s->from.dtype, lines, n, n, 1};
    gpu_view order = {
        dense + (size_t)(n * BAND) * 2 * size, GPU_F64, lines, n, n, 1};
    gpu_cpu_convert(&views[0], &from);
    band.from = from;
    if (s->to.data)
        band.to = to;
    if (s->order.data)
        band.order = order;
    for (int64_t i = 0; i < lines && status == GPU_OK; i++)
        status = sort_line(&band, i, room, count);
    if (status == GPU_OK && s->to.data)
        gpu_cpu_convert(&to, &views[1]);
    if (status == GPU_OK && s->order.data)
        gpu_cpu_convert(&order, &views[2]);
    return status;
}

static gpu_status sort_lines(void *context, int64_t first, int64_t last)
{
    const sorting *s = context;
    int crossed = is_crossed(&s->from);
    size_t own = (line_bytes(s) + 63) / 64 * 64, bytes = own;
    if (crossed)
        bytes += (size_t)s->from.cols * BAND *
                 (2 * gpu_cpu_size(s->from.dtype) + sizeof(double));
    void *room;
    digit_counts count;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return GPU_MEMORY;
    gpu_status status = GPU_OK;
    int64_t step = crossed ? BAND : 1;
    for (int64_t line = first; line < last && status == GPU_OK; line += step)
        status = crossed
                     ? sort_band(s, line, gpu_cpu_smaller(last - line, BAND),
                                 room, count, (char *)room + own)
                     : sort_line(s, line, room, count);
    gpu_cpu_free(NULL, room, bytes);
    return status;
}

static item_kind kind_of(const sorting *s)
{
    int is_wide = s->from.dtype == GPU_F64;
    if (!s->order.data)
        return is_wide ? NUMBERS : SHORT_NUMBERS;
    return is_wide || s->from.cols > UINT32_MAX ? PAIRS : SHORT_PAIRS;
}

/* Lines that are fewer than the threads are sorted by all of them. */
static int is_long(const sorting *s)
{
    return s->from.cols > LONG_LINE && s->from.rows < gpu_cpu_threads();
}

/* A line alone, on the caller's thread. */
static gpu_status sort_one(const sorting *s, int64_t line)
{
    gpu_status status = sort_lines((void *)(uintptr_t)s, line, line + 1);
    return status == GPU_OK ? status : gpu_cpu_stop(status);
}

/* How often an element of a long line is touched by what counts it: made,
 * classified and scattered, then counted, spread and stored. */
enum { TOUCHES = 5 + PASSES };

gpu_status gpu_cpu_sort(void *device, int axis, int descending,
                        const gpu_view *from, const gpu_view *to,
                        const gpu_view *order)
{
    (void)device;
    sorting s = {.descending = descending, .from = *from};
    int64_t n = from->rows * from->cols;
    gpu_status status = GPU_OK;
    if (n == 0)
        return GPU_OK;
    if (to)
        s.to = *to;
    if (order)
        s.order = *order;
    if (axis == 1) {
        s.from = gpu_cpu_turned(s.from);
        s.to = gpu_cpu_turned(s.to);
        s.order = gpu_cpu_turned(s.order);
    }
    s.kind = kind_of(&s);
    int in_vectors = gpu_cpu_fits_vectors(&s);
    if (!in_vectors && !is_long(&s) && s.from.rows > 1)
        return gpu_cpu_parallel(s.from.rows, n, sort_lines, &s);
    s.is_counted = gpu_cpu_begin_stage(n * TOUCHES);
    for (int64_t i = 0; i < s.from.rows && status == GPU_OK; i++) {
        status = in_vectors ? gpu_cpu_sort_in_vectors(&s, i, s.from.cols)
                            : GPU_UNSUPPORTED;
        if (status == GPU_UNSUPPORTED)
            status = is_long(&s) ? sort_long_line(&s, i) : sort_one(&s, i);
    }
    gpu_cpu_end_stage(s.is_counted);
    return status;
}

gpu_status gpu_cpu_first_numbers(int descending, const gpu_view *from,
                                 const gpu_view *to)
{
    sorting s = {.descending = descending, .from = *from, .to = *to};
    gpu_status status = GPU_OK;
    s.kind = kind_of(&s);
    if (to->cols >= from->cols || !gpu_cpu_fits_vectors(&s))
        return GPU_UNSUPPORTED;
    s.is_counted = gpu_cpu_begin_stage(from->rows * from->cols * TOUCHES);
    for (int64_t i = 0; i < from->rows && status == GPU_OK; i++)
        status = gpu_cpu_sort_in_vectors(&s, i, to->cols);
    gpu_cpu_end_stage(s.is_counted);
    return status;
}
