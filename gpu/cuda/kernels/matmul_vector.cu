/* matmul vector: a matrix times up to four vectors (or up to four vectors
 * times a matrix) as fast as the matrix can be read: once, and all the
 * vectors together.
 *
 * Limited by bytes: eight 16-byte loads in flight for each of 512 or 768
 * threads, 64 or 96 KiB a multiprocessor. A block takes a tile of the matrix's
 * rows and a slice of k, with that slice of the vectors in shared memory. Where
 * k runs along memory, threads share a row and shuffle their sums together;
 * where the rows do, each thread has some rows for itself and a share of k.
 * f32 chains are short (at most the slice, over the threads that share it);
 * slices are added in f64, in their order, by the block that ends last.
 * Matrices that do not lie on 16 bytes are read element by element. Any GPU,
 * any strides. */
#include "kernel.h"

enum { THREADS = 256, WARPS = THREADS / 32 };
enum { BLOCKS_PER_SM = 4 }; /* to be cut for: all run, or nearly, at once */
enum { MOST = 4 };          /* vectors */
enum { ROWS = 4, ALONG_STEPS = 2, DOWN_STEPS = 8 }; /* loads in flight */
enum { VECTOR_BYTES = 16 << 10 }; /* of shared memory for their slice */
enum { TILE_BYTES = 128 << 10, SHORTEST = 256 }; /* shapes of work */
enum { KEPT = 8, GROUPS = 64, FOLD_UNROLL = 16 };

template <class T> struct alignas(16) vector {
    T at[16 / sizeof(T)];
};
template <class T> constexpr int WIDTH = 16 / sizeof(T);
template <class T, int N>
constexpr int SLICE = VECTOR_BYTES / (N * (int)sizeof(T));

/* Blocks a multiprocessor can hold: as many as their registers allow. */
template <bool ALONG, bool WIDE, int N>
constexpr int RESIDENT = ALONG && !(WIDE && N == 1) ? 2 : 3;

/* How the work is cut: a block takes a tile of rows and a slice of k. The
 * tiles form groups; the last block of a group adds up its slices. */
typedef struct cut {
    int64_t tile, tiles, slice, slices; /* rows, their tiles; of k, slices */
    int64_t per_group;                  /* tiles */
    int lanes;      /* threads side by side in memory: a power of two */
    int fold_lanes; /* threads that add up one element's slices */
} cut;

/* Where a block stands in it. */
typedef struct place_in_cut {
    int64_t tile, slice;
    int64_t row, depth; /* the first of them */
    int rows, depths;   /* how many */
} place_in_cut;

/* All a block needs for writing what it has summed. */
template <class T> struct target {
    const product<T> &p;
    const cut &w;
    T *partials; /* slices x m x n */
    int64_t slice;
};

template <class T>
__device__ __forceinline__ void put(const target<T> &to, int64_t i, int j,
                                    T sum)
{
    if (to.w.slices == 1)
        write_c(to.p, i, j, sum);
    else
        to.partials[(to.slice * to.p.m + i) * to.p.n + j] = sum;
}

/* WIDTH elements of a line of memory: neighbours from `at` on, or where the
 * line cannot be read wide, `apart` from each other; zeros from count on. A
 * wide line's count is a multiple of WIDTH. */
template <class T, bool WIDE>
__device__ __forceinline__ vector<T> fetch(const T *line, int64_t stride,
                                           int at, int apart, int count)
{
    vector<T> v = {};
    if (WIDE && at < count) {
        uint4 bits = __ldcg((const uint4 *)(line + at));
        v = *(vector<T> *)&bits;
    }
#pragma unroll
    for (int e = 0; !WIDE && e < WIDTH<T>; e++)
        if (at + e * apart < count)
            v.at[e] = line[(at + e * apart) * stride];
    return v;
}

/* The same of a line in shared memory. */
template <class T, bool WIDE>
__device__ __forceinline__ vector<T> take(const T *line, int at, int apart,
                                          int count)
{
    vector<T> v = {};
    if (WIDE && at < count)
        v = *(const vector<T> *)(line + at);
#pragma unroll
    for (int e = 0; !WIDE && e < WIDTH<T>; e++)
        if (at + e * apart < count)
            v.at[e] = line[at + e * apart];
    return v;
}

/* The slice of the vectors, one after the other. All of a thread's loads are
 * on their way before the first is stored. */
template <class T, int N>
__device__ __forceinline__ void
keep_vectors(T (*b)[SLICE<T, N>], const product<T> &p, const place_in_cut &at)
{
    const T *from = p.b + at.depth * p.b_row;
    int count = at.depths * N;
    for (int e = threadIdx.x; e < count; e += KEPT * THREADS) {
        T x[KEPT] = {};
#pragma unroll
        for (int u = 0; u < KEPT; u++) {
            int k = (e + u * THREADS) / N, j = (e + u * THREADS) % N;
            if (k < at.depths && j < p.n)
                x[u] = from[k * p.b_row + j * p.b_col];
        }
#pragma unroll
        for (int u = 0; u < KEPT; u++)
            if (e + u * THREADS < count)
                b[(e + u * THREADS) % N][(e + u * THREADS) / N] = x[u];
    }
    __syncthreads(); /* the vectors are there */
}

/* ROWS rows, so many elements from each other; only the first few may be
 * there. */
template <class T> struct lines {
    const T *first;
    int64_t apart;
    int count;
};

/* Adds to the rows' sums what this thread's share of the slice gives. */
template <class T, bool WIDE, int N>
__device__ __forceinline__ void
multiply_lines(T (*sum)[N], const lines<T> &a, int64_t stride,
               const T (*b)[SLICE<T, N>], int depths, int lane, int lanes)
{
    const int step = lanes * WIDTH<T>;
    for (int k = WIDE ? lane * WIDTH<T> : lane; k < depths;
         k += ALONG_STEPS * step) {
        vector<T> x[ALONG_STEPS][ROWS];
#pragma unroll
        for (int u = 0; u < ALONG_STEPS; u++)
#pragma unroll
            for (int q = 0; q < ROWS; q++)
                x[u][q] =
                    fetch<T, WIDE>(a.first + q * a.apart, stride, k + u * step,
                                   lanes, q < a.count ? depths : 0);
#pragma unroll
        for (int u = 0; u < ALONG_STEPS; u++)
#pragma unroll
            for (int j = 0; j < N; j++) {
                vector<T> y = take<T, WIDE>(b[j], k + u * step, lanes, depths);
#pragma unroll
                for (int q = 0; q < ROWS; q++)
#pragma unroll
                    for (int e = 0; e < WIDTH<T>; e++)
                        sum[q][j] += x[u][q].at[e] * y.at[e];
            }
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
    __syncthreads(); /* shared is free: all are done with the vectors */
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

/* k along memory: `lanes` threads share ROWS rows at a time. */
template <class T, bool WIDE, int N>
__device__ __forceinline__ void
sum_along(const target<T> &to, T (*b)[SLICE<T, N>], const place_in_cut &at)
{
    const product<T> &p = to.p;
    int lanes = to.w.lanes, groups = THREADS / lanes;
    int lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
    for (int first = 0; first < at.rows; first += groups * ROWS) {
        int64_t row = at.row + first + group;
        lines<T> a = {p.a + row * p.a_row + at.depth * p.a_col,
                      groups * p.a_row,
                      (at.rows - first - group + groups - 1) / groups};
        T sum[ROWS][N] = {};
        multiply_lines<T, WIDE, N>(sum, a, p.a_col, b, at.depths, lane, lanes);
        fold_lanes<T, N>(sum, lanes, b[0]);
#pragma unroll
        for (int q = 0; q < ROWS; q++)
#pragma unroll
            for (int j = 0; j < N; j++)
                if (lane == 0 && q < a.count && j < p.n)
                    put(to, row + q * groups, j, sum[q][j]);
    }
}

/* Adds up, over the threads that have the same rows, what each summed over
 * its share of k; the first of them has it. */
template <class T, int N>
__device__ __forceinline__ void fold_depths(T (*sum)[N], int lanes, T *shared)
{
    int t = threadIdx.x;
    for (int half = THREADS / 2; half >= lanes; half /= 2) {
        __syncthreads(); /* shared is free */
#pragma unroll
        for (int s = 0; s < WIDTH<T> * N; s++)
            if (t >= half && t < 2 * half)
                shared[s * THREADS / 2 + t - half] = sum[s / N][s % N];
        __syncthreads(); /* the upper half's sums are there */
#pragma unroll
        for (int s = 0; s < WIDTH<T> * N; s++)
            if (t < half)
                sum[s / N][s % N] += shared[s * THREADS / 2 + t];
    }
}

/* Rows along memory: a thread has WIDTH rows and every so many-th k. */
template <class T, bool WIDE, int N>
__device__ __forceinline__ void
sum_down(const target<T> &to, T (*b)[SLICE<T, N>], const place_in_cut &at)
{
    const product<T> &p = to.p;
    const int steps = N == 1 ? DOWN_STEPS : DOWN_STEPS / 2;
    int lanes = to.w.lanes, apart = WIDE ? 1 : lanes;
    int lane = threadIdx.x % lanes, step = THREADS / lanes;
    int row = WIDE ? lane * WIDTH<T> : lane;
    const T *a = p.a + at.row * p.a_row + at.depth * p.a_col;
    T sum[WIDTH<T>][N] = {};
    int64_t jump = step * p.a_col;
    for (int k = threadIdx.x / lanes; k < at.depths; k += steps * step) {
        const T *line = a + k * p.a_col;
        vector<T> x[steps];
#pragma unroll
        for (int u = 0; u < steps; u++)
            x[u] = fetch<T, WIDE>(line + u * jump, p.a_row, row, lanes,
                                  k + u * step < at.depths ? at.rows : 0);
#pragma unroll
        for (int u = 0; u < steps; u++)
#pragma unroll
            for (int j = 0; j < N; j++) {
                int here = k + u * step;
                T y = here < at.depths ? b[j][here] : (T)0;
#pragma unroll
                for (int e = 0; e < WIDTH<T>; e++)
                    sum[e][j] += x[u].at[e] * y;
            }
    }
    fold_depths<T, N>(sum, lanes, b[0]);
#pragma unroll
    for (int e = 0; e < WIDTH<T>; e++)
#pragma unroll
        for (int j = 0; j < N; j++)
            if (threadIdx.x < lanes && row + e * apart < at.rows && j < p.n)
                put(to, at.row + row + e * apart, j, sum[e][j]);
}

/* Are all the partial sums of this block's group written? */
__device__ __forceinline__ bool is_last(const cut &w, int64_t group,
                                        unsigned *tickets)
{
    __shared__ unsigned mine;
    int64_t members =
        min(w.per_group, w.tiles - group * w.per_group) * w.slices;
    __syncthreads(); /* the block's partial sums are written */
    if (threadIdx.x == 0) {
        __threadfence(); /* they are seen before the ticket is drawn */
        mine = atomicAdd(tickets + group, 1);
        if (mine == members - 1)
            tickets[group] = 0;
    }
    __syncthreads(); /* the ticket is known */
    __threadfence(); /* the others' sums are seen after it */
    return mine == members - 1;
}

/* Adds up the slices of a group's elements of c. */
template <class T>
__device__ __forceinline__ void fold_group(const product<T> &p, const cut &w,
                                           const T *partials, int64_t group)
{
    int lane = threadIdx.x % w.fold_lanes;
    int64_t size = p.m * p.n, span = w.per_group * w.tile * p.n;
    int64_t end = min((group + 1) * span, size);
    /* All threads of a warp go round equally often: they shuffle. */
    for (int64_t first = group * span; first < end;
         first += THREADS / w.fold_lanes) {
        int64_t e = first + threadIdx.x / w.fold_lanes;
        double sum = 0;
#pragma unroll FOLD_UNROLL
        for (int64_t s = e < end ? lane : w.slices; s < w.slices;
             s += w.fold_lanes)
            sum += (double)__ldcg(partials + s * size + e);
        for (int apart = w.fold_lanes / 2; apart > 0; apart /= 2)
            sum += __shfl_xor_sync(~0u, sum, apart);
        if (lane == 0 && e < end)
            write_c(p, e / p.n, e % p.n, (T)sum);
    }
}

template <class T, bool ALONG, bool WIDE, int N>
__global__ void __launch_bounds__(THREADS, RESIDENT<ALONG, WIDE, N>)
    vector_kernel(const __grid_constant__ product<T> p,
                  const __grid_constant__ cut w, T *partials, unsigned *tickets)
{
    __shared__ alignas(16) T b[N][SLICE<T, N>];
    /* The blocks running at one time stand side by side in memory. */
    int64_t slice = ALONG ? blockIdx.x % w.slices : blockIdx.x / w.tiles;
    int64_t tile = ALONG ? blockIdx.x / w.slices : blockIdx.x % w.tiles;
    place_in_cut at = {tile, slice, tile * w.tile, slice * w.slice};
    at.rows = (int)min(w.tile, p.m - at.row);
    at.depths = (int)min(w.slice, p.k - at.depth);
    target<T> to = {p, w, partials, slice};
    keep_vectors<T, N>(b, p, at);
    if (ALONG)
        sum_along<T, WIDE, N>(to, b, at);
    else
        sum_down<T, WIDE, N>(to, b, at);
    int64_t group = tile / w.per_group;
    if (w.slices > 1 && is_last(w, group, tickets))
        fold_group(p, w, partials, group);
}

/* The smallest power of two that is at least `least`, but at most `most`. */
static int power_of_two(int64_t least, int most)
{
    int power = 1;
    while (power < most && power < least)
        power *= 2;
    return power;
}

/* Threads of a block that share a row: enough for one wide load each, and
 * more where there are too few rows for all the threads. */
template <class T> static int lanes_along(const product<T> &p)
{
    int64_t loads = ceil_div(p.k, WIDTH<T>);
    int lanes = power_of_two(loads, 32);
    while (lanes < THREADS && THREADS / lanes * ROWS >= 2 * p.m &&
           lanes < loads)
        lanes *= 2;
    return lanes;
}

/* Threads of a block side by side on rows: at most a warp, so that the rest
 * can share k, and more where k is too short for that. */
template <class T> static int lanes_down(const product<T> &p)
{
    int64_t loads = ceil_div(p.m, WIDTH<T>);
    int lanes = power_of_two(loads, 32);
    while (lanes < THREADS && lanes < loads &&
           THREADS / lanes * DOWN_STEPS > p.k)
        lanes *= 2;
    return lanes;
}

/* Rows of a tile: one round of the block's, or, where rows are short, as many
 * rounds as make the block worth starting and leave enough blocks. */
template <class T>
static int64_t find_tile(const product<T> &p, bool along, int lanes,
                         int64_t blocks)
{
    if (!along)
        return lanes * WIDTH<T>;
    int64_t round = THREADS / lanes * ROWS;
    int64_t worth = TILE_BYTES / (round * p.k * (int64_t)sizeof(T) + 1);
    int64_t room = p.m / (round * blocks);
    return round * (lanes > 32 ? 1 : larger(smaller(worth, room), 1));
}

template <class T, int N>
static cut find_cut(const product<T> &p, bool along, int64_t blocks)
{
    cut w;
    w.lanes = along ? lanes_along(p) : lanes_down(p);
    w.tile = find_tile(p, along, w.lanes, blocks);
    w.tiles = ceil_div(p.m, w.tile);
    int64_t least = ceil_div(p.k, SLICE<T, N>);
    int64_t wanted =
        smaller(ceil_div(blocks, w.tiles), ceil_div(p.k, SHORTEST));
    int64_t length = ceil_div(p.k, larger(least, wanted));
    w.slice = ceil_div(length, 32 * WIDTH<T>) * (32 * WIDTH<T>);
    w.slices = ceil_div(p.k, w.slice);
    w.per_group = ceil_div(w.tiles, GROUPS);
    int64_t elements = w.per_group * w.tile * p.n;
    w.fold_lanes = power_of_two(smaller(THREADS / elements, w.slices), 32);
    return w;
}

/* May the matrix be read 16 bytes at a time, without edges? */
template <class T> static bool is_wide(const product<T> &p, bool along)
{
    int64_t near = along ? p.a_col : p.a_row;
    int64_t far = along ? p.a_row : p.a_col;
    int64_t length = along ? p.k : p.m;
    return near == 1 && far % WIDTH<T> == 0 && length % WIDTH<T> == 0 &&
           is_aligned(p.a);
}

template <class T, bool ALONG, bool WIDE, int N>
static gpu_status launch(cuda_device *d, const product<T> &p)
{
    cut w = find_cut<T, N>(p, ALONG, (int64_t)d->sms * BLOCKS_PER_SM);
    T *partials = NULL;
    if (w.tiles > INT32_MAX / w.slices)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: vector cannot cut %lld x %lld into blocks",
                    (long long)p.m, (long long)p.k);
    if (w.slices > 1)
        TRY(gpu_cuda_scratch(d, w.slices * p.m * p.n * sizeof(T),
                             (void **)&partials));
    vector_kernel<T, ALONG, WIDE, N>
        <<<(unsigned)(w.tiles * w.slices), THREADS, 0, d->stream>>>(
            p, w, partials, d->tickets);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T, int N>
static gpu_status launch_direction(cuda_device *d, const product<T> &p)
{
    bool along = stride_size(p.a_col) <= stride_size(p.a_row);
    bool wide = is_wide(p, along);
    if (along)
        return wide ? launch<T, true, true, N>(d, p)
                    : launch<T, true, false, N>(d, p);
    return wide ? launch<T, false, true, N>(d, p)
                : launch<T, false, false, N>(d, p);
}

/* The product with its fewer columns on the right: c^T = b^T a^T where a has
 * fewer rows. */
template <class T> static product<T> turn(const product<T> &p)
{
    if (p.n <= p.m)
        return p;
    return {p.b,     p.a,     p.c,     p.n,     p.m,     p.k,     p.b_col,
            p.b_row, p.a_col, p.a_row, p.c_col, p.c_row, p.alpha, p.beta};
}

template <class T>
static gpu_status launch_vectors(cuda_device *d, const gpu_gemm *g)
{
    product<T> p = turn(typed_product<T>(g));
    if (p.n == 1)
        return launch_direction<T, 1>(d, p);
    return p.n == 2 ? launch_direction<T, 2>(d, p)
                    : launch_direction<T, 4>(d, p);
}

static gpu_status vector_product(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul("vector", p, &g));
    if (p->c.rows > MOST && p->c.cols > MOST)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: vector needs m or n at most %d; here they are "
                    "%lld and %lld",
                    MOST, (long long)p->c.rows, (long long)p->c.cols);
    return g.c.dtype == GPU_F64 ? launch_vectors<double>(d, &g)
                                : launch_vectors<float>(d, &g);
}

const gpu_kernel gpu_cuda_matmul_vector = {
    .operation = "matmul",
    .name = "vector",
    .idea = "a matrix times at most four vectors, read once at memory speed",
    .needs = "any GPU, m or n at most 4",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = gpu_cuda_matmul_bound,
    .matmul = vector_product,
    .dot = NULL,
};
