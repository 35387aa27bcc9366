/* matmul vector where rows run along memory: each thread has some rows and a
 * share of k. */
#ifndef GPU_CUDA_VECTOR_DOWN_H
#define GPU_CUDA_VECTOR_DOWN_H

#include "vector_part.h"

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

#endif
