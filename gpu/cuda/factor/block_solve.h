/* x = L^-1 x for 32 columns a block; L: lower, row by row, of n = 32, 64, 96 or
 * 128. Turned: x's columns are rows in memory, and L's diagonal is not 1. What
 * factorisations do with the blocks on their diagonals; larger triangles go by
 * halves. An explicit inverse of more would cost a factor of two in error.
 *
 * Limited by reads of L from shared memory, four elements at a time for all
 * lanes. A warp solves 32 rows in its registers, all warps update what is
 * below. Any GPU. */
#ifndef GPU_CUDA_BLOCK_SOLVE_H
#define GPU_CUDA_BLOCK_SOLVE_H

#include "cuda_device.h"

constexpr int MOST_BLOCK = 128, SOLVE_THREADS = 256;

static size_t solve_bytes(int n)
{
    return (size_t)n * (size_t)(n + 4 + 33) * sizeof(float);
}

template <bool TURNED>
__global__ void __launch_bounds__(SOLVE_THREADS)
    block_solve(const float *L, int64_t ldl, int n, float *x, int64_t ldx,
                int cols)
{
    extern __shared__ float4 solve_memory[];
    constexpr int PITCH_X = TURNED ? 33 : 32;
    const int pitch = n + 4;
    __shared__ float inverse[MOST_BLOCK];
    float *T = (float *)solve_memory, *X = T + n * pitch; /* L^T; n x 32 */
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int c = blockIdx.x * 32 + lane;
#pragma unroll 8
    for (int k = threadIdx.x; k < n * n / 4; k += SOLVE_THREADS) {
        int i = k % n, q = k / n;
        float4 v = *(const float4 *)(L + i * ldl + 4 * q);
        T[(4 * q) * pitch + i] = v.x;
        T[(4 * q + 1) * pitch + i] = v.y;
        T[(4 * q + 2) * pitch + i] = v.z;
        T[(4 * q + 3) * pitch + i] = v.w;
    }
    if (TURNED) {
        if (threadIdx.x < n)
            inverse[threadIdx.x] = 1 / L[threadIdx.x * (ldl + 1)];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            int r = warp + k * 8;
            float4 v = make_float4(0, 0, 0, 0);
            if (blockIdx.x * 32 + r < cols && lane * 4 < n)
                v = *(const float4 *)(x + (blockIdx.x * 32 + r) * ldx +
                                      lane * 4);
            if (lane * 4 < n) {
                float *to = X + lane * 4 * PITCH_X + r;
                to[0] = v.x;
                to[PITCH_X] = v.y;
                to[2 * PITCH_X] = v.z;
                to[3 * PITCH_X] = v.w;
            }
        }
    } else {
#pragma unroll 8
        for (int i = warp; i < n; i += 8)
            X[i * PITCH_X + lane] = c < cols ? x[i * ldx + c] : 0.0f;
    }
    __syncthreads(); /* T and X are there */
    for (int k = 0; k < n; k += 32) {
        float v[32];
#pragma unroll
        for (int i = 0; i < 32; i++)
            v[i] = X[(k + i) * PITCH_X + lane];
#pragma unroll
        for (int p = 0; p < 32; p++) {
            if (TURNED)
                v[p] *= inverse[k + p];
#pragma unroll
            for (int q = (p + 1) / 4; q < 8; q++) {
                float4 l = *(const float4 *)(T + (k + p) * pitch + k + 4 * q);
                if (4 * q > p)
                    v[4 * q] -= l.x * v[p];
                if (4 * q + 1 > p)
                    v[4 * q + 1] -= l.y * v[p];
                if (4 * q + 2 > p)
                    v[4 * q + 2] -= l.z * v[p];
                if (4 * q + 3 > p)
                    v[4 * q + 3] -= l.w * v[p];
            }
        }
        __syncthreads(); /* all have read X's block */
#pragma unroll
        for (int i = 0; i < 32; i++)
            if (i % 8 == warp)
                X[(k + i) * PITCH_X + lane] = v[i];
        for (int i = k + 32 + warp * 4; i < n; i += 32) {
            float *to = X + i * PITCH_X + lane;
            float4 sum = make_float4(to[0], to[PITCH_X], to[2 * PITCH_X],
                                     to[3 * PITCH_X]);
#pragma unroll
            for (int p = 0; p < 32; p++) {
                float4 l = *(const float4 *)(T + (k + p) * pitch + i);
                sum.x -= l.x * v[p];
                sum.y -= l.y * v[p];
                sum.z -= l.z * v[p];
                sum.w -= l.w * v[p];
            }
            to[0] = sum.x;
            to[PITCH_X] = sum.y;
            to[2 * PITCH_X] = sum.z;
            to[3 * PITCH_X] = sum.w;
        }
        __syncthreads(); /* X is what the next block reads */
    }
    if (TURNED) {
        for (int k = 0; k < 4; k++) {
            int r = warp + k * 8;
            const float *from = X + lane * 4 * PITCH_X + r;
            if (blockIdx.x * 32 + r < cols && lane * 4 < n)
                *(float4 *)(x + (blockIdx.x * 32 + r) * ldx + lane * 4) =
                    make_float4(from[0], from[PITCH_X], from[2 * PITCH_X],
                                from[3 * PITCH_X]);
        }
    } else if (c < cols) {
        for (int i = warp; i < n; i += 8)
            x[i * ldx + c] = X[i * PITCH_X + lane];
    }
}

/* x: n x cols; turned: cols x n, becomes x L^-T. */
template <bool TURNED>
static gpu_status solve_with_block(cuda_device *d, const float *L, int64_t ld,
                                   int n, float *x, int cols)
{
    static int prepared;
    if (cols <= 0)
        return GPU_OK;
    if (prepared != d->ordinal + 1)
        CHECK(d,
              cudaFuncSetAttribute((const void *)block_solve<TURNED>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   (int)solve_bytes(MOST_BLOCK)));
    prepared = d->ordinal + 1;
    block_solve<TURNED><<<(unsigned)ceil_div(cols, 32), SOLVE_THREADS,
                          solve_bytes(n), d->stream>>>(L, ld, n, x, ld, cols);
    LAUNCHED(d);
    return GPU_OK;
}

#endif
