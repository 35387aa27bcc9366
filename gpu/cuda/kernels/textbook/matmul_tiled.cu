/* matmul tiled: a block computes a square tile of c from square tiles of a
 * and b in shared memory, one element a thread; tiles of 8, 16 or 32.
 *
 * Each element fetched from global memory is used TILE times. Limited by
 * shared memory: a read of b for every multiply-add, and a 16-byte read of a
 * for every few. Edges are tested at every
 * load, so any shape goes; loads run along whichever side of an operand has
 * the nearer neighbours. Any GPU, any strides. */
#include "kernel.h"

/* Rows of a tile stay 16-byte aligned, so that several elements of a row are
 * read at once, and a column's elements are spread over eight banks. */
template <class T> constexpr int pad = 16 / sizeof(T);

/* rows x cols elements of `from`, as far as they are inside the tile; zeros
 * elsewhere. */
template <class T, int TILE>
__device__ __forceinline__ void
load_tile(T (*tile)[TILE + pad<T>], const T *from, int64_t row_stride,
          int64_t col_stride, int64_t rows, int64_t cols)
{
    bool along_row = llabs(col_stride) <= llabs(row_stride);
    int r = along_row ? threadIdx.y : threadIdx.x;
    int c = along_row ? threadIdx.x : threadIdx.y;
    tile[r][c] =
        r < rows && c < cols ? from[r * row_stride + c * col_stride] : (T)0;
}

template <class T, int TILE>
__global__ void __launch_bounds__(TILE *TILE) tiled_kernel(const product<T> p)
{
    __shared__ __align__(16) T a[TILE][TILE + pad<T>], b[TILE][TILE + pad<T>];
    int64_t down = (p.m + TILE - 1) / TILE, across = (p.n + TILE - 1) / TILE;
    for (int64_t t = blockIdx.x; t < down * across; t += gridDim.x) {
        int64_t row, col;
        T sum = 0;
        tile_of(t, down, across, &row, &col);
        row *= TILE;
        col *= TILE;
        for (int64_t k = 0; k < p.k; k += TILE) {
            load_tile<T, TILE>(a, p.a + row * p.a_row + k * p.a_col, p.a_row,
                               p.a_col, p.m - row, p.k - k);
            load_tile<T, TILE>(b, p.b + k * p.b_row + col * p.b_col, p.b_row,
                               p.b_col, p.k - k, p.n - col);
            __syncthreads(); /* both tiles are there */
#pragma unroll
            for (int n = 0; n < TILE; n++)
                sum += a[threadIdx.y][n] * b[n][threadIdx.x];
            __syncthreads(); /* both are used up */
        }
        if (row + threadIdx.y < p.m && col + threadIdx.x < p.n)
            write_c(p, row + threadIdx.y, col + threadIdx.x, sum);
    }
}

template <class T, int TILE>
static gpu_status launch(cuda_device *d, const gpu_gemm *g)
{
    product<T> p = typed_product<T>(g);
    int64_t tiles = ceil_div(p.m, TILE) * ceil_div(p.n, TILE);
    tiled_kernel<T, TILE>
        <<<grid_for(tiles), dim3(TILE, TILE), 0, d->stream>>>(p);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T>
static gpu_status launch_tile(cuda_device *d, const gpu_gemm *g)
{
    switch (g->tile) {
    case 8:
        return launch<T, 8>(d, g);
    case 0: /* as fast as 32 on large products, faster on small ones */
    case 16:
        return launch<T, 16>(d, g);
    case 32:
        return launch<T, 32>(d, g);
    default:
        return FAIL(GPU_ARGUMENT, "matmul: tile %d is not one of 8, 16, 32",
                    g->tile);
    }
}

static gpu_status tiled(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul("tiled", p, &g));
    return g.c.dtype == GPU_F64 ? launch_tile<double>(d, &g)
                                : launch_tile<float>(d, &g);
}

const gpu_kernel gpu_cuda_matmul_tiled = {
    .operation = "matmul",
    .name = "tiled",
    .idea = "square tiles in shared memory, of 8, 16 or 32, edges tested",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = gpu_cuda_matmul_bound,
    .matmul = tiled,
    .dot = NULL,
};
