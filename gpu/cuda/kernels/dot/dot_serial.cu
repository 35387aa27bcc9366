/* dot serial: a block's threads multiply into shared memory, then thread 0
 * adds the products one by one; the blocks' sums are added the same way.
 *
 * The textbook's first way. Limited by one thread's chain of additions: a
 * shared-memory read and an addition for every element, while 255 threads
 * wait. Any GPU, any strides. */
#include "dot.h"

enum { THREADS = 256, BLOCKS_PER_SM = 8 };

template <class T>
__device__ T add_one_by_one(const T *products, int64_t count, T sum)
{
    for (int n = 0; n < count; n++)
        sum += products[n];
    return sum;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    serial_kernel(const pair<T> p, T *partials)
{
    __shared__ T products[THREADS];
    int64_t rounds = (p.n + THREADS - 1) / THREADS;
    int64_t chunk = (rounds + gridDim.x - 1) / gridDim.x * THREADS;
    int64_t begin = blockIdx.x * chunk, end = min(begin + chunk, p.n);
    T sum = 0;
    for (int64_t first = begin; first < end; first += THREADS) {
        int64_t i = first + threadIdx.x;
        if (i < end)
            products[threadIdx.x] = p.x[i * p.x_stride] * p.y[i * p.y_stride];
        __syncthreads(); /* the products are there */
        if (threadIdx.x == 0)
            sum = add_one_by_one(products, min((int64_t)THREADS, end - first),
                                 sum);
        __syncthreads(); /* they are added, the next may come */
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    serial_fold_kernel(const T *partials, int count, double *out)
{
    __shared__ T values[THREADS];
    T sum = 0;
    for (int first = 0; first < count; first += THREADS) {
        if (first + (int)threadIdx.x < count)
            values[threadIdx.x] = partials[first + threadIdx.x];
        __syncthreads(); /* the partial sums are there */
        if (threadIdx.x == 0)
            sum = add_one_by_one(values, min(THREADS, count - first), sum);
        __syncthreads(); /* they are added, the next may come */
    }
    if (threadIdx.x == 0)
        *out = (double)sum;
}

template <class T>
static gpu_status launch(cuda_device *d, const gpu_view *x, const gpu_view *y,
                         double *out)
{
    return run_stages<T>(d, typed_pair<T>(x, y), THREADS, BLOCKS_PER_SM,
                         serial_kernel<T>, serial_fold_kernel<T>, out);
}

static gpu_status serial(void *device, const gpu_view *x, const gpu_view *y,
                         double *out)
{
    ENTER(d, device);
    TRY(gpu_cuda_begin_dot("serial", x, y));
    return x->dtype == GPU_F64 ? launch<double>(d, x, y, out)
                               : launch<float>(d, x, y, out);
}

const gpu_kernel gpu_cuda_dot_serial = {
    .operation = "dot",
    .name = "serial",
    .idea = "products in shared memory, one thread of each block adds them",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = gpu_cuda_gamma,
    .matmul = NULL,
    .dot = serial,
};
