/* Tiles on their way into shared memory, a stage or two ahead of those that
 * are being looked at. */
#ifndef GPU_CUDA_SURVEY_STAGE_H
#define GPU_CUDA_SURVEY_STAGE_H

#include "survey_notes.h"

/* What is computed with: bool, stored in bytes, as float. */
template <class S> struct computed {
    typedef S type;
};
template <> struct computed<uint8_t> {
    typedef float type;
};
#define COMPUTED(S) typename computed<S>::type

/* Starts copying an element. Bytes come at once, as the hardware copies no
 * single ones. */
template <class S> __device__ __forceinline__ void bring(S *to, const S *from)
{
    if constexpr (sizeof(S) == 1) {
        *to = *from != 0;
    } else {
        unsigned place = (unsigned)__cvta_generic_to_shared(to);
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place),
                     "l"(from), "n"(sizeof(S))
                     : "memory");
    }
}

__device__ __forceinline__ void bring_16_bytes(void *to, const void *from)
{
    unsigned place = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place),
                 "l"(from)
                 : "memory");
}

__device__ __forceinline__ void end_stage()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Stages in shared memory; three pairs of tiles of f64 would not fit. */
template <class S> __host__ __device__ constexpr int stages()
{
    return sizeof(S) == 8 ? 2 : 3;
}

/* The oldest stage has come. */
template <class S> __device__ __forceinline__ void wait_for_stage()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(stages<S>() - 2) : "memory");
}

template <class S> __device__ __forceinline__ int after(int stage)
{
    return stage + 1 < stages<S>() ? stage + 1 : 0;
}

/* The thread's four elements, the first of them at from; 0 for those that do
 * not exist. */
template <class S>
__device__ __forceinline__ void bring_four(const survey_job &job, S *to,
                                           const S *from, const spot &s)
{
    if (s.is_full && job.wide) {
        bring_16_bytes(to, from);
        if (sizeof(S) == 8)
            bring_16_bytes(to + 2, from + 2);
        return;
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (s.is_full || exists(job, s, k))
            bring(to + k, from + k * job.v.col_stride);
        else
            to[k] = 0;
    }
}

template <class S> struct alignas(4 * sizeof(S)) quad {
    S at[ITEMS];
};

template <class S>
__device__ __forceinline__ cut<COMPUTED(S)> take_four(const S *from)
{
    quad<S> four = *(const quad<S> *)from;
    cut<COMPUTED(S)> x;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        x.at[k] = (COMPUTED(S))four.at[k];
    return x;
}

/* Where the thread's first element of a tile lies. */
template <class S>
__device__ __forceinline__ const S *start_of(const survey_job &job, int64_t p,
                                             int64_t q)
{
    spot s = {p, q, false};
    return (const S *)job.v.data +
           place(job.v, row_of(job, s), column_of(job, s));
}

#endif
