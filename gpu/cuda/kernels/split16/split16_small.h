/* split16 for few tiles, of 64 columns each: both multiplying warpgroups have
 * 64 x 64 sums, and a block has the whole of k, so that it waits for no other
 * one at the end.
 *
 * Tall tiles have 128 rows; the two blocks of a cluster, side by side, share
 * a. Short ones have 64 rows, and the warpgroups take every other step of k.
 * For fewer short tiles still, the blocks of a cluster share one: a team, each
 * with a slice of k (split16_results.h). What is not certain of its results,
 * a block computes again itself.
 *
 * Limited by latency, then by the tensor cores. Chunks are of 32 at any k.
 * Both planes always come, as the first copies do not wait for the facts. */
#ifndef GPU_CUDA_SPLIT16_SMALL_H
#define GPU_CUDA_SPLIT16_SMALL_H

#include "split16_results.h"
#include "split_f64_product.h"
#include "hopper.h"

/* --- what is not certain ----------------------------------------------------
 * The planes leave some results open. A block alone has its part of c: it
 * computes them again itself, in f64, and waits for no other block. As in
 * split_f64_product.h, where all blocks share that work. */

/* Of more than these, all of the part is done again: that takes less time. */
enum { MOST_PLACES = 32 };

/* In shared memory. Places count along rows of 64, from a tile's corner. */
typedef struct uncertain_list {
    unsigned count;
    unsigned short place[MOST_PLACES];
} uncertain_list;

__device__ __forceinline__ void add_place(uncertain_list *list, int i, int j)
{
    unsigned at = atomicAdd(&list->count, 1);
    if (at < MOST_PLACES)
        list->place[at] = (unsigned short)(i * 64 + j);
}

/* A tile's corner, and of its rows and columns those that a block writes. */
typedef struct part_of_c {
    int row, col;
    int first, end, cols;
} part_of_c;

/* The same product, but only that part of it. In shared memory, as registers
 * are few. */
typedef struct part_to_redo {
    split_product p;
    product<float> g;
} part_to_redo;

__device__ __forceinline__ void cut_part(const split_product &p,
                                         const product<float> &g,
                                         const part_of_c &at,
                                         part_to_redo *part)
{
    int64_t row = at.row + at.first, col = at.col;
    part->p = p;
    part->g = g;
    part->p.c += row * p.c_row + col * p.c_col;
    part->g.a += row * g.a_row;
    part->g.b += col * g.b_col;
    if (p.then.with)
        part->p.then.with += row * p.then.row + col * p.then.col;
    part->p.m = part->g.m = max(at.end - at.first, 0);
    part->p.n = part->g.n = max(at.cols, 0);
}

/* By the block's first 256 threads; not inlined, as it is rarely called.
 * shared: REDO_BYTES and a part, which nothing else uses any longer. */
static __device__ __noinline__ void
mend_block(const split_product &p, const product<float> &g, part_of_c at,
           const uncertain_list *list, int again, double *shared)
{
    unsigned count = list->count;
    if (again || count > MOST_PLACES) {
        part_to_redo *part = (part_to_redo *)(shared + REDO_BYTES / 8);
        if (threadIdx.x == 0)
            cut_part(p, g, at, part);
        redo_sync<1>(); /* the part is cut */
        redo_product<1>(part->p, part->g, 0, 1, threadIdx.x, shared);
        return;
    }
    for (unsigned e = 0; e < count; e++) {
        int64_t i = at.row + list->place[e] / 64;
        int64_t j = at.col + list->place[e] % 64;
        double sum = exact_sum<1>(g, i, j, threadIdx.x, shared);
        if (threadIdx.x == 0)
            write_exact(p, i, j, sum);
    }
}

/* --- a block ------------------------------------------------------------- */

constexpr int SMALL_THREADS = CONSUMERS + 32; /* and a warp that feeds */

typedef struct small_maps {
    CUtensorMap a; /* k, rows, planes: boxes of 64 x 64 x 2 or 64 x 128 x 1 */
    CUtensorMap b; /* 64 columns, k, groups of them, planes: 64 x 64 x 1 x 2 */
} small_maps;

template <class G>
__device__ __forceinline__ small_block find_small_block(const small_plan &q,
                                                        const uint8_t *raw)
{
    small_block b;
    uint32_t memory = (shared_address(raw) + 1023) & ~1023u;
    b.slots = ring_at(memory, G::SLOTS * G::SLOT, G::SLOTS);
    b.joined = b.slots.empty + 8 * G::SLOTS;
    b.own = b.joined + 16;
    int place = (int)blockIdx.x / q.cluster;
    int across = place / q.down, down = place - across * q.down;
    b.rank = (int)blockIdx.x - place * q.cluster;
    b.row = down * G::ROWS;
    b.col = (G::IS_TALL ? 2 * across + b.rank : across) * 64;
    b.first = G::IS_TALL ? 0 : q.steps * b.rank / q.cluster;
    b.last = G::IS_TALL ? q.steps : q.steps * (b.rank + 1) / q.cluster;
    return b;
}

/* Maps are fetched, barriers ready in all the cluster. */
template <class G>
__device__ __forceinline__ void
prepare_small(const small_maps &m, const small_plan &q, const small_block &b)
{
    if (threadIdx.x == CONSUMERS) {
        prefetch_map(&m.a);
        prefetch_map(&m.b);
        if (!G::IS_TALL)
            expect_team(b, q.cluster);
        init_ring(b.slots, G::SLOTS, G::READERS);
    }
    __syncthreads(); /* this block's are */
    if (q.cluster > 1) {
        cluster_arrive();
        cluster_wait();
    }
}

/* A step's slot: a's planes, then b's. Each block of a pair brings both one of
 * a's. */
template <class G>
__device__ __forceinline__ void feed_small(const small_maps &m,
                                           const small_block &b)
{
    cursor c = {0, 1};
    for (int step = b.first; step < b.last; step++) {
        uint32_t full = open_slot(b.slots, c, G::SLOT);
        uint32_t to = b.slots.first + c.slot * G::SLOT;
        if (G::IS_TALL)
            multicast_box3(to + b.rank * G::PLANE_A, &m.a, full, step * DEPTH,
                           b.row, b.rank, 3);
        else
            copy_box3(to, &m.a, full, step * DEPTH, b.row, 0);
        copy_box4(to + 2 * G::PLANE_A, &m.b, full, 0, step * DEPTH, b.col / 64,
                  0);
        advance<G::SLOTS>(&c);
    }
}

/* The results that this block writes. */
template <class G>
__device__ __forceinline__ part_of_c own_part(const split_product &p,
                                              const small_plan &q,
                                              const small_block &b)
{
    int first = G::IS_TALL ? 0 : first_row(b.rank, q.cluster);
    int end = G::IS_TALL ? G::ROWS : first_row(b.rank + 1, q.cluster);
    return {b.row, b.col, first, min(end, (int)p.m - b.row),
            min(64, (int)p.n - b.col)};
}

/* --- multiplying -------------------------------------------------------- */

#ifdef WGMMA
/* A warpgroup's steps through the ring. */
typedef struct walk {
    cursor at;
    int step, last; /* the next one, and the end */
} walk;

/* A barrier's phase tells only this round from the one before: who waits for
 * every other step must see those between arrive as well, or a late one may
 * pass for the next. */
template <class G>
__device__ __forceinline__ int take_step(const small_block &b, walk *w)
{
    if (w->step >= b.first + G::APART && !G::IS_TALL) {
        await_slot(b.slots, w->at); /* the other warpgroup's */
        advance<G::SLOTS>(&w->at);
    }
    await_slot(b.slots, w->at);
    w->step += G::APART;
    return advance<G::SLOTS>(&w->at);
}

/* Both warpgroups have seen the first step arrive. */
template <class G>
__device__ __forceinline__ void await_first(const small_block &b)
{
    if (G::IS_TALL || b.first == b.last)
        return;
    await_slot(b.slots, {0, 0});
    bar_consumers(); /* it may be given back */
}

/* The slot of the step before the last one taken may be filled again, if it
 * is: nobody waits for a block that is done. */
template <class G>
__device__ __forceinline__ void give_step(const small_block &b, const walk &w,
                                          int slot)
{
    if (w.step - 2 * G::APART + G::SLOTS < w.last)
        give_slot<G::IS_TALL ? 2 : 1>(b.slots, slot, threadIdx.x % 128);
}

/* Half a step's products. */
template <class G, int PRODUCTS, int HALF>
__device__ __forceinline__ void
issue_half(float (&chunk)[32], const small_block &b, int group, int slot)
{
    uint32_t to = b.slots.first + slot * G::SLOT;
    uint32_t rows = to + (G::IS_TALL ? group * G::PLANE_A / 2 : 0);
    wgmma_fence();
    multiply_chunk<PRODUCTS, ALONG_K, ALONG_SPAN, 2 * HALF, 2 * HALF + 2,
                   G::PLANE_A, SMALL_PLANE_B>(
        chunk, low_word(rows, ALONG_K_LOW),
        low_word(to + 2 * G::PLANE_A, ALONG_SPAN_LOW));
    wgmma_commit();
}

/* One half of a step is added while the other one is multiplied. There are as
 * many left as right halves; but without an end for one more left one, the
 * compiler lets each wgmma wait for the one before. */
template <class G, int PRODUCTS>
__device__ __forceinline__ void multiply_steps(float (&sum)[32],
                                               const small_block &b, int group)
{
    int skipped = G::IS_TALL ? 0 : group, slot = 0;
    walk w = {{skipped, 0}, b.first + skipped, b.last};
    int halves = (w.last - w.step + G::APART - 1) / G::APART * 2, i = 1;
    float left[32], right[32];
    await_first<G>(b);
    auto issue_left = [&]() {
        slot = take_step<G>(b, &w);
        issue_half<G, PRODUCTS, 0>(left, b, group, slot);
    };
    auto issue_right = [&]() {
        issue_half<G, PRODUCTS, 1>(right, b, group, slot);
    };
    if (halves == 0)
        return;
    issue_left();
    for (; i + 1 < halves; i += 2) {
        int before = slot;
        issue_right();
        wgmma_wait<1>(left);
        add_chunk(sum, left);
        issue_left();
        wgmma_wait<1>(right);
        give_step<G>(b, w, before);
        add_chunk(sum, right);
    }
    if (i < halves) {
        issue_right();
        wgmma_wait<1>(left);
        add_chunk(sum, left);
        wgmma_wait<0>(right);
        add_chunk(sum, right);
    } else {
        wgmma_wait<0>(left);
        add_chunk(sum, left);
    }
}

template <class G>
__device__ __forceinline__ void multiply_all(float (&sum)[32],
                                             const small_block &b, int products)
{
#pragma unroll
    for (int i = 0; i < 32; i++)
        sum[i] = 0;
    if (products == 4)
        multiply_steps<G, 4>(sum, b, threadIdx.x / 128);
    else
        multiply_steps<G, 3>(sum, b, threadIdx.x / 128);
}

/* 128 x 64 results, 16 x 64 a warp. */
template <bool THEN, class NOTE>
__device__ __forceinline__ void consume_tall(const split_product &p,
                                             const small_block &b, int products,
                                             NOTE note)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row = b.row + warp * 16;
    marks<8> m = load_marks<8>(p, row + lane / 4, b.col + lane % 4 * 2);
    fetch_u<THEN>(p, row, 16, b.col, 64, lane);
    float sum[32];
    multiply_all<tall_tile<THEN>>(sum, b, products);
    write_rows<8, THEN>(p, sum, m, row, b.col, b.own + warp * STAGE, lane,
                        note);
}

/* 64 x 64 results, or this block's share of them. */
template <bool THEN, class NOTE>
__device__ __forceinline__ void
consume_short(const split_product &p, const small_plan &q, const small_block &b,
              int products, NOTE note)
{
    team_share share = find_share(p, q, b);
    int first = first_row(b.rank, q.cluster) + (int)threadIdx.x / 32 * 8;
    int rows = min(8, first_row(b.rank + 1, q.cluster) - first);
    fetch_u<THEN>(p, b.row + first, rows, b.col, 64, (int)threadIdx.x % 32);
    float sum[32];
    multiply_all<short_tile<THEN>>(sum, b, products);
    keep_sums(b, sum);
    bar_consumers(); /* both warpgroups' sums are kept */
    write_share<THEN>(p, q, b, share, note);
}

template <class G>
__device__ __forceinline__ void
consume_small(const split_product &p, const small_plan &q,
              const product<float> &g, const small_block &b,
              uncertain_list *list)
{
    int products = products_for(*p.a.facts, *p.b.facts);
    auto note = [&](int i, int j) { add_place(list, i - b.row, j - b.col); };
    if constexpr (G::IS_TALL)
        consume_tall<G::THEN>(p, b, products, note);
    else
        consume_short<G::THEN>(p, q, b, products, note);
    bar_consumers(); /* all is written and noted */
    if (list->count > 0 || products == 0)
        mend_block(p, g, own_part<G>(p, q, b), list, products == 0,
                   (double *)__cvta_shared_to_generic(b.slots.first));
}
#endif

/* --- the kernel --------------------------------------------------------- */

template <class G>
__global__ void __launch_bounds__(SMALL_THREADS, 1)
    multiply_small(const __grid_constant__ small_maps m,
                   const __grid_constant__ split_product p,
                   const __grid_constant__ small_plan q,
                   const __grid_constant__ product<float> g)
{
#ifdef WGMMA
    extern __shared__ uint8_t raw[];
    __shared__ uncertain_list list;
    small_block b = find_small_block<G>(q, raw);
    if (threadIdx.x == 0)
        list.count = 0;
    prepare_small<G>(m, q, b);
    wait_for_previous();
    if (threadIdx.x < CONSUMERS)
        consume_small<G>(p, q, g, b, &list);
    else if (threadIdx.x == CONSUMERS)
        feed_small<G>(m, b);
#endif
}

#endif
