/* Convolutions as they are defined, with the CPU's bits: sums in f64, in the
 * order of y's rows, a product rounded before it is added.
 *
 * A block makes a piece of a row of out. Of each row of y it brings as many
 * elements as there is room for into shared memory, with those of x that they
 * meet; a thread makes OUTPUTS neighbours, whose x moves through its registers
 * by one an element of y: two reads of shared memory for OUTPUTS products and
 * sums. Limited by f64 arithmetic. Any GPU, any strides. */
#include "cuda_device.h"
#include "fft.h"

enum { THREADS = 128, OUTPUTS = 8, TAPS = 512, PIECE = THREADS * OUTPUTS };

/* Threads read 8 elements from each other: without gaps all from one bank. */
__device__ __forceinline__ int padded(int at)
{
    return at + at / OUTPUTS;
}

/* Places of x, in the row of c: `left` is that of xs[0]. */
template <class T>
__device__ __forceinline__ void bring(const gpu_convolution &c, int64_t row,
                                      int64_t left, int count, double *xs)
{
    for (int t = threadIdx.x; t < count; t += THREADS) {
        int64_t j = left + t;
        xs[padded(t)] = j >= 0 && j < c.x.cols
                            ? (double)((const T *)c.x.data)[place(c.x, row, j)]
                            : 0;
    }
}

/* sums[k] += x[at + k - v] ys[v]; xs[0] is the first of x that is met. GUARDED:
 * places outside of x, from `left` of xs[0] on, are no zeros: they are left
 * out. */
template <bool GUARDED>
__device__ __forceinline__ void add_taps(const double *xs, const double *ys,
                                         int taps, int64_t left, int64_t cols,
                                         double *sums)
{
    int at = threadIdx.x * OUTPUTS + taps - 1;
    double x[OUTPUTS];
#pragma unroll
    for (int k = 0; k < OUTPUTS; k++)
        x[k] = xs[padded(at + k)];
#pragma unroll 8 /* no moves from x to x */
    for (int v = 0; v < taps; v++) {
        double y = ys[v];
#pragma unroll
        for (int k = 0; k < OUTPUTS; k++) {
            int64_t j = left + at + k - v;
            double sum = __dadd_rn(sums[k], __dmul_rn(x[k], y));
            sums[k] = GUARDED && (j < 0 || j >= cols) ? sums[k] : sum;
        }
#pragma unroll
        for (int k = OUTPUTS - 1; k > 0; k--)
            x[k] = x[k - 1];
        if (v + 1 < taps)
            x[0] = xs[padded(at - v - 1)];
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    convolve_kernel(const __grid_constant__ gpu_convolution c)
{
    __shared__ double xs[PIECE + TAPS + (PIECE + TAPS) / OUTPUTS + 1];
    __shared__ double ys[TAPS];
    int64_t pieces = (c.out.cols + PIECE - 1) / PIECE;
    for (int64_t p = blockIdx.x; p < c.out.rows * pieces; p += gridDim.x) {
        int64_t i = divide(p, pieces), first = (p - i * pieces) * PIECE;
        double sums[OUTPUTS] = {};
        for (int64_t u = 0; u < c.y.rows; u++) {
            int64_t row = i + c.row - u;
            if (row < 0 || row >= c.x.rows)
                continue;
            for (int64_t v = 0; v < c.y.cols; v += TAPS) {
                int taps = (int)(c.y.cols - v < TAPS ? c.y.cols - v : TAPS);
                int64_t left = first + c.col - v - (taps - 1);
                int count = PIECE + taps - 1;
                bring<T>(c, row, left, count, xs);
                for (int t = threadIdx.x; t < taps; t += THREADS)
                    ys[t] = (double)((const T *)c.y.data)[place(c.y, u, v + t)];
                __syncthreads(); /* xs and ys are there */
                if (left >= 0 && left + count <= c.x.cols)
                    add_taps<false>(xs, ys, taps, left, c.x.cols, sums);
                else
                    add_taps<true>(xs, ys, taps, left, c.x.cols, sums);
                __syncthreads(); /* and have been read */
            }
        }
        for (int k = 0; k < OUTPUTS; k++) {
            int64_t j = first + threadIdx.x * OUTPUTS + k;
            if (j < c.out.cols)
                ((T *)c.out.data)[place(c.out, i, j)] = (T)sums[k];
        }
    }
}

gpu_status gpu_cuda_convolve(void *device, const gpu_convolution *call)
{
    enum { MOST_BLOCKS = 1 << 20 };
    gpu_convolution c = *call;
    ENTER(d, device);
    if (c.out.cols == 1) { /* a vector, or a column */
        swap_axes(&c.x);
        swap_axes(&c.y);
        swap_axes(&c.out);
        c.row = call->col;
        c.col = call->row;
    }
    int64_t pieces = c.out.rows * ceil_div(c.out.cols, PIECE);
    unsigned blocks = (unsigned)smaller(pieces, MOST_BLOCKS);
    if (c.out.dtype == GPU_F64)
        convolve_kernel<double><<<blocks, THREADS, 0, d->stream>>>(c);
    else
        convolve_kernel<float><<<blocks, THREADS, 0, d->stream>>>(c);
    LAUNCHED(d);
    return GPU_OK;
}
