/* QR's innermost part: W columns of up to 16384 (W = 32) or 32768 (W = 16) rows
 * by Householder's reflections, in the registers of one cluster of up to 16
 * blocks, a row in a thread.
 *
 * Limited by the exchange of one message a column: each block sends the dot
 * products of its part of the column with the columns behind it to all, the
 * first one the row on the diagonal too, by stores that count themselves at the
 * receiver's barrier; then all know the reflection. 1.1 us a column up to 4096
 * rows, 1.4 at 8192, 2.0 at 16384. Source: LAPACK's geqr2,
 * whose form the result has. Needs sm_90. */
#ifndef GPU_CUDA_REFLECT_COLUMNS_H
#define GPU_CUDA_REFLECT_COLUMNS_H

#include "cluster.h"
#include "split16.h"

/* Where W columns are, and where what they become goes. */
typedef struct reflect_job {
    float *a; /* m x W, rows ld apart; becomes R and, below it, reflectors */
    int64_t ld;
    int m;
    float *v; /* the reflectors: m x W with ones and zeros, rows ldv apart */
    int64_t ldv;
    float *vt; /* the same turned and times tau: W x m, rows ldt apart */
    int64_t ldt;
    int above; /* rows above v's, and columns before vt's, that become 0 */
    float *tau;
} reflect_job;

/* Of a column whose squares add up to less the reflection is the identity: its
 * largest element was about 1 at first. */
[[maybe_unused]] static const float LEAST_SQUARES = 0x1p-100f;

template <int W, int WARPS> struct reflect_memory {
    float received[2][MOST_CLUSTER][W], row[2][W];
    float part[2][WARPS][W], own_row[2][W]; /* on their way out */
    float w[WARPS][W], tau[W];
    uint64_t full[2]; /* barriers */
};

#ifdef HAS_CLUSTERS
/* Sums of eight numbers over a warp: of p[lane % 8]. */
__device__ __forceinline__ float add_eight(const float (&p)[8], int lane)
{
    float h[4], q[2];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float keep = lane & 4 ? p[4 + e] : p[e],
              give = lane & 4 ? p[e] : p[4 + e];
        h[e] = keep + __shfl_xor_sync(~0u, give, 4);
    }
#pragma unroll
    for (int e = 0; e < 2; e++) {
        float keep = lane & 2 ? h[2 + e] : h[e],
              give = lane & 2 ? h[e] : h[2 + e];
        q[e] = keep + __shfl_xor_sync(~0u, give, 2);
    }
    float keep = lane & 1 ? q[1] : q[0], give = lane & 1 ? q[0] : q[1];
    float sum = keep + __shfl_xor_sync(~0u, give, 1);
    sum += __shfl_xor_sync(~0u, sum, 8);
    return sum + __shfl_xor_sync(~0u, sum, 16);
}

/* A warp sends its share of W numbers to the blocks of the cluster: some
 * targets a warp, `sender` counts the warps. */
template <int W>
__device__ __forceinline__ void send_numbers(float4 mine, const float *to,
                                             uint64_t *full, unsigned blocks,
                                             int sender, int lane)
{
    constexpr int PARTS = W / 4, TARGETS = 32 / PARTS;
    unsigned target = (unsigned)(sender * TARGETS + lane / PARTS);
    if (target < blocks)
        send_four(remote_address(shared_address(to + lane % PARTS * 4), target),
                  remote_address(shared_address(full), target), mine);
}

/* What a reflection of a column is: x becomes beta on the diagonal, v is scale
 * times what is below it. */
typedef struct reflection {
    float beta, tau, scale;
} reflection;

__device__ __forceinline__ reflection find_reflection(float alpha,
                                                      float squares)
{
    float all = alpha * alpha + squares;
    if (squares == 0 || all < LEAST_SQUARES)
        return {alpha, 0, 0};
    float root = reciprocal_root(all), norm = all * root;
    float size = fabsf(alpha);
    return {copysignf(norm, -alpha), 1 + size * root,
            copysignf(reciprocal(size + norm), alpha)};
}

/* Who a thread is, and its rows. */
template <int R> struct reflect_thread {
    unsigned blocks, rank;
    int thread, lane, warp;
    int row[R];
};

/* The block's sums for column j go to all blocks, the row on the diagonal too;
 * then all of them are here. */
template <int W, int R, int WARPS>
__device__ __forceinline__ void exchange_sums(reflect_memory<W, WARPS> &s,
                                              const reflect_thread<R> &me,
                                              int buffer, int j)
{
    constexpr int PARTS = W / 4, SENDERS = MOST_CLUSTER * PARTS / 32;
    static_assert(2 * SENDERS <= WARPS);
    const int lane = me.lane, warp = me.warp;
    __syncthreads(); /* the warps' sums are there */
    if (warp < SENDERS) {
        float4 all = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int n = 0; n < WARPS; n++) {
            float4 v = *(const float4 *)&s.part[buffer][n][lane % PARTS * 4];
            all =
                make_float4(all.x + v.x, all.y + v.y, all.z + v.z, all.w + v.w);
        }
        send_numbers<W>(all, s.received[buffer][me.rank], &s.full[buffer],
                        me.blocks, warp, lane);
    } else if (me.rank == 0 && warp < 2 * SENDERS) {
        send_numbers<W>(*(const float4 *)&s.own_row[buffer][lane % PARTS * 4],
                        s.row[buffer], &s.full[buffer], me.blocks,
                        warp - SENDERS, lane);
    }
    await_phase(&s.full[buffer], (unsigned)(j >> 1) & 1);
}

/* The first column becomes the last. */
template <int W, int R> __device__ __forceinline__ void rotate(float (&x)[R][W])
{
#pragma unroll
    for (int r = 0; r < R; r++) {
        float first = x[r][0];
#pragma unroll
        for (int c = 0; c < W - 1; c++)
            x[r][c] = x[r][c + 1];
        x[r][W - 1] = first;
    }
}

/* Zeros of blocks that are not there, and barriers; then all blocks have them.
 */
template <int W, int WARPS>
__device__ __forceinline__ void prepare_memory(reflect_memory<W, WARPS> &s,
                                               int thread, int threads)
{
    for (int i = thread; i < 2 * MOST_CLUSTER * W; i += threads)
        (&s.received[0][0][0])[i] = 0;
    for (int i = thread; i < 2 * WARPS * W; i += threads)
        (&s.part[0][0][0])[i] = 0;
    start_barriers(s.full, thread);
    meet_cluster();
}

/* The numbers above v's W columns, and before vt's rows, become 0. */
template <int W>
__device__ __forceinline__ void clear_above(const reflect_job &job, int above,
                                            int thread, int threads)
{
    for (int i = thread; i < above; i += threads)
#pragma unroll 4
        for (int c = 0; c < W; c++) {
            job.v[(i - above) * job.ldv + c] = 0;
            job.vt[c * job.ldt + i - above] = 0;
        }
}

/* Column j, which is x's first; then the columns rotate by one, so that their
 * code is there once for eight of them: what is executed but once waits for its
 * instructions. Of the columns the first GROUPS times eight are looked at:
 * where some of these are done, their w is 0. */
template <int GROUPS, int W, int R, int WARPS>
__device__ __forceinline__ void reflect_one(float (&x)[R][W],
                                            reflect_memory<W, WARPS> &s,
                                            const reflect_thread<R> &me, int j)
{
    const int lane = me.lane, warp = me.warp, buffer = j & 1;
    float below[R], sum = 0; /* of column `lane` */
#pragma unroll
    for (int r = 0; r < R; r++)
        below[r] = me.row[r] > j ? x[r][0] : 0;
#pragma unroll
    for (int q = 0; q < GROUPS; q++) {
        float p[8] = {};
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int e = 0; e < 8; e++)
                p[e] += below[r] * x[r][8 * q + e];
        float of_eight = add_eight(p, lane);
        if (lane / 8 == q)
            sum = of_eight;
    }
    if (lane < 8 * GROUPS)
        s.part[buffer][warp][lane] = sum;
    if (me.thread == 0)
        expect_bytes(&s.full[buffer], (me.blocks + 1) * W * 4);
    if (me.rank == 0 && me.thread == j)
        store_row(s.own_row[buffer], x[0]);
    exchange_sums<W>(s, me, buffer, j);
    const int k = lane % W;
    float some[4] = {};
#pragma unroll
    for (int b = 0; b < MOST_CLUSTER; b++)
        some[b % 4] += s.received[buffer][b][k];
    float dot = (some[0] + some[1]) + (some[2] + some[3]);
    float on = s.row[buffer][k];
    reflection h =
        find_reflection(__shfl_sync(~0u, on, 0), __shfl_sync(~0u, dot, 0));
    if (me.thread == 0)
        s.tau[j] = h.tau;
    if (lane < W)
        s.w[warp][k] = k > 0 && k < W - j ? h.tau * (on + dot * h.scale) : 0;
    __syncwarp(); /* w is there */
    float v[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        v[r] = me.row[r] == j ? 1 : below[r] * h.scale;
        if (me.row[r] >= j)
            x[r][0] = me.row[r] == j ? h.beta : v[r];
    }
#pragma unroll
    for (int e = 0; e < 8 * GROUPS; e += 4) {
        float4 w4 = *(const float4 *)&s.w[warp][e];
        float w[4] = {w4.x, w4.y, w4.z, w4.w};
#pragma unroll
        for (int c = 0; c < 4; c++)
#pragma unroll
            for (int r = 0; r < R; r++)
                x[r][e + c] -= v[r] * w[c];
    }
    rotate(x);
}

/* Columns from the first that GROUPS times eight are left with. */
template <int GROUPS, int W, int R, int WARPS>
__device__ __forceinline__ void reflect_rest(float (&x)[R][W],
                                             reflect_memory<W, WARPS> &s,
                                             const reflect_thread<R> &me)
{
    if constexpr (GROUPS > 0) {
#pragma unroll 1
        for (int j = W - 8 * GROUPS; j < W - 8 * GROUPS + 8; j++)
            reflect_one<GROUPS>(x, s, me, j);
        reflect_rest<GROUPS - 1>(x, s, me);
    }
}
#endif

/* R rows a thread, T threads a block. */
template <int W, int R, int T>
__global__ void __launch_bounds__(T, 1)
    reflect_columns(const __grid_constant__ reflect_job job)
{
#ifdef HAS_CLUSTERS
    constexpr int WARPS = T / 32, PARTS = W / 4;
    __shared__ __align__(16) reflect_memory<W, WARPS> s;
    const int thread = (int)threadIdx.x, m = job.m;
    reflect_thread<R> me = {gridDim.x,   blockIdx.x,  thread,
                            thread & 31, thread >> 5, {}};
    float x[R][W];
    wait_for_previous(); /* the next one's blocks would not lie evenly */
#pragma unroll
    for (int r = 0; r < R; r++) {
        int row = me.row[r] = (int)(r * me.blocks + me.rank) * T + thread;
#pragma unroll
        for (int q = 0; q < PARTS; q++) {
            float4 v = make_float4(0, 0, 0, 0);
            if (row < m)
                v = *(const float4 *)(job.a + row * job.ld + 4 * q);
            x[r][4 * q] = v.x;
            x[r][4 * q + 1] = v.y;
            x[r][4 * q + 2] = v.z;
            x[r][4 * q + 3] = v.w;
        }
    }
    prepare_memory(s, thread, T);
    reflect_rest<W / 8>(x, s, me);
    __syncthreads(); /* tau is there */
    if (me.rank == 0 && thread < W)
        job.tau[thread] = s.tau[thread];
#pragma unroll
    for (int r = 0; r < R; r++) {
        int row = me.row[r];
        if (row >= m)
            continue;
        store_row(job.a + row * job.ld, x[r]);
#pragma unroll
        for (int c = 0; c < W; c++)
            x[r][c] = row > c ? x[r][c] : row == c ? 1 : 0;
        store_row(job.v + row * job.ldv, x[r]);
#pragma unroll
        for (int c = 0; c < W; c++)
            job.vt[c * job.ldt + row] = x[r][c] * s.tau[c];
    }
    clear_above<W>(job, job.above, (int)me.rank * T + thread,
                   (int)me.blocks * T);
    meet_cluster(); /* nobody leaves while others may write to it */
#endif
}

template <void (*KERNEL)(const reflect_job), int R, int T>
static gpu_status launch_reflecting(cuda_device *d, const reflect_job *job)
{
    static int prepared;
    unsigned blocks = 2; /* at least: one alone would be no cluster */
    while ((int64_t)blocks * T * R < job->m)
        blocks *= 2;
    TRY(set_once(d, (const void *)KERNEL,
                 cudaFuncAttributeNonPortableClusterSizeAllowed, 1, &prepared));
    return launch_behind(d, KERNEL, dim3(blocks), T, 0, (int)blocks, *job);
}

template <int W, int R, int T>
static gpu_status launch_reflections(cuda_device *d, const reflect_job *job)
{
    return launch_reflecting<reflect_columns<W, R, T>, R, T>(d, job);
}

/* W = width, 16 or 32; of more than 16384 rows 16. */
static gpu_status find_reflections(cuda_device *d, const reflect_job *job,
                                   int width)
{
    if (width == 16)
        return launch_reflections<16, 8, 256>(d, job);
    if (job->m > 8192 && job->m <= 12288)
        return launch_reflections<32, 3, 256>(d, job);
    if (job->m > 8192)
        return launch_reflections<32, 4, 256>(d, job);
    if (job->m > 4096)
        return launch_reflections<32, 2, 256>(d, job);
    return launch_reflections<32, 1, 256>(d, job);
}

#endif
