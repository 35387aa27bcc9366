/* Surveys on the GPU: everything there is to know of a matrix in one pass over
 * it. Limited by bytes in f64; in f32 by the work on an element.
 *
 * Blocks walk over tiles of 1024 elements, four for a thread, while the next
 * ones come into shared memory. A square matrix is taken in pairs of tiles
 * that face each other over the diagonal: the one is read in columns beside
 * the other's rows, so its asymmetry needs no second reading. Every thread
 * sums distances from the first finite element it met: that one being among
 * the elements, the squares lose at most as many digits as a thread has
 * elements. Partition and order depend only on the shape and the device, so
 * results repeat bit for bit. */
#include "survey_stage.h"

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
