/* Numbers of the four types as LU works with them on the device; a complex one
 * is a float2 or double2. */
#ifndef GPU_CUDA_PIVOT_NUMBERS_H
#define GPU_CUDA_PIVOT_NUMBERS_H

#include "cuda_device.h"

/* What pivots are chosen by, as bits that ascend with it: the magnitude, of a
 * complex number |re| + |im| as LAPACK does it. */
__device__ __forceinline__ uint32_t size_bits(float x)
{
    return __float_as_uint(x) & 0x7fffffff;
}

__device__ __forceinline__ uint64_t size_bits(double x)
{
    return (uint64_t)__double_as_longlong(x) & ~(1ull << 63);
}

__device__ __forceinline__ uint32_t size_bits(float2 z)
{
    return __float_as_uint(fabsf(z.x) + fabsf(z.y));
}

__device__ __forceinline__ uint64_t size_bits(double2 z)
{
    return (uint64_t)__double_as_longlong(fabs(z.x) + fabs(z.y));
}

template <class T> __device__ __forceinline__ T number_of(int x)
{
    return (T)x;
}

template <> __device__ __forceinline__ float2 number_of(int x)
{
    return {(float)x, 0};
}

template <> __device__ __forceinline__ double2 number_of(int x)
{
    return {(double)x, 0};
}

/* x -= y z */
template <class T> __device__ __forceinline__ void take_product(T &x, T y, T z)
{
    x -= y * z;
}

__device__ __forceinline__ void take_product(float2 &x, float2 y, float2 z)
{
    x.x = x.x - y.x * z.x + y.y * z.y;
    x.y = x.y - y.x * z.y - y.y * z.x;
}

__device__ __forceinline__ void take_product(double2 &x, double2 y, double2 z)
{
    x.x = x.x - y.x * z.x + y.y * z.y;
    x.y = x.y - y.x * z.y - y.y * z.x;
}

/* The power of two that brings a magnitude to [1, 2), or near it where it is
 * not normal. */
__device__ __forceinline__ float unit_scale(float size)
{
    int e = (int)(__float_as_uint(size) >> 23);
    return __uint_as_float((unsigned)(e > 253 ? 1 : 254 - e) << 23);
}

__device__ __forceinline__ double unit_scale(double size)
{
    int e = __double2hiint(size) >> 20;
    return __hiloint2double((e > 2045 ? 1 : 2046 - e) << 20, 0);
}

/* x / y. Both are scaled by what brings y near 1, so that no square leaves the
 * range. */
template <class T> __device__ __forceinline__ T quotient(T x, T y)
{
    return x / y;
}

template <class C, class R>
__device__ __forceinline__ C complex_quotient(C x, C y, R size)
{
    R s = unit_scale(size);
    C u = {x.x * s, x.y * s}, v = {y.x * s, y.y * s};
    R square = v.x * v.x + v.y * v.y;
    return {(u.x * v.x + u.y * v.y) / square, (u.y * v.x - u.x * v.y) / square};
}

__device__ __forceinline__ float2 quotient(float2 x, float2 y)
{
    return complex_quotient(x, y, fmaxf(fabsf(y.x), fabsf(y.y)));
}

__device__ __forceinline__ double2 quotient(double2 x, double2 y)
{
    return complex_quotient(x, y, fmax(fabs(y.x), fabs(y.y)));
}

/* x of the lane `from` of so many; all lanes of the warp take part. */
template <class T>
__device__ __forceinline__ T of_lane(T x, int from, int width)
{
    return __shfl_sync(~0u, x, from, width);
}

__device__ __forceinline__ float2 of_lane(float2 x, int from, int width)
{
    return {__shfl_sync(~0u, x.x, from, width),
            __shfl_sync(~0u, x.y, from, width)};
}

__device__ __forceinline__ double2 of_lane(double2 x, int from, int width)
{
    return {__shfl_sync(~0u, x.x, from, width),
            __shfl_sync(~0u, x.y, from, width)};
}

/* The largest of a warp's, or of each `width` lanes of it. */
__device__ __forceinline__ uint32_t most_of_lanes(uint32_t x, int width)
{
    if (width == 32)
        return __reduce_max_sync(~0u, x);
    for (int step = width / 2; step > 0; step /= 2)
        x = max(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

__device__ __forceinline__ uint64_t most_of_lanes(uint64_t x, int width)
{
    uint32_t high = (uint32_t)(x >> 32), low = (uint32_t)x;
    uint32_t most = most_of_lanes(high, width);
    low = most_of_lanes(high == most ? low : 0, width);
    return (uint64_t)most << 32 | low;
}

#endif
