/* Sparse matrices made on the device: of triplets, of others transposed, of
 * dense ones; and made dense again.
 *
 * Triplets are sorted by their places, a radix sort of one key of row and
 * column, which is stable: what lies in one place is added up in the order
 * given. Limited by the bytes of the sort's passes, one for eight bits. */
#include "sparse_entries.h"

enum { CHUNK = 2048, MOST_SHORT = 32 };

/* Such a sort cannot be stopped: it begins when little is left to do. */
static gpu_status go_on(cuda_device *d, int64_t count)
{
    const double bytes_an_entry = 150;
    return gpu_cuda_go_on(d, bytes_an_entry * (double)count);
}

/* --- places --------------------------------------------------------------- */

struct place_report {
    unsigned long long largest, wrong;
};

__global__ void __launch_bounds__(THREADS)
    places_kernel(const gpu_view from, int32_t *to, place_report *report)
{
    unsigned long long largest = 0, wrong = ~0ull;
    int64_t step = gridDim.x * (int64_t)THREADS;
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < from.rows;
         e += step) {
        double x = load<double>(from, e * from.row_stride);
        bool is_place = x >= 1 && x <= INT32_MAX && x == floor(x);
        if (!is_place)
            wrong = min(wrong, (unsigned long long)e);
        else
            largest = max(largest, (unsigned long long)x);
        to[e] = is_place ? (int32_t)x - 1 : 0;
    }
    atomicMax(&report->largest, largest);
    if (wrong != ~0ull)
        atomicMin(&report->wrong, wrong);
}

gpu_status gpu_cuda_sparse_places(void *device, const gpu_view *from,
                                  int32_t *to, int64_t *largest, int64_t *wrong)
{
    ENTER(d, device);
    place_report report = {0, ~0ull}, *there;
    int64_t most = (int64_t)d->sms * 8;
    *largest = 0;
    *wrong = -1;
    if (from->rows == 0)
        return GPU_OK;
    TRY(gpu_cuda_scratch(d, sizeof report, (void **)&there));
    TRY(gpu_cuda_upload(d, there, &report, sizeof report));
    places_kernel<<<(unsigned)smaller(blocks_of(from->rows), most), THREADS, 0,
                    d->stream>>>(*from, to, there);
    LAUNCHED(d);
    TRY(gpu_cuda_download(d, &report, there, sizeof report));
    *largest = (int64_t)report.largest;
    *wrong = report.wrong == ~0ull ? -1 : (int64_t)report.wrong;
    return GPU_OK;
}

/* --- triplets ------------------------------------------------------------- */

template <class K>
__global__ void __launch_bounds__(THREADS)
    key_kernel(const int32_t *row, const int32_t *col, int64_t count,
               int column_bits, K *keys, uint32_t *entries)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (e >= count)
        return;
    keys[e] = (K)row[e] << column_bits | (K)col[e];
    entries[e] = (uint32_t)e;
}

template <class V, class K>
static gpu_status build(cuda_device *d, const gpu_triplet_lists *t,
                        place_bits bits, int32_t *starts, int32_t *columns,
                        V *values, int64_t *count)
{
    int64_t n = t->count;
    size_t sorting, scanning;
    char *room;
    TRY(gpu_cuda_sort_room<K>(d, n, 1, &sorting));
    TRY(gpu_cuda_count_room(d, n, &scanning));
    size_t work = sorting > scanning ? sorting : scanning;
    size_t lists = 2 * rounded_room((size_t)n * sizeof(K)) +
                   3 * rounded_room(((size_t)n + 1) * sizeof(uint32_t));
    TRY(gpu_cuda_scratch(d, lists + work, (void **)&room));
    sort_keys<K> p = {n};
    p.keys = take_part<K>(&room, n);
    p.other_keys = take_part<K>(&room, n);
    p.places = take_part<uint32_t>(&room, n + 1);
    p.other_places = take_part<uint32_t>(&room, n + 1);
    int32_t *kept = take_part<int32_t>(&room, n + 1);
    TRY(go_on(d, n));
    key_kernel<K><<<blocks_of(n), THREADS, 0, d->stream>>>(
        t->row, t->col, n, bits.column, p.keys, p.places);
    LAUNCHED(d);
    TRY(gpu_cuda_sort_keys<K>(d, &p, bits.row + bits.column, room, work));
    entry_list<K> l = {n, p.keys, p.places, kept};
    entry_values<V> v = {(const V *)t->values, NULL, n, 1};
    TRY((gpu_cuda_count_entries<V, K>(d, &l, &v, ADD_ALL, t->rows, bits.column,
                                      room, work, starts, count)));
    return gpu_cuda_put_entries<V, K>(d, &l, &v, ADD_ALL, bits.column, columns,
                                      values);
}

gpu_status gpu_cuda_sparse_build(void *device, const gpu_triplet_lists *t,
                                 int32_t *starts, int32_t *columns,
                                 void *values, int64_t *count)
{
    ENTER(d, device);
    place_bits bits = place_bits_of(t->rows, t->cols);
    *count = 0;
    if (t->count == 0) {
        CHECK(d,
              cudaMemsetAsync(starts, 0, ((size_t)t->rows + 1) * sizeof *starts,
                              d->stream));
        return GPU_OK;
    }
    return with_type(t->dtype, [=](auto x) {
        typedef decltype(x) V;
        V *to = (V *)values;
        return bits.row + bits.column <= MOST_SHORT
                   ? build<V, uint32_t>(d, t, bits, starts, columns, to, count)
                   : build<V, uint64_t>(d, t, bits, starts, columns, to, count);
    });
}

/* --- the transpose -------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
    column_kernel(const int32_t *columns, int64_t count, uint32_t *keys,
                  uint32_t *entries)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (e >= count)
        return;
    keys[e] = (uint32_t)columns[e];
    entries[e] = (uint32_t)e;
}

template <class V>
__global__ void __launch_bounds__(THREADS)
    turn_kernel(const uint32_t *entries, const int32_t *rows, const V *values,
                int64_t count, int32_t *to_columns, V *to_values)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (e >= count)
        return;
    to_columns[e] = rows[entries[e]];
    to_values[e] = values[entries[e]];
}

gpu_status gpu_cuda_sparse_transpose(void *device, const gpu_csr *s,
                                     int32_t *starts, int32_t *columns,
                                     void *values)
{
    ENTER(d, device);
    int64_t n = s->count;
    size_t work, list = rounded_room((size_t)n * sizeof(uint32_t));
    char *room;
    if (n == 0) {
        CHECK(d,
              cudaMemsetAsync(starts, 0, ((size_t)s->cols + 1) * sizeof *starts,
                              d->stream));
        return GPU_OK;
    }
    TRY(gpu_cuda_sort_room<uint32_t>(d, n, 1, &work));
    TRY(gpu_cuda_scratch(d, 5 * list + work, (void **)&room));
    sort_keys<uint32_t> p = {n};
    p.keys = take_part<uint32_t>(&room, n);
    p.other_keys = take_part<uint32_t>(&room, n);
    p.places = take_part<uint32_t>(&room, n);
    p.other_places = take_part<uint32_t>(&room, n);
    int32_t *rows = take_part<int32_t>(&room, n);
    TRY(go_on(d, n));
    TRY(gpu_cuda_expand_rows(d, s, rows));
    column_kernel<<<blocks_of(n), THREADS, 0, d->stream>>>(s->columns, n,
                                                           p.keys, p.places);
    LAUNCHED(d);
    TRY(gpu_cuda_sort_keys<uint32_t>(d, &p, bits_for(s->cols), room, work));
    TRY(gpu_cuda_find_starts(d, p.keys, n, s->cols, starts));
    return with_type(s->dtype, [=](auto x) {
        typedef decltype(x) V;
        turn_kernel<V><<<blocks_of(n), THREADS, 0, d->stream>>>(
            p.places, rows, (const V *)s->values, n, columns, (V *)values);
        LAUNCHED(d);
        return GPU_OK;
    });
}

/* --- dense matrices ---------------------------------------------------------
 * A block counts, and then puts, what a chunk of a row has. */

/* A row has `chunks` of them. */
struct chunks {
    gpu_view m;
    int64_t each, all;
    int32_t *before; /* all + 1: entries before each */
};

template <class E> __device__ __forceinline__ bool is_entry(E x)
{
    return !is_zero(widest(x));
}

template <class E>
__global__ void __launch_bounds__(THREADS)
    count_kernel(const __grid_constant__ chunks c, unsigned long long *total)
{
    for (int64_t k = blockIdx.x; k < c.all; k += gridDim.x) {
        int64_t i = k / c.each, first = k % c.each * CHUNK;
        const E *row = (const E *)c.m.data + i * c.m.row_stride;
        int count = 0;
        for (int q = 0; q < CHUNK; q += THREADS) {
            int64_t j = first + q + threadIdx.x;
            count += __syncthreads_count(j < c.m.cols && is_entry(row[j]));
        }
        if (threadIdx.x == 0) {
            c.before[k] = count;
            atomicAdd(total, (unsigned long long)count);
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        c.before[c.all] = 0;
}

__global__ void __launch_bounds__(THREADS)
    row_starts_kernel(const __grid_constant__ chunks c, int32_t *starts)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (i <= c.m.rows)
        starts[i] = c.before[i * c.each];
}

/* Values are of the elements' type, of a mask f32. */
template <class E> struct stored_type {
    typedef E type;
};
template <> struct stored_type<uint8_t> {
    typedef float type;
};

__device__ __forceinline__ float stored(uint8_t)
{
    return 1;
}

template <class E> __device__ __forceinline__ E stored(E x)
{
    return x;
}

template <class E>
__global__ void __launch_bounds__(THREADS)
    collect_kernel(const __grid_constant__ chunks c, int32_t *columns,
                   typename stored_type<E>::type *values)
{
    enum { WARPS = THREADS / 32 };
    __shared__ int in_warp[WARPS];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int64_t k = blockIdx.x; k < c.all; k += gridDim.x) {
        int64_t i = k / c.each, first = k % c.each * CHUNK;
        const E *row = (const E *)c.m.data + i * c.m.row_stride;
        int64_t to = c.before[k];
        for (int q = 0; q < CHUNK; q += THREADS) {
            int64_t j = first + q + threadIdx.x;
            E x = j < c.m.cols ? row[j] : E();
            bool is_there = is_entry(x);
            unsigned there = __ballot_sync(~0u, is_there);
            if (lane == 0)
                in_warp[warp] = __popc(there);
            __syncthreads(); /* counts are there */
            int before = __popc(there & ((1u << lane) - 1)), all = 0;
            for (int w = 0; w < WARPS; w++) {
                before += w < warp ? in_warp[w] : 0;
                all += in_warp[w];
            }
            if (is_there) {
                columns[to + before] = (int32_t)j;
                values[to + before] = stored(x);
            }
            to += all;
            __syncthreads(); /* and may be written again */
        }
    }
}

/* The function of the elements' type. */
template <class F> static gpu_status with_element(gpu_dtype t, F call)
{
    return t == GPU_BOOL ? call(uint8_t()) : with_type(t, call);
}

template <class E>
static gpu_status
from_dense(cuda_device *d, const gpu_view *m, int32_t *starts, int32_t *columns,
           typename stored_type<E>::type *values, int64_t *count)
{
    chunks c = {*m, larger(1, ceil_div(m->cols, CHUNK))};
    unsigned long long *total;
    size_t scanning;
    char *room;
    c.all = c.each * m->rows;
    TRY(gpu_cuda_count_room(d, c.all, &scanning));
    TRY(gpu_cuda_scratch(
        d,
        256 + rounded_room(((size_t)c.all + 1) * sizeof *c.before) + scanning,
        (void **)&room));
    total = take_part<unsigned long long>(&room, 1);
    c.before = take_part<int32_t>(&room, c.all + 1);
    unsigned blocks = (unsigned)larger(1, smaller(c.all, INT32_MAX));
    CHECK(d, cudaMemsetAsync(total, 0, sizeof *total, d->stream));
    count_kernel<E><<<blocks, THREADS, 0, d->stream>>>(c, total);
    LAUNCHED(d);
    TRY(gpu_cuda_scan_counts(d, c.before, c.all, room, scanning));
    if (columns != NULL) {
        collect_kernel<E>
            <<<blocks, THREADS, 0, d->stream>>>(c, columns, values);
        LAUNCHED(d);
        return GPU_OK;
    }
    row_starts_kernel<<<blocks_of(m->rows + 1), THREADS, 0, d->stream>>>(
        c, starts);
    LAUNCHED(d);
    return gpu_cuda_download(d, count, total, sizeof *count);
}

gpu_status gpu_cuda_sparse_from_dense(void *device, const gpu_view *m,
                                      int32_t *starts, int32_t *columns,
                                      void *values, int64_t *count)
{
    ENTER(d, device);
    return with_element(m->dtype, [=](auto x) {
        typedef decltype(x) E;
        return from_dense<E>(d, m, starts, columns,
                             (typename stored_type<E>::type *)values, count);
    });
}

template <class V>
__global__ void __launch_bounds__(THREADS)
    spread_kernel(const int32_t *starts, const int32_t *columns,
                  const V *values, int64_t rows, int64_t cols, int64_t count,
                  V *to)
{
    int64_t first = blockIdx.x * (int64_t)THREADS, e = first + threadIdx.x;
    int64_t last = min(first + THREADS, count) - 1;
    int64_t row = row_in_block(starts, rows, first, last, e);
    if (e < count)
        to[row * cols + columns[e]] = values[e];
}

gpu_status gpu_cuda_sparse_to_dense(void *device, const gpu_csr *s, void *to)
{
    ENTER(d, device);
    return with_type(s->dtype, [=](auto x) {
        typedef decltype(x) V;
        size_t bytes = (size_t)(s->rows * s->cols) * sizeof(V);
        CHECK(d, cudaMemsetAsync(to, 0, bytes, d->stream));
        if (s->count == 0)
            return GPU_OK;
        spread_kernel<V><<<blocks_of(s->count), THREADS, 0, d->stream>>>(
            s->starts, s->columns, (const V *)s->values, s->rows, s->cols,
            s->count, (V *)to);
        LAUNCHED(d);
        return GPU_OK;
    });
}
