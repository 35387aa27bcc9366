/* matmul vector where k runs along memory: threads share rows. */
#ifndef GPU_CUDA_VECTOR_ALONG_H
#define GPU_CUDA_VECTOR_ALONG_H

#include "vector_part.h"

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

#endif
