/* How a block of split16_small.h ends, which alone has its part of c: what the
 * planes do not make certain there it computes again itself, in f64, and waits
 * for no other block. As split_certify.h, where all blocks share that work. */
#ifndef GPU_CUDA_SPLIT16_MEND_H
#define GPU_CUDA_SPLIT16_MEND_H

#include "split_certify.h"

/* Of more than these, all of the part is done again: that takes less time. */
enum { MOST_PLACES = 32 };

/* In shared memory. Places count along rows of 64, from a tile's corner. */
typedef struct uncertain_list {
    unsigned count;
    unsigned short place[MOST_PLACES];
} uncertain_list;

__device__ __forceinline__ void add_place(uncertain_list *list, int i, int j)
{
    unsigned at = atomicAdd(&list->count, 1);
    if (at < MOST_PLACES)
        list->place[at] = (unsigned short)(i * 64 + j);
}

/* A tile's corner, and of its rows and columns those that a block writes. */
typedef struct part_of_c {
    int row, col;
    int first, end, cols;
} part_of_c;

/* The same product, but only that part of it. In shared memory, as registers
 * are few. */
typedef struct part_to_redo {
    split_product p;
    product<float> g;
} part_to_redo;

__device__ __forceinline__ void cut_part(const split_product &p,
                                         const product<float> &g,
                                         const part_of_c &at,
                                         part_to_redo *part)
{
    int64_t row = at.row + at.first, col = at.col;
    part->p = p;
    part->g = g;
    part->p.c += row * p.c_row + col * p.c_col;
    part->g.a += row * g.a_row;
    part->g.b += col * g.b_col;
    part->p.m = part->g.m = max(at.end - at.first, 0);
    part->p.n = part->g.n = max(at.cols, 0);
}

/* By the block's first 256 threads; not inlined, as it is rarely called.
 * shared: REDO_BYTES and a part, which nothing else uses any longer. */
static __device__ __noinline__ void
mend_block(const split_product &p, const product<float> &g, part_of_c at,
           const uncertain_list *list, int again, double *shared)
{
    unsigned count = list->count;
    if (again || count > MOST_PLACES) {
        part_to_redo *part = (part_to_redo *)(shared + REDO_BYTES / 8);
        if (threadIdx.x == 0)
            cut_part(p, g, at, part);
        redo_sync<1>(); /* the part is cut */
        redo_product<1>(part->p, part->g, 0, 1, threadIdx.x, shared);
        return;
    }
    for (unsigned e = 0; e < count; e++) {
        int64_t i = at.row + list->place[e] / 64;
        int64_t j = at.col + list->place[e] % 64;
        double sum = exact_sum<1>(g, i, j, threadIdx.x, shared);
        if (threadIdx.x == 0)
            p.c[i * p.c_row + j * p.c_col] = (float)((double)p.alpha * sum);
    }
}

#endif
