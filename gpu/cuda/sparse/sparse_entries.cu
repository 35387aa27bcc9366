/* Lists of entries made into compressed rows: see sparse_entries.h. Limited by
 * bytes; values are read in the order of places, a sector each. */
#include "sparse_entries.h"

#include <cub/device/device_scan.cuh>

enum { LANES = 32 };

/* --- values --------------------------------------------------------------- */

__device__ __forceinline__ double scaled(double x, double by)
{
    return x * by;
}

__device__ __forceinline__ double2 scaled(double2 x, double by)
{
    return {x.x * by, x.y * by};
}

template <class V>
__device__ __forceinline__ sum_of<V> value_of(const entry_values<V> &v,
                                              uint32_t entry)
{
    return entry < v.split ? widest(v.first[entry])
                           : scaled(widest(v.second[entry - v.split]), v.sign);
}

template <class K>
__device__ __forceinline__ bool is_first(const entry_list<K> &l, int64_t e)
{
    return e == 0 || l.places[e - 1] != l.places[e];
}

/* Of at most two entries in the place of e, which is the first: their value;
 * false: there is none. */
template <class V, class K>
__device__ __forceinline__ bool join_two(const entry_list<K> &l,
                                         const entry_values<V> &v,
                                         entry_use use, int64_t e, V *to)
{
    bool has_second = e + 1 < l.size && l.places[e + 1] == l.places[e];
    sum_of<V> value = value_of(v, l.entries[e]);
    if (has_second && use == MULTIPLY)
        value = times(value, value_of(v, l.entries[e + 1]));
    else if (has_second)
        add(&value, value_of(v, l.entries[e + 1]));
    *to = narrowed<V>(value);
    return (has_second || use != MULTIPLY) && !is_zero(widest(*to));
}

/* --- which stay ----------------------------------------------------------- */

template <class V, class K>
__global__ void __launch_bounds__(THREADS)
    keep_kernel(const __grid_constant__ entry_list<K> l,
                const __grid_constant__ entry_values<V> v, entry_use use)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    V value;
    if (e < l.size)
        l.kept[e] = is_first(l, e) &&
                    (use == ADD_ALL || join_two(l, v, use, e, &value));
    if (e == l.size)
        l.kept[e] = 0;
}

template <class K>
__global__ void __launch_bounds__(THREADS)
    starts_kernel(const __grid_constant__ entry_list<K> l, int64_t rows,
                  int column_bits, int32_t *starts)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (i > rows)
        return;
    uint64_t first = (uint64_t)i << column_bits;
    int64_t low = 0, high = l.size;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (l.places[middle] < first)
            low = middle + 1;
        else
            high = middle;
    }
    starts[i] = l.kept != NULL ? l.kept[low] : (int32_t)low;
}

static cudaError_t call_scan(cuda_device *d, void *room, size_t *bytes,
                             int32_t *kept, int64_t size)
{
    return cub::DeviceScan::ExclusiveSum(room, *bytes, kept, kept, size + 1,
                                         d->stream);
}

gpu_status gpu_cuda_count_room(cuda_device *d, int64_t size, size_t *bytes)
{
    CHECK(d, call_scan(d, NULL, bytes, NULL, size));
    return GPU_OK;
}

gpu_status gpu_cuda_scan_counts(cuda_device *d, int32_t *counts, int64_t size,
                                void *room, size_t bytes)
{
    CHECK(d, call_scan(d, room, &bytes, counts, size));
    return GPU_OK;
}

template <class V, class K>
gpu_status gpu_cuda_count_entries(cuda_device *d, const entry_list<K> *l,
                                  const entry_values<V> *v, entry_use use,
                                  int64_t rows, int column_bits, void *room,
                                  size_t bytes, int32_t *starts, int64_t *count)
{
    int32_t kept;
    keep_kernel<V, K>
        <<<blocks_of(l->size + 1), THREADS, 0, d->stream>>>(*l, *v, use);
    LAUNCHED(d);
    TRY(gpu_cuda_scan_counts(d, l->kept, l->size, room, bytes));
    starts_kernel<K><<<blocks_of(rows + 1), THREADS, 0, d->stream>>>(
        *l, rows, column_bits, starts);
    LAUNCHED(d);
    TRY(gpu_cuda_download(d, &kept, l->kept + l->size, sizeof kept));
    *count = kept;
    return GPU_OK;
}

/* --- those that stay ------------------------------------------------------ */

/* Adds up the entries in the place of e by a warp, in their order: a place may
 * have any number of them. */
template <class V, class K>
__device__ __forceinline__ sum_of<V>
add_place(const entry_list<K> &l, const entry_values<V> &v, int64_t e, int lane)
{
    K place = l.places[e];
    sum_of<V> sum = {};
    for (int64_t base = e; base < l.size; base += LANES) {
        bool is_in = base + lane < l.size && l.places[base + lane] == place;
        sum_of<V> mine = {};
        if (is_in)
            mine = value_of(v, l.entries[base + lane]);
        int count = __popc(__ballot_sync(~0u, is_in));
        for (int k = 0; k < count; k++)
            add(&sum, shuffled(~0u, mine, k, LANES));
        if (count < LANES)
            break;
    }
    return sum;
}

template <class V, class K>
__global__ void __launch_bounds__(THREADS)
    put_kernel(const __grid_constant__ entry_list<K> l,
               const __grid_constant__ entry_values<V> v, entry_use use,
               int column_bits, int32_t *columns, V *values)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    int lane = threadIdx.x % LANES;
    bool stays = e < l.size && l.kept[e + 1] > l.kept[e];
    bool is_many = false;
    V value = {};
    if (stays) {
        is_many =
            use == ADD_ALL && e + 2 < l.size && l.places[e + 2] == l.places[e];
        if (!is_many)
            join_two(l, v, ADD, e, &value);
        if (use == MULTIPLY)
            join_two(l, v, use, e, &value);
        columns[l.kept[e]] =
            (int32_t)(l.places[e] & (((uint64_t)1 << column_bits) - 1));
    }
    for (unsigned left = __ballot_sync(~0u, is_many); left != 0;
         left &= left - 1) {
        int turn = __ffs((int)left) - 1;
        sum_of<V> sum = add_place(l, v, e - lane + turn, lane);
        if (lane == turn)
            value = narrowed<V>(sum);
    }
    if (stays)
        values[l.kept[e]] = value;
}

template <class V, class K>
gpu_status gpu_cuda_put_entries(cuda_device *d, const entry_list<K> *l,
                                const entry_values<V> *v, entry_use use,
                                int column_bits, int32_t *columns, V *values)
{
    put_kernel<V, K><<<blocks_of(l->size), THREADS, 0, d->stream>>>(
        *l, *v, use, column_bits, columns, values);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- rows ----------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
    expand_kernel(const int32_t *starts, int64_t rows, int64_t count,
                  int32_t *to)
{
    int64_t first = blockIdx.x * (int64_t)THREADS, e = first + threadIdx.x;
    int64_t last = min(first + THREADS, count) - 1;
    int64_t row = row_in_block(starts, rows, first, last, e);
    if (e < count)
        to[e] = (int32_t)row;
}

gpu_status gpu_cuda_expand_rows(cuda_device *d, const gpu_csr *s, int32_t *rows)
{
    expand_kernel<<<blocks_of(s->count), THREADS, 0, d->stream>>>(
        s->starts, s->rows, s->count, rows);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_find_starts(cuda_device *d, const uint32_t *numbers,
                                int64_t count, int64_t rows, int32_t *starts)
{
    entry_list<uint32_t> l = {count, numbers, NULL, NULL};
    starts_kernel<uint32_t>
        <<<blocks_of(rows + 1), THREADS, 0, d->stream>>>(l, rows, 0, starts);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- for these types ------------------------------------------------------ */

#define FOR(V, K)                                                       \
    template gpu_status gpu_cuda_count_entries(                         \
        cuda_device *, const entry_list<K> *, const entry_values<V> *,  \
        entry_use, int64_t, int, void *, size_t, int32_t *, int64_t *); \
    template gpu_status gpu_cuda_put_entries(                           \
        cuda_device *, const entry_list<K> *, const entry_values<V> *,  \
        entry_use, int, int32_t *, V *);
FOR(float, uint32_t)
FOR(double, uint32_t)
FOR(float2, uint32_t)
FOR(double2, uint32_t)
FOR(float, uint64_t)
FOR(double, uint64_t)
FOR(float2, uint64_t)
FOR(double2, uint64_t)
