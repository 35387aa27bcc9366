/* Cholesky's innermost part: blocks of up to 128 columns on the diagonal, by
 * one block of threads each, and the rows below such a block.
 *
 * Limited by 128 roots one after the other: 32 columns at a time, a row in a
 * thread. The warp that has the diagonal hands each column on by a barrier
 * that it does not wait at; warps with rows below follow it, and so does one
 * with the identity's rows, which become the inverse. Rows below the block are
 * then products with inverses of 32 x 32: more than that would cost accuracy.
 * Needs sm_90. */
#ifndef GPU_CUDA_DEFINITE_BLOCK_H
#define GPU_CUDA_DEFINITE_BLOCK_H

#include "cluster.h"
#include "copies.h"

constexpr int MOST_DEFINITE = 128; /* columns of a block */
constexpr int STEP = 32;           /* of them at a time */
constexpr int DEFINITE_THREADS = 256, INVERTER = DEFINITE_THREADS / 32 - 1;
constexpr int DEFINITE_PITCH = MOST_DEFINITE + 4; /* floats: 16-byte aligned */
constexpr int BELOW_ROWS = 64, BELOW_THREADS = 128;

/* What the warps of a block share, behind the block itself. */
typedef struct definite_memory {
    float4 columns[STEP][STEP / 4]; /* L's column, as it is handed on */
    float inverse[STEP];            /* of the diagonal */
    uint64_t ready[STEP];           /* barriers: column c is there */
} definite_memory;

static size_t definite_bytes(int n)
{
    return (size_t)n * DEFINITE_PITCH * sizeof(float) + sizeof(definite_memory);
}

static size_t below_bytes(int n)
{
    return (size_t)(n + BELOW_ROWS) * DEFINITE_PITCH * sizeof(float);
}

#ifdef HAS_CLUSTERS
/* After eight columns: so their code is there once. */
__device__ __forceinline__ void rotate_columns(float (&v)[STEP])
{
    float done[8];
#pragma unroll
    for (int c = 0; c < 8; c++)
        done[c] = v[c];
#pragma unroll
    for (int c = 0; c < STEP - 8; c++)
        v[c] = v[c + 8];
#pragma unroll
    for (int c = 0; c < 8; c++)
        v[STEP - 8 + c] = done[c];
}

/* v: row `lane` of a square of 32, whose lower triangle becomes L's. first:
 * the number of its first row. */
__device__ __forceinline__ void lead_columns(float (&v)[STEP],
                                             definite_memory &s, int lane,
                                             int first, int *minor)
{
#pragma unroll 1
    for (int g = 0; g < STEP / 8; g++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            int c = 8 * g + j;
            float d = __shfl_sync(~0u, v[j], c), r = reciprocal_root(d);
            if (!(d > 0) && lane == 0)
                atomicMin(minor, first + c);
            float x = v[j] * r;
            v[j] = x;
            ((float *)s.columns[c])[lane] = x;
            if (lane == 0)
                s.inverse[c] = r;
            __syncwarp(); /* the column is written */
            if (lane == 0)
                asm volatile(
                    "mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::
                        "r"(shared_address(&s.ready[c]))
                    : "memory");
#pragma unroll
            for (int q = 0; q < STEP / 8; q++) {
                if (q >= STEP / 8 - g)
                    continue; /* what is done comes behind */
#pragma unroll
                for (int e = 8 * q; e < 8 * q + 8; e++)
                    if (e > j)
                        v[e] -= x * __shfl_sync(~0u, x, (8 * g + e) % STEP);
            }
        }
        rotate_columns(v);
    }
}

/* v becomes v L^-T for the square that another warp leads in. */
__device__ __forceinline__ void
follow_columns(float (&v)[STEP], definite_memory &s, unsigned phase)
{
#pragma unroll 1
    for (int g = 0; g < STEP / 8; g++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            int c = 8 * g + j;
            await_phase(&s.ready[c], phase);
            float x = v[j] * s.inverse[c];
            v[j] = x;
#pragma unroll
            for (int q = 0; q < STEP / 8; q++) {
                if (q >= STEP / 8 - g || 8 * q + 7 <= j)
                    continue;
                float4 a = s.columns[c][2 * (g + q)];
                float4 b = s.columns[c][2 * (g + q) + 1];
                float l[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
                for (int e = 0; e < 8; e++)
                    if (8 * q + e > j)
                        v[8 * q + e] -= x * l[e];
            }
        }
        rotate_columns(v);
    }
}

__device__ __forceinline__ float add_products(float sum, float4 x, float4 y)
{
    return sum + x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}

/* Takes from the square of 16 S behind k + 32 what the 32 columns from k on
 * have in it, where it is at or below the diagonal. */
template <int S>
__device__ __forceinline__ void update_behind(float (*a)[DEFINITE_PITCH], int k,
                                              int t)
{
    int i = k + STEP + t / 16, j = k + STEP + t % 16;
    float sum[S][S] = {};
#pragma unroll 2
    for (int c = k; c < k + STEP; c += 4) {
        float4 x[S], y[S];
#pragma unroll
        for (int e = 0; e < S; e++) {
            x[e] = *(const float4 *)&a[i + 16 * e][c];
            y[e] = *(const float4 *)&a[j + 16 * e][c];
        }
#pragma unroll
        for (int e = 0; e < S; e++)
#pragma unroll
            for (int f = 0; f <= e; f++)
                sum[e][f] = add_products(sum[e][f], x[e], y[f]);
    }
#pragma unroll
    for (int e = 0; e < S; e++)
#pragma unroll
        for (int f = 0; f <= e; f++)
            a[i + 16 * e][j + 16 * f] -= sum[e][f];
}
#endif

/* g: n x n, a multiple of 32 up to 128, row by row, becomes L in its lower
 * triangle. inverses: of L's blocks of 32 on the diagonal, row by row, one
 * after the other. minor: the least number, from `first` on, of a pivot that
 * is not positive. */
__global__ void __launch_bounds__(DEFINITE_THREADS)
    factor_definite(float *g, int64_t ld, int n, float *inverses, int first,
                    int *minor)
{
#ifdef HAS_CLUSTERS
    extern __shared__ float4 definite_shared[];
    float(*a)[DEFINITE_PITCH] = (float(*)[DEFINITE_PITCH])definite_shared;
    definite_memory &s = *(definite_memory *)(a + n);
    int t = (int)threadIdx.x, lane = t % 32, warp = t / 32;
    if (t < STEP)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(
                         shared_address(&s.ready[t]))
                     : "memory");
#pragma unroll 8
    for (int k = t; k < n * (MOST_DEFINITE / 4); k += DEFINITE_THREADS) {
        int i = k / (MOST_DEFINITE / 4), c = k % (MOST_DEFINITE / 4) * 4;
        if (c / STEP <= i / STEP)
            *(float4 *)&a[i][c] = *(const float4 *)(g + i * ld + c);
    }
    __syncthreads(); /* the block is there, and the barriers */
#pragma unroll 1
    for (int k = 0; k < n; k += STEP) {
        float v[STEP]; /* a row's columns */
        int row = warp * STEP + lane, leads = warp == k / STEP;
        int follows = !leads && row > k && row < n, inverts = warp == INVERTER;
        if (leads || follows) {
#pragma unroll
            for (int c = 0; c < STEP; c += 4) {
                float4 x = *(const float4 *)&a[row][k + c];
                v[c] = x.x;
                v[c + 1] = x.y;
                v[c + 2] = x.z;
                v[c + 3] = x.w;
            }
        } else if (inverts) {
#pragma unroll
            for (int c = 0; c < STEP; c++)
                v[c] = c == lane;
        }
        if (leads)
            lead_columns(v, s, lane, first + k, minor);
        else if (follows || inverts)
            follow_columns(v, s, (unsigned)(k / STEP) & 1);
        if (leads || follows) {
#pragma unroll
            for (int c = 0; c < STEP; c += 4) {
                bool is_whole = follows;
                *(float4 *)&a[row][k + c] =
                    make_float4(is_whole || c <= lane ? v[c] : 0,
                                is_whole || c + 1 <= lane ? v[c + 1] : 0,
                                is_whole || c + 2 <= lane ? v[c + 2] : 0,
                                is_whole || c + 3 <= lane ? v[c + 3] : 0);
            }
        } else if (inverts) { /* a column of the inverse */
#pragma unroll
            for (int c = 0; c < STEP; c++)
                inverses[k * STEP + c * STEP + lane] = v[c];
        }
        __syncthreads(); /* 32 columns are done */
        int left = n - k - STEP;
        if (left == 96)
            update_behind<6>(a, k, t);
        else if (left == 64)
            update_behind<4>(a, k, t);
        else if (left == 32)
            update_behind<2>(a, k, t);
        __syncthreads(); /* the rest is up to date */
    }
#pragma unroll 4
    for (int k = t; k < n * (MOST_DEFINITE / 4); k += DEFINITE_THREADS) {
        int i = k / (MOST_DEFINITE / 4), c = k % (MOST_DEFINITE / 4) * 4;
        if (c / STEP <= i / STEP)
            *(float4 *)(g + i * ld + c) = *(const float4 *)&a[i][c];
    }
#endif
}

/* x: m rows of n columns, becomes x L^-T. L and its inverses: see above. Four
 * warps have 16 rows each and meet nobody: a thread has 4 x 4 of 32 columns. */
__global__ void __launch_bounds__(BELOW_THREADS)
    solve_below(const float *L, int64_t ld, int n, const float *inverses,
                float *x, int m)
{
#ifdef HAS_CLUSTERS
    extern __shared__ float4 below_shared[];
    float(*l)[DEFINITE_PITCH] = (float(*)[DEFINITE_PITCH])below_shared;
    float(*y)[DEFINITE_PITCH] = l + n;
    int t = (int)threadIdx.x, lane = t % 32, warp = t / 32;
    int first = (int)blockIdx.x * BELOW_ROWS;
    for (int k = t; k < n * (MOST_DEFINITE / 4); k += BELOW_THREADS) {
        int i = k / (MOST_DEFINITE / 4), c = k % (MOST_DEFINITE / 4) * 4;
        const float *from = L + i * ld + c;
        if (c / STEP == i / STEP) /* of it the inverse */
            from = inverses + i * STEP + c % STEP;
        if (c / STEP <= i / STEP)
            copy_async<16>(shared_address(&l[i][c]), from, 16);
    }
    for (int k = t; k < BELOW_ROWS * (n / 4); k += BELOW_THREADS) {
        int i = k / (n / 4), c = k % (n / 4) * 4;
        int row = first + i;
        copy_async<16>(shared_address(&y[i][c]),
                       x + (row < m ? row : first) * ld + c, row < m ? 16 : 0);
    }
    end_copies();
    wait_for_all_copies();
    __syncthreads();                            /* all is there */
    int i = warp * 16 + lane / 8, j = lane % 8; /* and 4, 8 further on */
#pragma unroll 1
    for (int k = 0; k < n; k += STEP) {
        float sum[4][4];
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int f = 0; f < 4; f++)
                sum[e][f] = 0;
#pragma unroll 2
        for (int c = 0; c < k; c += 4) {
            float4 u[4], v[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                u[e] = *(const float4 *)&y[i + 4 * e][c];
                v[e] = *(const float4 *)&l[k + j + 8 * e][c];
            }
#pragma unroll
            for (int e = 0; e < 4; e++)
#pragma unroll
                for (int f = 0; f < 4; f++)
                    sum[e][f] = add_products(sum[e][f], u[e], v[f]);
        }
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int f = 0; f < 4; f++) {
                y[i + 4 * e][k + j + 8 * f] -= sum[e][f];
                sum[e][f] = 0;
            }
        __syncwarp(); /* its 16 rows are written */
#pragma unroll 2
        for (int c = k; c < k + STEP; c += 4) {
            float4 u[4], v[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                u[e] = *(const float4 *)&y[i + 4 * e][c];
                v[e] = *(const float4 *)&l[k + j + 8 * e][c];
            }
#pragma unroll
            for (int e = 0; e < 4; e++)
#pragma unroll
                for (int f = 0; f < 4; f++)
                    sum[e][f] = add_products(sum[e][f], u[e], v[f]);
        }
        __syncwarp(); /* and read */
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int f = 0; f < 4; f++)
                y[i + 4 * e][k + j + 8 * f] = sum[e][f];
        __syncwarp(); /* they are what the next 32 columns take */
    }
    for (int r = 0; r < 16; r++) {
        int row = first + warp * 16 + r;
        if (row < m && lane * 4 < n)
            *(float4 *)(x + row * ld + lane * 4) =
                *(const float4 *)&y[warp * 16 + r][lane * 4];
    }
#endif
}

static gpu_status factor_definite_block(cuda_device *d, float *a, int64_t ld,
                                        int n, float *inverses, int first,
                                        int *minor)
{
    static int prepared;
    if (prepared != d->ordinal + 1)
        CHECK(d,
              cudaFuncSetAttribute((const void *)factor_definite,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   (int)definite_bytes(MOST_DEFINITE)));
    prepared = d->ordinal + 1;
    factor_definite<<<1, DEFINITE_THREADS, definite_bytes(n), d->stream>>>(
        a, ld, n, inverses, first, minor);
    LAUNCHED(d);
    return GPU_OK;
}

static gpu_status solve_below_block(cuda_device *d, const float *L, int64_t ld,
                                    int n, const float *inverses, float *x,
                                    int m)
{
    static int prepared;
    if (m <= 0)
        return GPU_OK;
    if (prepared != d->ordinal + 1)
        CHECK(d,
              cudaFuncSetAttribute((const void *)solve_below,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   (int)below_bytes(MOST_DEFINITE)));
    prepared = d->ordinal + 1;
    solve_below<<<(unsigned)ceil_div(m, BELOW_ROWS), BELOW_THREADS,
                  below_bytes(n), d->stream>>>(L, ld, n, inverses, x, m);
    LAUNCHED(d);
    return GPU_OK;
}

#endif
