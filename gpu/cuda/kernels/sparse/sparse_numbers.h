/* Numbers of sparse matrices on the device: f32, f64 and complex pairs of them,
 * whose sums are kept in f64. */
#ifndef GPU_CUDA_SPARSE_NUMBERS_H
#define GPU_CUDA_SPARSE_NUMBERS_H

#include "kernel.h"

template <class V> struct sum_type {
    typedef double type;
};
template <> struct sum_type<float2> {
    typedef double2 type;
};
template <> struct sum_type<double2> {
    typedef double2 type;
};
template <class V> using sum_of = typename sum_type<V>::type;

/* x as it is added up. */
__device__ __forceinline__ double widest(double x)
{
    return x;
}

__device__ __forceinline__ double2 widest(float2 x)
{
    return {x.x, x.y};
}

__device__ __forceinline__ double2 widest(double2 x)
{
    return x;
}

/* A sum as it is stored. */
template <class V> __device__ __forceinline__ V narrowed(double x)
{
    return (V)x;
}

template <class V> __device__ __forceinline__ V narrowed(double2 x)
{
    V y;
    y.x = x.x;
    y.y = x.y;
    return y;
}

__device__ __forceinline__ bool is_zero(double x)
{
    return x == 0;
}

__device__ __forceinline__ bool is_zero(double2 x)
{
    return x.x == 0 && x.y == 0;
}

__device__ __forceinline__ double size_of(double x)
{
    return fabs(x);
}

__device__ __forceinline__ double size_of(double2 x)
{
    return hypot(x.x, x.y);
}

__device__ __forceinline__ void add(double *sum, double x)
{
    *sum += x;
}

__device__ __forceinline__ void add(double2 *sum, double2 x)
{
    sum->x += x.x;
    sum->y += x.y;
}

template <class V> __device__ __forceinline__ double times(V x, V y)
{
    return (double)x * (double)y;
}

__device__ __forceinline__ double2 times(double2 x, double2 y)
{
    return {x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x};
}

__device__ __forceinline__ double2 times(float2 x, float2 y)
{
    return times(double2{x.x, x.y}, double2{y.x, y.y});
}

/* Never rounded together with a sum: as a CPU multiplies. */
__device__ __forceinline__ double times_alone(double x, double y)
{
    return __dmul_rn(x, y);
}

__device__ __forceinline__ double2 times_alone(double2 x, double2 y)
{
    return {__dsub_rn(__dmul_rn(x.x, y.x), __dmul_rn(x.y, y.y)),
            __dadd_rn(__dmul_rn(x.x, y.y), __dmul_rn(x.y, y.x))};
}

template <class V>
__device__ __forceinline__ V shuffled(unsigned lanes, V x, int from, int width)
{
    return __shfl_sync(lanes, x, from, width);
}

__device__ __forceinline__ float2 shuffled(unsigned lanes, float2 x, int from,
                                           int width)
{
    return {__shfl_sync(lanes, x.x, from, width),
            __shfl_sync(lanes, x.y, from, width)};
}

__device__ __forceinline__ double2 shuffled(unsigned lanes, double2 x, int from,
                                            int width)
{
    return {__shfl_sync(lanes, x.x, from, width),
            __shfl_sync(lanes, x.y, from, width)};
}

/* Of the lanes of a row, in pairs that are ever nearer: lane 0 has all. */
template <class S>
__device__ __forceinline__ S sum_of_lanes(S sum, int lane, int width)
{
    for (int step = width / 2; step > 0; step /= 2) {
        S other = shuffled(~0u, sum, lane + step, 32);
        if (lane % width + step < width)
            add(&sum, other);
    }
    return sum;
}

/* The function of a type, which is called with a number of it. */
template <class F> static gpu_status with_type(gpu_dtype t, F call)
{
    switch (t) {
    case GPU_F32:
        return call(float());
    case GPU_F64:
        return call(double());
    case GPU_C64:
        return call(float2());
    default:
        return call(double2());
    }
}

#endif
