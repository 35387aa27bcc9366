/* What a block of matmul dmma does: slices of a and b come into shared memory,
 * and its warps' parts of a tile of c out of it, in f64 mma instructions. For
 * matmul_dmma.cu, which has the kernels, the choice among tilings, and the
 * launches.
 *
 * Read from below: fragments, a warp's part, the result, a block's tile; then
 * the two ways to fill the ring of slots, by all threads or by Hopper's copy
 * engine. A tiling is a template argument of all of it.
 *
 * An mma takes its operands from consecutive registers. Where reads leave them
 * in others they have to be moved, and these moves, for which the mma waits,
 * then are the limit: not memory, and not the tensor cores. So everything is
 * read in the order that an mma wants, as wide as it can be:
 *
 * - c^T = b^T a^T is computed, 16 columns of b by 8 rows of a. An mma's 16-row
 *   operand has two rows of one k side by side; as columns of b these are
 *   neighbours in memory, 16 bytes read at once. A thread ends up with
 *   neighbouring columns of c too, which it writes 16 bytes at a time.
 * - Columns, rows and k have other names. An mma calls a thread's two columns
 *   g and g + 8 and its two of k t and t + 4, but any names will do that the
 *   operands and c agree upon: ours are neighbours. */
#ifndef GPU_CUDA_DMMA_H
#define GPU_CUDA_DMMA_H

#include "copies.h"
#include "hopper.h"
#include "kernel.h"

/* A tile of c, its warps' parts of it, k in a slot of the ring and in an mma,
 * the ring's slots, the blocks for a multiprocessor to hold, whether the copy
 * engine fills the ring, and which operands have contiguous k (the others:
 * contiguous rows of a, columns of b). */
typedef struct tiling {
    int rows, cols, warp_rows, warp_cols;
    int depth, step, stages, blocks;
    bool fed, a_along_k = false, b_along_k = false;
} tiling;

template <tiling T>
constexpr int THREADS = T.rows / T.warp_rows *(T.cols / T.warp_cols) * 32;
template <tiling T> constexpr int A_SLICE = T.rows *T.depth; /* elements */
template <tiling T> constexpr int SLOT = (T.rows + T.cols) * T.depth;
template <tiling T>
constexpr int RING_BYTES = T.stages *SLOT<T> *(int)sizeof(double);

/* A slot's slice of a or b: `span` rows of a or columns of b. */
typedef struct slice {
    int span, depth;
    bool along_k;
} slice;

consteval slice slice_of_a(tiling t)
{
    return {t.rows, t.depth, t.a_along_k};
}

consteval slice slice_of_b(tiling t)
{
    return {t.cols, t.depth, t.b_along_k};
}

constexpr int PANEL = 16; /* elements that lie side by side: 128 bytes */

/* Where element s (a row of a or column of b) and k of a slice lies: in panels
 * of the side that is contiguous in global memory, the 16-byte pieces of a
 * line exchanged the way Hopper's copy engine does it: what is filled or read
 * at one time is in different banks. */
template <slice S> __device__ __forceinline__ int place_in_slice(int s, int k)
{
    constexpr int lines = S.along_k ? S.span : S.depth;
    int near = S.along_k ? k : s, line = S.along_k ? s : k;
    return (near / PANEL * lines + line) * PANEL +
           (near % PANEL ^ line % 8 * 2);
}

/* What a kernel is to do: p.c is c, or the first of the parts' results. */
typedef struct job {
    product<double> p;
    int64_t part_k, part_stride; /* of k, and in p.c; stride 0: all of k */
    bool a_along_k, b_along_k;   /* as in the tiling */
    bool a_wide, b_wide, c_wide; /* 16 bytes at a time */
} job;

/* --- fragments ---------------------------------------------------------- */

/* A thread's shares of an octet (8 of k) of 16 columns of b and 8 rows of a. */
typedef struct b_fragment {
    double at[4]; /* k, column */
} b_fragment;

typedef struct a_fragment {
    double at[2]; /* k */
} a_fragment;

/* Thread 4 g + t has columns 2 g and 2 g + 1 of b, row row_of(g) of a, and of
 * k 2 t and 2 t + 1; where b has contiguous k, t and t + 4. With these, no two
 * threads that read at one time need the same bank. */
template <tiling T> __device__ __forceinline__ int first_k(int t)
{
    return T.b_along_k ? t : 2 * t;
}

template <tiling T> __device__ __forceinline__ int row_of(int g)
{
    if (!T.a_along_k)
        return g;
    return T.b_along_k ? (2 * g & 7) + (g >> 2) : (g >> 1) + (g & 1) * 4;
}

/* start: where this thread's first element of the warp's part lies. Further
 * ones differ from it in bits that the exchange of pieces leaves alone, or
 * exchanges alike. */
template <tiling T>
__device__ __forceinline__ b_fragment read_b(const double *slot, int start,
                                             int block, int octet)
{
    b_fragment x;
    slot += A_SLICE<T>;
    if constexpr (T.b_along_k) {
        slot += block * 16 * PANEL + octet / 2 * T.cols * PANEL;
        start ^= octet % 2 * 8;
#pragma unroll
        for (int i = 0; i < 4; i++)
            x.at[i] = slot[(start ^ (i % 2 * 2 + i / 2 * 4)) + i % 2 * PANEL];
    } else {
        slot += block * T.depth * PANEL + octet * 8 * PANEL;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            double2 v = *(const double2 *)(slot + (start ^ i * 2) + i * PANEL);
            x.at[2 * i] = v.x;
            x.at[2 * i + 1] = v.y;
        }
    }
    return x;
}

template <tiling T>
__device__ __forceinline__ a_fragment read_a(const double *slot, int start,
                                             int block, int octet)
{
    if constexpr (!T.a_along_k) {
        slot += block / 2 * T.depth * PANEL + octet * 8 * PANEL;
        start ^= block % 2 * 8;
        return {slot[start], slot[(start ^ 2) + PANEL]};
    } else {
        slot += block * 8 * PANEL + octet / 2 * T.rows * PANEL;
        start ^= octet % 2 * 8;
        if constexpr (T.b_along_k)
            return {slot[start], slot[start ^ 4]};
        double2 v = *(const double2 *)(slot + start);
        return {v.x, v.y};
    }
}

/* sum (16 x 8 of c^T) += STEP of k of b's columns and a's rows. */
template <int STEP>
__device__ __forceinline__ void multiply(double *sum, const b_fragment *b,
                                         const a_fragment *a)
{
#if __CUDA_ARCH__ >= 900
    if constexpr (STEP == 16)
        asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
            "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
            : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
            : "d"(b[0].at[0]), "d"(b[0].at[1]), "d"(b[0].at[2]),
              "d"(b[0].at[3]), "d"(b[1].at[0]), "d"(b[1].at[1]),
              "d"(b[1].at[2]), "d"(b[1].at[3]), "d"(a[0].at[0]),
              "d"(a[0].at[1]), "d"(a[1].at[0]), "d"(a[1].at[1]));
    else
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
            : "d"(b->at[0]), "d"(b->at[1]), "d"(b->at[2]), "d"(b->at[3]),
              "d"(a->at[0]), "d"(a->at[1]));
#else
#pragma unroll
    for (int k = 0; k < STEP / 4; k++)
#pragma unroll
        for (int col = 0; col < 2; col++)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
                "{%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(sum[2 * col]), "+d"(sum[2 * col + 1])
                : "d"(b[k / 2].at[k % 2 * 2 + col]), "d"(a[k / 2].at[k % 2]));
#endif
}

/* --- a warp's part ------------------------------------------------------ */

/* The sums, the fragments at hand, and where the first ones lie in a slot. A
 * unit of work is 16 rows of a by all columns of the part, a step of k. */
template <tiling T> struct warp_work {
    static constexpr int DOWN = T.warp_rows / 8, ACROSS = T.warp_cols / 16;
    static constexpr int OCTETS = T.step / 8;
    static constexpr int STEPS = T.depth / T.step;
    static constexpr int PAIRS = DOWN / 2;
    static constexpr int UNITS = STEPS * PAIRS;
    int a_start, b_start;
    b_fragment b[ACROSS][OCTETS];
    a_fragment a[2][OCTETS];
    double sum[ACROSS][DOWN][4]; /* column, row */
};

template <tiling T>
__device__ __forceinline__ void find_warp(int *first_row, int *first_col)
{
    constexpr int warps_down = T.rows / T.warp_rows;
    int warp = threadIdx.x / 32;
    *first_row = warp % warps_down * T.warp_rows;
    *first_col = warp / warps_down * T.warp_cols;
}

template <tiling T>
__device__ __forceinline__ void load_b(warp_work<T> *w, const double *slot,
                                       int step, int across)
{
#pragma unroll
    for (int o = 0; o < w->OCTETS; o++)
        w->b[across][o] =
            read_b<T>(slot, w->b_start, across, step * w->OCTETS + o);
}

template <tiling T>
__device__ __forceinline__ void load_a(a_fragment a[2][warp_work<T>::OCTETS],
                                       const warp_work<T> *w,
                                       const double *slot, int step, int pair)
{
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int o = 0; o < w->OCTETS; o++)
            a[half][o] = read_a<T>(slot, w->a_start, 2 * pair + half,
                                   step * w->OCTETS + o);
}

/* Reads the first fragments of the first slot. */
template <tiling T>
__device__ __forceinline__ void begin_work(warp_work<T> *w, const double *slot)
{
    int lane = threadIdx.x % 32, k = first_k<T>(lane % 4), row, col;
    find_warp<T>(&row, &col);
    w->a_start = place_in_slice<slice_of_a(T)>(row + row_of<T>(lane / 4), k);
    w->b_start = place_in_slice<slice_of_b(T)>(col + lane / 4 * 2, k);
#pragma unroll
    for (int across = 0; across < w->ACROSS; across++)
        load_b(w, slot, 0, across);
    load_a(w->a, w, slot, 0, 0);
}

/* One unit, while the a of the unit after it is read; the b of the next step
 * follows its predecessor's last use. */
template <tiling T>
__device__ __forceinline__ void multiply_unit(warp_work<T> *w,
                                              const double *next_slot, int unit)
{
    const int pair = unit % w->PAIRS;
    const int next_step = (unit + 1) / w->PAIRS % w->STEPS;
    a_fragment a[2][warp_work<T>::OCTETS];
    load_a(a, w, next_slot, next_step, (pair + 1) % w->PAIRS);
#pragma unroll
    for (int across = 0; across < w->ACROSS; across++) {
#pragma unroll
        for (int half = 0; half < 2; half++)
            multiply<T.step>(w->sum[across][2 * pair + half], w->b[across],
                             w->a[half]);
        if (pair == w->PAIRS - 1)
            load_b(w, next_slot, next_step, across);
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int o = 0; o < w->OCTETS; o++)
            w->a[half][o] = a[half][o];
}

/* All units of a slot but the last, whose fragments are in registers then: so
 * the tensor cores have work left when the next slot is waited for. */
template <tiling T>
__device__ __forceinline__ void multiply_slot(warp_work<T> *w,
                                              const double *slot)
{
#pragma unroll
    for (int unit = 0; unit < w->UNITS - 1; unit++)
        multiply_unit(w, slot, unit);
}

template <tiling T>
__device__ __forceinline__ void finish_slot(warp_work<T> *w, const double *next)
{
    multiply_unit(w, next, w->UNITS - 1);
}

/* --- the result --------------------------------------------------------- */

/* A row of this thread's share: pairs of neighbouring columns, 16 columns
 * apart. What beta needs is read before anything is written: a read could not
 * pass a write that might be to the same place. */
template <tiling T>
__device__ __forceinline__ void write_row(const job &j, const warp_work<T> &w,
                                          double *c, int64_t first_col,
                                          int down, int odd)
{
    const product<double> &p = j.p;
    double v[warp_work<T>::ACROSS][2];
#pragma unroll
    for (int n = 0; n < 2 * w.ACROSS; n++) {
        int64_t col = first_col + n / 2 * 16 + n % 2;
        v[n / 2][n % 2] = p.alpha * w.sum[n / 2][down][n % 2 * 2 + odd];
        if (p.beta != 0 && col < p.n)
            v[n / 2][n % 2] += p.beta * c[col * p.c_col];
    }
#pragma unroll
    for (int n = 0; n < w.ACROSS; n++) {
        int64_t col = first_col + n * 16;
        if (j.c_wide && col + 1 < p.n) {
            *(double2 *)(c + col) = make_double2(v[n][0], v[n][1]);
            continue;
        }
        if (col < p.n)
            c[col * p.c_col] = v[n][0];
        if (col + 1 < p.n)
            c[(col + 1) * p.c_col] = v[n][1];
    }
}

/* c: of this part of k; row and col: the tile's first. */
template <tiling T>
__device__ __forceinline__ void write_sums(const job &j, const warp_work<T> &w,
                                           double *c, int64_t row, int64_t col)
{
    int lane = threadIdx.x % 32, first_row, first_col;
    find_warp<T>(&first_row, &first_col);
    col += first_col + lane / 4 * 2;
    row += first_row;
#pragma unroll
    for (int odd = 0; odd < 2; odd++)
#pragma unroll
        for (int down = 0; down < w.DOWN; down++) {
            int64_t i = row + down * 8 + row_of<T>(lane % 4 * 2 + odd);
            if (i < j.p.m)
                write_row<T>(j, w, c + i * j.p.c_row, col, down, odd);
        }
}

/* --- a block's tile ----------------------------------------------------- */

/* The first row and column of this block's tile, and its part of k. */
template <tiling T>
__device__ __forceinline__ void find_tile(const job &j, int64_t *row,
                                          int64_t *col, int64_t *part)
{
    int64_t down = (j.p.m + T.rows - 1) / T.rows;
    int64_t across = (j.p.n + T.cols - 1) / T.cols;
    *part = divide(blockIdx.x, down * across);
    tile_of(blockIdx.x - *part * down * across, down, across, row, col);
    *row *= T.rows;
    *col *= T.cols;
}

/* Blocks of the fold may be launched; they wait for the results themselves. */
__device__ __forceinline__ void let_fold_start(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* Writes this block's tile: finding it again is cheaper than registers kept. */
template <tiling T>
__device__ __forceinline__ void write_tile(const job &j, const warp_work<T> &w)
{
    int64_t row, col, part;
    if (j.part_stride > 0)
        let_fold_start();
    find_tile<T>(j, &row, &col, &part);
    write_sums(j, w, j.p.c + part * j.part_stride, row, col);
}

/* --- operands copied by threads ---------------------------------------------
 * All threads fill the ring, by asynchronous copies: any strides, from sm_80
 * on. */

/* threadIdx.x, where what is worked out from it shall not be kept: the loop
 * has cycles to spare, but no registers. */
__device__ __forceinline__ int thread_again(void)
{
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    __builtin_assume(thread >= 0 && thread < 1024);
    return thread;
}

/* How a block's threads share the copying of a slice, WIDTH elements at a
 * time: each has one place in several lines, LINES apart. */
template <slice S, int COUNT, int WIDTH> struct sharing {
    static constexpr int PER_LINE = (S.along_k ? S.depth : S.span) / WIDTH;
    static constexpr int LINES = COUNT / PER_LINE;
    static constexpr int COPIES = S.span * S.depth / WIDTH / COUNT;
    static_assert(COUNT % PER_LINE == 0 && COPIES > 0);
};

template <slice S, int COUNT, int WIDTH>
__device__ __forceinline__ void first_copy(int *s, int *k)
{
    constexpr int per_line = sharing<S, COUNT, WIDTH>::PER_LINE;
    int thread = thread_again();
    int line = thread / per_line, near = thread % per_line * WIDTH;
    *s = S.along_k ? line : near;
    *k = S.along_k ? near : line;
}

/* What is left of an operand: this thread's next element, and how many rows
 * of a (or columns of b) are inside this tile. */
typedef struct source {
    const double *next;
    int64_t s_stride, k_stride;
    bool wide; /* copied 16 bytes at a time */
    int s_left;
} source;

/* x, an operand as a whole, from row (or column) s and k on. */
template <slice S, int COUNT>
__device__ __forceinline__ source open_source(source x, int64_t count,
                                              int64_t s, int64_t k)
{
    int own_s, own_k;
    if (x.wide)
        first_copy<S, COUNT, 2>(&own_s, &own_k);
    else
        first_copy<S, COUNT, 1>(&own_s, &own_k);
    x.next += (s + own_s) * x.s_stride + (k + own_k) * x.k_stride;
    x.s_left = (int)min(count - s, (int64_t)S.span);
    return x;
}

/* Zeros beyond the edges. */
template <slice S, int COUNT, int WIDTH>
__device__ __forceinline__ void copy_slice(double *to, const source &from,
                                           int k_left)
{
    using share = sharing<S, COUNT, WIDTH>;
    constexpr int size = (int)sizeof(double);
    int64_t line_stride = S.along_k ? from.s_stride : from.k_stride;
    int s, k;
    first_copy<S, COUNT, WIDTH>(&s, &k);
#pragma unroll
    for (int n = 0; n < share::COPIES; n++) {
        int inside = S.along_k ? k_left - k : from.s_left - s;
        if (S.along_k ? s >= from.s_left : k >= k_left)
            inside = 0;
        copy_async<WIDTH * size>(shared_address(to + place_in_slice<S>(s, k)),
                                 from.next + n * share::LINES * line_stride,
                                 min(max(inside, 0), WIDTH) * size);
        *(S.along_k ? &s : &k) += share::LINES;
    }
}

template <slice S, int COUNT>
__device__ __forceinline__ void copy_next(double *to, source *from, int k_left)
{
    if (from->wide)
        copy_slice<S, COUNT, 2>(to, *from, k_left);
    else
        copy_slice<S, COUNT, 1>(to, *from, k_left);
    from->next += S.depth * from->k_stride;
}

typedef struct feed {
    source a, b;
    int64_t k_left;
} feed;

template <tiling T> __device__ __forceinline__ feed open_feed(const job &j)
{
    const product<double> &p = j.p;
    int64_t row, col, part;
    find_tile<T>(j, &row, &col, &part);
    int64_t k = part * j.part_k;
    source a = {p.a, p.a_row, p.a_col, j.a_wide, 0};
    source b = {p.b, p.b_col, p.b_row, j.b_wide, 0};
    return {open_source<slice_of_a(T), THREADS<T>>(a, p.m, row, k),
            open_source<slice_of_b(T), THREADS<T>>(b, p.n, col, k),
            min(p.k - k, j.part_k)};
}

/* Ends a group of copies even where nothing is left: groups are counted. */
template <tiling T>
__device__ __forceinline__ void fill_slot(double *slot, feed *f)
{
    if (f->k_left > 0) {
        int k_left = (int)min(f->k_left, (int64_t)T.depth);
        copy_next<slice_of_a(T), THREADS<T>>(slot, &f->a, k_left);
        copy_next<slice_of_b(T), THREADS<T>>(slot + A_SLICE<T>, &f->b, k_left);
    }
    f->k_left -= T.depth;
    end_copies();
}

template <tiling T>
__global__ void __launch_bounds__(THREADS<T>, T.blocks)
    dmma_kernel(const __grid_constant__ job j)
{
    extern __shared__ __align__(1024) double slots[];
    feed f = open_feed<T>(j);
    int left = (int)((f.k_left + T.depth - 1) / T.depth);
    for (int n = 0; n < T.stages - 1; n++)
        fill_slot<T>(slots + n * SLOT<T>, &f);
    wait_for_copies<T.stages - 2>();
    __syncthreads(); /* the first slot is filled */
    warp_work<T> w = {};
    begin_work(&w, slots);
    int reading = 0;
#pragma unroll 1
    for (; left > 0; left--) {
        int used = reading == 0 ? T.stages - 1 : reading - 1;
        int next = reading == T.stages - 1 ? 0 : reading + 1;
        fill_slot<T>(slots + used * SLOT<T>, &f);
        multiply_slot(&w, slots + reading * SLOT<T>);
        wait_for_copies<T.stages - 2>();
        __syncthreads(); /* the next slot is filled, this one read */
        finish_slot(&w, slots + next * SLOT<T>);
        reading = next;
    }
    write_tile(j, w);
}

/* --- operands copied by the tensor copy engine ------------------------------
 * Hopper's copy engine fills the ring: the warps ask it in turn, and none waits
 * for the others. Operands lie on 16 bytes. */

/* An operand in boxes of a panel, or of all panels of a slice where these are
 * whole: along rows or columns, a multiple of 16 of them. */
typedef struct box_map {
    CUtensorMap map;
    bool whole;
} box_map;

typedef struct maps {
    box_map a, b;
} maps;

__device__ __forceinline__ void copy_box2(uint32_t to, const CUtensorMap *map,
                                          uint32_t barrier, int x, int y)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global"
        ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y)
        : "memory");
}

/* The slice whose first row (or column) is s. Zeros beyond the edges. */
template <slice S>
__device__ __forceinline__ void copy_panels(uint32_t to, const box_map &x,
                                            uint32_t full, int s, int k)
{
    constexpr int bytes = PANEL * (int)sizeof(double); /* of a line */
    if (S.along_k) {
#pragma unroll
        for (int n = 0; n < S.depth / PANEL; n++)
            copy_box2(to + n * S.span * bytes, &x.map, full, k + n * PANEL, s);
    } else if (x.whole) {
        copy_box3(to, &x.map, full, 0, k, s / PANEL);
    } else {
#pragma unroll 1
        for (int n = 0; n < S.span / PANEL; n++)
            copy_box2(to + n * S.depth * bytes, &x.map, full, s + n * PANEL, k);
    }
}

/* Where the copy engine is to read next, and how many slots it is to fill. */
typedef struct request {
    cursor at;
    int row, col, k, slots;
} request;

template <tiling T> __device__ __forceinline__ void skip_slot(request *r)
{
    r->k += T.depth;
    r->slots--;
    advance<T.stages>(&r->at);
}

/* Asks for a slot, once every warp has read what is in it. */
template <tiling T>
__device__ __forceinline__ void ask_for_slot(const maps &m, const ring &p,
                                             const request &r)
{
    constexpr int size = (int)sizeof(double);
    uint32_t to = p.first + r.at.slot * SLOT<T> * size;
    uint32_t full = open_slot(p, r.at, SLOT<T> * size);
    copy_panels<slice_of_a(T)>(to, m.a, full, r.row, r.k);
    copy_panels<slice_of_b(T)>(to + A_SLICE<T> * size, m.b, full, r.col, r.k);
}

template <tiling T>
__device__ __forceinline__ ring prepare_ring(const double *slots)
{
    ring p = ring_at(shared_address(slots), RING_BYTES<T>, T.stages);
    if (threadIdx.x == 0)
        init_ring(p, T.stages, THREADS<T> / 32);
    __syncthreads(); /* the barriers are ready */
    return p;
}

/* This warp has read a slot, and the next one is needed, if there is one. */
__device__ __forceinline__ void change_slots(const ring &p, int used,
                                             const cursor &next, bool more)
{
    __syncwarp(); /* all threads have read the slot */
    give_slot<1>(p, used, threadIdx.x % 32);
    if (more)
        await_slot(p, next);
}

/* A slot is asked for LAG slots after the warps were done with it: then none
 * of them has to wait for the others. */
template <tiling T> constexpr int LAG = T.stages > 3 ? 2 : 1;

/* Asks for the first slots. */
template <tiling T>
__device__ __forceinline__ request begin_requests(const job &j, const maps &m,
                                                  const ring &p)
{
    int64_t row, col, part;
    find_tile<T>(j, &row, &col, &part);
    int64_t k = part * j.part_k, depth = min(j.p.k - k, j.part_k);
    int slots = (int)((depth + T.depth - 1) / T.depth);
    request r = {{0, 1}, (int)row, (int)col, (int)k, slots};
#pragma unroll 1
    for (int n = 0; n < T.stages - LAG<T>; n++) {
        if (threadIdx.x == 0 && r.slots > 0)
            ask_for_slot<T>(m, p, r);
        skip_slot<T>(&r);
    }
    return r;
}

/* As dmma_kernel, but the copy engine fills the slots, asked by the warps in
 * turn, and no warp waits for the others. */
template <tiling T>
__global__ void __launch_bounds__(THREADS<T>, T.blocks)
    dmma_fed_kernel(const __grid_constant__ job j,
                    const __grid_constant__ maps m)
{
#if __CUDA_ARCH__ == 900
    extern __shared__ __align__(1024) double slots[];
    if (threadIdx.x == 0) {
        prefetch_map(&m.a.map);
        prefetch_map(&m.b.map);
    }
    ring p = prepare_ring<T>(slots);
    request r = begin_requests<T>(j, m, p);
    cursor c = {0, 0};
    await_slot(p, c);
    warp_work<T> w = {};
    begin_work(&w, slots);
#pragma unroll 1
    for (int left = r.slots + T.stages - LAG<T>; left > 0; left--) {
        if (threadIdx.x == left * 32 % THREADS<T> && r.slots > 0)
            ask_for_slot<T>(m, p, r);
        skip_slot<T>(&r);
        multiply_slot(&w, slots + c.slot * SLOT<T>);
        int used = advance<T.stages>(&c);
        change_slots(p, used, c, left > 1);
        finish_slot(&w, slots + c.slot * SLOT<T>);
    }
    write_tile(j, w);
#endif
}

#endif
