/* What split_both_operands.cu's blocks share, and how one half of such a block,
 * a crew, splits rows of a: they are measured and cut in registers. */
#ifndef GPU_CUDA_SPLIT_CREW_H
#define GPU_CUDA_SPLIT_CREW_H

#include "copies.h"
#include "split_one_value.h"

constexpr int CREW = 256, CREW_WARPS = CREW / 32; /* half of a block */
constexpr int CREW_B = 1;  /* b's barrier; those of rows are behind it */
constexpr int STRIP = 128; /* columns: split_column_half.h */
/* Groups of four that hold a strip's part of a row, wherever it begins. */
constexpr int HELD = STRIP / 4 + 1, HELD_ROW = HELD * 16; /* bytes */

/* What a block's warps tell each other. */
typedef struct crew_memory {
    unsigned largest[CREW_WARPS][4 * HELD];
    int exponents[STRIP], losses[STRIP];
    unsigned special;
    struct {
        unsigned largest;
        int losses;
    } rows[CREW_WARPS];
} crew_memory;

template <int NAME> __device__ __forceinline__ void crew_sync()
{
    asm volatile("bar.sync %0, %1;" ::"n"(NAME), "n"(CREW) : "memory");
}

/* --- what rows have shown ----------------------------------------------- */

/* LANES threads share a row, or, a warp, several. */

/* Where the LANES of a crew meet that have a row: barriers behind the crews'.
 */
template <int LANES> __device__ __forceinline__ void row_sync(int thread)
{
    static_assert(LANES >= 32 && LANES <= CREW);
    if (LANES == 32)
        __syncwarp();
    else
        asm volatile("bar.sync %0, %1;" ::"r"(CREW_B + 1 + thread / LANES),
                     "n"(LANES)
                     : "memory");
}

/* Behind a row_sync since the row before was noted. */
template <int LANES, int COUNT>
__device__ __forceinline__ void fold_largest(unsigned (&largest)[COUNT],
                                             int thread, crew_memory *memory)
{
    const int warps = LANES / 32;
#pragma unroll
    for (int n = 0; n < COUNT; n++)
        largest[n] = __reduce_max_sync(~0u, largest[n]);
    static_assert(warps == 1 || COUNT == 1);
    if (warps > 1 && thread % 32 == 0)
        memory->rows[thread / 32].largest = largest[0];
    row_sync<LANES>(thread); /* all have read the rows, and told */
    if (warps > 1)
        largest[0] = __reduce_max_sync(
            ~0u, memory->rows[thread / LANES * warps + thread % warps].largest);
}

/* The sum over all lanes; of several warps' only the first one gets it. */
template <int LANES>
__device__ __forceinline__ int fold_losses(int lost, int thread,
                                           crew_memory *memory)
{
    const int warps = LANES / 32;
    int lane = thread % 32, warp = thread / 32;
    lost = __reduce_add_sync(~0u, lost);
    if constexpr (warps > 1) {
        if (lane == 0)
            memory->rows[warp].losses = lost;
        row_sync<LANES>(thread); /* all warps' losses are there */
        if (warp % warps == 0)
            lost = __reduce_add_sync(
                ~0u, lane < warps ? memory->rows[warp + lane].losses : 0);
    }
    return lost;
}

template <int LANES>
__device__ __forceinline__ void note_row(const job &j, int64_t s,
                                         unsigned largest, int lost, int thread,
                                         crew_memory *memory)
{
    lost = fold_losses<LANES>(lost, thread, memory);
    if (thread % LANES == 0 && s < j.to.span)
        j.to.marks[s] =
            (unsigned)(lost * MARK_LOSS + exponent_for(largest) + MARK_ZERO);
}

/* --- rows on their way -------------------------------------------------- */

/* Rows come to shared memory, in aligned groups as they lie: so what is on its
 * way takes neither registers nor room in the first-level cache. Their groups
 * are as many as their planes', and one more for those that begin inside one.
 */
template <int VECTORS> constexpr int ROW_SLOTS = VECTORS > 5 ? 1 : 2;

/* Longer rows are not held: they are read twice. */
constexpr int64_t LONGEST_HELD = 10240;

/* Rows that a crew works on at one time. */
static inline int64_t rows_at_once(int64_t pitch)
{
    if (pitch <= 256)
        return (pitch <= 128 ? 4 : 2) * CREW_WARPS;
    return pitch <= 640    ? CREW_WARPS
           : pitch <= 1280 ? CREW_WARPS / 2
           : pitch <= 2560 ? CREW_WARPS / 4
                           : 1;
}

/* Bytes of a crew's slots. */
static inline int row_bytes(int64_t pitch)
{
    int64_t slots = rows_at_once(pitch) * (pitch > 5120 ? 1 : 2);
    return pitch > LONGEST_HELD ? 0 : (int)(slots * (pitch * 4 + 16));
}

/* The groups of one row, and how many elements stand before it in them. */
template <reach HOW> struct row_groups {
    const float4 *first;
    int shift, end; /* and up to its own end */
};

template <reach HOW>
__device__ __forceinline__ row_groups<HOW> find_groups(const job &j, int64_t s)
{
    const float *from = j.from.data + s * j.from.span_stride;
    int shift = HOW == ALIGNED ? 0 : shift_of(from);
    int depth = s < j.to.span ? (int)j.to.depth : -4;
    return {(const float4 *)(from - shift), shift, shift + depth};
}

/* Starts copies of COUNT rows, `apart` from s on. Zeros behind the operand's
 * end. */
template <reach HOW, int LANES, int COUNT, int VECTORS>
__device__ __forceinline__ void copy_rows(const job &j, int64_t s,
                                          int64_t apart, int thread,
                                          const float4 *slot)
{
    int count = (int)j.to.pitch / 4 + 1, lane = thread % LANES;
#pragma unroll
    for (int n = 0; n < COUNT; n++) {
        row_groups<HOW> row = find_groups<HOW>(j, s + n * apart);
        uint32_t to = (uint32_t)__cvta_generic_to_shared(slot + n * count);
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            int at = i * LANES + lane;
            if (at < count)
                copy_async<16>(to + at * 16, row.first + at,
                               at * 4 < row.end ? 16 : 0);
        }
        if (HOW != ALIGNED && lane == 0 && count > LANES * VECTORS)
            copy_async<16>(to + LANES * VECTORS * 16,
                           row.first + LANES * VECTORS,
                           LANES * VECTORS * 4 < row.end ? 16 : 0);
    }
    end_copies();
}

/* The rows' elements, four neighbours each, zeros behind their ends. */
template <reach HOW, int LANES, int COUNT, int VECTORS>
__device__ __forceinline__ void
join_rows(const job &j, int64_t s, int64_t apart, int thread,
          const float4 *slot, float4 (&v)[COUNT][VECTORS])
{
    int count = (int)j.to.pitch / 4 + 1;
#pragma unroll
    for (int n = 0; n < COUNT; n++) {
        int shift = find_groups<HOW>(j, s + n * apart).shift;
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            int at = i * LANES + thread % LANES;
            const float4 *from = slot + n * count + at;
            v[n][i] = make_float4(0, 0, 0, 0);
            if (at + 1 < count)
                v[n][i] = HOW == ALIGNED
                              ? from[0]
                              : join_groups(from[0], from[1], shift,
                                            (int)j.to.depth - at * 4);
        }
    }
}

template <int LANES, int COUNT, int VECTORS>
__device__ __forceinline__ void measure_rows(const float4 (&v)[COUNT][VECTORS],
                                             unsigned (&largest)[COUNT],
                                             int thread, crew_memory *memory)
{
#pragma unroll
    for (int n = 0; n < COUNT; n++) {
        largest[n] = 0;
#pragma unroll
        for (int i = 0; i < VECTORS; i++)
            largest[n] = max(largest[n], magnitude4(v[n][i]));
    }
    fold_largest<LANES, COUNT>(largest, thread, memory);
}

template <int LANES, int COUNT, int VECTORS>
__device__ __forceinline__ void
cut_rows(const job &j, int64_t s, int64_t apart,
         const float4 (&v)[COUNT][VECTORS], const unsigned (&largest)[COUNT],
         tally *seen, int thread, crew_memory *memory)
{
#pragma unroll
    for (int n = 0; n < COUNT; n++) {
        scale f = scale_by(exponent_for(largest[n])), all[4] = {f, f, f, f};
        int64_t row = s + n * apart, at = row * j.to.pitch;
        int lost[1] = {};
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            int k = (i * LANES + thread % LANES) * 4;
            if (k < j.to.pitch && row < j.to.span)
                cut_four(j.to, v[n][i], all, at + k, lost, seen);
        }
        note_row<LANES>(j, row, largest[n], lost[0], thread, memory);
    }
}

/* This block's rows: the next are on their way while some are cut. rows: the
 * crew's slots. */
template <reach HOW, int LANES, int COUNT, int VECTORS>
__device__ __forceinline__ unsigned
split_rows(const job &j, int thread, float4 *rows, crew_memory *memory)
{
    const int slots = ROW_SLOTS<VECTORS>;
    int64_t apart = (int64_t)gridDim.x * (CREW / LANES);
    int64_t s = (int64_t)(thread / LANES) * gridDim.x + blockIdx.x;
    int size = COUNT * ((int)j.to.pitch / 4 + 1), at = 0;
    unsigned most = 0;
    tally seen = {0, 0};
    rows += thread / LANES * slots * size;
#pragma unroll
    for (int n = 0; n < slots; n++)
        copy_rows<HOW, LANES, COUNT, VECTORS>(j, s + n * COUNT * apart, apart,
                                              thread, rows + n * size);
    for (; s < j.to.span; s += COUNT * apart) {
        float4 now[COUNT][VECTORS];
        unsigned largest[COUNT];
        wait_for_copies<slots - 1>();
        row_sync<LANES>(thread); /* rows are there, those before are noted */
        join_rows<HOW, LANES>(j, s, apart, thread, rows + at, now);
        measure_rows<LANES>(now, largest, thread, memory);
        copy_rows<HOW, LANES, COUNT, VECTORS>(j, s + slots * COUNT * apart,
                                              apart, thread, rows + at);
        cut_rows<LANES>(j, s, apart, now, largest, &seen, thread, memory);
#pragma unroll
        for (int n = 0; n < COUNT; n++)
            most = max(most, largest[n]);
        at = slots > 1 ? size - at : 0;
    }
    wait_for_all_copies();
    return facts_of(seen, most);
}

/* A row of any length, read twice by the block. */
template <reach HOW>
__device__ __forceinline__ unsigned
cut_long_row(const job &j, int64_t s, int thread, crew_memory *memory)
{
    const float *from = j.from.data + s * j.from.span_stride;
    unsigned largest[1] = {};
    int lost[1] = {};
#pragma unroll 8
    for (int64_t k = thread * 4; k < j.to.depth; k += CREW * 4)
        largest[0] = max(largest[0],
                         magnitude4(load4<HOW>(from + k, 1, j.to.depth - k)));
    row_sync<CREW>(thread); /* the row before is noted */
    fold_largest<CREW, 1>(largest, thread, memory);
    scale f = scale_by(exponent_for(largest[0])), all[4] = {f, f, f, f};
    tally seen = {0, 0};
#pragma unroll 4
    for (int64_t k = thread * 4; k < j.to.pitch; k += CREW * 4)
        cut_four(j.to, load4<HOW>(from + k, 1, j.to.depth - k), all,
                 s * j.to.pitch + k, lost, &seen);
    note_row<CREW>(j, s, largest[0], lost[0], thread, memory);
    return facts_of(seen, largest[0]);
}

/* Rows of a pitch up to 1024 VECTORS, by as few lanes as can hold them. */
template <reach HOW, int VECTORS>
__device__ __forceinline__ unsigned
split_rows(const job &j, int thread, float4 *rows, crew_memory *memory)
{
    if (j.to.pitch <= 128 * VECTORS)
        return split_rows<HOW, 32, 1, VECTORS>(j, thread, rows, memory);
    if (j.to.pitch <= 256 * VECTORS)
        return split_rows<HOW, 64, 1, VECTORS>(j, thread, rows, memory);
    if (j.to.pitch <= 512 * VECTORS)
        return split_rows<HOW, 128, 1, VECTORS>(j, thread, rows, memory);
    return split_rows<HOW, CREW, 1, VECTORS>(j, thread, rows, memory);
}

/* A crew's work. Returns the facts that its threads have seen. Five vectors,
 * or ten, for rows a little longer than four or eight are. */
template <reach HOW>
__device__ __forceinline__ unsigned split_a(const job &j, int thread,
                                            float4 *rows, crew_memory *memory)
{
    unsigned facts = 0;
    int64_t most = 512;
    while (most < j.to.pitch)
        most *= 2;
    bool is_beyond = most > 512 && j.to.pitch <= most / 8 * 5;
    if (j.to.pitch <= 128)
        return split_rows<HOW, 32, 4, 1>(j, thread, rows, memory);
    if (j.to.pitch <= 256)
        return split_rows<HOW, 32, 2, 2>(j, thread, rows, memory);
    if (most <= 8192 && is_beyond)
        return split_rows<HOW, 5>(j, thread, rows, memory);
    if (most <= 4096)
        return split_rows<HOW, 4>(j, thread, rows, memory);
    if (most <= 8192)
        return split_rows<HOW, CREW, 1, 8>(j, thread, rows, memory);
    if (j.to.pitch <= LONGEST_HELD)
        return split_rows<HOW, CREW, 1, 10>(j, thread, rows, memory);
    for (int64_t s = blockIdx.x; s < j.to.span; s += gridDim.x)
        facts |= cut_long_row<HOW>(j, s, thread, memory);
    return facts;
}

#endif
