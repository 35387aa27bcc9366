/* x = L^-1 x for 64 columns a block; L: lower with ones on its diagonal, row by
 * row, of n = 32, 64, 96 or 128. What factorisations do with the blocks on
 * their diagonals; larger triangles go by halves (padded.h).
 *
 * Blocks of 32 on the diagonal are inverted, by a warp each; all else is
 * products: a thread has 4 x 4 of 32 rows and 16 columns, and warps meet
 * nobody. Limited by reads of shared memory, half a word a multiplication. An
 * explicit inverse of more than 128 would cost a factor of two in error. Needs
 * sm_80. */
#ifndef GPU_CUDA_BLOCK_SOLVE_H
#define GPU_CUDA_BLOCK_SOLVE_H

#include "copies.h"
#include "split16.h"

constexpr int MOST_BLOCK = 128, SOLVE_THREADS = 128, SOLVE_COLS = 64;
constexpr int SOLVE_STEP = 32; /* rows at a time */
/* Floats from row to row: 16-byte aligned, and in other banks. */
constexpr int SOLVE_PITCH = MOST_BLOCK + 4, SOLVE_PITCH_X = SOLVE_COLS + 4;

static size_t solve_bytes(int n)
{
    return (size_t)n * (SOLVE_PITCH + SOLVE_PITCH_X) * sizeof(float);
}

/* The square of 32 at l, unit lower, becomes its inverse; a warp's. */
__device__ __forceinline__ void invert_square(float (*l)[SOLVE_PITCH], int at,
                                              int lane)
{
    float y[SOLVE_STEP]; /* column `lane` of it */
#pragma unroll
    for (int r = 0; r < SOLVE_STEP; r++) {
        float sum[4] = {r == lane ? 1.0f : 0.0f, 0, 0, 0};
#pragma unroll
        for (int c = 0; c < r; c += 4) {
            float4 f = *(const float4 *)&l[at + r][at + c];
            sum[0] -= f.x * y[c];
            if (c + 1 < r)
                sum[1] -= f.y * y[c + 1];
            if (c + 2 < r)
                sum[2] -= f.z * y[c + 2];
            if (c + 3 < r)
                sum[3] -= f.w * y[c + 3];
        }
        y[r] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    __syncwarp(); /* the square is read */
#pragma unroll
    for (int r = 0; r < SOLVE_STEP; r++)
        l[at + r][at + lane] = y[r];
}

/* sum += l's rows i, i + 8 ... times x's columns j to j + 3, of [from, to). */
__device__ __forceinline__ void add_rows(float (&sum)[4][4],
                                         float (*l)[SOLVE_PITCH],
                                         float (*x)[SOLVE_PITCH_X], int i,
                                         int j, int from, int to)
{
#pragma unroll 2
    for (int c = from; c < to; c += 4) {
        float4 u[4], v[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            u[e] = *(const float4 *)&l[i + 8 * e][c];
            v[e] = *(const float4 *)&x[c + e][j];
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float w[4] = {u[e].x, u[e].y, u[e].z, u[e].w};
#pragma unroll
            for (int f = 0; f < 4; f++) {
                sum[e][0] += w[f] * v[f].x;
                sum[e][1] += w[f] * v[f].y;
                sum[e][2] += w[f] * v[f].z;
                sum[e][3] += w[f] * v[f].w;
            }
        }
    }
}

__global__ void __launch_bounds__(SOLVE_THREADS)
    block_solve(const float *L, int64_t ldl, int n, float *to, int64_t ldx,
                int cols)
{
    extern __shared__ float4 solve_memory[];
    float(*l)[SOLVE_PITCH] = (float(*)[SOLVE_PITCH])solve_memory;
    float(*x)[SOLVE_PITCH_X] = (float(*)[SOLVE_PITCH_X])(l + n);
    int t = (int)threadIdx.x, lane = t % 32, warp = t / 32;
    int first = (int)blockIdx.x * SOLVE_COLS;
    let_next_start();
    wait_for_previous();
    for (int k = t; k < n * (MOST_BLOCK / 4); k += SOLVE_THREADS) {
        int r = k / (MOST_BLOCK / 4), c = k % (MOST_BLOCK / 4) * 4;
        if (c <= r)
            copy_async<16>(shared_address(&l[r][c]), L + r * ldl + c, 16);
    }
    end_copies();
    for (int k = t; k < n * (SOLVE_COLS / 4); k += SOLVE_THREADS) {
        int r = k / (SOLVE_COLS / 4), c = first + k % (SOLVE_COLS / 4) * 4;
        copy_async<16>(shared_address(&x[r][c - first]),
                       to + r * ldx + (c < cols ? c : 0), c < cols ? 16 : 0);
    }
    end_copies();
    wait_for_copies<1>();
    __syncthreads(); /* L is there */
    if (warp * SOLVE_STEP < n)
        invert_square(l, warp * SOLVE_STEP, lane);
    wait_for_all_copies();
    __syncthreads(); /* the inverses and x are there */
    int i = lane / 4, j = warp * 16 + lane % 4 * 4; /* rows i, i + 8 ... */
#pragma unroll 1
    for (int k = 0; k < n; k += SOLVE_STEP) {
        float sum[4][4] = {};
        add_rows(sum, l, x, k + i, j, 0, k);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float4 *at = (float4 *)&x[k + i + 8 * e][j], old = *at;
            *at = make_float4(old.x - sum[e][0], old.y - sum[e][1],
                              old.z - sum[e][2], old.w - sum[e][3]);
#pragma unroll
            for (int f = 0; f < 4; f++)
                sum[e][f] = 0;
        }
        __syncwarp(); /* its 16 columns are written */
        add_rows(sum, l, x, k + i, j, k, k + SOLVE_STEP);
        __syncwarp(); /* and read */
#pragma unroll
        for (int e = 0; e < 4; e++)
            *(float4 *)&x[k + i + 8 * e][j] =
                make_float4(sum[e][0], sum[e][1], sum[e][2], sum[e][3]);
        __syncwarp(); /* they are what the next rows take */
    }
    if (first + j < cols)
        for (int r = i; r < n; r += 8)
            *(float4 *)(to + r * ldx + first + j) = *(const float4 *)&x[r][j];
}

/* x: n x cols, which is a multiple of four. */
static gpu_status solve_with_block(cuda_device *d, const float *L, int64_t ldl,
                                   int n, float *x, int64_t ldx, int cols)
{
    static int prepared;
    if (cols <= 0)
        return GPU_OK;
    TRY(set_once(d, (const void *)block_solve,
                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                 (int)solve_bytes(MOST_BLOCK), &prepared));
    return launch_behind(
        d, block_solve, dim3((unsigned)ceil_div(cols, SOLVE_COLS)),
        SOLVE_THREADS, solve_bytes(n), 1, L, ldl, n, x, ldx, cols);
}

#endif
