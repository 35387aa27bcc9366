/* Products of two sparse matrices, in rows that have few of them: a group of
 * lanes has a row, and a lane some of its products. All lanes look at once
 * which entry of a theirs are of, so that reads of b wait together; a product's
 * key is its column above its number in the row. Keys are sorted in registers
 * by a bitonic network, whose far steps are shuffles. Limited by the reads of b
 * and, in longer rows, by the network.
 *
 * Source of the network: Batcher, Sorting networks and their applications,
 * 1968. */
#include "sparse_multiply.h"

enum { WARP = 32, ALL_LANES = ~0 };

/* --- a row's products ------------------------------------------------------
 */

/* Calls take(k, p, e, at) for the products of a row, p = k lanes + lane, which
 * are of entry e of a and entry `at` of b; gives how many there are. Rows of a
 * warp, of which -1 is none, are gone through together. */
template <int LANES, int EACH, class F>
__device__ __forceinline__ int each_product(const pattern &f, int64_t row,
                                            int lane, F take)
{
    int64_t first = row < 0 ? 0 : f.starts[row];
    int64_t end = row < 0 ? 0 : f.starts[row + 1];
    int turns =
        __reduce_max_sync(ALL_LANES, (int)((end - first + LANES - 1) / LANES));
    int count = 0;
    for (int turn = 0; turn < turns; turn++, first += LANES) {
        int at = 0, length = 0;
        if (first + lane < end) {
            int32_t met = f.columns[first + lane];
            at = f.b_starts[met];
            length = f.b_starts[met + 1] - at;
        }
        int upto = length; /* of this turn's products */
#pragma unroll
        for (int step = 1; step < LANES; step *= 2) {
            int below = __shfl_up_sync(ALL_LANES, upto, step, LANES);
            upto += lane >= step ? below : 0;
        }
        int before = count + upto - length;
        int all = count + __shfl_sync(ALL_LANES, upto, LANES - 1, LANES);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            int p = k * LANES + lane;
            int owner = 0; /* the last that has no more before it */
#pragma unroll
            for (int step = LANES / 2; step > 0; step /= 2) {
                int there = __shfl_sync(ALL_LANES, before, owner + step, LANES);
                owner += there <= p ? step : 0;
            }
            int from = __shfl_sync(ALL_LANES, at - before, owner, LANES);
            if (p >= count && p < all)
                take(k, p, first + owner, from + p);
        }
        count = all;
    }
    return count;
}

/* --- sorting ---------------------------------------------------------------
 */

template <class K> __device__ __forceinline__ void put_in_order(K *x, K *y)
{
    K low = min(*x, *y);
    *y = max(*x, *y);
    *x = low;
}

/* Keys of a group of lanes, of which a lane has those side by side, rise. */
template <int LANES, int EACH, class K>
__device__ __forceinline__ void sort_keys_of(K (&keys)[EACH], int lane)
{
#pragma unroll
    for (int size = 2; size <= LANES * EACH; size *= 2) {
        /* Two runs, of which the second is read backwards, then ever shorter
         * pieces of them. */
#pragma unroll
        for (int gap = size / 2; gap > 0; gap /= 2) {
            bool mirrors = gap == size / 2;
            if (gap < EACH) {
#pragma unroll
                for (int k = 0; k < EACH; k++) {
                    int other = mirrors ? k ^ (size - 1) : k ^ gap;
                    if (other > k)
                        put_in_order(&keys[k], &keys[other]);
                }
                continue;
            }
            K others[EACH];
#pragma unroll
            for (int k = 0; k < EACH; k++)
                others[k] =
                    __shfl_xor_sync(ALL_LANES, keys[mirrors ? EACH - 1 - k : k],
                                    mirrors ? size / EACH - 1 : gap / EACH);
            bool is_low = (lane & gap / EACH) == 0;
#pragma unroll
            for (int k = 0; k < EACH; k++)
                keys[k] =
                    is_low ? min(keys[k], others[k]) : max(keys[k], others[k]);
        }
    }
}

/* --- the kernels -----------------------------------------------------------
 */

/* Lanes of a row and products of a lane, of each kind. */
template <int KIND> struct shape {
    static constexpr int lanes = KIND < 2 ? 8 : KIND < 3 ? 16 : 32;
    static constexpr int products = SHORT << KIND;
    static constexpr int each = products / lanes;
    static constexpr int threads = each > 16 ? 64 : each > 8 ? 128 : 256;
    static constexpr int rows = threads / lanes; /* of a block */
    static constexpr int bits = 5 + KIND;        /* of a product's number */
};

/* The row of this thread's group; -1: there is none. */
template <int KIND>
__device__ __forceinline__ int64_t row_of_group(const int32_t *rows,
                                                int64_t count)
{
    typedef shape<KIND> s;
    int64_t k = blockIdx.x * (int64_t)s::rows + threadIdx.x / s::lanes;
    return k < count ? rows[k] : -1;
}

/* A bit for each of a lane's sorted keys, of which the row has `own`, that is
 * the first of its column; ignored: lower bits that are not of the column. */
template <int LANES, int EACH, class K>
__device__ __forceinline__ unsigned find_heads(const K (&keys)[EACH], int lane,
                                               int own, int ignored)
{
    K last = __shfl_up_sync(ALL_LANES, keys[EACH - 1], 1, LANES);
    unsigned heads = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int p = lane * EACH + k;
        K before = k > 0 ? keys[k - 1] : last;
        bool is_head = p == 0 || keys[k] >> ignored != before >> ignored;
        heads |= (unsigned)(is_head && p < own) << k;
    }
    return heads;
}

template <int KIND>
__global__ void __launch_bounds__(shape<KIND>::threads)
    count_kernel(const __grid_constant__ pattern f, const int32_t *rows,
                 int64_t count, int32_t *counts)
{
    typedef shape<KIND> s;
    constexpr int lanes = s::lanes, each = s::each;
    int lane = threadIdx.x % lanes;
    int64_t row = row_of_group<KIND>(rows, count);
    uint32_t keys[each];
#pragma unroll
    for (int k = 0; k < each; k++)
        keys[k] = ~0u; /* behind all */
    int own = each_product<lanes, each>(
        f, row, lane, [&](int k, int p, int64_t e, int64_t at) {
            keys[k] = (uint32_t)f.b_columns[at];
        });
    sort_keys_of<lanes, each>(keys, lane);
    int heads = __popc(find_heads<lanes, each>(keys, lane, own, 0));
#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2)
        heads += __shfl_xor_sync(ALL_LANES, heads, step);
    if (row >= 0 && lane == 0)
        counts[row] = heads;
}

/* Of a row, sorted. */
template <class V, int KIND> struct row_memory {
    enum { MOST = shape<KIND>::products };
    sum_of<V> products[MOST]; /* in the order of a's entries */
    int32_t columns[MOST];    /* of the result's entries, … */
    uint16_t firsts[MOST];    /* … and where their products begin in … */
    uint16_t order[MOST];     /* … these, by column */
};

template <class V, class K, int KIND>
__global__ void __launch_bounds__(shape<KIND>::threads)
    put_kernel(const __grid_constant__ factors<V> f, const int32_t *rows,
               int64_t count, const __grid_constant__ row_results<V> to)
{
    typedef shape<KIND> s;
    constexpr int lanes = s::lanes, each = s::each;
    __shared__ row_memory<V, KIND> memory[s::rows];
    int lane = threadIdx.x % lanes;
    row_memory<V, KIND> &m = memory[threadIdx.x / lanes];
    int64_t row = row_of_group<KIND>(rows, count);
    K keys[each];
#pragma unroll
    for (int k = 0; k < each; k++)
        keys[k] = ~(K)0; /* behind all */
    int own = each_product<lanes, each>(
        f, row, lane, [&](int k, int p, int64_t e, int64_t at) {
            keys[k] = (K)f.b_columns[at] << s::bits | (K)p;
            m.products[p] =
                times_alone(widest(f.values[e]), widest(f.b_values[at]));
        });
    sort_keys_of<lanes, each>(keys, lane);
    unsigned heads = find_heads<lanes, each>(keys, lane, own, s::bits);
    int entry = __popc(heads); /* becomes that of this lane's first head */
#pragma unroll
    for (int step = 1; step < lanes; step *= 2) {
        int below = __shfl_up_sync(ALL_LANES, entry, step, lanes);
        entry += lane >= step ? below : 0;
    }
    int entries = __shfl_sync(ALL_LANES, entry, lanes - 1, lanes);
    entry -= __popc(heads);
#pragma unroll
    for (int k = 0; k < each; k++) {
        m.order[lane * each + k] = (uint16_t)(keys[k] & (s::products - 1));
        if (heads >> k & 1) {
            m.columns[entry] = (int32_t)(keys[k] >> s::bits);
            m.firsts[entry++] = (uint16_t)(lane * each + k);
        }
    }
    __syncwarp(); /* all of the row is there */
    int64_t at = row < 0 ? 0 : to.starts[row];
    for (int i = lane; i < entries; i += lanes) {
        int p = m.firsts[i], end = i + 1 < entries ? m.firsts[i + 1] : own;
        sum_of<V> sum = m.products[m.order[p]];
        while (++p < end)
            add(&sum, m.products[m.order[p]]);
        to.columns[at + i] = m.columns[i];
        to.values[at + i] = narrowed<V>(sum);
    }
}

/* --- which of them ---------------------------------------------------------
 */

template <class V, int KIND>
static gpu_status launch(cuda_device *d, const factors<V> *f,
                         const int32_t *rows, int64_t count,
                         const row_results<V> *to)
{
    typedef shape<KIND> s;
    unsigned blocks = (unsigned)ceil_div(count, s::rows);
    if constexpr (is_nothing<V>)
        count_kernel<KIND>
            <<<blocks, s::threads, 0, d->stream>>>(*f, rows, count, to->starts);
    else if (f->column_bits + s::bits <= 32)
        put_kernel<V, uint32_t, KIND>
            <<<blocks, s::threads, 0, d->stream>>>(*f, rows, count, *to);
    else
        put_kernel<V, uint64_t, KIND>
            <<<blocks, s::threads, 0, d->stream>>>(*f, rows, count, *to);
    LAUNCHED(d);
    return GPU_OK;
}

template <class V>
gpu_status gpu_cuda_multiply_short(cuda_device *d, const factors<V> *f,
                                   int kind, const int32_t *rows, int64_t count,
                                   const row_results<V> *to)
{
    if (count == 0)
        return GPU_OK;
    switch (kind) {
    case 0:
        return launch<V, 0>(d, f, rows, count, to);
    case 1:
        return launch<V, 1>(d, f, rows, count, to);
    case 2:
        return launch<V, 2>(d, f, rows, count, to);
    case 3:
        return launch<V, 3>(d, f, rows, count, to);
    case 4:
        return launch<V, 4>(d, f, rows, count, to);
    default:
        return launch<V, 5>(d, f, rows, count, to);
    }
}

/* --- for these types -------------------------------------------------------
 */

#define FOR(V)                                                            \
    template gpu_status gpu_cuda_multiply_short<V>(                       \
        cuda_device *, const factors<V> *, int, const int32_t *, int64_t, \
        const row_results<V> *)
FOR(nothing);
FOR(float);
FOR(double);
FOR(float2);
FOR(double2);
