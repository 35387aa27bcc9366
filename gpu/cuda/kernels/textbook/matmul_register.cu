/* matmul register: a block of 16 x 16 threads computes a tile of c, each
 * thread a patch of it in registers, while the next slices of a and b are on
 * their way from global memory into the other half of shared memory.
 *
 * A patch of 8 x 8 (f32; 8 x 4 for f64) makes 64 multiply-adds out of four
 * 16-byte reads of shared memory, so the multiply-adds are the limit. Loads
 * are 16 bytes wide where an operand's unit-stride side and its other stride
 * allow, else element by element; edges are tested only in the tiles that
 * have one. Any GPU, any strides. */
#include "kernel.h"

enum { SIDE = 16, THREADS = SIDE * SIDE, DEPTH = 8, PATCH = 8, ROWS = 128 };

template <class T> struct alignas(16) vector {
    T at[16 / sizeof(T)];
};
template <class T> constexpr int WIDTH = 16 / sizeof(T);
template <class T> constexpr int PATCH_COLS = sizeof(T) == 8 ? 4 : 8;
template <class T> constexpr int COLS = SIDE *PATCH_COLS<T>;

/* A slice of an operand: SPAN rows of a (or columns of b), DEPTH of k. In
 * shared memory k is the row; WIDTH elements of padding keep the turned
 * stores of a k-contiguous operand free of bank conflicts. */
template <class T, int SPAN> constexpr int PITCH = SPAN + WIDTH<T>;
template <class T, int SPAN>
constexpr int LOADS = SPAN *DEPTH / WIDTH<T> / THREADS;

/* What one thread loads of an operand's slices: its first element, the
 * strides along rows of a (or columns of b) and along k, and how many of the
 * former are in this tile. */
template <class T> struct operand {
    const T *data;
    int64_t span, depth;
    int left;
    bool wide;
};

/* Where this thread's n-th load starts in a slice. */
template <class T, int SPAN, bool ALONG_K>
__device__ __forceinline__ void load_place(int n, int *s, int *k)
{
    const int per_line = (ALONG_K ? DEPTH : SPAN) / WIDTH<T>;
    const int lines = THREADS / per_line;
    int line = (int)threadIdx.x / per_line + n * lines;
    int first = (int)threadIdx.x % per_line * WIDTH<T>;
    *s = ALONG_K ? line : first;
    *k = ALONG_K ? first : line;
}

template <class T, int SPAN, bool ALONG_K>
__device__ __forceinline__ operand<T> aim(const T *data, int64_t span,
                                          int64_t depth, int64_t first,
                                          int64_t count, bool wide)
{
    int s, k;
    load_place<T, SPAN, ALONG_K>(0, &s, &k);
    return {data + (first + s) * span + k * depth, span, depth,
            (int)min(count - first, (int64_t)SPAN), wide};
}

/* This thread's part of the slice, zeros beyond the edges. */
template <class T, int SPAN, bool ALONG_K>
__device__ __forceinline__ void fetch(vector<T> *stage, const operand<T> &o,
                                      int64_t depth_left)
{
    int k_left = (int)min(depth_left, (int64_t)DEPTH);
#pragma unroll
    for (int n = 0; n < LOADS<T, SPAN>; n++) {
        int s, k, first_s, first_k;
        load_place<T, SPAN, ALONG_K>(0, &first_s, &first_k);
        load_place<T, SPAN, ALONG_K>(n, &s, &k);
        const T *from =
            o.data + (s - first_s) * o.span + (k - first_k) * o.depth;
        int inside = ALONG_K ? k_left - k : o.left - s;
        if (ALONG_K ? s >= o.left : k >= k_left)
            inside = 0;
        if (o.wide && inside >= WIDTH<T>) {
            stage[n] = *(const vector<T> *)from;
            continue;
        }
#pragma unroll
        for (int e = 0; e < WIDTH<T>; e++)
            stage[n].at[e] =
                e < inside ? from[e * (ALONG_K ? o.depth : o.span)] : (T)0;
    }
}

template <class T, int SPAN, bool ALONG_K>
__device__ __forceinline__ void keep(T (*slice)[PITCH<T, SPAN>],
                                     const vector<T> *stage)
{
#pragma unroll
    for (int n = 0; n < LOADS<T, SPAN>; n++) {
        int s, k;
        load_place<T, SPAN, ALONG_K>(n, &s, &k);
        if (!ALONG_K)
            *(vector<T> *)&slice[k][s] = stage[n];
#pragma unroll
        for (int e = 0; ALONG_K && e < WIDTH<T>; e++)
            slice[k + e][s] = stage[n].at[e];
    }
}

/* Elements s of a patch are WIDTH neighbours, then the next WIDTH a quarter
 * (or half) of the tile further on: a warp's reads are then contiguous. */
template <class T> __device__ __forceinline__ int spread(int thread, int s)
{
    return (s / WIDTH<T> * SIDE + thread) * WIDTH<T> + s % WIDTH<T>;
}

template <class T>
__device__ __forceinline__ void
multiply(T (*sum)[PATCH_COLS<T>], T (*a)[PITCH<T, ROWS>],
         T (*b)[PITCH<T, COLS<T>>], int ty, int tx)
{
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        vector<T> x[PATCH / WIDTH<T>], y[PATCH_COLS<T> / WIDTH<T>];
#pragma unroll
        for (int s = 0; s < PATCH; s += WIDTH<T>)
            x[s / WIDTH<T>] = *(vector<T> *)&a[k][spread<T>(ty, s)];
#pragma unroll
        for (int s = 0; s < PATCH_COLS<T>; s += WIDTH<T>)
            y[s / WIDTH<T>] = *(vector<T> *)&b[k][spread<T>(tx, s)];
#pragma unroll
        for (int i = 0; i < PATCH; i++)
#pragma unroll
            for (int j = 0; j < PATCH_COLS<T>; j++)
                sum[i][j] += x[i / WIDTH<T>].at[i % WIDTH<T>] *
                             y[j / WIDTH<T>].at[j % WIDTH<T>];
    }
}

template <class T>
__device__ __forceinline__ void
write_patch(const product<T> &p, T (*sum)[PATCH_COLS<T>], int64_t row,
            int64_t col, int ty, int tx, bool wide)
{
#pragma unroll
    for (int i = 0; i < PATCH; i++) {
        int64_t r = row + spread<T>(ty, i);
        if (r >= p.m)
            continue;
#pragma unroll
        for (int j = 0; j < PATCH_COLS<T>; j += WIDTH<T>) {
            int64_t c = col + spread<T>(tx, j);
            vector<T> v;
#pragma unroll
            for (int e = 0; e < WIDTH<T>; e++)
                v.at[e] = p.alpha * sum[i][j + e];
            if (wide && p.beta == 0 && c + WIDTH<T> <= p.n) {
                *(vector<T> *)(p.c + r * p.c_row + c) = v;
                continue;
            }
#pragma unroll
            for (int e = 0; e < WIDTH<T>; e++)
                if (c + e < p.n)
                    write_c(p, r, c + e, sum[i][j + e]);
        }
    }
}

/* The first row and column of this block's tile. */
template <class T>
__device__ __forceinline__ void find_corner(const product<T> &p, int64_t *row,
                                            int64_t *col)
{
    int64_t down = (p.m + ROWS - 1) / ROWS;
    int64_t across = (p.n + COLS<T> - 1) / COLS<T>;
    tile_of(blockIdx.x, down, across, row, col);
    *row *= ROWS;
    *col *= COLS<T>;
}

/* Which sides may be read or written 16 bytes at a time. */
typedef struct widths {
    bool a, b, c;
} widths;

template <class T, bool A_ALONG_K, bool B_ALONG_K>
__global__ void __launch_bounds__(THREADS, 2)
    register_kernel(const __grid_constant__ product<T> p, widths wide)
{
    __shared__ alignas(16) T a[2][DEPTH][PITCH<T, ROWS>];
    __shared__ alignas(16) T b[2][DEPTH][PITCH<T, COLS<T>>];
    int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE;
    int64_t row, col;
    find_corner(p, &row, &col);
    operand<T> x =
        aim<T, ROWS, A_ALONG_K>(p.a, p.a_row, p.a_col, row, p.m, wide.a);
    operand<T> y =
        aim<T, COLS<T>, B_ALONG_K>(p.b, p.b_col, p.b_row, col, p.n, wide.b);
    vector<T> x_stage[LOADS<T, ROWS>], y_stage[LOADS<T, COLS<T>>];
    T sum[PATCH][PATCH_COLS<T>] = {};
    int half = 0;
    fetch<T, ROWS, A_ALONG_K>(x_stage, x, p.k);
    fetch<T, COLS<T>, B_ALONG_K>(y_stage, y, p.k);
    for (int64_t left = p.k; left > 0; left -= DEPTH, half ^= 1) {
        keep<T, ROWS, A_ALONG_K>(a[half], x_stage);
        keep<T, COLS<T>, B_ALONG_K>(b[half], y_stage);
        x.data += DEPTH * x.depth;
        y.data += DEPTH * y.depth;
        __syncthreads(); /* this half is filled, the other used up */
        if (left > DEPTH) {
            fetch<T, ROWS, A_ALONG_K>(x_stage, x, left - DEPTH);
            fetch<T, COLS<T>, B_ALONG_K>(y_stage, y, left - DEPTH);
        }
        multiply<T>(sum, a[half], b[half], ty, tx);
    }
    find_corner(p, &row, &col); /* again: cheaper than registers kept */
    write_patch<T>(p, sum, row, col, ty, tx, wide.c);
}

template <class T> static bool is_wide(const void *data, int64_t other_stride)
{
    return is_aligned(data) && other_stride % WIDTH<T> == 0;
}

template <class T, bool A_ALONG_K, bool B_ALONG_K>
static gpu_status launch(cuda_device *d, const product<T> &p)
{
    int64_t tiles = ceil_div(p.m, ROWS) * ceil_div(p.n, COLS<T>);
    int64_t a_near = A_ALONG_K ? p.a_col : p.a_row;
    int64_t b_near = B_ALONG_K ? p.b_row : p.b_col;
    widths wide = {
        a_near == 1 && is_wide<T>(p.a, A_ALONG_K ? p.a_row : p.a_col),
        b_near == 1 && is_wide<T>(p.b, B_ALONG_K ? p.b_col : p.b_row),
        p.c_col == 1 && is_wide<T>(p.c, p.c_row)};
    register_kernel<T, A_ALONG_K, B_ALONG_K>
        <<<grid_for(tiles), THREADS, 0, d->stream>>>(p, wide);
    LAUNCHED(d);
    return GPU_OK;
}

/* Loads go along the side whose neighbours are nearer. */
template <class T>
static gpu_status launch_directions(cuda_device *d, const gpu_gemm *g)
{
    product<T> p = typed_product<T>(g);
    bool a_along_k = stride_size(p.a_col) <= stride_size(p.a_row);
    bool b_along_k = stride_size(p.b_row) < stride_size(p.b_col);
    if (a_along_k)
        return b_along_k ? launch<T, true, true>(d, p)
                         : launch<T, true, false>(d, p);
    return b_along_k ? launch<T, false, true>(d, p)
                     : launch<T, false, false>(d, p);
}

static gpu_status register_patches(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul("register", p, &g));
    return g.c.dtype == GPU_F64 ? launch_directions<double>(d, &g)
                                : launch_directions<float>(d, &g);
}

const gpu_kernel gpu_cuda_matmul_register = {
    .operation = "matmul",
    .name = "register",
    .idea = "each thread an 8x8 patch in registers, double-buffered tiles",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = gpu_cuda_matmul_bound,
    .matmul = register_patches,
    .dot = NULL,
};
