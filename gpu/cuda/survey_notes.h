/* What a thread of a survey knows, and how it takes in its elements: one by
 * one, or four at once where all are finite and not zero. */
#ifndef GPU_CUDA_SURVEY_NOTES_H
#define GPU_CUDA_SURVEY_NOTES_H

#include "survey.h"
#include "view.h"

enum { THREADS = 256, WARPS = THREADS / 32, ITEMS = 4, SIDE = 32 };
enum { TILE_BITS = 10, TILE = 1 << TILE_BITS, SIDE_BITS = 5, LEAST_BITS = 2 };
enum { BLOCKS_PER_SM = 4 };

typedef struct survey_job {
    gpu_view v; /* a thread's four elements are neighbours in a row of it */
    int turned; /* it is the transpose of what was asked for */
    int bits;   /* a tile is 2^bits wide, and as high as 1024 elements go */
    int wide;   /* every four may be read at once, as far as a tile is full */
    int64_t right, below; /* from a tile to the next, in memory */
    int64_t across, full_across, full_down; /* tiles; those that are full */
    int64_t units, run; /* tiles or pairs of tiles; for one block */
    double scale;
    gpu_survey *parts; /* one a block */
} survey_job;

/* What a thread knows but seldom changes: in shared memory, where it takes no
 * registers. */
typedef struct seldom {
    int64_t low_at, high_at, odd_at;
    unsigned zeros, nan, inf, subnormal;
} seldom;

/* What a thread knows. */
template <class T> struct notes {
    double origin, sum, squares;
    T low, high, asymmetry;
    int64_t lower, upper;
    unsigned finite;
    seldom *more;
};

template <class T> __device__ __forceinline__ T infinity()
{
    return (T)__longlong_as_double(0x7ff0000000000000);
}

template <class T> __device__ __forceinline__ notes<T> nothing(seldom *more)
{
    notes<T> own = {};
    own.low = infinity<T>();
    own.high = -infinity<T>();
    own.more = more;
    *more = {-1, -1, -1, 0, 0, 0, 0};
    own.lower = own.upper = GPU_NO_BAND;
    return own;
}

/* A thread's four elements of a tile. */
template <class T> struct cut {
    T at[ITEMS];
};

/* Tile (p, q); in a full one every thread's four elements exist. */
typedef struct spot {
    int64_t p, q;
    bool is_full;
} spot;

__device__ __forceinline__ int64_t row_of(const survey_job &job, const spot &s)
{
    return (s.p << (TILE_BITS - job.bits)) + (threadIdx.x * ITEMS >> job.bits);
}

/* Of the first of the four. */
__device__ __forceinline__ int64_t column_of(const survey_job &job,
                                             const spot &s)
{
    return (s.q << job.bits) + (threadIdx.x * ITEMS & ((1u << job.bits) - 1));
}

__device__ __forceinline__ bool exists(const survey_job &job, const spot &s,
                                       int k)
{
    return row_of(job, s) < job.v.rows && column_of(job, s) + k < job.v.cols;
}

/* --- one element ---------------------------------------------------------- */

/* Neither zero, subnormal, infinite nor NaN: told by its exponent. */
__device__ __forceinline__ bool is_plain(float x)
{
    unsigned bits = __float_as_uint(x) & 0x7fffffff;
    return bits - 0x00800000u < 0x7f000000u;
}

__device__ __forceinline__ bool is_plain(double x)
{
    unsigned bits = (unsigned)__double2hiint(x) & 0x7fffffff;
    return bits - 0x00100000u < 0x7fe00000u;
}

template <class T>
__device__ __forceinline__ double scaled(const survey_job &job, T x)
{
    return sizeof(T) == sizeof(double) ? (double)x * job.scale : (double)x;
}

/* Rare, so that it may cost: x equals or betters one of the extremes. */
template <class T>
__device__ void note_extreme(const survey_job &job, notes<T> &own, T x,
                             int64_t i, int64_t j)
{
    int64_t at = gpu_survey_place(&job.v, job.turned, i, j);
    if (gpu_survey_beats((double)x, at, (double)own.low, own.more->low_at))
        own.low = x, own.more->low_at = at;
    if (gpu_survey_beats(-(double)x, at, -(double)own.high, own.more->high_at))
        own.high = x, own.more->high_at = at;
}

template <class T>
__device__ void note_odd(const survey_job &job, notes<T> &own, T x, int64_t i,
                         int64_t j)
{
    int64_t at = gpu_survey_place(&job.v, job.turned, i, j);
    own.more->nan += x != x;
    own.more->inf += x == x;
    if (own.more->odd_at < 0 || at < own.more->odd_at)
        own.more->odd_at = at;
}

template <class T>
__device__ void note(const survey_job &job, notes<T> &own, T x, int64_t i,
                     int64_t j)
{
    if (x != 0) {
        own.lower = max(own.lower, i - j);
        own.upper = max(own.upper, j - i);
    }
    if (x - x != 0) {
        note_odd(job, own, x, i, j);
        return;
    }
    own.more->zeros += x == 0;
    own.more->subnormal += x != 0 && !is_plain(x);
    if (own.finite++ == 0)
        own.origin = scaled(job, x);
    double apart = scaled(job, x) - own.origin;
    own.sum += apart;
    own.squares = fma(apart, apart, own.squares);
    if (x <= own.low || x >= own.high)
        note_extreme(job, own, x, i, j);
}

/* --- extremes of a warp --------------------------------------------------- */

/* A warp's threads go by its extremes, not by their own: a thread's are beaten
 * every now and then for long, a warp's hardly ever, and it waits for each. An
 * extreme that several threads know with its place does no harm. */
template <class T> __device__ void share_extremes(notes<T> &own)
{
    int64_t low_at = own.more->low_at, high_at = own.more->high_at;
#pragma unroll 1
    for (int apart = 16; apart > 0; apart /= 2) {
        T low = __shfl_xor_sync(~0u, own.low, apart);
        T high = __shfl_xor_sync(~0u, own.high, apart);
        int64_t at = __shfl_xor_sync(~0u, low_at, apart);
        if (gpu_survey_beats((double)low, at, (double)own.low, low_at))
            own.low = low, low_at = at;
        at = __shfl_xor_sync(~0u, high_at, apart);
        if (gpu_survey_beats(-(double)high, at, -(double)own.high, high_at))
            own.high = high, high_at = at;
    }
    own.more->low_at = low_at;
    own.more->high_at = high_at;
}

/* Is there an extreme among the four? Of equals the first counts: what comes
 * later changes nothing. */
template <class T>
__device__ __forceinline__ bool beat_extremes(const survey_job &job,
                                              const notes<T> &own,
                                              const cut<T> &x, const spot &s)
{
    T low = min(min(x.at[0], x.at[1]), min(x.at[2], x.at[3]));
    T high = max(max(x.at[0], x.at[1]), max(x.at[2], x.at[3]));
    if (low > own.low && high < own.high)
        return false;
    int64_t at =
        gpu_survey_place(&job.v, job.turned, row_of(job, s), column_of(job, s));
    return low < own.low || high > own.high ||
           (low == own.low && at < own.more->low_at) ||
           (high == own.high && at < own.more->high_at);
}

/* By all threads of a warp together; those whose elements are not plain have
 * noted them. */
template <class T>
__device__ __forceinline__ void
note_four_extremes(const survey_job &job, notes<T> &own, const cut<T> &x,
                   const spot &s, bool plain)
{
    bool is_new = plain && beat_extremes(job, own, x, s);
    if (!__any_sync(~0u, is_new))
        return;
    for (int k = 0; is_new && k < ITEMS; k++)
        note_extreme(job, own, x.at[k], row_of(job, s), column_of(job, s) + k);
    share_extremes(own);
}

/* --- four elements -------------------------------------------------------- */

/* One by one: some do not exist, or are special. */
template <class T>
__device__ void note_special(const survey_job &job, notes<T> &own, cut<T> x,
                             spot s)
{
#pragma unroll 1
    for (int k = 0; k < ITEMS; k++) {
        if (s.is_full || exists(job, s, k))
            note(job, own, x.at[0], row_of(job, s), column_of(job, s) + k);
        x.at[0] = x.at[1];
        x.at[1] = x.at[2];
        x.at[2] = x.at[3];
    }
}

/* All finite and not zero. */
template <class T>
__device__ __forceinline__ void note_plain(const survey_job &job, notes<T> &own,
                                           const cut<T> &x, const spot &s)
{
    if (own.finite == 0)
        own.origin = scaled(job, x.at[0]);
    own.finite += ITEMS;
    double apart[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        apart[k] = scaled(job, x.at[k]) - own.origin;
        own.squares = fma(apart[k], apart[k], own.squares);
    }
    own.sum += (apart[0] + apart[1]) + (apart[2] + apart[3]);
    int64_t down = row_of(job, s) - column_of(job, s);
    own.lower = max(own.lower, down);
    own.upper = max(own.upper, ITEMS - 1 - down);
}

template <class T>
__device__ __forceinline__ void note_four(const survey_job &job, notes<T> &own,
                                          const cut<T> &x, const spot &s)
{
    bool plain = s.is_full;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        plain = plain && is_plain(x.at[k]);
    if (plain)
        note_plain(job, own, x, s);
    else
        note_special(job, own, x, s);
    note_four_extremes(job, own, x, s, plain);
}

#endif
