/* What the parts of narrow_hopper.cu share: the shapes of a tile and of the
 * ring, and where a block stands in the product. */
#ifndef GPU_CUDA_NARROW_HOPPER_H
#define GPU_CUDA_NARROW_HOPPER_H

#include "narrow.h"
#include "ring.h"
#include "split16_tile.h"

enum { FEED = 128, THREADS = 384 };
enum { FEED_REGISTERS = 40, MULTIPLY_REGISTERS = 232 };
enum { PARTS = 12, MOST_SLOTS = PARTS / 2 }; /* of PLANE bytes, in the ring */
/* Of the ring's end, for sums on their way to the block that adds them. */
enum { EXCHANGE_PARTS = 4, MOST_TEAM = 8 };
constexpr int RING_BYTES = PARTS * PLANE;
constexpr int SHARED =
    RING_BYTES + barrier_bytes(MOST_SLOTS) + WARPS * STAGE + 1024;

/* HALVES: 128 columns each of a block's tile. PAIR: blocks of a cluster, one
 * above the other, share b. TEAM: blocks of a cluster share a tile, a slice of
 * k each. STEP: of k, 128 bytes. */
template <narrow_kind KIND_, int HALVES_, int PAIR_, int TEAM_> struct config {
    static constexpr narrow_kind KIND = KIND_;
    static constexpr int HALVES = HALVES_, PAIR = PAIR_, TEAM = TEAM_;
    static constexpr int STEP = KIND == NARROW_BF16 ? 64 : 32;
    static constexpr int SLOT = (1 + HALVES) * PLANE; /* bytes */
    static constexpr int SLOTS =
        (PARTS - (TEAM > 1 ? EXCHANGE_PARTS : 0)) / (1 + HALVES);
};

typedef struct plan {
    int steps;         /* of k */
    int down, across;  /* tiles, of a pair where there are pairs */
    int slices;        /* of k */
    unsigned *tickets; /* one a tile, zero between launches */
} plan;

/* Shared memory and who this block is. */
typedef struct block {
    ring slots;
    uint32_t stages; /* address */
    uint32_t rank;   /* in the pair */
    int slice;
    int first, last; /* steps of k */
} block;

#endif
