/* Random fills: Philox4x32-10 indexed by element, the same bits as on the
 * CPU. Source: Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy
 * as 1, 2, 3, 2011.
 *
 * Element e (row-major) takes 32 bits, or 64, of the block of four words that
 * it shares with its neighbours. What of the ten rounds is the same for every
 * block is worked out on the host. A thread makes 16 bytes of the result at a
 * time. Sums and products that must not differ from the CPU's are kept apart
 * from one another by the _rn intrinsics, which are never fused. Limited by
 * bytes for uniforms and integers, by the issue of instructions for normals in
 * f32 (about 50 an element, 40 % of them Philox) and by f64 maths for those in
 * f64. */
#include "cuda_device.h"
#include "kernel_random_body.h"

enum { THREADS = 512, WARPS = THREADS / 32 };

/* --- what the host prepares -------------------------------------------------
 */

enum : uint32_t { WEYL_0 = 0x9e3779b9, WEYL_1 = 0xbb67ae85 };

static jit_rounds prepare(const gpu_random *r, uint32_t upper)
{
    jit_rounds p;
    for (uint32_t n = 0; n < JIT_ROUNDS; n++) {
        p.keys[n][0] = (uint32_t)r->seed + n * WEYL_0;
        p.keys[n][1] = (uint32_t)(r->seed >> 32) + n * WEYL_1;
    }
    uint64_t b = (uint64_t)MULTIPLIER_1 * (uint32_t)r->call;
    uint32_t first = (uint32_t)(b >> 32) ^ upper ^ p.keys[0][0];
    uint64_t a = (uint64_t)MULTIPLIER_0 * first;
    p.early[0] = (uint32_t)(r->call >> 32) ^ p.keys[0][1];
    p.early[1] = (uint32_t)b ^ p.keys[1][0];
    p.early[2] = (uint32_t)(a >> 32) ^ p.keys[1][1];
    p.early[3] = (uint32_t)a ^ p.keys[2][1];
    return p;
}

static float next_below(float x, float than)
{
    return nextafterf(x, than);
}

static double next_below(double x, double than)
{
    return nextafter(x, than);
}

/* last is the largest value below high, where rounding might reach high. */
template <class T> static limits<T> limits_of(const gpu_random *r)
{
    limits<T> l = {(T)r->low, (T)r->high, 0, (T)r->high};
    l.span = l.high - l.low;
    if (l.high > l.low)
        l.last = next_below(l.high, l.low);
    return l;
}

/* May x be scaled in f32, with every step in the range of normal numbers? */
static int is_moderate(double x)
{
    x = x < 0 ? -x : x;
    return x == 0 || (x > 0x1p-60 && x < 0x1p60);
}

int gpu_cuda_fill_draw(const gpu_random *r, int is_f32, jit_draw *to)
{
    limits<float> single = limits_of<float>(r);
    limits<double> wide = limits_of<double>(r);
    if (r->kind == GPU_NORMAL && is_f32 &&
        !(is_moderate(r->low) && is_moderate(r->high)))
        return 0;
    *to = {prepare(r, 0),
           {single.low, single.high, single.span, single.last},
           {wide.low, wide.high, wide.span, wide.last}};
    return 1;
}

/* --- fills ------------------------------------------------------------------
 */

/* The elements from `first` on, `size` of them, whose blocks are `block` and
 * those behind it, of rounds. */
template <class T> struct random_job {
    jit_rounds rounds;
    limits<T> l;
    gpu_view to;
    int64_t first, size;
    uint32_t block;
};

/* 16 bytes of values. */
template <class T> struct alignas(16) vector {
    static constexpr int SIZE = 16 / sizeof(T);
    T at[SIZE];
};

template <int WAY, class T>
__device__ __forceinline__ vector<T> make_vector(const random_job<T> &job,
                                                 uint32_t n)
{
    constexpr int SHARE = share<WAY, T>(), BLOCKS = vector<T>::SIZE / SHARE;
    vector<T> v;
#pragma unroll
    for (int b = 0; b < BLOCKS; b++)
        make<WAY>(job.rounds, job.l, job.block + BLOCKS * n + b,
                  v.at + SHARE * b);
    return v;
}

/* Contiguous elements of type T that begin on 16 bytes. That a vector's number
 * has 32 bits and what is left of them is counted down leaves the loop five
 * instructions that make no numbers. */
template <int WAY, class T>
__global__ void __launch_bounds__(THREADS)
    fill_vectors(const __grid_constant__ random_job<T> job)
{
    constexpr int SIZE = vector<T>::SIZE;
    T *to = (T *)job.to.data + job.first;
    uint32_t n = blockIdx.x * THREADS + threadIdx.x, step = gridDim.x * THREADS;
    int64_t whole = job.size / SIZE;
    if (n == 0 && job.size % SIZE > 0) {
        vector<T> v = make_vector<WAY, T>(job, (uint32_t)whole);
#pragma unroll
        for (int k = 0; k < SIZE; k++)
            if (k < job.size % SIZE)
                to[SIZE * whole + k] = v.at[k];
    }
    if (n >= whole)
        return;
    uint32_t left = (uint32_t)(whole - 1 - n) / step;
    do {
        ((vector<T> *)to)[n] = make_vector<WAY, T>(job, n);
        n += step;
    } while (left-- > 0);
}

/* Any view. A warp's values change places in shared memory, so that its
 * threads write neighbours. */
template <int WAY, class T>
__global__ void __launch_bounds__(THREADS)
    fill_any(const __grid_constant__ random_job<T> job)
{
    constexpr int SIZE = vector<T>::SIZE;
    __shared__ vector<T> shared[THREADS];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const T *own = shared[warp * 32].at;
    int64_t n = blockIdx.x * (int64_t)THREADS + warp * 32;
    for (; SIZE * n < job.size; n += gridDim.x * (int64_t)THREADS) {
        shared[threadIdx.x] = make_vector<WAY, T>(job, (uint32_t)n + lane);
        __syncwarp(); /* the warp's values are written */
#pragma unroll
        for (int k = lane; k < 32 * SIZE; k += 32)
            if (SIZE * n + k < job.size)
                store<T>(job.to, place_of(job.to, job.first + SIZE * n + k),
                         own[k]);
        __syncwarp(); /* and read */
    }
}

/* As many threads as fit at once; each goes on with stride. The blocks of a
 * launch have the upper half of their numbers in common. */
template <int WAY, class T>
static gpu_status fill(cuda_device *d, const gpu_random *r, const gpu_view *to)
{
    int64_t size = to->rows * to->cols;
    constexpr int64_t SHARE = share<WAY, T>(), COMMON = (int64_t)1 << 32;
    random_job<T> job = {{}, limits_of<T>(r), *to, 0, 0, 0};
    int is_direct = to->dtype == (sizeof(T) == 8 ? GPU_F64 : GPU_F32) &&
                    to->cols == 1 && to->row_stride == 1 &&
                    is_aligned(to->data);
    for (; job.first < size; job.first += job.size) {
        int64_t block = (r->first + job.first) / SHARE;
        job.block = (uint32_t)block;
        job.rounds = prepare(r, (uint32_t)(block / COMMON));
        job.size = smaller(size - job.first, (COMMON - job.block) * SHARE);
        int64_t blocks = ceil_div(job.size, THREADS * vector<T>::SIZE);
        blocks = smaller(blocks, (int64_t)d->sms * (2048 / THREADS));
        if (is_direct)
            fill_vectors<WAY, T>
                <<<(unsigned)blocks, THREADS, 0, d->stream>>>(job);
        else
            fill_any<WAY, T><<<(unsigned)blocks, THREADS, 0, d->stream>>>(job);
        LAUNCHED(d);
    }
    return GPU_OK;
}

gpu_status gpu_cuda_random(void *device, const gpu_random *r,
                           const gpu_view *to)
{
    ENTER(d, device);
    gpu_view target = *to;
    int is_f32 = to->dtype == GPU_F32;
    if (to->rows == 0 || to->cols == 0)
        return GPU_OK;
    flatten(&target);
    switch (r->kind) {
    case GPU_UNIFORM:
        return to->dtype == GPU_F64 ? fill<JIT_UNIFORM, double>(d, r, &target)
                                    : fill<JIT_UNIFORM, float>(d, r, &target);
    case GPU_NORMAL:
        return is_f32 && is_moderate(r->low) && is_moderate(r->high)
                   ? fill<JIT_NORMAL, float>(d, r, &target)
                   : fill<JIT_NORMAL, double>(d, r, &target);
    default:
        return is_f32 ? fill<JIT_INTEGER, float>(d, r, &target)
                      : fill<JIT_INTEGER, double>(d, r, &target);
    }
}
