/* Elements of matrices that are factored: real numbers, or complex ones, for
 * each of which the doubled matrix has [re -im; im re]. See padded.h. */
#ifndef GPU_CUDA_DOUBLED_H
#define GPU_CUDA_DOUBLED_H

#include "cuda_device.h"

template <class E> __device__ __forceinline__ E unit(int is_on)
{
    return (E)is_on;
}

template <> __device__ __forceinline__ float2 unit<float2>(int is_on)
{
    return make_float2((float)is_on, 0);
}

__device__ __forceinline__ float times(float v, float w)
{
    return v * w;
}

__device__ __forceinline__ float times(double v, double w)
{
    return (float)(v * w);
}

__device__ __forceinline__ float2 times(float2 v, float w)
{
    return make_float2(v.x * w, v.y * w);
}

__device__ __forceinline__ float2 times(float2 v, float2 w)
{
    return make_float2(v.x * w.x - v.y * w.y, v.x * w.y + v.y * w.x);
}

__device__ __forceinline__ float conjugate(float v)
{
    return v;
}

__device__ __forceinline__ float2 conjugate(float2 v)
{
    return make_float2(v.x, -v.y);
}

/* Element (i, j) of the doubled matrix at `to`. */
__device__ __forceinline__ void place_doubled(float *to, int64_t ld, int i,
                                              int j, float v)
{
    to[i * ld + j] = v;
}

__device__ __forceinline__ void place_doubled(float *to, int64_t ld, int i,
                                              int j, float2 v)
{
    float *p = to + 2 * i * ld + 2 * j;
    *(float2 *)p = make_float2(v.x, -v.y);
    *(float2 *)(p + ld) = make_float2(v.y, v.x);
}

#endif
