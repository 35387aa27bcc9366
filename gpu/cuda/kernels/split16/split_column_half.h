/* How a crew of split_both_operands.cu's blocks splits b: a strip of it, 128
 * columns of some rows, is held in shared memory from the time it is measured
 * until all blocks have measured theirs and it can be cut. */
#ifndef GPU_CUDA_SPLIT_STRIPS_H
#define GPU_CUDA_SPLIT_STRIPS_H

#include "grid.h"
#include "split_row_half.h"

/* Groups of strips, each a few strips across times slices down. */
typedef struct strips {
    int groups, at_once;
    int behind;        /* float4s of shared memory before them: rows */
    unsigned *tickets; /* of the whole grid, see below */
} strips;

/* What the tickets are for. */
enum { TICKET_STRIPS, TICKET_DONE, TICKET_FACTS };

/* The part of b that this block holds: its first column, its rows. */
typedef struct strip {
    int64_t col;
    int slice, first, last;
} strip;

__device__ __forceinline__ strip strip_of(const job &j, const strips &p,
                                          int group)
{
    strip s;
    int depth = (int)j.to.depth;
    s.col = (int64_t)(group * p.at_once + (int)blockIdx.x % p.at_once) * STRIP;
    s.slice = (int)blockIdx.x / p.at_once;
    s.first = min(depth, s.slice * j.slice_rows);
    s.last = s.col < j.to.span ? min(depth, s.first + j.slice_rows) : s.first;
    return s;
}

/* A row's part of the strip lies in HELD aligned groups from here on; elements
 * before it are the row's shift, the same for all rows of a warp. */
template <reach HOW> struct strip_row {
    const float4 *first;
    int shift, count; /* elements before the strip's, and up to its end */
};

template <reach HOW>
__device__ __forceinline__ strip_row<HOW> find_row(const job &j, strip part,
                                                   int row)
{
    const float *from = j.from.data + part.col + row * j.from.depth_stride;
    int shift = HOW == ALIGNED ? 0 : shift_of(from);
    int count = (int)min((int64_t)STRIP, j.to.span - part.col);
    return {(const float4 *)(from - shift), shift, shift + count};
}

__device__ __forceinline__ void keep_largest(uint4 *largest, float4 v)
{
    largest->x = max(largest->x, magnitude(v.x));
    largest->y = max(largest->y, magnitude(v.y));
    largest->z = max(largest->z, magnitude(v.z));
    largest->w = max(largest->w, magnitude(v.w));
}

/* The largest magnitude of each column of the strip, over the whole block. */
template <reach HOW>
__device__ __forceinline__ void tell_largest(const job &j, strip part,
                                             int thread, crew_memory *memory)
{
    crew_sync<CREW_B>(); /* all warps' maxima are there */
    int64_t s = part.col + thread;
    if (thread >= STRIP || part.first == part.last)
        return;
    if (part.slice == 0 && read_with(s) < j.to.span)
        j.to.marks[s] = 0;
    if (s >= j.to.span)
        return;
    unsigned all = 0;
#pragma unroll
    for (int w = 0; w < CREW_WARPS; w++) {
        int shift = find_row<HOW>(j, part, part.first + w).shift;
        all = max(all, memory->largest[w][thread + shift]);
    }
    j.maxima[part.slice * j.to.span + s] = all;
}

/* Copies a warp's rows of the strip into `held` as they lie, in aligned groups:
 * past the registers and the first-level cache, whose room would bound what is
 * on its way. The last group of a row, which a shift leaves behind the warp's
 * 32, is copied by a lane each. What is not there becomes zeros. */
template <reach HOW>
__device__ __forceinline__ void copy_strip(const job &j, strip part, int thread,
                                           uint32_t held)
{
    int lane = thread % 32, warp = thread / 32;
    strip_row<HOW> row = find_row<HOW>(j, part, part.first + warp);
    int64_t stride = CREW_WARPS * j.from.depth_stride / 4;
    int rows = (part.last - part.first - warp + CREW_WARPS - 1) / CREW_WARPS;
    held += warp * HELD_ROW;
    int bytes = lane * 4 < row.count ? 16 : 0;
#pragma unroll 4
    for (int n = 0; n < rows; n++)
        copy_async<16>(held + n * CREW_WARPS * HELD_ROW + lane * 16,
                       row.first + n * stride + lane, bytes);
    if (HOW != ALIGNED && row.count > STRIP)
        for (int n = lane; n < rows; n += 32)
            copy_async<16>(held + n * CREW_WARPS * HELD_ROW + STRIP * 4,
                           row.first + n * stride + HELD - 1, 16);
    wait_for_all_copies();
    __syncwarp(); /* the warp's rows are there */
}

/* Reads the strip into `held`, where each warp finds its own again, and tells
 * how large its columns are. */
template <reach HOW>
__device__ __forceinline__ void hold_strip(const job &j, strip part, int thread,
                                           const float4 *held,
                                           crew_memory *memory)
{
    int lane = thread % 32, warp = thread / 32;
    uint4 largest = make_uint4(0, 0, 0, 0), behind = largest;
    copy_strip<HOW>(j, part, thread, (uint32_t)__cvta_generic_to_shared(held));
#pragma unroll 4
    for (int k = warp; k < part.last - part.first; k += CREW_WARPS)
        keep_largest(&largest, held[k * HELD + lane]);
    *(uint4 *)&memory->largest[warp][lane * 4] = largest;
    if (HOW != ALIGNED) {
        strip_row<HOW> row = find_row<HOW>(j, part, part.first + warp);
        int k = warp + lane * CREW_WARPS;
        for (; row.count > STRIP && k < part.last - part.first;
             k += 32 * CREW_WARPS)
            keep_largest(&behind, held[k * HELD + HELD - 1]);
        behind.x = __reduce_max_sync(~0u, behind.x);
        behind.y = __reduce_max_sync(~0u, behind.y);
        behind.z = __reduce_max_sync(~0u, behind.z);
        if (lane == 0)
            *(uint4 *)&memory->largest[warp][STRIP] = behind;
    }
    tell_largest<HOW>(j, part, thread, memory);
}

/* The exponents of the strip's columns, from what all slices have told. */
__device__ __forceinline__ void find_exponents(const job &j, strip part,
                                               int thread, crew_memory *memory)
{
    const int shares = CREW / STRIP;
    int share = thread / STRIP, at = thread % STRIP;
    int64_t s = part.col + at;
    unsigned largest = 0;
#pragma unroll 8
    for (int slice = share; slice < j.slices; slice += shares)
        if (s < j.to.span)
            largest = max(largest, __ldcg(j.maxima + slice * j.to.span + s));
    memory->largest[share][at] = largest;
    if (thread == 0)
        memory->special = 0;
    crew_sync<CREW_B>(); /* the shares' maxima are there, special is zero */
    if (share > 0)
        return;
#pragma unroll
    for (int i = 1; i < shares; i++)
        largest = max(largest, memory->largest[i][at]);
    memory->exponents[at] = exponent_for(largest);
    memory->losses[at] = 0;
    if (largest >= 0x7f800000u)
        memory->special = FACT_SPECIAL;
}

/* The warp's next row of the strip, four columns a lane. */
template <reach HOW>
__device__ __forceinline__ float4 read_held(const float4 *held, int shift,
                                            int left)
{
    if (HOW == ALIGNED)
        return held[0];
    return join_groups(held[0], held[1], shift, left);
}

/* Cuts the strip and adds what was lost to the marks. Returns FACT_SPECIAL
 * or nothing. */
template <reach HOW>
__device__ __forceinline__ unsigned cut_strip(const job &j, strip part,
                                              int thread, const float4 *held,
                                              tally *seen, crew_memory *memory)
{
    int lane = thread % 32, warp = thread / 32;
    int shift = find_row<HOW>(j, part, part.first + warp).shift;
    int64_t col = part.col + lane * 4;
    find_exponents(j, part, thread, memory);
    crew_sync<CREW_B>(); /* exponents are there */
    scale f[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        f[i] = scale_by(memory->exponents[lane * 4 + i]);
    int lost[4] = {};
    held += lane;
    if (col < j.to.pitch)
#pragma unroll 4
        for (int k = part.first + warp; k < part.last; k += CREW_WARPS)
            cut_four(j.to,
                     read_held<HOW>(held + (k - part.first) * HELD, shift,
                                    (int)(j.to.span - col)),
                     f, k * j.to.pitch + col, lost, seen);
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (lost[i])
            atomicAdd(&memory->losses[lane * 4 + i], lost[i]);
    crew_sync<CREW_B>(); /* the block's losses are counted */
    int64_t s = part.col + thread;
    if (thread < STRIP && part.first < part.last && read_with(s) < j.to.span) {
        unsigned found = memory->losses[thread] * MARK_LOSS;
        if (part.slice == 0)
            found += memory->exponents[thread] + MARK_ZERO;
        if (found)
            atomicAdd(&j.to.marks[s], found);
    }
    return memory->special;
}

template <reach HOW>
__device__ __forceinline__ unsigned split_b(const job &j, const strips &p,
                                            int thread, float4 *held,
                                            crew_memory *memory)
{
    unsigned special = 0;
    tally seen = {0, 0};
    for (int group = 0; group < p.groups; group++) {
        strip part = strip_of(j, p, group);
        hold_strip<HOW>(j, part, thread, held, memory);
        crew_sync<CREW_B>(); /* the block's maxima are written */
        if (thread == 0)
            grid_wait(p.tickets + TICKET_STRIPS,
                      grid_arrive(p.tickets + TICKET_STRIPS));
        crew_sync<CREW_B>(); /* all strips are measured */
        special |= cut_strip<HOW>(j, part, thread, held, &seen, memory);
    }
    return special | facts_of(seen, 0);
}

#endif
