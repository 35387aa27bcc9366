/* dot stream: enough bytes in flight to keep memory busy, and no second stage
 * on the GPU: each block writes its sum into pinned memory, where the host
 * waits for the sums and adds them up in their order.
 *
 * Limited by bytes when the vectors are long: eight 16-byte loads in flight
 * for each of 1024 threads, 128 KiB a multiprocessor. f32 products are exact
 * in f64 and are added there; at 4.5 TB/s that takes a third of an H200's
 * conversions and a tenth of its f64 arithmetic. Limited by the way to the GPU
 * and back when they are short: the host watches the sums arrive instead of
 * asking for the end of the launch. Vectors that lie differently in their 16
 * bytes, or with gaps, are read element by element, more loads at a time. Any
 * GPU. */
#include "dot.h"

enum { THREADS = 512, WARPS = THREADS / 32, BLOCKS_PER_SM = 2 };
enum { UNROLL = 4, NARROW_UNROLL = 8 };
enum { SLOTS = 512 };               /* sums that the pinned memory holds */
enum { POLLS_PER_QUERY = 1 << 14 }; /* about ten microseconds */

/* Stands where a sum has not arrived: a signalling NaN, which no addition
 * gives. */
static const uint64_t missing = 0x7ff0000000000001;

/* Every element is read once: the first-level cache is left alone. */
template <class T>
__device__ __forceinline__ vector<T> load_once(const vector<T> *from)
{
    uint4 bits = __ldcg((const uint4 *)from);
    return *(vector<T> *)&bits;
}

template <class T>
__device__ double add_wide(const pair<T> &p, parts w, int64_t t, int step)
{
    const vector<T> *x = (const vector<T> *)(p.x + w.head) + t;
    const vector<T> *y = (const vector<T> *)(p.y + w.head) + t;
    double sum[UNROLL] = {};
    for (int64_t left = w.wide - t; left > 0; left -= UNROLL * step) {
        vector<T> a[UNROLL] = {}, b[UNROLL] = {};
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (u * step < left) {
                a[u] = load_once(x + u * step);
                b[u] = load_once(y + u * step);
            }
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            sum[u] += multiply(a[u], b[u]);
        x += UNROLL * step;
        y += UNROLL * step;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* The elements before and after the wide loads: one for each of the first
 * few threads. */
template <class T>
__device__ double add_edges(const pair<T> &p, parts w, int64_t t)
{
    if (t >= p.n - w.wide * WIDTH<T>)
        return 0;
    int64_t i = t < w.head ? t : t + w.wide * WIDTH<T>;
    return (double)p.x[i] * (double)p.y[i];
}

template <class T>
__device__ double add_narrow(const pair<T> &p, int64_t t, int64_t step)
{
    double sum = 0;
    for (int64_t i = t; i < p.n; i += NARROW_UNROLL * step) {
        T a[NARROW_UNROLL] = {}, b[NARROW_UNROLL] = {};
#pragma unroll
        for (int u = 0; u < NARROW_UNROLL; u++) {
            int64_t at = i + u * step;
            if (at < p.n) {
                a[u] = p.x[at * p.x_stride];
                b[u] = p.y[at * p.y_stride];
            }
        }
#pragma unroll
        for (int u = 0; u < NARROW_UNROLL; u++)
            sum += (double)a[u] * (double)b[u];
    }
    return sum;
}

template <class T, bool WIDE>
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    stream_kernel(const pair<T> p, parts w, volatile double *sums)
{
    __shared__ double shared[WARPS];
    int step = gridDim.x * THREADS;
    int64_t t = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    double sum = WIDE ? add_wide(p, w, t, step) + add_edges(p, w, t)
                      : add_narrow(p, t, step);
    sum = fold_block<WARPS>(sum, shared);
    if (threadIdx.x == 0) /* any NaN is the quiet one: never `missing` */
        sums[blockIdx.x] =
            sum == sum ? sum : __longlong_as_double(0x7ff8LL << 48);
}

/* Watches one sum arrive. The stream is asked now and then, for when it can
 * not arrive any more. */
static gpu_status await(cuda_device *d, const volatile uint64_t *sum)
{
    for (unsigned polls = 1; *sum == missing; polls++) {
        if (polls % POLLS_PER_QUERY != 0)
            continue;
        cudaError_t state = cudaStreamQuery(d->stream);
        if (state == cudaSuccess)
            break;
        if (state != cudaErrorNotReady)
            return gpu_cuda_check(d, state);
        cudaGetLastError(); /* not being ready is no error to remember */
    }
    return GPU_OK;
}

/* Adds up the blocks' sums: four chains, so that an addition need not wait
 * for the one before. */
static gpu_status collect(cuda_device *d, unsigned blocks, double *out)
{
    double sum[4] = {};
    for (unsigned b = 0; b < blocks; b++) {
        TRY(await(d, (const volatile uint64_t *)d->slot + b));
        sum[b % 4] += *((const volatile double *)d->slot + b);
    }
    *out = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    return GPU_OK;
}

template <class T>
static gpu_status launch(cuda_device *d, const gpu_view *x, const gpu_view *y,
                         double *out)
{
    pair<T> p = typed_pair<T>(x, y);
    parts w = find_parts(p);
    int64_t most = smaller((int64_t)d->sms * BLOCKS_PER_SM, SLOTS);
    int64_t loads = w.wide > 0 ? w.wide : p.n;
    int64_t wanted = larger(ceil_div(loads, THREADS), 1);
    unsigned blocks = (unsigned)smaller(wanted, most);
    for (unsigned b = 0; b < blocks; b++)
        ((volatile uint64_t *)d->slot)[b] = missing;
    if (w.wide > 0)
        stream_kernel<T, true>
            <<<blocks, THREADS, 0, d->stream>>>(p, w, d->slot);
    else
        stream_kernel<T, false>
            <<<blocks, THREADS, 0, d->stream>>>(p, w, d->slot);
    LAUNCHED(d);
    return collect(d, blocks, out);
}

static gpu_status stream(void *device, const gpu_view *x, const gpu_view *y,
                         double *out)
{
    ENTER(d, device);
    TRY(gpu_cuda_begin_dot("stream", x, y));
    return x->dtype == GPU_F64 ? launch<double>(d, x, y, out)
                               : launch<float>(d, x, y, out);
}

const gpu_kernel gpu_cuda_dot_stream = {
    .operation = "dot",
    .name = "stream",
    .idea = "memory kept busy, the host adds what the blocks write to it",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = dot_bound_f64,
    .matmul = NULL,
    .dot = stream,
};
