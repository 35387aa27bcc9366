/* What the rungs of dot share. Each file is one rung: the kernels, a launch for
 * a type, the entry, the descriptor. Read in the order serial, tree, shuffle,
 * stream.
 *
 * The textbook's two are two launches (run_stages): blocks leave sums of the
 * operands' type, one block folds them. The other two are one launch, add in
 * f64 for both types, where products of two f32 are exact, and take 16 bytes at
 * a time (wide_loads) from vectors of unit steps; what is before and behind
 * those, and vectors with gaps, goes element by element. The answer comes into
 * the device's slot, which is the host's memory. */
#ifndef GPU_CUDA_DOT_H
#define GPU_CUDA_DOT_H

#include "kernel.h"
#include "copies.h"

/* A block's sums of its part of the vectors; then one block's of those. */
template <class T> using dot_stage = void (*)(const pair<T> p, T *partials);
template <class T>
using dot_fold = void (*)(const T *partials, int count, double *out);

/* Runs one after the other, and waits for the answer. */
template <class T>
static gpu_status run_stages(cuda_device *d, const pair<T> &p, int threads,
                             int blocks_per_sm, dot_stage<T> stage,
                             dot_fold<T> fold, double *out)
{
    int64_t most = (int64_t)d->sms * blocks_per_sm;
    int blocks = (int)smaller(larger(ceil_div(p.n, threads), 1), most);
    T *partials;
    TRY(gpu_cuda_scratch(d, blocks * sizeof(T), (void **)&partials));
    stage<<<blocks, threads, 0, d->stream>>>(p, partials);
    LAUNCHED(d);
    fold<<<1, threads, 0, d->stream>>>(partials, blocks, d->slot);
    LAUNCHED(d);
    TRY(gpu_cuda_wait(d));
    *out = *d->slot;
    return GPU_OK;
}

/* The elements before the first wide load, and the wide loads. Both vectors
 * must lie alike in their 16 bytes, element after element; else none is. */
typedef struct parts {
    int64_t head, wide;
} parts;

template <class T> static parts find_parts(const pair<T> &p)
{
    uintptr_t x = (uintptr_t)p.x % 16, y = (uintptr_t)p.y % 16;
    parts w = {0, 0};
    if (p.x_stride != 1 || p.y_stride != 1 || x != y)
        return w;
    w.head = smaller((int64_t)((16 - x) % 16 / sizeof(T)), p.n);
    w.wide = (p.n - w.head) / WIDTH<T>;
    return w;
}

/* The wide loads from the t-th on: x's, and the aligned ones of y, whose
 * elements begin `shift` further on; 0 where both lie alike. */
template <class T> struct wide_loads {
    const vector<T> *x, *y;
    int shift;
};

template <class T>
__device__ __forceinline__ wide_loads<T> find_wide(const pair<T> &p, parts w,
                                                   int64_t t)
{
    int shift = shift_of(p.y + w.head);
    return {(const vector<T> *)(p.x + w.head) + t,
            (const vector<T> *)(p.y + w.head - shift) + t, shift};
}

/* Products of two f32 are exact in f64. */
template <class T>
__device__ __forceinline__ double multiply(vector<T> x, vector<T> y)
{
    double sum = 0;
#pragma unroll
    for (int e = 0; e < WIDTH<T>; e++)
        sum += (double)x.at[e] * (double)y.at[e];
    return sum;
}

/* A thread has UNROLL pairs of wide loads on their way, and for each a sum of
 * its own, so that no addition waits for the one before. */
constexpr int UNROLL = 4;

template <class T>
__device__ __forceinline__ void add_products(double (&sum)[UNROLL],
                                             const vector<T> (&x)[UNROLL],
                                             const vector<T> (&y)[UNROLL])
{
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
        sum[u] += multiply(x[u], y[u]);
}

__device__ __forceinline__ double add_up(const double (&sum)[UNROLL])
{
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Thread 0 returns the sum over the block. */
template <int WARPS>
__device__ double fold_block(double sum, double *shared /* WARPS */)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int apart = 16; apart > 0; apart /= 2)
        sum += __shfl_down_sync(~0u, sum, apart);
    __syncthreads(); /* shared is free */
    if (lane == 0)
        shared[warp] = sum;
    __syncthreads(); /* the warps' sums are there */
    sum = threadIdx.x < WARPS ? shared[threadIdx.x] : 0;
    for (int apart = WARPS / 2; warp == 0 && apart > 0; apart /= 2)
        sum += __shfl_down_sync(~0u, sum, apart);
    return sum;
}

/* Of the rungs that accumulate both types in f64. */
static double dot_bound_f64(gpu_dtype, int64_t k)
{
    return gpu_cuda_gamma(GPU_F64, k);
}

#endif
