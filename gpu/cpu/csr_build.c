/* Compressed rows of triplets, of a transpose and of dense matrices, and dense
 * matrices of these.
 *
 * Entries are first dealt out to buckets, each of some rows, in their order: a
 * bucket stays in a core's own cache while its entries are put into rows by
 * counting and into the order of their columns (a radix sort from the highest
 * digit, as in Knuth, The Art of Computer Programming 3, 5.2.5). Chunks and
 * buckets are cut by the number of entries alone, so results do not depend on
 * how many threads there are. */
#include <stdlib.h>
#include <string.h>
#include "csr_parts.h"

enum {
    CHUNK = 1 << 14,     /* entries dealt at a time, at least */
    CHUNKS = 64,         /* at most */
    BUCKET = 1 << 14,    /* entries of a bucket, were they spread evenly; */
    MOST_BUCKETS = 1024, /* but each is written to at one place, and a core
                            keeps track of so many pages */
    INSERTED = 32,       /* entries of a row that are sorted by insertion */
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS
};

typedef struct dealing {
    const gpu_triplet_lists *given; /* these are built, or */
    const gpu_csr *turned;          /* this is transposed */
    int64_t rows, count;            /* of the result */
    int32_t *starts, *columns;
    char *values;
    gpu_dtype dtype;
    size_t size; /* bytes of a value */
    int shift;   /* a row's bucket is its number without so many bits */
    int64_t buckets, chunks, chunk; /* entries of a chunk */
    int is_ordered; /* rows ascend as it is: nothing is dealt out */
    char *falls;    /* of each chunk: do they not, in it or before it? */
    int64_t *at;    /* chunks x buckets: how many, then where the next goes */
    int64_t *ends;  /* buckets + 1: where they begin */
    int64_t *kept;  /* entries of a bucket when those in one place are added */
    char *entries;  /* count x (row, column, value), dealt out */
    uint64_t *keys; /* count x (column, number in the bucket) */
} dealing;

/* --- dealing out ---------------------------------------------------------- */

/* The row that has the entry. */
static int64_t row_of(const gpu_csr *s, int64_t entry)
{
    int64_t low = 0, high = s->rows;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->starts[middle + 1] > entry)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Counts the entries of a chunk by bucket. */
static void count_chunk(const dealing *d, int64_t chunk)
{
    int64_t first = chunk * d->chunk;
    int64_t last = gpu_cpu_smaller(first + d->chunk, d->count);
    const int32_t *row = d->turned ? d->turned->columns : d->given->row;
    int64_t *at = d->at + chunk * d->buckets;
    int32_t before = first > 0 ? row[first - 1] : 0;
    int falls = 0;
    for (int64_t e = first; e < last; e++) {
        at[row[e] >> d->shift]++;
        falls |= row[e] < before;
        before = row[e];
    }
    d->falls[chunk] = (char)falls;
}

INLINE void put_entry(const dealing *d, int64_t *at, int32_t row, int32_t col,
                      const char *value, size_t size)
{
    char *to = d->entries + (size_t)at[row >> d->shift]++ * (8 + size);
    memcpy(to, &row, 4);
    memcpy(to + 4, &col, 4);
    memcpy(to + 8, value, size);
}

INLINE void deal_chunk(const dealing *d, int64_t chunk, size_t size)
{
    int64_t first = chunk * d->chunk;
    int64_t last = gpu_cpu_smaller(first + d->chunk, d->count);
    int64_t *at = d->at + chunk * d->buckets;
    if (d->given) {
        const gpu_triplet_lists *t = d->given;
        const char *values = t->values;
        for (int64_t e = first; e < last; e++)
            put_entry(d, at, t->row[e], t->col[e], values + (size_t)e * size,
                      size);
        return;
    }
    const gpu_csr *s = d->turned;
    const char *values = s->values;
    int64_t i = row_of(s, first);
    for (int64_t e = first; e < last; e++) {
        while (e >= s->starts[i + 1])
            i++;
        put_entry(d, at, s->columns[e], (int32_t)i, values + (size_t)e * size,
                  size);
    }
}

static gpu_status count_chunks(void *context, int64_t first, int64_t last)
{
    for (; first < last; first++) {
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        count_chunk(context, first);
    }
    return GPU_OK;
}

static gpu_status deal_chunks(void *context, int64_t first, int64_t last)
{
    const dealing *d = context;
    for (; first < last; first++) {
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (d->size == 4)
            deal_chunk(d, first, 4);
        else if (d->size == 8)
            deal_chunk(d, first, 8);
        else
            deal_chunk(d, first, 16);
    }
    return GPU_OK;
}

/* Counts become places: a bucket has what the chunks have of it in their
 * order. */
static void find_places(dealing *d)
{
    int64_t sum = 0;
    for (int64_t b = 0; b < d->buckets; b++) {
        d->ends[b] = sum;
        for (int64_t c = 0; c < d->chunks; c++) {
            int64_t n = d->at[c * d->buckets + b];
            d->at[c * d->buckets + b] = sum;
            sum += n;
        }
    }
    d->ends[d->buckets] = sum;
}

/* --- a row ---------------------------------------------------------------- */

static void insert_keys(uint64_t *keys, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        int64_t at = i;
        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* By a digit of the column; entries with one digit stay in their order. */
static void sort_by_digit(const uint64_t *from, uint64_t *to, int64_t n,
                          int shift)
{
    int64_t place[DIGITS] = {0}, sum = 0;
    for (int64_t k = 0; k < n; k++)
        place[from[k] >> shift & (DIGITS - 1)]++;
    for (int i = 0; i < DIGITS; i++) {
        int64_t count = place[i];
        place[i] = sum;
        sum += count;
    }
    for (int64_t k = 0; k < n; k++)
        to[place[from[k] >> shift & (DIGITS - 1)]++] = from[k];
}

/* Columns lie in the upper halves, and what tells equal ones apart ascends. */
static gpu_status sort_row(uint64_t *keys, int64_t n)
{
    uint64_t all = 0;
    int is_sorted = 1;
    for (int64_t k = 1; k < n; k++) {
        is_sorted &= keys[k - 1] < keys[k];
        all |= keys[k];
    }
    if (is_sorted)
        return GPU_OK;
    if (n <= INSERTED) {
        insert_keys(keys, n);
        return GPU_OK;
    }
    uint64_t *spare = malloc((size_t)n * sizeof *spare), *from = keys;
    if (!spare)
        return GPU_MEMORY;
    uint64_t *to = spare;
    all |= keys[0];
    for (int shift = 32; shift < 64 && all >> shift; shift += DIGIT_BITS) {
        if (gpu_cpu_interrupted())
            break;
        sort_by_digit(from, to, n, shift);
        uint64_t *other = from;
        from = to;
        to = other;
    }
    if (from != keys)
        memcpy(keys, from, (size_t)n * sizeof *keys);
    free(spare);
    return gpu_cpu_interrupted() ? GPU_INTERRUPTED : GPU_OK;
}

/* The sum of n values of a bucket, `each` bytes apart, formed in f64 in their
 * order. */
static void add_up(const dealing *d, const char *values, size_t each,
                   const uint64_t *keys, int64_t n, char *out)
{
    gpu_dtype type = part_type(d->dtype);
    int parts = is_complex(d->dtype) ? 2 : 1;
    for (int part = 0; part < parts; part++) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++) {
            double x = load_real(values + (uint32_t)keys[k] * each, type, part);
            sum = k == 0 ? x : sum + x;
        }
        store_real(out, type, part, sum);
    }
}

/* --- a bucket ------------------------------------------------------------- */

/* Its entries, whose parts lie `each` bytes apart, `each_value` the values. */
typedef struct bucket {
    int64_t count;
    const char *rows, *cols, *values;
    size_t each, each_value;
} bucket;

INLINE bucket bucket_of(const dealing *d, int64_t b, size_t size)
{
    int64_t at = d->ends[b], count = d->ends[b + 1] - at;
    const char *entries = d->entries + (size_t)at * (8 + size);
    if (!d->is_ordered)
        return (bucket){count,       entries,  entries + 4,
                        entries + 8, 8 + size, 8 + size};
    return (bucket){count,
                    (const char *)(d->given->row + at),
                    (const char *)(d->given->col + at),
                    (const char *)d->given->values + (size_t)at * size,
                    4,
                    size};
}

INLINE int32_t place_at(const char *places, int64_t k, size_t each)
{
    int32_t place;
    memcpy(&place, places + (size_t)k * each, sizeof place);
    return place;
}

/* Where the entries of a bucket's rows go, in the order of the rows: counts[i]
 * becomes the place of the next one of row i. */
INLINE void count_rows(int32_t *counts, int64_t first, int64_t last,
                       const bucket *from, int64_t start)
{
    int32_t sum = (int32_t)start;
    memset(counts + first, 0, (size_t)(last - first) * sizeof *counts);
    for (int64_t k = 0; k < from->count; k++)
        counts[place_at(from->rows, k, from->each)]++;
    for (int64_t i = first; i < last; i++) {
        int32_t count = counts[i];
        counts[i] = sum;
        sum += count;
    }
}

/* Of a transpose: columns come in their order, so this is all. counts[i] ends
 * as the end of row i. */
INLINE void turn_bucket(const dealing *d, int64_t b, size_t size)
{
    int64_t first = b << d->shift;
    int64_t last = gpu_cpu_smaller((b + 1) << d->shift, d->rows);
    bucket from = bucket_of(d, b, size);
    int32_t *counts = d->starts + 1;
    count_rows(counts, first, last, &from, d->ends[b]);
    for (int64_t k = 0; k < from.count; k++) {
        size_t to = (size_t)counts[place_at(from.rows, k, 8 + size)]++;
        memcpy(d->columns + to, from.cols + (size_t)k * (8 + size), 4);
        memcpy(d->values + to * size, from.values + (size_t)k * (8 + size),
               size);
    }
}

/* counts[i] ends as the number of entries of row i. */
INLINE gpu_status build_bucket(const dealing *d, int64_t b, size_t size)
{
    int64_t first = b << d->shift;
    int64_t last = gpu_cpu_smaller((b + 1) << d->shift, d->rows);
    int64_t out = d->ends[b], begin = 0;
    bucket from = bucket_of(d, b, size);
    int32_t *counts = d->starts + 1;
    uint64_t *keys = d->keys + out;
    count_rows(counts, first, last, &from, 0);
    for (int64_t k = 0; k < from.count; k++) {
        uint64_t col = (uint64_t)place_at(from.cols, k, from.each);
        keys[counts[place_at(from.rows, k, from.each)]++] =
            col << 32 | (uint64_t)k;
    }
    for (int64_t i = first; i < last; i++) {
        int64_t end = counts[i], before = out, next;
        gpu_status status = sort_row(keys + begin, end - begin);
        if (status != GPU_OK)
            return status;
        for (int64_t k = begin; k < end; k = next, out++) {
            char *value = d->values + (size_t)out * size;
            for (next = k + 1; next < end && keys[next] >> 32 == keys[k] >> 32;)
                next++;
            d->columns[out] = (int32_t)(keys[k] >> 32);
            if (next == k + 1)
                memcpy(value, from.values + (uint32_t)keys[k] * from.each_value,
                       size);
            else
                add_up(d, from.values, from.each_value, keys + k, next - k,
                       value);
        }
        counts[i] = (int32_t)(out - before);
        begin = end;
    }
    d->kept[b] = out - d->ends[b];
    return GPU_OK;
}

static gpu_status turn_buckets(void *context, int64_t first, int64_t last)
{
    const dealing *d = context;
    for (; first < last; first++) {
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (d->size == 4)
            turn_bucket(d, first, 4);
        else if (d->size == 8)
            turn_bucket(d, first, 8);
        else
            turn_bucket(d, first, 16);
    }
    return GPU_OK;
}

static gpu_status build_buckets(void *context, int64_t first, int64_t last)
{
    const dealing *d = context;
    gpu_status status = GPU_OK;
    for (; first < last && status == GPU_OK; first++) {
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        status = d->size == 4   ? build_bucket(d, first, 4)
                 : d->size == 8 ? build_bucket(d, first, 8)
                                : build_bucket(d, first, 16);
    }
    return status;
}

/* Numbers of entries become where rows start, and buckets move together. */
static int64_t join_buckets(dealing *d)
{
    int64_t total = 0;
    for (int64_t i = 0; i < d->rows; i++)
        d->starts[i + 1] += d->starts[i];
    for (int64_t b = 0; b < d->buckets; total += d->kept[b++]) {
        size_t from = (size_t)d->ends[b], n = (size_t)d->kept[b];
        if (from == (size_t)total)
            continue;
        memmove(d->columns + total, d->columns + from, n * sizeof *d->columns);
        memmove(d->values + (size_t)total * d->size, d->values + from * d->size,
                n * d->size);
    }
    return total;
}

/* --- all of it ------------------------------------------------------------ */

static void cut(dealing *d)
{
    int64_t wanted = gpu_cpu_pieces(d->count, BUCKET);
    wanted = gpu_cpu_smaller(wanted, MOST_BUCKETS);
    d->shift = 0;
    while (d->rows > 0 && (d->rows - 1) >> d->shift >= wanted)
        d->shift++;
    d->buckets = d->rows > 0 ? ((d->rows - 1) >> d->shift) + 1 : 1;
    d->chunk = gpu_cpu_pieces(d->count, CHUNKS);
    d->chunk = d->chunk > CHUNK ? d->chunk : CHUNK;
    d->chunks = gpu_cpu_pieces(d->count, d->chunk);
}

static gpu_status arrange(dealing *d, gpu_cpu_work *work)
{
    gpu_status status = gpu_cpu_parallel(d->chunks, d->count, count_chunks, d);
    if (status == GPU_OK)
        find_places(d);
    d->is_ordered = d->given && !memchr(d->falls, 1, (size_t)d->chunks);
    if (status == GPU_OK && !d->is_ordered)
        status = gpu_cpu_parallel(d->chunks, d->count, deal_chunks, d);
    return status == GPU_OK ? gpu_cpu_parallel(d->buckets, d->count, work, d)
                            : status;
}

/* Of a d with all but what is worked out here; work is done of each bucket. */
static gpu_status deal(dealing *d, gpu_cpu_work *work)
{
    d->size = gpu_cpu_size(d->dtype);
    d->starts[0] = 0;
    if (d->count == 0) {
        memset(d->starts, 0, (size_t)(d->rows + 1) * sizeof *d->starts);
        return GPU_OK;
    }
    cut(d);
    size_t places =
        (size_t)(d->chunks + 2) * (size_t)d->buckets + 1 + (size_t)d->chunks;
    size_t entries = (size_t)d->count * (8 + d->size);
    size_t keys = d->given ? (size_t)d->count * sizeof *d->keys : 0;
    void *memory;
    d->at = calloc(places, sizeof *d->at);
    gpu_status status =
        d->at ? gpu_cpu_alloc(NULL, entries + keys, &memory) : GPU_MEMORY;
    if (status == GPU_OK) {
        d->ends = d->at + d->chunks * d->buckets;
        d->kept = d->ends + d->buckets + 1;
        d->falls = (char *)(d->kept + d->buckets);
        d->keys = memory;
        d->entries = (char *)memory + keys;
        status = arrange(d, work);
        gpu_cpu_free(NULL, memory, entries + keys);
    }
    return status;
}

gpu_status gpu_cpu_sparse_build(void *device, const gpu_triplet_lists *t,
                                int32_t *starts, int32_t *columns, void *values,
                                int64_t *count)
{
    dealing d = {.given = t,
                 .rows = t->rows,
                 .count = t->count,
                 .starts = starts,
                 .columns = columns,
                 .values = values,
                 .dtype = t->dtype};
    (void)device;
    gpu_status status = deal(&d, build_buckets);
    *count = status == GPU_OK && t->count > 0 ? join_buckets(&d) : 0;
    free(d.at);
    return status == GPU_MEMORY ? gpu_cpu_stop(status) : status;
}

gpu_status gpu_cpu_sparse_transpose(void *device, const gpu_csr *s,
                                    int32_t *starts, int32_t *columns,
                                    void *values)
{
    dealing d = {.turned = s,
                 .rows = s->cols,
                 .count = s->count,
                 .starts = starts,
                 .columns = columns,
                 .values = values,
                 .dtype = s->dtype};
    (void)device;
    gpu_status status = deal(&d, turn_buckets);
    free(d.at);
    return status == GPU_MEMORY ? gpu_cpu_stop(status) : status;
}

/* --- places --------------------------------------------------------------- */

typedef struct placing {
    const gpu_view *from;
    int32_t *to;
    int64_t pieces;
    int64_t *largest, *wrong; /* of each piece */
} placing;

enum { PIECE = 1 << 15 };

INLINE void place_piece(const placing *p, int64_t piece, gpu_dtype t)
{
    int64_t k = piece * PIECE, largest = 0;
    int64_t last = gpu_cpu_smaller(k + PIECE, p->from->rows);
    const void *data = p->from->data;
    for (; k < last; k++) {
        int64_t at = k * p->from->row_stride;
        double x = t == GPU_F64   ? ((const double *)data)[at]
                   : t == GPU_F32 ? (double)((const float *)data)[at]
                                  : (double)((const uint8_t *)data)[at];
        int32_t i = x >= 1 && x <= INT32_MAX ? (int32_t)x : 0;
        p->to[k] = i - 1;
        if (i == 0 || (double)i != x) {
            p->wrong[piece] = k;
            return;
        }
        largest = i > largest ? i : largest;
    }
    p->largest[piece] = largest;
}

static gpu_status place_pieces(void *context, int64_t first, int64_t last)
{
    const placing *p = context;
    for (; first < last; first++) {
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        p->wrong[first] = -1;
        if (p->from->dtype == GPU_F64)
            place_piece(p, first, GPU_F64);
        else if (p->from->dtype == GPU_F32)
            place_piece(p, first, GPU_F32);
        else
            place_piece(p, first, GPU_BOOL);
    }
    return GPU_OK;
}

gpu_status gpu_cpu_sparse_places(void *device, const gpu_view *from,
                                 int32_t *to, int64_t *largest, int64_t *wrong)
{
    int64_t pieces = gpu_cpu_pieces(from->rows, PIECE);
    int64_t *found = calloc(2 * (size_t)pieces + 1, sizeof *found);
    placing p = {from, to, pieces, found, found + pieces};
    (void)device;
    if (!found)
        return gpu_cpu_stop(GPU_MEMORY);
    gpu_status status = gpu_cpu_parallel(pieces, from->rows, place_pieces, &p);
    *largest = 0;
    *wrong = -1;
    for (int64_t k = pieces - 1; k >= 0; k--) {
        *largest = p.largest[k] > *largest ? p.largest[k] : *largest;
        *wrong = p.wrong[k] >= 0 ? p.wrong[k] : *wrong;
    }
    free(found);
    return status;
}

/* --- dense matrices ------------------------------------------------------- */

typedef struct scanning {
    gpu_view m; /* its elements lie row by row, without gaps in a row */
    int32_t *starts, *columns;
    char *values;
} scanning;

#define COUNT(type, parts)                                                 \
    do {                                                                   \
        const type *x = (const type *)row;                                 \
        for (int64_t j = 0; j < cols; j++)                                 \
            n += x[(parts)*j] != 0 || ((parts) == 2 && x[2 * j + 1] != 0); \
    } while (0)

static int32_t count_row(const char *row, gpu_dtype t, int64_t cols)
{
    int32_t n = 0;
    if (t == GPU_F32)
        COUNT(float, 1);
    else if (t == GPU_F64)
        COUNT(double, 1);
    else if (t == GPU_C64)
        COUNT(float, 2);
    else if (t == GPU_C128)
        COUNT(double, 2);
    else
        COUNT(uint8_t, 1);
    return n;
}

/* Each element is written where the next entry goes, and stays if it is one;
 * what would be written behind the row's last one is not. */
#define COLLECT(type, parts)                                               \
    do {                                                                   \
        const type *x = (const type *)row;                                 \
        type *value = (type *)to;                                          \
        for (int64_t j = 0; n < count; j++) {                              \
            columns[n] = (int32_t)j;                                       \
            for (int part = 0; part < (parts); part++)                     \
                value[(parts)*n + part] = x[(parts)*j + part];             \
            n += x[(parts)*j] != 0 || ((parts) == 2 && x[2 * j + 1] != 0); \
        }                                                                  \
    } while (0)

static void collect_row(const char *row, gpu_dtype t, int64_t count,
                        int32_t *columns, char *to)
{
    int64_t n = 0;
    if (t == GPU_F32)
        COLLECT(float, 1);
    else if (t == GPU_F64)
        COLLECT(double, 1);
    else if (t == GPU_C64)
        COLLECT(float, 2);
    else
        COLLECT(double, 2);
}

/* Masks have entries of 1. */
static void collect_truths(const char *row, int64_t count, int32_t *columns,
                           float *to)
{
    for (int64_t j = 0, n = 0; n < count; j++) {
        columns[n] = (int32_t)j;
        to[n] = 1;
        n += row[j] != 0;
    }
}

static const char *dense_row(const scanning *s, int64_t i)
{
    int64_t at = i * s->m.row_stride * (int64_t)gpu_cpu_size(s->m.dtype);
    return (const char *)s->m.data + at;
}

static gpu_status count_dense(void *context, int64_t first, int64_t last)
{
    const scanning *s = context;
    for (int64_t i = first; i < last; i++) {
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        s->starts[i + 1] = count_row(dense_row(s, i), s->m.dtype, s->m.cols);
    }
    return GPU_OK;
}

static gpu_status collect_dense(void *context, int64_t first, int64_t last)
{
    const scanning *s = context;
    gpu_dtype t = s->m.dtype;
    for (int64_t i = first; i < last; i++) {
        int32_t start = s->starts[i], count = s->starts[i + 1] - start;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (t == GPU_BOOL)
            collect_truths(dense_row(s, i), count, s->columns + start,
                           (float *)(void *)s->values + start);
        else
            collect_row(dense_row(s, i), t, count, s->columns + start,
                        s->values + (size_t)start * gpu_cpu_size(t));
    }
    return GPU_OK;
}

gpu_status gpu_cpu_sparse_from_dense(void *device, const gpu_view *m,
                                     int32_t *starts, int32_t *columns,
                                     void *values, int64_t *count)
{
    scanning s = {*m, starts, columns, values};
    int64_t elements = m->rows * m->cols;
    (void)device;
    if (columns)
        return gpu_cpu_parallel(m->rows, elements, collect_dense, &s);
    gpu_status status = gpu_cpu_parallel(m->rows, elements, count_dense, &s);
    if (status == GPU_OK)
        *count = add_up_rows(starts, m->rows);
    return status;
}

/* --- and back ------------------------------------------------------------- */

typedef struct spreading {
    const gpu_csr *s;
    char *to; /* row by row, without gaps */
} spreading;

INLINE void spread_row(const gpu_csr *s, int64_t i, char *row, size_t size)
{
    const char *values = s->values;
    for (int32_t e = s->starts[i]; e < s->starts[i + 1]; e++)
        memcpy(row + (size_t)s->columns[e] * size, values + (size_t)e * size,
               size);
}

static gpu_status spread_rows(void *context, int64_t first, int64_t last)
{
    const spreading *p = context;
    size_t size = gpu_cpu_size(p->s->dtype), bytes = (size_t)p->s->cols * size;
    for (int64_t i = first; i < last; i++) {
        char *row = p->to + (size_t)i * bytes;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        memset(row, 0, bytes);
        if (size == 4)
            spread_row(p->s, i, row, 4);
        else if (size == 8)
            spread_row(p->s, i, row, 8);
        else
            spread_row(p->s, i, row, 16);
    }
    return GPU_OK;
}

gpu_status gpu_cpu_sparse_to_dense(void *device, const gpu_csr *s, void *to)
{
    spreading p = {s, to};
    (void)device;
    return gpu_cpu_parallel(s->rows, s->rows * s->cols, spread_rows, &p);
}
