/* Partial results of reductions: what nothing reduces to, how two become one,
 * and how a block's become one, always in the same order. */
#ifndef GPU_CUDA_PARTIAL_H
#define GPU_CUDA_PARTIAL_H

#include "cuda_device.h"

typedef struct partial {
    double value;
    int64_t index; /* argmin, argmax: -1 when empty */
} partial;

static __host__ __device__ int is_place(int kind)
{
    return kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax;
}

__device__ __forceinline__ partial empty(int kind)
{
    double infinity = __longlong_as_double(0x7ff0000000000000);
    double value = kind == GPU_REDUCE_prod  ? 1
                   : kind == GPU_REDUCE_min ? infinity
                   : kind == GPU_REDUCE_max ? -infinity
                                            : 0;
    return {value, -1};
}

/* Is b's value more extreme than a's, or as extreme and earlier? NaN is the
 * most extreme of all. */
__device__ __forceinline__ bool goes_before(int kind, partial b, partial a)
{
    if (a.index < 0 || b.index < 0)
        return a.index < 0;
    bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan)
        return b_is_nan;
    if (a_is_nan || a.value == b.value)
        return b.index < a.index;
    return kind == GPU_REDUCE_argmax ? b.value > a.value : b.value < a.value;
}

template <bool PLACE>
__device__ __forceinline__ partial combine(int kind, partial a, partial b)
{
    if (PLACE)
        return goes_before(kind, b, a) ? b : a;
    switch (kind) {
    case GPU_REDUCE_sum:
        return {a.value + b.value, -1};
    case GPU_REDUCE_prod:
        return {a.value * b.value, -1};
    case GPU_REDUCE_min:
        return {b.value < a.value || b.value != b.value ? b.value : a.value,
                -1};
    default:
        return {b.value > a.value || b.value != b.value ? b.value : a.value,
                -1};
    }
}

/* Folds the block's partials over `along`, for each of its lines, by halving.
 * Thread (line, 0) returns the line's. */
template <bool PLACE>
__device__ partial fold_block(int kind, partial own, partial *shared, int line,
                              int lines, int along, int along_threads)
{
    shared[along * lines + line] = own;
    for (int half = along_threads / 2; half > 0; half /= 2) {
        __syncthreads(); /* the partials of the step before are written */
        if (along < half) {
            own = combine<PLACE>(kind, own,
                                 shared[(along + half) * lines + line]);
            shared[along * lines + line] = own;
        }
    }
    __syncthreads(); /* shared may be filled anew */
    return own;
}

#endif
