/* matmul vector where lines are short and without gaps: they go through shared
 * memory as they lie. */
#ifndef GPU_CUDA_VECTOR_SHORT_H
#define GPU_CUDA_VECTOR_SHORT_H

#include "vector_part.h"

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
