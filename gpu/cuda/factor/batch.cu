/* Many small systems at once: LU with partial pivoting and substitution, a team
 * of threads a system, a row in a thread's registers or, where rows are long,
 * in those of a few. No row moves: a thread remembers which pivot its row is.
 *
 * Up to 8, 16 or 32 rows a team is as many lanes of a warp, up to 64 or 128 it
 * is a block. What a step waits for is a chain: the search, the pivot's row
 * through shared memory, a division; so systems hide each other's. Limited by
 * memory up to 32 rows, by that chain above. Needs sm_80. */
#include "factor.h"
#include "pivot_numbers.h"

constexpr int BATCH_THREADS = 128; /* of a block, where teams are smaller */
constexpr int TILE_COLS = 32;      /* that a matrix is read by */
/* Columns that are done one after the other; then the registers rotate, so that
 * their code is there once. */
constexpr int ROTATED = 8;
constexpr unsigned NONE_FAILED = ~0u; /* as memory of bytes 0xff */

/* What is solved: count systems of n rows, m right sides each, which become
 * their solutions. *failed: the number of the first that is singular. */
template <class T> struct batch_job {
    const T *a;
    T *b;
    int64_t count;
    int n, m;
    unsigned *failed;
};

/* Teams of N rows of S threads, for squares of at most so many; each thread
 * has M right sides at a time. */
template <class T, int N_, int S_, int M_> struct team {
    typedef T number;
    static constexpr int N = N_, S = S_, M = M_;
    static constexpr int THREADS = N * S, WARPS = (THREADS + 31) / 32;
    static constexpr int WIDTH = THREADS < 32 ? THREADS : 32;
    static constexpr int OWN = N / S; /* elements of a thread */
    static constexpr int STEP = ROTATED / S;
    static constexpr int TILE = N < TILE_COLS ? N : TILE_COLS;
    /* as many teams a block as its static shared memory holds */
    static constexpr int WANTED =
        sizeof(T) == 16 && N == 32 ? BATCH_THREADS / 2 : BATCH_THREADS;
    static constexpr int TEAMS = THREADS < WANTED ? WANTED / THREADS : 1;

    /* Of what is on its way there are two, in turns: who is late still reads
     * the other. */
    struct memory {
        alignas(16) T row[2][S][OWN];
        alignas(16) T sides[2][S][M];
        alignas(16) T tile[N][TILE + 1];
        uint64_t most[WARPS];
        int at[WARPS];
    };

    memory *shared;
    int thread, row, part; /* of the team, of the square, of the row */
    int order;             /* which pivot the row is; N: none yet */
    T x[OWN];              /* of the row: columns part, part + S ... */
    T y[M];                /* and its right sides */
};

/* All of a team have written what the others read. */
template <class E> __device__ __forceinline__ void meet()
{
    if (E::THREADS > 32)
        __syncthreads();
    else
        __syncwarp();
}

/* Behind the square's n rows and columns there are the identity's. */
template <class E>
__device__ __forceinline__ void load_square(E &t, const typename E::number *a,
                                            int n)
{
    typedef typename E::number T;
    constexpr int GROUPS = E::THREADS / E::TILE;
    const int lane = t.thread % E::TILE, first = t.thread / E::TILE;
#pragma unroll
    for (int c = 0; c < E::N; c += E::TILE) {
        const int col = c + lane;
#pragma unroll 8
        for (int r = first; r < E::N; r += GROUPS)
            t.shared->tile[r][lane] = r < n && col < n ? a[(int64_t)r * n + col]
                                                       : number_of<T>(r == col);
        meet<E>(); /* the tile is there */
#pragma unroll
        for (int i = 0; i < E::TILE / E::S; i++)
            t.x[c / E::S + i] = t.shared->tile[t.row][i * E::S + t.part];
        meet<E>(); /* and read */
    }
}

/* The first STEP registers become the last, or the other way. */
template <class E> __device__ __forceinline__ void rotate(E &t, bool is_back)
{
    constexpr int BY = E::STEP, N = E::OWN;
    typename E::number held[BY];
#pragma unroll
    for (int i = 0; i < BY; i++)
        held[i] = t.x[is_back ? N - BY + i : i];
#pragma unroll
    for (int k = 0; k < N - BY; k++) {
        int i = is_back ? N - 1 - k : k;
        t.x[i] = t.x[is_back ? i - BY : i + BY];
    }
#pragma unroll
    for (int i = 0; i < BY; i++)
        t.x[is_back ? i : N - BY + i] = held[i];
}

/* The row of the team's largest key, the first of several. */
template <class E, class K>
__device__ __forceinline__ int find_most(E &t, K key, K *most)
{
    const int lane = (int)threadIdx.x % 32;
    const int base = lane / E::WIDTH * E::WIDTH;
    K best = most_of_lanes(key, E::WIDTH);
    unsigned who = __ballot_sync(~0u, key == best) >> base;
    if (E::WIDTH < 32)
        who &= (1u << E::WIDTH % 32) - 1;
    int at = (t.thread - t.thread % E::WIDTH + __ffs((int)who) - 1) / E::S;
    *most = best;
    if (E::WARPS == 1)
        return at;
    if (lane == 0) {
        t.shared->most[t.thread / 32] = best;
        t.shared->at[t.thread / 32] = at;
    }
    meet<E>(); /* the warps' are there */
    best = lane < E::WARPS ? (K)t.shared->most[lane % E::WARPS] : 0;
    *most = most_of_lanes(best, 32);
    who = __ballot_sync(~0u, best == *most);
    return t.shared->at[__ffs((int)who) - 1];
}

/* A column of those at hand, of which g groups are done: its pivot is found,
 * and the rows that are none yet lose their part of it. J: of the group. False
 * where it is zero. */
template <int J, class E> __device__ __forceinline__ bool eliminate(E &t, int g)
{
    typedef typename E::number T;
    typedef decltype(size_bits(T())) K;
    constexpr int AT = J / E::S, OWNER = J % E::S, BUFFER = J % 2;
    const bool is_open = t.order == E::N;
    /* 0 is for rows that are no candidates */
    K key = is_open && t.part == OWNER ? size_bits(t.x[AT]) + 1 : 0, most;
    const int pivot = find_most(t, key, &most);
    T *sent = t.shared->row[BUFFER][t.part];
    if (t.row == pivot) {
        t.order = g * ROTATED + J;
#pragma unroll
        for (int i = AT; i < E::OWN; i++)
            sent[i] = t.x[i];
    }
    meet<E>(); /* the pivot's row is there */
    const bool is_below = is_open && t.row != pivot;
    T l = number_of<T>(0);
    if (is_below && t.part == OWNER)
        t.x[AT] = l = quotient(t.x[AT], t.shared->row[BUFFER][OWNER][AT]);
    if (E::S > 1)
        l = of_lane(l, OWNER, E::S);
    if (!is_below)
        return most > 1;
#pragma unroll
    for (int q = 0; q < E::N / ROTATED; q++) {
        if (q >= E::N / ROTATED - g)
            break; /* those are done */
#pragma unroll
        for (int i = q * E::STEP; i < (q + 1) * E::STEP; i++)
            if (i > AT || (i == AT && t.part > OWNER))
                take_product(t.x[i], l, sent[i]);
    }
    return most > 1;
}

/* y becomes L^-1 y, or, the other way, U^-1 y, by a column of the group g. */
template <int J, bool UP, class E>
__device__ __forceinline__ void substitute(E &t, int g)
{
    typedef typename E::number T;
    constexpr int AT = J / E::S, OWNER = J % E::S, BUFFER = J % 2;
    const int k = g * ROTATED + J;
    T f = E::S > 1 ? of_lane(t.x[AT], OWNER, E::S) : t.x[AT];
    T *sent = t.shared->sides[BUFFER][t.part];
    if (t.order == k)
#pragma unroll
        for (int i = 0; i < E::M; i++)
            sent[i] = t.y[i] = UP ? quotient(t.y[i], f) : t.y[i];
    meet<E>(); /* the solved row is there */
    if (UP ? t.order < k : t.order > k)
#pragma unroll
        for (int i = 0; i < E::M; i++)
            take_product(t.y[i], f, sent[i]);
}

template <class E> __device__ __forceinline__ bool factor(E &t)
{
    bool is_fine = true;
    t.order = E::N;
#pragma unroll 1
    for (int g = 0; g < E::N / ROTATED; g++) {
        is_fine &= eliminate<0>(t, g);
        is_fine &= eliminate<1>(t, g);
        is_fine &= eliminate<2>(t, g);
        is_fine &= eliminate<3>(t, g);
        is_fine &= eliminate<4>(t, g);
        is_fine &= eliminate<5>(t, g);
        is_fine &= eliminate<6>(t, g);
        is_fine &= eliminate<7>(t, g);
        rotate(t, false);
    }
    return is_fine;
}

template <class E> __device__ __forceinline__ void solve(E &t)
{
#pragma unroll 1
    for (int g = 0; g < E::N / ROTATED; g++) {
        substitute<0, false>(t, g);
        substitute<1, false>(t, g);
        substitute<2, false>(t, g);
        substitute<3, false>(t, g);
        substitute<4, false>(t, g);
        substitute<5, false>(t, g);
        substitute<6, false>(t, g);
        substitute<7, false>(t, g);
        rotate(t, false);
    }
#pragma unroll 1
    for (int g = E::N / ROTATED - 1; g >= 0; g--) {
        rotate(t, true);
        substitute<7, true>(t, g);
        substitute<6, true>(t, g);
        substitute<5, true>(t, g);
        substitute<4, true>(t, g);
        substitute<3, true>(t, g);
        substitute<2, true>(t, g);
        substitute<1, true>(t, g);
        substitute<0, true>(t, g);
    }
}

template <class E>
__global__ void __launch_bounds__(E::THREADS *E::TEAMS)
    solve_systems(batch_job<typename E::number> job)
{
    typedef typename E::number T;
    __shared__ typename E::memory all[E::TEAMS];
    const int place = (int)threadIdx.x / E::THREADS;
    const int64_t system = (int64_t)blockIdx.x * E::TEAMS + place;
    const bool is_there = system < job.count; /* else it is an identity */
    const int n = is_there ? job.n : 0, m = job.m;
    E t;
    t.shared = &all[place];
    t.thread = (int)threadIdx.x % E::THREADS;
    t.row = t.thread / E::S;
    t.part = t.thread % E::S;
    load_square(t, job.a + system * n * n, n);
    if (!factor(t) && is_there && t.thread == 0)
        atomicMin(job.failed, (unsigned)system);
    T *b = job.b + system * n * m;
#pragma unroll 1
    for (int from = t.part * E::M; from - t.part * E::M < m;
         from += E::S * E::M) {
#pragma unroll
        for (int i = 0; i < E::M; i++)
            t.y[i] = t.row < n && from + i < m
                         ? b[(int64_t)t.row * m + from + i]
                         : number_of<T>(0);
        solve(t);
#pragma unroll
        for (int i = 0; i < E::M; i++)
            if (t.order < n && from + i < m)
                b[(int64_t)t.order * m + from + i] = t.y[i];
    }
}

template <class E>
static gpu_status launch(cuda_device *d,
                         const batch_job<typename E::number> &job)
{
    unsigned blocks = (unsigned)ceil_div(job.count, E::TEAMS);
    solve_systems<E><<<blocks, E::THREADS * E::TEAMS, 0, d->stream>>>(job);
    LAUNCHED(d);
    return GPU_OK;
}

/* A thread holds at most 128 words of a row. */
template <class T, int M>
static gpu_status launch_for(cuda_device *d, const batch_job<T> &job)
{
    constexpr int WORDS = (int)sizeof(T) / 4;
    if (job.n <= 8)
        return launch<team<T, 8, 1, M>>(d, job);
    if (job.n <= 16)
        return launch<team<T, 16, 1, M>>(d, job);
    if (job.n <= 32)
        return launch<team<T, 32, 1, M>>(d, job);
    if constexpr (WORDS < 4)
        if (job.n > 64)
            return launch<team<T, 128, WORDS, M>>(d, job);
    return launch<team<T, 64, (WORDS + 1) / 2, M>>(d, job);
}

template <class T>
static gpu_status solve_all(cuda_device *d, const gpu_factoring *f,
                            unsigned *failed)
{
    int64_t n = f->a.rows, m = f->b.rows;
    batch_job<T> job = {(const T *)f->a.data,
                        (T *)f->b.data,
                        f->a.cols / n,
                        (int)n,
                        (int)m,
                        failed};
    return m == 1 ? launch_for<T, 1>(d, job) : launch_for<T, 4>(d, job);
}

static gpu_status solve_typed(cuda_device *d, const gpu_factoring *f,
                              unsigned *failed)
{
    CHECK(d, cudaMemsetAsync(failed, 0xff, sizeof *failed, d->stream));
    switch (f->a.dtype) {
    case GPU_F64:
        return solve_all<double>(d, f, failed);
    case GPU_C64:
        return solve_all<float2>(d, f, failed);
    case GPU_C128:
        return solve_all<double2>(d, f, failed);
    default:
        return solve_all<float>(d, f, failed);
    }
}

bool gpu_cuda_can_batch(const gpu_view *a)
{
    int64_t most = a->dtype == GPU_C128 ? 64 : 128;
    return a->rows <= most && a->cols < INT32_MAX;
}

static gpu_status factor_batch(void *device, gpu_factoring *f)
{
    ENTER(d, device);
    unsigned *failed, first = NONE_FAILED;
    TRY(gpu_cuda_take_room(d, sizeof *failed, (void **)&failed));
    gpu_status status = solve_typed(d, f, failed);
    if (status == GPU_OK)
        status = gpu_cuda_download(d, &first, failed, sizeof first);
    gpu_cuda_free(d, failed, sizeof *failed);
    f->trouble = first == NONE_FAILED ? 0 : (int64_t)first + 1;
    return status;
}

const gpu_kernel gpu_cuda_batch = {
    .operation = "solve",
    .name = "batch",
    .idea = "a team of threads a system, its rows in registers",
    .needs = "sm_80",
    .precision = "f32",
    .capability = 80,
    .dtypes = FLOATS | 1u << GPU_C64 | 1u << GPU_C128,
    .bound = NULL,
    .matmul = NULL,
    .dot = NULL,
    .factor = factor_batch,
};
