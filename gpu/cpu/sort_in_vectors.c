/* Sorting in vectors (vector_sort.c): a line of numbers, or of f64 that have
 * values and places in their bits, by one core or all. */
#include <string.h>
#include "sort_parts.h"
#include "vector.h"

/* --- values with their places, in vectors -----------------------------------
 * Those bits of a key that differ within the line, as many as there is room
 * for, stand above the place in the bits of an f64, which rises as they do.
 * Where that is not all of the bits what they leave alike is put in order
 * afterwards; a line in which that is much is sorted by passes. */

enum {
    PACKED_BITS = 61, /* below those that say that it is a number of some size
                       */
    MOST_ALIKE = 64   /* items in a row that are put in order one by one */
};
#define PACKED_SIZE ((uint64_t)1 << 62)

typedef struct packing {
    uint64_t mask; /* of a key's bits that count */
    int shift, place_bits;
    int is_exact;
} packing;

/* The key of the element at a place of a line. */
static uint64_t key_of_place(const sorting *s, const gpu_view *line,
                             int64_t place)
{
    piece value;
    uint64_t key;
    int is_wide = s->from.dtype == GPU_F64;
    gpu_cpu_load(line, place, 1, is_wide ? GPU_F64 : GPU_F32, &value);
    if (is_wide)
        gpu_cpu_keys_of_double(value.d, 1, s->descending, 0, &key);
    else
        gpu_cpu_keys_of_float(value.f, 1, s->descending, 0, &key);
    return key;
}

/* Of elements first .. last - 1 of a line; adds to *differ what differs. */
static gpu_status make_keys(const sorting *s, const gpu_view *line,
                            int64_t first, int64_t last, uint64_t *keys,
                            uint64_t like, uint64_t *differ)
{
    piece value;
    int is_wide = s->from.dtype == GPU_F64;
    for (; first < last; first += PIECE) {
        int64_t n = gpu_cpu_smaller(last - first, PIECE);
        if (!goes_on(s, n))
            return GPU_INTERRUPTED;
        gpu_cpu_load(line, first, n, is_wide ? GPU_F64 : GPU_F32, &value);
        *differ |= is_wide ? gpu_cpu_keys_of_double(value.d, n, s->descending,
                                                    like, keys + first)
                           : gpu_cpu_keys_of_float(value.f, n, s->descending,
                                                   like, keys + first);
    }
    return GPU_OK;
}

/* n >= 2 */
static packing packing_of(int64_t n, uint64_t differ)
{
    packing p = {.place_bits = 64 - __builtin_clzll((uint64_t)n - 1),
                 .is_exact = 1};
    if (differ == 0)
        return p;
    int lead = __builtin_clzll(differ), low = __builtin_ctzll(differ);
    int over = 64 - lead - (PACKED_BITS - p.place_bits);
    p.mask = UINT64_MAX >> lead;
    p.is_exact = over <= low;
    p.shift = over <= low ? low : over;
    return p;
}

VECTORS static void pack_keys(const packing *p, uint64_t *keys, int64_t first,
                              int64_t last)
{
    uint64_t mask = p->mask;
    int shift = p->shift, place_bits = p->place_bits;
    for (int64_t i = first; i < last; i++)
        keys[i] =
            PACKED_SIZE | (keys[i] & mask) >> shift << place_bits | (uint64_t)i;
}

static int64_t packed_place(const packing *p, uint64_t item)
{
    return (int64_t)(item & (((uint64_t)1 << p->place_bits) - 1));
}

/* n items whose packed bits are alike, which are in the order of their places.
 * 0: they are too many to be put in order here. */
static int order_alike(const sorting *s, const gpu_view *line, const packing *p,
                       uint64_t *items, int64_t n)
{
    uint64_t keys[MOST_ALIKE];
    for (int64_t i = 0; i < n; i++) {
        uint64_t item = items[i];
        uint64_t key = key_of_place(s, line, packed_place(p, item));
        int64_t j = gpu_cpu_smaller(i, MOST_ALIKE - 1);
        if (i >= MOST_ALIKE && key < keys[j])
            return 0;
        for (; i < MOST_ALIKE && j > 0 && keys[j - 1] > key; j--) {
            keys[j] = keys[j - 1];
            items[j] = items[j - 1];
        }
        keys[j] = key;
        if (i < MOST_ALIKE)
            items[j] = item;
    }
    return 1;
}

/* Of n sorted items; 0: more are alike than are put in order here. */
static int mend_alike(const sorting *s, const gpu_view *line, const packing *p,
                      uint64_t *items, int64_t n)
{
    int64_t first = 0;
    for (int64_t i = 1; !p->is_exact && i <= n; i++) {
        if (i < n && (items[i] ^ items[i - 1]) >> p->place_bits == 0)
            continue;
        if (i - first > 1 && !order_alike(s, line, p, items + first, i - first))
            return 0;
        first = i;
    }
    return 1;
}

static gpu_status store_packed(const sorting *s, const line_views *v,
                               const packing *p, int64_t first, int64_t last,
                               const uint64_t *items)
{
    int64_t place[PIECE];
    for (; first < last; first += PIECE) {
        int64_t n = gpu_cpu_smaller(last - first, PIECE);
        if (!goes_on(s, n))
            return GPU_INTERRUPTED;
        for (int64_t i = 0; i < n; i++)
            place[i] = packed_place(p, items[first + i]);
        gpu_cpu_store_places(&v->from, &v->to, &v->order, first, n, place);
    }
    return GPU_OK;
}

int gpu_cpu_fits_packed(const sorting *s)
{
    return s->order.data && gpu_cpu_vectors->sort[1] &&
           s->from.cols > SHORT_LINE && s->from.cols <= 1 << 24;
}

gpu_status gpu_cpu_sort_packed_line(const sorting *s, int64_t line, void *room)
{
    uint64_t *items = room, differ = 0;
    int64_t n = s->from.cols;
    line_views v = gpu_cpu_line_of(s, line, NULL);
    uint64_t like = key_of_place(s, &v.from, 0);
    if (make_keys(s, &v.from, 0, n, items, like, &differ) != GPU_OK)
        return GPU_INTERRUPTED;
    packing p = packing_of(n, differ);
    pack_keys(&p, items, 0, n);
    gpu_cpu_vectors->sort[1](items, (size_t)n);
    if (!mend_alike(s, &v.from, &p, items, n))
        return GPU_UNSUPPORTED;
    return store_packed(s, &v, &p, 0, n, items);
}

/* --- a line in vectors, on all cores ----------------------------------------
 * Parted again and again, by half as many cores as there are parts, until the
 * parts are many; these are sorted one by one. */

enum {
    WORTH_PARTS = 1 << 14, /* elements */
    LEAST_PART = 1 << 13,
    MOST_SPLITS = 6, /* of each element */
    FEW_THREADS = 8, /* up to which the first splits, which few threads make, */
    MANY_SPLIT = 1 << 20, /* are worth it of more elements; */
    MOST_SPLIT = 1 << 27  /* nobody asks whether to stop within a split */
};

typedef struct vector_line {
    const sorting *s;
    line_views v;
    oddities odd;
    int64_t n, chunk, chunks;
    char *items;            /* numbers, or f64 that are packed */
    int is_wide, is_stored; /* items are to be f64; are where results go */
    packing pack;           /* of values with places */
    uint64_t like;
    atomic_ullong differ;
    atomic_int is_missed; /* too many are alike */
    int64_t wanted;       /* of the sorted items, so many are stored */
    int splits, done;
    int64_t start[(1 << MOST_SPLITS) + 1]; /* of parts */
} vector_line;

/* So many elements are worth threads: sorting is more work than most. */
static int64_t work_of(int64_t n)
{
    return n < 1 << 18 ? 4 * n : n;
}

static gpu_status make_vector_chunks(void *context, int64_t first, int64_t last)
{
    vector_line *l = context;
    gpu_status status = GPU_OK;
    for (int64_t c = first; c < last && status == GPU_OK; c++) {
        int64_t from = c * l->chunk;
        int64_t to = gpu_cpu_smaller(from + l->chunk, l->n);
        uint64_t differ = 0;
        if (!l->s->order.data) {
            status = gpu_cpu_make_numbers(l->s, &l->v.from, from, to, l->items,
                                          &l->odd);
            continue;
        }
        status = make_keys(l->s, &l->v.from, from, to,
                           (uint64_t *)(void *)l->items, l->like, &differ);
        atomic_fetch_or(&l->differ, differ);
    }
    return status;
}

static gpu_status pack_chunks(void *context, int64_t first, int64_t last)
{
    vector_line *l = context;
    for (int64_t c = first; c < last; c++) {
        int64_t from = c * l->chunk;
        int64_t to = gpu_cpu_smaller(from + l->chunk, l->n);
        if (!goes_on(l->s, to - from))
            return GPU_INTERRUPTED;
        pack_keys(&l->pack, (uint64_t *)(void *)l->items, from, to);
    }
    return GPU_OK;
}

/* Of packed items those that are alike stay together. */
static int64_t split_items(const vector_line *l, int64_t first, int64_t n)
{
    char *x = l->items + (size_t)first * (l->is_wide ? 8 : 4);
    uint64_t places = 0;
    if (l->s->order.data)
        places = ((uint64_t)1 << l->pack.place_bits) - 1;
    if (n < GPU_CPU_SPLIT)
        return n;
    return (int64_t)gpu_cpu_vectors->split[l->is_wide](x, (size_t)n, places);
}

/* Parts first .. last - 1 of those there are by now become two each. */
static gpu_status split_parts(void *context, int64_t first, int64_t last)
{
    vector_line *l = context;
    int apart = 1 << (l->splits - l->done);
    for (int64_t i = first; i < last; i++) {
        int64_t *start = l->start + i * apart;
        if (!goes_on(l->s, (start[apart] - start[0]) / MOST_SPLITS))
            return GPU_INTERRUPTED;
        start[apart / 2] =
            start[0] + split_items(l, start[0], start[apart] - start[0]);
    }
    return GPU_OK;
}

/* With a look at the flag where they are many. */
static gpu_status sort_part(const vector_line *l, int64_t first, int64_t n)
{
    while (n > AT_ONCE) {
        int64_t low = split_items(l, first, n);
        if (!goes_on(l->s, 0))
            return GPU_INTERRUPTED;
        if (low == 0 || low == n)
            break; /* all are alike */
        int64_t fewer = gpu_cpu_smaller(low, n - low);
        int is_low = fewer == low;
        gpu_status status = sort_part(l, is_low ? first : first + low, fewer);
        if (status != GPU_OK)
            return status;
        first += is_low ? low : 0;
        n -= fewer;
    }
    gpu_cpu_vectors->sort[l->is_wide](
        l->items + (size_t)first * (l->is_wide ? 8 : 4), (size_t)n);
    return goes_on(l->s, n * PASSES) ? GPU_OK : GPU_INTERRUPTED;
}

static gpu_status sort_parts(void *context, int64_t first, int64_t last)
{
    vector_line *l = context;
    uint64_t *packed = (uint64_t *)(void *)l->items;
    gpu_status status = GPU_OK;
    for (int64_t i = first; i < last && status == GPU_OK; i++) {
        int64_t from = l->start[i], to = l->start[i + 1];
        status = sort_part(l, from, to - from);
        if (status != GPU_OK)
            return status;
        if (!l->s->order.data) {
            if (!l->is_stored)
                status = gpu_cpu_store_numbers(l->s, &l->v.to, from,
                                               gpu_cpu_smaller(to, l->wanted),
                                               l->items);
            continue;
        }
        if (!mend_alike(l->s, &l->v.from, &l->pack, packed + from, to - from))
            l->is_missed = 1;
        if (l->is_missed)
            return GPU_OK;
        status = store_packed(l->s, &l->v, &l->pack, from, to, packed);
    }
    return status;
}

/* --- packed items by their upper bits ---------------------------------------
 * Where these fall into many buckets, none of which has much of the line, one
 * pass puts items into them, and each is small enough for a cache. */

enum {
    BUCKET_BITS = 13,
    BUCKETS = 1 << BUCKET_BITS,
    LEAST_SCATTERED = 1 << 15, /* items: of fewer there is little to gain, */
    MOST_SCATTERED = 1 << 18,  /* and more are too far apart */
    SHARE = 16,                /* a bucket has one of so many, at most */
    CHUNKS_A_THREAD = 2,
    SORTED_PARTS = 64 /* of buckets that are sorted one after the other */
};

typedef struct scattering {
    vector_line *l;
    const uint64_t *items;
    uint64_t *to;
    int shift; /* of a bucket's bits */
    int64_t chunks;
    int64_t *count; /* of each chunk for each bucket, then where they go; and
                     * where each bucket begins, and one behind the last */
} scattering;

static int64_t chunk_begin(const scattering *b, int64_t chunk)
{
    return b->l->n * chunk / b->chunks;
}

static int64_t bucket_of(uint64_t item, int shift)
{
    return (int64_t)(item >> shift & (BUCKETS - 1));
}

static gpu_status count_buckets(void *context, int64_t first, int64_t last)
{
    const scattering *b = context;
    const uint64_t *items = b->items;
    int shift = b->shift;
    for (int64_t c = first; c < last; c++) {
        int64_t *count = b->count + c * BUCKETS, end = chunk_begin(b, c + 1);
        if (!goes_on(b->l->s, 0))
            return GPU_INTERRUPTED;
        memset(count, 0, BUCKETS * sizeof *count);
        for (int64_t i = chunk_begin(b, c); i < end; i++)
            count[bucket_of(items[i], shift)]++;
    }
    return GPU_OK;
}

/* 0: a bucket has too much of the line. */
static int place_buckets(scattering *b)
{
    int64_t *start = b->count + b->chunks * BUCKETS, next = 0;
    for (int64_t k = 0; k < BUCKETS; k++) {
        start[k] = next;
        for (int64_t c = 0; c < b->chunks; c++) {
            int64_t *count = &b->count[c * BUCKETS + k], own = *count;
            *count = next;
            next += own;
        }
        if (next - start[k] > b->l->n / SHARE)
            return 0;
    }
    start[BUCKETS] = next;
    return 1;
}

static gpu_status scatter_chunks(void *context, int64_t first, int64_t last)
{
    const scattering *b = context;
    const uint64_t *items = b->items;
    uint64_t *restrict to = b->to;
    int shift = b->shift;
    for (int64_t c = first; c < last; c++) {
        int64_t *restrict place = b->count + c * BUCKETS;
        int64_t i = chunk_begin(b, c), end = chunk_begin(b, c + 1);
        if (!goes_on(b->l->s, end - i))
            return GPU_INTERRUPTED;
        for (; i < end; i++)
            to[place[bucket_of(items[i], shift)]++] = items[i];
    }
    return GPU_OK;
}

/* The first bucket that begins with a part of the line, or behind where it
 * does. */
static int64_t first_bucket(const scattering *b, int64_t part)
{
    const int64_t *start = b->count + b->chunks * BUCKETS;
    int64_t low = 0, high = BUCKETS, at = b->l->n * part / SORTED_PARTS;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (start[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static gpu_status sort_buckets(void *context, int64_t first, int64_t last)
{
    const scattering *b = context;
    vector_line *l = b->l;
    const int64_t *start = b->count + b->chunks * BUCKETS;
    gpu_status status = GPU_OK;
    for (int64_t p = first; p < last && status == GPU_OK; p++) {
        int64_t k = first_bucket(b, p), end = first_bucket(b, p + 1);
        int64_t from = start[k], to = start[end];
        for (; k < end; k++)
            if (start[k + 1] - start[k] > 1)
                gpu_cpu_vectors->sort[1](b->to + start[k],
                                         (size_t)(start[k + 1] - start[k]));
        if (!mend_alike(l->s, &l->v.from, &l->pack, b->to + from, to - from))
            l->is_missed = 1;
        if (l->is_missed)
            return GPU_OK;
        status = goes_on(l->s, (to - from) * PASSES) ? GPU_OK : GPU_INTERRUPTED;
        if (status == GPU_OK && to > from)
            status = store_packed(l->s, &l->v, &l->pack, from, to, b->to);
    }
    return status;
}

/* Sorts packed items so, and stores them. GPU_UNSUPPORTED: they lie too
 * unevenly, and are as they were. */
static gpu_status scatter_items(vector_line *l)
{
    int64_t chunks = CHUNKS_A_THREAD * gpu_cpu_threads(), n = l->n;
    int bits = l->pack.mask == 0
                   ? 0
                   : 64 - __builtin_clzll(l->pack.mask) - l->pack.shift;
    scattering b = {.l = l,
                    .items = (const uint64_t *)(const void *)l->items,
                    .chunks = gpu_cpu_smaller(chunks, n / LEAST_PART)};
    if (n < LEAST_SCATTERED || n > MOST_SCATTERED || bits < BUCKET_BITS)
        return GPU_UNSUPPORTED;
    b.shift = l->pack.place_bits + bits - BUCKET_BITS;
    size_t counts = (size_t)((b.chunks + 1) * BUCKETS + 1) * sizeof *b.count;
    size_t bytes = counts + (size_t)n * sizeof *b.to;
    void *room;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return GPU_UNSUPPORTED; /* which needs less */
    b.count = room;
    b.to = (uint64_t *)(void *)((char *)room + counts);
    gpu_status status =
        gpu_cpu_parallel(b.chunks, work_of(n), count_buckets, &b);
    if (status == GPU_OK && !place_buckets(&b))
        status = GPU_UNSUPPORTED;
    if (status == GPU_OK)
        status = gpu_cpu_parallel(b.chunks, work_of(n), scatter_chunks, &b);
    if (status == GPU_OK)
        status = gpu_cpu_parallel(SORTED_PARTS, work_of(n), sort_buckets, &b);
    gpu_cpu_free(NULL, room, bytes);
    return status;
}

/* The first n items are put in order, and stored. */
static gpu_status run_parts(vector_line *l, int64_t n)
{
    int64_t work = work_of(n);
    gpu_status status = GPU_OK;
    while (l->splits < MOST_SPLITS && n >> l->splits > LEAST_PART)
        l->splits++;
    l->start[0] = 0;
    l->start[1 << l->splits] = n;
    for (l->done = 0; l->done < l->splits && status == GPU_OK; l->done++)
        status = gpu_cpu_parallel((int64_t)1 << l->done, work, split_parts, l);
    return status == GPU_OK
               ? gpu_cpu_parallel((int64_t)1 << l->splits, work, sort_parts, l)
               : status;
}

static gpu_status run_vector_stages(vector_line *l)
{
    gpu_status status =
        gpu_cpu_parallel(l->chunks, l->n, make_vector_chunks, l);
    if (status == GPU_OK && l->s->order.data) {
        l->pack = packing_of(l->n, l->differ);
        status = gpu_cpu_parallel(l->chunks, l->n, pack_chunks, l);
        if (status == GPU_OK)
            status = scatter_items(l);
        if (status != GPU_UNSUPPORTED)
            return status;
        status = GPU_OK;
    }
    if (status == GPU_OK)
        status = run_parts(l, l->n);
    if (status != GPU_OK)
        return status;
    status = gpu_cpu_end_line(l->s, &l->v, l->items);
    return status == GPU_OK ? status : gpu_cpu_stop(status);
}

/* The first of a line of numbers, as many as are wanted: what is behind them is
 * parted from the rest as far as it pays. */
static gpu_status run_first_stages(vector_line *l)
{
    enum { ROUNDS = 100 };
    int64_t low = 0, high = l->n;
    gpu_status status =
        gpu_cpu_parallel(l->chunks, l->n, make_vector_chunks, l);
    if (status != GPU_OK)
        return status;
    if (l->n - l->odd.nans < l->wanted)
        return GPU_UNSUPPORTED;
    for (int i = 0; i < ROUNDS && high - low >= GPU_CPU_SPLIT; i++) {
        int64_t middle = low + split_items(l, low, high - low);
        if (!goes_on(l->s, 0))
            return gpu_cpu_stop(GPU_INTERRUPTED);
        if (middle <= low || middle >= high || low == l->wanted)
            break;
        *(middle <= l->wanted ? &low : &high) = middle;
    }
    status = run_parts(l, low == l->wanted ? low : high);
    if (status != GPU_OK || l->odd.zeros != 3)
        return status;
    mixture m = {gpu_cpu_find_zero(l->s, l->items, l->wanted), -1};
    status = gpu_cpu_mend_mixture(l->s, &l->v.from, &l->v.to, m);
    return status == GPU_OK ? status : gpu_cpu_stop(status);
}

int gpu_cpu_fits_vectors(const sorting *s)
{
    int64_t n = s->from.cols;
    if (s->order.data && !gpu_cpu_fits_packed(s))
        return 0;
    return n >= WORTH_PARTS && n <= MOST_SPLIT &&
           (s->from.rows == 1 || s->from.rows < gpu_cpu_threads()) &&
           (n <= MANY_SPLIT || gpu_cpu_threads() <= FEW_THREADS) &&
           gpu_cpu_vectors->split[s->kind == NUMBERS || s->order.data != NULL];
}

/* Numbers are sorted where they are to be, where they can. */
static int is_result(const sorting *s, const gpu_view *to)
{
    return !s->order.data && !s->descending && to->col_stride == 1 &&
           to->dtype == (s->kind == NUMBERS ? GPU_F64 : GPU_F32);
}

gpu_status gpu_cpu_sort_in_vectors(const sorting *s, int64_t line,
                                   int64_t wanted)
{
    vector_line l = {.s = s, .n = s->from.cols, .wanted = wanted};
    l.is_wide = s->kind == NUMBERS || s->order.data;
    size_t bytes = (size_t)l.n * (l.is_wide ? 8 : 4);
    l.v = gpu_cpu_line_of(s, line, &l.odd);
    l.is_stored = wanted == l.n && is_result(s, &l.v.to);
    void *room = NULL;
    if (!l.is_stored && gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    l.items = room ? room : l.v.to.data;
    if (s->order.data)
        l.like = key_of_place(s, &l.v.from, 0);
    l.chunk = l.n / MOST_CHUNKS + 1;
    l.chunk = l.chunk > LEAST_PART ? l.chunk : LEAST_PART;
    l.chunks = gpu_cpu_pieces(l.n, l.chunk);
    gpu_status status =
        wanted < l.n ? run_first_stages(&l) : run_vector_stages(&l);
    if (room)
        gpu_cpu_free(NULL, room, bytes);
    return status == GPU_OK && l.is_missed ? GPU_UNSUPPORTED : status;
}
