/* matmul dmma where all threads fill the ring, by asynchronous copies: any
 * strides, from sm_80 on. */
#ifndef GPU_CUDA_DMMA_COPIED_H
#define GPU_CUDA_DMMA_COPIED_H

#include "copies.h"
#include "dmma.h"
#include "hopper.h"

/* threadIdx.x, where what is worked out from it shall not be kept: the loop
 * has cycles to spare, but no registers. */
__device__ __forceinline__ int thread_again(void)
{
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    __builtin_assume(thread >= 0 && thread < 1024);
    return thread;
}

/* How a block's threads share the copying of a slice, WIDTH elements at a
 * time: each has one place in several lines, LINES apart. */
template <slice S, int COUNT, int WIDTH> struct sharing {
    static constexpr int PER_LINE = (S.along_k ? S.depth : S.span) / WIDTH;
    static constexpr int LINES = COUNT / PER_LINE;
    static constexpr int COPIES = S.span * S.depth / WIDTH / COUNT;
    static_assert(COUNT % PER_LINE == 0 && COPIES > 0);
};

template <slice S, int COUNT, int WIDTH>
__device__ __forceinline__ void first_copy(int *s, int *k)
{
    constexpr int per_line = sharing<S, COUNT, WIDTH>::PER_LINE;
    int thread = thread_again();
    int line = thread / per_line, near = thread % per_line * WIDTH;
    *s = S.along_k ? line : near;
    *k = S.along_k ? near : line;
}

/* What is left of an operand: this thread's next element, and how many rows
 * of a (or columns of b) are inside this tile. */
typedef struct source {
    const double *next;
    int64_t s_stride, k_stride;
    bool wide; /* copied 16 bytes at a time */
    int s_left;
} source;

/* x, an operand as a whole, from row (or column) s and k on. */
template <slice S, int COUNT>
__device__ __forceinline__ source open_source(source x, int64_t count,
                                              int64_t s, int64_t k)
{
    int own_s, own_k;
    if (x.wide)
        first_copy<S, COUNT, 2>(&own_s, &own_k);
    else
        first_copy<S, COUNT, 1>(&own_s, &own_k);
    x.next += (s + own_s) * x.s_stride + (k + own_k) * x.k_stride;
    x.s_left = (int)min(count - s, (int64_t)S.span);
    return x;
}

/* Zeros beyond the edges. */
template <slice S, int COUNT, int WIDTH>
__device__ __forceinline__ void copy_slice(double *to, const source &from,
                                           int k_left)
{
    using share = sharing<S, COUNT, WIDTH>;
    constexpr int size = (int)sizeof(double);
    int64_t line_stride = S.along_k ? from.s_stride : from.k_stride;
    int s, k;
    first_copy<S, COUNT, WIDTH>(&s, &k);
#pragma unroll
    for (int n = 0; n < share::COPIES; n++) {
        int inside = S.along_k ? k_left - k : from.s_left - s;
        if (S.along_k ? s >= from.s_left : k >= k_left)
            inside = 0;
        copy_async<WIDTH * size>(shared_address(to + place_in_slice<S>(s, k)),
                                 from.next + n * share::LINES * line_stride,
                                 min(max(inside, 0), WIDTH) * size);
        *(S.along_k ? &s : &k) += share::LINES;
    }
}

template <slice S, int COUNT>
__device__ __forceinline__ void copy_next(double *to, source *from, int k_left)
{
    if (from->wide)
        copy_slice<S, COUNT, 2>(to, *from, k_left);
    else
        copy_slice<S, COUNT, 1>(to, *from, k_left);
    from->next += S.depth * from->k_stride;
}

typedef struct feed {
    source a, b;
    int64_t k_left;
} feed;

template <tiling T> __device__ __forceinline__ feed open_feed(const job &j)
{
    const product<double> &p = j.p;
    int64_t row, col, part;
    find_tile<T>(j, &row, &col, &part);
    int64_t k = part * j.part_k;
    source a = {p.a, p.a_row, p.a_col, j.a_wide, 0};
    source b = {p.b, p.b_col, p.b_row, j.b_wide, 0};
    return {open_source<slice_of_a(T), THREADS<T>>(a, p.m, row, k),
            open_source<slice_of_b(T), THREADS<T>>(b, p.n, col, k),
            min(p.k - k, j.part_k)};
}

/* Ends a group of copies even where nothing is left: groups are counted. */
template <tiling T>
__device__ __forceinline__ void fill_slot(double *slot, feed *f)
{
    if (f->k_left > 0) {
        int k_left = (int)min(f->k_left, (int64_t)T.depth);
        copy_next<slice_of_a(T), THREADS<T>>(slot, &f->a, k_left);
        copy_next<slice_of_b(T), THREADS<T>>(slot + A_SLICE<T>, &f->b, k_left);
    }
    f->k_left -= T.depth;
    end_copies();
}

template <tiling T>
__global__ void __launch_bounds__(THREADS<T>, T.blocks)
    dmma_kernel(const __grid_constant__ job j)
{
    extern __shared__ __align__(1024) double slots[];
    feed f = open_feed<T>(j);
    int left = (int)((f.k_left + T.depth - 1) / T.depth);
    for (int n = 0; n < T.stages - 1; n++)
        fill_slot<T>(slots + n * SLOT<T>, &f);
    wait_for_copies<T.stages - 2>();
    __syncthreads(); /* the first slot is filled */
    warp_work<T> w = {};
    begin_work(&w, slots);
    int reading = 0;
#pragma unroll 1
    for (; left > 0; left--) {
        int used = reading == 0 ? T.stages - 1 : reading - 1;
        int next = reading == T.stages - 1 ? 0 : reading + 1;
        fill_slot<T>(slots + used * SLOT<T>, &f);
        multiply_slot(&w, slots + reading * SLOT<T>);
        wait_for_copies<T.stages - 2>();
        __syncthreads(); /* the next slot is filled, this one read */
        finish_slot(&w, slots + next * SLOT<T>);
        reading = next;
    }
    write_tile(j, w);
}

#endif
