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

enum { THREADS = 512, WARPS = THREADS / 32 };

/* --- Philox ----------------------------------------------------------------
 */

enum : uint32_t { MULTIPLIER_0 = 0xd2511f53, MULTIPLIER_1 = 0xcd9e8d57 };
enum : uint32_t { WEYL_0 = 0x9e3779b9, WEYL_1 = 0xbb67ae85 };
enum { ROUNDS = 10 };

/* The rounds of all blocks whose number has the same upper 32 bits. Of the
 * counter only the lower word differs, so that one of the two products of each
 * of the first two rounds is common to them: it lies in early, joined with the
 * keys. */
typedef struct philox {
    uint32_t early[4];
    uint32_t keys[ROUNDS][2];
} philox;

static philox prepare(const gpu_random *r, uint32_t upper)
{
    philox p;
    for (uint32_t n = 0; n < ROUNDS; n++) {
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

__device__ __forceinline__ void draw(const philox &p, uint32_t block,
                                     uint32_t w[4])
{
    uint64_t a = (uint64_t)MULTIPLIER_0 * block;
    uint64_t b = (uint64_t)MULTIPLIER_1 * ((uint32_t)(a >> 32) ^ p.early[0]);
    w[0] = (uint32_t)(b >> 32) ^ p.early[1];
    w[1] = (uint32_t)b;
    w[2] = (uint32_t)a ^ p.early[2];
    w[3] = 0;
#pragma unroll
    for (int n = 2; n < ROUNDS; n++) {
        a = (uint64_t)MULTIPLIER_0 * w[0];
        b = (uint64_t)MULTIPLIER_1 * w[2];
        w[0] = (uint32_t)(b >> 32) ^ w[1] ^ p.keys[n][0];
        w[1] = (uint32_t)b;
        w[2] =
            (uint32_t)(a >> 32) ^ (n == 2 ? p.early[3] : w[3] ^ p.keys[n][1]);
        w[3] = (uint32_t)a;
    }
}

/* --- from words to values ---------------------------------------------------
 */

/* Limits in the type that is computed in; last is the largest value below
 * high, where rounding might reach high. */
template <class T> struct limits {
    T low, high, span, last;
};

static float next_below(float x, float than)
{
    return nextafterf(x, than);
}

static double next_below(double x, double than)
{
    return nextafter(x, than);
}

template <class T> static limits<T> limits_of(const gpu_random *r)
{
    limits<T> l = {(T)r->low, (T)r->high, 0, (T)r->high};
    l.span = l.high - l.low;
    if (l.high > l.low)
        l.last = next_below(l.high, l.low);
    return l;
}

__device__ __forceinline__ uint64_t word(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

/* A pair of words as a fraction of 2^64 whose lower 11 bits are dropped. */
__device__ __forceinline__ double fraction(uint32_t low, uint32_t high)
{
    return (double)(int64_t)(word(low, high) >> 11) * 0x1p-53;
}

/* Four of a block's 32-bit uniforms, or two of its 64-bit ones. */
__device__ __forceinline__ void uniforms(const limits<float> &l,
                                         const uint32_t w[4], float *v)
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float u = __fmul_rn((float)(w[k] >> 8), 0x1p-24f);
        float x = __fadd_rn(l.low, __fmul_rn(l.span, u));
        v[k] = x >= l.high ? l.last : x;
    }
}

__device__ __forceinline__ void uniforms(const limits<double> &l,
                                         const uint32_t w[4], double *v)
{
#pragma unroll
    for (int k = 0; k < 2; k++) {
        double u = fraction(w[2 * k], w[2 * k + 1]);
        double x = __dadd_rn(l.low, __dmul_rn(l.span, u));
        v[k] = x >= l.high ? l.last : x;
    }
}

/* Integers of an f32 fit in 26 bits, their span, too. */
__device__ __forceinline__ void integers(const limits<float> &l,
                                         const uint32_t w[4], float *v)
{
    int low = (int)l.low;
    uint32_t span = (uint32_t)((int)l.high - low) + 1;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint64_t above = (uint64_t)w[2 * k + 1] * span;
        above += __umulhi(w[2 * k], span);
        v[k] = (float)(low + (int)(above >> 32));
    }
}

__device__ __forceinline__ void integers(const limits<double> &l,
                                         const uint32_t w[4], double *v)
{
    int64_t low = (int64_t)l.low;
    uint64_t span = (uint64_t)((int64_t)l.high - low) + 1;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint64_t own = word(w[2 * k], w[2 * k + 1]);
        v[k] = (double)(low + (int64_t)__umul64hi(own, span));
    }
}

/* high 2^-32 + low 2^-53, to about a unit in the last place. */
__device__ __forceinline__ float joined(uint32_t high, uint32_t low)
{
    return __fmaf_rn((float)low, 0x1p-53f, __fmul_rn((float)high, 0x1p-32f));
}

/* -2 log u, where u is the first pair's fraction and 2^-53. Above 2/3 it is
 * 1 - u that is rounded to f32, so that the result has few units of error
 * there, too. The polynomial is ours, a fit of least relative error to
 * (2 f - 2 log(1 + f)) / f^2 on [-1/3, 1/3]: 2^-25 of the whole. */
__device__ __forceinline__ float squared_radius(uint32_t low, uint32_t high)
{
    uint32_t near_1 = high > 0xaaaaaaaau ? ~0u : 0;
    float x = joined(high ^ near_1, ((low ^ near_1) >> 11) + near_1 + 1);
    int bits = __float_as_int(x);
    int scale = (bits - 0x3f2aaaab) & (int)0xff800000; /* x in 2/3 .. 4/3 */
    float f = __fadd_rn(__int_as_float(bits - scale), -1);
    f = near_1 ? -x : f;
    scale = near_1 ? 0 : scale;
    float q = -0.28052717f;
    q = __fmaf_rn(q, f, 0.30777079f);
    q = __fmaf_rn(q, f, -0.27991614f);
    q = __fmaf_rn(q, f, 0.32831922f);
    q = __fmaf_rn(q, f, -0.40022337f);
    q = __fmaf_rn(q, f, 0.50015638f);
    q = __fmaf_rn(q, f, -0.66666396f);
    q = __fmaf_rn(q, f, 0.99999872f);
    q = __fmaf_rn(__fmul_rn(f, f), q, __fmul_rn(f, -2));
    return __fmaf_rn((float)scale, -0x1.62e430p-23f, q); /* -2 log(2) 2^-23 */
}

/* Cosine and sine of the second pair's fraction of a turn. What is left of
 * the nearest quarter is found exactly, as an integer, and rounded then: near
 * a root, too, the error is a few units. Polynomials as above, on an eighth of
 * a turn: 2^-28 and 2^-24. */
#define TURN 6.2831855f          /* 2 pi */
#define TURN_REST -1.7484555e-7f /* and what it lacks */

__device__ __forceinline__ void turn(uint32_t low, uint32_t high, float *cosine,
                                     float *sine)
{
    uint32_t shifted = high + 0x20000000u; /* its upper two bits: quarters */
    uint32_t rest = (shifted & 0x3fffffff) - 0x20000000u;
    uint32_t minus = (uint32_t)((int)rest >> 31);
    float t = joined(rest ^ minus, ((low ^ minus) >> 11) - minus);
    float z = __fmul_rn(t, t);
    float s = -75.39349001f;
    s = __fmaf_rn(s, z, 81.59235155f);
    s = __fmaf_rn(s, z, -41.34166144f);
    s = __fmaf_rn(s, z, TURN_REST);
    s = __fmaf_rn(t, TURN, __fmul_rn(s, t));
    s = __uint_as_float(__float_as_uint(s) ^ (rest & 0x80000000u));
    float c = -83.62919128f;
    c = __fmaf_rn(c, z, 64.92242205f);
    c = __fmaf_rn(c, z, -19.7391633f);
    c = __fmaf_rn(c, z, 1);
    bool is_odd = shifted >> 30 & 1;
    uint32_t of_cosine = (shifted + 0x40000000u) & 0x80000000u;
    uint32_t of_sine = shifted & 0x80000000u;
    *cosine = __uint_as_float(__float_as_uint(is_odd ? s : c) ^ of_cosine);
    *sine = __uint_as_float(__float_as_uint(is_odd ? c : s) ^ of_sine);
}

__device__ __forceinline__ float quick_root(float x)
{
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

/* Box and Muller's pair: the even element takes the cosine. */
__device__ __forceinline__ void normals(const limits<float> &l,
                                        const uint32_t w[4], float *v)
{
    float radius = quick_root(squared_radius(w[0], w[1])), c, s;
    turn(w[2], w[3], &c, &s);
    radius = __fmul_rn(radius, l.high);
    v[0] = __fmaf_rn(radius, c, l.low);
    v[1] = __fmaf_rn(radius, s, l.low);
}

__device__ __forceinline__ void normals(const limits<double> &l,
                                        const uint32_t w[4], double *v)
{
    double c, s;
    double radius = sqrt(-2 * log(fraction(w[0], w[1]) + 0x1p-53));
    sincospi(2 * fraction(w[2], w[3]), &s, &c);
    v[0] = __dadd_rn(l.low, __dmul_rn(l.high, radius * c));
    v[1] = __dadd_rn(l.low, __dmul_rn(l.high, radius * s));
}

/* --- fills ------------------------------------------------------------------
 */

/* The elements from `first` on, `size` of them, whose blocks are 0, 1 … of
 * rounds. */
template <class T> struct random_job {
    philox rounds;
    limits<T> l;
    gpu_view to;
    int64_t first, size;
};

/* 16 bytes of values. */
template <class T> struct alignas(16) vector {
    static constexpr int SIZE = 16 / sizeof(T);
    T at[SIZE];
};

/* How many elements share a block. */
template <int KIND, class T> __host__ __device__ constexpr int share()
{
    return KIND == GPU_UNIFORM && sizeof(T) == 4 ? 4 : 2;
}

template <int KIND, class T>
__device__ __forceinline__ vector<T> make(const random_job<T> &job, uint32_t n)
{
    constexpr int SHARE = share<KIND, T>(), BLOCKS = vector<T>::SIZE / SHARE;
    vector<T> v;
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
        uint32_t w[4];
        draw(job.rounds, BLOCKS * n + b, w);
        if (KIND == GPU_UNIFORM)
            uniforms(job.l, w, v.at + SHARE * b);
        else if (KIND == GPU_NORMAL)
            normals(job.l, w, v.at + SHARE * b);
        else
            integers(job.l, w, v.at + SHARE * b);
    }
    return v;
}

/* Contiguous elements of type T that begin on 16 bytes. */
template <int KIND, class T>
__global__ void __launch_bounds__(THREADS)
    fill_vectors(const __grid_constant__ random_job<T> job)
{
    constexpr int SIZE = vector<T>::SIZE;
    T *to = (T *)job.to.data + job.first;
    int64_t n = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    int64_t left = job.size - SIZE * n, step = gridDim.x * (int64_t)THREADS;
    for (; left >= SIZE; n += step, left -= SIZE * step)
        ((vector<T> *)to)[n] = make<KIND, T>(job, (uint32_t)n);
    if (left <= 0)
        return;
    vector<T> v = make<KIND, T>(job, (uint32_t)n);
#pragma unroll
    for (int k = 0; k < SIZE; k++)
        if (k < left)
            to[SIZE * n + k] = v.at[k];
}

/* Any view. A warp's values change places in shared memory, so that its
 * threads write neighbours. */
template <int KIND, class T>
__global__ void __launch_bounds__(THREADS)
    fill_any(const __grid_constant__ random_job<T> job)
{
    constexpr int SIZE = vector<T>::SIZE;
    __shared__ vector<T> shared[THREADS];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const T *own = shared[warp * 32].at;
    int64_t n = blockIdx.x * (int64_t)THREADS + warp * 32;
    for (; SIZE * n < job.size; n += gridDim.x * (int64_t)THREADS) {
        shared[threadIdx.x] = make<KIND, T>(job, (uint32_t)n + lane);
        __syncwarp(); /* the warp's values are written */
#pragma unroll
        for (int k = lane; k < 32 * SIZE; k += 32)
            if (SIZE * n + k < job.size)
                store<T>(job.to, place_of(job.to, job.first + SIZE * n + k),
                         own[k]);
        __syncwarp(); /* and read */
    }
}

/* As many threads as fit at once; each goes on with stride. */
template <int KIND, class T>
static gpu_status fill(cuda_device *d, const gpu_random *r, const gpu_view *to)
{
    int64_t size = to->rows * to->cols;
    int64_t most = (int64_t)share<KIND, T>() << 32;
    random_job<T> job = {{}, limits_of<T>(r), *to, 0, 0};
    int is_direct = to->dtype == (sizeof(T) == 8 ? GPU_F64 : GPU_F32) &&
                    to->cols == 1 && to->row_stride == 1 &&
                    is_aligned(to->data);
    for (; job.first < size; job.first += most) {
        int64_t left = smaller(size - job.first, most);
        int64_t blocks = ceil_div(left, THREADS * vector<T>::SIZE);
        blocks = smaller(blocks, (int64_t)d->sms * (2048 / THREADS));
        job.size = left;
        job.rounds = prepare(r, (uint32_t)(job.first / most));
        if (is_direct)
            fill_vectors<KIND, T>
                <<<(unsigned)blocks, THREADS, 0, d->stream>>>(job);
        else
            fill_any<KIND, T><<<(unsigned)blocks, THREADS, 0, d->stream>>>(job);
        LAUNCHED(d);
    }
    return GPU_OK;
}

/* May x be scaled in f32, with every step in the range of normal numbers? */
static int is_moderate(double x)
{
    x = x < 0 ? -x : x;
    return x == 0 || (x > 0x1p-60 && x < 0x1p60);
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
        return to->dtype == GPU_F64 ? fill<GPU_UNIFORM, double>(d, r, &target)
                                    : fill<GPU_UNIFORM, float>(d, r, &target);
    case GPU_NORMAL:
        return is_f32 && is_moderate(r->low) && is_moderate(r->high)
                   ? fill<GPU_NORMAL, float>(d, r, &target)
                   : fill<GPU_NORMAL, double>(d, r, &target);
    default:
        return is_f32 ? fill<GPU_INTEGER, float>(d, r, &target)
                      : fill<GPU_INTEGER, double>(d, r, &target);
    }
}
