/* The row and the column of c beyond its last whole tiles, done by blocks of
 * split16_hopper.cu that have no tile left while others still multiply. Each
 * is a matrix times a vector, from the operands themselves in FP32.
 *
 * Blocks draw units of 32 of c's lines by ticket. Where the matrix lies along
 * k, each warp has four lines and its lanes share k; where it lies across,
 * each lane has a line and the warps share k. A warp copies aligned groups of
 * four elements into a ring of its own in shared memory, as they lie: lines
 * may begin anywhere. The vector is held beside the rings. Sums are of at most
 * 320 elements in f32, then in f64, in an order that is the same whichever
 * block draws a unit. Where there are two to four rows or columns, k is longer
 * than the vector's room, or an operand has gaps both ways, the vector kernel
 * does them.
 *
 * Limited by what few multiprocessors can read, about 40 GB/s each. Loads to
 * registers would bring half of that: they need room in what shared memory
 * leaves of the first-level cache. While it multiplies tiles, a multiprocessor
 * has no time for this: wgmma and the copy engine use all of shared memory's
 * cycles. */
#ifndef GPU_CUDA_SPLIT16_EDGES_H
#define GPU_CUDA_SPLIT16_EDGES_H

#include "copies.h"
#include "split16_tile.h"
#include "split_one_value.h"
#include "split_f64_product.h"

constexpr int EDGE_LINES = 32;    /* of c, in a unit */
constexpr int EDGE_DEPTH = 10240; /* the longest k */
constexpr int EDGE_STEP = 128;    /* of k, that a block multiplies at once */
constexpr int EDGE_SHARE = 16;    /* of it, a warp's, where lanes have lines */
constexpr int EDGE_STAGES = 8;
/* Groups of 32 lines, and one more as they may begin inside one; how often a
 * lane copies one of a warp's sixteen times as many. */
constexpr int EDGE_ACROSS = EDGE_LINES / 4 + 1, EDGE_COPIES = 5;
constexpr int EDGE_STAGE = EDGE_SHARE * EDGE_ACROSS * 16; /* bytes of a warp */
static_assert(EDGE_STAGE >= 4 * EDGE_STEP * 4);
/* Bytes: the rings, then the vector, what warps add up, and a ticket. */
constexpr int EDGE_VECTOR = EDGE_STAGES * REDO_WARPS * EDGE_STAGE + 16;
constexpr int EDGE_SUMS = EDGE_VECTOR + (EDGE_DEPTH + 2 * EDGE_STEP) * 4;
constexpr int EDGE_TICKET = EDGE_SUMS + REDO_WARPS * EDGE_LINES * 8;
constexpr int EDGE_BYTES = EDGE_TICKET + 16;

/* A matrix on the left, a vector on the right. */
typedef struct edge {
    product<float> p;
    int units;
    int is_along; /* does the matrix lie along k? */
} edge;

typedef struct edge_work {
    edge below, beside;
    unsigned *ticket; /* zero between launches */
} edge_work;

__device__ __forceinline__ float read_one(uint32_t at)
{
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at) : "memory");
    return x;
}

/* --- copies ------------------------------------------------------------- */

/* What a lane copies of each step: groups, from where on and to where in a
 * stage; first: what must be left for a group to be wanted. */
typedef struct edge_copies {
    const float *from[EDGE_COPIES];
    int first[EDGE_COPIES];
    uint32_t to[EDGE_COPIES];
    int64_t step; /* from one step to the next */
} edge_copies;

/* The first of a warp's four lines; they are four apart, as those begin alike
 * in their groups. */
__device__ __forceinline__ int64_t first_along(int64_t unit, int warp)
{
    return unit * EDGE_LINES + warp / 4 * 16 + warp % 4;
}

/* A group of each line. Steps begin with the first group of a line. */
__device__ __forceinline__ edge_copies copies_along(const product<float> &p,
                                                    int64_t line, int lane)
{
    edge_copies c = {};
    const float *from = p.a + line * p.a_row;
    from += 4 * lane - shift_of(from);
#pragma unroll
    for (int q = 0; q < 4; q++) {
        c.from[q] = from + 4 * q * p.a_row;
        c.first[q] = line + 4 * q < p.m ? 4 * lane : EDGE_DEPTH;
        c.to[q] = (q * 32 + lane) * 16;
    }
    c.step = EDGE_STEP;
    return c;
}

/* Nine groups of each of a warp's sixteen of k. */
__device__ __forceinline__ edge_copies copies_across(const product<float> &p,
                                                     int64_t line, int lane,
                                                     int warp)
{
    edge_copies c = {};
    int lines = (int)min((int64_t)EDGE_LINES, p.m - line);
#pragma unroll
    for (int i = 0; i < EDGE_COPIES; i++) {
        int e = i * 32 + lane, group = e % EDGE_ACROSS;
        int k = warp * EDGE_SHARE + e / EDGE_ACROSS;
        const float *row = p.a + line + k * p.a_col;
        int first = 4 * group - shift_of(row);
        c.from[i] = row + first;
        c.first[i] = first < lines ? k : EDGE_DEPTH;
        c.to[i] = e * 16;
        if (e >= EDGE_SHARE * EDGE_ACROSS)
            c.first[i] = EDGE_DEPTH;
    }
    c.step = EDGE_STEP * p.a_col;
    return c;
}

/* Starts a step's copies and goes on. What is not wanted becomes zeros. */
template <int COPIES>
__device__ __forceinline__ void start_step(edge_copies *c, uint32_t stage,
                                           int left)
{
#pragma unroll
    for (int i = 0; i < COPIES; i++) {
        if (c->first[i] < EDGE_DEPTH)
            copy_async<16>(stage + c->to[i], c->from[i],
                           c->first[i] < left ? 16 : 0);
        c->from[i] += c->step;
    }
    end_copies();
}

/* --- a unit ------------------------------------------------------------- */

/* Adds a stage to the sums of four lines. A lane reads what it copied itself;
 * elements before the lines, in the first step, and behind them (from `left`
 * on) are not theirs. y: the vector's group of the lane's, or the one before
 * where lines begin inside a group. */
__device__ __forceinline__ void add_along(float (&sum)[4], uint32_t stage,
                                          int shift, bool is_first, uint32_t y,
                                          int left, int lane)
{
    float4 v = join_groups(load_four(y), load_four(y + 16), -shift & 3, 4);
    int from = lane * 4 - (is_first ? shift : 0), end = left - lane * 4;
    bool is_whole = from >= 0 && end >= 4;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        float4 x = load_four(stage + (q * 32 + lane) * 16);
        if (!is_whole) {
            x.x = from >= 0 && end > 0 ? x.x : 0;
            x.y = from >= -1 && end > 1 ? x.y : 0;
            x.z = from >= -2 && end > 2 ? x.z : 0;
            x.w = from >= -3 && end > 3 ? x.w : 0;
        }
        sum[q] += x.x * v.x;
        sum[q] += x.y * v.y;
        sum[q] += x.z * v.z;
        sum[q] += x.w * v.w;
    }
}

/* Adds a stage to the sums of every fourth k of one line. */
__device__ __forceinline__ void add_across(float (&sum)[4], uint32_t stage,
                                           const int (&shift)[4], uint32_t y,
                                           int lane)
{
#pragma unroll
    for (int k = 0; k < EDGE_SHARE; k += 4) {
        float4 v = load_four(y + k * 4);
        float w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int q = 0; q < 4; q++) {
            int at = (k + q) * EDGE_ACROSS * 4 + shift[q] + lane;
            sum[q] += w[q] * read_one(stage + at * 4);
        }
    }
}

/* A lane's four sums over all of k. line: the warp's first. */
template <bool ALONG>
__device__ __forceinline__ void multiply_lines(const product<float> &p,
                                               int64_t line, float (&sum)[4],
                                               int thread, uint32_t shared)
{
    const int size = REDO_WARPS * EDGE_STAGE, copies = ALONG ? 4 : EDGE_COPIES;
    int lane = thread % 32, warp = thread / 32, shift[4];
    edge_copies c = ALONG ? copies_along(p, line, lane)
                          : copies_across(p, line, lane, warp);
#pragma unroll
    for (int q = 0; q < 4; q++)
        shift[q] =
            shift_of(ALONG ? p.a + line * p.a_row : p.a + line + q * p.a_col);
    uint32_t ring = shared + warp * EDGE_STAGE, stage = ring;
    uint32_t y = shared + EDGE_VECTOR + warp * EDGE_SHARE * 4;
    if (ALONG)
        y = shared + EDGE_VECTOR + lane * 16 - (shift[0] ? 16 : 0);
    int left = (int)p.k + (ALONG ? shift[0] : 0), ahead = left;
#pragma unroll 1
    for (int s = 0; s < EDGE_STAGES - 1; s++, ahead -= EDGE_STEP)
        start_step<copies>(&c, ring + s * size, ahead);
    uint32_t next = ring + (EDGE_STAGES - 1) * size;
    bool is_first = true;
#pragma unroll 1
    for (; left > 0; left -= EDGE_STEP, ahead -= EDGE_STEP) {
        wait_for_copies<EDGE_STAGES - 2>();
        __syncwarp(); /* the warp's stage is there, the one before is read */
        start_step<copies>(&c, next, ahead);
        if (ALONG)
            add_along(sum, stage, shift[0], is_first, y, left, lane);
        else
            add_across(sum, stage, shift, y, lane);
        is_first = false;
        y += EDGE_STEP * 4;
        next = stage;
        stage = stage == ring + (EDGE_STAGES - 1) * size ? ring : stage + size;
    }
    wait_for_all_copies();
}

/* Holds the vector, with zeros before it and behind, as far as steps reach. */
__device__ __forceinline__ void hold_vector(const product<float> &p, int thread,
                                            float *to)
{
    int end = (int)p.k / EDGE_STEP * EDGE_STEP + 2 * EDGE_STEP;
#pragma unroll 8
    for (int k = thread - 4; k < end; k += REDO_THREADS)
        to[k] = k >= 0 && k < p.k ? p.b[k * p.b_row] : 0;
    redo_sync<1>(); /* the vector is there */
}

__device__ __forceinline__ void write_edge(const product<float> &p,
                                           int64_t line, double sum)
{
    if (line < p.m)
        p.c[line * p.c_row] = (float)((double)p.alpha * sum);
}

__device__ __forceinline__ void unit_along(const product<float> &p, int unit,
                                           int thread, uint32_t shared)
{
    float sum[4] = {};
    int64_t line = first_along(unit, thread / 32);
    multiply_lines<true>(p, line, sum, thread, shared);
#pragma unroll
    for (int q = 0; q < 4; q++) {
        double all = (double)sum[q];
        for (int apart = 16; apart > 0; apart /= 2)
            all += __shfl_xor_sync(~0u, all, apart);
        if (thread % 32 == q)
            write_edge(p, line + 4 * q, all);
    }
}

__device__ __forceinline__ void unit_across(const product<float> &p, int unit,
                                            int thread, uint32_t shared,
                                            double *sums)
{
    float sum[4] = {};
    int64_t line = (int64_t)unit * EDGE_LINES;
    multiply_lines<false>(p, line, sum, thread, shared);
    sums[thread] =
        (double)sum[0] + (double)sum[1] + ((double)sum[2] + (double)sum[3]);
    redo_sync<1>(); /* all warps' sums are there */
    if (thread >= EDGE_LINES)
        return;
    double all = 0;
#pragma unroll
    for (int w = 0; w < REDO_WARPS; w++)
        all += sums[w * EDGE_LINES + thread];
    write_edge(p, line + thread, all);
}

/* By 256 threads of each block that has no tile left. Not inlined: hardly any
 * has time for it. shared: EDGE_BYTES that nothing else uses any longer. */
static __device__ __noinline__ void multiply_edges(const edge_work &work,
                                                   int thread, char *shared)
{
    unsigned *drawn = (unsigned *)(shared + EDGE_TICKET), next = 0;
    const edge *held = NULL;
    if (thread == 0)
        next = atomicAdd(work.ticket, 1);
    for (;;) {
        redo_sync<1>(); /* the unit before is done, its number read */
        if (thread == 0)
            *drawn = next;
        redo_sync<1>(); /* the next one's is there */
        int unit = (int)*drawn;
        const edge *e = unit < work.below.units ? &work.below : &work.beside;
        if (e == &work.beside)
            unit -= work.below.units;
        if (unit >= e->units)
            return;
        if (thread == 0)
            next = atomicAdd(work.ticket, 1);
        if (e != held)
            hold_vector(e->p, thread, (float *)(shared + EDGE_VECTOR));
        held = e;
        if (e->is_along)
            unit_along(e->p, unit, thread, shared_address(shared));
        else
            unit_across(e->p, unit, thread, shared_address(shared),
                        (double *)(shared + EDGE_SUMS));
    }
}

/* --- the host's side ---------------------------------------------------- */

/* Has the vector, if there is one, few enough elements, and the matrix a
 * nearer dimension without gaps? */
static int can_do_edge(const product<float> &p)
{
    return p.n == 0 ||
           (p.n == 1 && p.k <= EDGE_DEPTH && (p.a_row == 1 || p.a_col == 1));
}

static edge plan_edge(const product<float> &p)
{
    edge e = {p};
    e.units = p.n > 0 ? (int)ceil_div(p.m, EDGE_LINES) : 0;
    e.is_along = p.a_col == 1;
    return e;
}

/* The row becomes a column: c^T = b^T a^T. Nothing to do where there is none,
 * or *can is 0. */
static edge_work plan_edges(const split_edges *g, unsigned *ticket, int *can)
{
    product<float> x = typed_product<float>(&g->below);
    product<float> below = {x.b,     x.a,     x.c,     x.n,     x.m,
                            x.k,     x.b_col, x.b_row, x.a_col, x.a_row,
                            x.c_col, x.c_row, x.alpha, 0};
    product<float> beside = typed_product<float>(&g->beside);
    edge_work w = {};
    *can = can_do_edge(below) && can_do_edge(beside);
    if (!*can)
        return w;
    w.below = plan_edge(below);
    w.beside = plan_edge(beside);
    w.ticket = ticket;
    return w;
}

#endif
