/* Random numbers as code of a GPU, for the kernels that fill with them and for
 * the texts of those that draw them where they are used. Sums and products that
 * must not differ from the CPU's are kept apart from one another by the _rn
 * intrinsics, which are never fused. */
#ifndef KERNEL_RANDOM_BODY_H
#define KERNEL_RANDOM_BODY_H

#include "jit_job.h"

#ifdef __CUDACC_RTC__
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif

/* --- Philox ----------------------------------------------------------------
 */

enum : uint32_t { MULTIPLIER_0 = 0xd2511f53, MULTIPLIER_1 = 0xcd9e8d57 };

__device__ __forceinline__ void draw(const jit_rounds &p, uint32_t block,
                                     uint32_t w[4])
{
    uint64_t a = (uint64_t)MULTIPLIER_0 * block;
    uint64_t b = (uint64_t)MULTIPLIER_1 * ((uint32_t)(a >> 32) ^ p.early[0]);
    w[0] = (uint32_t)(b >> 32) ^ p.early[1];
    w[1] = (uint32_t)b;
    w[2] = (uint32_t)a ^ p.early[2];
    w[3] = 0;
#pragma unroll
    for (int n = 2; n < JIT_ROUNDS; n++) {
        a = (uint64_t)MULTIPLIER_0 * w[0];
        b = (uint64_t)MULTIPLIER_1 * w[2];
        w[0] = (uint32_t)(b >> 32) ^ w[1] ^ p.keys[n][0];
        w[1] = (uint32_t)b;
        w[2] =
            (uint32_t)(a >> 32) ^ (n == 2 ? p.early[3] : w[3] ^ p.keys[n][1]);
        w[3] = (uint32_t)a;
    }
}

/* --- from words to values ---------------------------------------------------
 */

/* Limits in the type that is computed in. */
template <class T> struct limits {
    T low, high, span, last;
};

__device__ __forceinline__ uint64_t word(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

/* A pair of words as a fraction of 2^64 whose lower 11 bits are dropped. */
__device__ __forceinline__ double fraction(uint32_t low, uint32_t high)
{
    return (double)(int64_t)(word(low, high) >> 11) * 0x1p-53;
}

/* Four of a block's 32-bit uniforms, or two of its 64-bit ones. */
__device__ __forceinline__ void uniforms(const limits<float> &l,
                                         const uint32_t w[4], float *v)
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float u = __fmul_rn((float)(w[k] >> 8), 0x1p-24f);
        float x = __fadd_rn(l.low, __fmul_rn(l.span, u));
        v[k] = x >= l.high ? l.last : x;
    }
}

__device__ __forceinline__ void uniforms(const limits<double> &l,
                                         const uint32_t w[4], double *v)
{
#pragma unroll
    for (int k = 0; k < 2; k++) {
        double u = fraction(w[2 * k], w[2 * k + 1]);
        double x = __dadd_rn(l.low, __dmul_rn(l.span, u));
        v[k] = x >= l.high ? l.last : x;
    }
}

/* Integers of an f32 fit in 26 bits, their span, too. */
__device__ __forceinline__ void integers(const limits<float> &l,
                                         const uint32_t w[4], float *v)
{
    int low = (int)l.low;
    uint32_t span = (uint32_t)((int)l.high - low) + 1;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint64_t above = (uint64_t)w[2 * k + 1] * span;
        above += __umulhi(w[2 * k], span);
        v[k] = (float)(low + (int)(above >> 32));
    }
}

__device__ __forceinline__ void integers(const limits<double> &l,
                                         const uint32_t w[4], double *v)
{
    int64_t low = (int64_t)l.low;
    uint64_t span = (uint64_t)((int64_t)l.high - low) + 1;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint64_t own = word(w[2 * k], w[2 * k + 1]);
        v[k] = (double)(low + (int64_t)__umul64hi(own, span));
    }
}

/* -2 log u, where u is the first pair's fraction and 2^-53. Read as a signed
 * number the pair is u - 1 from 1/2 on, which is rounded to f32 then, so that
 * the result has few units of error there, too; what is smaller is a power of
 * two times a number of 1/2 .. 1. The 2^-64 counts where high is 0 alone. The
 * polynomial is ours, a fit of least relative error to
 * (2 f - 2 log(1 + f)) / f^2 on [-1/2, 0]: 2^-25 of the whole. */
__device__ __forceinline__ float squared_radius(uint32_t low, uint32_t high)
{
    bool is_near_1 = (int)high < 0;
    float x = __fmaf_rn((float)(int)high, 0x1p-32f, 0x1p-64f);
    x = __fmaf_rn((float)(low | 0x7ff), 0x1p-64f, x);
    int bits = __float_as_int(x);
    int scale = (bits - 0x3f000000) & (int)0xff800000;
    float f = __fadd_rn(__int_as_float(bits - scale), -1);
    f = is_near_1 ? x : f;
    float q = -2.8285875f;
    q = __fmaf_rn(q, f, -3.278109f);
    q = __fmaf_rn(q, f, -2.416502f);
    q = __fmaf_rn(q, f, -0.3614821f);
    q = __fmaf_rn(q, f, -0.5272735f);
    q = __fmaf_rn(q, f, 0.4873806f);
    q = __fmaf_rn(q, f, -0.66726315f);
    q = __fmaf_rn(q, f, 0.99999046f);
    q = __fmaf_rn(__fmul_rn(f, f), q, __fmul_rn(f, -2));
    float rest = __fmaf_rn((float)scale, -0x1.62e430p-23f, q); /* 2 log(2) */
    return is_near_1 ? q : rest;
}

/* Whether x has its second bit from above, asked for as a sign, which takes one
 * instruction less than what the compiler makes of a mask. */
__device__ __forceinline__ bool second_bit(uint32_t x)
{
    int shifted;
    asm("shl.b32 %0, %1, 1;" : "=r"(shifted) : "r"(x));
    return shifted < 0;
}

/* Cosine and sine, both negative where `sign` says so, of the second pair's
 * fraction of a turn. What is left of the nearest quarter is found exactly, as
 * an integer, and rounded then: near a root, too, the error is a few units.
 * Polynomials as above, on an eighth of a turn: 2^-28 and 2^-24. */
#define TURN 6.2831855f          /* 2 pi */
#define TURN_REST -1.7484555e-7f /* and what it lacks */

__device__ __forceinline__ void turn(uint32_t low, uint32_t high, float *cosine,
                                     float *sine, uint32_t *sign)
{
    uint32_t quarters = high + 0x20000000u; /* its upper two bits */
    float t = __fmul_rn((float)(int)(high << 2), 0x1p-34f);
    t = __fmaf_rn((float)(low & ~0x7ffu), 0x1p-64f, t);
    float z = __fmul_rn(t, t);
    float s = -75.39349001f;
    s = __fmaf_rn(s, z, 81.59235155f);
    s = __fmaf_rn(s, z, -41.34166144f);
    s = __fmaf_rn(s, z, TURN_REST);
    s = __fmaf_rn(t, TURN, __fmul_rn(s, t));
    float c = -83.62919128f;
    c = __fmaf_rn(c, z, 64.92242205f);
    c = __fmaf_rn(c, z, -19.7391633f);
    c = __fmaf_rn(c, z, 1);
    bool is_odd = second_bit(quarters);
    *cosine = is_odd ? -s : c;
    *sine = is_odd ? c : s;
    *sign = quarters & 0x80000000u;
}

__device__ __forceinline__ float quick_root(float x)
{
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

/* Box and Muller's pair: the even element takes the cosine. */
__device__ __forceinline__ void normals(const limits<float> &l,
                                        const uint32_t w[4], float *v)
{
    float radius = quick_root(squared_radius(w[0], w[1])), c, s;
    uint32_t sign;
    turn(w[2], w[3], &c, &s, &sign);
    radius = __uint_as_float(__float_as_uint(radius) ^ sign);
    radius = __fmul_rn(radius, l.high);
    v[0] = __fmaf_rn(radius, c, l.low);
    v[1] = __fmaf_rn(radius, s, l.low);
}

__device__ __forceinline__ void normals(const limits<double> &l,
                                        const uint32_t w[4], double *v)
{
    double c, s;
    double radius = sqrt(-2 * log(fraction(w[0], w[1]) + 0x1p-53));
    sincospi(2 * fraction(w[2], w[3]), &s, &c);
    v[0] = __dadd_rn(l.low, __dmul_rn(l.high, radius * c));
    v[1] = __dadd_rn(l.low, __dmul_rn(l.high, radius * s));
}

/* --- a block's numbers ------------------------------------------------------
 */

/* How many elements share a block. */
template <int WAY, class T> __host__ __device__ constexpr int share()
{
    return WAY == JIT_UNIFORM && sizeof(T) == 4 ? 4 : 2;
}

/* Those of a block: as many as share it. */
template <int WAY, class T>
__device__ __forceinline__ void make(const jit_rounds &rounds,
                                     const limits<T> &l, uint32_t block, T *v)
{
    uint32_t w[4];
    draw(rounds, block, w);
    if (WAY == JIT_UNIFORM)
        uniforms(l, w, v);
    else if (WAY == JIT_NORMAL)
        normals(l, w, v);
    else
        integers(l, w, v);
}

#endif
