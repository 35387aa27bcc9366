/* matmul simt: true FP32 multiply-adds, at the rate the multiprocessors can
 * issue them. Slices of a and b, 16 of k deep, travel through a ring in shared
 * memory by asynchronous copies while each thread multiplies a patch of c out
 * of fragments read one step of k ahead.
 *
 * Limited by issue slots: a patch of 16 x 8 makes 128 multiply-adds out of six
 * 16-byte reads. The lanes of a warp are laid 4 x 8 in pairs, so that each half
 * warp's reads are one pass over the banks. In shared memory an operand always
 * has k as its row; a k-contiguous one is turned by 4-byte copies on its way,
 * which any stride can take as well. 16-byte copies need a unit stride across
 * k and an aligned one along it. Products with few tiles are cut along k, and
 * the parts added in a fixed order. Needs sm_80 (cp.async). */
#include "kernel.h"
#include "simt.h"

/* --- the kernels ------------------------------------------------------------
 * A block's tile of c, and the sum of parts of k. */

enum {
    DEPTH = 16, /* of k in a slice */
    WIDTH = 4,  /* floats in 16 bytes */
    LANE_ROWS = 4,
    LANE_COLS = 8,
    NARROW_DEPTH = 8, /* of k the block's 4-byte copies cover at a time */
    FOLD_THREADS = 256,
    MAX_GROUPS = 8
};

/* The tile of c a block computes, the patch of it that is a thread's, slices in
 * the ring, and blocks for a multiprocessor to hold. */
typedef struct shape {
    int rows, cols, patch_rows, patch_cols, stages, blocks;
} shape;

/* Blocks of four warps wait for each other less than blocks of eight. */
template <shape S>
constexpr int THREADS = S.rows *S.cols / (S.patch_rows * S.patch_cols);

/* sm_80 needs a few more registers than four blocks leave. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900
template <shape S> constexpr int BLOCKS = S.blocks < 3 ? S.blocks : 3;
#else
template <shape S> constexpr int BLOCKS = S.blocks;
#endif

/* WIDTH floats of padding: neighbours along k are four banks apart, so the
 * turning copies of a warp (8 of k x 4) meet no bank twice. */
template <int SPAN> constexpr int PITCH = SPAN + WIDTH;
template <shape S>
constexpr int SLICE = DEPTH *(PITCH<S.rows> + PITCH<S.cols>); /* floats */
template <shape S>
constexpr int SHARED_BYTES = S.stages *SLICE<S> *(int)sizeof(float);

/* How an operand is copied: 16 bytes at a time, or 4 with neighbouring lanes
 * across k or along it, where that stride is 1, or in any case. */
typedef enum access { WIDE, ACROSS, ALONG, ANY } access;

/* What the blocks do besides p: tile and part of k come from a unit's number.
 * Parts of k are written one behind the other, part_floats apart. */
typedef struct job {
    unsigned tiles, units;
    int64_t part_k, part_floats;
    access a, b;
    bool wide_c;
    const int *gate;
} job;

struct alignas(16) vector {
    float at[WIDTH];
};

/* Beyond `bytes` the destination gets zeros. */
__device__ __forceinline__ void copy_16(unsigned to, const float *from,
                                        int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "r"(bytes));
}

__device__ __forceinline__ void copy_4(unsigned to, const float *from,
                                       int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to),
                 "l"(from), "r"(bytes));
}

__device__ __forceinline__ void end_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits for this thread's copies but for the newest `left` groups. */
template <int left> __device__ __forceinline__ void wait_for_groups()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

/* Until the kernel before has ended and its writes are seen. */
__device__ __forceinline__ void wait_for_previous()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* What one thread copies of an operand's slices: its next element, where in
 * shared memory that goes, its place along k, and how many elements there are
 * from it to the edge across k (wide: how many bytes of its first copy). */
typedef struct source {
    const float *data;
    unsigned to;
    int k, left;
} source;

/* span and depth are the strides across k and along it. */
template <shape S, int SPAN>
__device__ __forceinline__ source aim(const float *slice, const float *data,
                                      int64_t span, int64_t depth,
                                      int64_t first, int64_t count, access mode)
{
    const int chunks = SPAN / WIDTH, narrow = THREADS<S> / NARROW_DEPTH;
    int t = threadIdx.x, s, k;
    if (mode == WIDE) {
        s = t % chunks * WIDTH;
        k = t / chunks;
    } else if (mode == ACROSS) {
        s = t % narrow;
        k = t / narrow;
    } else {
        s = t / NARROW_DEPTH;
        k = t % NARROW_DEPTH;
    }
    int left = (int)min(count - first, (int64_t)SPAN) - s;
    if (mode == WIDE)
        left = max(0, min(left, (int)WIDTH)) * (int)sizeof(float);
    return {data + (first + s) * span + k * depth,
            shared_address(slice + k * PITCH<SPAN> + s), k, left};
}

/* Moves a pointer by a stride, unseen: the compiler would rather multiply
 * anew, or keep every product in registers. */
__device__ __forceinline__ void advance(const float **data, int64_t stride)
{
    *data += stride;
    asm("" : "+l"(*data));
}

template <shape S, int SPAN, bool SHORT>
__device__ __forceinline__ void fetch_wide(const source &x, int64_t depth,
                                           int length)
{
    const int step = THREADS<S> * WIDTH / SPAN;
    const float *from = x.data;
#pragma unroll
    for (int k = 0; k < DEPTH; k += step) {
        int bytes = !SHORT || x.k + k < length ? x.left : 0;
        copy_16(x.to + k * PITCH<SPAN> * (int)sizeof(float), from, bytes);
        advance(&from, step * depth);
    }
}

/* Rows beyond the edge keep what was there: they end in nothing written. */
template <shape S, int SPAN, bool SHORT>
__device__ __forceinline__ void fetch_narrow(const source &x, int64_t span,
                                             int64_t depth, int length)
{
    const int narrow = THREADS<S> / NARROW_DEPTH;
#pragma unroll
    for (int k = 0; k < DEPTH; k += NARROW_DEPTH) {
        int bytes = !SHORT || x.k + k < length ? (int)sizeof(float) : 0;
        const float *from = x.data + k * depth;
#pragma unroll
        for (int s = 0; s < SPAN; s += narrow) {
            if (s < x.left)
                copy_4(x.to + (k * PITCH<SPAN> + s) * (int)sizeof(float), from,
                       bytes);
            advance(&from, narrow * span);
        }
    }
}

/* The same with fewer pointers to move, above all for a depth of 1. */
template <shape S, int SPAN, bool SHORT>
__device__ __forceinline__ void fetch_along(const source &x, int64_t span,
                                            int64_t depth, int length)
{
    const int narrow = THREADS<S> / NARROW_DEPTH;
    const float *from = x.data;
#pragma unroll
    for (int s = 0; s < SPAN; s += narrow) {
#pragma unroll
        for (int k = 0; k < DEPTH; k += NARROW_DEPTH) {
            int bytes = !SHORT || x.k + k < length ? (int)sizeof(float) : 0;
            if (s < x.left)
                copy_4(x.to + (k * PITCH<SPAN> + s) * (int)sizeof(float),
                       from + k * depth, bytes);
        }
        advance(&from, narrow * span);
    }
}

/* Where a is most of what is copied; elsewhere the multiply-adds come out in a
 * worse order. */
template <shape S> constexpr bool HAS_ALONG = S.rows > S.cols;

/* Issues the copies of this thread's part of a slice and moves on along k. A
 * short slice has only `length` of k, and zeros behind. */
template <shape S, int SPAN, bool SHORT>
__device__ __forceinline__ void fetch(source *x, int64_t span, int64_t depth,
                                      access mode, int length)
{
    if (mode == WIDE)
        fetch_wide<S, SPAN, SHORT>(*x, depth, length);
    else if (!HAS_ALONG<S>)
        fetch_narrow<S, SPAN, SHORT>(*x, span, depth, length);
    else if (mode == ALONG)
        fetch_along<S, SPAN, SHORT>(*x, span, 1, length);
    else
        fetch_along<S, SPAN, SHORT>(*x, span, depth, length);
    x->data += length * depth;
}

template <shape S, bool SHORT>
__device__ __forceinline__ void fetch_slices(source *x, source *y,
                                             const product<float> &p,
                                             const job &j, int length)
{
    fetch<S, S.rows, SHORT>(x, p.a_row, p.a_col, j.a, length);
    fetch<S, S.cols, SHORT>(y, p.b_col, p.b_row, j.b, length);
}

/* Lanes 0 1 2 3 lie two down, then two across: then every lane shares its part
 * of a or of b with its neighbour, which is what lets the hardware serve half a
 * warp's 16-byte reads at once. */
__device__ __forceinline__ void find_lane(int *row, int *col)
{
    int lane = threadIdx.x % 32;
    *row = lane % 2 + lane / 16 * 2;
    *col = lane / 2 % LANE_COLS;
}

/* A warp's corner in the tile, and a thread's. */
template <shape S> __device__ __forceinline__ void find_warp(int *row, int *col)
{
    const int across = S.cols / (LANE_COLS * S.patch_cols);
    int warp = threadIdx.x / 32;
    *row = warp / across * LANE_ROWS * S.patch_rows;
    *col = warp % across * LANE_COLS * S.patch_cols;
}

template <shape S>
__device__ __forceinline__ void find_patch(int *row, int *col)
{
    int lane_row, lane_col;
    find_warp<S>(row, col);
    find_lane(&lane_row, &lane_col);
    *row += lane_row * WIDTH;
    *col += lane_col * WIDTH;
}

/* Elements of a patch are WIDTH neighbours, then the next WIDTH beyond those of
 * the warp's other lanes. */
template <int LANES> __device__ __forceinline__ int spread(int e)
{
    return e / WIDTH * WIDTH * LANES + e % WIDTH;
}

/* What one step of k takes of a slice. */
template <shape S> struct fragment {
    vector a[S.patch_rows / WIDTH], b[S.patch_cols / WIDTH];
};

/* a and b: this thread's corner in the slice. */
template <shape S>
__device__ __forceinline__ void read_fragment(fragment<S> *f, const float *a,
                                              const float *b, int k)
{
#pragma unroll
    for (int i = 0; i < S.patch_rows; i += WIDTH)
        f->a[i / WIDTH] =
            *(const vector *)(a + k * PITCH<S.rows> + spread<LANE_ROWS>(i));
#pragma unroll
    for (int j = 0; j < S.patch_cols; j += WIDTH)
        f->b[j / WIDTH] =
            *(const vector *)(b + k * PITCH<S.cols> + spread<LANE_COLS>(j));
}

template <shape S>
__device__ __forceinline__ void multiply_add(float (*sum)[S.patch_cols],
                                             const fragment<S> &f)
{
#pragma unroll
    for (int i = 0; i < S.patch_rows; i++)
#pragma unroll
        for (int j = 0; j < S.patch_cols; j++)
            sum[i][j] = fmaf(f.a[i / WIDTH].at[i % WIDTH],
                             f.b[j / WIDTH].at[j % WIDTH], sum[i][j]);
}

/* The way, in floats, to the next slice of the ring. */
template <shape S> __device__ __forceinline__ int hop(bool is_last)
{
    return is_last ? -(S.stages - 1) * SLICE<S> : SLICE<S>;
}

__device__ __forceinline__ void move(source *x, source *y, int floats)
{
    x->to += floats * (int)sizeof(float);
    y->to += floats * (int)sizeof(float);
}

/* Fills the ring but for one slice. The short slice comes first, so that the
 * main loop need not test k. */
template <shape S>
__device__ __forceinline__ void fill_ring(source *x, source *y,
                                          const product<float> &p, const job &j,
                                          int64_t k)
{
    int length = (int)((k - 1) % DEPTH + 1);
    fetch_slices<S, true>(x, y, p, j, length);
    end_group();
    move(x, y, SLICE<S>);
#pragma unroll
    for (int s = 1; s < S.stages - 1; s++) {
        if (s * DEPTH < k)
            fetch_slices<S, false>(x, y, p, j, DEPTH);
        end_group();
        move(x, y, SLICE<S>);
    }
}

/* sum += the k products x and y begin with. */
template <shape S>
__device__ __forceinline__ void
accumulate(float (*sum)[S.patch_cols], const float *shared, source x, source y,
           const product<float> &p, const job &j, int64_t k)
{
    int row, col, turn = 0;
    find_patch<S>(&row, &col);
    const float *a = shared + row;
    const float *b = shared + DEPTH * PITCH<S.rows> + col;
    fragment<S> f[2];
    fill_ring<S>(&x, &y, p, j, k);
    wait_for_groups<S.stages - 2>();
    __syncthreads(); /* everybody's part of the first slice is there */
    read_fragment<S>(&f[0], a, b, 0);
    for (int left = (int)((k + DEPTH - 1) / DEPTH); left > 0; left--) {
#pragma unroll
        for (int step = 0; step < DEPTH; step++) {
            if (step == DEPTH - 1) {
                int way = hop<S>(turn == S.stages - 1);
                a += way;
                b += way;
                turn = turn == S.stages - 1 ? 0 : turn + 1;
                wait_for_groups<S.stages - 2>();
                __syncthreads(); /* the next slice is there, this one read */
            }
            read_fragment<S>(&f[(step + 1) % 2], a, b, (step + 1) % DEPTH);
            if (step == 0) {
                if (left >= S.stages)
                    fetch_slices<S, false>(&x, &y, p, j, DEPTH);
                end_group();
                move(&x, &y, hop<S>(turn == 0));
            }
            multiply_add<S>(sum, f[step % 2]);
        }
    }
}

/* A product with an epilogue, and beta 0. */
typedef struct product_then : product<float> {
    epilogue then;
} product_then;

/* What c gets for a sum; c is not read when beta is 0. */
__device__ __forceinline__ float finish(const product<float> &p, float sum,
                                        float c)
{
    return p.beta == 0 ? p.alpha * sum : p.alpha * sum + p.beta * c;
}

/* WIDTH neighbours, `left` of them before the edge, 16 bytes at once where
 * they may. */
__device__ __forceinline__ void write_row(const product<float> &p, bool wide,
                                          float *c, int left, const float *sum)
{
    vector v = {};
    if (wide && left >= WIDTH) {
        if (p.beta != 0)
            v = *(vector *)c;
#pragma unroll
        for (int e = 0; e < WIDTH; e++)
            v.at[e] = finish(p, sum[e], v.at[e]);
        *(vector *)c = v;
        return;
    }
#pragma unroll
    for (int e = 0; e < WIDTH; e++, c += p.c_col)
        if (e < left)
            *c = finish(p, sum[e], p.beta != 0 ? *c : 0);
}

/* Out of place: sums that were stored four at a time would lie in neighbouring
 * registers, and those are the wrong ones for the multiply-adds' ports. */
__device__ __forceinline__ void scale(float alpha, const float *sum,
                                      float *scaled)
{
    vector v;
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        v.at[e] = alpha * sum[e];
    *(vector *)scaled = v;
}

/* The patches of a warp by way of shared memory, so that neighbouring lanes
 * write neighbours, wherever they lie. row, col: the warp's corner in c. */
template <shape S>
__device__ __forceinline__ void
write_staged(const product<float> &p, int64_t row, int64_t col, float *shared,
             float (*sum)[S.patch_cols])
{
    const int span = LANE_COLS * S.patch_cols, pitch = span + 16;
    int lane = threadIdx.x % 32, lane_row, lane_col;
    find_lane(&lane_row, &lane_col);
    float *stage = shared + threadIdx.x / 32 * LANE_ROWS * pitch;
    float *own = stage + lane_row * pitch + lane_col * WIDTH;
    int cols = (int)min(p.n - col, (int64_t)span);
    __syncthreads(); /* all have done with the ring */
#pragma unroll
    for (int i = 0; i < S.patch_rows; i++) {
        __syncwarp(); /* the rows before are read */
#pragma unroll
        for (int j = 0; j < S.patch_cols; j += WIDTH)
            scale(p.alpha, &sum[i][j], own + spread<LANE_COLS>(j));
        __syncwarp(); /* these are there */
        int64_t at = row + spread<LANE_ROWS>(i);
#pragma unroll 1
        for (int r = 0; r < LANE_ROWS; r++, at += WIDTH) {
            float *c = p.c + at * p.c_row + (col + lane) * p.c_col;
#pragma unroll
            for (int e = 0; e < span; e += 32)
                if (at < p.m && e + lane < cols) {
                    float *to = c + e * p.c_col;
                    float v = stage[r * pitch + lane + e];
                    *to = p.beta == 0 ? v : v + p.beta * *to;
                }
        }
    }
}

/* The same by way of the epilogue, for c of any layout: what it needs for four
 * rows is asked for before they are staged. */
template <shape S>
__device__ __forceinline__ void
write_finished(const product_then &p, int64_t row, int64_t col, float *shared,
               float (*sum)[S.patch_cols])
{
    const int span = LANE_COLS * S.patch_cols, pitch = span + 16;
    int lane = threadIdx.x % 32, warp_row, warp_col, lane_row, lane_col;
    find_warp<S>(&warp_row, &warp_col);
    find_lane(&lane_row, &lane_col);
    row += warp_row;
    col += warp_col + lane;
    float *stage = shared + threadIdx.x / 32 * LANE_ROWS * pitch;
    float *own = stage + lane_row * pitch + lane_col * WIDTH;
    int cols = (int)min(p.n - col, (int64_t)span);
    __syncthreads(); /* all have done with the ring */
#pragma unroll
    for (int i = 0; i < S.patch_rows; i++) {
        int64_t at = row + spread<LANE_ROWS>(i);
        float u[LANE_ROWS][span / 32];
#pragma unroll
        for (int e = 0; e < LANE_ROWS * span; e += 32)
            if (at + e / span * WIDTH < p.m && e % span < cols)
                u[e / span][e % span / 32] =
                    read_u(p.then, at + e / span * WIDTH, col + e % span);
        __syncwarp(); /* the rows before are read */
#pragma unroll
        for (int j = 0; j < S.patch_cols; j += WIDTH)
            scale(p.alpha, &sum[i][j], own + spread<LANE_COLS>(j));
        __syncwarp(); /* these are there */
        float *c = p.c + at * p.c_row + col * p.c_col;
#pragma unroll
        for (int e = 0; e < LANE_ROWS * span; e += 32)
            if (at + e / span * WIDTH < p.m && e % span < cols)
                c[e / span * WIDTH * p.c_row + e % span * p.c_col] =
                    finish_result(p.then,
                                  stage[e / span * pitch + lane + e % span],
                                  u[e / span][e % span / 32]);
    }
}

template <shape S>
__device__ __forceinline__ void
write_patch(const product<float> &p, bool wide, int64_t row, int64_t col,
            float *shared, float (*sum)[S.patch_cols])
{
    int warp_row, warp_col, lane_row, lane_col;
    find_warp<S>(&warp_row, &warp_col);
    row += warp_row;
    col += warp_col;
    if (S.blocks > 1 && !wide) /* BIG's main loop would end up slower */
        return write_staged<S>(p, row, col, shared, sum);
    find_lane(&lane_row, &lane_col);
    row += lane_row * WIDTH;
    col += lane_col * WIDTH;
    float *corner = p.c + row * p.c_row + col * p.c_col;
    int rows = (int)min(p.m - row, (int64_t)S.rows);
    int cols = (int)min(p.n - col, (int64_t)S.cols);
#pragma unroll
    for (int i = 0; i < S.patch_rows; i++) {
        const int down = spread<LANE_ROWS>(i);
        float *c = corner + down * p.c_row;
#pragma unroll
        for (int j = 0; j < S.patch_cols && down < rows; j += WIDTH) {
            const int across = spread<LANE_COLS>(j);
            write_row(p, wide, c + across * p.c_col, cols - across, &sum[i][j]);
        }
    }
}

/* The corner of a unit's tile, and its part of k. */
template <shape S>
__device__ __forceinline__ int64_t find_unit(const product<float> &p,
                                             const job &j, unsigned unit,
                                             int64_t *row, int64_t *col)
{
    int64_t down = (p.m + S.rows - 1) / S.rows;
    int64_t across = (p.n + S.cols - 1) / S.cols;
    tile_of(unit % j.tiles, down, across, row, col);
    *row *= S.rows;
    *col *= S.cols;
    return unit / j.tiles;
}

/* P: product<float> or product_then. */
template <shape S, class P>
__device__ __forceinline__ void multiply_unit(const P &p, const job &j,
                                              unsigned unit, float *shared)
{
    int64_t row, col;
    int64_t first = find_unit<S>(p, j, unit, &row, &col) * j.part_k;
    source x = aim<S, S.rows>(shared, p.a + first * p.a_col, p.a_row, p.a_col,
                              row, p.m, j.a);
    source y =
        aim<S, S.cols>(shared + DEPTH * PITCH<S.rows>, p.b + first * p.b_row,
                       p.b_col, p.b_row, col, p.n, j.b);
    float sum[S.patch_rows][S.patch_cols] = {};
    accumulate<S>(sum, shared, x, y, p, j, min(p.k - first, j.part_k));
    if constexpr (sizeof(P) > sizeof(product<float>)) {
        find_unit<S>(p, j, unit, &row, &col);
        write_finished<S>(p, row, col, shared, sum);
    } else {
        product<float> part = p;
        /* found again: cheaper than registers kept */
        part.c += find_unit<S>(p, j, unit, &row, &col) * j.part_floats;
        write_patch<S>(part, j.wide_c, row, col, shared, sum);
    }
}

template <shape S, class P>
__global__ void __launch_bounds__(THREADS<S>, BLOCKS<S>)
    simt_kernel(const __grid_constant__ P p, const __grid_constant__ job j)
{
    alignas(16) extern __shared__ float shared[];
    wait_for_previous();
    if (j.gate != NULL && __ldcg(j.gate) == 0)
        return;
    for (unsigned unit = blockIdx.x; unit < j.units; unit += gridDim.x) {
        multiply_unit<S, P>(p, j, unit, shared);
        __syncthreads(); /* all have done with shared */
    }
}

/* u for the first `left` of a row's neighbours. */
__device__ __forceinline__ void read_row_u(const epilogue &e, int64_t row,
                                           int64_t col, int left, float *u)
{
#pragma unroll
    for (int n = 0; n < WIDTH; n++)
        u[n] = n < left ? read_u(e, row, col + n) : 0;
}

/* As write_row does. */
__device__ __forceinline__ void finish_row(const product_then &p, bool wide,
                                           float *c, int left, const float *sum,
                                           const float *u)
{
    vector v;
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        v.at[e] = finish_result(p.then, p.alpha * sum[e], u[e]);
    if (wide && left >= WIDTH) {
        *(vector *)c = v;
        return;
    }
#pragma unroll
    for (int e = 0; e < WIDTH; e++, c += p.c_col)
        if (e < left)
            *c = v.at[e];
}

/* Adds the parts of k and finishes c: a thread takes WIDTH neighbours of every
 * groups-th part, thread group 0 adds the groups' sums in their order. */
template <class P>
static __global__ void __launch_bounds__(FOLD_THREADS)
    fold_kernel(const __grid_constant__ P p, const float *parts,
                int64_t part_floats, int64_t pitch, int count, int groups,
                bool wide)
{
    __shared__ vector shared[FOLD_THREADS];
    int per_group = FOLD_THREADS / groups, group = threadIdx.x / per_group;
    int64_t v = blockIdx.x * (int64_t)per_group + threadIdx.x % per_group;
    int64_t row = divide(v, pitch / WIDTH);
    int64_t col = (v - row * (pitch / WIDTH)) * WIDTH;
    const float4 *from = (const float4 *)(parts + v * WIDTH);
    float4 sum = {};
    wait_for_previous();
    int left = (int)min(p.n - col, (int64_t)WIDTH);
    [[maybe_unused]] float u[WIDTH];
    if constexpr (sizeof(P) > sizeof(product<float>))
        read_row_u(p.then, row, col, group == 0 && row < p.m ? left : 0, u);
#pragma unroll 4
    for (int s = group; s < count && row < p.m; s += groups) {
        float4 part = __ldcg(from + s * (part_floats / WIDTH));
        sum = {sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w};
    }
    shared[threadIdx.x] = {sum.x, sum.y, sum.z, sum.w};
    __syncthreads(); /* the groups' sums are there */
    if (group > 0 || row >= p.m)
        return;
    vector total = shared[threadIdx.x];
    for (int g = 1; g < groups; g++)
#pragma unroll
        for (int e = 0; e < WIDTH; e++)
            total.at[e] += shared[g * per_group + threadIdx.x].at[e];
    float *c = p.c + row * p.c_row + col * p.c_col;
    if constexpr (sizeof(P) > sizeof(product<float>))
        finish_row(p, wide, c, left, total.at, u);
    else
        write_row(p, wide, c, left, total.at);
}

/* --- launching ----------------------------------------------------------- */

/* A launch that may start while the kernel before it ends, where the GPU can:
 * the kernel itself waits for what it needs. */
static cudaLaunchConfig_t configure(const cuda_device *d, unsigned grid,
                                    int threads, int bytes,
                                    cudaLaunchAttribute *early)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = (unsigned)threads;
    config.dynamicSmemBytes = (size_t)bytes;
    config.stream = d->stream;
    early->id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early->val.programmaticStreamSerializationAllowed = 1;
    config.attrs = early;
    config.numAttrs = d->capability >= 90;
    return config;
}

/* A gated launch has no more blocks than run at once: most often all they do is
 * leave. */
template <shape S, class P>
static gpu_status launch_one(cuda_device *d, const P *p, const job *j)
{
    const int bytes = SHARED_BYTES<S>;
    int64_t most = j->gate ? d->sms * S.blocks : INT32_MAX;
    unsigned grid = (unsigned)smaller(j->units, most);
    cudaLaunchAttribute early;
    cudaLaunchConfig_t config = configure(d, grid, THREADS<S>, bytes, &early);
    auto kernel = simt_kernel<S, P>;
    if (bytes > 48 << 10)
        CHECK(d,
              cudaFuncSetAttribute(
                  kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    return gpu_cuda_check(d, cudaLaunchKernelEx(&config, kernel, *p, *j));
}

template <shape S>
static gpu_status launch(cuda_device *d, const product_then *p, const job *j)
{
    return p->then.changes ? launch_one<S, product_then>(d, p, j)
                           : launch_one<S, product<float>>(d, p, j);
}

/* A shape as the choice sees it. weight: the clocks of a multiprocessor full of
 * such blocks, against one multiply-add a lane and clock; lone: what blocks
 * that run alone take besides; edge: clocks a unit needs to begin and end,
 * which only other blocks on the same multiprocessor can hide. */
typedef struct tiling {
    int rows, cols, blocks;
    double weight, lone, edge;
    gpu_status (*launch)(cuda_device *d, const product_then *p, const job *j);
} tiling;

template <shape S> constexpr tiling tiling_of(double weight, double lone)
{
    const double edge = S.blocks == 1 ? 6930 : 1260;
    return {S.rows, S.cols, S.blocks, weight, lone, edge, launch<S>};
}

constexpr shape BIG = {128, 256, 16, 8, 4, 1};
constexpr shape SQUARE = {128, 128, 8, 8, 3, 2};
constexpr shape FLAT = {64, 256, 8, 8, 3, 2};
constexpr shape LOW = {64, 128, 8, 8, 3, 4};
constexpr shape HIGH = {128, 64, 8, 8, 3, 4};
constexpr shape HALF = {64, 128, 4, 8, 4, 2};
constexpr shape QUARTER = {64, 64, 8, 4, 4, 5};
constexpr shape SMALL = {64, 64, 4, 4, 4, 3};

static const tiling tilings[] = {
    tiling_of<BIG>(1.25, 0.19),     tiling_of<SQUARE>(1.34, 0.50),
    tiling_of<FLAT>(1.27, 0.57),    tiling_of<LOW>(1.27, 1.01),
    tiling_of<HIGH>(1.31, 1.32),    tiling_of<HALF>(1.51, 0.22),
    tiling_of<QUARTER>(1.55, 1.20), tiling_of<SMALL>(1.72, 0.77),
};

/* What the choice reckons with, as measured on an H200. Cut finer than
 * LEAST_PART, or into more than MOST_PART_BYTES, a product would do little but
 * write and fold parts. */
constexpr double LANES = 128; /* multiply-adds a clock, multiprocessor */
constexpr double FOLD_CLOCKS = 2930;
constexpr double FOLD_BYTES = 21.4; /* of parts, a clock and multiprocessor */
constexpr double PART_RISK = 1.04;  /* parts only for a clear gain */
constexpr double MOST_PART_BYTES = 1 << 28;
constexpr int64_t LEAST_PART = 4 * DEPTH;

typedef struct plan {
    const tiling *how;
    int64_t part_k;
    double clocks;
} plan;

static int64_t count_tiles(const product<float> *p, const tiling *t)
{
    return ceil_div(p->m, t->rows) * ceil_div(p->n, t->cols);
}

static int64_t part_pitch(const product<float> *p)
{
    return ceil_div(p->n, WIDTH) * WIDTH;
}

/* Predicts the clocks for units of so many multiply-adds: as many for each
 * multiprocessor as the fullest gets, in rounds of what it holds at once. */
static double predict_units(const cuda_device *d, const tiling *t,
                            int64_t units, double work)
{
    int64_t queue = ceil_div(units, d->sms);
    double busy = (double)queue * t->weight;
    double lone = (double)ceil_div(queue, t->blocks) * t->lone;
    return work / LANES * hypot(busy, lone) + (double)queue * t->edge;
}

/* The same for k cut in so many parts, and what folding them takes. */
static plan predict(const cuda_device *d, const product<float> *p,
                    const tiling *t, int64_t parts)
{
    int64_t part_k = ceil_div(ceil_div(p->k, DEPTH), parts) * DEPTH;
    parts = ceil_div(p->k, part_k);
    double work = (double)part_k * t->rows * t->cols;
    double clocks = predict_units(d, t, count_tiles(p, t) * parts, work);
    double bytes = 2.0 * sizeof(float) * (double)parts * (double)p->m *
                   (double)part_pitch(p);
    double fold = FOLD_CLOCKS + bytes / (FOLD_BYTES * (double)d->sms);
    bool fits = bytes / 2 <= MOST_PART_BYTES && part_k >= LEAST_PART;
    if (parts > 1)
        clocks = fits ? PART_RISK * (clocks + fold) : (double)INFINITY;
    return {t, part_k, clocks};
}

/* The cheapest of all tilings, whole or cut along k into two to eight parts or
 * so many that one to four rounds come out full. */
static plan choose_plan(const cuda_device *d, const product<float> *p,
                        bool whole)
{
    plan best = {NULL, 0, (double)INFINITY};
    for (const tiling &t : tilings) {
        int64_t tiles = count_tiles(p, &t);
        for (int64_t i = 1; i <= (whole ? 1 : 12); i++) {
            int64_t parts = i <= 8 ? i : (i - 8) * d->sms / tiles;
            plan next = predict(d, p, &t, larger(parts, 1));
            if (best.how == NULL || next.clocks < best.clocks)
                best = next;
        }
    }
    return best;
}

static access choose_access(const float *data, int64_t span, int64_t depth)
{
    if (span == 1 && is_aligned(data) && depth % WIDTH == 0)
        return WIDE;
    if (depth == 1)
        return ALONG;
    return stride_size(depth) <= stride_size(span) ? ANY : ACROSS;
}

static bool has_wide_c(const product<float> *p)
{
    return p->c_col == 1 && is_aligned(p->c) && p->c_row % WIDTH == 0;
}

template <class P>
static gpu_status fold(cuda_device *d, const P *p, const float *parts,
                       int64_t part_floats, int count)
{
    int groups = count >= 2 * MAX_GROUPS ? MAX_GROUPS : 1;
    int64_t blocks = ceil_div(part_floats / WIDTH, FOLD_THREADS / groups);
    cudaLaunchAttribute early;
    cudaLaunchConfig_t config =
        configure(d, (unsigned)blocks, FOLD_THREADS, 0, &early);
    return gpu_cuda_check(
        d, cudaLaunchKernelEx(&config, fold_kernel<P>, *p, parts, part_floats,
                              part_pitch(p), count, groups, has_wide_c(p)));
}

/* Each part of k is written as if it were a product of its own. */
static gpu_status multiply_parts(cuda_device *d, const product_then *p,
                                 const plan *q, job *j)
{
    int64_t count = ceil_div(p->k, j->part_k);
    float *parts;
    j->part_floats = p->m * part_pitch(p);
    j->wide_c = true;
    TRY(gpu_cuda_scratch(d, (size_t)(count * j->part_floats) * sizeof(float),
                         (void **)&parts));
    product_then part = *p;
    part.c = parts;
    part.c_row = part_pitch(p);
    part.c_col = 1;
    part.alpha = 1;
    part.beta = 0;
    part.then.changes = 0;
    TRY(q->how->launch(d, &part, j));
    if (p->then.changes)
        return fold(d, p, parts, j->part_floats, (int)count);
    return fold<product<float>>(d, p, parts, j->part_floats, (int)count);
}

static gpu_status multiply(cuda_device *d, const product_then *p, const plan *q,
                           const int *gate)
{
    int64_t tiles = count_tiles(p, q->how);
    int64_t parts = ceil_div(p->k, q->part_k);
    job j = {(unsigned)tiles,
             (unsigned)(tiles * parts),
             q->part_k,
             0,
             choose_access(p->a, p->a_row, p->a_col),
             choose_access(p->b, p->b_col, p->b_row),
             has_wide_c(p),
             gate};
    return parts > 1 ? multiply_parts(d, p, q, &j) : q->how->launch(d, p, &j);
}

gpu_status gpu_cuda_simt_matmul(cuda_device *d, const gpu_gemm *oriented,
                                const epilogue *then, const int *gate)
{
    product_then p = {typed_product<float>(oriented), *then};
    plan q = choose_plan(d, &p, gate != NULL);
    return multiply(d, &p, &q, gate);
}

static gpu_status simt(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul("simt", p, &g));
    if (g.c.dtype != GPU_F32)
        return FAIL(GPU_UNSUPPORTED, "matmul: simt needs f32 operands");
    epilogue then;
    int takes = gpu_cuda_find_epilogue(p, &g, &then);
    TRY(gpu_cuda_simt_matmul(d, &g, &then, NULL));
    if (takes)
        p->epilogue->is_done = 1;
    return GPU_OK;
}

const gpu_kernel gpu_cuda_matmul_simt = {
    .operation = "matmul",
    .name = "simt",
    .idea = "warp tiles, asynchronous copies, k cut in parts for few tiles",
    .needs = "sm_80",
    .precision = "f32",
    .capability = 80,
    .dtypes = 1u << GPU_F32,
    .bound = gpu_cuda_matmul_bound,
    .matmul = simt,
    .dot = NULL,
    .has_epilogue = 1,
};
