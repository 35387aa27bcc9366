/* LU's innermost part: W columns of up to 16384 (W = 32) or 32768 (W = 16) rows
 * with partial pivoting, in the registers of one cluster of 2 to 16 blocks, a
 * row in a thread.
 *
 * Limited by the exchange of one message a column: each block sends its best
 * row to all, the first one the row on the diagonal, by stores that count
 * themselves at the receiver's barrier; then all know the pivot, exchange and
 * update. 1.0 us a column up to 4096 rows, 1.3 at 8192, 1.6 at 16384. A
 * barrier of the whole cluster in its place took 1.4 to 2.3. Needs sm_90. */
#ifndef GPU_CUDA_PIVOT_COLUMNS_H
#define GPU_CUDA_PIVOT_COLUMNS_H

#include "cluster.h"

/* A row travels as a header and its columns: magnitude, row, where the row
 * came from, reciprocal. */
template <int W> struct column_memory {
    static constexpr int PARTS = W / 4 + 1;
    float4 received[2][MOST_CLUSTER][PARTS], diagonal[2][PARTS];
    /* On their way out. Two of each: their sender may still read what it sends
     * when the column's pivot is known everywhere. */
    float4 best[2][PARTS], own_diagonal[2][PARTS];
    uint2 key[2][32]; /* of the warps */
    uint64_t full[2]; /* barriers */
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

template <int W>
__device__ __forceinline__ void take_row(float (&x)[W], const float4 *from)
{
#pragma unroll
    for (int q = 0; q < W / 4; q++) {
        float4 v = from[q];
        x[4 * q] = v.x;
        x[4 * q + 1] = v.y;
        x[4 * q + 2] = v.z;
        x[4 * q + 3] = v.w;
    }
}

/* A warp sends a row to all blocks of the cluster. */
template <int W>
__device__ __forceinline__ void send_row(const float4 *from, const float4 *to,
                                         uint64_t *full, unsigned blocks,
                                         int lane)
{
    constexpr int PARTS = W / 4 + 1, SENDS = (MOST_CLUSTER * PARTS + 31) / 32;
    int first = lane;
    asm volatile("" : "+r"(first)); /* nothing of this stays in registers */
#pragma unroll
    for (int n = 0; n < SENDS; n++) {
        int i = first + 32 * n;
        unsigned rank = (unsigned)(i / PARTS);
        if (rank < blocks)
            send_four(remote_address(shared_address(to + i % PARTS), rank),
                      remote_address(shared_address(full), rank),
                      from[i % PARTS]);
    }
}
#endif

/* a: the top left element of m rows of W columns, rows ld apart, 16-byte
 * aligned. from[i]: where row i < W came from; to[i]: where row i < W went.
 * Of a column of zeros the pivot is what it was, and its factors are zeros.
 *
 * Eight columns at a time: after them the columns rotate, so that their code
 * is there once. R rows a thread, T threads a block. */
template <int W, int R, int T>
__global__ void __launch_bounds__(T, 1)
    pivot_columns(float *a, int64_t ld, int m, int *from, int *to)
{
#ifdef HAS_CLUSTERS
    constexpr int WARPS = T / 32;
    __shared__ column_memory<W> s;
    const unsigned blocks = gridDim.x, rank = blockIdx.x;
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    float x[R][W];
    int row[R], origin[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        row[r] = (int)(r * blocks + rank) * T + thread;
        origin[r] = row[r];
#pragma unroll
        for (int q = 0; q < W / 4; q++) {
            float4 v = make_float4(0, 0, 0, 0);
            if (row[r] < m)
                v = *(const float4 *)(a + row[r] * ld + 4 * q);
            x[r][4 * q] = v.x;
            x[r][4 * q + 1] = v.y;
            x[r][4 * q + 2] = v.z;
            x[r][4 * q + 3] = v.w;
        }
    }
    const unsigned bytes = (blocks + 1) * column_memory<W>::PARTS * 16;
    if (thread == 0)
        for (int b = 0; b < 2; b++)
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(
                             shared_address(&s.full[b]))
                         : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    meet_cluster(); /* all blocks run, and have their barriers */
#pragma unroll 1
    for (int g = 0; g < W / 8; g++) {
#pragma unroll
        for (int jj = 0; jj < 8; jj++) {
            const int buffer = jj & 1, j = 8 * g + jj;
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
                s.key[buffer][warp] = make_uint2(most, (unsigned)at);
            if (thread == 0)
                asm volatile(
                    "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(
                        shared_address(&s.full[buffer])),
                    "r"(bytes)
                    : "memory");
            if (rank == 0 && thread == j)
                keep_row<W>(s.own_diagonal[buffer],
                            make_float4(__int_as_float(origin[0]), 0, 0, 0),
                            x[0]);
            __syncthreads(); /* the warps' candidates are there */
            uint2 k = s.key[buffer][lane % WARPS];
            unsigned block_most = __reduce_max_sync(~0u, k.x);
            int source = __ffs((int)__ballot_sync(~0u, k.x == block_most)) - 1;
            int block_row = (int)__shfl_sync(~0u, k.y, source);
            const int owner = block_most == 0 ? 0 : block_row % T / 32;
            if (rank == 0 && warp == (owner ^ 1))
                send_row<W>(s.own_diagonal[buffer], s.diagonal[buffer],
                            &s.full[buffer], blocks, lane);
            if (warp == owner) {
                if (block_most == 0 && lane == 0)
                    s.best[buffer][0] = make_float4(0, 0, 0, 0);
                if (block_most != 0 && lane == block_row % 32)
#pragma unroll
                    for (int r = 0; r < R; r++)
                        if (row[r] == block_row)
                            keep_row<W>(s.best[buffer],
                                        make_float4(__uint_as_float(block_most),
                                                    __int_as_float(block_row),
                                                    __int_as_float(origin[r]),
                                                    inverse[r]),
                                        x[r]);
                __syncwarp();
                send_row<W>(s.best[buffer], s.received[buffer][rank],
                            &s.full[buffer], blocks, lane);
            }
            /* all candidates are here */
            await_phase(&s.full[buffer], (unsigned)(j >> 1) & 1);
            unsigned magnitude = 0, where = 0;
            if (lane < (int)blocks) {
                float2 h = *(const float2 *)&s.received[buffer][lane][0];
                magnitude = __float_as_uint(h.x);
                where = __float_as_uint(h.y);
            }
            most = __reduce_max_sync(~0u, magnitude);
            source = __ffs((int)__ballot_sync(~0u, magnitude == most)) - 1;
            int pivot = (int)__shfl_sync(~0u, where, source);
            const float4 *u4 = s.received[buffer][source];
            if (most == 0)
                continue; /* zeros: nothing to exchange or to take away */
            if (pivot != j) {
#pragma unroll
                for (int r = 0; r < R; r++)
                    if (row[r] == pivot) {
                        origin[r] = __float_as_int(s.diagonal[buffer][0].x);
                        take_row<W>(x[r], s.diagonal[buffer] + 1);
                    }
                if (row[0] == j) {
                    origin[0] = __float_as_int(u4[0].z);
                    take_row<W>(x[0], u4 + 1);
                }
            }
            float by = u4[0].w, l[R];
#pragma unroll
            for (int r = 0; r < R; r++) {
                l[r] = row[r] > j ? x[r][jj] * by : 0;
                if (row[r] > j)
                    x[r][jj] = l[r];
            }
#pragma unroll
            for (int q = 0; q < W / 8; q++) {
                if (q * 8 + 7 <= jj || q >= W / 8 - g)
                    continue; /* what is done comes behind */
                float4 v = u4[2 * q + 1], w = u4[2 * q + 2];
                float u[8] = {v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w};
#pragma unroll
                for (int c = 0; c < 8; c++)
                    if (q * 8 + c > jj)
#pragma unroll
                        for (int r = 0; r < R; r++)
                            x[r][q * 8 + c] -= l[r] * u[c];
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
        store_row(a + row[r] * ld, x[r]);
        if (row[r] < W)
            from[row[r]] = origin[r];
        if (origin[r] < W)
            to[origin[r]] = row[r];
    }
    meet_cluster(); /* nobody leaves while others may write to it */
#endif
}

template <int W, int R, int T>
static gpu_status launch_columns(cuda_device *d, float *a, int64_t ld, int m,
                                 int *from, int *to)
{
    static int prepared;
    unsigned blocks = 2; /* messages want a cluster, and one is none */
    while ((int64_t)blocks * T * R < m)
        blocks *= 2;
    TRY(set_once(d, (const void *)pivot_columns<W, R, T>,
                 cudaFuncAttributeNonPortableClusterSizeAllowed, 1, &prepared));
    cudaLaunchAttribute cluster[1] = {};
    cluster[0].id = cudaLaunchAttributeClusterDimension;
    cluster[0].val.clusterDim.x = blocks;
    cluster[0].val.clusterDim.y = cluster[0].val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(T);
    config.stream = d->stream;
    config.attrs = cluster;
    config.numAttrs = 1;
    return gpu_cuda_check(d, cudaLaunchKernelEx(&config, pivot_columns<W, R, T>,
                                                a, ld, m, from, to));
}

/* How many columns are done at once, of m rows. */
static int columns_at_once(int m)
{
    return m > 16384 ? 16 : 32;
}

static gpu_status find_pivots(cuda_device *d, float *a, int64_t ld, int m,
                              int width, int *from, int *to)
{
    if (width == 16)
        return launch_columns<16, 4, 512>(d, a, ld, m, from, to);
    if (m > 8192)
        return launch_columns<32, 2, 512>(d, a, ld, m, from, to);
    if (m > 4096)
        return launch_columns<32, 1, 512>(d, a, ld, m, from, to);
    return launch_columns<32, 1, 256>(d, a, ld, m, from, to);
}

#endif
