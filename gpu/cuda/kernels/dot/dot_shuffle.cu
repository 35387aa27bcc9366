/* dot shuffle: 16-byte loads, sums folded by warp shuffles, and the block
 * that finishes last folds the blocks' sums in a fixed order: one launch.
 *
 * f32 products are exact in f64 and are added there. Limited by bytes: four
 * pairs of 16-byte loads are in flight for each thread. Wide loads need unit
 * strides and vectors that lie alike in their 16 bytes; anything else goes
 * element by element. Any GPU. */
#include "dot.h"

enum { THREADS = 256, WARPS = THREADS / 32, BLOCKS_PER_SM = 4 };

template <class T>
__device__ double add_wide(const pair<T> &p, parts w, int64_t t, int64_t step)
{
    wide_loads<T> at = find_wide(p, w, 0);
    double sum[UNROLL] = {};
    int64_t i = t;
    for (; i + (UNROLL - 1) * step < w.wide; i += UNROLL * step) {
        vector<T> a[UNROLL], b[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            a[u] = at.x[i + u * step];
            b[u] = at.y[i + u * step];
        }
        add_products(sum, a, b);
    }
    for (; i < w.wide; i += step)
        sum[0] += multiply(at.x[i], at.y[i]);
    return add_up(sum);
}

/* Elements from `first` on, one at a time. */
template <class T>
__device__ double add_narrow(const pair<T> &p, int64_t first, int64_t end,
                             int64_t step)
{
    double sum = 0;
#pragma unroll 4
    for (int64_t i = first; i < end; i += step)
        sum += (double)p.x[i * p.x_stride] * (double)p.y[i * p.y_stride];
    return sum;
}

/* Writes the block's sum and says whether all others had written theirs. */
__device__ bool is_last(double sum, double *partials, unsigned *ticket)
{
    __shared__ unsigned mine;
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence(); /* the sum is seen before the ticket is drawn */
        mine = atomicAdd(ticket, 1);
    }
    __syncthreads(); /* the ticket is known */
    return mine == gridDim.x - 1;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    shuffle_kernel(const pair<T> p, parts w, double *partials, unsigned *ticket,
                   double *out)
{
    __shared__ double shared[WARPS];
    int64_t step = (int64_t)gridDim.x * THREADS;
    int64_t t = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    double sum = add_wide(p, w, t, step);
    if (t < w.head)
        sum += add_narrow(p, t, t + 1, 1);
    sum += add_narrow(p, w.head + w.wide * WIDTH<T> + t, p.n, step);
    sum = fold_block<WARPS>(sum, shared);
    if (!is_last(sum, partials, ticket))
        return;
    __threadfence(); /* the others' sums are seen after the ticket */
    sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS)
        sum += __ldcg(partials + i);
    sum = fold_block<WARPS>(sum, shared);
    if (threadIdx.x == 0) {
        *out = sum;
        *ticket = 0;
    }
}

template <class T>
static gpu_status launch(cuda_device *d, const gpu_view *x, const gpu_view *y,
                         double *out)
{
    pair<T> p = typed_pair<T>(x, y);
    parts w = find_parts(p);
    int64_t loads = larger(w.wide, p.n - w.wide * WIDTH<T>);
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    int64_t wanted = ceil_div(loads, THREADS * UNROLL);
    unsigned blocks = (unsigned)smaller(larger(wanted, 1), most);
    double *partials;
    TRY(gpu_cuda_scratch(d, blocks * sizeof(double), (void **)&partials));
    shuffle_kernel<T><<<blocks, THREADS, 0, d->stream>>>(p, w, partials,
                                                         d->tickets, d->slot);
    LAUNCHED(d);
    TRY(gpu_cuda_wait(d));
    *out = *d->slot;
    return GPU_OK;
}

static gpu_status shuffle(void *device, const gpu_view *x, const gpu_view *y,
                          double *out)
{
    ENTER(d, device);
    TRY(gpu_cuda_begin_dot("shuffle", x, y));
    return x->dtype == GPU_F64 ? launch<double>(d, x, y, out)
                               : launch<float>(d, x, y, out);
}

const gpu_kernel gpu_cuda_dot_shuffle = {
    .operation = "dot",
    .name = "shuffle",
    .idea = "16-byte loads and warp shuffles, f64 sums, one launch",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = dot_bound_f64,
    .matmul = NULL,
    .dot = shuffle,
};
