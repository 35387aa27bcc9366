/* What split16's kernels for Hopper share: the products of one chunk, and how
 * a tile of 128 x 128 results leaves the registers of two warpgroups.
 *
 * A thread's 64 results of 64 x 128: element 4 j + e of thread t lies in row
 * 16 (t / 32) + t % 32 / 4 + 8 (e / 2), column 8 j + 2 (t % 4) + e % 2. */
#ifndef GPU_CUDA_SPLIT16_TILE_H
#define GPU_CUDA_SPLIT16_TILE_H

#include "epilogue.h"
#include "hopper.h"
#include "split16.h"

constexpr int SIDE = 128, DEPTH = 64;     /* of a tile, of a step along k */
constexpr int PLANE = SIDE * DEPTH * 2;   /* bytes: one operand's, one plane */
constexpr int CONSUMERS = 256, WARPS = 8; /* two warpgroups */
/* A warp stages 16 x 32 results, rows 40 floats apart. */
constexpr int STAGE_ROW = 160, STAGE = 16 * STAGE_ROW; /* bytes */

/* The first row and column of tile t of a kernel's plan for block b. G::PAIR
 * blocks lie one above the other, each G::HALVES times SIDE wide. */
template <class G, class PLAN, class BLOCK>
__device__ __forceinline__ void tile_corner(const PLAN &p, const BLOCK &b,
                                            int t, int *row, int *col)
{
    grouped_tile(t, p.down, p.across, row, col);
    *row = (*row * G::PAIR + (int)b.rank) * SIDE;
    *col *= SIDE * G::HALVES;
}

/* Where results go: c = x + beta c, x being scaled already. */
typedef struct result {
    float *c;
    int64_t m, n, c_row, c_col;
    float beta;
} result;

/* Where they go by way of an epilogue. */
typedef struct result_then {
    float *c;
    int64_t m, n, c_row, c_col;
    const epilogue &then;
} result_then;

#ifdef WGMMA
/* One chunk: the products of steps FROM .. TO - 1 of 16, small ones first. A
 * and B say how the operands lie in shared memory, LOW_A and LOW_B how many
 * bytes the lo planes are behind the hi ones. */
template <int PRODUCTS, int A, int B, int FROM, int TO, int LOW_A = PLANE,
          int LOW_B = LOW_A, int COUNT>
__device__ __forceinline__ void multiply_chunk(float (&chunk)[COUNT],
                                               uint32_t a, uint32_t b)
{
    const int low_a = LOW_A / 16, low_b = LOW_B / 16; /* as descriptors count */
    const int along_a = A == ALONG_K ? 2 : 128,
              along_b = B == ALONG_K ? 2 : 128;
    if (PRODUCTS == 4) {
#pragma unroll
        for (int k = FROM; k < TO; k++)
            wgmma_f16<A, B>(chunk, a + low_a + along_a * k,
                            b + low_b + along_b * k, k > FROM);
    }
    if (PRODUCTS >= 3) {
#pragma unroll
        for (int k = FROM; k < TO; k++)
            wgmma_f16<A, B>(chunk, a + low_a + along_a * k, b + along_b * k,
                            PRODUCTS == 4 || k > FROM);
#pragma unroll
        for (int k = FROM; k < TO; k++)
            wgmma_f16<A, B>(chunk, a + along_a * k, b + low_b + along_b * k, 1);
    }
#pragma unroll
    for (int k = FROM; k < TO; k++)
        wgmma_f16<A, B>(chunk, a + along_a * k, b + along_b * k,
                        PRODUCTS > 1 || k > FROM);
}

/* A chunk joins the sums, rounded to nearest. */
template <int COUNT>
__device__ __forceinline__ void add_chunk(float (&sum)[COUNT],
                                          const float (&chunk)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        sum[i] += chunk[i];
}
#endif

/* Does c take 16-byte writes? */
template <class R> __device__ __forceinline__ bool is_wide(const R &r)
{
    return r.c_col == 1 && r.c_row % 4 == 0 && (uintptr_t)r.c % 16 == 0;
}

/* What is asked for ahead of writing element (i, j), or four from there on;
 * beyond c's last row and column, what is so for those. */
typedef struct nothing {
} nothing;

__device__ __forceinline__ nothing ask_one(const result &, int64_t, int64_t)
{
    return {};
}

__device__ __forceinline__ nothing ask_four(const result &, int64_t, int64_t)
{
    return {};
}

__device__ __forceinline__ float ask_one(const result_then &r, int64_t i,
                                         int64_t j)
{
    return read_u(r.then, min(i, r.m - 1), min(j, r.n - 1));
}

__device__ __forceinline__ float4 ask_four(const result_then &r, int64_t i,
                                           int64_t j)
{
    return read_four_u(r.then, min(i, r.m - 1), j);
}

__device__ __forceinline__ void store_four(float *c, float4 x)
{
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(c), "f"(x.x),
                 "f"(x.y), "f"(x.z), "f"(x.w)
                 : "memory");
}

__device__ __forceinline__ void write_at(const result &r, float *c, float x,
                                         nothing)
{
    *c = r.beta == 0 ? x : x + r.beta * *c;
}

__device__ __forceinline__ void write_at(const result &r, float *c, float4 x,
                                         nothing)
{
    if (r.beta != 0) {
        float4 old = *(float4 *)c;
        x = make_float4(x.x + r.beta * old.x, x.y + r.beta * old.y,
                        x.z + r.beta * old.z, x.w + r.beta * old.w);
    }
    store_four(c, x);
}

__device__ __forceinline__ void write_at(const result_then &r, float *c,
                                         float x, float u)
{
    *c = finish_result(r.then, x, u);
}

__device__ __forceinline__ void write_at(const result_then &r, float *c,
                                         float4 x, float4 u)
{
    store_four(c, finish_four(r.then, x, u));
}

template <class R>
__device__ __forceinline__ void write_one(const R &r, int64_t i, int64_t j,
                                          float x)
{
    write_at(r, r.c + i * r.c_row + j * r.c_col, x, ask_one(r, i, j));
}

template <class R>
__device__ __forceinline__ void write_four(const R &r, int64_t i, int64_t j,
                                           float4 x)
{
    write_at(r, r.c + i * r.c_row + j, x, ask_four(r, i, j));
}

__device__ __forceinline__ float4 load_four(uint32_t from)
{
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(from)
                 : "memory");
    return x;
}

__device__ __forceinline__ void stage_pair(uint32_t at, float x, float y)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(x), "f"(y)
                 : "memory");
}

/* Old results of a tile on their way to the L2 cache, where add_stage adds to
 * them. */
template <int WIDTH>
__device__ __forceinline__ void prefetch_results(const result &to, int row,
                                                 int col, int thread)
{
    const int lines = WIDTH / 32; /* of 128 bytes */
    for (int i = thread; i < SIDE * lines; i += CONSUMERS) {
        int64_t r = row + i / lines, j = col + i % lines * 32;
        if (r < to.m && j < to.n)
            asm volatile(
                "prefetch.global.L2 [%0];" ::"l"(to.c + r * to.c_row + j));
    }
}

/* c += x without waiting for c. Each element gets one addition, so that
 * results repeat bit for bit. */
__device__ __forceinline__ void add_at(float *c, float4 x)
{
    asm volatile(
        "red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(c),
        "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w)
        : "memory");
}

/* A warp writes the 16 x 32 results it has staged, whole lines at a time. */
__device__ __forceinline__ void write_stage(const result &to, uint32_t stage,
                                            int row, int col, int lane)
{
    int64_t rows = to.m - row;
    if (is_wide(to) && col + 32 <= to.n) {
        int r = lane / 8;
        float *c = to.c + (row + r) * to.c_row + col + lane % 8 * 4;
        uint32_t from = stage + r * STAGE_ROW + lane % 8 * 16;
#pragma unroll
        for (int n = 0; n < 16; n += 4, c += 4 * to.c_row)
            if (r + n < rows)
                write_at(to, c, load_four(from + n * STAGE_ROW), {});
        return;
    }
    float *c = to.c + row * to.c_row + (col + lane) * to.c_col;
#pragma unroll
    for (int r = 0; r < 16; r++, c += to.c_row) {
        float x;
        asm volatile("ld.shared.f32 %0, [%1];"
                     : "=f"(x)
                     : "r"(stage + r * STAGE_ROW + lane * 4)
                     : "memory");
        if (r < rows && col + lane < to.n)
            write_at(to, c, x, {});
    }
}

/* The same by way of an epilogue, a few rows at a time: asking for more at
 * once, or loops without an end, would take registers of sums. */
__device__ __forceinline__ void
write_stage(const result_then &to, uint32_t stage, int row, int col, int lane)
{
    int64_t rows = to.m - row;
    if (is_wide(to) && col + 32 <= to.n) {
        int r = lane / 8;
        float *c = to.c + (row + r) * to.c_row + col + lane % 8 * 4;
        uint32_t from = stage + r * STAGE_ROW + lane % 8 * 16;
#pragma unroll 1
        for (int n = 0; n < 16; n += 8, c += 8 * to.c_row) {
            float4 first = ask_four(to, row + r + n, col + lane % 8 * 4);
            float4 second = ask_four(to, row + r + n + 4, col + lane % 8 * 4);
            if (r + n < rows)
                write_at(to, c, load_four(from + n * STAGE_ROW), first);
            if (r + n + 4 < rows)
                write_at(to, c + 4 * to.c_row,
                         load_four(from + (n + 4) * STAGE_ROW), second);
        }
        return;
    }
    float *c = to.c + row * to.c_row + (col + lane) * to.c_col;
#pragma unroll 1
    for (int n = 0; n < 16; n += 4) {
        float with[4];
#pragma unroll
        for (int r = 0; r < 4; r++)
            with[r] = ask_one(to, row + n + r, col + lane);
#pragma unroll
        for (int r = 0; r < 4; r++, c += to.c_row) {
            float x;
            asm volatile("ld.shared.f32 %0, [%1];"
                         : "=f"(x)
                         : "r"(stage + (n + r) * STAGE_ROW + lane * 4)
                         : "memory");
            if (n + r < rows && col + lane < to.n)
                write_at(to, c, x, with[r]);
        }
    }
}

/* The same, added to what is there: of c whose rows lie for 16-byte access,
 * with columns in groups of 32. */
__device__ __forceinline__ void add_stage(const result &to, uint32_t stage,
                                          int row, int col, int lane)
{
    int r = lane / 8, j = col + lane % 8 * 4;
    float *c = to.c + (row + r) * to.c_row + j;
    uint32_t from = stage + r * STAGE_ROW + lane % 8 * 16;
#pragma unroll
    for (int n = 0; n < 16; n += 4, c += 4 * to.c_row)
        if (row + r + n < to.m && j < to.n)
            add_at(c, load_four(from + n * STAGE_ROW));
}

/* --- slices of k: several blocks share a tile --------------------------- */

/* The consumers of all blocks of a tile have come this far. The blocks run at
 * the same time, as the grid is no larger than the device. The last to leave
 * clears the ticket. */
__device__ __forceinline__ void meet(unsigned *ticket, unsigned blocks,
                                     int thread)
{
    __threadfence();
    asm volatile("bar.sync 1, 256;" ::: "memory"); /* all parts are written */
    if (thread == 0) {
        atomicAdd(ticket, 1);
        while (atomicAdd(ticket, 0) < blocks)
            continue;
        __threadfence();
        if (atomicAdd(ticket, 1) == 2 * blocks - 1)
            *ticket = 0;
    }
    asm volatile("bar.sync 1, 256;" ::: "memory"); /* the others' are seen */
}

/* Keeps 16 rows of a warp's sums in a tile of partial ones, row by row. */
__device__ __forceinline__ void
keep_partial(float *tile, const float (&sum)[64], int row, int lane)
{
    float *to = tile + (row + lane / 4) * SIDE + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        __stcg((float2 *)(to + 8 * j), make_float2(sum[4 * j], sum[4 * j + 1]));
        __stcg((float2 *)(to + 8 * SIDE + 8 * j),
               make_float2(sum[4 * j + 2], sum[4 * j + 3]));
    }
}

/* Four columns of `many` rows of a tile, WARPS rows apart, as far as they
 * begin before `end`: all slices added in their order. from points at the
 * first row in the first slice. */
template <int many>
__device__ __forceinline__ void add_slices(const float *from, int slices,
                                           int end, float4 (&sum)[many])
{
#pragma unroll
    for (int n = 0; n < many; n++)
        sum[n] = make_float4(0, 0, 0, 0);
#pragma unroll 4
    for (int s = 0; s < slices; s++) {
        const float *slice = from + (int64_t)s * SIDE * SIDE;
#pragma unroll
        for (int n = 0; n < many; n++) {
            float4 x = make_float4(0, 0, 0, 0);
            if (n * WARPS < end)
                x = __ldcg((const float4 *)(slice + n * WARPS * SIDE));
            sum[n] = make_float4(sum[n].x + x.x, sum[n].y + x.y, sum[n].z + x.z,
                                 sum[n].w + x.w);
        }
    }
}

#endif
