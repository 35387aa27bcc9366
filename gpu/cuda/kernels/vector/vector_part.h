/* What the kernels of matmul vector share: a block's part of the product, its
 * loads on their way, and how slices of k become one sum. */
#ifndef GPU_CUDA_VECTOR_PART_H
#define GPU_CUDA_VECTOR_PART_H

#include "copies.h"
#include "kernel.h"
#include "wide.h"

enum { THREADS = 256, WARPS = THREADS / 32 };
enum { ROWS = 4 }; /* or columns, that a thread takes at a time */
enum { FOLD_UNROLL = 16 };

/* Loads on their way to shared memory: each thread has places of its own there,
 * so that none waits for another. */
enum { PLACES = 8, STAGES = 2, PLACE_BYTES = 16 };
template <class T> using places = vector<T>[PLACES][THREADS];

/* How the work is cut: a block takes a tile of rows and a slice of k. The
 * tiles form groups; the last block of a group adds up its slices. */
typedef struct cut {
    int64_t tile, slice; /* rows; of k */
    unsigned tiles, slices, per_group;
    int lanes;      /* threads side by side in memory */
    int apart;      /* rows between those that a thread takes together */
    int fold_lanes; /* threads that add up one element's slices */
} cut;

/* Where a block stands in it. */
typedef struct place_in_cut {
    int64_t row, depth; /* the first of them */
    int rows, depths;   /* how many */
} place_in_cut;

/* All a block needs for writing what it has summed. */
template <class T> struct target {
    const product<T> &p;
    const cut &w;
    T *partials; /* slices x m x n */
    unsigned slice;
};

template <class T>
__device__ __forceinline__ void put(const target<T> &to, int64_t i, int j,
                                    T sum)
{
    if (to.w.slices == 1)
        write_c(to.p, i, j, sum);
    else
        to.partials[(to.slice * to.p.m + i) * to.p.n + j] = sum;
}

/* The j-th vector from one's beginning; where there are fewer, the last, whose
 * sums are then not written. */
template <class T>
__device__ __forceinline__ const T *vector_at(const product<T> &p, const T *b,
                                              int j)
{
    return b + min((int64_t)j, p.n - 1) * p.b_col;
}

/* --- loads --------------------------------------------------------------- */

/* Through the first-level cache where a warp's loads do not fill its lines:
 * they share them with others. What is not wanted becomes zeros. */
template <reach HOW, class T>
__device__ __forceinline__ void start_load(vector<T> *to, const T *from,
                                           bool wanted)
{
    copy_async<PLACE_BYTES, HOW == ACROSS>(
        (uint32_t)__cvta_generic_to_shared(to), from, wanted ? PLACE_BYTES : 0);
}

/* The oldest of STAGES groups of loads is there. */
__device__ __forceinline__ void await_stage(void)
{
    wait_for_copies<STAGES - 1>();
}

/* --- the sums of slices -------------------------------------------------- */

/* Are all the partial sums of this block's group written? */
__device__ __forceinline__ bool is_last(const cut &w, unsigned group,
                                        unsigned *tickets)
{
    __shared__ unsigned mine;
    unsigned members =
        min(w.per_group, w.tiles - group * w.per_group) * w.slices;
    __syncthreads(); /* the block's partial sums are written */
    if (threadIdx.x == 0) {
        __threadfence(); /* they are seen before the ticket is drawn */
        mine = atomicAdd(tickets + group, 1);
        if (mine == members - 1)
            tickets[group] = 0;
    }
    __syncthreads(); /* the ticket is known */
    __threadfence(); /* the others' sums are seen after it */
    return mine == members - 1;
}

/* Adds up the slices of a group's elements of c. */
template <class T>
__device__ __forceinline__ void fold_group(const product<T> &p, const cut &w,
                                           const T *partials, unsigned group)
{
    int lane = threadIdx.x % w.fold_lanes;
    int64_t size = p.m * p.n, span = w.per_group * w.tile * p.n;
    int64_t end = min((group + 1) * span, size);
    /* All threads of a warp go round equally often: they shuffle. */
    for (int64_t first = group * span; first < end;
         first += THREADS / w.fold_lanes) {
        int64_t e = first + threadIdx.x / w.fold_lanes;
        double sum = 0;
#pragma unroll FOLD_UNROLL
        for (int64_t s = e < end ? lane : w.slices; s < w.slices;
             s += w.fold_lanes)
            sum += (double)__ldcg(partials + s * size + e);
        for (int apart = w.fold_lanes / 2; apart > 0; apart /= 2)
            sum += __shfl_xor_sync(~0u, sum, apart);
        if (lane == 0 && e < end)
            write_c(p, e / p.n, e % p.n, (T)sum);
    }
}

template <class T>
__device__ __forceinline__ void finish(const target<T> &to, unsigned tile,
                                       unsigned *tickets)
{
    unsigned group = tile / to.w.per_group;
    if (to.w.slices > 1 && is_last(to.w, group, tickets))
        fold_group(to.p, to.w, to.partials, group);
}

#endif
