/* What a block of matmul dmma does with slices of a and b in shared memory: its
 * warps' parts of a tile of c, in f64 mma instructions. For matmul_dmma.cu.
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

#endif
