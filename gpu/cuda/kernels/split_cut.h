/* How an operand is read, scaled and cut: what the kernels that split whole
 * rows or columns at once and those that measure them first have in common. */
#ifndef GPU_CUDA_SPLIT_CUT_H
#define GPU_CUDA_SPLIT_CUT_H

#include "split16.h"

enum { THREADS = 256, WARPS = THREADS / 32 };
enum { ALIGN = 256, TURN = 64 };

/* How four neighbours are loaded: as an aligned group, out of the two groups
 * that hold them, or one by one. */
typedef enum reach { ALIGNED, ACROSS, APART } reach;

/* An operand as its splitting sees it: element (s, k) of span and depth. */
typedef struct source {
    const float *data;
    int64_t span_stride, depth_stride;
    reach how; /* along the direction taken */
} source;

/* How an operand is split. */
typedef enum method {
    READY,   /* kept */
    ROWS,    /* measure splits it */
    COLUMNS, /* cut, straight */
    TURNED   /* cut, turned */
} method;

typedef struct job {
    source from;
    split_planes to;
    unsigned *maxima; /* slices x span: bits of magnitudes */
    method how;
    int measure_rows;       /* maxima are taken a warp a row */
    int slices, slice_rows; /* of the depth, for maxima */
    int cut_rows;           /* of the depth, a block of cut */
    unsigned measure_blocks, cut_blocks;
} job;

/* --- scaling and cutting one element ------------------------------------ */

typedef struct scale {
    float first, second;
} scale;

__device__ __forceinline__ unsigned magnitude(float x)
{
    return __float_as_uint(x) & 0x7fffffffu;
}

/* The power of two that brings this largest magnitude to [2^14, 2^15). */
__device__ __forceinline__ int exponent_for(unsigned largest)
{
    if (largest == 0 || largest >= 0x7f800000u)
        return 0;
    int e = (int)(largest >> 23);
    return 14 - (e ? e - 127 : -118 - __clz((int)largest));
}

__device__ __forceinline__ scale scale_by(int exponent)
{
    return {half_power(exponent), rest_power(exponent)};
}

/* What the elements seen so far have shown. */
typedef struct tally {
    unsigned low; /* bits of all lo parts */
    int fractional;
} tally;

/* Is x an integer? Beyond 2^22 it may pass for none. */
__device__ __forceinline__ int is_fractional(float x)
{
    const float shift = 0x1.8p23f;
    return x + shift - shift != x;
}

/* Does hi + lo miss y by more than 2^-22 of it? Only far below the row's
 * largest element. */
__device__ __forceinline__ int is_lost(float y, float rest, float lo)
{
    return fabsf(rest - lo) > fabsf(y) * 0x1p-22f;
}

/* Two halves of each plane. */
typedef struct cut_pair {
    __half2 hi, lo;
    int lost_x, lost_y; /* 1 where hi + lo misses the element by 2^-22 of it */
} cut_pair;

__device__ __forceinline__ cut_pair cut(float x, float y, scale f, scale g,
                                        tally *seen)
{
    cut_pair c;
    seen->fractional |= is_fractional(x) | is_fractional(y);
    x = x * f.first * f.second;
    y = y * g.first * g.second;
    c.hi = __floats2half2_rn(x, y);
    float2 back = __half22float2(c.hi);
    float x_rest = x - back.x, y_rest = y - back.y;
    c.lo = __floats2half2_rn(x_rest, y_rest);
    back = __half22float2(c.lo);
    c.lost_x = is_lost(x, x_rest, back.x);
    c.lost_y = is_lost(y, y_rest, back.y);
    seen->low |= *(unsigned *)&c.lo & 0x7fff7fffu;
    return c;
}

__device__ __forceinline__ unsigned facts_of(tally seen, unsigned largest)
{
    return (largest >= 0x7f800000u ? FACT_SPECIAL : 0) |
           (seen.low ? FACT_LOW : 0) | (seen.fractional ? FACT_FRACTIONAL : 0);
}

__device__ __forceinline__ float4 load_group(const float4 *p, bool wanted)
{
    return wanted ? *p : make_float4(0, 0, 0, 0);
}

/* Four neighbours out of the two aligned groups that hold them. Groups are
 * read whole: see gpu_cuda_alloc. */
__device__ __forceinline__ float4 load_across(const float *p, int64_t left)
{
    int shift = (int)((uintptr_t)p >> 2 & 3); /* the same in a whole warp */
    const float4 *group = (const float4 *)(p - shift);
    float4 a = load_group(group, left > 0);
    float4 b = load_group(group + 1, shift + left > 4);
    float x = shift & 2 ? a.z : a.x, y = shift & 2 ? a.w : a.y;
    float z = shift & 2 ? b.x : a.z, w = shift & 2 ? b.y : a.w;
    float next = shift & 2 ? b.z : b.x;
    x = shift & 1 ? y : x;
    y = shift & 1 ? z : y;
    z = shift & 1 ? w : z;
    w = shift & 1 ? next : w;
    return make_float4(left > 0 ? x : 0, left > 1 ? y : 0, left > 2 ? z : 0,
                       left > 3 ? w : 0);
}

/* The next four elements of a line, zeros where fewer are left. Without
 * branches, so that many loads run at once. */
template <reach HOW>
__device__ __forceinline__ float4 load4(const float *p, int64_t stride,
                                        int64_t left)
{
    if (HOW == ALIGNED)
        return load_group((const float4 *)p, left > 0);
    if (HOW == ACROSS)
        return load_across(p, left);
    return make_float4(left > 0 ? p[0] : 0, left > 1 ? p[stride] : 0,
                       left > 2 ? p[2 * stride] : 0,
                       left > 3 ? p[3 * stride] : 0);
}

__device__ __forceinline__ unsigned magnitude4(float4 v)
{
    return max(max(magnitude(v.x), magnitude(v.y)),
               max(magnitude(v.z), magnitude(v.w)));
}

typedef struct alignas(8) half4 {
    __half2 at[2];
} half4;

typedef struct alignas(16) half8 {
    __half2 at[4];
} half8;

/* Marks are read two at a time, so one behind the last is written too: the
 * even index that s is read with. */
__device__ __forceinline__ int64_t read_with(int64_t s)
{
    return s & ~1LL;
}

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

__device__ __forceinline__ int cut_into(const split_planes &to, int64_t at,
                                        float4 v, scale f, tally *seen)
{
    half4 hi, lo;
    cut_pair left = cut(v.x, v.y, f, f, seen),
             right = cut(v.z, v.w, f, f, seen);
    hi.at[0] = left.hi;
    hi.at[1] = right.hi;
    lo.at[0] = left.lo;
    lo.at[1] = right.lo;
    *(half4 *)(to.planes + at) = hi;
    *(half4 *)(to.planes + at + to.plane) = lo;
    int lost = left.lost_x + left.lost_y + right.lost_x + right.lost_y;
    return lost;
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
    int exponent = exponent_for(largest), lost = 0;
    scale f = scale_by(exponent);
    tally seen = {0, 0};
    int64_t line = s * j.to.pitch;
    if (VECTORS) {
#pragma unroll
        for (int i = 0; i < held; i++)
            if ((i * LANES + lane) * 4 < j.to.pitch)
                lost += cut_into(j.to, line + (i * LANES + lane) * 4, v[i], f,
                                 &seen);
    } else {
#pragma unroll 4
        for (int64_t k = lane * 4; k < j.to.pitch; k += LANES * 4)
            lost += cut_into(j.to, line + k, load(k), f, &seen);
    }
    note_row<LANES>(j, s, lane, exponent, lost, facts_of(seen, largest), fold);
}

#endif
