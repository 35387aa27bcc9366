/* Products of two sparse matrices.
 *
 * An entry of a has as many products as the row of b that it meets has entries.
 * A row's products, in the order of a's entries, are sorted by column, and what
 * is in one place is added up, in the order of a's entries and in f64, so that
 * bits are a CPU's. Rows are told apart by how many products they have: those
 * of few are sorted in registers, by a warp or a part of one
 * (sparse_short_rows.cu), those of more by a block in shared memory, and the
 * longest are listed and sorted in memory. What rows have is counted first and
 * put in its place then.
 *
 * Source of expanding, sorting and adding up: Bell, Dalton and Olson, Exposing
 * fine-grained parallelism in algebraic multigrid methods, 2012. */
#include "sparse_multiply.h"

#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <stdlib.h>

enum { BLOCK = 512, EACH = 8, TILE = BLOCK * EACH };
enum { LISTED_EACH = 8 };       /* products that a thread lists in memory */
enum { MOST_LISTED = 1 << 26 }; /* at a time, but for a row alone */

/* Of rows: the short ones, those of a block, and those that are listed. */
enum { MIDDLE = SHORT_KINDS, LARGE, KINDS };

__device__ __forceinline__ int64_t products_before(const pattern &f,
                                                   int64_t row)
{
    return f.before[f.starts[row]];
}

/* --- a walk along the products of a row ----------------------------------- */

struct walker {
    const pattern &f;
    int64_t entry, left; /* of a, and how many of its products remain */
    int64_t at;          /* entry of b */

    /* At one of the row's products, counted from the first of all rows. */
    __device__ __forceinline__ walker(const pattern &f, int64_t row,
                                      int64_t product)
        : f(f)
    {
        int64_t first = f.starts[row], last = f.starts[row + 1] - 1;
        while (first < last) { /* the last that has no more before it */
            int64_t middle = last - (last - first) / 2;
            if (f.before[middle] <= product)
                first = middle;
            else
                last = middle - 1;
        }
        entry = first;
        meet();
        at += product - f.before[entry];
        left -= product - f.before[entry];
    }

    __device__ __forceinline__ void meet()
    {
        at = f.b_starts[f.columns[entry]];
        left = f.before[entry + 1] - f.before[entry];
    }

    /* To the next product, of which there is one. */
    __device__ __forceinline__ void step()
    {
        at++;
        if (--left > 0)
            return;
        do
            entry++;
        while (f.before[entry + 1] == f.before[entry]);
        meet();
    }
};

template <class V>
__device__ __forceinline__ sum_of<V> product_at(const factors<V> &f,
                                                const walker &w)
{
    return times_alone(widest(f.values[w.entry]), widest(f.b_values[w.at]));
}

__global__ void __launch_bounds__(THREADS)
    lengths_kernel(const __grid_constant__ pattern f, int64_t *lengths)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (e < f.count) {
        int32_t row = f.columns[e];
        lengths[e] = f.b_starts[row + 1] - f.b_starts[row];
    } else if (e == f.count) {
        lengths[e] = 0;
    }
}

/* --- rows of a block ------------------------------------------------------ */

struct tile_memory {
    typedef cub::BlockRadixSort<uint32_t, BLOCK, EACH, uint16_t> sorter;
    typedef cub::BlockScan<int, BLOCK> scan;
    union {
        typename sorter::TempStorage sorting;
        typename scan::TempStorage scanning;
        uint16_t order[TILE]; /* of products, by column */
    };
    uint32_t last_keys[BLOCK]; /* of each thread's */
    uint8_t heads[BLOCK];      /* bits: a place's first product */
};

__device__ __forceinline__ bool is_head(const tile_memory &m, int at)
{
    return m.heads[at / EACH] >> at % EACH & 1;
}

/* The row of a block, which has no more than TILE products.
 * V: nothing, where places are counted; room: for TILE sums of it, else. */
template <class V>
__global__ void __launch_bounds__(BLOCK, 2)
    row_kernel(const __grid_constant__ factors<V> f, const int32_t *rows,
               const __grid_constant__ row_results<V> to)
{
    constexpr bool fills = !is_nothing<V>;
    __shared__ tile_memory m;
    extern __shared__ __align__(16) unsigned char room[];
    int64_t row = rows[blockIdx.x], first = products_before(f, row);
    int count = (int)(products_before(f, row + 1) - first);
    int mine = threadIdx.x * EACH;
    uint32_t keys[EACH];
    uint16_t order[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        keys[k] = ~0u; /* behind all */
        order[k] = (uint16_t)(mine + k);
    }
    if (mine < count) {
        walker w(f, row, first + mine);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            if (mine + k >= count)
                continue;
            if (k > 0)
                w.step();
            keys[k] = (uint32_t)f.b_columns[w.at];
            if constexpr (fills)
                ((sum_of<V> *)room)[mine + k] = product_at(f, w);
        }
    }
    tile_memory::sorter(m.sorting).Sort(keys, order, 0,
                                        min(f.column_bits + 1, 32));
    m.last_keys[threadIdx.x] = keys[EACH - 1];
    __syncthreads(); /* what was for sorting is free, neighbours' keys there */
    unsigned heads = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        bool is_new =
            mine + k == 0 ||
            keys[k] !=
                (k > 0 ? keys[k - 1] : m.last_keys[max(threadIdx.x, 1u) - 1]);
        heads |= (unsigned)(is_new && mine + k < count) << k;
    }
    int before, total;
    tile_memory::scan(m.scanning).ExclusiveSum(__popc(heads), before, total);
    if constexpr (fills) {
        const sum_of<V> *products = (const sum_of<V> *)room;
        m.heads[threadIdx.x] = (uint8_t)heads;
        __syncthreads(); /* what was for the sum is free */
#pragma unroll
        for (int k = 0; k < EACH; k++)
            m.order[mine + k] = order[k];
        __syncthreads(); /* the order is there, and heads */
        int64_t at = to.starts[row] + before;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            if ((heads >> k & 1) == 0)
                continue;
            sum_of<V> sum = products[order[k]];
            for (int p = mine + k + 1; p < count && !is_head(m, p); p++)
                add(&sum, products[m.order[p]]);
            to.columns[at] = (int32_t)keys[k];
            to.values[at++] = narrowed<V>(sum);
        }
    } else if (threadIdx.x == 0) {
        to.starts[row] = total;
    }
}

template <class V>
static gpu_status do_middle(cuda_device *d, const factors<V> &f,
                            const int32_t *rows, int64_t count,
                            const row_results<V> &to)
{
    static int done;
    int bytes = 0;
    auto kernel = row_kernel<V>;
    if (count == 0)
        return GPU_OK;
    if constexpr (!is_nothing<V>) {
        bytes = TILE * (int)sizeof(sum_of<V>);
        TRY(set_once(d, (const void *)kernel,
                     cudaFuncAttributeMaxDynamicSharedMemorySize, bytes,
                     &done));
    }
    kernel<<<(unsigned)count, BLOCK, bytes, d->stream>>>(f, rows, to);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- which rows are of which kind ----------------------------------------- */

struct kind_counts {
    unsigned of[KINDS];
};

/* KINDS: it has no products. Entries of a count, too, as they are gone
 * through: what a short row's lanes do in a turn takes a block less. */
__device__ __forceinline__ int kind_of(const pattern &f, int64_t row)
{
    int64_t first = f.starts[row], end = f.starts[row + 1];
    int64_t products = f.before[end] - f.before[first];
    if (products == 0)
        return KINDS;
    if (products > TILE)
        return LARGE;
    int64_t size = max(products, (end - first) / 8);
    int kind = 0;
    while (kind < SHORT_KINDS && size > SHORT << kind)
        kind++;
    return kind;
}

/* How many rows are of each kind; or, where they are counted, the list of rows
 * by kinds. taken: of those in the list, 0 at first. */
template <bool LISTS>
__global__ void __launch_bounds__(THREADS)
    kinds_kernel(const __grid_constant__ pattern f, kind_counts *counts,
                 kind_counts *taken, int32_t *list)
{
    __shared__ unsigned own[KINDS + 1], from[KINDS + 1];
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (threadIdx.x <= KINDS)
        own[threadIdx.x] = 0;
    __syncthreads(); /* nothing is counted */
    int kind = i < f.rows ? kind_of(f, i) : KINDS;
    unsigned place = atomicAdd(&own[kind], 1u);
    __syncthreads(); /* all are */
    if (threadIdx.x < KINDS && own[threadIdx.x] > 0) {
        unsigned here = own[threadIdx.x];
        if (!LISTS) {
            atomicAdd(&counts->of[threadIdx.x], here);
        } else {
            unsigned before = 0;
            for (int k = 0; k < (int)threadIdx.x; k++)
                before += counts->of[k];
            from[threadIdx.x] =
                before + atomicAdd(&taken->of[threadIdx.x], here);
        }
    }
    __syncthreads(); /* where the block's rows lie is known */
    if (LISTS && kind < KINDS)
        list[from[kind] + place] = (int32_t)i;
}

/* --- the longest rows ----------------------------------------------------- */

/* Some of them, whose products are listed together: `before` counts those of
 * each, and of all. */
struct group {
    int64_t rows, products;
    const int32_t *row;
    const int64_t *before;
    int32_t *starts, *columns; /* what comes of them, close behind each other */
    void *sums;
    int64_t count;
};

__global__ void __launch_bounds__(THREADS)
    row_products_kernel(const __grid_constant__ pattern f, const int32_t *list,
                        int64_t count, int64_t *products)
{
    int64_t k = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (k < count)
        products[k] =
            products_before(f, list[k] + 1) - products_before(f, list[k]);
}

template <class V, class K>
__global__ void __launch_bounds__(THREADS)
    list_kernel(const __grid_constant__ factors<V> f,
                const __grid_constant__ group g, K *keys, uint32_t *places,
                sum_of<V> *products)
{
    int64_t first = (blockIdx.x * (int64_t)THREADS + threadIdx.x) * LISTED_EACH;
    int64_t end = min(first + LISTED_EACH, g.products), low = 0, high = g.rows;
    if (first >= end)
        return;
    while (low + 1 < high) { /* the last that has no more before it */
        int64_t middle = low + (high - low) / 2;
        if (g.before[middle] <= first)
            low = middle;
        else
            high = middle;
    }
    for (int64_t p = first; p < end; low++) {
        int64_t row = g.row[low], last = min(end, g.before[low + 1]);
        walker w(f, row, products_before(f, row) + p - g.before[low]);
        for (;; w.step()) {
            keys[p] = (K)low << f.column_bits | (K)f.b_columns[w.at];
            places[p] = (uint32_t)p;
            products[p] = product_at(f, w);
            if (++p == last)
                break;
        }
    }
}

__global__ void __launch_bounds__(THREADS)
    group_counts_kernel(const __grid_constant__ group g, int32_t *counts)
{
    int64_t k = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (k < g.rows)
        counts[g.row[k]] = g.starts[k + 1] - g.starts[k];
}

template <class V>
__global__ void __launch_bounds__(THREADS)
    group_put_kernel(const __grid_constant__ group g,
                     const __grid_constant__ row_results<V> to)
{
    for (int64_t k = blockIdx.x; k < g.rows; k += gridDim.x) {
        int64_t at = to.starts[g.row[k]] - (int64_t)g.starts[k];
        for (int64_t e = g.starts[k] + threadIdx.x; e < g.starts[k + 1];
             e += THREADS) {
            to.columns[at + e] = g.columns[e];
            to.values[at + e] = narrowed<V>(((const sum_of<V> *)g.sums)[e]);
        }
    }
}

/* --- memory that stays until the end -------------------------------------- */

enum { MOST_BLOCKS = 1 << 12 };

struct held {
    void *data;
    size_t bytes;
};

/* Blocks of device memory, freed together. */
struct holding {
    cuda_device *d;
    int count;
    held *blocks;
};

template <class T> static gpu_status hold(holding *h, int64_t count, T **data)
{
    held block = {NULL, (size_t)(count > 0 ? count : 1) * sizeof(T)};
    if (h->count == MOST_BLOCKS)
        return GPU_UNSUPPORTED;
    gpu_status status = gpu_cuda_alloc(h->d, block.bytes, &block.data);
    if (status == GPU_MEMORY)
        return FAIL(GPU_MEMORY, "mul: no room for %zu bytes of products",
                    block.bytes);
    TRY(status);
    h->blocks[h->count++] = block;
    *data = (T *)block.data;
    return GPU_OK;
}

static void let_go(holding *h)
{
    while (h->count > 0) {
        h->count--;
        gpu_cuda_free(h->d, h->blocks[h->count].data,
                      h->blocks[h->count].bytes);
    }
    free(h->blocks);
}

/* --- all of it --------------------------------------------------------------
 */

/* What is known on the way. groups: of the longest rows. */
template <class V> struct multiplication {
    factors<V> f;
    holding held;
    int64_t products;
    const int32_t *list; /* of rows by kinds, */
    kind_counts counts;  /* and how many are of each */
    group *groups;
    int group_count;
};

/* Products before each entry of a. */
template <class V>
static gpu_status count_products(cuda_device *d, multiplication<V> *m)
{
    int64_t *before, n = m->f.count + 1;
    size_t scanning = 0;
    char *room;
    TRY(hold(&m->held, n, &before));
    CHECK(d, cub::DeviceScan::ExclusiveSum(NULL, scanning, before, before, n,
                                           d->stream));
    TRY(gpu_cuda_scratch(d, scanning, (void **)&room));
    lengths_kernel<<<blocks_of(n), THREADS, 0, d->stream>>>(m->f, before);
    LAUNCHED(d);
    CHECK(d, cub::DeviceScan::ExclusiveSum(room, scanning, before, before, n,
                                           d->stream));
    m->f.before = before;
    return gpu_cuda_download(d, &m->products, before + m->f.count,
                             sizeof m->products);
}

/* The list of rows by kinds. */
template <class V>
static gpu_status share_out(cuda_device *d, multiplication<V> *m)
{
    int32_t *list;
    kind_counts *counts;
    unsigned blocks = blocks_of(m->f.rows);
    TRY(hold(&m->held, m->f.rows, &list));
    TRY(gpu_cuda_scratch(d, 2 * sizeof *counts, (void **)&counts));
    CHECK(d, cudaMemsetAsync(counts, 0, 2 * sizeof *counts, d->stream));
    kinds_kernel<false>
        <<<blocks, THREADS, 0, d->stream>>>(m->f, counts, NULL, NULL);
    LAUNCHED(d);
    kinds_kernel<true>
        <<<blocks, THREADS, 0, d->stream>>>(m->f, counts, counts + 1, list);
    LAUNCHED(d);
    m->list = list;
    return gpu_cuda_download(d, &m->counts, counts, sizeof m->counts);
}

/* Where the list of rows of a kind begins. */
template <class V>
static const int32_t *rows_of(const multiplication<V> *m, int kind)
{
    const int32_t *rows = m->list;
    for (int k = 0; k < kind; k++)
        rows += m->counts.of[k];
    return rows;
}

/* g's products listed, sorted and added up. */
template <class V, class K>
static gpu_status do_group(cuda_device *d, multiplication<V> *m, group *g)
{
    typedef sum_of<V> S;
    int64_t n = g->products;
    size_t sorting, scanning;
    char *room;
    S *sums;
    TRY(gpu_cuda_go_on(d, 200.0 * (double)n));
    TRY(gpu_cuda_sort_room<K>(d, n, 1, &sorting));
    TRY(gpu_cuda_count_room(d, n, &scanning));
    size_t work = sorting > scanning ? sorting : scanning;
    TRY(gpu_cuda_scratch(
        d,
        2 * rounded_room((size_t)n * sizeof(K)) +
            3 * rounded_room(((size_t)n + 1) * sizeof(uint32_t)) +
            rounded_room((size_t)n * sizeof(S)) + work,
        (void **)&room));
    sort_keys<K> s = {n};
    s.keys = take_part<K>(&room, n);
    s.other_keys = take_part<K>(&room, n);
    s.places = take_part<uint32_t>(&room, n + 1);
    s.other_places = take_part<uint32_t>(&room, n + 1);
    int32_t *kept = take_part<int32_t>(&room, n + 1);
    S *products = take_part<S>(&room, n);
    list_kernel<V, K>
        <<<blocks_of(ceil_div(n, LISTED_EACH)), THREADS, 0, d->stream>>>(
            m->f, *g, s.keys, s.places, products);
    LAUNCHED(d);
    TRY(gpu_cuda_sort_keys<K>(d, &s, bits_for(g->rows) + m->f.column_bits, room,
                              work));
    entry_list<K> l = {n, s.keys, s.places, kept};
    entry_values<S> v = {products, NULL, n, 1};
    TRY((gpu_cuda_count_entries<S, K>(d, &l, &v, ADD_ALL, g->rows,
                                      m->f.column_bits, room, work, g->starts,
                                      &g->count)));
    TRY(hold(&m->held, g->count, &g->columns));
    TRY(hold(&m->held, g->count, &sums));
    g->sums = sums;
    return gpu_cuda_put_entries<S, K>(d, &l, &v, ADD_ALL, m->f.column_bits,
                                      g->columns, sums);
}

/* Cuts the longest rows into groups; products: how many each row has. */
template <class V>
static gpu_status make_groups(cuda_device *d, multiplication<V> *m,
                              const int32_t *rows, const int64_t *products,
                              int64_t *before)
{
    int64_t many = m->counts.of[LARGE], most_rows = INT64_MAX;
    int64_t *there;
    if (m->f.column_bits < 32) /* keys of 32 bits are sorted faster */
        most_rows = (int64_t)1 << (32 - m->f.column_bits);
    TRY(hold(&m->held, many + many + 1, &there));
    for (int64_t first = 0, n; first < many; first += n) {
        group *g = m->groups + m->group_count;
        int64_t *own = before + first + m->group_count, sum = 0;
        for (n = 0; first + n < many && n < most_rows; n++) {
            if (n > 0 && sum + products[first + n] > MOST_LISTED)
                break;
            own[n] = sum;
            sum += products[first + n];
        }
        own[n] = sum;
        if (sum >= UINT32_MAX)
            return GPU_UNSUPPORTED; /* places are numbers of 32 bits */
        *g = {n, sum, rows + first, there + first + m->group_count};
        m->group_count++;
        TRY(hold(&m->held, n + 1, &g->starts));
    }
    TRY(gpu_cuda_upload(d, there, before,
                        (size_t)(many + m->group_count) * sizeof *there));
    for (int k = 0; k < m->group_count; k++) {
        group *g = m->groups + k;
        int bits = bits_for(g->rows) + m->f.column_bits;
        TRY((bits <= 32 ? do_group<V, uint32_t>(d, m, g)
                        : do_group<V, uint64_t>(d, m, g)));
    }
    return GPU_OK;
}

template <class V>
static gpu_status do_longest(cuda_device *d, multiplication<V> *m)
{
    int64_t many = m->counts.of[LARGE], *there;
    const int32_t *rows = rows_of(m, LARGE);
    if (many == 0)
        return GPU_OK;
    TRY(gpu_cuda_scratch(d, (size_t)many * sizeof *there, (void **)&there));
    row_products_kernel<<<blocks_of(many), THREADS, 0, d->stream>>>(
        m->f, rows, many, there);
    LAUNCHED(d);
    int64_t *products = (int64_t *)malloc((size_t)many * 3 * sizeof *products);
    m->groups = (group *)calloc((size_t)many, sizeof *m->groups);
    gpu_status status =
        products && m->groups
            ? gpu_cuda_download(d, products, there,
                                (size_t)many * sizeof *products)
            : FAIL(GPU_MEMORY, "no host memory for %lld rows", (long long)many);
    if (status == GPU_OK)
        status = make_groups(d, m, rows, products, products + many);
    free(products);
    return status;
}

/* All rows but the longest; V: nothing, where they are counted. */
template <class V, class W>
static gpu_status do_rows(cuda_device *d, const multiplication<W> *m,
                          const factors<V> &f, const row_results<V> &to)
{
    TRY(gpu_cuda_go_on(d, 32.0 * (double)m->products));
    for (int kind = 0; kind < SHORT_KINDS; kind++)
        TRY(gpu_cuda_multiply_short<V>(d, &f, kind, rows_of(m, kind),
                                       m->counts.of[kind], &to));
    return do_middle<V>(d, f, rows_of(m, MIDDLE), m->counts.of[MIDDLE], to);
}

/* counts: of each row's places. */
template <class V>
static gpu_status count_places(cuda_device *d, const multiplication<V> *m,
                               int32_t *counts)
{
    factors<nothing> f = {m->f};
    row_results<nothing> to = {counts};
    TRY((do_rows<nothing, V>(d, m, f, to)));
    for (int k = 0; k < m->group_count; k++) {
        const group &g = m->groups[k];
        group_counts_kernel<<<blocks_of(g.rows), THREADS, 0, d->stream>>>(
            g, counts);
        LAUNCHED(d);
    }
    return GPU_OK;
}

template <class V>
static gpu_status put_sums(cuda_device *d, const multiplication<V> *m,
                           const row_results<V> &to)
{
    TRY((do_rows<V, V>(d, m, m->f, to)));
    for (int k = 0; k < m->group_count; k++) {
        const group &g = m->groups[k];
        unsigned blocks = (unsigned)smaller(g.rows, 1 << 16);
        group_put_kernel<V><<<blocks, THREADS, 0, d->stream>>>(g, to);
        LAUNCHED(d);
    }
    return GPU_OK;
}

__global__ void __launch_bounds__(THREADS)
    sum_kernel(const int32_t *counts, int64_t rows, unsigned long long *sum)
{
    unsigned long long own = 0;
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; i < rows; i += gridDim.x * (int64_t)THREADS)
        own += (unsigned long long)counts[i];
    for (int step = 16; step > 0; step /= 2)
        own += __shfl_xor_sync(~0u, own, step);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, own);
}

/* Counts in out->starts become starts, and there is room for the entries. */
template <class V>
static gpu_status make_starts(cuda_device *d, const multiplication<V> *m,
                              gpu_csr_result *out)
{
    int64_t rows = m->f.rows;
    unsigned long long *sum, total;
    size_t scanning;
    char *room;
    TRY(gpu_cuda_count_room(d, rows, &scanning));
    TRY(gpu_cuda_scratch(d, rounded_room(sizeof *sum) + scanning,
                         (void **)&room));
    sum = take_part<unsigned long long>(&room, 1);
    CHECK(d, cudaMemsetAsync(sum, 0, sizeof *sum, d->stream));
    sum_kernel<<<(unsigned)smaller(blocks_of(rows), 1024), THREADS, 0,
                 d->stream>>>(out->starts, rows, sum);
    LAUNCHED(d);
    TRY(gpu_cuda_scan_counts(d, out->starts, rows, room, scanning));
    TRY(gpu_cuda_download(d, &total, sum, sizeof total));
    out->count = (int64_t)total;
    return out->make_room(out, out->count);
}

template <class V>
static gpu_status multiply(cuda_device *d, multiplication<V> *m,
                           gpu_csr_result *out)
{
    TRY(count_products(d, m));
    if (m->products == 0)
        return GPU_OK;
    TRY(share_out(d, m));
    TRY(do_longest(d, m));
    TRY(count_places(d, m, out->starts));
    TRY(make_starts(d, m, out));
    return put_sums<V>(d, m, {out->starts, out->columns, (V *)out->values});
}

gpu_status gpu_cuda_multiply_sparse(cuda_device *d, const gpu_csr *a,
                                    const gpu_csr *b, gpu_csr_result *out)
{
    CHECK(d, cudaMemsetAsync(out->starts, 0,
                             ((size_t)a->rows + 1) * sizeof *out->starts,
                             d->stream));
    if (a->count == 0 || b->count == 0)
        return GPU_OK;
    return with_type(a->dtype, [=](auto x) {
        typedef decltype(x) V;
        multiplication<V> m = {};
        m.f = {{a->rows, a->count, a->starts, a->columns, b->starts, b->columns,
                bits_for(b->cols)},
               (const V *)a->values,
               (const V *)b->values};
        m.held = {d, 0, (held *)calloc(MOST_BLOCKS, sizeof(held))};
        gpu_status status = m.held.blocks
                                ? multiply(d, &m, out)
                                : FAIL(GPU_MEMORY, "no host memory for lists");
        let_go(&m.held);
        free(m.groups);
        return status;
    });
}
