/* The end of a short tile of split16_small.h: its two warpgroups' sums, and
 * those of all blocks of a team, are added in their order and written.
 *
 * A block's sums lie in its shared memory, row by row. In a team each row goes
 * on to the block that adds it, which has a row of each block's then. */
#ifndef GPU_CUDA_SPLIT16_TEAM_H
#define GPU_CUDA_SPLIT16_TEAM_H

#include "ring.h"
#include "split16_results.h"

enum { MOST_TEAM = 8, SHARE_ROWS = 4, SHARE_APART = 16 };
constexpr int SMALL_PLANE_B = 64 * DEPTH * 2; /* bytes */
constexpr int SUMS_ROW = (64 + 8) * 4;        /* in 32 banks */
constexpr int SUMS_BYTES = 64 * SUMS_ROW;     /* of one warpgroup */
constexpr int PART_ROW = 64 * 4;              /* of a row from a team's block */

/* The shape of a tile, and of the ring it wants. APART: from one of a
 * warpgroup's steps to the next; OWN: bytes beside the ring. */
template <int ROWS_> struct small_shape {
    static constexpr int ROWS = ROWS_;
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

typedef small_shape<128> tall_tile;
typedef small_shape<64> short_tile;

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
template <class NOTE>
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
    write_some(p, sum, share.rows, share.columns, note);
}

#endif
