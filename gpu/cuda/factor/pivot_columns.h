/* LU's innermost part: W columns of up to 16384 (W = 32) or 32768 (W = 16) rows
 * with partial pivoting, in the registers of one cluster of 2 to 16 blocks, a
 * row in a thread; then, in the same launch, their exchanges on the panel's
 * other columns, and U's rows beside them.
 *
 * Limited by the exchange of one message a column: each block sends its best
 * row to all, by stores that count themselves at the receiver's barrier; then
 * all know the pivot and update. 0.85 us a column of 1024 rows, 1.05 of 4096,
 * 1.2 of 8192, 1.4 of 12288, 1.6 of 16384, 2.2 of 32768. Sent are only columns
 * that are still to be updated, and no row on the diagonal, as rows stay where
 * they are: their numbers are exchanged, and each is stored where it belongs at
 * the end. Only the next column is updated before its pivot is looked for, the
 * others behind the first barrier. Needs sm_90. */
#ifndef GPU_CUDA_PIVOT_COLUMNS_H
#define GPU_CUDA_PIVOT_COLUMNS_H

#include "cluster.h"
#include "split16.h"

/* What is done, of a panel of nb columns, rows ld apart, on 16 bytes: the
 * columns from `at` on of the rows from `at` on, m of them. Columns behind them
 * and before `end` get U's rows. */
typedef struct pivot_job {
    float *a; /* the panel's top left */
    int64_t ld;
    int m, at, nb, end;
    int *content;   /* of the panel's rows: exchanged as they are */
    int *from, *to; /* room for W numbers each */
} pivot_job;

/* A row travels as a header and its columns: magnitude, row, nothing,
 * reciprocal. */
template <int W> struct column_memory {
    static constexpr int PARTS = W / 4 + 1;
    /* Of four columns in turn: who is behind by two still reads. */
    float4 received[4][MOST_CLUSTER][PARTS];
    uint64_t full[4];        /* barriers */
    float4 best[2][PARTS];   /* on its way out */
    uint2 key[2][32];        /* of the warps */
    float4 turned[W][W / 4]; /* L by columns, four rows each */
    int from[W], to[W];
};

#ifdef HAS_CLUSTERS
template <int W>
__device__ __forceinline__ void keep_row(float4 *to, float4 header,
                                         const float (&x)[W])
{
    to[0] = header;
#pragma unroll
    for (int q = 0; q < W / 4; q++)
        to[q + 1] =
            make_float4(x[4 * q], x[4 * q + 1], x[4 * q + 2], x[4 * q + 3]);
}

/* x -= l u of the columns behind jj, of which the last 8 g are done with. */
template <int W, int R>
__device__ __forceinline__ void update_columns(float (&x)[R][W],
                                               const float (&l)[R],
                                               const float4 *u4, int jj, int g)
{
#pragma unroll
    for (int q = 0; q < W / 8; q++) {
        if (q * 8 + 7 <= jj || q >= W / 8 - g)
            continue; /* what is done comes behind */
        float4 v = u4[2 * q], w = u4[2 * q + 1];
        float u[8] = {v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w};
#pragma unroll
        for (int c = 0; c < 8; c++)
            if (q * 8 + c > jj)
#pragma unroll
                for (int r = 0; r < R; r++)
                    x[r][q * 8 + c] -= l[r] * u[c];
    }
}

/* The exchanges of the W columns at `at` on the panel's other columns, and on
 * content; up to `end` also the triangular solve. A thread has a column. What
 * other blocks wrote is read past the first-level cache. */
template <int W>
__device__ __forceinline__ void exchange_and_solve(const pivot_job &job,
                                                   column_memory<W> &s, int t,
                                                   int threads)
{
    const int64_t ld = job.ld;
    float *top = job.a + job.at * ld; /* the first row */
    if (t < W) {
        s.from[t] = __ldcg(job.from + t);
        s.to[t] = __ldcg(job.to + t);
    }
    for (int i = t; i < W * W / 4; i += threads) {
        int r = i % W, q = i / W;
        float4 v = __ldcg((const float4 *)(top + r * ld + job.at + 4 * q));
        float *p = (float *)s.turned[4 * q] + r;
        p[0] = v.x;
        p[W] = v.y;
        p[2 * W] = v.z;
        p[3 * W] = v.w;
    }
    __syncthreads(); /* the block and its exchanges are there */
    /* neighbours to a warp, and warps to as many blocks as there are */
    int warp = t / 32 * (int)gridDim.x + (int)blockIdx.x;
    for (int c = warp * 32 + t % 32; c <= job.nb;
         c += threads * (int)gridDim.x) {
        if (c == job.nb) {
            int x[W], y[W], *p = job.content + job.at;
#pragma unroll
            for (int i = 0; i < W; i++) {
                x[i] = p[s.from[i]];
                y[i] = p[i];
            }
#pragma unroll
            for (int i = 0; i < W; i++)
                p[i] = x[i];
#pragma unroll
            for (int i = 0; i < W; i++)
                if (s.to[i] >= W)
                    p[s.to[i]] = y[i];
            return;
        }
        if (c >= job.at && c < job.at + W)
            continue;
        float x[W], y[W], *p = top + c;
#pragma unroll
        for (int i = 0; i < W; i++) {
            x[i] = p[s.from[i] * ld];
            y[i] = p[i * ld];
        }
        if (c >= job.at + W && c < job.end)
#pragma unroll
            for (int k = 0; k < W - 1; k++)
#pragma unroll
                for (int q = (k + 1) / 4; q < W / 4; q++) {
                    float4 l = s.turned[k][q];
                    if (4 * q > k)
                        x[4 * q] -= l.x * x[k];
                    if (4 * q + 1 > k)
                        x[4 * q + 1] -= l.y * x[k];
                    if (4 * q + 2 > k)
                        x[4 * q + 2] -= l.z * x[k];
                    if (4 * q + 3 > k)
                        x[4 * q + 3] -= l.w * x[k];
                }
#pragma unroll
        for (int i = 0; i < W; i++)
            p[i * ld] = x[i];
#pragma unroll
        for (int i = 0; i < W; i++)
            if (s.to[i] >= W)
                p[s.to[i] * ld] = y[i];
    }
}
#endif

/* from[i]: where row i < W came from; to[i]: where row i < W went. Of a column
 * of zeros the pivot is what it was, and its factors are zeros.
 *
 * Eight columns at a time: after them the columns rotate, so that their code
 * is there once. R rows a thread, T threads a block. */
template <int W, int R, int T>
__global__ void __launch_bounds__(T, 1)
    pivot_columns(const __grid_constant__ pivot_job job)
{
#ifdef HAS_CLUSTERS
    constexpr int WARPS = T / 32, PARTS = column_memory<W>::PARTS;
    __shared__ column_memory<W> s;
    const unsigned blocks = gridDim.x, rank = blockIdx.x;
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    const int m = job.m;
    float *a = job.a + job.at * job.ld + job.at;
    start_barriers(s.full, thread);
    /* A lane sends to one block alone, each so manieth part of a row. */
    const int first_part = lane / (int)blocks, stride = 32 / (int)blocks;
    const uint32_t there =
        remote_address(shared_address(&s), (unsigned)lane % blocks);
    meet_cluster(); /* all blocks run, and have their barriers */
    wait_for_previous();
    let_next_start();
    float x[R][W];
    int row[R], origin[R]; /* where it is by the exchanges, and where it lies */
#pragma unroll
    for (int r = 0; r < R; r++) {
        row[r] = (int)(r * blocks + rank) * T + thread;
        origin[r] = row[r];
#pragma unroll
        for (int q = 0; q < W / 4; q++) {
            float4 v = make_float4(0, 0, 0, 0);
            if (row[r] < m)
                v = *(const float4 *)(a + row[r] * job.ld + 4 * q);
            x[r][4 * q] = v.x;
            x[r][4 * q + 1] = v.y;
            x[r][4 * q + 2] = v.z;
            x[r][4 * q + 3] = v.w;
        }
    }
    float l[R];
    const float4 *u4 = s.received[0][0] + 1; /* the pivot's row */
#pragma unroll 1
    for (int g = 0; g < W / 8; g++) {
#pragma unroll
        for (int jj = 0; jj < 8; jj++) {
            const int buffer = jj % 4, j = 8 * g + jj;
            /* The parts that hold columns behind jj, and the header. */
            const int done = (jj + 1) / 4, parts = 1 + W / 4 - 2 * g - done;
            unsigned best = 0; /* bits of a magnitude; 0: no row */
            int at = 0;
            float inverse[R];
#pragma unroll
            for (int r = 0; r < R; r++) {
                unsigned u = __float_as_uint(x[r][jj]) & 0x7fffffff;
                if (row[r] >= j && row[r] < m && u > best) {
                    best = u;
                    at = row[r];
                }
                inverse[r] = reciprocal(x[r][jj]);
            }
            unsigned most = __reduce_max_sync(~0u, best);
            unsigned who = __ballot_sync(~0u, best == most);
            if (lane == __ffs((int)who) - 1)
                s.key[jj % 2][warp] = make_uint2(most, (unsigned)at);
            if (thread == 0)
                expect_bytes(&s.full[buffer], blocks * (unsigned)parts * 16);
            __syncthreads(); /* the warps' candidates are there */
            uint2 k = s.key[jj % 2][lane % WARPS];
            unsigned block_most = __reduce_max_sync(~0u, k.x);
            int source = __ffs((int)__ballot_sync(~0u, k.x == block_most)) - 1;
            int block_row = (int)__shfl_sync(~0u, k.y, source);
            if (jj > 0) /* by the column before */
                update_columns<W, R>(x, l, u4, jj, g);
            if (warp == source) {
                float4 *out = s.best[jj % 2];
                if (block_most == 0 && lane < PARTS)
                    out[lane] = make_float4(0, 0, 0, 0);
                if (block_most != 0)
#pragma unroll
                    for (int r = 0; r < R; r++)
                        if (row[r] == block_row)
                            keep_row<W>(out,
                                        make_float4(__uint_as_float(block_most),
                                                    __int_as_float(block_row),
                                                    0, inverse[r]),
                                        x[r]);
                __syncwarp(); /* the row is there */
                uint32_t to =
                    (uint32_t)((char *)s.received[buffer][rank] - (char *)&s);
                uint32_t full =
                    (uint32_t)((char *)&s.full[buffer] - (char *)&s);
                for (int p = first_part; p < parts; p += stride) {
                    int q = p == 0 ? 0 : p + done;
                    send_four(there + to + q * 16, there + full, out[q]);
                }
            }
            /* all candidates are here */
            await_phase(&s.full[buffer], (unsigned)(j >> 2) & 1);
            unsigned magnitude = 0, where = 0;
            if (lane < (int)blocks) {
                float2 h = *(const float2 *)&s.received[buffer][lane][0];
                magnitude = __float_as_uint(h.x);
                where = __float_as_uint(h.y);
            }
            most = __reduce_max_sync(~0u, magnitude);
            source = __ffs((int)__ballot_sync(~0u, magnitude == most)) - 1;
            int pivot = (int)__shfl_sync(~0u, where, source);
            if (most == 0)
                pivot = j; /* zeros: nothing to exchange or to take away */
            float by = s.received[buffer][source][0].w;
            u4 = s.received[buffer][source] + 1;
#pragma unroll
            for (int r = 0; r < R; r++) {
                if (row[r] == pivot)
                    row[r] = j;
                else if (row[r] == j)
                    row[r] = pivot;
                l[r] = row[r] > j ? x[r][jj] * by : 0;
                if (row[r] > j)
                    x[r][jj] = l[r];
            }
            if (jj == 7) { /* the columns rotate */
                update_columns<W, R>(x, l, u4, jj, g);
            } else {
                float u = ((const float *)u4)[jj + 1];
#pragma unroll
                for (int r = 0; r < R; r++)
                    x[r][jj + 1] -= l[r] * u;
            }
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
            float done[8];
#pragma unroll
            for (int c = 0; c < 8; c++)
                done[c] = x[r][c];
#pragma unroll
            for (int c = 0; c < W - 8; c++)
                x[r][c] = x[r][c + 8];
#pragma unroll
            for (int c = 0; c < 8; c++)
                x[r][W - 8 + c] = done[c];
        }
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        if (row[r] >= m)
            continue;
        store_row(a + row[r] * job.ld, x[r]);
        if (row[r] < W)
            job.from[row[r]] = origin[r];
        if (origin[r] < W)
            job.to[origin[r]] = row[r];
    }
    /* All is stored, and nobody's memory is written to any more. */
    __threadfence();
    meet_cluster();
    exchange_and_solve<W>(job, s, thread, T);
#endif
}

template <int W, int R, int T>
static gpu_status launch_columns(cuda_device *d, const pivot_job &job)
{
    static int prepared;
    unsigned blocks = 2; /* messages want a cluster, and one is none */
    while ((int64_t)blocks * T * R < job.m)
        blocks *= 2;
    TRY(set_once(d, (const void *)pivot_columns<W, R, T>,
                 cudaFuncAttributeNonPortableClusterSizeAllowed, 1, &prepared));
    return launch_behind(d, pivot_columns<W, R, T>, dim3(blocks), T, 0,
                         (int)blocks, job);
}

/* How many columns are done at once, of m rows. */
static int columns_at_once(int m)
{
    return m > 16384 ? 16 : 32;
}

static gpu_status find_pivots(cuda_device *d, const pivot_job &job)
{
    if (job.m > 16384)
        return launch_columns<16, 4, 512>(d, job);
    if (job.m > 12288)
        return launch_columns<32, 2, 512>(d, job);
    if (job.m > 8192)
        return launch_columns<32, 2, 384>(d, job);
    if (job.m > 4096)
        return launch_columns<32, 2, 256>(d, job);
    return launch_columns<32, 1, 256>(d, job);
}

#endif
