/* split16's second attempt: c = alpha a b from the operands themselves, where
 * their planes cannot hold them. Sums are in f64 and rounded once. For a
 * launch of its own (matmul_split16.cu) and kernels that would rather not wait
 * for one.
 *
 * Products of f32 numbers are exact in f64, and some GPUs' tensor cores
 * multiply f64 as fast as the plain cores do f32. 256 threads of a block take
 * a tile of c, a warp 32 x 32 of it; where tiles are few they are smaller, and
 * warps share out k as well. A ring in shared memory holds the next slices of
 * a and b in f32, k by k; asynchronous copies fill it, with zeros beyond the
 * edges of both. Elements become f64 on their way to registers: then shared
 * memory moves half the bytes, and a conversion leaves its result in whatever
 * register the mma wants.
 *
 * Limited by the tensor cores: 128 multiply-adds a cycle and multiprocessor
 * on an H200, where the conversion units are busy half that time. Where f64
 * is slow, short slices of k are added up in f32 by the plain cores, and the
 * slices' sums in f64. */
#ifndef GPU_CUDA_SPLIT_F64_PRODUCT_H
#define GPU_CUDA_SPLIT_F64_PRODUCT_H

#include "copies.h"
#include "hopper.h"
#include "split16.h"

constexpr int REDO_THREADS = 256, REDO_WARPS = REDO_THREADS / 32;
constexpr int REDO_BYTES = 86016; /* of shared memory, aligned to 16 */

/* A result of this sum. */
__device__ __forceinline__ void write_exact(const split_product &p, int64_t i,
                                            int64_t j, double sum)
{
    float x = (float)((double)p.alpha * sum);
    p.c[i * p.c_row + j * p.c_col] =
        finish_result(p.then, x, read_u(p.then, i, j));
}

/* Barrier ID, for the 256 threads. */
template <int ID> __device__ __forceinline__ void redo_sync()
{
    asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(REDO_THREADS) : "memory");
}

#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000

/* A tile of c, k in a slot of the ring, and the slots. */
typedef struct redo_shape {
    int rows, cols, depth, slots;
} redo_shape;

/* The lines of a slice, one for each k, begin 8 banks apart: four of them are
 * read at one time. */
template <int SPAN> constexpr int REDO_PITCH = SPAN + 8; /* floats */
template <redo_shape S> constexpr int REDO_A = S.depth *REDO_PITCH<S.rows>;
template <redo_shape S>
constexpr int REDO_SLOT = REDO_A<S> + S.depth *REDO_PITCH<S.cols>;
/* Warps that share a part of a tile, each with its part of k. */
template <redo_shape S>
constexpr int REDO_PARTS = REDO_WARPS * 32 * 32 / (S.rows * S.cols);

/* Where a slice holds row s of a, or column s of b, of k. Fours of them are
 * exchanged so that copies along k write to different banks too. */
template <int SPAN> __device__ __forceinline__ int redo_place(int s, int k)
{
    return k * REDO_PITCH<SPAN> + (s ^ (k & 4));
}

/* --- copies ------------------------------------------------------------- */

/* A thread's share of an operand's slices: places in them 8 or more of k and
 * 32 rows of a (columns of b) apart. Four neighbours of one k at a time where
 * that can be; else one element, whose neighbours go to neighbouring threads,
 * 32 of one k or, where they lie along k, 8 of k. */
typedef struct redo_share {
    const float *next;   /* its first element in the next slice */
    int64_t span, depth; /* strides across k and along it */
    uint32_t to;         /* where that goes in a slot */
    int k, left;         /* its place along k; what is left across k */
    bool is_wide;
} redo_share;

/* first: of the tile; count: of what is left across k from there. */
template <int SPAN>
__device__ __forceinline__ redo_share redo_open(const float *first,
                                                int64_t span, int64_t depth,
                                                int64_t count, int thread)
{
    bool is_along = depth * depth < span * span;
    redo_share x = {first, span, depth};
    x.is_wide = span == 1 && depth % 4 == 0 && (uintptr_t)first % 16 == 0;
    int s = is_along ? thread / 8 : thread % 32;
    x.k = is_along ? thread % 8 : thread / 32;
    if (x.is_wide) {
        s = thread % (SPAN / 4) * 4;
        x.k = thread / (SPAN / 4);
    }
    x.next += s * span + x.k * depth;
    x.to = 4 * redo_place<SPAN>(s, x.k);
    x.left = (int)min(count, (int64_t)SPAN) - s;
    return x;
}

/* Copies four floats, the first `inside` of them real, the rest zeros. */
__device__ __forceinline__ void redo_copy4(uint32_t to, const float *from,
                                           int inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "r"(4 * min(max(inside, 0), 4))
                 : "memory");
}

__device__ __forceinline__ void redo_copy1(uint32_t to, const float *from,
                                           bool is_inside)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to),
                 "l"(from), "r"(is_inside ? 4 : 0)
                 : "memory");
}

/* Issues a slice's copies and moves on. */
template <int SPAN, int DEPTH>
__device__ __forceinline__ void redo_fetch(uint32_t slot, redo_share *x,
                                           int k_left)
{
    constexpr int step = REDO_THREADS * 4 / SPAN, line = 4 * REDO_PITCH<SPAN>;
    uint32_t to = slot + x->to;
    int64_t span = x->span, depth = x->depth;
    asm volatile("" : "+l"(span), "+l"(depth)); /* keep no multiples of them */
    const float *from = x->next;
    if (x->is_wide) {
#pragma unroll
        for (int k = 0; k < DEPTH; k += step) {
            redo_copy4(to + k * line, from, x->k + k < k_left ? x->left : 0);
            from += step * depth;
        }
    } else {
#pragma unroll(DEPTH / 16) /* a loop is left: nothing that is predicated */
        for (int k = 0; k < DEPTH; k += 8) {
            const float *across = from;
#pragma unroll
            for (int s = 0; s < SPAN; s += 32) {
                redo_copy1(to + k * line + 4 * s, across,
                           s < x->left && x->k + k < k_left);
                across += 32 * span;
            }
            from += 8 * depth;
        }
    }
    x->next += DEPTH * depth;
}

/* Fills a slot. Ends a group of copies even where nothing is left: groups are
 * counted. */
template <redo_shape S>
__device__ __forceinline__ void redo_fill(uint32_t slot, redo_share *a,
                                          redo_share *b, int k_left)
{
    if (k_left > 0) {
        redo_fetch<S.rows, S.depth>(slot, a, k_left);
        redo_fetch<S.cols, S.depth>(slot + 4 * REDO_A<S>, b, k_left);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until all threads' copies but for their newest `left` groups are done. */
template <int left, int ID> __device__ __forceinline__ void redo_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
    redo_sync<ID>(); /* a slot is filled, and another one read */
}

/* --- a warp's 32 x 32 --------------------------------------------------- */

/* c^T = b^T a^T is computed, 16 columns of b by 8 rows of a. An mma calls a
 * thread's columns g and g + 8, its row g and its k t and t + 4; any names
 * will do that the operands and c agree upon. Here thread 4 g + t has columns
 * 4 g to 4 g + 3 of b, for two mma, and rows 4 g to 4 g + 3 of a, for four:
 * 16 bytes each of one k. It ends up with the sums of columns 4 g to 4 g + 3
 * and rows 8 t to 8 t + 7. */
typedef struct redo_warp {
    uint32_t a[2], b[2]; /* where its first k = t and t + 4 lie in a slot */
    double at_a[4][2];   /* at hand: row, k */
    double at_b[2][4];   /* column / 2, 2 k + column % 2 */
    double sum[2][4][4]; /* column / 2, row % 4, column % 2 x 2 + row / 4 */
} redo_warp;

__device__ __forceinline__ float4 redo_read(uint32_t at)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
}

/* Stays where it is, far ahead of the result's use. */
__device__ __forceinline__ double redo_widen(float x)
{
    double y;
    asm volatile("cvt.f64.f32 %0, %1;" : "=d"(y) : "f"(x));
    return y;
}

/* sum (16 x 8 of c^T) += 8 of k of b's columns and a's rows. */
__device__ __forceinline__ void
redo_multiply(double (&sum)[4], const double (&b)[4], const double (&a)[2])
{
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
        : "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]), "d"(a[0]), "d"(a[1]));
#else
#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
        for (int col = 0; col < 2; col++)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
                "{%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(sum[2 * col]), "+d"(sum[2 * col + 1])
                : "d"(b[2 * k + col]), "d"(a[k]));
#endif
}

/* Multiplies what is at hand, while the warp's octet-th 8 of k of a slot are
 * read and take its place. */
template <redo_shape S>
__device__ __forceinline__ void redo_step(redo_warp *w, uint32_t slot,
                                          int octet, bool multiplies)
{
    float4 a[2], b[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        b[k] = redo_read(slot + w->b[k] + octet * 32 * REDO_PITCH<S.cols>);
        a[k] = redo_read(slot + w->a[k] + octet * 32 * REDO_PITCH<S.rows>);
    }
#pragma unroll
    for (int i = 0; i < 4 && multiplies; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
            redo_multiply(w->sum[j][i], w->at_b[j], w->at_a[i]);
#pragma unroll
    for (int k = 0; k < 2; k++) {
        w->at_b[0][2 * k] = redo_widen(b[k].x);
        w->at_b[0][2 * k + 1] = redo_widen(b[k].y);
        w->at_b[1][2 * k] = redo_widen(b[k].z);
        w->at_b[1][2 * k + 1] = redo_widen(b[k].w);
        w->at_a[0][k] = redo_widen(a[k].x);
        w->at_a[1][k] = redo_widen(a[k].y);
        w->at_a[2][k] = redo_widen(a[k].z);
        w->at_a[3][k] = redo_widen(a[k].w);
    }
}

/* A warp's corner in the tile, and which part of k is its. */
template <redo_shape S>
__device__ __forceinline__ int redo_corner(int thread, int *row, int *col)
{
    constexpr int across = S.cols / 32, tiles = S.rows / 32 * across;
    int warp = thread / 32;
    *row = warp % tiles / across * 32;
    *col = warp % across * 32;
    return warp / tiles;
}

template <redo_shape S>
__device__ __forceinline__ void redo_start(redo_warp *w, int thread)
{
    int row, col, g = thread % 32 / 4, t = thread % 4;
    int k = redo_corner<S>(thread, &row, &col) * (S.depth / REDO_PARTS<S>);
    *w = {};
#pragma unroll
    for (int i = 0; i < 2; i++) {
        w->a[i] = 4 * redo_place<S.rows>(row + 4 * g, k + t + 4 * i);
        w->b[i] = 4 * redo_place<S.cols>(col + 4 * g, k + t + 4 * i);
        w->b[i] += 4 * REDO_A<S>;
    }
}

/* The sums of all of k, or of the warps' parts of it. What a slot's last
 * octet is multiplied with is in registers when the next slot is waited for.
 * Half of the warps fill slots later than the others, so that there is always
 * one to keep the tensor cores busy. */
template <redo_shape S, int ID>
__device__ __forceinline__ void redo_accumulate(redo_warp *w, redo_share a,
                                                redo_share b, int k_left,
                                                int thread, uint32_t ring)
{
    constexpr int octets = S.depth / REDO_PARTS<S> / 8;
    constexpr int size = 4 * REDO_SLOT<S>, last = (S.slots - 1) * size;
    redo_sync<ID>(); /* the ring is free */
    uint32_t slot = ring, used = ring + last;
    bool is_late = octets > 1 && thread >= REDO_THREADS / 2;
#pragma unroll 1
    for (; slot < used; slot += size, k_left -= S.depth)
        redo_fill<S>(slot, &a, &b, k_left);
    redo_wait<S.slots - 2, ID>();
    redo_start<S>(w, thread);
    slot = ring;
    redo_step<S>(w, slot, 0, false);
#pragma unroll 1
    for (; k_left > -S.depth * (S.slots - 1); k_left -= S.depth) {
        if (!is_late)
            redo_fill<S>(used, &a, &b, k_left);
#pragma unroll
        for (int octet = 1; octet < octets; octet++) {
            redo_step<S>(w, slot, octet, true);
            if (octet == octets / 2 && is_late)
                redo_fill<S>(used, &a, &b, k_left);
        }
        used = slot;
        slot = slot == ring + last ? ring : slot + size;
        redo_wait<S.slots - 2, ID>();
        redo_step<S>(w, slot, 0, true);
    }
}

/* --- results ------------------------------------------------------------ */

/* Four neighbours of row i. */
__device__ __forceinline__ void redo_write(const split_product &p, int64_t i,
                                           int64_t j, const double (&sum)[4])
{
    float x[4];
    float *c = p.c + i * p.c_row + j * p.c_col;
#pragma unroll
    for (int e = 0; e < 4; e++)
        x[e] = (float)((double)p.alpha * sum[e]);
    if (i >= p.m)
        return;
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (j + e < p.n)
            x[e] = finish_result(p.then, x[e], read_u(p.then, i, j + e));
    if (p.c_col == 1 && j + 4 <= p.n && (uintptr_t)c % 16 == 0) {
        *(float4 *)c = make_float4(x[0], x[1], x[2], x[3]);
        return;
    }
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (j + e < p.n)
            c[e * p.c_col] = x[e];
}

/* Adds the parts of k in their order, a warp some of its rows of each part,
 * and writes them. i, j: of the thread's first sum. */
template <redo_shape S, int ID>
__device__ __forceinline__ void
redo_finish(const split_product &p, const redo_warp &w, int64_t i, int64_t j,
            int thread, double2 *shared)
{
    constexpr int parts = REDO_PARTS<S>, tiles = REDO_WARPS / parts;
    constexpr int all = 512; /* pairs of sums in a warp */
    int warp = thread / 32;
    double2 *own = shared + warp * all + thread % 32;
    redo_sync<ID>(); /* the ring is free */
#pragma unroll
    for (int e = 0; e < 16; e++) {
        const double *sum = w.sum[e % 2][e / 2 % 4] + e / 8;
        own[e * 32] = make_double2(sum[0], sum[2]);
    }
    redo_sync<ID>(); /* all parts are there */
    int row = warp / tiles * (8 / parts);
    const double2 *from = shared + warp % tiles * all + thread % 32;
#pragma unroll 1
    for (int end = row + 8 / parts; row < end; row++) {
        double sum[4] = {};
#pragma unroll
        for (int part = 0; part < parts; part++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                double2 v = from[part * tiles * all + row * 64 + half * 32];
                sum[2 * half] += v.x;
                sum[2 * half + 1] += v.y;
            }
        redo_write(p, i + row, j, sum);
    }
}

/* The same number, as something new: what is worked out from it is not kept
 * from before. Registers are few. */
__device__ __forceinline__ int redo_again(int x)
{
    asm volatile("" : "+r"(x));
    return x;
}

template <redo_shape S, int ID>
__device__ __forceinline__ void redo_tile(const split_product &p,
                                          const product<float> &g, int64_t row,
                                          int64_t col, int thread, void *shared)
{
    redo_warp w;
    thread = redo_again(thread);
    __builtin_assume(thread >= 0 && thread < REDO_THREADS);
    redo_accumulate<S, ID>(&w,
                           redo_open<S.rows>(g.a + row * g.a_row, g.a_row,
                                             g.a_col, g.m - row, thread),
                           redo_open<S.cols>(g.b + col * g.b_col, g.b_col,
                                             g.b_row, g.n - col, thread),
                           (int)g.k, thread, shared_address(shared));
    int down, across;
    redo_corner<S>(thread, &down, &across);
    redo_finish<S, ID>(p, w, row + down + thread % 4 * 8,
                       col + across + thread % 32 / 4 * 4, thread,
                       (double2 *)shared);
}

/* --- which tiles -------------------------------------------------------- */

constexpr redo_shape REDO_64X128 = {64, 128, 32, 3};
constexpr redo_shape REDO_64X64 = {64, 64, 32, 4};
constexpr redo_shape REDO_32X64 = {32, 64, 64, 3};
constexpr redo_shape REDO_32X32 = {32, 32, 64, 4};
constexpr redo_shape REDO_BIG = REDO_64X128;

template <redo_shape S>
constexpr int REDO_PIECES = REDO_BIG.rows *REDO_BIG.cols / (S.rows * S.cols);

__device__ __forceinline__ int redo_tiles_over(int64_t length, int side)
{
    return ((int)length + side - 1) / side;
}

template <redo_shape S>
__device__ __forceinline__ int redo_count(const product<float> &g)
{
    return redo_tiles_over(g.m, S.rows) * redo_tiles_over(g.n, S.cols);
}

/* Who does this, and what is left to do: tiles from `from` on, all of c's or,
 * where big ones have been done, the last of these, in pieces. */
typedef struct redo_work {
    int block, blocks, thread;
    void *shared;
    int from;
} redo_work;

/* The corner of a tile or piece. Tiles go column by column in groups of eight
 * rows: those that are worked on at one time share much of a and b. */
template <redo_shape S>
__device__ __forceinline__ void redo_find(const product<float> &g, int t,
                                          int from, int *row, int *col)
{
    constexpr int height = 8, beside = REDO_BIG.cols / S.cols;
    int piece = from > 0 ? t % REDO_PIECES<S> : 0;
    int rows = from > 0 ? REDO_BIG.rows : S.rows;
    int cols = from > 0 ? REDO_BIG.cols : S.cols;
    int down = redo_tiles_over(g.m, rows), across = redo_tiles_over(g.n, cols);
    t = from > 0 ? from + t / REDO_PIECES<S> : t;
    int group = t / (height * across), first = group * height;
    int count = min(height, down - first), rest = t - first * across;
    *row = (first + rest % count) * rows + piece / beside * S.rows;
    *col = rest / count * cols + piece % beside * S.cols;
}

template <redo_shape S>
__device__ __forceinline__ int redo_left(const product<float> &g, int from)
{
    return from > 0 ? (redo_count<REDO_BIG>(g) - from) * REDO_PIECES<S>
                    : redo_count<S>(g);
}

/* Computes `count` tiles or pieces. */
template <redo_shape S, int ID>
__device__ __forceinline__ void redo_tiles(const split_product &p,
                                           const product<float> &g,
                                           const redo_work &w, int count)
{
    static_assert(4 * S.slots * REDO_SLOT<S> <= REDO_BYTES);
    for (int t = w.block; t < count; t += w.blocks) {
        int row, col;
        redo_find<S>(g, t, w.from, &row, &col);
        if (row < g.m && col < g.n)
            redo_tile<S, ID>(p, g, row, col, w.thread, w.shared);
    }
}

/* The time of the block with most to do, `effort` for a result. share: of all
 * tiles, that each of the blocks has. A quotient's last bits do not matter. */
template <redo_shape S>
__device__ __forceinline__ float redo_time(const product<float> &g, int from,
                                           float share, float effort)
{
    float rounds = ceilf((float)redo_left<S>(g, from) * share - 0.001f);
    return rounds * (effort * S.rows * S.cols);
}

/* The tiles for what is left from `from` on: 0 for the biggest, to 3. */
__device__ __forceinline__ int redo_choose(const product<float> &g, int from,
                                           float share)
{
    float time[] = {redo_time<REDO_BIG>(g, from, share, 1),
                    redo_time<REDO_64X64>(g, from, share, 1.1f),
                    redo_time<REDO_32X64>(g, from, share, 1.2f),
                    redo_time<REDO_32X32>(g, from, share, 1.6f)};
    int best = 0;
#pragma unroll
    for (int n = 1; n < 4; n++) {
        best = time[n] < time[0] ? n : best;
        time[0] = min(time[0], time[n]);
    }
    return redo_again(best);
}

/* c = alpha a b by all blocks, of which this is the block-th. Threads are
 * numbered from 0; barrier ID is theirs. As many big tiles as all blocks can
 * take alike, then the rest in whatever tiles take least time. */
template <int ID>
__device__ __forceinline__ void
redo_product(const split_product &p, const product<float> &g, int block,
             int blocks, int thread, void *shared)
{
    float share = __frcp_rn((float)blocks);
    int tiles = redo_count<REDO_BIG>(g);
    int whole = min(tiles, (int)((float)tiles * share) * blocks);
    int best = redo_choose(g, whole, share);
    redo_work w = {block, blocks, thread, shared};
    redo_tiles<REDO_BIG, ID>(p, g, w, best == 0 ? tiles : whole);
    w.from = redo_again(whole);
    if (best == 1)
        redo_tiles<REDO_64X64, ID>(p, g, w, redo_left<REDO_64X64>(g, w.from));
    else if (best == 2)
        redo_tiles<REDO_32X64, ID>(p, g, w, redo_left<REDO_32X64>(g, w.from));
    else if (best == 3)
        redo_tiles<REDO_32X32, ID>(p, g, w, redo_left<REDO_32X32>(g, w.from));
}

#else

/* --- where f64 is slow -------------------------------------------------- */

constexpr int REDO_TILE = 64, REDO_SLICE = 16, REDO_PATCH = 4;

typedef struct redo_memory {
    float a[REDO_SLICE][REDO_TILE + 4], b[REDO_SLICE][REDO_TILE + 4];
} redo_memory;

static_assert(sizeof(redo_memory) <= REDO_BYTES);

/* 16 of k of an operand's 64 rows or columns, zeros beyond its edges. */
__device__ __forceinline__ void redo_load(float (*to)[REDO_TILE + 4],
                                          const float *from, int64_t span,
                                          int64_t depth, int64_t span_left,
                                          int64_t depth_left, int thread)
{
    bool along_k = depth * depth < span * span;
#pragma unroll
    for (int e = thread; e < REDO_TILE * REDO_SLICE; e += REDO_THREADS) {
        int s = along_k ? e / REDO_SLICE : e % REDO_TILE;
        int k = along_k ? e % REDO_SLICE : e / REDO_TILE;
        to[k][s] =
            s < span_left && k < depth_left ? from[s * span + k * depth] : 0;
    }
}

/* One tile of 64 x 64, a thread 4 x 4 of it. */
template <int ID>
__device__ __forceinline__ void
redo_tile(const split_product &p, const product<float> &g, int64_t row,
          int64_t col, int thread, redo_memory *tile)
{
    int i = thread / 16 * REDO_PATCH, j = thread % 16 * REDO_PATCH;
    double total[REDO_PATCH][REDO_PATCH] = {};
    for (int64_t k = 0; k < g.k; k += REDO_SLICE) {
        redo_sync<ID>(); /* the tile is free */
        redo_load(tile->a, g.a + row * g.a_row + k * g.a_col, g.a_row, g.a_col,
                  g.m - row, g.k - k, thread);
        redo_load(tile->b, g.b + col * g.b_col + k * g.b_row, g.b_col, g.b_row,
                  g.n - col, g.k - k, thread);
        redo_sync<ID>(); /* the tile is filled */
        float sum[REDO_PATCH][REDO_PATCH] = {};
        int depth = (int)min((int64_t)REDO_SLICE, g.k - k);
        for (int q = 0; q < depth; q++)
#pragma unroll
            for (int r = 0; r < REDO_PATCH; r++)
#pragma unroll
                for (int c = 0; c < REDO_PATCH; c++)
                    sum[r][c] += tile->a[q][i + r] * tile->b[q][j + c];
#pragma unroll
        for (int r = 0; r < REDO_PATCH; r++)
#pragma unroll
            for (int c = 0; c < REDO_PATCH; c++)
                total[r][c] += (double)sum[r][c];
    }
#pragma unroll
    for (int r = 0; r < REDO_PATCH; r++)
#pragma unroll
        for (int c = 0; c < REDO_PATCH; c++)
            if (row + i + r < g.m && col + j + c < g.n)
                write_exact(p, row + i + r, col + j + c, total[r][c]);
}

template <int ID>
__device__ __forceinline__ void
redo_product(const split_product &p, const product<float> &g, int first_block,
             int blocks, int thread, void *shared)
{
    int64_t down = (g.m + REDO_TILE - 1) / REDO_TILE;
    int64_t across = (g.n + REDO_TILE - 1) / REDO_TILE;
    for (int64_t t = first_block; t < down * across; t += blocks)
        redo_tile<ID>(p, g, t / across * REDO_TILE, t % across * REDO_TILE,
                      thread, (redo_memory *)shared);
}

#endif

/* --- results that are not certain -------------------------------------------
 * How a kernel ends that keeps its blocks until all results are written: what
 * the planes do not make certain is computed again, in f64.
 *
 * Where a row's elements span more than 2^17, the smallest lose bits when they
 * are cut; matrix kernels note every result for which that may show (see
 * split_product). A block computes each of them again. When there are more of
 * them than the list holds, or NaN or Inf in an operand, the whole product is
 * done again, as above. By 256 threads of each block, which wait for each other
 * at barrier ID. */

/* Can only the operands themselves tell the product? */
__device__ __forceinline__ int is_to_redo(const split_product &p,
                                          unsigned count)
{
    return count > p.capacity ||
           products_for(__ldcg(p.a.facts), __ldcg(p.b.facts)) == 0;
}

/* Element (i, j) of a b in f64, added in a fixed order; thread 0 gets it. */
template <int ID>
__device__ __forceinline__ double exact_sum(const product<float> &g, int64_t i,
                                            int64_t j, int thread,
                                            double *shared)
{
    const float *a = g.a + i * g.a_row, *b = g.b + j * g.b_col;
    double sum = 0;
#pragma unroll 8
    for (int64_t k = thread; k < g.k; k += REDO_THREADS)
        sum += (double)a[k * g.a_col] * (double)b[k * g.b_row];
    for (int apart = 16; apart > 0; apart /= 2)
        sum += __shfl_down_sync(~0u, sum, apart);
    redo_sync<ID>(); /* shared is free */
    if (thread % 32 == 0)
        shared[thread / 32] = sum;
    redo_sync<ID>(); /* the warps' sums are there */
    sum = 0;
    for (int w = 0; thread == 0 && w < REDO_WARPS; w++)
        sum += shared[w];
    return sum;
}

/* This block's share of the work, when `count` results are uncertain. */
template <int ID>
__device__ __forceinline__ void mend(const split_product &p,
                                     const product<float> &g, unsigned count,
                                     int again, int thread, double *shared)
{
    if (again && p.redoes)
        redo_product<ID>(p, g, (int)blockIdx.x, (int)gridDim.x, thread, shared);
    for (unsigned e = blockIdx.x; e < count && !again; e += gridDim.x) {
        int64_t at = __ldcg(p.uncertain + e);
        int64_t i = at / g.n, j = at % g.n;
        double sum = exact_sum<ID>(g, i, j, thread, shared);
        if (thread == 0)
            write_exact(p, i, j, sum);
    }
}

/* The last block to have read the count zeroes it for the next product. By
 * one thread. */
__device__ __forceinline__ void clear_count(const split_product &p)
{
    if (atomicAdd(p.tickets + SPLIT_READ, 1) == gridDim.x - 1)
        p.tickets[SPLIT_COUNT] = p.tickets[SPLIT_READ] = 0;
}

/* --- in the kernel that multiplied -------------------------------------- */

/* Not inlined: it is rarely called, and its registers are others'. */
template <int ID>
__device__ __noinline__ void mend_apart(const split_product &p,
                                        const product<float> &g, unsigned count,
                                        int again, int thread, double *shared)
{
    mend<ID>(p, g, count, again, thread, shared);
}

/* shared: REDO_BYTES and more, which nothing else uses any longer. Only where
 * p.redoes: there is no gate to open. */
template <int ID>
__device__ __forceinline__ void certify(const split_product &p,
                                        const product<float> &g, int thread,
                                        double *shared)
{
    unsigned *said = (unsigned *)shared;
    redo_sync<ID>(); /* the block's results are written */
    if (thread == 0) {
        unsigned *written = p.tickets + SPLIT_WRITTEN;
        grid_wait(written, grid_arrive(written));
        *said = __ldcg(p.tickets + SPLIT_COUNT);
    }
    redo_sync<ID>(); /* all are */
    unsigned count = *said;
    int again = is_to_redo(p, count);
    if (count == 0 && !again)
        return;
    redo_sync<ID>(); /* what was said is read */
    if (thread == 0 && count > 0)
        clear_count(p);
    mend_apart<ID>(p, g, count, again, thread, shared);
}

#endif
