/* The innermost part of QR in c64: 16 columns of up to 16384 rows by
 * Householder's reflections, in the registers of one cluster, as
 * reflect_columns.h has it of real ones. Columns come and go doubled, as
 * padded.h tells, so that all that is around this is real products: of a pair
 * of rows the first is read.
 *
 * Limited by the same exchange of one message a column, of as many numbers.
 * Source: LAPACK's geqr2 and larfg, whose form the result has: R's diagonal is
 * real, tau complex. Needs sm_90. */
#ifndef GPU_CUDA_REFLECT_COMPLEX_H
#define GPU_CUDA_REFLECT_COMPLEX_H

#include "doubled.h"
#include "reflect_columns.h"

constexpr int COMPLEX_COLUMNS = 16;

#ifdef HAS_CLUSTERS
/* See reflection; beta is real but where nothing is reflected. */
typedef struct complex_reflection {
    float2 beta, tau, scale;
} complex_reflection;

__device__ __forceinline__ complex_reflection
find_complex_reflection(float2 alpha, float squares)
{
    float all = alpha.x * alpha.x + alpha.y * alpha.y + squares;
    if ((squares == 0 && alpha.y == 0) || all < LEAST_SQUARES)
        return {alpha, {0, 0}, {0, 0}};
    float root = reciprocal_root(all), norm = all * root;
    float size = fabsf(alpha.x), off = copysignf(size + norm, alpha.x);
    float by = reciprocal(off * off + alpha.y * alpha.y);
    return {{copysignf(norm, -alpha.x), 0},
            {1 + size * root, alpha.y * copysignf(root, alpha.x)},
            {off * by, -alpha.y * by}};
}

/* As reflect_eight. */
template <int GROUPS, int R, int WARPS>
__device__ __forceinline__ void
reflect_complex_eight(float (&re)[R][COMPLEX_COLUMNS],
                      float (&im)[R][COMPLEX_COLUMNS],
                      reflect_memory<2 * COMPLEX_COLUMNS, WARPS> &s,
                      const reflect_thread<R> &me, int g)
{
    constexpr int N = COMPLEX_COLUMNS, W = 2 * N, PARTS = W / 4;
    constexpr int SENDERS = MOST_CLUSTER * PARTS / 32;
    static_assert(2 * SENDERS <= WARPS && W == 32); /* a lane has a number */
    const int lane = me.lane, warp = me.warp, at = (8 * g + lane) % N;
#pragma unroll
    for (int jj = 0; jj < 8; jj++) {
        const int buffer = jj & 1, j = 8 * g + jj;
        float2 below[R], sum = {0, 0}; /* of column `at` */
#pragma unroll
        for (int r = 0; r < R; r++) {
            bool is_below = me.row[r] > j;
            below[r] =
                make_float2(is_below ? re[r][jj] : 0, is_below ? im[r][jj] : 0);
        }
#pragma unroll
        for (int q = 0; q < GROUPS; q++) {
            float p[8] = {}, o[8] = {};
#pragma unroll
            for (int r = 0; r < R; r++)
#pragma unroll
                for (int e = 0; e < 8; e++)
                    if (8 * q + e >= jj) {
                        float x = re[r][8 * q + e], y = im[r][8 * q + e];
                        p[e] = p[e] + below[r].x * x + below[r].y * y;
                        o[e] = o[e] + below[r].x * y - below[r].y * x;
                    }
            float2 of_eight = {add_eight(p, lane), add_eight(o, lane)};
            if (lane / 8 == q)
                sum = of_eight;
        }
        if (lane < 8 * GROUPS) {
            s.part[buffer][warp][at] = sum.x;
            s.part[buffer][warp][N + at] = sum.y;
        }
        if (me.thread == 0)
            expect_bytes(&s.full[buffer], (me.blocks + 1) * W * 4);
        if (me.rank == 0 && me.thread == j)
#pragma unroll
            for (int q = 0; q < N / 4; q++) {
                float *to = &s.own_row[buffer][(8 * g + 4 * q) % N];
                *(float4 *)to = make_float4(re[0][4 * q], re[0][4 * q + 1],
                                            re[0][4 * q + 2], re[0][4 * q + 3]);
                *(float4 *)(to + N) =
                    make_float4(im[0][4 * q], im[0][4 * q + 1],
                                im[0][4 * q + 2], im[0][4 * q + 3]);
            }
        exchange_sums<W>(s, me, buffer, j);
        float some[4] = {};
#pragma unroll
        for (int b = 0; b < MOST_CLUSTER; b++)
            some[b % 4] += s.received[buffer][b][lane];
        const int k = lane % N, is_im = lane >= N;
        float dot = (some[0] + some[1]) + (some[2] + some[3]);
        float on = s.row[buffer][lane];
        float2 alpha = {__shfl_sync(~0u, on, j), __shfl_sync(~0u, on, N + j)};
        complex_reflection h =
            find_complex_reflection(alpha, __shfl_sync(~0u, dot, j));
        if (me.thread == 0) {
            s.tau[2 * j] = h.tau.x;
            s.tau[2 * j + 1] = h.tau.y;
        }
        /* w is tau's conjugate times (on + scale's conjugate times dot) */
        float other_dot = __shfl_xor_sync(~0u, dot, N);
        float other_on = __shfl_xor_sync(~0u, on, N);
        float2 d =
            is_im ? make_float2(other_dot, dot) : make_float2(dot, other_dot);
        float2 t =
            is_im ? make_float2(other_on, on) : make_float2(on, other_on);
        t.x = t.x + h.scale.x * d.x + h.scale.y * d.y;
        t.y = t.y + h.scale.x * d.y - h.scale.y * d.x;
        float w = is_im ? h.tau.x * t.y - h.tau.y * t.x
                        : h.tau.x * t.x + h.tau.y * t.y;
        s.w[warp][lane] = k > j ? w : 0;
        __syncwarp(); /* w is there */
        float2 v[R];
#pragma unroll
        for (int r = 0; r < R; r++) {
            bool is_on = me.row[r] == j;
            v[r].x = below[r].x * h.scale.x - below[r].y * h.scale.y;
            v[r].y = below[r].x * h.scale.y + below[r].y * h.scale.x;
            if (me.row[r] >= j) {
                re[r][jj] = is_on ? h.beta.x : v[r].x;
                im[r][jj] = is_on ? h.beta.y : v[r].y;
            }
            if (is_on)
                v[r] = make_float2(1, 0);
        }
#pragma unroll
        for (int q = 0; q < GROUPS; q++) {
            if (8 * q + 7 <= jj)
                continue;
            const float *from = &s.w[warp][8 * ((g + q) % (N / 8))];
            float x[8], y[8];
#pragma unroll
            for (int e = 0; e < 8; e += 4) {
                *(float4 *)(x + e) = *(const float4 *)(from + e);
                *(float4 *)(y + e) = *(const float4 *)(from + N + e);
            }
#pragma unroll
            for (int e = 0; e < 8; e++)
                if (8 * q + e > jj)
#pragma unroll
                    for (int r = 0; r < R; r++) {
                        float &a = re[r][8 * q + e], &b = im[r][8 * q + e];
                        a = a - v[r].x * x[e] + v[r].y * y[e];
                        b = b - v[r].x * y[e] - v[r].y * x[e];
                    }
        }
    }
    rotate_eight(re);
    rotate_eight(im);
}

/* The two rows of N complex numbers that are doubled. */
__device__ __forceinline__ void
store_doubled_rows(float *to, int64_t ld, const float (&re)[COMPLEX_COLUMNS],
                   const float (&im)[COMPLEX_COLUMNS])
{
    float first[2 * COMPLEX_COLUMNS], second[2 * COMPLEX_COLUMNS];
#pragma unroll
    for (int c = 0; c < COMPLEX_COLUMNS; c++) {
        first[2 * c] = re[c];
        first[2 * c + 1] = -im[c];
        second[2 * c] = im[c];
        second[2 * c + 1] = re[c];
    }
    store_row(to, first);
    store_row(to + ld, second);
}
#endif

/* job's sizes and places are of complex rows and columns, its lengths of rows
 * those of the doubled matrices; tau: of pairs. R rows a thread, T threads a
 * block. */
template <int R, int T>
__global__ void __launch_bounds__(T, 1)
    reflect_complex(const __grid_constant__ reflect_job job)
{
#ifdef HAS_CLUSTERS
    constexpr int N = COMPLEX_COLUMNS, W = 2 * N, WARPS = T / 32;
    __shared__ __align__(16) reflect_memory<W, WARPS> s;
    const int thread = (int)threadIdx.x, m = job.m;
    reflect_thread<R> me = {gridDim.x,   blockIdx.x,  thread,
                            thread & 31, thread >> 5, {}};
    float re[R][N], im[R][N];
    wait_for_previous(); /* the next one's blocks would not lie evenly */
#pragma unroll
    for (int r = 0; r < R; r++) {
        int row = me.row[r] = (int)(r * me.blocks + me.rank) * T + thread;
#pragma unroll
        for (int q = 0; q < N / 2; q++) {
            float4 v = make_float4(0, 0, 0, 0);
            if (row < m)
                v = *(const float4 *)(job.a + 2 * row * job.ld + 4 * q);
            re[r][2 * q] = v.x;
            im[r][2 * q] = -v.y;
            re[r][2 * q + 1] = v.z;
            im[r][2 * q + 1] = -v.w;
        }
    }
    prepare_memory(s, thread, T);
    reflect_complex_eight<2>(re, im, s, me, 0);
    reflect_complex_eight<1>(re, im, s, me, 1);
    __syncthreads(); /* tau is there */
    if (me.rank == 0 && thread < W)
        job.tau[thread] = s.tau[thread];
#pragma unroll
    for (int r = 0; r < R; r++) {
        int row = me.row[r];
        if (row >= m)
            continue;
        store_doubled_rows(job.a + 2 * row * job.ld, job.ld, re[r], im[r]);
#pragma unroll
        for (int c = 0; c < N; c++) {
            re[r][c] = row > c ? re[r][c] : row == c ? 1 : 0;
            im[r][c] = row > c ? im[r][c] : 0;
        }
        store_doubled_rows(job.v + 2 * row * job.ldv, job.ldv, re[r], im[r]);
#pragma unroll
        for (int c = 0; c < N; c++) {
            float2 tau = {s.tau[2 * c], s.tau[2 * c + 1]};
            float2 v = times(tau, make_float2(re[r][c], im[r][c]));
            place_doubled(job.vt, job.ldt, c, row, conjugate(v));
        }
    }
    clear_above<W>(job, 2 * job.above, (int)me.rank * T + thread,
                   (int)me.blocks * T);
    meet_cluster(); /* nobody leaves while others may write to it */
#endif
}

template <int R, int T>
static gpu_status launch_complex(cuda_device *d, const reflect_job *job)
{
    return launch_reflecting<reflect_complex<R, T>, R, T>(d, job);
}

/* COMPLEX_COLUMNS columns of up to 16384 rows. */
static gpu_status find_complex_reflections(cuda_device *d,
                                           const reflect_job *job)
{
    if (job->m > 12288)
        return launch_complex<4, 256>(d, job);
    if (job->m > 8192)
        return launch_complex<3, 256>(d, job);
    if (job->m > 4096)
        return launch_complex<2, 256>(d, job);
    return launch_complex<1, 256>(d, job);
}

#endif
