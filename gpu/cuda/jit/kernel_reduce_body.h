/* The text that kernels end with which reduce the results of a program. Before
 * it stand, beside what kernel_inputs_body.h wants,
 *   KIND       the reduction, one of op_list.h
 *   QUADS      how many fours of elements a thread begins to read at once
 *   IS_WIDE    1: a four is neighbours
 *   IS_LONG    1: one element after the other (then QUADS is 1), as the program
 *              is long: see kernel_body.h
 *
 * A program costs little beside what is read, so that a pass takes as long as
 * one over elements that are there. */
#include "op_list.h"
#include "kernel_inputs_body.h"
#include "reduce_body.h"

/* A few blocks stay on a multiprocessor, each of which has this much to read
 * on its way: registers are for that, not for more blocks. */
enum { BLOCKS = sizeof(T) == sizeof(float) ? 8 : 4 };

struct compiled_for {
    const jit_job &job;
};

/* N fours of an input, from element j of the line on. */
template <class S, int WAY, int N>
__device__ __forceinline__ void
read_fours(const jit_job &job, const jit_operand &in, const stretch &of,
           int64 j, T (&to)[N][ITEMS])
{
    const S *data = (const S *)in.data;
#pragma unroll
    for (int n = 0; n < N; n++, j += of.step) {
        if constexpr (WAY == JIT_WIDE || WAY == JIT_ROW) {
            read_four(data + of.line * in.row_stride + j, to[n]);
        } else {
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                to[n][k] = (WAY == JIT_COLUMN || WAY == JIT_SAME) && n + k > 0
                               ? to[0][0]
                               : read_one<S, WAY, 0>(job, in, of.line,
                                                     j + k * of.apart);
        }
    }
}

#define READ(n, S, WAY, DRAWN) \
    T in##n[N][ITEMS];         \
    read_fours<S, WAY, N>(job, job.in[n], of, j, in##n);
#define ITEM(n, S, WAY, DRAWN) , in##n[q][k]
#define READ_ONE(n, S, WAY, DRAWN) \
    , read_one<S, WAY, DRAWN>(job, job.in[n], of.line, j)
#define FIRST(n, S, WAY, DRAWN) , in##n[0][0]
#define TAKE_TURNS(n, S, WAY, DRAWN) \
    in##n[0][0] = in##n[0][1];       \
    in##n[0][1] = in##n[0][2];       \
    in##n[0][2] = in##n[0][3];

/* Makes the next of four the last. */
__device__ __forceinline__ void push_back(quad<T> *r, T x)
{
    r->at[0] = r->at[1];
    r->at[1] = r->at[2];
    r->at[2] = r->at[3];
    r->at[3] = x;
}

/* The results for N fours that are there. */
template <int N>
__device__ __forceinline__ void run_fours(const jit_job &job, const stretch &of,
                                          int64 j, quad<T> (&r)[N])
{
    INPUTS(READ)
    if (IS_LONG) {
#pragma unroll 1
        for (int turn = 0; turn < ITEMS; turn++) {
            push_back(&r[0], value(job, (T *)0 INPUTS(FIRST)));
            INPUTS(TAKE_TURNS)
        }
        return;
    }
#pragma unroll
    for (int q = 0; q < N; q++)
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            r[q].at[k] = value(job, (T *)0 INPUTS(ITEM));
}

template <class P>
__device__ __forceinline__ void take_whole(const compiled_for &work, int kind,
                                           const stretch &of, int64 *j,
                                           running<P, T> *own)
{
    int64 reach = (QUADS - 1) * of.step + (ITEMS - 1) * of.apart;
    for (; *j + reach < of.end; *j += QUADS * of.step) {
        quad<T> r[QUADS];
        run_fours(work.job, of, *j, r);
#pragma unroll
        for (int q = 0; q < QUADS; q++)
            take(kind, own, r[q], ITEMS);
    }
}

/* Those that are missing are 0. */
__device__ __forceinline__ quad<T>
read_some(const compiled_for &work, const stretch &of, int64 j, int count)
{
    const jit_job &job = work.job;
    quad<T> r[1];
    if (count == ITEMS && QUADS > 1) {
        run_fours(job, of, j, r);
        return r[0];
    }
#pragma unroll 1
    for (int k = 0; k < ITEMS; k++, j += of.apart)
        push_back(&r[0],
                  k < count ? value(job, (T *)0 INPUTS(READ_ONE)) : (T)0);
    return r[0];
}

template <class P>
__device__ __forceinline__ void finish(const compiled_for &work, int64 line,
                                       P r)
{
    const jit_operand &out = work.job.out;
    RESULT *to = (RESULT *)out.data + line * out.row_stride;
    *to = narrowed(number_of(r));
}

/* What is known now is not looked at again. */
extern "C" __global__ void __launch_bounds__(JIT_FOLD_THREADS, BLOCKS)
    compiled(const __grid_constant__ jit_reduction r)
{
    typedef typename partial_of<KIND>::type partial;
    __shared__ partial shared[JIT_FOLD_THREADS];
    jit_lines lines = r.lines;
    lines.kind = KIND;
    lines.neighbours = IS_WIDE;
    reduce_lines<T>(lines, compiled_for{r.job}, shared);
}
