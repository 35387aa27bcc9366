/* split16's first part, both operands in one launch: each element is read
 * once, from memory to planes, where neighbours lie as their planes do.
 *
 * All blocks run at one time, one on each multiprocessor. Half of a block's
 * warps hold a strip of b in shared memory, 128 columns of some rows, and tell
 * how large the columns are there; when all blocks have told, they cut it. As
 * many strips as the shared memory of the device holds make a group, and one
 * group follows the other. The other warps split rows of a, which come by way
 * of shared memory too; so one half computes while the other waits. Threads are
 * few, as with fewer registers each they would keep some in memory.
 *
 * Limited by bytes: 4 read and 4 written an element. Needs sm_80. */
#include "copies.h"
#include "split_one_value.h"

/* --- a block ----------------------------------------------------------------
 * What its warps share. One half of it, a crew, splits rows of a, which are
 * measured and cut in registers; the other splits b. */

constexpr int CREW = 256, CREW_WARPS = CREW / 32; /* half of a block */
constexpr int CREW_B = 1;  /* b's barrier; those of rows are behind it */
constexpr int STRIP = 128; /* columns of b */
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
        uint32_t to = shared_address(slot + n * count);
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

/* --- columns of b -----------------------------------------------------------
 * A strip of b, 128 columns of some rows, is held in shared memory from the
 * time it is measured until all blocks have measured theirs and it can be
 * cut. */

/* Groups of strips, each a few strips across times slices down. */
typedef struct strips {
    int groups, at_once;
    int behind;        /* float4s of shared memory before them: rows */
    unsigned *tickets; /* of the whole grid, see below */
} strips;

/* What the tickets are for. */
enum { TICKET_STRIPS, TICKET_DONE, TICKET_FACTS };

/* The part of b that this block holds: its first column, its rows. */
typedef struct strip {
    int64_t col;
    int slice, first, last;
} strip;

__device__ __forceinline__ strip strip_of(const job &j, const strips &p,
                                          int group)
{
    strip s;
    int depth = (int)j.to.depth;
    s.col = (int64_t)(group * p.at_once + (int)blockIdx.x % p.at_once) * STRIP;
    s.slice = (int)blockIdx.x / p.at_once;
    s.first = min(depth, s.slice * j.slice_rows);
    s.last = s.col < j.to.span ? min(depth, s.first + j.slice_rows) : s.first;
    return s;
}

/* A row's part of the strip lies in HELD aligned groups from here on; elements
 * before it are the row's shift, the same for all rows of a warp. */
template <reach HOW> struct strip_row {
    const float4 *first;
    int shift, count; /* elements before the strip's, and up to its end */
};

template <reach HOW>
__device__ __forceinline__ strip_row<HOW> find_row(const job &j, strip part,
                                                   int row)
{
    const float *from = j.from.data + part.col + row * j.from.depth_stride;
    int shift = HOW == ALIGNED ? 0 : shift_of(from);
    int count = (int)min((int64_t)STRIP, j.to.span - part.col);
    return {(const float4 *)(from - shift), shift, shift + count};
}

__device__ __forceinline__ void keep_largest(uint4 *largest, float4 v)
{
    largest->x = max(largest->x, magnitude(v.x));
    largest->y = max(largest->y, magnitude(v.y));
    largest->z = max(largest->z, magnitude(v.z));
    largest->w = max(largest->w, magnitude(v.w));
}

/* The largest magnitude of each column of the strip, over the whole block. */
template <reach HOW>
__device__ __forceinline__ void tell_largest(const job &j, strip part,
                                             int thread, crew_memory *memory)
{
    crew_sync<CREW_B>(); /* all warps' maxima are there */
    int64_t s = part.col + thread;
    if (thread >= STRIP || part.first == part.last)
        return;
    if (part.slice == 0 && read_with(s) < j.to.span)
        j.to.marks[s] = 0;
    if (s >= j.to.span)
        return;
    unsigned all = 0;
#pragma unroll
    for (int w = 0; w < CREW_WARPS; w++) {
        int shift = find_row<HOW>(j, part, part.first + w).shift;
        all = max(all, memory->largest[w][thread + shift]);
    }
    j.maxima[part.slice * j.to.span + s] = all;
}

/* Copies a warp's rows of the strip into `held` as they lie, in aligned groups:
 * past the registers and the first-level cache, whose room would bound what is
 * on its way. The last group of a row, which a shift leaves behind the warp's
 * 32, is copied by a lane each. What is not there becomes zeros. */
template <reach HOW>
__device__ __forceinline__ void copy_strip(const job &j, strip part, int thread,
                                           uint32_t held)
{
    int lane = thread % 32, warp = thread / 32;
    strip_row<HOW> row = find_row<HOW>(j, part, part.first + warp);
    int64_t stride = CREW_WARPS * j.from.depth_stride / 4;
    int rows = (part.last - part.first - warp + CREW_WARPS - 1) / CREW_WARPS;
    held += warp * HELD_ROW;
    int bytes = lane * 4 < row.count ? 16 : 0;
#pragma unroll 4
    for (int n = 0; n < rows; n++)
        copy_async<16>(held + n * CREW_WARPS * HELD_ROW + lane * 16,
                       row.first + n * stride + lane, bytes);
    if (HOW != ALIGNED && row.count > STRIP)
        for (int n = lane; n < rows; n += 32)
            copy_async<16>(held + n * CREW_WARPS * HELD_ROW + STRIP * 4,
                           row.first + n * stride + HELD - 1, 16);
    wait_for_all_copies();
    __syncwarp(); /* the warp's rows are there */
}

/* Reads the strip into `held`, where each warp finds its own again, and tells
 * how large its columns are. */
template <reach HOW>
__device__ __forceinline__ void hold_strip(const job &j, strip part, int thread,
                                           const float4 *held,
                                           crew_memory *memory)
{
    int lane = thread % 32, warp = thread / 32;
    uint4 largest = make_uint4(0, 0, 0, 0), behind = largest;
    copy_strip<HOW>(j, part, thread, shared_address(held));
#pragma unroll 4
    for (int k = warp; k < part.last - part.first; k += CREW_WARPS)
        keep_largest(&largest, held[k * HELD + lane]);
    *(uint4 *)&memory->largest[warp][lane * 4] = largest;
    if (HOW != ALIGNED) {
        strip_row<HOW> row = find_row<HOW>(j, part, part.first + warp);
        int k = warp + lane * CREW_WARPS;
        for (; row.count > STRIP && k < part.last - part.first;
             k += 32 * CREW_WARPS)
            keep_largest(&behind, held[k * HELD + HELD - 1]);
        behind.x = __reduce_max_sync(~0u, behind.x);
        behind.y = __reduce_max_sync(~0u, behind.y);
        behind.z = __reduce_max_sync(~0u, behind.z);
        if (lane == 0)
            *(uint4 *)&memory->largest[warp][STRIP] = behind;
    }
    tell_largest<HOW>(j, part, thread, memory);
}

/* The exponents of the strip's columns, from what all slices have told. */
__device__ __forceinline__ void find_exponents(const job &j, strip part,
                                               int thread, crew_memory *memory)
{
    const int shares = CREW / STRIP;
    int share = thread / STRIP, at = thread % STRIP;
    int64_t s = part.col + at;
    unsigned largest = 0;
#pragma unroll 8
    for (int slice = share; slice < j.slices; slice += shares)
        if (s < j.to.span)
            largest = max(largest, __ldcg(j.maxima + slice * j.to.span + s));
    memory->largest[share][at] = largest;
    if (thread == 0)
        memory->special = 0;
    crew_sync<CREW_B>(); /* the shares' maxima are there, special is zero */
    if (share > 0)
        return;
#pragma unroll
    for (int i = 1; i < shares; i++)
        largest = max(largest, memory->largest[i][at]);
    memory->exponents[at] = exponent_for(largest);
    memory->losses[at] = 0;
    if (largest >= 0x7f800000u)
        memory->special = FACT_SPECIAL;
}

/* The warp's next row of the strip, four columns a lane. */
template <reach HOW>
__device__ __forceinline__ float4 read_held(const float4 *held, int shift,
                                            int left)
{
    if (HOW == ALIGNED)
        return held[0];
    return join_groups(held[0], held[1], shift, left);
}

/* Cuts the strip and adds what was lost to the marks. Returns FACT_SPECIAL
 * or nothing. */
template <reach HOW>
__device__ __forceinline__ unsigned cut_strip(const job &j, strip part,
                                              int thread, const float4 *held,
                                              tally *seen, crew_memory *memory)
{
    int lane = thread % 32, warp = thread / 32;
    int shift = find_row<HOW>(j, part, part.first + warp).shift;
    int64_t col = part.col + lane * 4;
    find_exponents(j, part, thread, memory);
    crew_sync<CREW_B>(); /* exponents are there */
    scale f[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        f[i] = scale_by(memory->exponents[lane * 4 + i]);
    int lost[4] = {};
    held += lane;
    if (col < j.to.pitch)
#pragma unroll 4
        for (int k = part.first + warp; k < part.last; k += CREW_WARPS)
            cut_four(j.to,
                     read_held<HOW>(held + (k - part.first) * HELD, shift,
                                    (int)(j.to.span - col)),
                     f, k * j.to.pitch + col, lost, seen);
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (lost[i])
            atomicAdd(&memory->losses[lane * 4 + i], lost[i]);
    crew_sync<CREW_B>(); /* the block's losses are counted */
    int64_t s = part.col + thread;
    if (thread < STRIP && part.first < part.last && read_with(s) < j.to.span) {
        unsigned found = memory->losses[thread] * MARK_LOSS;
        if (part.slice == 0)
            found += memory->exponents[thread] + MARK_ZERO;
        if (found)
            atomicAdd(&j.to.marks[s], found);
    }
    return memory->special;
}

template <reach HOW>
__device__ __forceinline__ unsigned split_b(const job &j, const strips &p,
                                            int thread, float4 *held,
                                            crew_memory *memory)
{
    unsigned special = 0;
    tally seen = {0, 0};
    for (int group = 0; group < p.groups; group++) {
        strip part = strip_of(j, p, group);
        hold_strip<HOW>(j, part, thread, held, memory);
        crew_sync<CREW_B>(); /* the block's maxima are written */
        if (thread == 0)
            grid_wait(p.tickets + TICKET_STRIPS,
                      grid_arrive(p.tickets + TICKET_STRIPS));
        crew_sync<CREW_B>(); /* all strips are measured */
        special |= cut_strip<HOW>(j, part, thread, held, &seen, memory);
    }
    return special | facts_of(seen, 0);
}

/* --- both --------------------------------------------------------------- */

/* What this block has seen, where the strips' waiting came after the facts
 * were zeroed. By one thread. */
__device__ __forceinline__ void add_facts(const job &a, const job &b,
                                          unsigned a_facts, unsigned b_facts)
{
    if (a_facts && a.how != READY)
        atomicOr(a.to.facts, a_facts);
    if (b_facts)
        atomicOr(b.to.facts, b_facts);
}

/* With a alone nobody waits: what all blocks have seen comes together in a
 * ticket, and the last to add its own hands it on. */
__device__ __forceinline__ void add_facts_alone(const job &a, unsigned facts,
                                                unsigned *tickets)
{
    if (facts)
        atomicOr(tickets + TICKET_FACTS, facts);
    __threadfence();
    if (atomicAdd(tickets + TICKET_DONE, 1) != gridDim.x - 1)
        return;
    *a.to.facts = atomicExch(tickets + TICKET_FACTS, 0);
    tickets[TICKET_DONE] = 0;
}

/* ALIGNED for two operands that can be read 16 bytes at a time. */
template <reach HOW>
__global__ void __launch_bounds__(2 * CREW, 1)
    split_both(const __grid_constant__ job a, const __grid_constant__ job b,
               const __grid_constant__ strips p)
{
    extern __shared__ float4 held[];
    __shared__ crew_memory memory;
    __shared__ unsigned a_facts, b_facts;
    int thread = threadIdx.x % CREW;
    unsigned facts = 0;
    let_next_start();
    if (threadIdx.x == 0)
        a_facts = b_facts = 0;
    __syncthreads(); /* the facts are zero */
    wait_for_previous();
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        if (a.how != READY)
            *a.to.facts = 0;
        if (b.how != READY)
            *b.to.facts = 0;
    }
    if (threadIdx.x < CREW && b.how != READY)
        facts = split_b<HOW>(b, p, thread, held + p.behind, &memory);
    if (threadIdx.x >= CREW && a.how != READY)
        facts = split_a<HOW>(a, thread, held, &memory);
    facts = __reduce_or_sync(~0u, facts);
    if (thread % 32 == 0 && facts)
        atomicOr(threadIdx.x < CREW ? &b_facts : &a_facts, facts);
    __syncthreads(); /* both crews are done */
    if (threadIdx.x != 0)
        return;
    if (b.how != READY)
        add_facts(a, b, a_facts, b_facts);
    else
        add_facts_alone(a, a_facts, p.tickets);
}

/* --- the host's side ---------------------------------------------------- */

/* Bytes of shared memory for rows and a strip: what a block may have, less its
 * own. */
static gpu_status most_held(cuda_device *d, int *bytes)
{
    static int device, most;
    if (device != d->ordinal + 1) {
        CHECK(d, cudaDeviceGetAttribute(&most,
                                        cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                        d->ordinal));
        most = (most - (int)sizeof(crew_memory) - 64) / 16 * 16;
        device = d->ordinal + 1;
    }
    *bytes = most;
    return GPU_OK;
}

/* As few groups as can be, and for those as many slices as there are blocks
 * for; `held` bytes are there for a strip. Returns 0 when a column of strips
 * is more than all blocks can hold. */
static int plan_strips(const cuda_device *d, int64_t span, int64_t depth,
                       int held, strips *p, int *slices, int *rows)
{
    int64_t columns = ceil_div(span, STRIP), most = held / HELD_ROW;
    int64_t least = ceil_div(depth, most),
            at_once = gpu_cuda_free_sms(d) / least;
    if (at_once == 0)
        return 0;
    p->groups = (int)ceil_div(columns, smaller(at_once, columns));
    p->at_once = (int)ceil_div(columns, p->groups);
    *rows = (int)larger(ceil_div(depth, gpu_cuda_free_sms(d) / p->at_once),
                        CREW_WARPS);
    *slices = (int)ceil_div(depth, *rows);
    return 1;
}

/* a's rows may be held beside b's strips, or not. */
gpu_status gpu_cuda_together_bytes(cuda_device *d, int64_t span, int64_t depth,
                                   size_t *bytes)
{
    int held, most = 0;
    TRY(most_held(d, &held));
    for (int beside = 0; beside < 2; beside++) {
        strips p;
        int slices, rows;
        int room =
            held - (beside ? row_bytes(ceil_div(depth, TURN) * TURN) : 0);
        if (plan_strips(d, span, depth, room, &p, &slices, &rows))
            most = slices > most ? slices : most;
    }
    *bytes = (size_t)most * (size_t)span * sizeof(unsigned);
    return GPU_OK;
}

static int is_straight(const job *j, method straight)
{
    return j->how == READY || (j->how == straight && j->from.how != APART);
}

static int is_aligned(const job *j)
{
    return j->how == READY || (j->from.how == ALIGNED && j->to.length % 4 == 0);
}

template <reach HOW>
static gpu_status launch(cuda_device *d, const job *a, const job *b, strips p)
{
    static int prepared;
    int held, bytes = p.behind * 16;
    TRY(most_held(d, &held));
    if (b->how != READY)
        bytes += b->slice_rows * HELD_ROW;
    TRY(keep_division(d, (const void *)split_both<HOW>, held, &prepared));
    return launch_behind(d, split_both<HOW>,
                         dim3((unsigned)gpu_cuda_free_sms(d)), 2 * CREW,
                         (size_t)bytes, 1, *a, *b, p);
}

gpu_status gpu_cuda_split_together(cuda_device *d, const job *a, const job *b,
                                   unsigned *tickets, int *done)
{
    job y = *b;
    int held, rows = a->how == READY ? 0 : row_bytes(a->to.pitch);
    strips p = {1, 1, rows / 16, tickets};
    TRY(most_held(d, &held));
    *done =
        is_straight(a, ROWS) && is_straight(b, COLUMNS) &&
        (b->how == READY || plan_strips(d, b->to.span, b->to.depth, held - rows,
                                        &p, &y.slices, &y.slice_rows));
    if (!*done)
        return GPU_OK;
    return is_aligned(a) && is_aligned(b) ? launch<ALIGNED>(d, a, &y, p)
                                          : launch<ACROSS>(d, a, &y, p);
}
