/* LU's innermost part of complex f32 matrices: 16 columns of up to 16384 rows
 * with partial pivoting by |re| + |im|, in the registers of one cluster of 2 to
 * 16 blocks, a row in a thread; then, in the same launch, their exchanges on
 * the panel's other columns, and U's rows beside them.
 *
 * Columns lie in groups of 16: a group's real parts, then its imaginary ones,
 * 128 bytes of a row. So real products of neighbouring groups are complex ones,
 * where the right operand has two rows for each: a row of U as it lies, for the
 * left one's real parts, and the same times i for its imaginary parts. Whoever
 * solves for rows of U writes both.
 *
 * Limited by the exchange of one message a column, as pivot_columns.h, which
 * has half the numbers. Rows stay where they are: it is their numbers that are
 * exchanged, and each is stored where it belongs at the end. Needs sm_90. */
#ifndef GPU_CUDA_PIVOT_COMPLEX_H
#define GPU_CUDA_PIVOT_COMPLEX_H

#include "cluster.h"

constexpr int GROUP = 16;         /* columns */
constexpr int PAIRED = 2 * GROUP; /* their numbers */
constexpr int GROUP_QUADS = GROUP / 4;
constexpr int SENT_PARTS = PAIRED / 4 + 1; /* of a row: a header before it */

/* What is done, of a panel of nb columns, rows ld floats apart, on 16 bytes:
 * the group from column `at` on of the rows from `at` on, m of them. Columns
 * behind it and before `end` get U's rows, here and in `doubled`, whose rows
 * are as far apart, two for each of the panel's. */
typedef struct complex_pivot_job {
    float *a, *doubled; /* the panel's top left */
    int64_t ld;
    int m, at, nb, end;
    int *content;   /* of the panel's rows: exchanged as they are */
    int *from, *to; /* room for GROUP numbers each: where the first rows came
                       from, and where they went */
} complex_pivot_job;

/* Where column c's real part lies in a row. */
__host__ __device__ __forceinline__ int64_t column_place(int c)
{
    return 2 * (c - c % GROUP) + c % GROUP;
}

/* A row of U in a column, and the two it is in the doubled one. */
__device__ __forceinline__ void store_doubled(float *to, int64_t ld, int row,
                                              float re, float im)
{
    float *p = to + (2 * (row - row % GROUP) + row % GROUP) * ld;
    p[0] = re;
    p[GROUP] = im;
    p += GROUP * ld;
    p[0] = -im;
    p[GROUP] = re;
}

#ifdef HAS_CLUSTERS
struct complex_memory {
    /* Of four columns in turn: who is behind by two still reads. A header is
     * the magnitude, the row, and the reciprocal. */
    float4 received[4][MOST_CLUSTER][SENT_PARTS];
    uint64_t full[4];           /* barriers */
    float4 best[2][SENT_PARTS]; /* on its way out */
    uint2 key[2][32];           /* of the warps */
    float2 l[GROUP][GROUP];     /* by columns */
    int from[GROUP], to[GROUP];
};

/* x -= l u of the columns behind jj, of which the last 8 g are done with. */
template <int R>
__device__ __forceinline__ void update_complex(float (&x)[R][PAIRED],
                                               const float2 (&l)[R],
                                               const float4 *u4, int jj, int g)
{
#pragma unroll
    for (int q = 0; q < GROUP_QUADS; q++) {
        if (q * 4 + 3 <= jj || q >= GROUP_QUADS - 2 * g)
            continue; /* what is done comes behind */
        float4 v = u4[q], w = u4[q + GROUP_QUADS];
        float re[4] = {v.x, v.y, v.z, v.w}, im[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
        for (int c = 0; c < 4; c++)
            if (q * 4 + c > jj)
#pragma unroll
                for (int r = 0; r < R; r++) {
                    float &a = x[r][q * 4 + c], &b = x[r][q * 4 + c + GROUP];
                    a = a - l[r].x * re[c] + l[r].y * im[c];
                    b = b - l[r].x * im[c] - l[r].y * re[c];
                }
    }
}

/* The exchanges of the group at `at` on one of the panel's other columns; up to
 * `end` also the triangular solve. */
__device__ __forceinline__ void exchange_column(const complex_pivot_job &job,
                                                const complex_memory &s, int c)
{
    const int64_t ld = job.ld;
    float re[GROUP], im[GROUP], old_re[GROUP], old_im[GROUP];
    float *p = job.a + job.at * ld + column_place(c);
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        const float *from = p + s.from[i] * ld, *old = p + i * ld;
        re[i] = from[0];
        im[i] = from[GROUP];
        old_re[i] = old[0];
        old_im[i] = old[GROUP];
    }
    const int is_solved = c >= job.at + GROUP && c < job.end;
    if (is_solved)
#pragma unroll
        for (int k = 0; k < GROUP - 1; k++)
#pragma unroll
            for (int i = k + 1; i < GROUP; i++) {
                float2 l = s.l[k][i];
                re[i] = re[i] - l.x * re[k] + l.y * im[k];
                im[i] = im[i] - l.x * im[k] - l.y * re[k];
            }
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        p[i * ld] = re[i];
        p[i * ld + GROUP] = im[i];
        if (is_solved)
            store_doubled(job.doubled + column_place(c), ld, job.at + i, re[i],
                          im[i]);
    }
#pragma unroll
    for (int i = 0; i < GROUP; i++)
        if (s.to[i] >= GROUP) {
            p[s.to[i] * ld] = old_re[i];
            p[s.to[i] * ld + GROUP] = old_im[i];
        }
}

/* The same on the numbers of the rows. */
__device__ __forceinline__ void exchange_content(const complex_pivot_job &job,
                                                 const complex_memory &s)
{
    int x[GROUP], y[GROUP], *p = job.content + job.at;
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        x[i] = p[s.from[i]];
        y[i] = p[i];
    }
#pragma unroll
    for (int i = 0; i < GROUP; i++)
        p[i] = x[i];
#pragma unroll
    for (int i = 0; i < GROUP; i++)
        if (s.to[i] >= GROUP)
            p[s.to[i]] = y[i];
}

/* A thread has a column: neighbours to a warp, and warps to as many blocks as
 * there are. What other blocks wrote is read past the first-level cache. */
__device__ __forceinline__ void exchange_columns(const complex_pivot_job &job,
                                                 complex_memory &s, int t,
                                                 int threads)
{
    const float *top = job.a + job.at * job.ld + 2 * job.at;
    if (t < GROUP) {
        s.from[t] = __ldcg(job.from + t);
        s.to[t] = __ldcg(job.to + t);
    }
    for (int i = t; i < GROUP * GROUP; i += threads) {
        int r = i / GROUP, k = i % GROUP;
        const float *p = top + r * job.ld + k;
        s.l[k][r] = make_float2(__ldcg(p), __ldcg(p + GROUP));
    }
    __syncthreads(); /* the block and its exchanges are there */
    int warp = t / 32 * (int)gridDim.x + (int)blockIdx.x;
    for (int c = warp * 32 + t % 32; c <= job.nb; c += threads * (int)gridDim.x)
        if (c == job.nb)
            exchange_content(job, s);
        else if (c < job.at || c >= job.at + GROUP)
            exchange_column(job, s, c);
}
#endif

/* Of a column of zeros the pivot is what it was, and its factors are zeros.
 *
 * Eight columns at a time: after them the columns rotate, so that their code
 * is there once. R rows a thread, T threads a block. */
template <int R, int T>
__global__ void __launch_bounds__(T, 1)
    pivot_complex(const __grid_constant__ complex_pivot_job job)
{
#ifdef HAS_CLUSTERS
    constexpr int WARPS = T / 32;
    __shared__ complex_memory s;
    const unsigned blocks = gridDim.x, rank = blockIdx.x;
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    const int m = job.m;
    float *a = job.a + job.at * job.ld + 2 * job.at;
    float x[R][PAIRED];
    int row[R], origin[R]; /* where it is by the exchanges, and where it lies */
#pragma unroll
    for (int r = 0; r < R; r++) {
        row[r] = (int)(r * blocks + rank) * T + thread;
        origin[r] = row[r];
#pragma unroll
        for (int q = 0; q < PAIRED / 4; q++) {
            float4 v = make_float4(0, 0, 0, 0);
            if (row[r] < m)
                v = *(const float4 *)(a + row[r] * job.ld + 4 * q);
            x[r][4 * q] = v.x;
            x[r][4 * q + 1] = v.y;
            x[r][4 * q + 2] = v.z;
            x[r][4 * q + 3] = v.w;
        }
    }
    start_barriers(s.full, thread);
    /* A lane sends to one block alone, each so manieth part of a row. */
    const int first_part = lane / (int)blocks, stride = 32 / (int)blocks;
    const uint32_t there =
        remote_address(shared_address(&s), (unsigned)lane % blocks);
    meet_cluster(); /* all blocks run, and have their barriers */
    float2 l[R];
    const float4 *u4 = s.received[0][0] + 1; /* the pivot's row */
#pragma unroll 1
    for (int g = 0; g < GROUP / 8; g++) {
#pragma unroll
        for (int jj = 0; jj < 8; jj++) {
            const int buffer = jj % 4, j = 8 * g + jj;
            /* The parts that hold columns behind jj, and the header. */
            const int done = (jj + 1) / 4;
            const int parts = 1 + 2 * (GROUP_QUADS - 2 * g - done);
            unsigned best = 0; /* bits of a magnitude; 0: no row */
            int at = 0;
#pragma unroll
            for (int r = 0; r < R; r++) {
                unsigned u =
                    __float_as_uint(fabsf(x[r][jj]) + fabsf(x[r][jj + GROUP]));
                if (row[r] >= j && row[r] < m && u > best) {
                    best = u;
                    at = row[r];
                }
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
                update_complex<R>(x, l, u4, jj, g);
            if (warp == source) {
                float4 *out = s.best[jj % 2];
                if (block_most == 0 && lane < SENT_PARTS)
                    out[lane] = make_float4(0, 0, 0, 0);
                if (block_most != 0)
#pragma unroll
                    for (int r = 0; r < R; r++)
                        if (row[r] == block_row) {
                            float re = x[r][jj], im = x[r][jj + GROUP];
                            float by = reciprocal(re * re + im * im);
                            out[0] = make_float4(__uint_as_float(block_most),
                                                 __int_as_float(block_row),
                                                 re * by, -im * by);
                            store_row((float *)(out + 1), x[r]);
                        }
                __syncwarp(); /* the row is there */
                uint32_t to =
                    (uint32_t)((char *)s.received[buffer][rank] - (char *)&s);
                uint32_t full =
                    (uint32_t)((char *)&s.full[buffer] - (char *)&s);
                for (int p = first_part; p < parts; p += stride) {
                    int q = p == 0 ? 0
                                   : 1 + done + (p - 1) / 2 +
                                         (p - 1) % 2 * GROUP_QUADS;
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
            u4 = s.received[buffer][source];
            const float by = u4->z, by_i = u4->w;
            u4++;
#pragma unroll
            for (int r = 0; r < R; r++) {
                if (row[r] == pivot)
                    row[r] = j;
                else if (row[r] == j)
                    row[r] = pivot;
                l[r] = make_float2(0, 0);
                if (row[r] > j) {
                    float re = x[r][jj], im = x[r][jj + GROUP];
                    l[r] =
                        make_float2(re * by - im * by_i, re * by_i + im * by);
                    x[r][jj] = l[r].x;
                    x[r][jj + GROUP] = l[r].y;
                }
            }
            if (jj == 7) { /* the columns rotate */
                update_complex<R>(x, l, u4, jj, g);
            } else {
                float re = ((const float *)u4)[jj + 1];
                float im = ((const float *)u4)[jj + 1 + GROUP];
#pragma unroll
                for (int r = 0; r < R; r++) {
                    float &p = x[r][jj + 1], &q = x[r][jj + 1 + GROUP];
                    p = p - l[r].x * re + l[r].y * im;
                    q = q - l[r].x * im - l[r].y * re;
                }
            }
        }
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int c = 0; c < PAIRED; c++)
                if (c % GROUP < GROUP / 2) { /* halves change places */
                    float held = x[r][c];
                    x[r][c] = x[r][c + 8];
                    x[r][c + 8] = held;
                }
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        if (row[r] >= m)
            continue;
        store_row(a + row[r] * job.ld, x[r]);
        if (row[r] < GROUP)
            job.from[row[r]] = origin[r];
        if (origin[r] < GROUP)
            job.to[origin[r]] = row[r];
    }
    /* All is stored, and nobody's memory is written to any more. */
    __threadfence();
    meet_cluster();
    exchange_columns(job, s, thread, T);
#endif
}

template <int R, int T>
static gpu_status launch_complex(cuda_device *d, const complex_pivot_job &job)
{
    static int prepared;
    unsigned blocks = 2; /* messages want a cluster, and one is none */
    while ((int64_t)blocks * T * R < job.m)
        blocks *= 2;
    TRY(set_once(d, (const void *)pivot_complex<R, T>,
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
    return gpu_cuda_check(
        d, cudaLaunchKernelEx(&config, pivot_complex<R, T>, job));
}

static gpu_status find_complex_pivots(cuda_device *d,
                                      const complex_pivot_job &job)
{
    if (job.m > 8192)
        return launch_complex<2, 512>(d, job);
    if (job.m > 4096)
        return launch_complex<1, 512>(d, job);
    return launch_complex<1, 256>(d, job);
}

#endif
