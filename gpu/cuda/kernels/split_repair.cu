/* split16's third part: results that the planes do not make certain.
 *
 * Where a row's elements span more than 2^17, the smallest lose bits when
 * they are cut; the matrix kernel notes every result for which that may show
 * (see split_product). A block computes each of them again, in f64. When
 * there are more of them than the list holds, or NaN or Inf in an operand,
 * the whole product is done again in FP32: a small one right here, 16 of k at
 * a time, as each further launch costs a microsecond or two; for a larger one
 * the gate of the simt kernel behind this one opens. Any GPU. */
#include "split16.h"

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int TILE = 64, SLICE = 16, PATCH = 4; /* of the plain product */

typedef struct tile_memory {
    float a[SLICE][TILE + 4], b[SLICE][TILE + 4];
} tile_memory;

/* By a whole block, in a fixed order; thread 0 gets the sum. */
__device__ __forceinline__ double exact_sum(const product<float> &g, int64_t i,
                                            int64_t j, double *shared)
{
    const float *a = g.a + i * g.a_row, *b = g.b + j * g.b_col;
    double sum = 0;
#pragma unroll 8
    for (int64_t k = threadIdx.x; k < g.k; k += THREADS)
        sum += (double)a[k * g.a_col] * (double)b[k * g.b_row];
    for (int apart = 16; apart > 0; apart /= 2)
        sum += __shfl_down_sync(~0u, sum, apart);
    __syncthreads(); /* shared is free */
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = sum;
    __syncthreads(); /* the warps' sums are there */
    sum = 0;
    for (int w = 0; threadIdx.x == 0 && w < WARPS; w++)
        sum += shared[w];
    return sum;
}

/* 16 of k of an operand's 64 rows or columns, zeros beyond its edges. */
__device__ __forceinline__ void load_slice(float (*to)[TILE + 4],
                                           const float *from, int64_t span,
                                           int64_t depth, int64_t span_left,
                                           int64_t depth_left)
{
    bool along_k = depth * depth < span * span;
#pragma unroll
    for (int e = threadIdx.x; e < TILE * SLICE; e += THREADS) {
        int s = along_k ? e / SLICE : e % TILE;
        int k = along_k ? e % SLICE : e / TILE;
        to[k][s] =
            s < span_left && k < depth_left ? from[s * span + k * depth] : 0;
    }
}

/* c = alpha a b for one tile of 64 x 64, a thread 4 x 4 of it; slices are
 * added in f64, so that a long k costs no accuracy. */
__device__ __forceinline__ void multiply_plainly(const split_product &p,
                                                 const product<float> &g,
                                                 int64_t row, int64_t col,
                                                 tile_memory &tile)
{
    int i = threadIdx.x / 16 * PATCH, j = threadIdx.x % 16 * PATCH;
    double total[PATCH][PATCH] = {};
    for (int64_t k = 0; k < g.k; k += SLICE) {
        __syncthreads(); /* the tile is free */
        load_slice(tile.a, g.a + row * g.a_row + k * g.a_col, g.a_row, g.a_col,
                   g.m - row, g.k - k);
        load_slice(tile.b, g.b + col * g.b_col + k * g.b_row, g.b_col, g.b_row,
                   g.n - col, g.k - k);
        __syncthreads(); /* the tile is filled */
        float sum[PATCH][PATCH] = {};
        int depth = (int)min((int64_t)SLICE, g.k - k); /* 0 x Inf is NaN */
        for (int q = 0; q < depth; q++)
#pragma unroll
            for (int r = 0; r < PATCH; r++)
#pragma unroll
                for (int c = 0; c < PATCH; c++)
                    sum[r][c] += tile.a[q][i + r] * tile.b[q][j + c];
#pragma unroll
        for (int r = 0; r < PATCH; r++)
#pragma unroll
            for (int c = 0; c < PATCH; c++)
                total[r][c] += (double)sum[r][c];
    }
#pragma unroll
    for (int r = 0; r < PATCH; r++)
#pragma unroll
        for (int c = 0; c < PATCH; c++)
            if (row + i + r < g.m && col + j + c < g.n)
                p.c[(row + i + r) * p.c_row + (col + j + c) * p.c_col] =
                    (float)((double)p.alpha * total[r][c]);
}

/* The last block to have read the count zeroes it for the next product. */
__device__ __forceinline__ void clear_count(const split_product &p)
{
    __syncthreads(); /* this block has read it */
    if (threadIdx.x == 0 && atomicAdd(p.count + 1, 1) == gridDim.x - 1)
        p.count[0] = p.count[1] = 0;
}

__global__ void __launch_bounds__(THREADS)
    repair(const __grid_constant__ split_product p,
           const __grid_constant__ product<float> g)
{
    __shared__ tile_memory tile;
    __shared__ double sums[WARPS];
    let_next_start();
    wait_for_previous();
    unsigned count = *p.count;
    int again = products_for(*p.a.facts, *p.b.facts) == 0 || count > p.capacity;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *p.gate = again;
    clear_count(p);
    if (again && p.is_small) {
        int64_t down = (g.m + TILE - 1) / TILE,
                across = (g.n + TILE - 1) / TILE;
        for (int64_t t = blockIdx.x; t < down * across; t += gridDim.x)
            multiply_plainly(p, g, t / across * TILE, t % across * TILE, tile);
    }
    for (unsigned e = blockIdx.x; e < count && !again; e += gridDim.x) {
        int64_t i = p.uncertain[e] / g.n, j = p.uncertain[e] % g.n;
        double sum = exact_sum(g, i, j, sums);
        if (threadIdx.x == 0)
            p.c[i * p.c_row + j * p.c_col] = (float)((double)p.alpha * sum);
    }
}

gpu_status gpu_cuda_split_repair(cuda_device *d, const split_product *p,
                                 const gpu_gemm *g)
{
    static int prepared;
    TRY(keep_division(d, (const void *)repair, &prepared));
    return launch_behind(d, repair, dim3((unsigned)d->sms), THREADS, 0, 1, *p,
                         typed_product<float>(g));
}
