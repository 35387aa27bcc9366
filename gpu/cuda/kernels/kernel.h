/* What the rungs of the ladder share: their operands as typed pointers, the
 * order of tiles, the way a result is written, and the error bound.
 *
 * A rung is one file that ends in its gpu_kernel descriptor, named in
 * kernels.def. Strides are any: 1, odd, zero for a vector's second, negative.
 * The result's columns are its nearer neighbours: a product for which that is
 * not so is turned into b^T a^T = c^T before a rung sees it. */
#ifndef GPU_CUDA_KERNEL_H
#define GPU_CUDA_KERNEL_H

#include "cuda_device.h"

#define KERNEL(symbol) extern const gpu_kernel symbol;
#include "kernels.def"
#undef KERNEL

/* What is kept about an operand: its planes as a, or as b, of split16; of a
 * sparse matrix the plan of its rows, and whether these are equally long. */
enum { KEPT_A = 1, KEPT_B = 2, KEPT_ROWS, KEPT_EVEN, KEPT_UNEVEN };

enum { FLOATS = 1u << GPU_F32 | 1u << GPU_F64 };

/* c = alpha a b + beta c, what a kernel is launched with. */
template <class T> struct product {
    const T *a, *b; /* m x k, k x n */
    T *c;           /* m x n */
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row, c_col; /* strides */
    T alpha, beta;
};

/* The operands of a dot. */
template <class T> struct pair {
    const T *x, *y;
    int64_t n, x_stride, y_stride; /* elements, and from one to the next */
};

/* Refuses what no rung can do, with `name` in the message, and orients c: its
 * columns are the nearer neighbours of *oriented, which borrows p's views. */
gpu_status gpu_cuda_begin_matmul(const char *name, const gpu_gemm *p,
                                 gpu_gemm *oriented);
gpu_status gpu_cuda_begin_dot(const char *name, const gpu_view *x,
                              const gpu_view *y);

/* k u / (1 - k u): any order of k multiplications and k - 1 additions in
 * `accumulated`, fused or not. Source: Higham, Accuracy and Stability of
 * Numerical Algorithms, section 3.1. */
double gpu_cuda_gamma(gpu_dtype accumulated, int64_t k);

/* matmul's: two more roundings for alpha and beta. */
double gpu_cuda_matmul_bound(gpu_dtype dtype, int64_t k);

template <class T> static product<T> typed_product(const gpu_gemm *p)
{
    return {(const T *)p->a.data,
            (const T *)p->b.data,
            (T *)p->c.data,
            p->c.rows,
            p->c.cols,
            p->a.cols,
            p->a.row_stride,
            p->a.col_stride,
            p->b.row_stride,
            p->b.col_stride,
            p->c.row_stride,
            p->c.col_stride,
            (T)p->alpha,
            (T)p->beta};
}

/* Vectors in either direction. */
template <class T>
static pair<T> typed_pair(const gpu_view *x, const gpu_view *y)
{
    return {(const T *)x->data, (const T *)y->data, x->rows * x->cols,
            x->cols == 1 ? x->row_stride : x->col_stride,
            y->cols == 1 ? y->row_stride : y->col_stride};
}

/* c = alpha sum + beta c, without reading c when beta is 0. */
template <class T>
__device__ __forceinline__ void write_c(const product<T> &p, int64_t i,
                                        int64_t j, T sum)
{
    T *c = p.c + i * p.c_row + j * p.c_col;
    *c = p.beta == 0 ? p.alpha * sum : p.alpha * sum + p.beta * *c;
}

/* The t-th tile of a down x across grid of tiles. Groups of eight rows go
 * column by column, so that the blocks running at one time share operands in
 * the L2 cache. */
__device__ __forceinline__ void tile_of(int64_t t, int64_t down, int64_t across,
                                        int64_t *row, int64_t *col)
{
    const int64_t height = 8;
    int64_t group = divide(t, height * across);
    int64_t rest = t - group * height * across;
    int64_t first = group * height;
    int64_t rows = min(height, down - first);
    *col = divide(rest, rows);
    *row = first + rest - *col * rows;
}

/* Blocks for so many tiles: a block takes several where a grid cannot hold
 * one each. */
static inline unsigned grid_for(int64_t tiles)
{
    return (unsigned)smaller(tiles, INT32_MAX);
}

#endif
