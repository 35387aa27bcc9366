/* How split16's sums become results on Hopper: scales are undone, results
 * that the planes do not make certain are noted, and c is written, either 16
 * rows at once from wgmma's registers or row by row from sums in memory. */
#ifndef GPU_CUDA_SPLIT16_RESULTS_H
#define GPU_CUDA_SPLIT16_RESULTS_H

#include "hopper.h"
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

/* THEN: by way of p's epilogue. */
template <bool THEN>
__device__ __forceinline__ auto result_of(const split_product &p)
{
    if constexpr (THEN)
        return result_then{p.c, p.m, p.n, p.c_row, p.c_col, p.then};
    else
        return result{p.c, p.m, p.n, p.c_row, p.c_col, 0};
}

/* Rows and columns of u that a warp will read go to the L2 cache, `rows` from
 * row on, a lane each: the marks and the first results take longer. */
template <bool THEN>
__device__ __forceinline__ void fetch_u(const split_product &p, int row,
                                        int rows, int col, int cols, int lane)
{
    if constexpr (THEN) {
        const epilogue &e = p.then;
        int64_t left = min((int64_t)cols, p.n - col) & ~3;
        if (!e.is_wide || lane >= rows || row + lane >= p.m || left <= 0)
            return;
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                         e.with + (row + lane) * e.row + col),
                     "r"((uint32_t)left * 4)
                     : "memory");
    }
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
 * takes longer than to move sums. ADDS: to what is there; nothing is noted. */
template <int COLUMNS, bool THEN, int ADDS = 0, class NOTE>
__device__ __forceinline__ void
write_rows(const split_product &p, float (&sum)[4 * COLUMNS], marks<COLUMNS> &m,
           int row, int col, uint32_t stage, int lane, NOTE note)
{
    const int unrolled = COLUMNS > 8 ? 1 : COLUMNS / 4;
    int i = row + lane / 4, j = col + lane % 4 * 2;
    uint64_t uncertain = ADDS ? 0 : find_uncertain(sum, m, p.unit);
    for (; uncertain; uncertain &= uncertain - 1) {
        int e = __ffsll((long long)uncertain) - 1;
        int down = i + (e & 2 ? 8 : 0), across = j + e / 4 * 8 + e % 2;
        if (down < p.m && across < p.n)
            note(down, across);
    }
    auto to = result_of<THEN>(p);
#pragma unroll unrolled
    for (int n = 0; n < COLUMNS; n += 4) {
        stage_sums(p, sum, m, unrolled > 1 ? n : 0, stage, lane);
        __syncwarp(); /* 32 columns are staged */
        if constexpr (ADDS)
            add_stage(to, stage, row, col + n * 8, lane);
        else
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
template <bool THEN, int MANY, int APART, class NOTE>
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
    auto to = result_of<THEN>(p);
    float *at = p.c + r.i * p.c_row + c.first * p.c_col;
    if (is_wide(to) && c.first + 4 <= p.n) {
        decltype(ask_four(to, 0, 0)) with[MANY];
#pragma unroll
        for (int n = 0; n < MANY; n++)
            with[n] = ask_four(to, r.i + n * APART, c.first);
#pragma unroll
        for (int n = 0; n < MANY; n++, at += APART * p.c_row)
            if (n * APART < r.rows)
                write_at(to, at,
                         make_float4(x[n][0], x[n][1], x[n][2], x[n][3]),
                         with[n]);
        return;
    }
    decltype(ask_one(to, 0, 0)) with[4 * MANY];
#pragma unroll
    for (int n = 0; n < 4 * MANY; n++)
        with[n] = ask_one(to, r.i + n / 4 * APART, c.first + n % 4);
#pragma unroll
    for (int n = 0; n < MANY; n++, at += APART * p.c_row)
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (n * APART < r.rows && c.first + e < p.n)
                write_at(to, at + e * p.c_col, x[n][e], with[4 * n + e]);
}

/* --- sums of a short tile ---------------------------------------------------
 * The end of one (split16_small.h): its two warpgroups' sums, and those of all
 * blocks of a team, are added in their order and written.
 *
 * A block's sums lie in its shared memory, row by row. In a team each row goes
 * on to the block that adds it, which has a row of each block's then. */

enum { MOST_TEAM = 8, SHARE_ROWS = 4, SHARE_APART = 16 };
constexpr int SMALL_PLANE_B = 64 * DEPTH * 2; /* bytes */
constexpr int SUMS_ROW = (64 + 8) * 4;        /* in 32 banks */
constexpr int SUMS_BYTES = 64 * SUMS_ROW;     /* of one warpgroup */
constexpr int PART_ROW = 64 * 4;              /* of a row from a team's block */

/* The shape of a tile, and of the ring it wants. APART: from one of a
 * warpgroup's steps to the next; OWN: bytes beside the ring. */
template <int ROWS_, bool THEN_> struct small_shape {
    static constexpr int ROWS = ROWS_;
    static constexpr bool THEN = THEN_; /* is there an epilogue? */
    static constexpr bool IS_TALL = ROWS == 128;
    static constexpr int APART = IS_TALL ? 1 : 2;
    static constexpr int PLANE_A = ROWS * DEPTH * 2; /* bytes */
    static constexpr int SLOT = 2 * (PLANE_A + SMALL_PLANE_B);
    static constexpr int SLOTS = IS_TALL ? 4 : 5;
    static constexpr int READERS = IS_TALL ? 4 : 1; /* warpgroups, of a slot */
    static constexpr int OWN =
        IS_TALL ? WARPS * STAGE : 2 * SUMS_BYTES + (64 + MOST_TEAM) * PART_ROW;
    static constexpr int SHARED =
        SLOTS * SLOT + barrier_bytes(SLOTS) + 16 + OWN + 1024;
};

template <bool THEN> using tall_tile = small_shape<128, THEN>;
template <bool THEN> using short_tile = small_shape<64, THEN>;

typedef struct small_plan {
    int steps;   /* of 64 along k */
    int down;    /* tiles */
    int cluster; /* blocks */
} small_plan;

typedef struct small_block {
    ring slots;
    uint32_t own, joined; /* addresses: sums, and the barrier of a team's */
    int rank;             /* in the cluster */
    int row, col;
    int first, last; /* steps of k */
} small_block;

/* Rows of a tile from this one on, up to the next rank's, are a rank's. */
__device__ __forceinline__ int first_row(int rank, int team)
{
    return 64 * rank / team;
}

/* Of this block's rows each block of the team sends one. */
__device__ __forceinline__ void expect_team(const small_block &b, int team)
{
    int rows = first_row(b.rank + 1, team) - first_row(b.rank, team);
    barrier_init(b.joined, 1);
    barrier_expect(b.joined, team * rows * PART_ROW);
}

__device__ __forceinline__ void bar_consumers()
{
    asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory");
}

/* What a thread is to write: four columns of some rows. */
typedef struct team_share {
    four_columns columns;
    some_rows<SHARE_ROWS, SHARE_APART> rows;
} team_share;

__device__ __forceinline__ team_share find_share(const split_product &p,
                                                 const small_plan &q,
                                                 const small_block &b)
{
    int row = first_row(b.rank, q.cluster) + (int)threadIdx.x / 16;
    return {find_columns(p, b.col + threadIdx.x % 16 * 4),
            find_rows<SHARE_ROWS, SHARE_APART>(
                p, b.row + row, b.row + first_row(b.rank + 1, q.cluster))};
}

/* A warp keeps its 16 rows of its warpgroup's sums. */
__device__ __forceinline__ void keep_sums(const small_block &b,
                                          const float (&sum)[32])
{
    int group = threadIdx.x / 128, warp = threadIdx.x % 128 / 32;
    int lane = threadIdx.x % 32;
    uint32_t at = b.own + group * SUMS_BYTES +
                  (warp * 16 + lane / 4) * SUMS_ROW + lane % 4 * 8;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        stage_pair(at + j * 32, sum[4 * j], sum[4 * j + 1]);
        stage_pair(at + j * 32 + 8 * SUMS_ROW, sum[4 * j + 2], sum[4 * j + 3]);
    }
}

/* Adds `count` parts that lie `apart`: four neighbours of rows 16 apart, as
 * far as there are `rows`, the first at `from`. */
template <int ROW>
__device__ __forceinline__ void add_parts(uint32_t from, int count, int apart,
                                          int rows, float4 (&sum)[SHARE_ROWS])
{
#pragma unroll
    for (int n = 0; n < SHARE_ROWS; n++)
        sum[n] = make_float4(0, 0, 0, 0);
#pragma unroll 2
    for (int s = 0; s < count; s++, from += apart) {
#pragma unroll
        for (int n = 0; n < SHARE_ROWS; n++) {
            if (n * SHARE_APART >= rows)
                continue;
            float4 x = load_four(from + n * SHARE_APART * ROW);
            sum[n] = make_float4(sum[n].x + x.x, sum[n].y + x.y, sum[n].z + x.z,
                                 sum[n].w + x.w);
        }
    }
}

/* A row's place is behind the same block's of the ranks before. */
__device__ __forceinline__ void send_rows(const small_block &b, int team,
                                          const float4 (&sum)[SHARE_ROWS])
{
    uint32_t parts = b.own + 2 * SUMS_BYTES + threadIdx.x % 16 * 16;
#pragma unroll
    for (int n = 0; n < SHARE_ROWS; n++) {
        int row = (int)threadIdx.x / 16 + n * SHARE_APART;
        int rank = ((row + 1) * team - 1) / 64; /* whose it is */
        int first = first_row(rank, team), end = first_row(rank + 1, team);
        int place = b.rank * (end - first) + row - first;
        send_to(address_at(parts + place * PART_ROW, rank),
                address_at(b.joined, rank), sum[n]);
    }
}

/* Adds and writes this block's rows. */
template <bool THEN, class NOTE>
__device__ __forceinline__ void
write_share(const split_product &p, const small_plan &q, const small_block &b,
            const team_share &share, NOTE note)
{
    int row = threadIdx.x / 16, at = threadIdx.x % 16 * 16, team = q.cluster;
    float4 sum[SHARE_ROWS];
    add_parts<SUMS_ROW>(b.own + row * SUMS_ROW + at, 2, SUMS_BYTES, 64, sum);
    if (team > 1) {
        int rows = first_row(b.rank + 1, team) - first_row(b.rank, team);
        send_rows(b, team, sum);
        barrier_wait(b.joined, 0); /* the team's rows are here */
        add_parts<PART_ROW>(b.own + 2 * SUMS_BYTES + row * PART_ROW + at, team,
                            rows * PART_ROW, rows - row, sum);
    }
    write_some<THEN>(p, sum, share.rows, share.columns, note);
}

#endif
