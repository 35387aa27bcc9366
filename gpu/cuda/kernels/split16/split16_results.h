/* How split16's sums become results on Hopper: scales are undone, results
 * that the planes do not make certain are noted, and c is written, either 16
 * rows at once from wgmma's registers or row by row from sums in memory. */
#ifndef GPU_CUDA_SPLIT16_RESULTS_H
#define GPU_CUDA_SPLIT16_RESULTS_H

#include "split16_tile.h"

/* The factors that undo a scale, both exact. */
typedef struct undo {
    float first, second;
} undo;

__device__ __forceinline__ undo undo_scale(unsigned mark)
{
    int exponent = mark_exponent(mark);
    return {half_power(-exponent), rest_power(-exponent)};
}

__device__ __forceinline__ float undone(float x, undo row, undo col)
{
    return x * row.first * col.first * row.second * col.second;
}

__device__ __forceinline__ result result_of(const split_product &p)
{
    return {p.c, p.m, p.n, p.c_row, p.c_col, 0};
}

/* The mark of a row, or of the last one. Volatile: not before the kernel that
 * wrote it is waited for. */
__device__ __forceinline__ unsigned load_mark(const split_planes &of, int64_t i)
{
    unsigned mark;
    asm volatile("ld.global.nc.u32 %0, [%1];"
                 : "=r"(mark)
                 : "l"(of.marks + min(i, of.span - 1)));
    return mark;
}

/* --- from registers ----------------------------------------------------- */

/* A thread's marks for COLUMNS pairs, 8 columns apart, and for two rows. */
template <int COLUMNS> struct marks {
    uint2 col[COLUMNS];
    unsigned above, below;
};

/* i and j: the thread's first row and column. All are asked for before any is
 * waited for. */
template <int COLUMNS>
__device__ __forceinline__ marks<COLUMNS> load_marks(const split_product &p,
                                                     int i, int j)
{
    marks<COLUMNS> m;
    int last = (int)(p.n - 1) & ~1;
#pragma unroll
    for (int n = 0; n < COLUMNS; n++)
        asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];"
                     : "=r"(m.col[n].x), "=r"(m.col[n].y)
                     : "l"(p.b.marks + min(j + 8 * n, last)));
    m.above = load_mark(p.a, i);
    m.below = load_mark(p.a, i + 8);
    return m;
}

/* Sum 4 n + e of a thread lies in column 8 n + e % 2, row 8 (e / 2); it is
 * uncertain when it is smaller than this. */
template <int COLUMNS>
__device__ __forceinline__ float least_sum(const marks<COLUMNS> &m, float unit,
                                           int n, int e)
{
    float row = mark_losses(e < 2 ? m.above : m.below) * unit;
    return row + mark_losses(e % 2 ? m.col[n].y : m.col[n].x) * unit;
}

/* Which of a thread's sums are uncertain: bits. There are hardly any: whether
 * there is one is asked of 16 sums at once. */
template <int COLUMNS>
__device__ __forceinline__ uint64_t find_uncertain(
    const float (&sum)[4 * COLUMNS], const marks<COLUMNS> &m, float unit)
{
    uint64_t found = 0;
#pragma unroll
    for (int from = 0; from < 4 * COLUMNS; from += 16) {
        bool any = false;
#pragma unroll
        for (int n = from; n < from + 16; n++)
            any |= fabsf(sum[n]) < least_sum(m, unit, n / 4, n % 4);
        if (!any)
            continue;
        float again = unit;
        asm("" : "+f"(again)); /* no register holds what this may need */
#pragma unroll
        for (int n = from; n < from + 16; n++)
            if (fabsf(sum[n]) < least_sum(m, again, n / 4, n % 4))
                found |= 1ull << n;
    }
    return found;
}

/* Stages 16 rows of 32 columns, scaled back: the thread's sums from 4 n on. */
template <int COLUMNS>
__device__ __forceinline__ void
stage_sums(const split_product &p, const float (&sum)[4 * COLUMNS],
           const marks<COLUMNS> &m, int n, uint32_t stage, int lane)
{
    undo above = undo_scale(m.above), below = undo_scale(m.below);
    uint32_t mine = stage + lane / 4 * STAGE_ROW + lane % 4 * 8;
#pragma unroll
    for (int i = n; i < n + 4; i++, mine += 32) {
        undo left = undo_scale(m.col[i].x), right = undo_scale(m.col[i].y);
        stage_pair(mine, p.alpha * undone(sum[4 * i], above, left),
                   p.alpha * undone(sum[4 * i + 1], above, right));
        stage_pair(mine + 8 * STAGE_ROW,
                   p.alpha * undone(sum[4 * i + 2], below, left),
                   p.alpha * undone(sum[4 * i + 3], below, right));
    }
}

/* The first BY elements go, the others move to their places. */
template <int BY, class T, int COUNT>
__device__ __forceinline__ void move_up(T (&x)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT - BY; i++)
        x[i] = x[i + BY];
}

/* A warp writes 16 rows of 8 COLUMNS columns from row and col on; note(i, j) is
 * called for each result that is uncertain. Uses sum and m up. The loop is not
 * unrolled where it is long: it runs once a tile, in large products after the
 * operands have driven its code out of the L2 cache, and to fetch much of that
 * takes longer than to move sums. */
template <int COLUMNS, class NOTE>
__device__ __forceinline__ void
write_rows(const split_product &p, float (&sum)[4 * COLUMNS], marks<COLUMNS> &m,
           int row, int col, uint32_t stage, int lane, NOTE note)
{
    const int unrolled = COLUMNS > 8 ? 1 : COLUMNS / 4;
    int i = row + lane / 4, j = col + lane % 4 * 2;
    uint64_t uncertain = find_uncertain(sum, m, p.unit);
    for (; uncertain; uncertain &= uncertain - 1) {
        int e = __ffsll((long long)uncertain) - 1;
        int down = i + (e & 2 ? 8 : 0), across = j + e / 4 * 8 + e % 2;
        if (down < p.m && across < p.n)
            note(down, across);
    }
    result to = result_of(p);
#pragma unroll unrolled
    for (int n = 0; n < COLUMNS; n += 4) {
        stage_sums(p, sum, m, unrolled > 1 ? n : 0, stage, lane);
        __syncwarp(); /* 32 columns are staged */
        write_stage(to, stage, row, col + n * 8, lane);
        __syncwarp(); /* the stage is free */
        if (unrolled == 1) {
            move_up<16>(sum);
            move_up<4>(m.col);
        }
    }
}

/* --- from memory, four neighbours at once ------------------------------- */

/* What a lane knows of its four columns of a tile. */
typedef struct four_columns {
    int first;
    float least[4]; /* sums below are uncertain, for the column's part */
    undo scale[4];
} four_columns;

__device__ __forceinline__ four_columns find_columns(const split_product &p,
                                                     int col)
{
    four_columns c;
    unsigned mark[4];
    c.first = col;
#pragma unroll
    for (int e = 0; e < 4; e++)
        mark[e] = load_mark(p.b, col + e);
#pragma unroll
    for (int e = 0; e < 4; e++) {
        c.least[e] = mark_losses(mark[e]) * p.unit;
        c.scale[e] = undo_scale(mark[e]);
    }
    return c;
}

/* And of MANY rows, APART from each other from row i on; those less than
 * `rows` further on are its own. */
template <int MANY, int APART> struct some_rows {
    int i, rows;
    unsigned mark[MANY];
};

/* end: the row behind the last one. */
template <int MANY, int APART>
__device__ __forceinline__ some_rows<MANY, APART>
find_rows(const split_product &p, int i, int end)
{
    some_rows<MANY, APART> r;
    r.i = i;
    r.rows = min(end, (int)p.m) - i;
#pragma unroll
    for (int n = 0; n < MANY; n++)
        r.mark[n] = load_mark(p.a, i + n * APART);
    return r;
}

__device__ __forceinline__ float part_of(float4 x, int e)
{
    return e == 0 ? x.x : e == 1 ? x.y : e == 2 ? x.z : x.w;
}

/* Calls note(i, j) for each sum that is uncertain. */
template <int MANY, int APART, class NOTE>
__device__ __forceinline__ void
note_some(const split_product &p, const float4 (&sum)[MANY],
          const some_rows<MANY, APART> &r, const four_columns &c, NOTE note)
{
    unsigned found = 0;
    bool any = false;
    float unit = p.unit;
    auto is_uncertain = [&](int n, int e) {
        float least = mark_losses(r.mark[n]) * unit + c.least[e];
        return fabsf(part_of(sum[n], e)) < least;
    };
#pragma unroll
    for (int n = 0; n < 4 * MANY; n++)
        any |= is_uncertain(n / 4, n % 4);
    if (!any)
        return;
    asm("" : "+f"(unit)); /* as in find_uncertain */
#pragma unroll
    for (int n = 0; n < 4 * MANY; n++)
        found |= is_uncertain(n / 4, n % 4) ? 1u << n : 0;
    for (; found; found &= found - 1) {
        int n = __ffs((int)found) - 1, down = n / 4 * APART;
        if (down < r.rows && c.first + n % 4 < p.n)
            note(r.i + down, c.first + n % 4);
    }
}

/* Sums are scaled back and written. */
template <int MANY, int APART, class NOTE>
__device__ __forceinline__ void
write_some(const split_product &p, const float4 (&sum)[MANY],
           const some_rows<MANY, APART> &r, const four_columns &c, NOTE note)
{
    float x[MANY][4];
    note_some(p, sum, r, c, note);
#pragma unroll
    for (int n = 0; n < 4 * MANY; n++)
        x[n / 4][n % 4] =
            p.alpha * undone(part_of(sum[n / 4], n % 4),
                             undo_scale(r.mark[n / 4]), c.scale[n % 4]);
    result to = result_of(p);
    float *at = p.c + r.i * p.c_row + c.first * p.c_col;
    if (is_wide(to) && c.first + 4 <= p.n) {
#pragma unroll
        for (int n = 0; n < MANY; n++, at += APART * p.c_row)
            if (n * APART < r.rows)
                write_at(to, at,
                         make_float4(x[n][0], x[n][1], x[n][2], x[n][3]));
        return;
    }
#pragma unroll
    for (int n = 0; n < MANY; n++, at += APART * p.c_row)
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (n * APART < r.rows && c.first + e < p.n)
                write_at(to, at + e * p.c_col, x[n][e]);
}

#endif
