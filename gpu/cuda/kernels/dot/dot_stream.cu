/* dot stream: enough bytes in flight to keep memory busy, and no second stage
 * on the GPU: each block writes its sum into pinned memory, where the host
 * waits for the sums and adds them up in their order.
 *
 * Limited by bytes when the vectors are long: eight 16-byte loads in flight
 * for each of 1024 threads, 128 KiB a multiprocessor. f32 products are exact
 * in f64 and are added there; at 4.5 TB/s that takes a third of an H200's
 * conversions and a tenth of its f64 arithmetic. Limited by the way to the GPU
 * and back when they are short: the host watches the sums arrive instead of
 * asking for the end of the launch. Where the vectors lie differently in their
 * 16 bytes, y's four neighbours come out of the two loads that hold them, one
 * from the first-level cache; vectors with gaps are read element by element,
 * more loads at a time. Any GPU. */
#include "dot.h"

enum { THREADS = 1024, WARPS = THREADS / 32, BLOCKS_PER_SM = 1 };
enum { NARROW_UNROLL = 8 };
enum { SLOTS = 512 }; /* sums that the pinned memory holds */

template <class T, reach HOW>
__device__ __forceinline__ vector<T> load_beside(const vector<T> *y, int shift)
{
    return HOW == ALIGNED ? load_once(y) : join(y[0], y[1], shift);
}

template <class T, reach HOW>
__device__ double add_wide(const pair<T> &p, parts w, int64_t t, int step)
{
    wide_loads<T> at = find_wide(p, w, t);
    double sum[UNROLL] = {};
    for (int64_t left = w.wide - t; left > 0; left -= UNROLL * step) {
        vector<T> a[UNROLL] = {}, b[UNROLL] = {};
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (u * step < left) {
                a[u] = load_once(at.x + u * step);
                b[u] = load_beside<T, HOW>(at.y + u * step, at.shift);
            }
        add_products(sum, a, b);
        at.x += UNROLL * step;
        at.y += UNROLL * step;
    }
    return add_up(sum);
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

/* HOW: ALIGNED where x and y lie alike in their 16 bytes. */
template <class T, reach HOW>
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    stream_kernel(const pair<T> p, parts w, volatile double *sums)
{
    __shared__ double shared[WARPS];
    int step = gridDim.x * THREADS;
    int64_t t = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    double sum = HOW == APART
                     ? add_narrow(p, t, step)
                     : add_wide<T, HOW>(p, w, t, step) + add_edges(p, w, t);
    sum = fold_block<WARPS>(sum, shared);
    if (threadIdx.x == 0) /* any NaN is the quiet one: it arrives */
        sums[blockIdx.x] =
            sum == sum ? sum : __longlong_as_double(0x7ff8LL << 48);
}

/* Adds up the blocks' sums: four chains, so that an addition need not wait
 * for the one before. */
static gpu_status collect(cuda_device *d, unsigned blocks, double *out)
{
    double sum[4] = {};
    for (unsigned b = 0; b < blocks; b++) {
        TRY(gpu_cuda_await_number(d, (int)b));
        sum[b % 4] += *((const volatile double *)d->slot + b);
    }
    *out = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    return GPU_OK;
}

/* Wide loads of x; y need not lie alike. */
template <class T> static parts find_parts_across(const pair<T> &p)
{
    if (p.y_stride != 1)
        return {0, 0};
    return find_parts<T>({p.x, p.x, p.n, p.x_stride, 1});
}

template <class T, reach HOW>
static gpu_status launch(cuda_device *d, const pair<T> &p, parts w, double *out)
{
    int64_t most = smaller((int64_t)d->sms * BLOCKS_PER_SM, SLOTS);
    int64_t loads = HOW == APART ? p.n : w.wide;
    int64_t wanted = larger(ceil_div(loads, THREADS), 1);
    unsigned blocks = (unsigned)smaller(wanted, most);
    gpu_cuda_empty_slot(d, (int)blocks);
    stream_kernel<T, HOW><<<blocks, THREADS, 0, d->stream>>>(p, w, d->slot);
    LAUNCHED(d);
    return collect(d, blocks, out);
}

template <class T>
static gpu_status launch_reach(cuda_device *d, const gpu_view *x,
                               const gpu_view *y, double *out)
{
    pair<T> p = typed_pair<T>(x, y);
    parts alike = find_parts(p), across = find_parts_across(p);
    if (alike.wide > 0)
        return launch<T, ALIGNED>(d, p, alike, out);
    if (across.wide > 0)
        return launch<T, ACROSS>(d, p, across, out);
    return launch<T, APART>(d, p, alike, out);
}

static gpu_status stream(void *device, const gpu_view *x, const gpu_view *y,
                         double *out)
{
    ENTER(d, device);
    TRY(gpu_cuda_begin_dot("stream", x, y));
    return x->dtype == GPU_F64 ? launch_reach<double>(d, x, y, out)
                               : launch_reach<float>(d, x, y, out);
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
