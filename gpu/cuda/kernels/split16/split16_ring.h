/* The way of a step of k through the ring of split16_hopper.cu: asked for by
 * one warpgroup, multiplied by two, given back. A slot holds 128 x 64 of both
 * planes of one operand. */
#ifndef GPU_CUDA_SPLIT16_RING_H
#define GPU_CUDA_SPLIT16_RING_H

#include "ring.h"
#include "split16_tile.h"

constexpr int SLOT = 2 * PLANE, SLOTS = 6; /* bytes */

/* HALVES: 128 columns each of a block's tile. CHUNK: of k, added to the sums
 * at once. PAIR: blocks of a cluster, one above the other, share b. */
template <int HALVES_, int CHUNK_, int PAIR_> struct config {
    static constexpr int HALVES = HALVES_, CHUNK = CHUNK_, PAIR = PAIR_;
};

typedef struct plan {
    int steps;        /* of 64 along k */
    int down, across; /* tiles, of a pair where there are pairs */
    int slices, slice_steps;
    unsigned *tickets; /* one a tile, zero between launches */
} plan;

/* Shared memory and who this block is. */
typedef struct block {
    ring slots;
    uint32_t stages; /* address */
    uint32_t rank;   /* in the pair */
    int first, last; /* steps of k */
} block;

/* --- feeding ------------------------------------------------------------ */

typedef struct maps {
    CUtensorMap a; /* k, rows, planes: boxes of 64 x 128 x 2 */
    CUtensorMap b; /* 64 columns, k, groups of them, planes: 64 x 64 x 2 x 2 */
    CUtensorMap a_one, b_one; /* the same, boxes of one plane */
} maps;

template <class G>
__device__ __forceinline__ void feed_b(const maps &m, const block &b,
                                       uint32_t to, uint32_t full, int k,
                                       int col, int planes)
{
    if (G::PAIR == 1)
        copy_box4(to, planes == 2 ? &m.b : &m.b_one, full, 0, k, col / 64, 0);
    else if ((int)b.rank < planes) /* each block brings both a plane */
        multicast_box4(to + b.rank * PLANE, &m.b_one, full, 0, k, col / 64,
                       (int)b.rank, 3);
}

/* Brings, for each step, the left half of b, then a, then b's right half. */
template <class G>
__device__ __forceinline__ void feed(const maps &m, const plan &p,
                                     const block &b, int planes, int first,
                                     int stride)
{
    cursor c = {0, 1};
    for (int t = first; t < p.down * p.across; t += stride) {
        int row, col;
        tile_corner<G>(p, b, t, &row, &col);
        for (int step = b.first; step < b.last; step++) {
#pragma unroll
            for (int part = 0; part <= G::HALVES; part++) {
                uint32_t full = open_slot(b.slots, c, planes * PLANE);
                uint32_t to = b.slots.first + c.slot * SLOT;
                if (part != 1)
                    feed_b<G>(m, b, to, full, step * DEPTH,
                              col + (part ? SIDE : 0), planes);
                else
                    copy_box3(to, planes == 2 ? &m.a : &m.a_one, full,
                              step * DEPTH, row, 0);
                advance<SLOTS>(&c);
            }
        }
    }
}

/* --- multiplying -------------------------------------------------------- */

#ifdef WGMMA
/* One consumer's way through the ring. */
typedef struct consumer {
    ring slots;
    uint32_t a, b; /* low words of slot 0's descriptors */
    int thread;    /* in the warpgroup */
} consumer;

__device__ __forceinline__ int take(const consumer &w, cursor *c)
{
    await_slot(w.slots, *c);
    return advance<SLOTS>(c);
}

/* 64 x 256: while this warpgroup adds a chunk, the other one multiplies. */
template <class G, int PRODUCTS>
__device__ __forceinline__ void
multiply_wide(float (&sum)[2][64], const consumer &w, cursor *c, int steps)
{
    const int parts = DEPTH / G::CHUNK, per = 4 / parts;
    float chunk[64];
    for (int step = 0; step < steps; step++) {
        int b = take(w, c), a = take(w, c);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            if (half == 1)
                b = take(w, c);
#pragma unroll
            for (int part = 0; part < parts; part++) {
                uint32_t x = w.a + a * (SLOT >> 4), y = w.b + b * (SLOT >> 4);
                wgmma_fence();
                if (part == 0)
                    multiply_chunk<PRODUCTS, ALONG_K, ALONG_SPAN, 0, per>(chunk,
                                                                          x, y);
                else
                    multiply_chunk<PRODUCTS, ALONG_K, ALONG_SPAN, 4 - per, 4>(
                        chunk, x, y);
                wgmma_commit();
                wgmma_wait<0>(chunk);
                if (part == parts - 1) {
                    give_slot<G::PAIR>(w.slots, b, w.thread);
                    if (half == 1)
                        give_slot<G::PAIR>(w.slots, a, w.thread);
                }
                add_chunk(sum[half], chunk);
            }
        }
    }
}

/* 64 x 128 with two chunk accumulators: one is added while the other fills.
 * Even chunks go to the first, odd ones to the second. */
template <class G, int PRODUCTS>
__device__ __forceinline__ void
multiply_square(float (&sum)[1][64], const consumer &w, cursor *c, int steps)
{
    const int parts = DEPTH / G::CHUNK, per = 4 / parts;
    float even[64], odd[64];
    int a[2], b[2];
    auto issue_even = [&]() {
        b[0] = take(w, c);
        a[0] = take(w, c);
        wgmma_fence();
        multiply_chunk<PRODUCTS, ALONG_K, ALONG_SPAN, 0, per>(
            even, w.a + a[0] * (SLOT >> 4), w.b + b[0] * (SLOT >> 4));
        wgmma_commit();
    };
    auto issue_odd = [&]() {
        b[1] = parts == 1 ? take(w, c) : b[0];
        a[1] = parts == 1 ? take(w, c) : a[0];
        wgmma_fence();
        multiply_chunk<PRODUCTS, ALONG_K, ALONG_SPAN, 4 - per, 4>(
            odd, w.a + a[1] * (SLOT >> 4), w.b + b[1] * (SLOT >> 4));
        wgmma_commit();
    };
    auto fold_even = [&]() {
        if (parts == 1) {
            give_slot<G::PAIR>(w.slots, b[0], w.thread);
            give_slot<G::PAIR>(w.slots, a[0], w.thread);
        }
        add_chunk(sum[0], even);
    };
    auto fold_odd = [&]() {
        give_slot<G::PAIR>(w.slots, b[1], w.thread);
        give_slot<G::PAIR>(w.slots, a[1], w.thread);
        add_chunk(sum[0], odd);
    };
    int chunks = steps * parts, i = 1;
    issue_even();
    for (; i + 1 < chunks; i += 2) {
        issue_odd();
        wgmma_wait<1>(even);
        fold_even();
        issue_even();
        wgmma_wait<1>(odd);
        fold_odd();
    }
    if (i < chunks) {
        issue_odd();
        wgmma_wait<1>(even);
        fold_even();
        wgmma_wait<0>(odd);
        fold_odd();
    } else {
        wgmma_wait<0>(even);
        fold_even();
    }
}

template <class G, int PRODUCTS>
__device__ __forceinline__ void multiply_tile(float (&sum)[G::HALVES][64],
                                              const consumer &w, cursor *c,
                                              int steps)
{
    if constexpr (G::HALVES == 2)
        multiply_wide<G, PRODUCTS>(sum, w, c, steps);
    else
        multiply_square<G, PRODUCTS>(sum, w, c, steps);
}
#endif

#endif
