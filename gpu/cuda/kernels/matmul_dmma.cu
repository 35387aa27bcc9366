/* matmul dmma: f64 products on the tensor cores, added up in f64: fused
 * multiply-adds rounded to nearest, as exact as the plain cores'.
 *
 * A block computes a tile of c; each of its warps computes a part of it in
 * registers with mma instructions, 8 x 16 of c and 8 or 16 of k at a time
 * (8 x 8 and 4 before sm_90). A ring of shared memory slots holds the next
 * slices of a and b. Hopper's copy engine fills it, or, elsewhere and where
 * operands are not aligned to 16 bytes, asynchronous copies by all threads.
 * Products with few tiles cut k into slices too; a second kernel adds the
 * slices up in order.
 *
 * Limited by the tensor cores: 128 multiply-adds a cycle and multiprocessor on
 * an H200. A 128 x 128 tile needs 128 cycles for each k, in which its warps
 * read 6 KiB of fragments and the copies write 2 KiB: 64 cycles of shared
 * memory at 128 bytes each. Fragments are read in the order of an mma's
 * registers: moving them into place would keep it waiting. From sm_80, any
 * strides; GPUs whose tensor cores lack f64 run it slowly. */
#include "kernel.h"
#include "hopper.h"

constexpr int PANEL = 16; /* elements that lie side by side */

/* A tile of c, cut into warps; the slots of the ring are DEPTH of k, an mma
 * takes STEP of them; BLOCKS run on a multiprocessor at one time. */
template <int ROWS_, int COLS_, int WARP_ROWS_, int WARP_COLS_, int DEPTH_,
          int STEP_, int STAGES_, int BLOCKS_>
struct tiling {
    static constexpr int ROWS = ROWS_, COLS = COLS_;
    static constexpr int WARP_ROWS = WARP_ROWS_, WARP_COLS = WARP_COLS_;
    static constexpr int DEPTH = DEPTH_, STEP = STEP_;
    static constexpr int STAGES = STAGES_, BLOCKS = BLOCKS_;
    static constexpr int LAG = STAGES > 3 ? 2 : 1;
    static constexpr int THREADS = ROWS / WARP_ROWS * (COLS / WARP_COLS) * 32;
    static constexpr int SLOT = (ROWS + COLS) * DEPTH; /* elements */
    static constexpr int BYTES = STAGES * SLOT * (int)sizeof(double);
};

/* One launch: p.c is c, or the first of the slices' partial results. */
typedef struct job {
    product<double> p;
    int64_t slice_depth, slice_stride; /* of k, and in p.c */
    bool a_wide, b_wide, c_wide;       /* 16 bytes at a time */
} job;

/* Where element s (a row of a or column of b) and k of a slice lies: in panels
 * of 128 bytes of the side that is contiguous in global memory, the 16-byte
 * pieces of a line exchanged the way the copy engine does it. So no two
 * threads that fill or read at one time need the same bank. */
template <int SPAN, int DEPTH, bool ALONG_K>
__device__ __forceinline__ int place_in_slice(int s, int k)
{
    int near = ALONG_K ? k : s, line = ALONG_K ? s : k;
    int lines = ALONG_K ? SPAN : DEPTH;
    return (near / PANEL * lines + line) * PANEL +
           (near % PANEL ^ line % 8 * 2);
}

/* Copies WIDTH elements, the first `inside` of them real, the rest zeros. */
template <int WIDTH>
__device__ __forceinline__ void copy_async(double *to, const double *from,
                                           int inside)
{
    int bytes = min(max(inside, 0), WIDTH) * (int)sizeof(double);
    uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    if (WIDTH == 2)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at),
                     "l"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at),
                     "l"(from), "r"(bytes)
                     : "memory");
}

__device__ __forceinline__ void end_copies(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most PENDING of this thread's newest groups are under way. */
template <int PENDING> __device__ __forceinline__ void wait_for_copies(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* threadIdx.x, where what is worked out from it shall not be kept: the loop
 * has cycles to spare, but no registers. */
__device__ __forceinline__ int thread_again(void)
{
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    __builtin_assume(thread >= 0 && thread < 1024);
    return thread;
}

/* How a block's threads share the copying of a slice: where this one begins,
 * and how many lines further on its next copy is. */
template <class T, int SPAN, bool ALONG_K, int WIDTH> struct sharing {
    static constexpr int PER_LINE = (ALONG_K ? T::DEPTH : SPAN) / WIDTH;
    static constexpr int LINES = T::THREADS / PER_LINE;
    static constexpr int COPIES = SPAN * T::DEPTH / WIDTH / T::THREADS;
    static_assert(T::THREADS % PER_LINE == 0 && COPIES > 0);
};

template <class T, int SPAN, bool ALONG_K, int WIDTH>
__device__ __forceinline__ void first_copy(int *s, int *k)
{
    constexpr int per_line = sharing<T, SPAN, ALONG_K, WIDTH>::PER_LINE;
    int thread = thread_again();
    int line = thread / per_line, first = thread % per_line * WIDTH;
    *s = ALONG_K ? line : first;
    *k = ALONG_K ? first : line;
}

/* from: this thread's first element. Zeros beyond the edges. */
template <class T, int SPAN, bool ALONG_K, int WIDTH>
__device__ __forceinline__ void copy_slice(double *slice, const double *from,
                                           int64_t line_stride, int s_left,
                                           int k_left)
{
    using share = sharing<T, SPAN, ALONG_K, WIDTH>;
    int s, k;
    first_copy<T, SPAN, ALONG_K, WIDTH>(&s, &k);
#pragma unroll
    for (int n = 0; n < share::COPIES; n++) {
        int inside = ALONG_K ? k_left - k : s_left - s;
        if (ALONG_K ? s >= s_left : k >= k_left)
            inside = 0;
        copy_async<WIDTH>(slice + place_in_slice<SPAN, T::DEPTH, ALONG_K>(s, k),
                          from + n * share::LINES * line_stride, inside);
        *(ALONG_K ? &s : &k) += share::LINES;
    }
}

/* What is left of an operand: this thread's next element, and how many rows
 * of a (or columns of b) are inside this tile. */
typedef struct source {
    const double *next;
    int s_left;
} source;

template <class T, int SPAN, bool ALONG_K>
__device__ __forceinline__ source aim(const double *data, int64_t span,
                                      int64_t depth, int64_t first,
                                      int64_t count, bool wide)
{
    int s, k;
    if (wide)
        first_copy<T, SPAN, ALONG_K, 2>(&s, &k);
    else
        first_copy<T, SPAN, ALONG_K, 1>(&s, &k);
    return {data + (first + s) * span + k * depth,
            (int)min(count - first, (int64_t)SPAN)};
}

template <class T, int SPAN, bool ALONG_K>
__device__ __forceinline__ void copy_next(double *slice, source *from,
                                          int64_t span, int64_t depth,
                                          int k_left, bool wide)
{
    int64_t line_stride = ALONG_K ? span : depth;
    if (wide)
        copy_slice<T, SPAN, ALONG_K, 2>(slice, from->next, line_stride,
                                        from->s_left, k_left);
    else
        copy_slice<T, SPAN, ALONG_K, 1>(slice, from->next, line_stride,
                                        from->s_left, k_left);
    from->next += T::DEPTH * depth;
}

/* A thread's shares of 8 of k and of 16 columns of b, and of 8 rows of a. The
 * order is that of the registers an mma takes, so that 16 bytes read at once
 * are where it wants them: b's columns and a's k are best contiguous. */
typedef struct columns {
    double at[4]; /* k, column */
} columns;

typedef struct rows {
    double at[2]; /* k */
} rows;

/* What thread 4 g + t of a warp has: columns 2 g and 2 g + 1, row row_of(g),
 * and two of k. The mma instructions do not mind: they name them g, g + 8, g
 * and t, t + 4, and any names will do that the operands and c agree upon. With
 * these, no two threads that read at one time need the same bank. */
template <bool A_ALONG_K, bool B_ALONG_K> struct names {
    static constexpr bool PAIRS = !B_ALONG_K; /* k: 2 t + i, or t + 4 i */
    static __device__ __forceinline__ int first_k(int t)
    {
        return PAIRS ? 2 * t : t;
    }
    static __device__ __forceinline__ int row_of(int g)
    {
        if (!A_ALONG_K)
            return g;
        return PAIRS ? (g >> 1) + (g & 1) * 4 : (2 * g & 7) + (g >> 2);
    }
};

/* The block-th 16 columns and the eighth-th 8 of k. */
template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ columns read_columns(const double *slot, int start,
                                                int block, int eighth)
{
    columns x;
    slot += T::ROWS * T::DEPTH;
    if constexpr (B_ALONG_K) {
        slot += block * 16 * PANEL + eighth / 2 * T::COLS * PANEL;
        start ^= eighth % 2 * 8;
#pragma unroll
        for (int i = 0; i < 4; i++)
            x.at[i] = slot[(start ^ (i % 2 * 2 + i / 2 * 4)) + i % 2 * PANEL];
    } else {
        slot += block * T::DEPTH * PANEL + eighth * 8 * PANEL;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            double2 v = *(const double2 *)(slot + (start ^ i * 2) + i * PANEL);
            x.at[2 * i] = v.x;
            x.at[2 * i + 1] = v.y;
        }
    }
    return x;
}

/* The block-th 8 rows and the eighth-th 8 of k. */
template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ rows read_rows(const double *slot, int start,
                                          int block, int eighth)
{
    if constexpr (!A_ALONG_K) {
        slot += block / 2 * T::DEPTH * PANEL + eighth * 8 * PANEL;
        start ^= block % 2 * 8;
        return {slot[start], slot[(start ^ 2) + PANEL]};
    } else {
        slot += block * 8 * PANEL + eighth / 2 * T::ROWS * PANEL;
        start ^= eighth % 2 * 8;
        if constexpr (B_ALONG_K)
            return {slot[start], slot[start ^ 4]};
        double2 v = *(const double2 *)(slot + start);
        return {v.x, v.y};
    }
}

/* sum (16 x 8 of c's transpose) += columns of b times rows of a, with STEP of
 * k. */
template <int STEP>
__device__ __forceinline__ void multiply(double *sum, const columns *b,
                                         const rows *a)
{
#if __CUDA_ARCH__ >= 900
    if constexpr (STEP == 16) {
        asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
            "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
            : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
            : "d"(b[0].at[0]), "d"(b[0].at[1]), "d"(b[0].at[2]),
              "d"(b[0].at[3]), "d"(b[STEP / 16].at[0]), "d"(b[STEP / 16].at[1]),
              "d"(b[STEP / 16].at[2]), "d"(b[STEP / 16].at[3]), "d"(a[0].at[0]),
              "d"(a[0].at[1]), "d"(a[STEP / 16].at[0]),
              "d"(a[STEP / 16].at[1]));
    } else {
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
            : "d"(b->at[0]), "d"(b->at[1]), "d"(b->at[2]), "d"(b->at[3]),
              "d"(a->at[0]), "d"(a->at[1]));
    }
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

/* A warp's position in its tile, its part of c, and the fragments at hand. */
template <class T> struct warp_work {
    static constexpr int DOWN = T::WARP_ROWS / 8;
    static constexpr int ACROSS = T::WARP_COLS / 16;
    static constexpr int EIGHTHS = T::STEP == 16 ? 2 : 1; /* in a step */
    static constexpr int STEPS = T::DEPTH / (8 * EIGHTHS);
    static constexpr int UNITS = STEPS * DOWN / 2; /* of 16 rows */
    int a_start, b_start;
    columns b[ACROSS][EIGHTHS];
    rows a[2][EIGHTHS];
    double sum[ACROSS][DOWN][4]; /* column, row */
};

template <class T>
__device__ __forceinline__ void find_warp(int *first_row, int *first_col)
{
    int warp = threadIdx.x / 32;
    *first_row = warp % (T::ROWS / T::WARP_ROWS) * T::WARP_ROWS;
    *first_col = warp / (T::ROWS / T::WARP_ROWS) * T::WARP_COLS;
}

template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void read_b(warp_work<T> *w, const double *slot,
                                       int step, int across)
{
#pragma unroll
    for (int e = 0; e < w->EIGHTHS; e++)
        w->b[across][e] = read_columns<T, A_ALONG_K, B_ALONG_K>(
            slot, w->b_start, across, step * w->EIGHTHS + e);
}

template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void read_a(rows a[2][warp_work<T>::EIGHTHS],
                                       const warp_work<T> *w,
                                       const double *slot, int step, int pair)
{
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int e = 0; e < w->EIGHTHS; e++)
            a[half][e] = read_rows<T, A_ALONG_K, B_ALONG_K>(
                slot, w->a_start, 2 * pair + half, step * w->EIGHTHS + e);
}

/* A unit: 16 rows of a step, while the a of the unit after it is read; the b
 * of the next step follows its predecessor's last use. */
template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void multiply_unit(warp_work<T> *w,
                                              const double *next_slot, int unit)
{
    constexpr int PAIRS = warp_work<T>::DOWN / 2;
    const int pair = unit % PAIRS;
    const int next_step = (unit + 1) / PAIRS % warp_work<T>::STEPS;
    rows a[2][warp_work<T>::EIGHTHS];
    read_a<T, A_ALONG_K, B_ALONG_K>(a, w, next_slot, next_step,
                                    (pair + 1) % PAIRS);
#pragma unroll
    for (int across = 0; across < w->ACROSS; across++) {
#pragma unroll
        for (int half = 0; half < 2; half++)
            multiply<T::STEP>(w->sum[across][2 * pair + half], w->b[across],
                              w->a[half]);
        if (pair == PAIRS - 1)
            read_b<T, A_ALONG_K, B_ALONG_K>(w, next_slot, next_step, across);
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int e = 0; e < w->EIGHTHS; e++)
            w->a[half][e] = a[half][e];
}

/* All units of a slot but the last, whose fragments are in registers then:
 * so the tensor cores have work left when the next slot is waited for. */
template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void multiply_slot(warp_work<T> *w,
                                              const double *slot)
{
#pragma unroll
    for (int unit = 0; unit < warp_work<T>::UNITS - 1; unit++)
        multiply_unit<T, A_ALONG_K, B_ALONG_K>(w, slot, unit);
}

template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void finish_slot(warp_work<T> *w, const double *next)
{
    multiply_unit<T, A_ALONG_K, B_ALONG_K>(w, next, warp_work<T>::UNITS - 1);
}

/* A row of this thread's part: pairs of neighbouring columns, 16 columns
 * apart. What beta needs is read before anything is written: a read could not
 * pass a write that might be to the same place. */
template <class T>
__device__ __forceinline__ void write_row(const job &j, const warp_work<T> &w,
                                          double *c, int64_t first_col,
                                          int down, int odd)
{
    constexpr int ACROSS = warp_work<T>::ACROSS;
    const product<double> &p = j.p;
    double v[ACROSS][2];
#pragma unroll
    for (int n = 0; n < 2 * ACROSS; n++) {
        int64_t col = first_col + n / 2 * 16 + n % 2;
        v[n / 2][n % 2] = p.alpha * w.sum[n / 2][down][n % 2 * 2 + odd];
        if (p.beta != 0 && col < p.n)
            v[n / 2][n % 2] += p.beta * c[col * p.c_col];
    }
#pragma unroll
    for (int n = 0; n < ACROSS; n++) {
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

template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void write_part(const job &j, const warp_work<T> &w,
                                           int64_t row, int64_t col,
                                           int64_t slice)
{
    int lane = threadIdx.x % 32, first_row, first_col;
    find_warp<T>(&first_row, &first_col);
    col += first_col + lane / 4 * 2;
    row += first_row;
#pragma unroll
    for (int odd = 0; odd < 2; odd++)
#pragma unroll
        for (int down = 0; down < w.DOWN; down++) {
            int64_t r = row + down * 8 +
                        names<A_ALONG_K, B_ALONG_K>::row_of(lane % 4 * 2 + odd);
            if (r < j.p.m)
                write_row<T>(j, w,
                             j.p.c + slice * j.slice_stride + r * j.p.c_row,
                             col, down, odd);
        }
}

/* The first row and column of this block's tile, and its slice of k. */
template <class T>
__device__ __forceinline__ void find_tile(const job &j, int64_t *row,
                                          int64_t *col, int64_t *slice)
{
    int64_t down = (j.p.m + T::ROWS - 1) / T::ROWS;
    int64_t across = (j.p.n + T::COLS - 1) / T::COLS;
    *slice = divide(blockIdx.x, down * across);
    tile_of(blockIdx.x - *slice * down * across, down, across, row, col);
    *row *= T::ROWS;
    *col *= T::COLS;
}

template <class T> struct feed {
    source a, b;
    int64_t left; /* of k */
};

template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ feed<T> open_feed(const job &j, int64_t row,
                                             int64_t col, int64_t slice)
{
    const product<double> &p = j.p;
    int64_t k = slice * j.slice_depth;
    return {aim<T, T::ROWS, A_ALONG_K>(p.a + k * p.a_col, p.a_row, p.a_col, row,
                                       p.m, j.a_wide),
            aim<T, T::COLS, B_ALONG_K>(p.b + k * p.b_row, p.b_col, p.b_row, col,
                                       p.n, j.b_wide),
            min(p.k - k, j.slice_depth)};
}

/* Ends a group of copies even where nothing is left: groups are counted. */
template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void fill_slot(const job &j, feed<T> *f,
                                          double *slot)
{
    const product<double> &p = j.p;
    if (f->left > 0) {
        int k_left = (int)min(f->left, (int64_t)T::DEPTH);
        copy_next<T, T::ROWS, A_ALONG_K>(slot, &f->a, p.a_row, p.a_col, k_left,
                                         j.a_wide);
        copy_next<T, T::COLS, B_ALONG_K>(slot + T::ROWS * T::DEPTH, &f->b,
                                         p.b_col, p.b_row, k_left, j.b_wide);
    }
    f->left -= T::DEPTH;
    end_copies();
}

/* Reads the first fragments of the first slot. */
template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void begin_work(warp_work<T> *w, const double *slot)
{
    using name = names<A_ALONG_K, B_ALONG_K>;
    int lane = threadIdx.x % 32, k = name::first_k(lane % 4), row, col;
    find_warp<T>(&row, &col);
    w->a_start = place_in_slice<T::ROWS, T::DEPTH, A_ALONG_K>(
        row + name::row_of(lane / 4), k);
    w->b_start =
        place_in_slice<T::COLS, T::DEPTH, B_ALONG_K>(col + lane / 4 * 2, k);
#pragma unroll
    for (int across = 0; across < w->ACROSS; across++)
        read_b<T, A_ALONG_K, B_ALONG_K>(w, slot, 0, across);
    read_a<T, A_ALONG_K, B_ALONG_K>(w->a, w, slot, 0, 0);
}

template <class T, bool A_ALONG_K, bool B_ALONG_K>
__global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
    dmma_kernel(const __grid_constant__ job j)
{
    extern __shared__ __align__(1024) double ring[];
    int64_t row, col, slice;
    find_tile<T>(j, &row, &col, &slice);
    feed<T> f = open_feed<T, A_ALONG_K, B_ALONG_K>(j, row, col, slice);
    int slots = (int)((f.left + T::DEPTH - 1) / T::DEPTH);
    for (int n = 0; n < T::STAGES - 1; n++)
        fill_slot<T, A_ALONG_K, B_ALONG_K>(j, &f, ring + n * T::SLOT);
    wait_for_copies<T::STAGES - 2>();
    __syncthreads(); /* the first slot is filled */
    warp_work<T> w = {};
    begin_work<T, A_ALONG_K, B_ALONG_K>(&w, ring);
    int reading = 0;
#pragma unroll 1
    for (; slots > 0; slots--) {
        int used = reading == 0 ? T::STAGES - 1 : reading - 1;
        int next = reading == T::STAGES - 1 ? 0 : reading + 1;
        fill_slot<T, A_ALONG_K, B_ALONG_K>(j, &f, ring + used * T::SLOT);
        multiply_slot<T, A_ALONG_K, B_ALONG_K>(&w, ring + reading * T::SLOT);
        wait_for_copies<T::STAGES - 2>();
        __syncthreads(); /* the next slot is filled, this one read */
        finish_slot<T, A_ALONG_K, B_ALONG_K>(&w, ring + next * T::SLOT);
        reading = next;
    }
    find_tile<T>(j, &row, &col, &slice); /* cheaper than registers kept */
    write_part<T, A_ALONG_K, B_ALONG_K>(j, w, row, col, slice);
}

/* --- fed by the copy engine ------------------------------------------------
 */

/* Boxes of a panel, or of all panels where the contiguous side is k or a
 * multiple of 16. */
typedef struct maps {
    CUtensorMap a, b;
    bool a_whole, b_whole;
} maps;

/* The ring and its barriers: 32-bit addresses in shared memory. */
typedef struct pipe {
    uint32_t slots, full, empty;
} pipe;

/* The ring's next slot and the phase of its barriers. */
typedef struct cursor {
    int slot;
    uint32_t phase;
} cursor;

template <class T> __device__ __forceinline__ void advance(cursor *c)
{
    if (++c->slot == T::STAGES) {
        c->slot = 0;
        c->phase ^= 1;
    }
}

__device__ __forceinline__ void copy_box2(uint32_t to, const CUtensorMap *map,
                                          uint32_t barrier, int x, int y)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global"
        ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y)
        : "memory");
}

/* Zeros beyond the edges. */
template <int SPAN, int DEPTH, bool ALONG_K>
__device__ __forceinline__ void copy_panels(uint32_t to, const CUtensorMap *map,
                                            bool whole, uint32_t full, int s,
                                            int k)
{
    constexpr int BYTES = PANEL * (int)sizeof(double);
    if (ALONG_K) {
#pragma unroll
        for (int n = 0; n < DEPTH / PANEL; n++)
            copy_box2(to + n * SPAN * BYTES, map, full, k + n * PANEL, s);
    } else if (whole) {
        copy_box3(to, map, full, 0, k, s / PANEL);
    } else {
#pragma unroll 1
        for (int n = 0; n < SPAN / PANEL; n++)
            copy_box2(to + n * DEPTH * BYTES, map, full, s + n * PANEL, k);
    }
}

/* Where the copy engine is to read next, and how many slots it is to fill. */
typedef struct request {
    cursor at;
    int row, col, k, slots;
} request;

template <class T> __device__ __forceinline__ void skip_slot(request *r)
{
    r->k += T::DEPTH;
    r->slots--;
    advance<T>(&r->at);
}

/* Asks for a slot, once every warp has read what is in it. */
template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ void ask_for_slot(const maps &m, const pipe &p,
                                             const request &r)
{
    constexpr int SIZE = (int)sizeof(double);
    uint32_t to = p.slots + r.at.slot * T::SLOT * SIZE;
    uint32_t full = p.full + 8 * r.at.slot;
    barrier_wait(p.empty + 8 * r.at.slot, r.at.phase);
    barrier_expect(full, T::SLOT * SIZE);
    copy_panels<T::ROWS, T::DEPTH, A_ALONG_K>(to, &m.a, m.a_whole, full, r.row,
                                              r.k);
    copy_panels<T::COLS, T::DEPTH, B_ALONG_K>(
        to + T::ROWS * T::DEPTH * SIZE, &m.b, m.b_whole, full, r.col, r.k);
}

template <class T> __device__ __forceinline__ pipe prepare_pipe(double *ring)
{
    pipe p;
    p.slots = shared_address(ring);
    p.full = p.slots + T::BYTES;
    p.empty = p.full + 8 * T::STAGES;
    if (threadIdx.x == 0) {
        for (int n = 0; n < T::STAGES; n++) {
            barrier_init(p.full + 8 * n, 1);
            barrier_init(p.empty + 8 * n, T::THREADS / 32);
        }
        barriers_ready();
    }
    __syncthreads(); /* the barriers are ready */
    return p;
}

/* This warp has read a slot, and the next one is needed, if there is one. */
template <class T>
__device__ __forceinline__ void change_slots(const pipe &p, int used,
                                             const cursor &next, bool more)
{
    __syncwarp(); /* all threads have read the slot */
    if (threadIdx.x % 32 == 0)
        barrier_arrive(p.empty + 8 * used);
    if (more)
        barrier_wait(p.full + 8 * next.slot, next.phase);
}

/* The first slots. The others are asked for LAG slots after the warps were
 * done with their predecessors: none of them waits for that then. */
template <class T, bool A_ALONG_K, bool B_ALONG_K>
__device__ __forceinline__ request begin_requests(const job &j, const maps &m,
                                                  const pipe &p)
{
    int64_t row, col, slice;
    find_tile<T>(j, &row, &col, &slice);
    int64_t k = slice * j.slice_depth, depth = min(j.p.k - k, j.slice_depth);
    request r = {{0, 1},
                 (int)row,
                 (int)col,
                 (int)k,
                 (int)((depth + T::DEPTH - 1) / T::DEPTH)};
#pragma unroll 1
    for (int n = 0; n < T::STAGES - T::LAG; n++) {
        if (threadIdx.x == 0 && r.slots > 0)
            ask_for_slot<T, A_ALONG_K, B_ALONG_K>(m, p, r);
        skip_slot<T>(&r);
    }
    return r;
}

/* As dmma_kernel, but the copy engine fills the slots, asked by the warps in
 * turn, and no warp waits for the others. */
template <class T, bool A_ALONG_K, bool B_ALONG_K>
__global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
    dmma_fed_kernel(const __grid_constant__ job j,
                    const __grid_constant__ maps m)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(1024) double ring[];
    pipe p = prepare_pipe<T>(ring);
    request r = begin_requests<T, A_ALONG_K, B_ALONG_K>(j, m, p);
    cursor c = {0, 0};
    barrier_wait(p.full, 0);
    warp_work<T> w = {};
    begin_work<T, A_ALONG_K, B_ALONG_K>(&w, ring);
#pragma unroll 1
    for (int slots = r.slots + T::STAGES - T::LAG; slots > 0; slots--) {
        if (threadIdx.x == slots * 32 % T::THREADS && r.slots > 0)
            ask_for_slot<T, A_ALONG_K, B_ALONG_K>(m, p, r);
        skip_slot<T>(&r);
        int used = c.slot;
        multiply_slot<T, A_ALONG_K, B_ALONG_K>(&w, ring + used * T::SLOT);
        advance<T>(&c);
        change_slots<T>(p, used, c, slots > 1);
        finish_slot<T, A_ALONG_K, B_ALONG_K>(&w, ring + c.slot * T::SLOT);
    }
    int64_t row, col, slice;
    find_tile<T>(j, &row, &col, &slice); /* cheaper than registers kept */
    write_part<T, A_ALONG_K, B_ALONG_K>(j, w, row, col, slice);
#endif
}

/* --- slices of k -----------------------------------------------------------
 */

enum { FOLD_THREADS = 256 };

/* c from the slices' partial results (m lines of `line` elements each): every
 * row of threads adds up some of the slices, the first adds up the rows. */
static __global__ void __launch_bounds__(FOLD_THREADS)
    fold_kernel(const __grid_constant__ product<double> p,
                const double *partial, int64_t line, int slices)
{
    __shared__ double sums[FOLD_THREADS];
    int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    if (e < p.m * line) {
#pragma unroll 8
        for (int s = threadIdx.y; s < slices; s += blockDim.y)
            sum += partial[s * (p.m * line) + e];
    }
    sums[threadIdx.y * blockDim.x + threadIdx.x] = sum;
    __syncthreads(); /* every row of threads has its sum */
    int64_t i = divide(e, line), j = e - i * line;
    if (threadIdx.y > 0 || i >= p.m || j >= p.n)
        return;
    for (int y = 1; y < blockDim.y; y++)
        sum += sums[y * blockDim.x + threadIdx.x];
    write_c(p, i, j, sum);
}

static gpu_status fold(cuda_device *d, const product<double> &p,
                       const double *partial, int64_t line, int slices)
{
    int height = 1;
    while (height < 8 && 4 * height < slices)
        height *= 2;
    dim3 block(FOLD_THREADS / height, height);
    unsigned blocks = (unsigned)ceil_div(p.m * line, block.x);
    fold_kernel<<<blocks, block, 0, d->stream>>>(p, partial, line, slices);
    LAUNCHED(d);
    return GPU_OK;
}

static bool is_wide(const double *data, int64_t near_stride,
                    int64_t other_stride)
{
    return near_stride == 1 && is_aligned(data) && other_stride % 2 == 0;
}

typedef CUresult encode_function(CUtensorMap *, CUtensorMapDataType, cuuint32_t,
                                 void *, const cuuint64_t *, const cuuint64_t *,
                                 const cuuint32_t *, const cuuint32_t *,
                                 CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill);

/* NULL where the driver has none. */
static encode_function *find_encode(void)
{
    static encode_function *found;
    cudaDriverEntryPointQueryResult result;
    if (found == NULL && (cudaGetDriverEntryPointByVersion(
                              "cuTensorMapEncodeTiled", (void **)&found, 12000,
                              cudaEnableDefault, &result) != cudaSuccess ||
                          result != cudaDriverEntryPointSuccess)) {
        (void)cudaGetLastError();
        found = NULL;
    }
    return found;
}

/* Boxes of 16 x height of lines of `near` contiguous elements, or of `panels`
 * of these side by side. False where there can be no such map. */
static bool make_map(CUtensorMap *out, const double *data, int64_t near,
                     int64_t lines, int64_t line_stride, int height, int panels)
{
    encode_function *encode = find_encode();
    if (encode == NULL || line_stride < near || line_stride >= 1ll << 36 ||
        near >= 1ll << 30 || lines >= 1ll << 30)
        return false;
    bool whole = panels > 1;
    const cuuint64_t size[] = {(cuuint64_t)(whole ? PANEL : near),
                               (cuuint64_t)lines, (cuuint64_t)near / PANEL};
    const cuuint64_t bytes[] = {(cuuint64_t)line_stride * sizeof(double),
                                PANEL * sizeof(double)};
    const cuuint32_t box[] = {PANEL, (cuuint32_t)height, (cuuint32_t)panels};
    const cuuint32_t ones[] = {1, 1, 1};
    return encode(out, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, whole ? 3 : 2,
                  (void *)data, size, bytes, box, ones,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* Hopper's copy engine takes what 16-byte copies can. */
template <class T, bool A_ALONG_K, bool B_ALONG_K>
static bool make_maps(const cuda_device *d, const job &j, maps *m)
{
    const product<double> &p = j.p;
    if (d->capability != 90 || !j.a_wide || !j.b_wide)
        return false;
    m->a_whole = !A_ALONG_K && p.m % PANEL == 0;
    m->b_whole = !B_ALONG_K && p.n % PANEL == 0;
    return (A_ALONG_K ? make_map(&m->a, p.a, p.k, p.m, p.a_row, T::ROWS, 1)
                      : make_map(&m->a, p.a, p.m, p.k, p.a_col, T::DEPTH,
                                 m->a_whole ? T::ROWS / PANEL : 1)) &&
           (B_ALONG_K ? make_map(&m->b, p.b, p.k, p.n, p.b_col, T::COLS, 1)
                      : make_map(&m->b, p.b, p.n, p.k, p.b_row, T::DEPTH,
                                 m->b_whole ? T::COLS / PANEL : 1));
}

template <class T> static unsigned blocks_for(const job &j, int64_t slices)
{
    return grid_for(ceil_div(j.p.m, T::ROWS) * ceil_div(j.p.n, T::COLS) *
                    slices);
}

template <class T, bool A_ALONG_K, bool B_ALONG_K>
static gpu_status launch(cuda_device *d, const job &j, int64_t slices)
{
    auto kernel = dmma_kernel<T, A_ALONG_K, B_ALONG_K>;
    CHECK(d, cudaFuncSetAttribute(kernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  T::BYTES));
    kernel<<<blocks_for<T>(j, slices), T::THREADS, T::BYTES, d->stream>>>(j);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T, bool A_ALONG_K, bool B_ALONG_K>
static gpu_status launch_fed(cuda_device *d, const job &j, const maps &m,
                             int64_t slices)
{
    const int bytes = T::BYTES + 16 * T::STAGES;
    auto kernel = dmma_fed_kernel<T, A_ALONG_K, B_ALONG_K>;
    CHECK(d, cudaFuncSetAttribute(
                 kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<blocks_for<T>(j, slices), T::THREADS, bytes, d->stream>>>(j, m);
    LAUNCHED(d);
    return GPU_OK;
}

/* P: the tiling for copies by all threads, F: for the copy engine. */
template <class P, class F, bool A_ALONG_K, bool B_ALONG_K>
static gpu_status launch_best(cuda_device *d, const job &j, int64_t slices)
{
    maps m;
    if (make_maps<F, A_ALONG_K, B_ALONG_K>(d, j, &m))
        return launch_fed<F, A_ALONG_K, B_ALONG_K>(d, j, m, slices);
    return launch<P, A_ALONG_K, B_ALONG_K>(d, j, slices);
}

static bool lies_along_k(int64_t k_stride, int64_t other_stride)
{
    return stride_size(k_stride) <= stride_size(other_stride);
}

/* b's columns and a's k are best contiguous: a product in which neither is so
 * is computed as b^T a^T = c^T, in which both are. */
static product<double> turned(const product<double> &p)
{
    if (lies_along_k(p.a_col, p.a_row) || !lies_along_k(p.b_row, p.b_col))
        return p;
    product<double> t = p;
    t.a = p.b, t.a_row = p.b_col, t.a_col = p.b_row;
    t.b = p.a, t.b_row = p.a_col, t.b_col = p.a_row;
    t.m = p.n, t.n = p.m;
    t.c_row = p.c_col, t.c_col = p.c_row;
    return t;
}

/* Copies go along the side whose neighbours are nearer. */
template <class P, class F>
static gpu_status launch_directions(cuda_device *d, job *j, int64_t slices)
{
    const product<double> &p = j->p;
    bool a_along_k = lies_along_k(p.a_col, p.a_row);
    bool b_along_k = a_along_k && stride_size(p.b_row) < stride_size(p.b_col);
    j->a_wide = a_along_k ? is_wide(p.a, p.a_col, p.a_row)
                          : is_wide(p.a, p.a_row, p.a_col);
    j->b_wide = b_along_k ? is_wide(p.b, p.b_row, p.b_col)
                          : is_wide(p.b, p.b_col, p.b_row);
    j->c_wide = is_wide(p.c, p.c_col, p.c_row);
    if (b_along_k)
        return launch_best<P, F, true, true>(d, *j, slices);
    return a_along_k ? launch_best<P, F, true, false>(d, *j, slices)
                     : launch_best<P, F, false, false>(d, *j, slices);
}

/* c in one launch, or slices of k into scratch memory and their sum. */
template <class T, class F>
static gpu_status run(cuda_device *d, const product<double> &p, int64_t slices)
{
    int64_t depth = ceil_div(ceil_div(p.k, slices), T::DEPTH) * T::DEPTH;
    job j = {.p = p, .slice_depth = depth};
    slices = ceil_div(p.k, depth);
    if (slices == 1)
        return launch_directions<T, F>(d, &j, 1);
    int64_t line = p.n + p.n % 2; /* keeps rows 16-byte aligned */
    void *partial;
    TRY(gpu_cuda_scratch(d, (size_t)(slices * p.m * line) * sizeof(double),
                         &partial));
    j.p.c = (double *)partial;
    j.p.c_row = line;
    j.p.c_col = 1;
    j.p.alpha = 1;
    j.p.beta = 0;
    j.slice_stride = p.m * line;
    TRY((launch_directions<T, F>(d, &j, slices)));
    return fold(d, p, j.p.c, line, (int)slices);
}

/* Rings of at most 99 KiB a multiprocessor, for GPUs that have no more. */
using tile_128x128 = tiling<128, 128, 64, 32, 16, 16, 3, 1>;
using tile_64x128 = tiling<64, 128, 64, 32, 16, 8, 3, 2>;
using tile_64x64 = tiling<64, 64, 32, 32, 16, 16, 4, 3>;
using tile_32x64 = tiling<32, 64, 16, 32, 16, 8, 5, 3>;

/* Fed by Hopper's copy engine, which has 227 KiB to fill. */
using fed_128x128 = tiling<128, 128, 64, 32, 16, 16, 6, 1>;
using fed_64x128 = tiling<64, 128, 64, 32, 16, 16, 4, 2>;
using fed_64x64 = tiling<64, 64, 32, 32, 16, 16, 4, 3>;
using fed_32x64 = tiling<32, 64, 16, 32, 16, 8, 6, 3>;

/* A tile, the share of the tensor cores' peak it reaches where they have
 * several blocks and where they have one, and its launch. */
typedef struct choice {
    int rows, cols;
    double share, share_alone;
    gpu_status (*run)(cuda_device *d, const product<double> &p, int64_t slices);
} choice;

static const choice choices[] = {
    {128, 128, 0.92, 0.92, run<tile_128x128, fed_128x128>},
    {64, 128, 0.90, 0.72, run<tile_64x128, fed_64x128>},
    {64, 64, 0.84, 0.68, run<tile_64x64, fed_64x64>},
    {32, 64, 0.70, 0.55, run<tile_32x64, fed_32x64>},
};

/* Cycles of a product, by 128 multiply-adds a cycle in the multiprocessor
 * that has most to do. Slices cost a second launch, and every partial result
 * is written and read, at 2 KiB a cycle. */
static double estimate(const cuda_device *d, const product<double> &p,
                       const choice *c, int64_t slices)
{
    const double start = 3000, second_launch = 5000, bytes_a_cycle = 2048;
    int64_t tiles = ceil_div(p.m, c->rows) * ceil_div(p.n, c->cols);
    int64_t most = ceil_div(tiles * slices, d->sms);
    double tile = (double)c->rows * c->cols * ceil_div(p.k, slices) / 128;
    double cycles =
        start + most * tile / (most > 1 ? c->share : c->share_alone);
    if (slices > 1)
        cycles += second_launch + 16.0 * p.m * p.n * slices / bytes_a_cycle;
    return cycles;
}

/* The cheapest tile and number of slices; those that fill the GPU one to four
 * times compete with the uncut product. */
static const choice *choose(const cuda_device *d, const product<double> &p,
                            int64_t *slices)
{
    const int64_t least_depth = 64;
    const choice *best = NULL;
    double least = 0;
    for (const choice &c : choices) {
        int64_t tiles = ceil_div(p.m, c.rows) * ceil_div(p.n, c.cols);
        for (int round = 0; round <= 4; round++) {
            int64_t s = round == 0 ? 1 : round * d->sms / tiles;
            s = larger(smaller(s, p.k / least_depth), 1);
            double cycles = estimate(d, p, &c, s);
            if (best == NULL || cycles < least) {
                best = &c;
                least = cycles;
                *slices = s;
            }
        }
    }
    return best;
}

static gpu_status dmma(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul("dmma", p, &g));
    product<double> typed = turned(typed_product<double>(&g));
    int64_t slices;
    const choice *c = choose(d, typed, &slices);
    return c->run(d, typed, slices);
}

const gpu_kernel gpu_cuda_matmul_dmma = {
    .operation = "matmul",
    .name = "dmma",
    .idea = "f64 on tensor cores",
    .needs = "sm_80",
    .precision = "f32",
    .capability = 80,
    .dtypes = 1u << GPU_F64,
    .bound = gpu_cuda_matmul_bound,
    .matmul = dmma,
    .dot = NULL,
};
