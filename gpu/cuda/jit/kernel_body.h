/* The text that kernels compiled for elementwise programs end with. Before it
 * stand, beside what kernel_inputs_body.h wants,
 *   QUADS      how many fours of elements a thread has, all on their way at
 *              once
 *   IS_ROW     1: everything is one row, along which they lie; 0: one below
 *              the other
 *   IS_WIDE    1: a four is neighbours, of 16 bytes; 0: elements as far apart
 *              as a block has threads side by side
 *   IS_LONG    1: one element after the other, as arithmetic takes longer than
 *              memory, and a program that is there once stays in the cache of
 *              instructions
 *   IN_PLACE   1: the result is written where an input lies, of which it may
 *              keep most; fours that stay as they are are not written
 *   BEFORE     then: the name of that input's elements
 *   EXTRAS     how many further results there are
 *   TURNED     how many inputs lie along columns: a block has a tile then, and
 *              reads those from shared memory
 *
 * Limited by bytes, so a thread reads all it needs before it computes, and
 * blocks come and go, which is faster than a few that stay. */
#include "kernel_inputs_body.h"
#if TURNED
#include "turn_body.h"
#endif

/* A thread's elements: number k of the four q is at row i + q di, column
 * j + q dj + k step. tiles: from its own column on, and its next fours. */
struct place {
    int64 i, j, di, dj, step;
    const T *tiles;
};

/* Of the element that is k-th of the four q what input number TILE of those
 * that are turned has. */
template <int TILE>
__device__ __forceinline__ T read_turned(const place &p, int q, int k)
{
#if TURNED
    return p.tiles[TILE * SIDE * SIDE + (q * ITEMS + k) * TURN_THREADS];
#else
    return 0;
#endif
}

/* One of them, of any input. */
template <class S, int WAY, int NUMBER>
__device__ __forceinline__ T read_item(const jit_job &job,
                                       const jit_operand &in, const place &p,
                                       int q, int k)
{
    if (WAY == JIT_TURNED)
        return read_turned<NUMBER>(p, q, k);
    return read_one<S, WAY, NUMBER>(job, in, p.i + q * p.di,
                                    p.j + q * p.dj + k * p.step);
}

/* All of a thread's elements, which are there. */
template <class S, int WAY, int NUMBER>
__device__ __forceinline__ void read_all(const jit_job &job,
                                         const jit_operand &in, const place &p,
                                         T (&to)[QUADS][ITEMS])
{
    const S *data = (const S *)in.data;
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        int64 i = p.i + q * p.di, j = p.j + q * p.dj;
#if DRAWS
        if constexpr (WAY >= JIT_UNIFORM && IS_WIDE) {
            draw_four<WAY>(job.draw[NUMBER], i * in.row_stride + j, to[q]);
            continue;
        }
#endif
        if (WAY == JIT_WIDE) {
            read_four(data + i * in.row_stride + j, to[q]);
        } else if (WAY == JIT_ROW && (IS_ROW || q == 0)) {
            read_four(data + j, to[q]);
        } else {
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                to[q][k] = WAY == JIT_ROW ? to[0][k]
                           : (WAY == JIT_COLUMN || WAY == JIT_SAME) && k > 0
                               ? to[q][0]
                               : read_item<S, WAY, NUMBER>(job, in, p, q, k);
        }
    }
}

/* Where an element of any result lies. */
__device__ __forceinline__ int64 offset(const jit_job &job, int64 i, int64 j)
{
    return i * job.out.row_stride + (IS_WIDE ? j : j * job.out.col_stride);
}

__device__ __forceinline__ place own_place(const jit_job &job)
{
    place p;
    const int each = IS_WIDE ? ITEMS : 1;
    if (IS_ROW) {
        p.i = p.di = 0;
        p.dj = JIT_THREADS * ITEMS;
        p.j = (int64)blockIdx.x * (JIT_THREADS * ITEMS * QUADS) +
              (int)threadIdx.x * each;
        p.step = IS_WIDE ? 1 : JIT_THREADS;
        return p;
    }
    unsigned band = blockIdx.x / job.across;
    unsigned beside = blockIdx.x - band * job.across;
    p.di = blockDim.y;
    p.dj = 0;
    p.i = (int64)band * (QUADS * blockDim.y) + threadIdx.y;
    p.j = (int64)beside * (blockDim.x * ITEMS) + threadIdx.x * each;
    p.step = IS_WIDE ? 1 : blockDim.x;
    return p;
}

#define READ(n, S, WAY, NUMBER) \
    T in##n[QUADS][ITEMS];      \
    read_all<S, WAY, NUMBER>(job, job.in[n], p, in##n);
#define ITEM(n, S, WAY, NUMBER) , in##n[q][k]
#define READ_ONE(n, S, WAY, NUMBER) \
    , read_item<S, WAY, NUMBER>(job, job.in[n], p, q, k)

/* Does the result have other bits than what it would be written over? */
__device__ __forceinline__ bool differs(float x, float y)
{
    return __builtin_bit_cast(unsigned, x) != __builtin_bit_cast(unsigned, y);
}

__device__ __forceinline__ bool differs(double x, double y)
{
    return __builtin_bit_cast(int64, x) != __builtin_bit_cast(int64, y);
}

template <class S>
__device__ __forceinline__ bool differs(const quad<S> &r, const S (&old)[ITEMS])
{
    return differs(r.at[0], old[0]) | differs(r.at[1], old[1]) |
           differs(r.at[2], old[2]) | differs(r.at[3], old[3]);
}

__device__ __forceinline__ void write_four(const jit_job &job, const place &p,
                                           const quad<RESULT> &r, RESULT *to)
{
    if (IS_WIDE) {
        *(quad<RESULT> *)to = r;
        return;
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        to[k * p.step * job.out.col_stride] = r.at[k];
}

__device__ __forceinline__ void run_all(const jit_job &job, const place &p)
{
    INPUTS(READ)
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        int64 at = offset(job, p.i + q * p.di, p.j + q * p.dj);
        quad<RESULT> r, more[EXTRAS + 1];
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            T extra[EXTRAS + 1];
            r.at[k] = narrowed(value(job, extra INPUTS(ITEM)));
#pragma unroll
            for (int e = 0; e < EXTRAS; e++)
                more[e].at[k] = narrowed(extra[e]);
        }
#if IN_PLACE
        if (!differs(r, BEFORE[q]))
            continue;
#endif
        write_four(job, p, r, (RESULT *)job.out.data + at);
#pragma unroll
        for (int e = 0; e < EXTRAS; e++)
            write_four(job, p, more[e], (RESULT *)job.extra[e] + at);
    }
}

/* Of the elements those that are there. */
__device__ __forceinline__ void run_part(const jit_job &job, const place &p)
{
#pragma unroll 1
    for (int n = 0; n < QUADS * ITEMS; n++) {
        int q = n / ITEMS, k = n % ITEMS;
        int64 i = p.i + q * p.di, j = p.j + q * p.dj + k * p.step;
        if (i >= job.rows || j >= job.cols)
            continue;
        T extra[EXTRAS + 1];
        int64 at = offset(job, i, j);
        ((RESULT *)job.out.data)[at] =
            narrowed(value(job, extra INPUTS(READ_ONE)));
#pragma unroll
        for (int e = 0; e < EXTRAS; e++)
            ((RESULT *)job.extra[e])[at] = narrowed(extra[e]);
    }
}

__device__ __forceinline__ void run(const jit_job &job, const place &p)
{
    int64 last_i = p.i + (QUADS - 1) * p.di;
    int64 last_j = p.j + (QUADS - 1) * p.dj + (ITEMS - 1) * p.step;
    if (!IS_LONG && last_i < job.rows && last_j < job.cols)
        run_all(job, p);
    else
        run_part(job, p);
}

#if TURNED
template <class S, int WAY, int NUMBER>
__device__ __forceinline__ void fill(const jit_job &job, const jit_operand &in,
                                     int64 i, int64 j, T *tiles)
{
    if (WAY != JIT_TURNED)
        return;
    tile_source<S> from = {(const S *)in.data + i * in.row_stride +
                               j * in.col_stride,
                           in.row_stride,
                           in.col_stride,
                           job.rows - i,
                           job.cols - j,
                           !IS_WIDE,
                           0};
    fill_tile(from, tiles + NUMBER * SIDE * SIDE);
}

#define FILL(n, S, WAY, NUMBER) \
    fill<S, WAY, NUMBER>(job, job.in[n], i, j, tiles);

extern "C" __global__ void __launch_bounds__(TURN_THREADS)
    compiled(const __grid_constant__ jit_job job)
{
    __shared__ T tiles[TURNED * SIDE * SIDE];
    const int t = threadIdx.x, c = t % TURN_ACROSS;
    int64 i, j;
    find_tile(blockIdx.x, (unsigned)((job.rows + SIDE - 1) / SIDE), job.across,
              &i, &j);
    INPUTS(FILL)
    __syncthreads(); /* the tiles are there */
    place p = {i + t / TURN_ACROSS,
               j + c * (IS_WIDE ? (int)ITEMS : 1),
               TURN_DOWN,
               0,
               IS_WIDE ? 1 : TURN_ACROSS,
               tiles + own_column(t)};
#pragma unroll 1
    for (int q = 0; q < TURN_FOURS; q += QUADS) {
        run(job, p);
        p.i += QUADS * TURN_DOWN;
        p.tiles += QUADS * ITEMS * TURN_THREADS;
    }
}
#else
extern "C" __global__ void __launch_bounds__(JIT_THREADS)
    compiled(const __grid_constant__ jit_job job)
{
    run(job, own_place(job));
}
#endif
