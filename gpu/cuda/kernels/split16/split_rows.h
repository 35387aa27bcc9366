/* Whole rows split at once by blocks of eight warps: they are read, measured
 * and cut without leaving the registers. */
#ifndef GPU_CUDA_SPLIT_ROWS_H
#define GPU_CUDA_SPLIT_ROWS_H

#include "split_one_value.h"

enum { THREADS = 256, WARPS = THREADS / 32 };

/* What a row has shown to the warps of a block. */
typedef struct row_fold {
    unsigned largest[WARPS], facts[WARPS];
    int losses[WARPS];
} row_fold;

/* --- whole rows --------------------------------------------------------- */

/* Over the LANES threads that share a row: all of them get the result. */

template <int LANES>
__device__ __forceinline__ unsigned row_largest(unsigned x, row_fold *fold)
{
    x = __reduce_max_sync(~0u, x);
    if (LANES == 32)
        return x;
    if (threadIdx.x % 32 == 0)
        fold->largest[threadIdx.x / 32] = x;
    __syncthreads(); /* all warps' maxima are there */
#pragma unroll
    for (int i = 0; i < LANES / 32; i++)
        x = max(x, fold->largest[i]);
    return x;
}

/* The first lane notes what the row has shown. */
template <int LANES>
__device__ __forceinline__ void note_row(const job &j, int64_t s, int lane,
                                         int exponent, int lost, unsigned facts,
                                         row_fold *fold)
{
    lost = __reduce_add_sync(~0u, lost);
    facts = __reduce_or_sync(~0u, facts);
    if (LANES > 32) {
        if (threadIdx.x % 32 == 0) {
            fold->losses[threadIdx.x / 32] = lost;
            fold->facts[threadIdx.x / 32] = facts;
        }
        __syncthreads(); /* all warps' findings are there */
        for (int i = 1; lane == 0 && i < LANES / 32; i++) {
            lost += fold->losses[i];
            facts |= fold->facts[i];
        }
    }
    if (lane != 0)
        return;
    j.to.marks[s] = (unsigned)(lost * MARK_LOSS + exponent + MARK_ZERO);
    j.to.flags[s] = (unsigned char)facts;
}

/* Splits rows whose elements LANES threads hold in registers, VECTORS times
 * four each; with VECTORS = 0 a row of any length is read twice. */
template <int LANES, int VECTORS, reach HOW>
__device__ __forceinline__ void split_rows(const job &j, unsigned block,
                                           row_fold *fold)
{
    const int held = VECTORS ? VECTORS : 1;
    int lane = threadIdx.x % LANES;
    int64_t s = (int64_t)block * (THREADS / LANES) + threadIdx.x / LANES;
    if (s >= j.to.span)
        return; /* whole warps: LANES is a warp, or the block one row */
    const float *row = j.from.data + s * j.from.span_stride;
    int64_t stride = j.from.depth_stride, depth = j.to.depth;
    auto load = [&](int64_t k) {
        return load4<HOW>(row + k * stride, stride, depth - k);
    };
    float4 v[held];
    unsigned largest = 0;
    if (VECTORS) {
#pragma unroll
        for (int i = 0; i < held; i++)
            v[i] = load((i * LANES + lane) * 4);
#pragma unroll
        for (int i = 0; i < held; i++)
            largest = max(largest, magnitude4(v[i]));
    } else {
#pragma unroll 8
        for (int64_t k = lane * 4; k < depth; k += LANES * 4)
            largest = max(largest, magnitude4(load(k)));
    }
    largest = row_largest<LANES>(largest, fold);
    int exponent = exponent_for(largest), lost[4] = {};
    scale f = scale_by(exponent), all[4] = {f, f, f, f};
    tally seen = {0, 0};
    int64_t line = s * j.to.pitch;
    if (VECTORS) {
#pragma unroll
        for (int i = 0; i < held; i++)
            if ((i * LANES + lane) * 4 < j.to.pitch)
                cut_four(j.to, v[i], all, line + (i * LANES + lane) * 4, lost,
                         &seen);
    } else {
#pragma unroll 4
        for (int64_t k = lane * 4; k < j.to.pitch; k += LANES * 4)
            cut_four(j.to, load(k), all, line + k, lost, &seen);
    }
    note_row<LANES>(j, s, lane, exponent, lost[0] + lost[1] + lost[2] + lost[3],
                    facts_of(seen, largest), fold);
}

#endif
