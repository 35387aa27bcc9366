/* Cholesky's innermost part: blocks of up to 128 columns on the diagonal, by
 * one block of threads each, and the rows below such a block.
 *
 * Limited by 128 pivots one after the other: 32 columns at a time, a row in a
 * thread. The warp that has the diagonal hands its columns on, four at a time,
 * and waits for nobody; warps with rows below follow it, and so does one with
 * the identity's rows, which become the inverse. Rows below the block are then
 * products with inverses of 32 x 32: more than that would cost accuracy. Needs
 * sm_90. */
#ifndef GPU_CUDA_DEFINITE_BLOCK_H
#define GPU_CUDA_DEFINITE_BLOCK_H

#include "cluster.h"
#include "copies.h"
#include "split16.h"

constexpr int MOST_DEFINITE = 128; /* columns of a block */
constexpr int STEP = 32;           /* of them at a time */
constexpr int HANDED = 4;          /* columns that are handed on at once */
constexpr int DEFINITE_THREADS = 256, INVERTER = DEFINITE_THREADS / 32 - 1;
constexpr int DEFINITE_PITCH = MOST_DEFINITE + 4; /* floats: 16-byte aligned */
constexpr int BELOW_ROWS = 16;                    /* a warp */
constexpr int BEHIND_SIDE = 64, BEHIND_THREADS = 128;

/* What the warps of a block share, behind the block itself. */
typedef struct definite_memory {
    float4 columns[STEP][STEP / 4]; /* L's column, as it is handed on */
    float inverse[STEP];            /* of the diagonal */
} definite_memory;

static size_t definite_bytes(int n)
{
    return (size_t)n * DEFINITE_PITCH * sizeof(float) + sizeof(definite_memory);
}

static size_t below_bytes(int n, int warps)
{
    return (size_t)(n + BELOW_ROWS * warps) * DEFINITE_PITCH * sizeof(float);
}

#ifdef HAS_CLUSTERS
/* Named barriers, from 1 on: columns up to c are there. threads: those of the
 * warp that leads and of those that follow. */
template <int C> __device__ __forceinline__ void hand_on(int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"n"(1 + C / HANDED), "r"(threads)
                 : "memory");
}

template <int C> __device__ __forceinline__ void await_columns(int threads)
{
    asm volatile("bar.sync %0, %1;" ::"n"(1 + C / HANDED), "r"(threads)
                 : "memory");
}

/* v: row `lane` of a square of 32, whose lower triangle becomes L's from column
 * C on. What the next pivot waits for is short: a column over its pivot, no
 * root. Returns whether all pivots are positive, as bits of columns. */
template <int C = 0>
__device__ __forceinline__ unsigned
lead_columns(float (&v)[STEP], definite_memory &s, int lane, int threads)
{
    if constexpr (C < STEP) {
        float d = __shfl_sync(~0u, v[C], C), below = v[C];
        float by = below * reciprocal(d);
#pragma unroll
        for (int e = C + 1; e < STEP; e++)
            v[e] -= by * __shfl_sync(~0u, below, e);
        float r = reciprocal_root(d);
        v[C] = below * r;
        ((float *)s.columns[C])[lane] = v[C];
        if (lane == 0)
            s.inverse[C] = r;
        if (C % HANDED == HANDED - 1)
            hand_on<C>(threads);
        return (unsigned)(d > 0) << C |
               lead_columns<C + 1>(v, s, lane, threads);
    }
    return 0;
}

/* v becomes v L^-T for the square that another warp leads in. */
template <int C = 0>
__device__ __forceinline__ void
follow_columns(float (&v)[STEP], const definite_memory &s, int threads)
{
    if constexpr (C < STEP) {
        if (C % HANDED == 0)
            await_columns<C>(threads);
        float x = v[C] * s.inverse[C];
        v[C] = x;
#pragma unroll
        for (int q = (C + 1) / 4; q < STEP / 4; q++) {
            float4 l = s.columns[C][q];
            if (4 * q > C)
                v[4 * q] -= x * l.x;
            if (4 * q + 1 > C)
                v[4 * q + 1] -= x * l.y;
            if (4 * q + 2 > C)
                v[4 * q + 2] -= x * l.z;
            if (4 * q + 3 > C)
                v[4 * q + 3] -= x * l.w;
        }
        follow_columns<C + 1>(v, s, threads);
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
    let_next_start();
    wait_for_previous();
#pragma unroll 8
    for (int k = t; k < n * (MOST_DEFINITE / 4); k += DEFINITE_THREADS) {
        int i = k / (MOST_DEFINITE / 4), c = k % (MOST_DEFINITE / 4) * 4;
        if (c / STEP <= i / STEP)
            *(float4 *)&a[i][c] = *(const float4 *)(g + i * ld + c);
    }
    __syncthreads(); /* the block is there */
#pragma unroll 1
    for (int k = 0; k < n; k += STEP) {
        float v[STEP]; /* a row's columns */
        int row = warp * STEP + lane, leads = warp == k / STEP;
        int follows = !leads && row > k && row < n, inverts = warp == INVERTER;
        int threads = n - k + 32; /* with those of the inverse */
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
        if (leads) {
            unsigned bad = ~lead_columns(v, s, lane, threads);
            if (bad != 0 && lane == 0)
                atomicMin(minor, first + k + __ffs((int)bad) - 1);
        } else if (follows || inverts) {
            follow_columns(v, s, threads);
        }
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

/* --- the rows below ------------------------------------------------------- */

#ifdef HAS_CLUSTERS
/* sum += y's rows i, i + 4 ... times l's rows j, j + 8 ..., of the columns
 * [from, to). */
__device__ __forceinline__ void add_below(float (&sum)[4][4],
                                          float (*y)[DEFINITE_PITCH],
                                          float (*l)[DEFINITE_PITCH], int i,
                                          int j, int from, int to)
{
#pragma unroll 2
    for (int c = from; c < to; c += 4) {
        float4 u[4], v[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            u[e] = *(const float4 *)&y[i + 4 * e][c];
            v[e] = *(const float4 *)&l[j + 8 * e][c];
        }
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int f = 0; f < 4; f++)
                sum[e][f] = add_products(sum[e][f], u[e], v[f]);
    }
}
#endif

/* x: m rows of n columns, ldx apart, becomes x L^-T. L and its inverses: see
 * above. A warp has 16 rows, a thread 4 x 4 of them and 32 columns. */
template <int WARPS>
__global__ void __launch_bounds__(WARPS * 32)
    solve_below(const float *L, int64_t ld, int n, const float *inverses,
                float *x, int64_t ldx, int m)
{
#ifdef HAS_CLUSTERS
    extern __shared__ float4 below_shared[];
    float(*l)[DEFINITE_PITCH] = (float(*)[DEFINITE_PITCH])below_shared;
    float(*y)[DEFINITE_PITCH] = l + n;
    int t = (int)threadIdx.x, lane = t % 32, warp = t / 32;
    int first = ((int)blockIdx.x * WARPS + warp) * BELOW_ROWS;
    y += warp * BELOW_ROWS;
    let_next_start();
    wait_for_previous();
#pragma unroll
    for (int k = 0; k < MOST_DEFINITE; k += STEP) { /* what a step needs */
        const int width = k / 4 + 8;
        if (k < n) {
            for (int e = t; e < STEP * width; e += WARPS * 32) {
                int i = k + e / width, c = e % width * 4;
                const float *from = L + i * ld + c;
                if (c >= k) /* of it the inverse */
                    from = inverses + i * STEP + c - k;
                copy_async<16>(shared_address(&l[i][c]), from, 16);
            }
            for (int e = lane; e < BELOW_ROWS * 8; e += 32) {
                int i = e / 8, c = k + e % 8 * 4, row = first + i;
                copy_async<16>(shared_address(&y[i][c]),
                               x + (row < m ? row : 0) * ldx + c,
                               row < m ? 16 : 0);
            }
        }
        end_copies();
    }
    int i = lane / 8, j = lane % 8; /* and 4, 8 further on */
#pragma unroll
    for (int k = 0; k < MOST_DEFINITE; k += STEP) {
        if (k >= n)
            break;
        wait_for_copies<(MOST_DEFINITE - STEP) / STEP>();
        end_copies();    /* none: so that the next wait is for one more */
        __syncthreads(); /* this step's part is there */
        float sum[4][4] = {};
        add_below(sum, y, l + k, i, j, 0, k);
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int f = 0; f < 4; f++) {
                y[i + 4 * e][k + j + 8 * f] -= sum[e][f];
                sum[e][f] = 0;
            }
        __syncwarp(); /* its 16 rows are written */
        add_below(sum, y, l + k, i, j, k, k + STEP);
        __syncwarp(); /* and read */
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int f = 0; f < 4; f++)
                y[i + 4 * e][k + j + 8 * f] = sum[e][f];
        __syncwarp(); /* they are what the next 32 columns take */
    }
    for (int r = 0; r < BELOW_ROWS; r++)
        if (first + r < m && lane * 4 < n)
            *(float4 *)(x + (first + r) * ldx + lane * 4) =
                *(const float4 *)&y[r][lane * 4];
#endif
}

/* --- and what is behind them ---------------------------------------------- */

/* c -= x x^T of m rows of n columns, in tiles of 64 at or below the diagonal. A
 * warp has 32 x 32 of a tile, a thread 8 x 4. */
__global__ void __launch_bounds__(BEHIND_THREADS)
    update_square(const float *x, float *c, int64_t ld, int m, int n)
{
#ifdef HAS_CLUSTERS
    extern __shared__ float4 behind_shared[];
    float(*y)[DEFINITE_PITCH] = (float(*)[DEFINITE_PITCH])behind_shared;
    float(*z)[DEFINITE_PITCH] = y;
    int t = (int)threadIdx.x, lane = t % 32, warp = t / 32;
    int down = 0, across = (int)blockIdx.x;
    for (; across > down; down++)
        across -= down + 1;
    let_next_start();
    wait_for_previous();
#pragma unroll
    for (int k = 0; k < MOST_DEFINITE; k += STEP) { /* what a step needs */
        for (int e = t; k < n && e < 2 * BEHIND_SIDE * 8; e += BEHIND_THREADS) {
            int i = e / 8, j = k + e % 8 * 4;
            int row = (i < BEHIND_SIDE ? down : across - 1) * BEHIND_SIDE + i;
            copy_async<16>(shared_address(&y[i][j]),
                           x + (row < m ? row : 0) * ld + j, row < m ? 16 : 0);
        }
        end_copies();
    }
    int i = warp / 2 * 32 + lane / 8, j = warp % 2 * 32 + lane % 8;
    int row = down * BEHIND_SIDE + i, col = across * BEHIND_SIDE + j;
    z += BEHIND_SIDE;
    float old[8][4], sum[8][4] = {};
#pragma unroll
    for (int e = 0; e < 8; e++)
#pragma unroll
        for (int f = 0; f < 4; f++)
            if (row + 4 * e < m && col + 8 * f < m)
                old[e][f] = c[(row + 4 * e) * ld + col + 8 * f];
#pragma unroll
    for (int k = 0; k < MOST_DEFINITE; k += STEP) {
        if (k >= n)
            break;
        wait_for_copies<(MOST_DEFINITE - STEP) / STEP>();
        end_copies();    /* none: so that the next wait is for one more */
        __syncthreads(); /* this step's part is there */
#pragma unroll 2
        for (int s = k; s < k + STEP; s += 4) {
            float4 v[4];
#pragma unroll
            for (int f = 0; f < 4; f++)
                v[f] = *(const float4 *)&z[j + 8 * f][s];
#pragma unroll
            for (int e = 0; e < 8; e++) {
                float4 u = *(const float4 *)&y[i + 4 * e][s];
#pragma unroll
                for (int f = 0; f < 4; f++)
                    sum[e][f] = add_products(sum[e][f], u, v[f]);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < 8; e++)
#pragma unroll
        for (int f = 0; f < 4; f++)
            if (row + 4 * e < m && col + 8 * f < m)
                c[(row + 4 * e) * ld + col + 8 * f] = old[e][f] - sum[e][f];
#endif
}

static gpu_status update_square_behind(cuda_device *d, const float *x, float *c,
                                       int64_t ld, int m, int n)
{
    static int prepared;
    int bytes = 2 * BEHIND_SIDE * DEFINITE_PITCH * (int)sizeof(float);
    unsigned side = (unsigned)ceil_div(m, BEHIND_SIDE);
    if (m <= 0)
        return GPU_OK;
    TRY(set_once(d, (const void *)update_square,
                 cudaFuncAttributeMaxDynamicSharedMemorySize, bytes,
                 &prepared));
    return launch_behind(d, update_square, dim3(side * (side + 1) / 2),
                         BEHIND_THREADS, (size_t)bytes, 1, x, c, ld, m, n);
}

/* --- launches ------------------------------------------------------------- */

static gpu_status factor_definite_block(cuda_device *d, float *a, int64_t ld,
                                        int n, float *inverses, int first,
                                        int *minor)
{
    static int prepared;
    TRY(set_once(d, (const void *)factor_definite,
                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                 (int)definite_bytes(MOST_DEFINITE), &prepared));
    return launch_behind(d, factor_definite, dim3(1), DEFINITE_THREADS,
                         definite_bytes(n), 1, a, ld, n, inverses, first,
                         minor);
}

template <int WARPS>
static gpu_status launch_below(cuda_device *d, const float *L, int64_t ld,
                               int n, const float *inverses, const gpu_view *x)
{
    static int prepared;
    TRY(set_once(d, (const void *)solve_below<WARPS>,
                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                 (int)below_bytes(MOST_DEFINITE, WARPS), &prepared));
    return launch_behind(d, solve_below<WARPS>,
                         dim3((unsigned)ceil_div(x->rows, BELOW_ROWS * WARPS)),
                         WARPS * 32, below_bytes(n, WARPS), 1, L, ld, n,
                         inverses, (float *)x->data, x->row_stride,
                         (int)x->rows);
}

/* Few rows go by smaller blocks of threads: they share less. */
static gpu_status solve_below_block(cuda_device *d, const float *L, int64_t ld,
                                    int n, const float *inverses,
                                    const gpu_view *x)
{
    if (x->rows <= 0)
        return GPU_OK;
    if (x->rows <= (int64_t)d->sms * BELOW_ROWS * 2)
        return launch_below<2>(d, L, ld, n, inverses, x);
    return launch_below<4>(d, L, ld, n, inverses, x);
}

#endif
