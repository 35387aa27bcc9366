/* Views inside kernels: reading and writing elements of any type, and finding
 * the place of the e-th element. */
#ifndef GPU_CUDA_VIEW_H
#define GPU_CUDA_VIEW_H

#include "cuda_device.h"

/* A stored element's value. */
template <class S> __device__ __forceinline__ double widened(S x)
{
    return sizeof(S) == 1 ? (double)(x != 0) : (double)x;
}

/* The switch is over a value common to the whole grid: no divergence. */
template <class T>
__device__ __forceinline__ T load(const gpu_view &v, int64_t at)
{
    switch (v.dtype) {
    case GPU_F32:
        return (T)((const float *)v.data)[at];
    case GPU_F64:
        return (T)((const double *)v.data)[at];
    default:
        return (T)(((const uint8_t *)v.data)[at] != 0);
    }
}

template <class T>
__device__ __forceinline__ void store(const gpu_view &v, int64_t at, T value)
{
    switch (v.dtype) {
    case GPU_F32:
        ((float *)v.data)[at] = (float)value;
        break;
    case GPU_F64:
        ((double *)v.data)[at] = (double)value;
        break;
    default:
        ((uint8_t *)v.data)[at] = value != 0;
    }
}

/* e / by for 0 <= e, 0 < by. Most views fit 32 bits, whose division is four
 * times cheaper. */
__device__ __forceinline__ int64_t divide(int64_t e, int64_t by)
{
    if (((e | by) >> 32) == 0)
        return (uint32_t)e / (uint32_t)by;
    return e / by;
}

__device__ __forceinline__ int64_t place(const gpu_view &v, int64_t i,
                                         int64_t j)
{
    return i * v.row_stride + j * v.col_stride;
}

/* Where the e-th element in row-major order lies. */
__device__ __forceinline__ int64_t place_of(const gpu_view &v, int64_t e)
{
    if (v.cols == 1)
        return e * v.row_stride;
    int64_t i = divide(e, v.cols);
    return place(v, i, e - i * v.cols);
}

/* Makes one column of v where its strides allow: place_of is then a single
 * multiplication. The row-major order stays. */
static inline void flatten(gpu_view *v)
{
    if (v->cols != 1 && v->rows != 1 &&
        v->row_stride != v->cols * v->col_stride)
        return;
    if (v->cols != 1)
        v->row_stride = v->col_stride;
    v->rows *= v->cols;
    v->cols = 1;
}

static inline void swap_axes(gpu_view *v)
{
    int64_t rows = v->rows, stride = v->row_stride;
    v->rows = v->cols;
    v->cols = rows;
    v->row_stride = v->col_stride;
    v->col_stride = stride;
}

static inline int64_t stride_size(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

__host__ __device__ static inline size_t dtype_bytes(gpu_dtype t)
{
    return t == GPU_F64 ? 8 : t == GPU_F32 ? 4 : 1;
}

static inline int is_aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

#endif
