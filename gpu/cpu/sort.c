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
} sorting;

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

static void make_pairs(const sorting *s, const gpu_view *line, pair *p)
{
    union {
        float f[PIECE];
        double d[PIECE];
    } value;
    int wide = line->dtype == GPU_F64;
    for (int64_t first = 0; first < line->cols; first += PIECE) {
        int64_t left = line->cols - first, n = left < PIECE ? left : PIECE;
        gpu_cpu_load(line, first, n, wide ? GPU_F64 : GPU_F32, &value);
        for (int64_t i = 0; i < n; i++) {
            p[first + i].place = (uint64_t)(first + i);
            p[first + i].key = wide ? key_of(value.d[i], s->descending)
                                    : short_key_of(value.f[i], s->descending);
        }
    }
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

static void count_digits(const pair *p, int64_t n, int64_t (*count)[DIGITS])
{
    for (int64_t i = 0; i < n; i++)
        for (int pass = 0; pass < PASSES; pass++)
            count[pass][digit(p[i].key, pass)]++;
}

static gpu_status spread(const pair *p, int64_t n, int pass, int64_t *count,
                         pair *to)
{
    int64_t start = 0;
    for (int d = 0; d < DIGITS; d++) {
        int64_t size = count[d];
        count[d] = start;
        start += size;
    }
    for (int64_t i = 0; i < n; i++) {
        if (i % POLL == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        to[count[digit(p[i].key, pass)]++] = p[i];
    }
    return GPU_OK;
}

/* Sorts p; *result is p or spare. */
static gpu_status radix_sort(pair *p, pair *spare, int64_t n, pair **result)
{
    int64_t count[PASSES][DIGITS];
    memset(count, 0, sizeof count);
    count_digits(p, n, count);
    for (int pass = 0; pass < PASSES; pass++) {
        if (count[pass][digit(p[0].key, pass)] == n)
            continue;
        if (spread(p, n, pass, count[pass], spare) != GPU_OK)
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
static void store_line(const sorting *s, int64_t line, const pair *p)
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
    for (int64_t line = first; line < last && status == GPU_OK; line++) {
        gpu_view from = gpu_cpu_part(&s->from, line, 0, 1, n);
        pair *p = room, *spare = p + n;
        make_pairs(s, &from, p);
        if (n <= SHORT_LINE)
            p = merge_sort(p, spare, n);
        else
            status = radix_sort(p, spare, n, &p);
        if (status == GPU_OK && gpu_cpu_interrupted())
            status = GPU_INTERRUPTED;
        if (status == GPU_OK)
            store_line(s, line, p);
    }
    gpu_cpu_free(NULL, room, bytes);
    return status;
}

gpu_status gpu_cpu_sort(void *device, int axis, int descending,
                        const gpu_view *from, const gpu_view *to,
                        const gpu_view *order)
{
    (void)device;
    sorting s = {descending, *from, *to, {0}};
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
    return gpu_cpu_parallel(s.from.rows, n, sort_lines, &s);
}
