/* Stable sorting along an axis. Values become unsigned keys in the right
 * order; where places are wanted a key is paired with its own, else it is all
 * there is. Short lines are merged, long ones go through a radix sort of 11
 * bits a pass, skipping passes that say nothing. */
#include <math.h>
#include <string.h>
#include "cpu.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    DIGIT_BITS = 11,
    DIGITS = 1 << DIGIT_BITS,
    PASSES = 6,        /* of 11 bits make 64 */
    SHORT_LINE = 2048, /* up to which merging is faster */
    RUN = 16,          /* sorted by insertion */
    PIECE = 1024,
    POLL = 1 << 18
};
#define COUNT_BYTES ((size_t)PASSES * DIGITS * sizeof(int64_t))

typedef struct pair {
    uint64_t key, place;
} pair;

typedef union piece {
    uint8_t b[PIECE];
    float f[PIECE];
    double d[PIECE];
} piece;

typedef struct sorting {
    int descending;
    gpu_view from, to, order; /* lines are rows; to.data, or order.data, may
                                 be NULL */
    int is_counted;           /* progress, of the only line */
} sorting;

/* Between pieces of work on a line: counts them and looks at the flag. */
static int goes_on(const sorting *s, int64_t elements)
{
    if (s->is_counted)
        gpu_cpu_advance(elements);
    return !gpu_cpu_interrupted();
}

/* --- sorting items ---------------------------------------------------------
 * An item begins with its key, and has as many bytes as a key or a pair. The
 * size is known where these functions are put together. */

INLINE uint64_t key_at(const char *items, int64_t i, size_t size)
{
    uint64_t key;
    memcpy(&key, items + (size_t)i * size, sizeof key);
    return key;
}

INLINE void move_item(char *to, int64_t j, const char *from, int64_t i,
                      size_t size)
{
    memcpy(to + (size_t)j * size, from + (size_t)i * size, size);
}

INLINE void insertion_sort(char *p, int64_t n, size_t size)
{
    char x[sizeof(pair)];
    for (int64_t i = 1; i < n; i++) {
        uint64_t key = key_at(p, i, size);
        int64_t j = i;
        move_item(x, 0, p, i, size);
        for (; j > 0 && key_at(p, j - 1, size) > key; j--)
            move_item(p, j, p, j - 1, size);
        move_item(p, j, x, 0, size);
    }
}

INLINE void merge_runs(const char *a, int64_t na, const char *b, int64_t nb,
                       char *to, size_t size)
{
    int64_t i = 0, j = 0;
    while (i < na && j < nb)
        if (key_at(b, j, size) < key_at(a, i, size))
            move_item(to, i + j, b, j, size), j++;
        else
            move_item(to, i + j, a, i, size), i++;
    if (i < na)
        memcpy(to + (size_t)(i + j) * size, a + (size_t)i * size,
               (size_t)(na - i) * size);
    else if (j < nb)
        memcpy(to + (size_t)(i + j) * size, b + (size_t)j * size,
               (size_t)(nb - j) * size);
}

/* Returns whichever of p and spare holds the result. */
INLINE char *merge_sort(char *p, char *spare, int64_t n, size_t size)
{
    for (int64_t i = 0; i < n; i += RUN)
        insertion_sort(p + (size_t)i * size, gpu_cpu_smaller(n - i, RUN), size);
    for (int64_t width = RUN; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t na = gpu_cpu_smaller(n - i, width),
                    nb = gpu_cpu_smaller(n - i - na, width);
            const char *a = p + (size_t)i * size;
            merge_runs(a, na, a + (size_t)na * size, nb,
                       spare + (size_t)i * size, size);
        }
        char *t = p;
        p = spare;
        spare = t;
    }
    return p;
}

static unsigned digit(uint64_t key, int pass)
{
    return (unsigned)(key >> (pass * DIGIT_BITS)) & (DIGITS - 1);
}

INLINE gpu_status count_digits(const sorting *s, const char *p, int64_t n,
                               int64_t (*count)[DIGITS], size_t size)
{
    for (int64_t i = 0; i < n; i++) {
        if (i % POLL == 0 && !goes_on(s, gpu_cpu_smaller(n - i, POLL)))
            return GPU_INTERRUPTED;
        uint64_t key = key_at(p, i, size);
        for (int pass = 0; pass < PASSES; pass++)
            count[pass][digit(key, pass)]++;
    }
    return GPU_OK;
}

INLINE gpu_status spread(const sorting *s, const char *p, int64_t n, int pass,
                         int64_t *count, char *to, size_t size)
{
    int64_t start = 0;
    for (int d = 0; d < DIGITS; d++) {
        int64_t length = count[d];
        count[d] = start;
        start += length;
    }
    for (int64_t i = 0; i < n; i++) {
        if (i % POLL == 0 && !goes_on(s, gpu_cpu_smaller(n - i, POLL)))
            return GPU_INTERRUPTED;
        int64_t at = count[digit(key_at(p, i, size), pass)]++;
        move_item(to, at, p, i, size);
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

INLINE gpu_status radix_sort(const sorting *s, char *p, char *spare, int64_t n,
                             size_t size, char **result)
{
    int64_t(*count)[DIGITS] = (void *)(spare + (size_t)n * size);
    memset(count, 0, COUNT_BYTES);
    if (take_pages(s, spare, (size_t)n * size) != GPU_OK)
        return GPU_INTERRUPTED;
    if (count_digits(s, p, n, count, size) != GPU_OK)
        return GPU_INTERRUPTED;
    for (int pass = 0; pass < PASSES; pass++) {
        if (count[pass][digit(key_at(p, 0, size), pass)] == n)
            continue;
        if (spread(s, p, n, pass, count[pass], spare, size) != GPU_OK)
            return GPU_INTERRUPTED;
        char *t = p;
        p = spare;
        spare = t;
    }
    *result = p;
    return GPU_OK;
}

/* Sorts n items at p, with room for as many behind them, and COUNT_BYTES more
 * behind that; *result is one of the two. */
INLINE gpu_status sort_items(const sorting *s, char *p, int64_t n, size_t size,
                             char **result)
{
    char *spare = p + (size_t)n * size;
    if (n > SHORT_LINE)
        return radix_sort(s, p, spare, n, size, result);
    *result = merge_sort(p, spare, n, size);
    return GPU_OK;
}

/* --- values with their places --------------------------------------------- */

/* NaN is the largest key; -0 and +0 have one key. */
static uint64_t key_of(double value, int descending)
{
    uint64_t bits;
    if (value != value)
        return UINT64_MAX;
    value = value == 0 ? 0 : value;
    memcpy(&bits, &value, sizeof bits);
    bits ^= bits >> 63 ? UINT64_MAX : (uint64_t)1 << 63;
    return descending ? ~bits : bits;
}

/* f32 and bool keys, in the low half. */
static uint64_t short_key_of(float value, int descending)
{
    uint32_t bits;
    if (value != value)
        return UINT32_MAX;
    value = value == 0 ? 0 : value;
    memcpy(&bits, &value, sizeof bits);
    bits ^= bits >> 31 ? UINT32_MAX : (uint32_t)1 << 31;
    return descending ? (uint32_t)~bits : bits;
}

static gpu_status make_pairs(const sorting *s, const gpu_view *line, pair *p)
{
    piece value;
    int wide = line->dtype == GPU_F64;
    for (int64_t first = 0; first < line->cols; first += PIECE) {
        int64_t n = gpu_cpu_smaller(line->cols - first, PIECE);
        if (!goes_on(s, n))
            return GPU_INTERRUPTED;
        gpu_cpu_load(line, first, n, wide ? GPU_F64 : GPU_F32, &value);
        for (int64_t i = 0; i < n; i++) {
            p[first + i].place = (uint64_t)(first + i);
            p[first + i].key = wide ? key_of(value.d[i], s->descending)
                                    : short_key_of(value.f[i], s->descending);
        }
    }
    return GPU_OK;
}

/* The values come from the source by place: keys have lost the sign of zero
 * and what a NaN carries. */
static void take_values(const gpu_view *from, const pair *p, int64_t n,
                        piece *value)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at = (int64_t)p[i].place * from->col_stride;
        if (from->dtype == GPU_F64)
            value->d[i] = ((const double *)from->data)[at];
        else if (from->dtype == GPU_F32)
            value->f[i] = ((const float *)from->data)[at];
        else
            value->b[i] = ((const uint8_t *)from->data)[at];
    }
}

static gpu_status store_pairs(const sorting *s, int64_t line, const pair *p)
{
    piece value;
    gpu_view from = gpu_cpu_part(&s->from, line, 0, 1, s->from.cols);
    gpu_view order = gpu_cpu_part(&s->order, line, 0, 1, s->order.cols), to;
    if (s->to.data)
        to = gpu_cpu_part(&s->to, line, 0, 1, s->to.cols);
    for (int64_t first = 0; first < from.cols; first += PIECE, p += PIECE) {
        int64_t n = gpu_cpu_smaller(from.cols - first, PIECE);
        if (!goes_on(s, n))
            return GPU_INTERRUPTED;
        if (s->to.data) {
            take_values(&from, p, n, &value);
            gpu_cpu_store(&to, first, n, from.dtype, &value);
        }
        for (int64_t i = 0; i < n; i++)
            value.d[i] = (double)p[i].place;
        gpu_cpu_store(&order, first, n, GPU_F64, &value);
    }
    return GPU_OK;
}

static gpu_status sort_pairs(const sorting *s, int64_t line, void *room)
{
    int64_t n = s->from.cols;
    gpu_view from = gpu_cpu_part(&s->from, line, 0, 1, n);
    char *sorted;
    gpu_status status = make_pairs(s, &from, room);
    if (status == GPU_OK)
        status = sort_items(s, room, n, sizeof(pair), &sorted);
    if (status == GPU_OK)
        status = store_pairs(s, line, (const pair *)(void *)sorted);
    return status;
}

/* --- values alone ----------------------------------------------------------
 * Their keys have all of their bits: the bits' order is the numbers', NaN of
 * either sign turned round to the end. Zeros of both signs, and NaN of several
 * kinds, are put in the order of the source afterwards. */

#define NAN_CODES (((uint64_t)1 << 52) - 1) /* of a sign */
#define SHORT_NAN_CODES (((uint32_t)1 << 23) - 1)

static uint64_t whole_key_of(double value, int descending)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits ^= bits >> 63 ? UINT64_MAX : (uint64_t)1 << 63;
    return (descending ? ~bits : bits) - NAN_CODES;
}

static double value_of(uint64_t key, int descending)
{
    double value;
    uint64_t bits = descending ? ~(key + NAN_CODES) : key + NAN_CODES;
    bits ^= bits >> 63 ? (uint64_t)1 << 63 : UINT64_MAX;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t short_whole_key_of(float value, int descending)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits ^= bits >> 31 ? UINT32_MAX : (uint32_t)1 << 31;
    return (uint32_t)((descending ? ~bits : bits) - SHORT_NAN_CODES);
}

static float short_value_of(uint64_t key, int descending)
{
    float value;
    uint32_t bits = (uint32_t)key + SHORT_NAN_CODES;
    bits = descending ? ~bits : bits;
    bits ^= bits >> 31 ? (uint32_t)1 << 31 : UINT32_MAX;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static gpu_status make_keys(const sorting *s, const gpu_view *line,
                            uint64_t *keys)
{
    piece value;
    int wide = line->dtype == GPU_F64;
    for (int64_t first = 0; first < line->cols; first += PIECE) {
        int64_t n = gpu_cpu_smaller(line->cols - first, PIECE);
        if (!goes_on(s, n))
            return GPU_INTERRUPTED;
        gpu_cpu_load(line, first, n, wide ? GPU_F64 : GPU_F32, &value);
        for (int64_t i = 0; i < n; i++)
            keys[first + i] =
                wide ? whole_key_of(value.d[i], s->descending)
                     : short_whole_key_of(value.f[i], s->descending);
    }
    return GPU_OK;
}

static gpu_status store_keys(const sorting *s, const gpu_view *to,
                             const uint64_t *keys)
{
    piece value;
    int wide = s->from.dtype == GPU_F64;
    for (int64_t first = 0; first < to->cols; first += PIECE, keys += PIECE) {
        int64_t n = gpu_cpu_smaller(to->cols - first, PIECE);
        if (!goes_on(s, n))
            return GPU_INTERRUPTED;
        for (int64_t i = 0; wide && i < n; i++)
            value.d[i] = value_of(keys[i], s->descending);
        for (int64_t i = 0; !wide && i < n; i++)
            value.f[i] = short_value_of(keys[i], s->descending);
        gpu_cpu_store(to, first, n, wide ? GPU_F64 : GPU_F32, &value);
    }
    return GPU_OK;
}

/* Where the first key stands that is not below `key`. */
static int64_t find_key(const uint64_t *keys, int64_t n, uint64_t key)
{
    int64_t low = 0;
    while (low < n) {
        int64_t middle = low + (n - low) / 2;
        if (keys[middle] < key)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* The places of what equals zero, or is NaN, when not all of them are the
 * same; else -1. */
typedef struct mixture {
    int64_t zeros, nans;
} mixture;

static mixture find_mixture(const sorting *s, const uint64_t *keys, int64_t n)
{
    int down = s->descending, wide = s->from.dtype == GPU_F64;
    double zero = down ? 0.0 : -0.0, last = down ? -INFINITY : INFINITY;
    uint64_t first =
        wide ? whole_key_of(zero, down) : short_whole_key_of((float)zero, down);
    uint64_t number =
        wide ? whole_key_of(last, down) : short_whole_key_of((float)last, down);
    mixture m = {find_key(keys, n, first), find_key(keys, n, number + 1)};
    int64_t end = find_key(keys, n, first + 2);
    if (m.zeros == end || keys[m.zeros] == keys[end - 1])
        m.zeros = -1;
    if (m.nans == n || keys[m.nans] == keys[n - 1])
        m.nans = -1;
    return m;
}

static gpu_status mend_mixture(const sorting *s, const gpu_view *from,
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
            if (x == 0 && m.zeros >= 0)
                gpu_cpu_store(to, m.zeros++, 1, type, at);
            else if (x != x && m.nans >= 0)
                gpu_cpu_store(to, m.nans++, 1, type, at);
        }
    }
    return GPU_OK;
}

static gpu_status sort_keys(const sorting *s, int64_t line, void *room)
{
    int64_t n = s->from.cols;
    gpu_view from = gpu_cpu_part(&s->from, line, 0, 1, n);
    gpu_view to = gpu_cpu_part(&s->to, line, 0, 1, n);
    char *sorted;
    gpu_status status = make_keys(s, &from, room);
    if (status == GPU_OK)
        status = sort_items(s, room, n, sizeof(uint64_t), &sorted);
    if (status != GPU_OK)
        return status;
    const uint64_t *keys = (const uint64_t *)(void *)sorted;
    mixture m = find_mixture(s, keys, n);
    status = store_keys(s, &to, keys);
    if (status == GPU_OK && (m.zeros >= 0 || m.nans >= 0))
        status = mend_mixture(s, &from, &to, m);
    return status;
}

/* --- all lines ------------------------------------------------------------ */

static gpu_status sort_lines(void *context, int64_t first, int64_t last)
{
    const sorting *s = context;
    size_t item = s->order.data ? sizeof(pair) : sizeof(uint64_t);
    size_t bytes = (size_t)s->from.cols * 2 * item;
    if (s->from.cols > SHORT_LINE)
        bytes += COUNT_BYTES;
    void *room;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return GPU_MEMORY;
    gpu_status status = GPU_OK;
    for (int64_t line = first; line < last && status == GPU_OK; line++)
        status = s->order.data ? sort_pairs(s, line, room)
                               : sort_keys(s, line, room);
    gpu_cpu_free(NULL, room, bytes);
    return status;
}

/* How often an element is touched: once to make pairs, to count, in each pass
 * that a key of its length has, and to store. */
static int64_t units_of(gpu_dtype t)
{
    return 3 + (t == GPU_F64 ? PASSES : PASSES / 2);
}

gpu_status gpu_cpu_sort(void *device, int axis, int descending,
                        const gpu_view *from, const gpu_view *to,
                        const gpu_view *order)
{
    (void)device;
    sorting s = {.descending = descending, .from = *from};
    int64_t n = from->rows * from->cols;
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
    if (s.from.rows == 1)
        s.is_counted = gpu_cpu_begin_stage(n * units_of(from->dtype));
    gpu_status status = gpu_cpu_parallel(s.from.rows, n, sort_lines, &s);
    gpu_cpu_end_stage(s.is_counted);
    return status;
}
