/* dot tree: each thread runs through the vectors a grid apart, then a block
 * halves its sums in shared memory; a second launch halves the blocks' sums.
 *
 * The textbook's second way. Limited by bytes once the vectors are long, and
 * by eight barriers and two launches when they are short. Any GPU, any
 * strides. */
#include "dot.h"

enum { THREADS = 256, BLOCKS_PER_SM = 8 };

/* Thread 0 returns the sum over the block, the others something. */
template <class T> __device__ T halve(T sum, T *shared)
{
    shared[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads(); /* the sums of the step before are there */
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    return shared[threadIdx.x];
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    tree_kernel(const pair<T> p, T *partials)
{
    __shared__ T shared[THREADS];
    int64_t step = (int64_t)gridDim.x * THREADS;
    T sum = 0;
    for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < p.n;
         i += step)
        sum += p.x[i * p.x_stride] * p.y[i * p.y_stride];
    sum = halve(sum, shared);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    tree_fold_kernel(const T *partials, int count, double *out)
{
    __shared__ T shared[THREADS];
    T sum = 0;
    for (int i = threadIdx.x; i < count; i += THREADS)
        sum += partials[i];
    sum = halve(sum, shared);
    if (threadIdx.x == 0)
        *out = (double)sum;
}

template <class T>
static gpu_status launch(cuda_device *d, const gpu_view *x, const gpu_view *y,
                         double *out)
{
    return run_stages<T>(d, typed_pair<T>(x, y), THREADS, BLOCKS_PER_SM,
                         tree_kernel<T>, tree_fold_kernel<T>, out);
}

static gpu_status tree(void *device, const gpu_view *x, const gpu_view *y,
                       double *out)
{
    ENTER(d, device);
    TRY(gpu_cuda_begin_dot("tree", x, y));
    return x->dtype == GPU_F64 ? launch<double>(d, x, y, out)
                               : launch<float>(d, x, y, out);
}

const gpu_kernel gpu_cuda_dot_tree = {
    .operation = "dot",
    .name = "tree",
    .idea = "sums halved in shared memory, then the blocks' sums again",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = gpu_cuda_gamma,
    .matmul = NULL,
    .dot = tree,
};
