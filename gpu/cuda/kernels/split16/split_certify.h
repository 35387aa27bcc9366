/* How a kernel of split16 ends that keeps its blocks until all results are
 * written: what the planes do not make certain is computed again, in f64.
 *
 * Where a row's elements span more than 2^17, the smallest lose bits when
 * they are cut; matrix kernels note every result for which that may show (see
 * split_product). A block computes each of them again. When there are more of
 * them than the list holds, or NaN or Inf in an operand, the whole product is
 * done again (see split_f64_product.h). By 256 threads of each block, which
 * wait for each other at barrier ID. */
#ifndef GPU_CUDA_SPLIT_CERTIFY_H
#define GPU_CUDA_SPLIT_CERTIFY_H

#include "grid.h"
#include "split_f64_product.h"

/* Can only the operands themselves tell the product? */
__device__ __forceinline__ int is_to_redo(const split_product &p,
                                          unsigned count)
{
    return count > p.capacity ||
           products_for(__ldcg(p.a.facts), __ldcg(p.b.facts)) == 0;
}

/* Element (i, j) of a b in f64, added in a fixed order; thread 0 gets it. */
template <int ID>
__device__ __forceinline__ double exact_sum(const product<float> &g, int64_t i,
                                            int64_t j, int thread,
                                            double *shared)
{
    const float *a = g.a + i * g.a_row, *b = g.b + j * g.b_col;
    double sum = 0;
#pragma unroll 8
    for (int64_t k = thread; k < g.k; k += REDO_THREADS)
        sum += (double)a[k * g.a_col] * (double)b[k * g.b_row];
    for (int apart = 16; apart > 0; apart /= 2)
        sum += __shfl_down_sync(~0u, sum, apart);
    redo_sync<ID>(); /* shared is free */
    if (thread % 32 == 0)
        shared[thread / 32] = sum;
    redo_sync<ID>(); /* the warps' sums are there */
    sum = 0;
    for (int w = 0; thread == 0 && w < REDO_WARPS; w++)
        sum += shared[w];
    return sum;
}

/* This block's share of the work, when `count` results are uncertain. */
template <int ID>
__device__ __forceinline__ void mend(const split_product &p,
                                     const product<float> &g, unsigned count,
                                     int again, int thread, double *shared)
{
    if (again && p.redoes)
        redo_product<ID>(p, g, (int)blockIdx.x, (int)gridDim.x, thread, shared);
    for (unsigned e = blockIdx.x; e < count && !again; e += gridDim.x) {
        int64_t at = __ldcg(p.uncertain + e);
        int64_t i = at / g.n, j = at % g.n;
        double sum = exact_sum<ID>(g, i, j, thread, shared);
        if (thread == 0)
            p.c[i * p.c_row + j * p.c_col] = (float)((double)p.alpha * sum);
    }
}

/* The last block to have read the count zeroes it for the next product. By
 * one thread. */
__device__ __forceinline__ void clear_count(const split_product &p)
{
    if (atomicAdd(p.tickets + SPLIT_READ, 1) == gridDim.x - 1)
        p.tickets[SPLIT_COUNT] = p.tickets[SPLIT_READ] = 0;
}

/* --- in the kernel that multiplied -------------------------------------- */

/* Not inlined: it is rarely called, and its registers are others'. */
template <int ID>
__device__ __noinline__ void mend_apart(const split_product &p,
                                        const product<float> &g, unsigned count,
                                        int again, int thread, double *shared)
{
    mend<ID>(p, g, count, again, thread, shared);
}

/* shared: REDO_BYTES and more, which nothing else uses any longer. Only where
 * p.redoes: there is no gate to open. */
template <int ID>
__device__ __forceinline__ void certify(const split_product &p,
                                        const product<float> &g, int thread,
                                        double *shared)
{
    unsigned *said = (unsigned *)shared;
    redo_sync<ID>(); /* the block's results are written */
    if (thread == 0) {
        unsigned *written = p.tickets + SPLIT_WRITTEN;
        grid_wait(written, grid_arrive(written));
        *said = __ldcg(p.tickets + SPLIT_COUNT);
    }
    redo_sync<ID>(); /* all are */
    unsigned count = *said;
    int again = is_to_redo(p, count);
    if (count == 0 && !again)
        return;
    redo_sync<ID>(); /* what was said is read */
    if (thread == 0 && count > 0)
        clear_count(p);
    mend_apart<ID>(p, g, count, again, thread, shared);
}

#endif
