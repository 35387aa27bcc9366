/* The way of a step of k through the ring of narrow_hopper.cu: asked for by
 * one warpgroup, multiplied by two, given back. */
#ifndef GPU_CUDA_NARROW_RING_H
#define GPU_CUDA_NARROW_RING_H

#include "narrow_hopper.h"

/* --- feeding ------------------------------------------------------------ */

typedef struct maps {
    CUtensorMap a; /* k, rows, 1: boxes of a step x 128 */
    /* bf16: 64 columns, k, groups of them, 1: boxes of 64 x 64 x 2.
     * tf32: k, columns, 1, 1: boxes of 32 x 128. */
    CUtensorMap b;
} maps;

/* A part of b for this block alone, or for both of a pair. */
template <class G>
__device__ __forceinline__ void feed_b(const maps &m, uint32_t to,
                                       uint32_t full, int k, int col)
{
    int x = G::KIND == NARROW_BF16 ? 0 : k;
    int y = G::KIND == NARROW_BF16 ? k : col;
    int z = G::KIND == NARROW_BF16 ? col / 64 : 0;
    if (G::PAIR > 1)
        multicast_box4(to, &m.b, full, x, y, z, 0, 3);
    else
        copy_box4(to, &m.b, full, x, y, z, 0);
}

template <class G>
__device__ __forceinline__ void feed_slot(const maps &m, const block &b,
                                          const cursor &c, int k, int row,
                                          int col)
{
    uint32_t full = open_slot(b.slots, c, G::SLOT);
    uint32_t to = b.slots.first + c.slot * G::SLOT;
    copy_box3(to, &m.a, full, k, row, 0);
    const int count = G::HALVES / G::PAIR; /* of b: a pair shares its halves */
#pragma unroll
    for (int i = 0; i < count; i++) {
        int half = i + (int)b.rank;
        feed_b<G>(m, to + (1 + half) * PLANE, full, k, col + half * SIDE);
    }
}

template <class G>
__device__ __forceinline__ void feed(const maps &m, const plan &p,
                                     const block &b, int first, int stride)
{
    cursor c = {0, 1};
    for (int t = first; t < p.down * p.across; t += stride) {
        int row, col;
        tile_corner<G>(p, b, t, &row, &col);
        for (int step = b.first; step < b.last; step++) {
            feed_slot<G>(m, b, c, step * G::STEP, row, col);
            advance<G::SLOTS>(&c);
        }
    }
}

/* --- multiplying -------------------------------------------------------- */

#ifdef WGMMA
/* clang-format off */
#define REGISTERS128 \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95," \
    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109," \
    "%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122," \
    "%123,%124,%125,%126,%127}"
/* clang-format on */

/* 64 x 256 += 64 x 16 times 16 x 256, b along n. */
__device__ __forceinline__ void wide_bf16(float (&d)[2][64], uint32_t a,
                                          uint32_t b)
{
    asm volatile(
        "{.reg .b64 x, y;\n"
        "mov.b64 x, {%128, %130}; mov.b64 y, {%129, %130};\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " REGISTERS128
        ", x, y, 1, 1, 1, 0, 1;}"
        : GPU_ACC64(d[0]), GPU_ACC64(d[1])
        : "r"(a), "r"(b), "n"(ROWS_HIGH));
}

/* 64 x 256 += 64 x 8 times 8 x 256, both along k. */
__device__ __forceinline__ void wide_tf32(float (&d)[2][64], uint32_t a,
                                          uint32_t b)
{
    asm volatile(
        "{.reg .b64 x, y;\n"
        "mov.b64 x, {%128, %130}; mov.b64 y, {%129, %130};\n"
        "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 " REGISTERS128
        ", x, y, 1, 1, 1;}"
        : GPU_ACC64(d[0]), GPU_ACC64(d[1])
        : "r"(a), "r"(b), "n"(ROWS_HIGH));
}

/* Waits until at most one group is running, whose sums stay untouched. */
__device__ __forceinline__ void wait_for_all_but_one()
{
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}

/* The products of a quarter of a step. */
template <class G>
__device__ __forceinline__ void add_quarter(float (&sum)[G::HALVES][64],
                                            uint32_t a, uint32_t b)
{
    if constexpr (G::HALVES == 2 && G::KIND == NARROW_BF16)
        wide_bf16(sum, a, b);
    else if constexpr (G::HALVES == 2)
        wide_tf32(sum, a, b);
    else if constexpr (G::KIND == NARROW_BF16)
        wgmma_bf16(sum[0], a, b, 1);
    else
        wgmma_tf32(sum[0], a, b, 1);
}

/* One consumer's way through the ring. */
typedef struct consumer {
    ring slots;
    uint32_t a, b; /* low words of slot 0's descriptors */
    int thread;    /* in the warpgroup */
} consumer;

/* A slot is given back when the products of the next one have been issued, so
 * that the tensor cores always have work. */
template <class G>
__device__ __forceinline__ void multiply_tile(float (&sum)[G::HALVES][64],
                                              const consumer &w, cursor *c,
                                              int steps)
{
    const int along_b = G::KIND == NARROW_BF16 ? 128 : 2; /* 16 bytes */
    int before = 0;
    for (int step = 0; step < steps; step++) {
        await_slot(w.slots, *c);
        int slot = advance<G::SLOTS>(c);
        uint32_t a = w.a + slot * (G::SLOT >> 4);
        uint32_t b = w.b + slot * (G::SLOT >> 4);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; i++)
            add_quarter<G>(sum, a + 2 * i, b + along_b * i);
        wgmma_commit();
        wait_for_all_but_one();
        if (step > 0)
            give_slot<G::PAIR>(w.slots, before, w.thread);
        before = slot;
    }
#pragma unroll
    for (int half = 0; half < G::HALVES; half++)
        wgmma_wait<0>(sum[half]);
    give_slot<G::PAIR>(w.slots, before, w.thread);
}
#endif

#endif
