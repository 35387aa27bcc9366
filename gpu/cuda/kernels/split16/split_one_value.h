/* How an operand is read, scaled and cut: what the kernels that split whole
 * rows or columns at once and those that measure them first have in common. */
#ifndef GPU_CUDA_SPLIT_ONE_VALUE_H
#define GPU_CUDA_SPLIT_ONE_VALUE_H

#include "copies.h"
#include "split16.h"

enum { ALIGN = 256, TURN = 64 };

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

/* Splits what is not ready in one launch, where it can: see
 * split_both_operands.cu. b's maxima need that many bytes. */
gpu_status gpu_cuda_together_bytes(cuda_device *d, int64_t span, int64_t depth,
                                   size_t *bytes);
gpu_status gpu_cuda_split_together(cuda_device *d, const job *a, const job *b,
                                   unsigned *tickets, int *done);

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

/* Below this in magnitude, hi + lo may miss a scaled element by more than 2^-22
 * of it: lo is then a multiple of 2^-24. */
constexpr float SAFE = 0x1p-3f;

/* Does it? */
__device__ __forceinline__ int is_lost(float y, float rest, float lo)
{
    return fabsf(rest - lo) > fabsf(y) * 0x1p-22f;
}

/* Two elements scaled, what hi leaves of them, and two halves of each plane:
 * their bits, as groups of them must be stored at once. */
typedef struct cut_pair {
    float x, y, x_rest, y_rest;
    unsigned hi, lo;
} cut_pair;

__device__ __forceinline__ unsigned two_halves(float x, float y)
{
    __half2 both = __floats2half2_rn(x, y);
    return *(unsigned *)&both;
}

__device__ __forceinline__ float2 two_floats(unsigned halves)
{
    return __half22float2(*(__half2 *)&halves);
}

__device__ __forceinline__ cut_pair cut(float x, float y, scale f, scale g,
                                        tally *seen)
{
    cut_pair c;
    c.x = x * f.first * f.second;
    c.y = y * g.first * g.second;
    c.hi = two_halves(c.x, c.y);
    float2 back = two_floats(c.hi);
    c.x_rest = c.x - back.x;
    c.y_rest = c.y - back.y;
    c.lo = two_halves(c.x_rest, c.y_rest);
    seen->low |= c.lo & 0x7fff7fffu;
    return c;
}

/* May one of the pair have lost bits? */
__device__ __forceinline__ int is_small(const cut_pair &c)
{
    return fminf(fabsf(c.x), fabsf(c.y)) < SAFE;
}

__device__ __forceinline__ void count_lost(const cut_pair &c, int *x, int *y)
{
    float2 back = two_floats(c.lo);
    *x += is_lost(c.x, c.x_rest, back.x);
    *y += is_lost(c.y, c.y_rest, back.y);
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

/* Elements of the 16 bytes that hold one, before it. */
__device__ __forceinline__ int shift_of(const float *p)
{
    return (int)((uintptr_t)p >> 2 & 3);
}

/* Four neighbours from a's shift-th on, where b is the next group; zeros where
 * fewer are left. */
__device__ __forceinline__ float4 join_groups(float4 a, float4 b, int shift,
                                              int left)
{
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

/* Four neighbours out of the two aligned groups that hold them. Groups are
 * read whole: see gpu_cuda_alloc. */
__device__ __forceinline__ float4 load_across(const float *p, int64_t left)
{
    int shift = shift_of(p); /* the same in a whole warp */
    const float4 *group = (const float4 *)(p - shift);
    float4 a = load_group(group, left > 0);
    float4 b = load_group(group + 1, shift > 0 && shift + left > 4);
    return join_groups(a, b, shift, (int)left);
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

/* Cuts four neighbours that go to place `at` of both planes; counts what was
 * lost of each, or of all. A plain store of two words would become two stores.
 */
template <int COUNTS>
__device__ __forceinline__ void cut_four(const split_planes &to, float4 v,
                                         const scale (&f)[4], int64_t at,
                                         int (&lost)[COUNTS], tally *seen)
{
    static_assert(COUNTS == 1 || COUNTS == 4);
    if (!seen->fractional)
        seen->fractional = is_fractional(v.x) | is_fractional(v.y) |
                           is_fractional(v.z) | is_fractional(v.w);
    cut_pair left = cut(v.x, v.y, f[0], f[1], seen);
    cut_pair right = cut(v.z, v.w, f[2], f[3], seen);
    __stcg((uint2 *)(to.planes + at), make_uint2(left.hi, right.hi));
    __stcg((uint2 *)(to.planes + at + to.plane), make_uint2(left.lo, right.lo));
    if (is_small(left) || is_small(right)) {
        count_lost(left, &lost[0], &lost[1 % COUNTS]);
        count_lost(right, &lost[2 % COUNTS], &lost[3 % COUNTS]);
    }
}

/* Marks are read two at a time, so one behind the last is written too: the
 * even index that s is read with. */
__device__ __forceinline__ int64_t read_with(int64_t s)
{
    return s & ~1LL;
}

#endif
