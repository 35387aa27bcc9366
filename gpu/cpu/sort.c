/* Stable sorting along an axis. Values become unsigned keys in the right
 * order, paired with their places; short lines are merged, long ones go
 * through a radix sort of 11 bits a pass, skipping passes that say nothing. */
#include <string.h>
#include "cpu.h"

enum {
    DIGIT_BITS = 11,
    DIGITS = 1 << DIGIT_BITS,
    PASSES = 6,        /* of 11 bits make 64 */
    SHORT_LINE = 2048, /* up to which merging is faster */
    RUN = 16,          /* sorted by insertion */
    PIECE = 1024,
    POLL = 1 << 18
};

typedef struct pair {
    uint64_t key, place;
} pair;

typedef struct sorting {
    int descending;
    gpu_view from, to, order; /* lines are rows; order.data may be NULL */
    int is_counted;           /* progress, of the only line */
} sorting;

/* Between pieces of work on a line: counts them and looks at the flag. */
static int goes_on(const sorting *s, int64_t elements)
{
    if (s->is_counted)
        gpu_cpu_advance(elements);
    return !gpu_cpu_interrupted();
}

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
    union {
        float f[PIECE];
        double d[PIECE];
    } value;
    int wide = line->dtype == GPU_F64;
    for (int64_t first = 0; first < line->cols; first += PIECE) {
        int64_t left = line->cols - first, n = left < PIECE ? left : PIECE;
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

static void insertion_sort(pair *p, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        pair x = p[i];
        int64_t j = i;
        for (; j > 0 && p[j - 1].key > x.key; j--)
            p[j] = p[j - 1];
        p[j] = x;
    }
}

static void merge_runs(const pair *a, int64_t na, const pair *b, int64_t nb,
                       pair *to)
{
    while (na > 0 && nb > 0)
        if (b->key < a->key)
            *to++ = *b++, nb--;
        else
            *to++ = *a++, na--;
    memcpy(to, na ? a : b, (size_t)(na + nb) * sizeof *to);
}

/* Returns whichever of p and spare holds the result. */
static pair *merge_sort(pair *p, pair *spare, int64_t n)
{
    for (int64_t i = 0; i < n; i += RUN)
        insertion_sort(p + i, n - i < RUN ? n - i : RUN);
    for (int64_t width = RUN; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t na = n - i < width ? n - i : width;
            int64_t nb = n - i - na < width ? n - i - na : width;
            merge_runs(p + i, na, p + i + na, nb, spare + i);
        }
        pair *t = p;
        p = spare;
        spare = t;
    }
    return p;
}

static unsigned digit(uint64_t key, int pass)
{
    return (unsigned)(key >> (pass * DIGIT_BITS)) & (DIGITS - 1);
}

static gpu_status count_digits(const sorting *s, const pair *p, int64_t n,
                               int64_t (*count)[DIGITS])
{
    for (int64_t i = 0; i < n; i++) {
        if (i % POLL == 0 && !goes_on(s, n - i < POLL ? n - i : POLL))
            return GPU_INTERRUPTED;
        for (int pass = 0; pass < PASSES; pass++)
            count[pass][digit(p[i].key, pass)]++;
    }
    return GPU_OK;
}

static gpu_status spread(const sorting *s, const pair *p, int64_t n, int pass,
                         int64_t *count, pair *to)
{
    int64_t start = 0;
    for (int d = 0; d < DIGITS; d++) {
        int64_t size = count[d];
        count[d] = start;
        start += size;
    }
    for (int64_t i = 0; i < n; i++) {
        if (i % POLL == 0 && !goes_on(s, n - i < POLL ? n - i : POLL))
            return GPU_INTERRUPTED;
        to[count[digit(p[i].key, pass)]++] = p[i];
    }
    return GPU_OK;
}

/* Fresh memory comes when it is first written to, page by page: the first
 * pass would ask for nearly all of it within its first few elements. */
static gpu_status take_pages(const sorting *s, pair *p, int64_t n)
{
    enum { PAGE = 4096 / sizeof(pair), PART = PAGE * 64 };
    for (int64_t i = 0; i < n; i += PAGE) {
        if (i % PART == 0 && !goes_on(s, 0))
            return GPU_INTERRUPTED;
        p[i].key = 0;
    }
    return GPU_OK;
}

/* Sorts p; *result is p or spare. */
static gpu_status radix_sort(const sorting *s, pair *p, pair *spare, int64_t n,
                             pair **result)
{
    int64_t count[PASSES][DIGITS];
    memset(count, 0, sizeof count);
    if (take_pages(s, spare, n) != GPU_OK)
        return GPU_INTERRUPTED;
    if (count_digits(s, p, n, count) != GPU_OK)
        return GPU_INTERRUPTED;
    for (int pass = 0; pass < PASSES; pass++) {
        if (count[pass][digit(p[0].key, pass)] == n)
            continue;
        if (spread(s, p, n, pass, count[pass], spare) != GPU_OK)
            return GPU_INTERRUPTED;
        pair *t = p;
        p = spare;
        spare = t;
    }
    *result = p;
    return GPU_OK;
}

/* The values come from the source by place: keys have lost the sign of zero
 * and what a NaN carries. */
static gpu_status store_line(const sorting *s, int64_t line, const pair *p)
{
    union {
        uint8_t b[PIECE];
        float f[PIECE];
        double d[PIECE];
    } value;
    double place[PIECE];
    gpu_view from = gpu_cpu_part(&s->from, line, 0, 1, s->from.cols);
    gpu_view to = gpu_cpu_part(&s->to, line, 0, 1, s->to.cols);
    int64_t step = from.col_stride;
    for (int64_t first = 0; first < from.cols; first += PIECE, p += PIECE) {
        int64_t left = from.cols - first, n = left < PIECE ? left : PIECE;
        if (!goes_on(s, n))
            return GPU_INTERRUPTED;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = (int64_t)p[i].place;
            place[i] = (double)at;
            if (from.dtype == GPU_F64)
                value.d[i] = ((const double *)from.data)[at * step];
            else if (from.dtype == GPU_F32)
                value.f[i] = ((const float *)from.data)[at * step];
            else
                value.b[i] = ((const uint8_t *)from.data)[at * step];
        }
        gpu_cpu_store(&to, first, n, from.dtype, &value);
        if (!s->order.data)
            continue;
        gpu_view order = gpu_cpu_part(&s->order, line, 0, 1, s->order.cols);
        gpu_cpu_store(&order, first, n, GPU_F64, place);
    }
    return GPU_OK;
}

/* p and spare have room for a line each. */
static gpu_status sort_line(const sorting *s, int64_t line, pair *p,
                            pair *spare)
{
    int64_t n = s->from.cols;
    gpu_view from = gpu_cpu_part(&s->from, line, 0, 1, n);
    gpu_status status = make_pairs(s, &from, p);
    if (status == GPU_OK && n <= SHORT_LINE)
        p = merge_sort(p, spare, n);
    else if (status == GPU_OK)
        status = radix_sort(s, p, spare, n, &p);
    return status == GPU_OK ? store_line(s, line, p) : status;
}

static gpu_status sort_lines(void *context, int64_t first, int64_t last)
{
    const sorting *s = context;
    int64_t n = s->from.cols;
    size_t bytes = (size_t)n * 2 * sizeof(pair);
    void *room;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return GPU_MEMORY;
    gpu_status status = GPU_OK;
    for (int64_t line = first; line < last && status == GPU_OK; line++)
        status = sort_line(s, line, room, (pair *)room + n);
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
    sorting s = {descending, *from, *to, {0}, 0};
    int64_t n = from->rows * from->cols;
    if (n == 0)
        return GPU_OK;
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
