/* What becomes of the sums of narrow_hopper.cu: slices of k are added in their
 * order, through a cluster's shared memory or through global memory, and a
 * tile of results is written. */
#ifndef GPU_CUDA_NARROW_SUMS_H
#define GPU_CUDA_NARROW_SUMS_H

#include "narrow_hopper.h"

/* --- slices of k -------------------------------------------------------- */

/* Where the 16 floats of four that a lane has of 16 rows of sums lie, for one
 * slice: 512 bytes from one to the next. PER: such rows a block adds. */
template <int PER>
__device__ __forceinline__ uint32_t exchange_at(const block &b, int slice,
                                                int rows, int lane)
{
    uint32_t first = b.slots.first + (PARTS - EXCHANGE_PARTS) * PLANE;
    return first + ((slice * PER + rows) * 16 * 32 + lane) * 16;
}

/* Sends a warp's sums to the block of the cluster that adds its rows. */
template <class G>
__device__ __forceinline__ void
send_sums(const block &b, const float (&sum)[64], int warp, int lane)
{
    const int per = WARPS / G::TEAM;
    uint32_t to = exchange_at<per>(b, b.slice, warp % per, lane), there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"(to), "r"(warp / per));
#pragma unroll
    for (int i = 0; i < 16; i++)
        asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(
                         there + i * 512),
                     "f"(sum[4 * i]), "f"(sum[4 * i + 1]), "f"(sum[4 * i + 2]),
                     "f"(sum[4 * i + 3])
                     : "memory");
}

__device__ __forceinline__ float4 add(float4 x, float4 y)
{
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

/* --- results ------------------------------------------------------------ */

__device__ __forceinline__ result result_of(const narrow_product &p)
{
    return {p.c, p.m, p.n, p.c_row, p.c_col, p.beta};
}

/* Writes one half of this warpgroup's 64 rows. */
__device__ __forceinline__ void write_half(const narrow_product &p,
                                           const float (&sum)[64], int row,
                                           int col, uint32_t stage, int lane)
{
    result to = result_of(p);
    uint32_t mine = stage + lane / 4 * STAGE_ROW + lane % 4 * 8;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        uint32_t at = mine + j % 4 * 32;
        stage_pair(at, p.alpha * sum[4 * j], p.alpha * sum[4 * j + 1]);
        stage_pair(at + 8 * STAGE_ROW, p.alpha * sum[4 * j + 2],
                   p.alpha * sum[4 * j + 3]);
        if (j % 4 == 3) {
            __syncwarp(); /* 32 columns are staged */
            write_stage(to, stage, row, col + (j - 3) * 8, lane);
            __syncwarp(); /* the stage is free */
        }
    }
}

/* Columns j and j + 1 of row i. */
__device__ __forceinline__ void write_two(const narrow_product &p, int i, int j,
                                          float x, float y)
{
    result to = result_of(p);
    if (i < p.m && j + 2 <= p.n && is_wide(to) && p.beta == 0) {
        *(float2 *)(p.c + i * p.c_row + j) =
            make_float2(p.alpha * x, p.alpha * y);
        return;
    }
    if (i < p.m && j < p.n)
        write_one(to, i, j, p.alpha * x);
    if (i < p.m && j + 1 < p.n)
        write_one(to, i, j + 1, p.alpha * y);
}

/* Adds the slices of this block's share of the tile's rows. A warp has the
 * part of 16 rows that its place among the TEAM warps of these rows gives. */
template <class G>
__device__ __forceinline__ void join_team(const narrow_product &p,
                                          const block &b, int row, int col,
                                          int warp, int lane)
{
    const int per = WARPS / G::TEAM, many = 16 / G::TEAM;
    int rows = warp / G::TEAM, first = warp % G::TEAM * many;
    int i = row + (b.slice * per + rows) * 16 + lane / 4;
#pragma unroll
    for (int n = 0; n < many; n++) {
        float4 x = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int s = 0; s < G::TEAM; s++)
            x = add(x, load_four(exchange_at<per>(b, s, rows, lane) +
                                 (first + n) * 512));
        int j = col + (first + n) * 8 + lane % 4 * 2;
        write_two(p, i, j, x.x, x.y);
        write_two(p, i + 8, j, x.z, x.w);
    }
}

/* Four columns of row i from col on. */
__device__ __forceinline__ void write_row(const narrow_product &p, float4 sum,
                                          int i, int col)
{
    result to = result_of(p);
    float x[4] = {p.alpha * sum.x, p.alpha * sum.y, p.alpha * sum.z,
                  p.alpha * sum.w};
    if (is_wide(to) && col + 4 <= p.n) {
        write_four(to, i, col, make_float4(x[0], x[1], x[2], x[3]));
        return;
    }
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (col + e < p.n)
            write_one(to, i, col + e, x[e]);
}

/* Adds the slices of this block's share of the tile's rows, four at once a
 * warp: their loads must not wait for each other. */
__device__ __forceinline__ void join_slices(const narrow_product &p,
                                            const plan &q, int tile, int slice,
                                            int row, int col, int thread)
{
    const int many = 4;
    int at = thread % 32 * 4;
    const float *partial =
        p.partial + (int64_t)tile * q.slices * SIDE * SIDE + at;
    int first = slice * SIDE / q.slices, end = (slice + 1) * SIDE / q.slices;
    for (int r = first + thread / 32; r < end; r += many * WARPS) {
        float4 sum[many];
        add_slices(partial + r * SIDE, q.slices, min(end - r, many * WARPS),
                   sum);
#pragma unroll
        for (int n = 0; n < many; n++)
            if (r + n * WARPS < end && row + r + n * WARPS < p.m)
                write_row(p, sum[n], row + r + n * WARPS, col + at);
    }
}

#endif
