/* A ring of slots in shared memory that the tensor copy engine fills while
 * warps read: its barriers, the way through it, and an order of tiles in which
 * it is filled from the L2 cache. For kernels that are built on hopper.h.
 *
 * A slot has two barriers. `full` opens when all bytes that were announced are
 * there; `empty` when everyone who reads the slot has given it back. Each
 * opens once a round, so waiting needs the round's parity, the phase. */
#ifndef GPU_CUDA_RING_H
#define GPU_CUDA_RING_H

#include "hopper.h"

/* Addresses in shared memory: of slot 0, and of its barriers; the next slot's
 * are 8 bytes further on. */
typedef struct ring {
    uint32_t first, full, empty;
} ring;

/* Bytes that the barriers of so many slots take. */
consteval int barrier_bytes(int slots)
{
    return 16 * slots;
}

/* `bytes` of slots, and behind them the barriers of `count`. */
__device__ __forceinline__ ring ring_at(uint32_t first, int bytes, int count)
{
    uint32_t full = first + bytes;
    return {first, full, full + 8 * count};
}

/* By one thread; the others, of the whole cluster where it shares slots, meet
 * it before they use the ring. readers: how many give a slot back. */
__device__ __forceinline__ void init_ring(const ring &r, int count,
                                          uint32_t readers)
{
    for (int i = 0; i < count; i++) {
        barrier_init(r.full + 8 * i, 1);
        barrier_init(r.empty + 8 * i, readers);
    }
    barriers_ready();
}

/* The next slot and the phase of its barriers. Who reads begins at {0, 0}; who
 * fills at {0, 1}, as no slot has to be given back before its first use. */
typedef struct cursor {
    int slot;
    uint32_t phase;
} cursor;

/* Returns the slot that it leaves. */
template <int SLOTS> __device__ __forceinline__ int advance(cursor *c)
{
    int slot = c->slot;
    if (++c->slot == SLOTS) {
        c->slot = 0;
        c->phase ^= 1;
    }
    return slot;
}

/* Waits until the next slot may be filled and announces so many bytes; returns
 * the barrier that the copies report to. */
__device__ __forceinline__ uint32_t open_slot(const ring &r, const cursor &c,
                                              uint32_t bytes)
{
    uint32_t full = r.full + 8 * c.slot;
    barrier_wait(r.empty + 8 * c.slot, c.phase);
    barrier_expect(full, bytes);
    return full;
}

/* Waits until the next slot is filled. */
__device__ __forceinline__ void await_slot(const ring &r, const cursor &c)
{
    barrier_wait(r.full + 8 * c.slot, c.phase);
}

/* A warp or a warpgroup has read a slot: it may be filled again, in each of the
 * BLOCKS of a cluster whose copies reach this one. thread: in that group. */
template <int BLOCKS>
__device__ __forceinline__ void give_slot(const ring &r, int slot, int thread)
{
    if (BLOCKS > 1) {
        if (thread < BLOCKS)
            barrier_arrive_at(r.empty + 8 * slot, thread);
    } else if (thread == 0) {
        barrier_arrive(r.empty + 8 * slot);
    }
}

/* The t-th tile of down x across, as tile_of in kernel.h, in 32 bits. */
__device__ __forceinline__ void grouped_tile(int t, int down, int across,
                                             int *row, int *col)
{
    const int height = 8;
    int per = height * across, group = t / per, first = group * height;
    int rows = min(height, down - first), rest = t - group * per;
    *row = first + rest % rows;
    *col = rest / rows;
}

#endif
