/* Products of a matrix with its own transpose, which are symmetric: what lies
 * on the diagonal and below it is multiplied, in panels, and the rest copied
 * from there, so that nearly half of the work is saved. */
#include "cpu.h"

enum {
    LEAST = 512, /* rows of the result, */
    DEEP = 64,   /* and products in each, that are worth it */
    LEAF = 192,  /* rows that are multiplied whole */
    STEP = 32    /* a half is a multiple of that */
};

static int is_gram(const gpu_gemm *g)
{
    int64_t n = g->c.rows;
    return g->a.data == g->b.data && n == g->c.cols &&
           g->a.row_stride == g->b.col_stride &&
           g->a.col_stride == g->b.row_stride && g->beta == 0 && !g->epilogue &&
           n >= LEAST && g->a.cols >= DEEP;
}

typedef gpu_status multiplication(void *device, const gpu_gemm *p);

/* The rows of a from the i-th on by columns of b from the j-th on. */
static gpu_gemm part_of(const gpu_gemm *g, int64_t i, int64_t rows, int64_t j,
                        int64_t cols)
{
    gpu_gemm p = *g;
    int64_t k = g->a.cols;
    p.a = gpu_cpu_part(&g->a, i, 0, rows, k);
    p.b = gpu_cpu_part(&g->b, 0, j, k, cols);
    p.c = gpu_cpu_part(&g->c, i, j, rows, cols);
    return p;
}

/* The square of n rows and columns from the first on. */
static gpu_status multiply_square(void *device, const gpu_gemm *g,
                                  int64_t first, int64_t n,
                                  multiplication *matmul)
{
    int64_t half = (n / 2 + STEP - 1) / STEP * STEP, rest = n - half;
    gpu_gemm p = part_of(g, first, n, first, n);
    if (n <= LEAF)
        return matmul(device, &p);
    p = part_of(g, first + half, rest, first, half);
    gpu_status status = matmul(device, &p);
    gpu_view below = gpu_cpu_turned(p.c);
    gpu_view right = gpu_cpu_part(&g->c, first, first + half, half, rest);
    if (status == GPU_OK)
        status = gpu_cpu_copy(&below, &right);
    if (status == GPU_OK)
        status = multiply_square(device, g, first, half, matmul);
    if (status == GPU_OK)
        status = multiply_square(device, g, first + half, rest, matmul);
    return status;
}

gpu_status gpu_cpu_gram(void *device, const gpu_gemm *g,
                        gpu_status (*matmul)(void *device, const gpu_gemm *p))
{
    return is_gram(g) ? multiply_square(device, g, 0, g->c.rows, matmul)
                      : GPU_UNSUPPORTED;
}
