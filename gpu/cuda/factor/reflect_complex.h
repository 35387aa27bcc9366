/* The innermost part of QR in c64: 16 columns of up to 16384 rows by
 * Householder's reflections, in the registers of one cluster, as
 * reflect_columns.h has it of real ones. Columns come and go doubled, as
 * padded.h tells, so that all that is around this is real products: of a pair
 * of rows the first is read.
 *
 * Limited by the same exchange of one message a column, of as many numbers.
 * Source: LAPACK's geqr2 and larfg, whose form the result has: R's diagonal is
 * real where something is reflected, tau complex. Needs sm_90. */
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

/* As reflect_one. */
template <int GROUPS, int R, int WARPS>
__device__ __forceinline__ void
reflect_complex_one(float (&re)[R][COMPLEX_COLUMNS],
                    float (&im)[R][COMPLEX_COLUMNS],
                    reflect_memory<2 * COMPLEX_COLUMNS, WARPS> &s,
                    const reflect_thread<R> &me, int j)
{
    constexpr int N = COMPLEX_COLUMNS, W = 2 * N;
    static_assert(W == 32); /* a lane has a number */
    const int lane = me.lane, warp = me.warp, buffer = j & 1;
    float2 below[R], sum = {0, 0}; /* of column `lane` */
#pragma unroll
    for (int r = 0; r < R; r++) {
        bool is_below = me.row[r] > j;
        below[r] =
            make_float2(is_below ? re[r][0] : 0, is_below ? im[r][0] : 0);
    }
#pragma unroll
    for (int q = 0; q < 2 * GROUPS; q++) { /* one part, then the other */
        float p[8] = {};
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int e = 0; e < 8; e++) {
                float x = re[r][q / 2 * 8 + e], y = im[r][q / 2 * 8 + e];
                p[e] = q % 2 ? p[e] + below[r].x * y - below[r].y * x
                             : p[e] + below[r].x * x + below[r].y * y;
            }
        float of_eight = add_eight(p, lane);
        if (lane / 8 == q / 2)
            (q % 2 ? sum.y : sum.x) = of_eight;
    }
    if (lane < 8 * GROUPS) {
        s.part[buffer][warp][lane] = sum.x;
        s.part[buffer][warp][N + lane] = sum.y;
    }
    if (me.thread == 0)
        expect_bytes(&s.full[buffer], (me.blocks + 1) * W * 4);
    if (me.rank == 0 && me.thread == j) {
        store_row(s.own_row[buffer], re[0]);
        store_row(s.own_row[buffer] + N, im[0]);
    }
    exchange_sums<W>(s, me, buffer, j);
    float some[4] = {};
#pragma unroll
    for (int b = 0; b < MOST_CLUSTER; b++)
        some[b % 4] += s.received[buffer][b][lane];
    const int k = lane % N, is_im = lane >= N;
    float dot = (some[0] + some[1]) + (some[2] + some[3]);
    float on = s.row[buffer][lane];
    float2 alpha = {__shfl_sync(~0u, on, 0), __shfl_sync(~0u, on, N)};
    complex_reflection h =
        find_complex_reflection(alpha, __shfl_sync(~0u, dot, 0));
    if (me.thread == 0) {
        s.tau[2 * j] = h.tau.x;
        s.tau[2 * j + 1] = h.tau.y;
    }
    /* w is tau's conjugate times (on + scale's conjugate times dot) */
    float other_dot = __shfl_xor_sync(~0u, dot, N);
    float other_on = __shfl_xor_sync(~0u, on, N);
    float2 d =
        is_im ? make_float2(other_dot, dot) : make_float2(dot, other_dot);
    float2 t = is_im ? make_float2(other_on, on) : make_float2(on, other_on);
    t.x = t.x + h.scale.x * d.x + h.scale.y * d.y;
    t.y = t.y + h.scale.x * d.y - h.scale.y * d.x;
    float w =
        is_im ? h.tau.x * t.y - h.tau.y * t.x : h.tau.x * t.x + h.tau.y * t.y;
    s.w[warp][lane] = k > 0 && k < N - j ? w : 0;
    __syncwarp(); /* w is there */
    float2 v[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        bool is_on = me.row[r] == j, is_below = me.row[r] > j;
        float x = re[r][0], y = im[r][0];
        v[r] = make_float2(x * h.scale.x - y * h.scale.y,
                           x * h.scale.y + y * h.scale.x);
        re[r][0] = is_below ? v[r].x : is_on ? h.beta.x : x;
        im[r][0] = is_below ? v[r].y : is_on ? h.beta.y : y;
        v[r] = make_float2(is_below ? v[r].x : is_on, is_below ? v[r].y : 0);
    }
#pragma unroll
    for (int e = 0; e < 8 * GROUPS; e += 4) {
        float4 x4 = *(const float4 *)&s.w[warp][e];
        float4 y4 = *(const float4 *)&s.w[warp][N + e];
        float x[4] = {x4.x, x4.y, x4.z, x4.w}, y[4] = {y4.x, y4.y, y4.z, y4.w};
#pragma unroll
        for (int c = 0; c < 4; c++)
#pragma unroll
            for (int r = 0; r < R; r++) {
                float &a = re[r][e + c], &b = im[r][e + c];
                a = a - v[r].x * x[c] + v[r].y * y[c];
                b = b - v[r].x * y[c] - v[r].y * x[c];
            }
    }
    rotate(re);
    rotate(im);
}

/* The two rows of N complex numbers that are doubled. */
__device__ __forceinline__ void
store_doubled_rows(float *to, int64_t ld, const float (&re)[COMPLEX_COLUMNS],
                   const float (&im)[COMPLEX_COLUMNS])
{
#pragma unroll
    for (int c = 0; c < COMPLEX_COLUMNS; c += 2) {
        float4 *first = (float4 *)(to + 2 * c), *second = first + ld / 4;
        *first = make_float4(re[c], -im[c], re[c + 1], -im[c + 1]);
        *second = make_float4(im[c], re[c], im[c + 1], re[c + 1]);
    }
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
#pragma unroll 1
    for (int j = 0; j < 8; j++)
        reflect_complex_one<2>(re, im, s, me, j);
#pragma unroll 1
    for (int j = 8; j < N; j++)
        reflect_complex_one<1>(re, im, s, me, j);
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
