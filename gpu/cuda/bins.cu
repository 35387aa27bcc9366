/* Histograms on the GPU: every block counts in shared memory, then adds to the
 * whole. */
#include "view.h"

enum { THREADS = 256, ITEMS = 8, BLOCKS_PER_SM = 5 };

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
         first < job.size; first += ITEMS * step) {
        S stored[ITEMS];
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            if (first + k * step < job.size)
                stored[k] = elements[place_of(job.v, first + k * step)];
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
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
    unsigned blocks = (unsigned)smaller(ceil_div(job.size, THREADS * ITEMS),
                                        (int64_t)d->sms * BLOCKS_PER_SM);
    auto kernel = v->dtype == GPU_F64   ? bins_kernel<double>
                  : v->dtype == GPU_F32 ? bins_kernel<float>
                                        : bins_kernel<uint8_t>;
    kernel<<<blocks, THREADS, how->edges.count * sizeof(unsigned), d->stream>>>(
        job);
    LAUNCHED(d);
    return gpu_cuda_download(device, counts, job.counts, bytes);
}
