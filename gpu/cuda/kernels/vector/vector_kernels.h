/* The kernels of matmul vector, and what they share: a block's part of the
 * product, its loads on their way, and how slices of k become one sum. For
 * matmul_vector.cu, which tells the idea, cuts the work and chooses.
 *
 * There are three, by how the matrix lies: k along memory, rows along memory,
 * and lines too short for either. The matrix is a (m x k), and n at most 4:
 * where c has fewer rows than columns, c^T = b^T a^T is what they see. T is f32
 * or f64; HOW, of the matrix' lines, whether all begin on 16 bytes, or
 * anywhere, or have gaps. Each kernel walks over a tile's rows and a slice of
 * k, PLACES loads ahead, and ends in finish, where the block that comes last
 * adds up the slices. */
#ifndef GPU_CUDA_VECTOR_KERNELS_H
#define GPU_CUDA_VECTOR_KERNELS_H

#include "copies.h"
#include "kernel.h"

enum { THREADS = 256, WARPS = THREADS / 32 };
enum { ROWS = 4 }; /* or columns, that a thread takes at a time */
enum { FOLD_UNROLL = 16 };

/* Loads on their way to shared memory: each thread has places of its own there,
 * so that none waits for another. */
enum { PLACES = 8, STAGES = 2, PLACE_BYTES = 16 };
template <class T> using places = vector<T>[PLACES][THREADS];

/* How the work is cut: a block takes a tile of rows and a slice of k. The
 * tiles form groups; the last block of a group adds up its slices. */
typedef struct cut {
    int64_t tile, slice; /* rows; of k */
    unsigned tiles, slices, per_group;
    int lanes;      /* threads side by side in memory */
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
    unsigned slice;
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

/* The j-th vector from one's beginning; where there are fewer, the last, whose
 * sums are then not written. */
template <class T>
__device__ __forceinline__ const T *vector_at(const product<T> &p, const T *b,
                                              int j)
{
    return b + min((int64_t)j, p.n - 1) * p.b_col;
}

/* --- loads --------------------------------------------------------------- */

/* Through the first-level cache where a warp's loads do not fill its lines:
 * they share them with others. What is not wanted becomes zeros. */
template <reach HOW, class T>
__device__ __forceinline__ void start_load(vector<T> *to, const T *from,
                                           bool wanted)
{
    copy_async<PLACE_BYTES, HOW == ACROSS>(shared_address(to), from,
                                           wanted ? PLACE_BYTES : 0);
}

/* The oldest of STAGES groups of loads is there. */
__device__ __forceinline__ void await_stage(void)
{
    wait_for_copies<STAGES - 1>();
}

/* --- the sums of slices -------------------------------------------------- */

/* Are all the partial sums of this block's group written? */
__device__ __forceinline__ bool is_last(const cut &w, unsigned group,
                                        unsigned *tickets)
{
    __shared__ unsigned mine;
    unsigned members =
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
                                           const T *partials, unsigned group)
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
__device__ __forceinline__ void finish(const target<T> &to, unsigned tile,
                                       unsigned *tickets)
{
    unsigned group = tile / to.w.per_group;
    if (to.w.slices > 1 && is_last(to.w, group, tickets))
        fold_group(to.p, to.w, to.partials, group);
}

/* --- k along memory ---------------------------------------------------------
 * Threads share rows. */

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
    end_copies();
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
    wait_for_all_copies();
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

/* --- rows along memory ------------------------------------------------------
 * Each thread has some rows and a share of k. */

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
    end_copies();
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
    wait_for_all_copies();
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

/* --- short lines ------------------------------------------------------------
 * Lines without gaps go through shared memory as they lie. */

enum { SHORT_ROW = 128, SHORT_COLUMN = 32 };  /* the longest of them */
enum { LOADS = 6, STAGED = LOADS * THREADS }; /* of a thread, of a block */
template <class T> constexpr int STAGE = STAGED *WIDTH<T>; /* elements */

/* Blocks that a multiprocessor is to hold. */
enum { RESIDENT_COLUMNS = 3 };
template <int N> constexpr int RESIDENT_ROWS = N == 4 ? 3 : 4;

/* The next stretch of memory on its way to shared memory, as it lies. */
template <class T> struct stretch {
    vector<T> at[LOADS];
};

template <class T>
__device__ __forceinline__ stretch<T> load_stretch(const T *from, int64_t count)
{
    int shift = shift_of(from);
    stretch<T> s = {};
#pragma unroll
    for (int u = 0; u < LOADS; u++) {
        int e = (u * THREADS + threadIdx.x) * WIDTH<T>;
        if (e < count + shift)
            s.at[u] = load_once((const vector<T> *)(from - shift + e));
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

#endif
