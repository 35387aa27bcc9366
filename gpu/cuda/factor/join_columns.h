/* W reflections on the columns behind them, within a block of up to 128: in
 * three launches the reflectors' products with all columns, those sums over all
 * rows, and what they change. The products with reflectors before them come
 * along: they are the reflections' own triangle.
 *
 * Limited by reads of shared memory and by launches. The sums have a fixed
 * order: the bits repeat. Source: Puglisi, Modification of the Householder
 * method based on the compact WY representation, 1992. Needs sm_80. */
#ifndef GPU_CUDA_JOIN_COLUMNS_H
#define GPU_CUDA_JOIN_COLUMNS_H

#include "copies.h"
#include "split16.h"

constexpr int JOINED = 128; /* columns of a block */
constexpr int JOIN_ROWS = 32, CHANGE_ROWS = 64, CHANGE_THREADS = 256;

/* Rows from the first reflection's on, and columns from the block's first on.
 * Of v the columns [at, at + W) are the reflections now done. */
typedef struct join_job {
    const float *v; /* m x (at + W), rows ldv apart */
    int64_t ldv;
    float *a; /* m x k, rows ld apart: those behind at + W are changed */
    int64_t ld;
    int m, k, at;
    const float *tau; /* W of them, or W / 2 complex ones */
    int is_complex;   /* columns are pairs, as of padded.h's doubled matrices */
    float *partial;   /* memory to work in: a block of W x JOINED each */
    int rows;         /* of such a block, a multiple of JOIN_ROWS */
    /* JOINED x JOINED; rows [at, at + W) become tau v^T times v's columns, and
     * times a's behind them; of complex ones tau's conjugate. */
    float *gram;
} join_job;

/* A thread has 4 x 4 of the block's W x JOINED sums. */
template <int W>
__global__ void __launch_bounds__(W * 8)
    multiply_reflectors(const __grid_constant__ join_job job)
{
    __shared__ __align__(16) float tile[2][JOIN_ROWS][JOINED];
    const int t = (int)threadIdx.x, i = t / 32 * 4, j = t % 32 * 4;
    const int first = (int)blockIdx.x * job.rows;
    const int end = min(first + job.rows, job.m);
    let_next_start();
    wait_for_previous();
    auto bring = [&](int row, int buffer) {
        for (int e = t; e < JOIN_ROWS * JOINED / 4; e += W * 8) {
            int r = e / (JOINED / 4), c = e % (JOINED / 4) * 4;
            bool is_there = row + r < end && c < job.k;
            const float *from = c < job.at + W ? job.v + (row + r) * job.ldv + c
                                               : job.a + (row + r) * job.ld + c;
            copy_async<16>(shared_address(&tile[buffer][r][c]),
                           is_there ? from : job.v, is_there ? 16 : 0);
        }
        end_copies();
    };
    float sum[4][4] = {};
    bring(first, 0);
    for (int row = first, buffer = 0; row < end;
         row += JOIN_ROWS, buffer ^= 1) {
        bring(row + JOIN_ROWS, buffer ^ 1); /* beyond the end: zeros */
        wait_for_copies<1>();
        __syncthreads(); /* this part is there */
#pragma unroll 8
        for (int r = 0; r < JOIN_ROWS; r++) {
            float4 x = *(const float4 *)&tile[buffer][r][job.at + i];
            float4 y = *(const float4 *)&tile[buffer][r][j];
            float u[4] = {x.x, x.y, x.z, x.w}, w[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (int e = 0; e < 4; e++)
#pragma unroll
                for (int f = 0; f < 4; f++)
                    sum[e][f] += u[e] * w[f];
        }
        __syncthreads(); /* and read: the next but one comes here */
    }
    wait_for_all_copies();
    float *to = job.partial + (int64_t)blockIdx.x * W * JOINED;
#pragma unroll
    for (int e = 0; e < 4; e++)
        *(float4 *)(to + (i + e) * JOINED + j) =
            make_float4(sum[e][0], sum[e][1], sum[e][2], sum[e][3]);
}

/* x + s y */
__device__ __forceinline__ float4 add_times(float4 x, float s, float4 y)
{
    return make_float4(x.x + s * y.x, x.y + s * y.y, x.z + s * y.z,
                       x.w + s * y.w);
}

/* A row of all parts added up, by a block whose warps have every eighth of
 * them; the first warp gets it. */
template <int W>
__device__ __forceinline__ float4 add_row(const join_job &job, int parts,
                                          int row, float4 (&sums)[8][32])
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const float *from = job.partial + row * JOINED + lane * 4;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int p = warp; p < parts; p += 8)
        sum = add_times(sum, 1,
                        *(const float4 *)(from + (int64_t)p * W * JOINED));
    sums[warp][lane] = sum;
    __syncthreads(); /* the warps' sums are there */
    if (warp == 0)
#pragma unroll
        for (int n = 1; n < 8; n++)
            sum = add_times(sum, 1, sums[n][lane]);
    return sum;
}

/* A block has a row. */
template <int W>
__global__ void __launch_bounds__(256)
    add_parts(const __grid_constant__ join_job job, int parts)
{
    __shared__ float4 sums[2][8][32];
    const int lane = (int)threadIdx.x % 32, row = (int)blockIdx.x;
    const float4 none = make_float4(0, 0, 0, 0);
    let_next_start();
    wait_for_previous();
    float4 sum = add_row<W>(job, parts, row, sums[0]);
    float4 *to = (float4 *)(job.gram + (job.at + row) * JOINED) + lane;
    if (!job.is_complex) {
        if (threadIdx.x < 32)
            *to = add_times(none, job.tau[row], sum);
        return;
    }
    /* Its pair's other row times tau's imaginary part comes along. */
    float4 other = add_row<W>(job, parts, row ^ 1, sums[1]);
    if (threadIdx.x >= 32)
        return;
    float im = job.tau[row | 1];
    sum = add_times(add_times(none, job.tau[row & ~1], sum), row & 1 ? -im : im,
                    other);
    if (row & 1 && (job.at + row) / 4 == lane) { /* on the pairs' diagonal */
        if (row & 2)
            sum.z = 0;
        else
            sum.x = 0;
    }
    *to = sum;
}

/* a -= v L^-1 (tau v^T a), of the columns behind at + W; L: the triangle below
 * gram's diagonal, and ones. A block has 64 rows, a thread 8 of them, 8 apart,
 * and four columns. */
template <int W>
__global__ void __launch_bounds__(CHANGE_THREADS)
    change_columns(const __grid_constant__ join_job job)
{
    __shared__ __align__(16) float triangle[W][W], x[W][JOINED - W];
    __shared__ __align__(16) float v[CHANGE_ROWS][W + 4];
    const int t = (int)threadIdx.x, first = (int)blockIdx.x * CHANGE_ROWS;
    const int behind = job.at + W, cols = job.k - behind;
    const float *gram = job.gram + (int64_t)job.at * JOINED;
    let_next_start();
    wait_for_previous();
    for (int e = t; e < W * W / 4; e += CHANGE_THREADS) {
        int r = e / (W / 4), c = e % (W / 4) * 4;
        *(float4 *)&triangle[r][c] =
            *(const float4 *)(gram + r * JOINED + job.at + c);
    }
    for (int e = t; e < CHANGE_ROWS * W / 4; e += CHANGE_THREADS) {
        int r = e / (W / 4), c = e % (W / 4) * 4;
        float4 z = make_float4(0, 0, 0, 0);
        if (first + r < job.m)
            z = *(const float4 *)(job.v + (first + r) * job.ldv + job.at + c);
        *(float4 *)&v[r][c] = z;
    }
    const int j = t % 32 * 4, i = t / 32; /* a thread's part of a */
    float4 old[8];
#pragma unroll
    for (int e = 0; e < 8; e++) {
        int row = first + i + 8 * e;
        if (row < job.m && j < cols)
            old[e] = *(const float4 *)(job.a + row * job.ld + behind + j);
    }
    float y[W]; /* a column, solved */
    if (t < cols)
#pragma unroll
        for (int r = 0; r < W; r++)
            y[r] = gram[r * JOINED + behind + t];
    __syncthreads(); /* the triangle and v are there */
    if (t < cols) {
#pragma unroll
        for (int r = 0; r < W; r++) {
            float sum[4] = {y[r], 0, 0, 0};
#pragma unroll
            for (int c = 0; c < r; c += 4) {
                float4 l = *(const float4 *)&triangle[r][c];
                sum[0] -= l.x * y[c];
                if (c + 1 < r)
                    sum[1] -= l.y * y[c + 1];
                if (c + 2 < r)
                    sum[2] -= l.z * y[c + 2];
                if (c + 3 < r)
                    sum[3] -= l.w * y[c + 3];
            }
            y[r] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
            x[r][t] = y[r];
        }
    }
    __syncthreads(); /* so are the solved columns */
    if (j >= cols)
        return;
    float4 sum[8];
#pragma unroll
    for (int e = 0; e < 8; e++)
        sum[e] = make_float4(0, 0, 0, 0);
#pragma unroll 2
    for (int c = 0; c < W; c += 4) {
        float4 z[4];
#pragma unroll
        for (int f = 0; f < 4; f++)
            z[f] = *(const float4 *)&x[c + f][j];
#pragma unroll
        for (int e = 0; e < 8; e++) {
            float4 u = *(const float4 *)&v[i + 8 * e][c];
            sum[e].x +=
                u.x * z[0].x + u.y * z[1].x + u.z * z[2].x + u.w * z[3].x;
            sum[e].y +=
                u.x * z[0].y + u.y * z[1].y + u.z * z[2].y + u.w * z[3].y;
            sum[e].z +=
                u.x * z[0].z + u.y * z[1].z + u.z * z[2].z + u.w * z[3].z;
            sum[e].w +=
                u.x * z[0].w + u.y * z[1].w + u.z * z[2].w + u.w * z[3].w;
        }
    }
#pragma unroll
    for (int e = 0; e < 8; e++) {
        int row = first + i + 8 * e;
        if (row >= job.m)
            break;
        *(float4 *)(job.a + row * job.ld + behind + j) =
            make_float4(old[e].x - sum[e].x, old[e].y - sum[e].y,
                        old[e].z - sum[e].z, old[e].w - sum[e].w);
    }
}

/* Floats that partial takes at most, on d. */
static int64_t join_room(const cuda_device *d)
{
    return (int64_t)d->sms * 32 * JOINED;
}

template <int W> static gpu_status launch_join(cuda_device *d, join_job *job)
{
    job->rows = (int)ceil_div(ceil_div(job->m, d->sms), JOIN_ROWS) * JOIN_ROWS;
    int parts = (int)ceil_div(job->m, job->rows);
    TRY(launch_behind(d, multiply_reflectors<W>, dim3((unsigned)parts), W * 8,
                      0, 1, *job));
    TRY(launch_behind(d, add_parts<W>, dim3(W), 256, 0, 1, *job, parts));
    if (job->at + W >= job->k)
        return GPU_OK;
    return launch_behind(d, change_columns<W>,
                         dim3((unsigned)ceil_div(job->m, CHANGE_ROWS)),
                         CHANGE_THREADS, 0, 1, *job);
}

static gpu_status join_columns(cuda_device *d, join_job *job, int width)
{
    return width == 16 ? launch_join<16>(d, job) : launch_join<32>(d, job);
}

#endif
