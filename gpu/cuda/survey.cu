/* Surveys and histograms on the GPU. A survey is everything there is to know of
 * a matrix in one pass over it. Limited by bytes in f64; in f32 by the work on
 * an element.
 *
 * Blocks walk over tiles of 1024 elements, four for a thread, while the next
 * ones come into shared memory. A square matrix is taken in pairs of tiles that
 * face each other over the diagonal: the one is read in columns beside the
 * other's rows, so its asymmetry needs no second reading. Every thread sums
 * distances from the first finite element it met: that one being among the
 * elements, the squares lose at most as many digits as a thread has elements.
 * Partition and order depend only on the shape and the device, so results
 * repeat bit for bit. */
#include "cuda_device.h"
#include "survey.h"

/* --- what a thread knows ----------------------------------------------------
 * What a thread of a survey knows, and how it takes in its elements: one by
 * one, or four at once where all are finite and not zero. */

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

/* --- stages -----------------------------------------------------------------
 * Tiles on their way into shared memory, a stage or two ahead of those that
 * are being looked at. */

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
        unsigned place = shared_address(to);
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place),
                     "l"(from), "n"(sizeof(S))
                     : "memory");
    }
}

__device__ __forceinline__ void bring_16_bytes(void *to, const void *from)
{
    unsigned place = shared_address(to);
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

/* --- tiles ---------------------------------------------------------------- */

/* A block's units of work, in order: unit number `unit` is tile (p, q). */
typedef struct walk {
    int64_t unit, end, p, q;
} walk;

__device__ __forceinline__ spot here_is(const survey_job &job, const walk &w)
{
    return {w.p, w.q, w.p < job.full_down && w.q < job.full_across};
}

__device__ __forceinline__ walk first_tile(const survey_job &job)
{
    int64_t unit = blockIdx.x * job.run, p = unit / job.across;
    return {unit, min(unit + job.run, job.units), p, unit - p * job.across};
}

__device__ __forceinline__ void next_tile(const survey_job &job, walk *w)
{
    w->unit++;
    if (++w->q == job.across)
        w->q = 0, w->p++;
}

/* The walk that brings tiles, and where it is in memory. */
template <class S> struct bringer {
    walk at;
    const S *from, *facing; /* the second only of pairs */
};

template <class S>
__device__ __forceinline__ void bring_tile(const survey_job &job, S *stage,
                                           bringer<S> &b)
{
    if (b.at.unit < b.at.end)
        bring_four(job, stage + threadIdx.x * ITEMS, b.from,
                   here_is(job, b.at));
    end_stage();
    next_tile(job, &b.at);
    b.from += job.right;
    if (b.at.q == 0)
        b.from = start_of<S>(job, b.at.p, 0);
}

/* Nobody reads another thread's elements: no barriers. */
template <class S>
__device__ void survey_tiles(const survey_job &job, notes<COMPUTED(S)> &own)
{
    __shared__ alignas(32) S stage[stages<S>()][TILE];
    walk here = first_tile(job);
    bringer<S> b = {here, start_of<S>(job, here.p, here.q), NULL};
    int last = stages<S>() - 1;
    for (int n = 0; n < last; n++)
        bring_tile(job, stage[n], b);
    for (int n = 0; here.unit < here.end;
         n = after<S>(n), last = after<S>(last)) {
        wait_for_stage<S>();
        bring_tile(job, stage[last], b);
        note_four(job, own, take_four(&stage[n][threadIdx.x * ITEMS]),
                  here_is(job, here));
        next_tile(job, &here);
    }
}

/* --- pairs of tiles ------------------------------------------------------- */

/* Unit (p, q), p <= q, is the tiles (p, q) and (q, p); they go in rows. */
__device__ __forceinline__ walk first_pair(const survey_job &job)
{
    int64_t unit = blockIdx.x * job.run, across = job.across;
    double b = 2.0 * (double)across + 1;
    int64_t p = (int64_t)((b - sqrt(b * b - 8.0 * (double)unit)) / 2);
    while (p > 0 && p * across - p * (p - 1) / 2 > unit)
        p--;
    while ((p + 1) * across - (p + 1) * p / 2 <= unit)
        p++;
    return {unit, min(unit + job.run, job.units), p,
            p + unit - (p * across - p * (p - 1) / 2)};
}

__device__ __forceinline__ void next_pair(const survey_job &job, walk *w)
{
    w->unit++;
    if (++w->q == job.across)
        w->q = ++w->p;
}

/* The tile that faces. As p <= q, both are full or none is. */
__device__ __forceinline__ spot facing_is(const survey_job &job, const walk &w)
{
    return {w.q, w.p, w.q < job.full_across};
}

/* A facing tile is written in rows and read in columns. The four of a thread
 * stay together, and change places within their row by an exclusive or, so
 * that a warp meets no bank twice in either direction. */
enum { FOURS = SIDE / ITEMS };

__device__ __forceinline__ int place_in_facing()
{
    int row = threadIdx.x / FOURS, four = threadIdx.x % FOURS;
    return row * SIDE + (four ^ row / ITEMS) * ITEMS;
}

/* Of the element that faces the thread's first; the others' are rows below. */
__device__ __forceinline__ int place_that_faces()
{
    int col = threadIdx.x / FOURS, four = threadIdx.x % FOURS;
    return four * ITEMS * SIDE + (col / ITEMS ^ four) * ITEMS + col % ITEMS;
}

template <class S>
__device__ __forceinline__ void bring_pair(const survey_job &job, S *stage,
                                           S *facing, bringer<S> &b)
{
    if (b.at.unit < b.at.end) {
        bring_four(job, stage + threadIdx.x * ITEMS, b.from,
                   here_is(job, b.at));
        bring_four(job, facing + place_in_facing(), b.facing,
                   facing_is(job, b.at));
    }
    end_stage();
    next_pair(job, &b.at);
    b.from += job.right;
    b.facing += job.below;
    if (b.at.q == b.at.p) {
        b.from = start_of<S>(job, b.at.p, b.at.p);
        b.facing = b.from;
    }
}

/* The thread's elements of a tile beside those that face them. */
template <class S, class T>
__device__ __forceinline__ void note_asymmetry(notes<T> &own, const cut<T> &x,
                                               const S *facing)
{
    bool changes_nothing = true;
    T y[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        y[k] = (T)facing[place_that_faces() + k * SIDE];
        T apart = x.at[k] - y[k];
        changes_nothing = changes_nothing && apart <= own.asymmetry &&
                          -apart <= own.asymmetry;
    }
    if (changes_nothing)
        return;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        T a = x.at[k], apart = a > y[k] ? a - y[k] : y[k] - a;
        if (apart > own.asymmetry)
            own.asymmetry = apart;
        if ((a != a) != (y[k] != y[k])) /* outside the matrix both are 0 */
            own.asymmetry = infinity<T>();
    }
}

template <class S>
__device__ void survey_pairs(const survey_job &job, notes<COMPUTED(S)> &own)
{
    __shared__ alignas(32) S stage[stages<S>()][TILE];
    __shared__ alignas(32) S facing[stages<S>()][TILE];
    walk here = first_pair(job);
    bringer<S> b = {here, start_of<S>(job, here.p, here.q),
                    start_of<S>(job, here.q, here.p)};
    int last = stages<S>() - 1;
    for (int n = 0; n < last; n++)
        bring_pair(job, stage[n], facing[n], b);
    for (int n = 0; here.unit < here.end;
         n = after<S>(n), last = after<S>(last)) {
        wait_for_stage<S>();
        __syncthreads(); /* stage n has come for all, the last was read by all
                          */
        bring_pair(job, stage[last], facing[last], b);
        cut<COMPUTED(S)> x = take_four(&stage[n][threadIdx.x * ITEMS]);
        note_asymmetry(own, x, facing[n]);
        note_four(job, own, x, here_is(job, here));
        if (here.p != here.q)
            note_four(job, own, take_four(facing[n] + place_in_facing()),
                      facing_is(job, here));
        next_pair(job, &here);
    }
}

/* --- joining -------------------------------------------------------------- */

template <class T>
__device__ __forceinline__ gpu_survey survey_of(const survey_job &job,
                                                const notes<T> &own)
{
    gpu_survey s = gpu_survey_nothing();
    double n = (double)own.finite;
    s.finite = own.finite;
    s.zeros = own.more->zeros;
    s.nan = own.more->nan;
    s.inf = own.more->inf;
    s.subnormal = own.more->subnormal;
    if (own.finite > 0) {
        s.mean = own.origin + own.sum / n;
        s.squares = fmax(own.squares - own.sum * (own.sum / n), 0.0);
    }
    s.min_at = own.more->low_at;
    s.max_at = own.more->high_at;
    s.min = s.min_at < 0 ? 0 : (double)own.low; /* perhaps another thread's */
    s.max = s.max_at < 0 ? 0 : (double)own.high;
    s.odd_at = own.more->odd_at;
    s.lower = job.turned ? own.upper : own.lower;
    s.upper = job.turned ? own.lower : own.upper;
    s.asymmetry = (double)own.asymmetry;
    return s;
}

enum { WORDS = sizeof(gpu_survey) / sizeof(long long) };
static_assert(sizeof(gpu_survey) == WORDS * sizeof(long long),
              "moved in words");

/* The survey of the lane so many further on. */
__device__ __forceinline__ gpu_survey from_lane(const gpu_survey &s, int apart)
{
    gpu_survey other;
#pragma unroll
    for (int w = 0; w < WORDS; w++)
        ((long long *)&other)[w] =
            __shfl_down_sync(~0u, ((const long long *)&s)[w], apart);
    return other;
}

/* Thread 0 returns the block's. */
__device__ gpu_survey join_block(gpu_survey s, gpu_survey *shared)
{
    int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int apart = 16; apart > 0; apart /= 2) {
        gpu_survey other = from_lane(s, apart);
        if (lane < apart)
            gpu_survey_join(&s, &other);
    }
    if (lane == 0)
        shared[threadIdx.x / 32] = s;
    __syncthreads(); /* shared is written */
    for (int w = 1; threadIdx.x == 0 && w < WARPS; w++)
        gpu_survey_join(&s, &shared[w]);
    return s;
}

template <class S, bool PAIRED>
__global__ void __launch_bounds__(THREADS, sizeof(S) == 8 ? 3 : BLOCKS_PER_SM)
    survey_kernel(const __grid_constant__ survey_job job)
{
    __shared__ gpu_survey shared[WARPS];
    __shared__ seldom more[THREADS];
    notes<COMPUTED(S)> own = nothing<COMPUTED(S)>(&more[threadIdx.x]);
    if constexpr (PAIRED)
        survey_pairs<S>(job, own);
    else
        survey_tiles<S>(job, own);
    gpu_survey s = join_block(survey_of(job, own), shared);
    if (threadIdx.x == 0)
        job.parts[blockIdx.x] = s;
}

/* One block joins the parts, always in the same order. */
__global__ void __launch_bounds__(THREADS)
    join_kernel(const gpu_survey *parts, int count, gpu_survey *out)
{
    __shared__ gpu_survey shared[WARPS];
    gpu_survey s = gpu_survey_nothing();
    for (int k = threadIdx.x; k < count; k += THREADS)
        gpu_survey_join(&s, &parts[k]);
    s = join_block(s, shared);
    if (threadIdx.x == 0)
        *out = s;
}

/* --- launching ------------------------------------------------------------ */

/* Tiles follow memory, and are as wide as the rows allow. */
static void cut_tiles(survey_job *job, int paired)
{
    gpu_view *v = &job->v;
    int turns = stride_size(v->row_stride) < stride_size(v->col_stride);
    job->turned = v->rows > 1 && (v->cols == 1 || turns);
    if (job->turned)
        swap_axes(v);
    job->bits = SIDE_BITS;
    while (!paired && job->bits > LEAST_BITS && 1 << (job->bits - 1) >= v->cols)
        job->bits--;
    while (!paired && job->bits < TILE_BITS && TILE >> job->bits > v->rows)
        job->bits++;
    int64_t width = 1 << job->bits, height = TILE >> job->bits;
    int64_t bytes = (int64_t)dtype_bytes(v->dtype);
    job->wide = v->dtype != GPU_BOOL && v->col_stride == 1 &&
                is_aligned(v->data) && v->row_stride * bytes % 16 == 0;
    job->right = width * v->col_stride;
    job->below = height * v->row_stride;
    job->across = ceil_div(v->cols, width);
    job->full_across = v->cols / width;
    job->full_down = v->rows / height;
    job->units = paired ? job->across * (job->across + 1) / 2
                        : job->across * ceil_div(v->rows, height);
}

template <class S>
static gpu_status launch(cuda_device *d, survey_job *job, int paired,
                         unsigned blocks)
{
    if (paired)
        survey_kernel<S, true><<<blocks, THREADS, 0, d->stream>>>(*job);
    else
        survey_kernel<S, false><<<blocks, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_survey(void *device, const gpu_view *v, double scale,
                           gpu_survey *out)
{
    ENTER(d, device);
    survey_job job = {};
    int paired = v->rows == v->cols && v->rows > 1;
    job.v = *v;
    job.scale = scale;
    cut_tiles(&job, paired);
    job.run = ceil_div(job.units, (int64_t)d->sms * BLOCKS_PER_SM);
    unsigned blocks = (unsigned)ceil_div(job.units, job.run);
    TRY(gpu_cuda_scratch(d, blocks * sizeof *job.parts, (void **)&job.parts));
    TRY((v->dtype == GPU_F64   ? launch<double>
         : v->dtype == GPU_F32 ? launch<float>
                               : launch<uint8_t>)(d, &job, paired, blocks));
    gpu_survey *slot = (gpu_survey *)d->slot;
    join_kernel<<<1, THREADS, 0, d->stream>>>(job.parts, (int)blocks, slot);
    LAUNCHED(d);
    TRY(gpu_cuda_wait(d));
    *out = *slot;
    return GPU_OK;
}

/* --- histograms -------------------------------------------------------------
 * Every block counts in shared memory, then adds to the whole. */

enum { BIN_ITEMS = 8, BIN_BLOCKS_PER_SM = 5 };

typedef struct bins_job {
    gpu_view v;
    gpu_bins how;
    int64_t size;
    unsigned long long *counts;
} bins_job;

/* As gpu_edge has it, each step rounded. */
__device__ __forceinline__ double edge_of(const gpu_edges &e, int i)
{
    return i == e.count
               ? e.high
               : __ddiv_rn(__dadd_rn(e.from, __dmul_rn(i, e.by)), e.over);
}

__device__ __noinline__ int mend_bin(const gpu_edges &e, double x, int bin)
{
    while (bin > 0 && x < edge_of(e, bin))
        bin--;
    while (bin < e.count - 1 && x >= edge_of(e, bin + 1))
        bin++;
    return bin;
}

__device__ __forceinline__ int bin_of(const gpu_bins &how, double x)
{
    double place = (x * how.edges.over - how.edges.from) * how.per_unit;
    int bin = max(0, (int)fmin(place, how.edges.count - 1.0));
    double behind = place - bin;
    if (behind > how.near && behind < 1 - how.near)
        return bin;
    return mend_bin(how.edges, x, bin);
}

/* Equal neighbours are counted in a register, so that a matrix of zeros is no
 * queue for one bin. Integer sums have no order. S is how elements are stored:
 * converting behind a switch over types would wait for each of them. */
template <class S>
__global__ void __launch_bounds__(THREADS)
    bins_kernel(const __grid_constant__ bins_job job)
{
    extern __shared__ unsigned own[];
    for (int b = threadIdx.x; b < job.how.edges.count; b += THREADS)
        own[b] = 0;
    __syncthreads(); /* own is empty */
    const S *elements = (const S *)job.v.data;
    int last = -1;
    unsigned run = 0;
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t first = blockIdx.x * (int64_t)THREADS + threadIdx.x;
         first < job.size; first += BIN_ITEMS * step) {
        S stored[BIN_ITEMS];
#pragma unroll
        for (int k = 0; k < BIN_ITEMS; k++)
            if (first + k * step < job.size)
                stored[k] = elements[place_of(job.v, first + k * step)];
#pragma unroll
        for (int k = 0; k < BIN_ITEMS; k++) {
            double x = widened<S>(stored[k]);
            if (!(x >= job.how.low && x <= job.how.edges.high) ||
                first + k * step >= job.size)
                continue;
            int bin = bin_of(job.how, x);
            if (bin != last) {
                if (run > 0)
                    atomicAdd(&own[last], run);
                last = bin;
                run = 0;
            }
            run++;
        }
    }
    if (run > 0)
        atomicAdd(&own[last], run);
    __syncthreads(); /* own is complete */
    for (int b = threadIdx.x; b < job.how.edges.count; b += THREADS)
        if (own[b] > 0)
            atomicAdd(&job.counts[b], (unsigned long long)own[b]);
}

gpu_status gpu_cuda_bins(void *device, const gpu_view *v, const gpu_bins *how,
                         int64_t *counts)
{
    ENTER(d, device);
    bins_job job = {*v, *how, v->rows * v->cols, NULL};
    size_t bytes = (size_t)how->edges.count * sizeof *job.counts;
    if (stride_size(v->row_stride) < stride_size(v->col_stride))
        swap_axes(&job.v);
    flatten(&job.v);
    TRY(gpu_cuda_scratch(d, bytes, (void **)&job.counts));
    CHECK(d, cudaMemsetAsync(job.counts, 0, bytes, d->stream));
    unsigned blocks =
        (unsigned)smaller(ceil_div(job.size, THREADS * (int)BIN_ITEMS),
                          (int64_t)d->sms * BIN_BLOCKS_PER_SM);
    auto kernel = v->dtype == GPU_F64   ? bins_kernel<double>
                  : v->dtype == GPU_F32 ? bins_kernel<float>
                                        : bins_kernel<uint8_t>;
    kernel<<<blocks, THREADS, how->edges.count * sizeof(unsigned), d->stream>>>(
        job);
    LAUNCHED(d);
    return gpu_cuda_download(device, counts, job.counts, bytes);
}
