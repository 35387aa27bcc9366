/* What the rungs of sparse products share: the product with typed pointers, its
 * sums, and the plan by which the merge kernels share rows out.
 *
 * Sums are kept in f64, of complex elements in pairs of them, and rounded once;
 * each rung adds in an order that the matrix alone decides, so that bits
 * repeat. What is no entry is not multiplied.
 *
 * Merge path: the ends of all rows and all entries, in the order in which a
 * walk from row to row meets them, are one list of rows + count items; pieces
 * of it take equally long, however rows differ. Source: Merrill and Garland,
 * Merge-based parallel sparse matrix-vector multiplication, SC 2016. What a
 * piece has of the row that it begins in (its head, if the row began before)
 * and of the row that it ends in (its tail) are put together afterwards. */
#ifndef GPU_CUDA_SPARSE_ROWS_H
#define GPU_CUDA_SPARSE_ROWS_H

#include "sparse_numbers.h"

enum {
    ANY_NUMBERS = FLOATS | 1u << GPU_C64 | 1u << GPU_C128,
    SPAN = 128 /* items between two places of the plan */
};

/* --- the product ---------------------------------------------------------- */

/* c = alpha s d + beta c of n columns. */
template <class V> struct sparse_product {
    const int32_t *starts, *columns;
    const V *values, *d;
    V *c;
    int64_t rows, count, n;
    int64_t d_row, d_col, c_row, c_col; /* strides */
    double alpha, beta;
};

template <class V>
static sparse_product<V> typed_sparse(const gpu_sparse_call *p)
{
    return {p->s.starts,
            p->s.columns,
            (const V *)p->s.values,
            (const V *)p->d.data,
            (V *)p->c.data,
            p->s.rows,
            p->s.count,
            p->c.cols,
            p->d.row_stride,
            p->d.col_stride,
            p->c.row_stride,
            p->c.col_stride,
            p->alpha,
            p->beta};
}

/* alpha sum + beta c, c not read when beta is 0. */
template <class V>
__device__ __forceinline__ V scaled_sum(const sparse_product<V> &p, double sum,
                                        const V *c)
{
    return (V)(p.beta == 0 ? p.alpha * sum
                           : p.alpha * sum + p.beta * (double)*c);
}

template <class V>
__device__ __forceinline__ V scaled_sum(const sparse_product<V> &p, double2 sum,
                                        const V *c)
{
    bool adds = p.beta != 0;
    V x;
    x.x = p.alpha * sum.x + (adds ? p.beta * c->x : 0);
    x.y = p.alpha * sum.y + (adds ? p.beta * c->y : 0);
    return x;
}

template <class V>
__device__ __forceinline__ void write_sum(const sparse_product<V> &p, int64_t i,
                                          int64_t j, sum_of<V> sum)
{
    V *c = p.c + i * p.c_row + j * p.c_col;
    *c = scaled_sum(p, sum, c);
}

/* Roundings of sums in f64, and one to the result's type. */
double gpu_cuda_sparse_bound(gpu_dtype dtype, int64_t k);

/* --- the plan ------------------------------------------------------------- */

/* The row in which each SPAN of the list of items begins, and the last ends:
 * there are spans + 1 of them. */
typedef struct row_plan {
    const int32_t *rows;
    int64_t spans;
    void *room; /* what was asked for beside it */
} row_plan;

/* Kept with the matrix if there is room for that. */
gpu_status gpu_cuda_plan_rows(cuda_device *d, const gpu_sparse_call *p,
                              size_t bytes, row_plan *plan);

/* heads and tails, of tiles of so many spans, to rows. */
template <class V> struct open_rows {
    int64_t tiles, spans_each;
    sum_of<V> *heads, *tails; /* tiles x columns */
    int64_t first, columns;   /* of the product's */
};
template <class V>
gpu_status gpu_cuda_join_rows(cuda_device *d, const sparse_product<V> *p,
                              const row_plan *plan, const open_rows<V> *o);

#endif
