/* matmul vector: a matrix times up to four vectors (or up to four vectors
 * times a matrix) as fast as the matrix can be read: once, and all the
 * vectors together.
 *
 * Limited by bytes. Each of 512 threads a multiprocessor has eight 16-byte
 * loads on their way, into places of its own in shared memory: as soon as four
 * are used, the next four are started. The vectors come out of the first-level
 * cache. Where k runs along memory, threads share rows and shuffle their sums
 * together; where the rows do, each thread has some rows and a share of k.
 * Short lines without gaps go through shared memory as they lie. Loads are of
 * aligned 16 bytes wherever a line begins: lines are taken together that begin
 * alike. f32 chains are short; slices of k are added in f64, in their order, by
 * the block that ends last. Any GPU, any strides. */
#include "kernel.h"

enum { THREADS = 256, WARPS = THREADS / 32 };
enum { MOST = 4 }; /* vectors */
enum { ROWS = 4 }; /* or columns, that a thread takes at a time */
enum { DOWN_LANES = 64 };
enum { SHORTEST = 64, LONGEST = 1 << 30 }; /* slices of k */
enum {
    LOADS = 6, /* of a thread, to stage */
    STAGED = LOADS * THREADS,
    SHORT_ROW = 128,
    SHORT_COLUMN = 32
};
enum { GROUPS = 64, FOLD_UNROLL = 16 };

template <class T> struct alignas(16) vector {
    T at[16 / sizeof(T)];
};
template <class T> constexpr int WIDTH = 16 / sizeof(T);
template <class T> constexpr int STAGE = STAGED *WIDTH<T>; /* elements */

/* Blocks a multiprocessor is to hold; more would read in more places at a
 * time, which memory likes less. */
enum { RESIDENT = 2, RESIDENT_COLUMNS = 3 };
template <int N> constexpr int RESIDENT_ROWS = N == 4 ? 3 : 4;

/* How lines lie: all begin on 16 bytes, or anywhere, or have gaps. */
typedef enum reach { ALIGNED, ACROSS, APART } reach;

/* How the work is cut: a block takes a tile of rows and a slice of k. The
 * tiles form groups; the last block of a group adds up its slices. */
typedef struct cut {
    int64_t tile, tiles, slice, slices; /* rows, their tiles; of k, slices */
    int64_t per_group;                  /* tiles */
    int lanes;                          /* threads side by side in memory */
    int apart;      /* rows between those that a thread takes together */
    int fold_lanes; /* threads that add up one element's slices */
} cut;

/* Where a block stands in it. */
typedef struct place_in_cut {
    int64_t row, depth; /* the first of them */
    int rows, depths;   /* how many */
} place_in_cut;

/* All a block needs for writing what it has summed. */
template <class T> struct target {
    const product<T> &p;
    const cut &w;
    T *partials; /* slices x m x n */
    int64_t slice;
};

template <class T>
__device__ __forceinline__ void put(const target<T> &to, int64_t i, int j,
                                    T sum)
{
    if (to.w.slices == 1)
        write_c(to.p, i, j, sum);
    else
        to.partials[(to.slice * to.p.m + i) * to.p.n + j] = sum;
}

/* Every element is read once: the first-level cache is left to the vectors. */
template <class T>
__device__ __forceinline__ vector<T> load_once(const T *from, bool wanted)
{
    vector<T> v = {};
    if (wanted) {
        uint4 bits = __ldcg((const uint4 *)from);
        v = *(vector<T> *)&bits;
    }
    return v;
}

/* Elements before this one in the 16 bytes that hold it. */
template <class T> __device__ __forceinline__ int shift_of(const T *p)
{
    return (int)((uintptr_t)p / sizeof(T) % WIDTH<T>);
}

/* The j-th vector from one's beginning; where there are fewer, the last, whose
 * sums are then not written. */
template <class T>
__device__ __forceinline__ const T *vector_at(const product<T> &p, const T *b,
                                              int j)
{
    return b + min((int64_t)j, p.n - 1) * p.b_col;
}

/* Loads on their way to shared memory: each thread has places of its own there,
 * so that none waits for another. */
enum { PLACES = 8, STAGES = 2, PLACE_BYTES = 16 };
template <class T> using places = vector<T>[PLACES][THREADS];

/* Through the first-level cache where a warp's loads do not fill its lines:
 * they share them with others. */
template <reach HOW, class T>
__device__ __forceinline__ void start_load(vector<T> *to, const T *from,
                                           bool wanted)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    int bytes = wanted ? PLACE_BYTES : 0; /* the rest becomes zeros */
    if (HOW == ACROSS)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(at),
                     "l"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at),
                     "l"(from), "r"(bytes)
                     : "memory");
}

/* What was started since the last call is a stage. */
__device__ __forceinline__ void end_stage(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* The oldest stage is there. */
__device__ __forceinline__ void await_stage(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"((int)STAGES - 1) : "memory");
}

/* All are there, those too that brought only zeros. */
__device__ __forceinline__ void await_all(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* --- k along memory ------------------------------------------------------ */

/* ROWS rows, so many elements from each other; only the first few may be
 * there. */
template <class T> struct lines {
    const T *first;
    int64_t apart;
    int count;
};

/* A thread among those that share rows. */
typedef struct share {
    int lane, lanes;
} share;

template <class T, int N>
__device__ __forceinline__ void multiply_element(T (*sum)[N], const lines<T> &a,
                                                 const product<T> &p,
                                                 const T *b, int k)
{
#pragma unroll
    for (int q = 0; q < ROWS; q++) {
        T x = q < a.count ? a.first[q * a.apart + k * p.a_col] : (T)0;
#pragma unroll
        for (int j = 0; j < N; j++)
            sum[q][j] += x * __ldg(vector_at(p, b, j) + k * p.b_row);
    }
}

/* WIDTH elements of a vector, which need not lie on 16 bytes. */
template <class T>
__device__ __forceinline__ vector<T> load_kept(const T *from, bool whole,
                                               bool wanted)
{
    vector<T> v = {};
    if (whole && wanted) {
        uint4 bits = __ldg((const uint4 *)from);
        v = *(vector<T> *)&bits;
    }
#pragma unroll
    for (int e = 0; e < WIDTH<T>; e++)
        if (!whole && wanted)
            v.at[e] = __ldg(from + e);
    return v;
}

/* A step of ROWS rows: one wide load each, and of the vectors. */
template <class T, reach HOW, int N>
__device__ __forceinline__ void
start_along(vector<T> (*x)[THREADS], vector<T> *y, const lines<T> &a,
            const product<T> &p, const T *b, int at, bool wanted)
{
    bool whole = shift_of(b) == 0 && (N == 1 || p.b_col % WIDTH<T> == 0);
#pragma unroll
    for (int q = 0; q < ROWS; q++)
        start_load<HOW>(&x[q][threadIdx.x], a.first + q * a.apart + at,
                        wanted && q < a.count);
    end_stage();
#pragma unroll
    for (int j = 0; j < N; j++)
        y[j] = load_kept(vector_at(p, b, j) + at, whole, wanted);
}

/* Adds to the rows' sums what a thread's share of their wide loads gives. As
 * soon as a step is used its place takes the next loads. */
template <class T, reach HOW, int N>
__device__ __forceinline__ void multiply_wide(T (*sum)[N], const lines<T> &a,
                                              const product<T> &p, const T *b,
                                              int loads, share s)
{
    __shared__ places<T> x;
    vector<T> y[STAGES][N];
#pragma unroll
    for (int u = 0; u < STAGES; u++) {
        int g = s.lane + u * s.lanes;
        start_along<T, HOW, N>(x + u * ROWS, y[u], a, p, b, g * WIDTH<T>,
                               g < loads);
    }
    for (int g = s.lane; g < loads; g += STAGES * s.lanes)
#pragma unroll
        for (int u = 0; u < STAGES; u++) {
            await_stage();
#pragma unroll
            for (int q = 0; q < ROWS; q++) {
                vector<T> v = x[u * ROWS + q][threadIdx.x];
#pragma unroll
                for (int f = 0; f < N * WIDTH<T>; f++)
                    sum[q][f / WIDTH<T>] += v.at[f % WIDTH<T>] *
                                            y[u][f / WIDTH<T>].at[f % WIDTH<T>];
            }
            int next = g + (u + STAGES) * s.lanes;
            start_along<T, HOW, N>(x + u * ROWS, y[u], a, p, b, next * WIDTH<T>,
                                   next < loads);
        }
    await_all();
}

/* All of a thread's share: wide loads, then what stands before and after
 * them; or, where k has gaps, element by element. */
template <class T, reach HOW, int N>
__device__ __forceinline__ void multiply_lines(T (*sum)[N], const lines<T> &a,
                                               const product<T> &p, const T *b,
                                               int depths, share s)
{
    int head = 0, loads = 0;
    if (HOW != APART) {
        head = min((WIDTH<T> - shift_of(a.first)) % WIDTH<T>, depths);
        loads = (depths - head) / WIDTH<T>;
        lines<T> inner = {a.first + head, a.apart, a.count};
        multiply_wide<T, HOW, N>(sum, inner, p, b + head, loads, s);
    }
#pragma unroll 2
    for (int e = s.lane; e < depths - loads * WIDTH<T>; e += s.lanes) {
        int k = e < head ? e : e + loads * WIDTH<T>;
        multiply_element<T, N>(sum, a, p, b, k);
    }
}

/* The sums of the threads that share rows become one: in their warp, then, if
 * they are several warps, in shared memory. Lane 0 has it. */
template <class T, int N>
__device__ __forceinline__ void fold_lanes(T (*sum)[N], int lanes, T *shared)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int apart = min(lanes, 32) / 2; apart > 0; apart /= 2)
#pragma unroll
        for (int s = 0; s < ROWS * N; s++)
            sum[s / N][s % N] += __shfl_xor_sync(~0u, sum[s / N][s % N], apart);
    if (lanes <= 32)
        return;
    __syncthreads(); /* shared is free */
#pragma unroll
    for (int s = 0; s < ROWS * N; s++)
        if (lane == 0)
            shared[s * WARPS + warp] = sum[s / N][s % N];
    __syncthreads(); /* the warps' sums are there */
#pragma unroll
    for (int s = 0; s < ROWS * N; s++)
        for (int w = 1; w < lanes / 32 && threadIdx.x % lanes == 0; w++)
            sum[s / N][s % N] += shared[s * WARPS + warp + w];
}

/* `lanes` threads share ROWS rows at a time. */
template <class T, reach HOW, int N>
__device__ __forceinline__ void sum_along(const target<T> &to,
                                          const place_in_cut &at)
{
    __shared__ T shared[ROWS * N * WARPS];
    const product<T> &p = to.p;
    int apart = to.w.apart;
    share s = {(int)threadIdx.x % to.w.lanes, to.w.lanes};
    const T *b = p.b + at.depth * p.b_row;
    int sets = (at.rows + apart * ROWS - 1) / (apart * ROWS) * apart;
    for (int first = 0; first < sets; first += THREADS / s.lanes) {
        int set = first + threadIdx.x / s.lanes;
        int row = set / apart * apart * ROWS + set % apart;
        lines<T> a = {p.a + (at.row + row) * p.a_row + at.depth * p.a_col,
                      apart * p.a_row, (at.rows - row + apart - 1) / apart};
        T sum[ROWS][N] = {};
        if (a.count > 0)
            multiply_lines<T, HOW, N>(sum, a, p, b, at.depths, s);
        fold_lanes<T, N>(sum, s.lanes, shared);
#pragma unroll
        for (int q = 0; q < ROWS; q++)
#pragma unroll
            for (int j = 0; j < N; j++)
                if (s.lane == 0 && q < a.count && j < p.n)
                    put(to, at.row + row + q * apart, j, sum[q][j]);
    }
}

/* --- rows along memory --------------------------------------------------- */

/* So many columns' part of a thread's rows, and their elements of the
 * vectors. */
template <class T, reach HOW, int N>
__device__ __forceinline__ void
start_down(vector<T> (*x)[THREADS], T (*y)[N], const product<T> &p, const T *a,
           const T *b, int k, int step, int depths, bool inside)
{
#pragma unroll
    for (int q = 0; q < ROWS; q++)
        start_load<HOW>(&x[q][threadIdx.x], a + (k + q * step) * p.a_col,
                        inside && k + q * step < depths);
    end_stage();
#pragma unroll
    for (int q = 0; q < ROWS; q++)
#pragma unroll
        for (int j = 0; j < N; j++)
            y[q][j] = k + q * step < depths
                          ? __ldg(vector_at(p, b, j) + (k + q * step) * p.b_row)
                          : (T)0;
}

/* A thread's rows over every step-th column from its first. Columns begin
 * `shift` elements before the tile's. As soon as a stage is used its places
 * take the next loads. */
template <class T, reach HOW, int N>
__device__ __forceinline__ void
multiply_columns(T (*sum)[N], vector<T> (*x)[THREADS], const product<T> &p,
                 const place_in_cut &at, int first, int step, int shift,
                 share s)
{
    const T *b = p.b + at.depth * p.b_row;
    const T *a =
        p.a + at.row * p.a_row + at.depth * p.a_col - shift + s.lane * WIDTH<T>;
    bool inside = s.lane * WIDTH<T> < at.rows + shift;
    T y[STAGES][ROWS][N];
#pragma unroll
    for (int u = 0; u < STAGES; u++)
        start_down<T, HOW, N>(x + u * ROWS, y[u], p, a, b,
                              first + u * ROWS * step, step, at.depths, inside);
    for (int k = first; k < at.depths; k += STAGES * ROWS * step)
#pragma unroll
        for (int u = 0; u < STAGES; u++) {
            await_stage();
#pragma unroll
            for (int q = 0; q < ROWS; q++) {
                vector<T> v = x[u * ROWS + q][threadIdx.x];
#pragma unroll
                for (int f = 0; f < N * WIDTH<T>; f++)
                    sum[f / N][f % N] += v.at[f / N] * y[u][q][f % N];
            }
            start_down<T, HOW, N>(x + u * ROWS, y[u], p, a, b,
                                  k + (u + STAGES) * ROWS * step, step,
                                  at.depths, inside);
        }
    await_all();
}

/* The same where rows have gaps: rows `lanes` from each other. */
template <class T, int N>
__device__ __forceinline__ void multiply_apart(T (*sum)[N], const product<T> &p,
                                               const place_in_cut &at,
                                               int first, int step, share s)
{
    const T *a = p.a + at.row * p.a_row + at.depth * p.a_col;
    const T *b = p.b + at.depth * p.b_row;
#pragma unroll 2
    for (int k = first; k < at.depths; k += step)
#pragma unroll
        for (int e = 0; e < WIDTH<T>; e++) {
            int row = s.lane + e * s.lanes;
            T x = row < at.rows ? a[row * p.a_row + k * p.a_col] : (T)0;
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[e][j] += x * __ldg(vector_at(p, b, j) + k * p.b_row);
        }
}

/* A thread has WIDTH rows and every so many-th k; then every row's sums over
 * its columns are added up in shared memory. */
template <class T, reach HOW, int N>
__device__ __forceinline__ void sum_down(const target<T> &to,
                                         const place_in_cut &at)
{
    __shared__ places<T> x; /* then the sums */
    T(*shared)[THREADS * WIDTH<T>] = (T(*)[THREADS * WIDTH<T>]) x;
    const product<T> &p = to.p;
    share s = {(int)threadIdx.x % to.w.lanes, to.w.lanes};
    int step = THREADS / s.lanes, first = threadIdx.x / s.lanes;
    step -= to.w.apart > 1 ? step % to.w.apart : 0;
    const T *corner = p.a + at.row * p.a_row + at.depth * p.a_col;
    int shift = HOW != APART ? shift_of(corner + first * p.a_col) : 0;
    T sum[WIDTH<T>][N] = {};
    if (first < step && HOW != APART)
        multiply_columns<T, HOW, N>(sum, x, p, at, first, step, shift, s);
    else if (first < step)
        multiply_apart<T, N>(sum, p, at, first, step, s);
    __syncthreads(); /* the places are free */
#pragma unroll
    for (int e = 0; e < WIDTH<T>; e++)
#pragma unroll
        for (int j = 0; j < N; j++) {
            int row =
                HOW != APART ? s.lane * WIDTH<T> + e : s.lane + e * s.lanes;
            if (first < step)
                shared[j][first * s.lanes * WIDTH<T> + row] = sum[e][j];
        }
    __syncthreads(); /* all the sums are there */
    for (int e = threadIdx.x; e < at.rows * p.n; e += THREADS) {
        int row = e / (int)p.n, j = e % (int)p.n;
        T all = 0;
        for (int i = 0; i < step; i++) {
            int from =
                HOW != APART ? shift_of(corner + i * p.a_col) + row : row;
            all += shared[j][i * s.lanes * WIDTH<T> + from];
        }
        put(to, at.row + row, j, all);
    }
}

/* --- the sums of slices -------------------------------------------------- */

/* Are all the partial sums of this block's group written? */
__device__ __forceinline__ bool is_last(const cut &w, int64_t group,
                                        unsigned *tickets)
{
    __shared__ unsigned mine;
    int64_t members =
        min(w.per_group, w.tiles - group * w.per_group) * w.slices;
    __syncthreads(); /* the block's partial sums are written */
    if (threadIdx.x == 0) {
        __threadfence(); /* they are seen before the ticket is drawn */
        mine = atomicAdd(tickets + group, 1);
        if (mine == members - 1)
            tickets[group] = 0;
    }
    __syncthreads(); /* the ticket is known */
    __threadfence(); /* the others' sums are seen after it */
    return mine == members - 1;
}

/* Adds up the slices of a group's elements of c. */
template <class T>
__device__ __forceinline__ void fold_group(const product<T> &p, const cut &w,
                                           const T *partials, int64_t group)
{
    int lane = threadIdx.x % w.fold_lanes;
    int64_t size = p.m * p.n, span = w.per_group * w.tile * p.n;
    int64_t end = min((group + 1) * span, size);
    /* All threads of a warp go round equally often: they shuffle. */
    for (int64_t first = group * span; first < end;
         first += THREADS / w.fold_lanes) {
        int64_t e = first + threadIdx.x / w.fold_lanes;
        double sum = 0;
#pragma unroll FOLD_UNROLL
        for (int64_t s = e < end ? lane : w.slices; s < w.slices;
             s += w.fold_lanes)
            sum += (double)__ldcg(partials + s * size + e);
        for (int apart = w.fold_lanes / 2; apart > 0; apart /= 2)
            sum += __shfl_xor_sync(~0u, sum, apart);
        if (lane == 0 && e < end)
            write_c(p, e / p.n, e % p.n, (T)sum);
    }
}

template <class T>
__device__ __forceinline__ void finish(const target<T> &to, int64_t tile,
                                       unsigned *tickets)
{
    int64_t group = tile / to.w.per_group;
    if (to.w.slices > 1 && is_last(to.w, group, tickets))
        fold_group(to.p, to.w, to.partials, group);
}

template <class T, bool ALONG, reach HOW, int N>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    vector_kernel(const __grid_constant__ product<T> p,
                  const __grid_constant__ cut w, T *partials, unsigned *tickets)
{
    /* The blocks running at one time stand side by side in memory. */
    int64_t slice = ALONG ? blockIdx.x % w.slices : blockIdx.x / w.tiles;
    int64_t tile = ALONG ? blockIdx.x / w.slices : blockIdx.x % w.tiles;
    place_in_cut at = {tile * w.tile, slice * w.slice};
    at.rows = (int)min(w.tile, p.m - at.row);
    at.depths = (int)min(w.slice, p.k - at.depth);
    target<T> to = {p, w, partials, slice};
    if (ALONG)
        sum_along<T, HOW, N>(to, at);
    else
        sum_down<T, HOW, N>(to, at);
    finish(to, tile, tickets);
}

/* --- short lines without gaps -------------------------------------------- */

/* The next stretch of memory on its way to shared memory, as it lies. */
template <class T> struct stretch {
    vector<T> at[LOADS];
};

template <class T>
__device__ __forceinline__ stretch<T> load_stretch(const T *from, int64_t count)
{
    int shift = shift_of(from);
    stretch<T> s;
#pragma unroll
    for (int u = 0; u < LOADS; u++) {
        int e = (u * THREADS + threadIdx.x) * WIDTH<T>;
        s.at[u] = load_once(from - shift + e, e < count + shift);
    }
    return s;
}

template <class T>
__device__ __forceinline__ void keep_stretch(T *to, const stretch<T> &s)
{
#pragma unroll
    for (int u = 0; u < LOADS; u++)
        ((vector<T> *)to)[u * THREADS + threadIdx.x] = s.at[u];
}

/* c's rows that stand in shared memory: `lanes` threads each. */
template <class T, int N>
__device__ __forceinline__ void sum_rows(const target<T> &to, const T *a,
                                         const T (*b)[SHORT_ROW], int64_t first,
                                         int rows)
{
    const product<T> &p = to.p;
    int lanes = to.w.lanes, lane = threadIdx.x % lanes, depth = (int)p.k;
    /* Rows that begin in the same bank are begun elsewhere. */
    int banks = min(depth & -depth, 32);
    int start = lane + threadIdx.x % 32 / lanes * banks / 32 * lanes;
    /* All threads of a warp go round equally often: they shuffle. */
    for (int base = 0; base < rows; base += THREADS / lanes) {
        int row = base + threadIdx.x / lanes, k = start;
        T sum[N] = {};
#pragma unroll 4
        for (int e = row < rows ? lane : depth; e < depth; e += lanes) {
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[j] += a[row * depth + k] * b[j][k];
            k = k + lanes < depth ? k + lanes : lane;
        }
#pragma unroll
        for (int j = 0; j < N; j++) {
            for (int apart = lanes / 2; apart > 0; apart /= 2)
                sum[j] += __shfl_xor_sync(~0u, sum[j], apart);
            if (lane == 0 && row < rows && j < p.n)
                write_c(p, first + row, j, sum[j]);
        }
    }
}

/* Row after row, no gaps: as many as fit are staged at a time. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS, RESIDENT_ROWS<N>)
    short_rows_kernel(const __grid_constant__ product<T> p,
                      const __grid_constant__ cut w)
{
    __shared__ alignas(16) T a[STAGE<T>];
    __shared__ T b[N][SHORT_ROW];
    int64_t tile = blockIdx.x;
    auto left = [&] { return min(w.tile, p.m - tile * w.tile); };
    auto next = [&] {
        return load_stretch(p.a + tile * w.tile * p.k, left() * p.k);
    };
    stretch<T> s = next();
    for (int e = threadIdx.x; e < p.k * N; e += THREADS)
        b[e % N][e / N] =
            e % N < p.n ? p.b[e / N * p.b_row + e % N * p.b_col] : (T)0;
    while (tile < w.tiles) {
        const T *from = p.a + tile * w.tile * p.k;
        int64_t first = tile * w.tile;
        int rows = (int)left();
        keep_stretch(a, s);
        __syncthreads(); /* the rows are there */
        tile += gridDim.x;
        if (tile < w.tiles)
            s = next();
        sum_rows<T, N>({p, w, NULL, 0}, a + shift_of(from), b, first, rows);
        __syncthreads(); /* their place is free */
    }
}

/* So many elements of each vector are staged beside their columns. */
template <int N> constexpr int SHARE = STAGED / N;

template <class T> struct elements {
    T at[LOADS];
};

template <class T, int N>
__device__ __forceinline__ elements<T> load_elements(const product<T> &p,
                                                     int64_t first, int count)
{
    elements<T> s = {};
#pragma unroll
    for (int u = 0; u < LOADS; u++) {
        int e = u * THREADS + threadIdx.x, k = e % SHARE<N>;
        if (k < count)
            s.at[u] = vector_at(p, p.b, e / SHARE<N>)[(first + k) * p.b_row];
    }
    return s;
}

/* The elements of a stretch that are a thread's: all of one row. */
template <class T, int N>
__device__ __forceinline__ void add_columns(T *sum, const T *a, const T *b,
                                            int rows, int columns)
{
    int step = THREADS / rows, first = threadIdx.x / rows;
#pragma unroll 4
    for (int k = first; k < columns; k += step) {
        T x = a[k * rows + threadIdx.x % rows];
#pragma unroll
        for (int j = 0; j < N; j++)
            sum[j] += x * b[j * SHARE<N> + k];
    }
}

/* Column after column, no gaps: a tile is all the rows, a slice every so
 * many-th stretch of whole columns. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS, RESIDENT_COLUMNS)
    short_columns_kernel(const __grid_constant__ product<T> p,
                         const __grid_constant__ cut w, T *partials,
                         unsigned *tickets)
{
    __shared__ alignas(16) T a[STAGE<T>];
    __shared__ T b[STAGED];
    int rows = (int)p.m, step = THREADS / rows;
    int64_t k = blockIdx.x * w.slice;
    T sum[N] = {};
    auto next = [&] {
        return load_stretch(p.a + k * rows, min(w.slice, p.k - k) * rows);
    };
    auto next_elements = [&] {
        return load_elements<T, N>(p, k, (int)min(w.slice, p.k - k));
    };
    stretch<T> s = next();
    elements<T> e = next_elements();
    while (k < p.k) {
        int shift = shift_of(p.a + k * rows);
        int columns = (int)min(w.slice, p.k - k);
        keep_stretch(a, s);
#pragma unroll
        for (int u = 0; u < LOADS; u++)
            b[u * THREADS + threadIdx.x] = e.at[u];
        __syncthreads(); /* the columns are there */
        k += gridDim.x * w.slice;
        if (k < p.k) {
            s = next();
            e = next_elements();
        }
        if (threadIdx.x < step * rows)
            add_columns<T, N>(sum, a + shift, b, rows, columns);
        __syncthreads(); /* their place is free */
    }
#pragma unroll
    for (int j = 0; j < N; j++)
        a[j * THREADS + threadIdx.x] = sum[j];
    __syncthreads(); /* the threads' sums are there */
    target<T> to = {p, w, partials, blockIdx.x};
    for (int e = threadIdx.x; e < rows * p.n; e += THREADS) {
        T all = 0;
        for (int i = 0; i < step; i++)
            all += a[e / rows * THREADS + i * rows + e % rows];
        put(to, e % rows, e / rows, all);
    }
    finish(to, 0, tickets);
}

/* The vectors one after the other, on 16 bytes each. */
template <class T>
__global__ void gather_kernel(const __grid_constant__ product<T> p, T *to,
                              int64_t pitch)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (e < p.k * p.n)
        to[e % p.n * pitch + e / p.n] =
            p.b[e / p.n * p.b_row + e % p.n * p.b_col];
}

/* --- cutting ------------------------------------------------------------- */

/* The smallest power of two that is at least `least`, but at most `most`. */
static int power_of_two(int64_t least, int most)
{
    int power = 1;
    while (power < most && power < least)
        power *= 2;
    return power;
}

/* Threads that share a row: enough for one wide load each, and more where
 * there are too few rows for all the blocks. */
template <class T> static int lanes_along(const product<T> &p, int64_t blocks)
{
    int64_t loads = ceil_div(p.k, WIDTH<T>);
    int lanes = power_of_two(loads, 32);
    while (lanes < THREADS && lanes < loads &&
           ceil_div(p.m, THREADS / lanes * ROWS) < blocks / 2)
        lanes *= 2;
    return lanes;
}

/* Threads side by side on rows: few, so that the rest can share k, and more
 * where k is too short for that. */
template <class T> static int lanes_down(const product<T> &p, int apart)
{
    int64_t loads = ceil_div(p.m + apart - 1, WIDTH<T>);
    int lanes = (int)smaller(DOWN_LANES, THREADS / apart);
    while (lanes < THREADS / apart && lanes < loads &&
           THREADS / lanes * PLACES * 8 > p.k)
        lanes *= 2;
    return (int)smaller(lanes, loads);
}

/* Slices of k: as many as there is room for blocks, none too short. */
template <class T>
static void cut_depth(cut *w, const product<T> &p, int64_t blocks,
                      int64_t shortest)
{
    int64_t wanted = smaller(blocks / w->tiles, p.k / shortest);
    int64_t slices = larger(larger(wanted, 1), ceil_div(p.k, LONGEST));
    w->slice = ceil_div(ceil_div(p.k, slices), SHORTEST) * SHORTEST;
    w->slices = ceil_div(p.k, w->slice);
}

template <class T> static void cut_fold(cut *w, const product<T> &p)
{
    w->per_group = ceil_div(w->tiles, GROUPS);
    int64_t elements = w->per_group * w->tile * p.n;
    w->fold_lanes = power_of_two(smaller(THREADS / elements, w->slices), 32);
}

template <class T>
static cut cut_along(const product<T> &p, reach how, int64_t blocks)
{
    cut w;
    w.lanes = lanes_along(p, blocks);
    w.apart = how == ACROSS ? WIDTH<T> : 1;
    int64_t round = larger(THREADS / w.lanes, w.apart) * ROWS;
    w.tile = round * ceil_div(ceil_div(p.m, round), blocks);
    w.tiles = ceil_div(p.m, w.tile);
    cut_depth(&w, p, blocks, w.lanes * WIDTH<T> * STAGES);
    cut_fold(&w, p);
    return w;
}

template <class T>
static cut cut_down(const product<T> &p, reach how, int64_t blocks)
{
    cut w;
    w.apart = how == ACROSS ? WIDTH<T> : 1;
    w.lanes = lanes_down(p, w.apart);
    w.tile = w.lanes * WIDTH<T> - (w.apart - 1);
    w.tiles = ceil_div(p.m, w.tile);
    cut_depth(&w, p, blocks, SHORTEST);
    cut_fold(&w, p);
    return w;
}

/* Threads that share a staged row: more than one where there are few. */
static int lanes_short(int64_t rows)
{
    return power_of_two(THREADS / rows / 2 + 1, 32);
}

/* --- launching ----------------------------------------------------------- */

/* Memory for partial sums, and behind them the vectors where they have gaps;
 * these are then p's. */
template <class T>
static gpu_status prepare(cuda_device *d, product<T> *p, const cut *w,
                          bool gather, T **partials)
{
    int64_t sums = w->slices > 1 ? w->slices * p->m * p->n : 0;
    int64_t before = ceil_div(sums, WIDTH<T>) * WIDTH<T>;
    int64_t pitch = ceil_div(p->k, WIDTH<T>) * WIDTH<T>;
    int64_t all = before + (gather ? pitch * p->n : 0);
    if (all > 0)
        TRY(gpu_cuda_scratch(d, all * sizeof(T), (void **)partials));
    if (!gather)
        return GPU_OK;
    T *to = *partials + before;
    gather_kernel<T>
        <<<(unsigned)ceil_div(p->k * p->n, THREADS), THREADS, 0, d->stream>>>(
            *p, to, pitch);
    LAUNCHED(d);
    p->b = to;
    p->b_row = 1;
    p->b_col = pitch;
    return GPU_OK;
}

template <class T, bool ALONG, reach HOW, int N>
static gpu_status launch(cuda_device *d, product<T> p)
{
    cut w = ALONG ? cut_along(p, HOW, (int64_t)d->sms * RESIDENT)
                  : cut_down(p, HOW, (int64_t)d->sms * RESIDENT);
    if (w.tiles > INT32_MAX / w.slices)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: vector cannot cut %lld x %lld into blocks",
                    (long long)p.m, (long long)p.k);
    T *partials = NULL;
    TRY(prepare(d, &p, &w, ALONG && HOW != APART && p.b_row != 1, &partials));
    vector_kernel<T, ALONG, HOW, N>
        <<<(unsigned)(w.tiles * w.slices), THREADS, 0, d->stream>>>(
            p, w, partials, d->tickets);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T, int N>
static gpu_status launch_short_rows(cuda_device *d, const product<T> &p)
{
    cut w = {};
    w.tile = (STAGE<T> - WIDTH<T> + 1) / p.k;
    w.tiles = ceil_div(p.m, w.tile);
    w.lanes = lanes_short(w.tile);
    w.slices = 1;
    int64_t blocks = smaller(w.tiles, (int64_t)d->sms * RESIDENT_ROWS<N>);
    short_rows_kernel<T, N><<<(unsigned)blocks, THREADS, 0, d->stream>>>(p, w);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T, int N>
static gpu_status launch_short_columns(cuda_device *d, product<T> p)
{
    cut w = {};
    w.tile = p.m;
    w.tiles = 1;
    w.slice = smaller((STAGE<T> - WIDTH<T> + 1) / p.m, SHARE<N>);
    w.slices =
        smaller(ceil_div(p.k, w.slice), (int64_t)d->sms * RESIDENT_COLUMNS);
    cut_fold(&w, p);
    T *partials = NULL;
    TRY(prepare(d, &p, &w, false, &partials));
    short_columns_kernel<T, N><<<(unsigned)w.slices, THREADS, 0, d->stream>>>(
        p, w, partials, d->tickets);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T, bool ALONG, int N>
static gpu_status launch_reach(cuda_device *d, const product<T> &p)
{
    int64_t near = ALONG ? p.a_col : p.a_row, far = ALONG ? p.a_row : p.a_col;
    if (near != 1)
        return launch<T, ALONG, APART, N>(d, p);
    return is_aligned(p.a) && far % WIDTH<T> == 0
               ? launch<T, ALONG, ALIGNED, N>(d, p)
               : launch<T, ALONG, ACROSS, N>(d, p);
}

template <class T, int N>
static gpu_status launch_direction(cuda_device *d, const product<T> &p)
{
    if (p.a_col == 1 && p.a_row == p.k && p.k <= SHORT_ROW)
        return launch_short_rows<T, N>(d, p);
    if (p.a_row == 1 && p.a_col == p.m && p.m <= SHORT_COLUMN)
        return launch_short_columns<T, N>(d, p);
    return stride_size(p.a_col) <= stride_size(p.a_row)
               ? launch_reach<T, true, N>(d, p)
               : launch_reach<T, false, N>(d, p);
}

/* The product with its fewer columns on the right: c^T = b^T a^T where a has
 * fewer rows. */
template <class T> static product<T> turn(const product<T> &p)
{
    if (p.n <= p.m)
        return p;
    return {p.b,     p.a,     p.c,     p.n,     p.m,     p.k,     p.b_col,
            p.b_row, p.a_col, p.a_row, p.c_col, p.c_row, p.alpha, p.beta};
}

template <class T>
static gpu_status launch_vectors(cuda_device *d, const gpu_gemm *g)
{
    product<T> p = turn(typed_product<T>(g));
    if (p.n == 1)
        return launch_direction<T, 1>(d, p);
    return p.n == 2 ? launch_direction<T, 2>(d, p)
                    : launch_direction<T, 4>(d, p);
}

static gpu_status vector_product(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul("vector", p, &g));
    if (p->c.rows > MOST && p->c.cols > MOST)
        return FAIL(
            GPU_UNSUPPORTED,
            "matmul: kernel vector cannot do %lldx%lld: it needs one of "
            "them to be at most %d",
            (long long)p->c.rows, (long long)p->c.cols, MOST);
    return g.c.dtype == GPU_F64 ? launch_vectors<double>(d, &g)
                                : launch_vectors<float>(d, &g);
}

const gpu_kernel gpu_cuda_matmul_vector = {
    .operation = "matmul",
    .name = "vector",
    .idea = "a matrix times at most four vectors, read once at memory speed",
    .needs = "any GPU, m or n at most 4",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = gpu_cuda_matmul_bound,
    .matmul = vector_product,
    .dot = NULL,
};
