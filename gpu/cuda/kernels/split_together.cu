/* split16's first part, both operands in one launch: each element is read
 * once, from memory to planes, where neighbours lie as their planes do.
 *
 * All blocks run at one time, one on each multiprocessor. Half of a block's
 * warps hold a strip of b in shared memory, 128 columns of some rows, and tell
 * how large the columns are there; when all blocks have told, they cut it. As
 * many strips as the shared memory of the device holds make a group, and one
 * group follows the other. The other warps split rows of a, which stay in
 * their registers; so one half computes while the other waits for memory.
 *
 * Limited by bytes: 4 read and 4 written an element. Any GPU. */
#include "grid.h"
#include "split_cut.h"

constexpr int CREW = 512, CREW_WARPS = CREW / 32; /* half of a block */
constexpr int CREW_A = 1, CREW_B = 2;             /* and their barriers */
constexpr int STRIP = 128;                        /* columns */
constexpr int STRIP_ROW = STRIP * sizeof(float);  /* bytes */

/* Groups of strips, each a few strips across times slices down. */
typedef struct strips {
    int groups, at_once;
    unsigned *tickets; /* of the whole grid, see below */
} strips;

/* What the tickets are for. */
enum { TICKET_STRIPS, TICKET_DONE, TICKET_FACTS };

/* What a block's warps tell each other. */
typedef struct crew_memory {
    unsigned largest[CREW_WARPS][STRIP];
    int exponents[STRIP], losses[STRIP];
    unsigned special;
    struct {
        unsigned largest;
        int losses;
    } rows[4][CREW_WARPS];
} crew_memory;

template <int NAME> __device__ __forceinline__ void crew_sync()
{
    asm volatile("bar.sync %0, %1;" ::"n"(NAME), "n"(CREW) : "memory");
}

/* --- b: strips ---------------------------------------------------------- */

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

/* The largest magnitude of each column of the strip, over the whole block. */
__device__ __forceinline__ void tell_largest(const job &j, strip part,
                                             int thread, uint4 largest,
                                             crew_memory *memory)
{
    int lane = thread % 32, warp = thread / 32;
    *(uint4 *)&memory->largest[warp][lane * 4] = largest;
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
    for (int w = 0; w < CREW_WARPS; w++)
        all = max(all, memory->largest[w][thread]);
    j.maxima[part.slice * j.to.span + s] = all;
}

/* Reads the strip into `held`, where each thread finds its own again. */
template <reach HOW>
__device__ __forceinline__ void hold_strip(const job &j, strip part, int thread,
                                           float4 *held, crew_memory *memory)
{
    const int many = 8;
    int lane = thread % 32, warp = thread / 32;
    int64_t col = part.col + lane * 4, stride = j.from.depth_stride;
    const float *from = j.from.data + col;
    uint4 largest = make_uint4(0, 0, 0, 0);
    for (int k = part.first + warp; k < part.last; k += many * CREW_WARPS) {
        float4 v[many];
#pragma unroll
        for (int n = 0; n < many; n++) {
            int row = k + n * CREW_WARPS;
            v[n] = load4<HOW>(from + row * stride, 1,
                              row < part.last ? j.to.span - col : 0);
        }
#pragma unroll
        for (int n = 0; n < many; n++) {
            int row = k + n * CREW_WARPS;
            if (row < part.last)
                held[(row - part.first) * 32 + lane] = v[n];
            largest.x = max(largest.x, magnitude(v[n].x));
            largest.y = max(largest.y, magnitude(v[n].y));
            largest.z = max(largest.z, magnitude(v[n].z));
            largest.w = max(largest.w, magnitude(v[n].w));
        }
    }
    tell_largest(j, part, thread, largest, memory);
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

/* Cuts the strip and adds what was lost to the marks. Returns FACT_SPECIAL
 * or nothing. */
__device__ __forceinline__ unsigned cut_strip(const job &j, strip part,
                                              int thread, const float4 *held,
                                              tally *seen, crew_memory *memory)
{
    int lane = thread % 32, warp = thread / 32;
    int64_t col = part.col + lane * 4;
    find_exponents(j, part, thread, memory);
    crew_sync<CREW_B>(); /* exponents are there */
    scale f[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        f[i] = scale_by(memory->exponents[lane * 4 + i]);
    int lost[4] = {};
    if (col < j.to.pitch)
#pragma unroll 2
        for (int k = part.first + warp; k < part.last; k += CREW_WARPS)
            cut_four(j.to, held[(k - part.first) * 32 + lane], f,
                     k * j.to.pitch + col, lost, seen);
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

/* --- a: rows ------------------------------------------------------------ */

/* Rows are shared by LANES threads: a warp or the crew. */

template <int LANES, int COUNT>
__device__ __forceinline__ void fold_largest(unsigned (&largest)[COUNT],
                                             int thread, crew_memory *memory)
{
#pragma unroll
    for (int n = 0; n < COUNT; n++)
        largest[n] = __reduce_max_sync(~0u, largest[n]);
    if (LANES == 32)
        return;
    crew_sync<CREW_A>(); /* the rows before are noted */
    if (thread % 32 == 0)
#pragma unroll
        for (int n = 0; n < COUNT; n++)
            memory->rows[n][thread / 32].largest = largest[n];
    crew_sync<CREW_A>(); /* all warps' maxima are there */
    int warp = thread / LANES * (LANES / 32) + thread % (LANES / 32);
#pragma unroll
    for (int n = 0; n < COUNT; n++)
        largest[n] = __reduce_max_sync(~0u, memory->rows[n][warp].largest);
}

__device__ __forceinline__ void write_mark(const job &j, int64_t s,
                                           unsigned largest, int lost)
{
    j.to.marks[s] =
        (unsigned)(lost * MARK_LOSS + exponent_for(largest) + MARK_ZERO);
}

template <int LANES, int COUNT>
__device__ __forceinline__ void
note_rows(const job &j, int64_t s, int64_t apart,
          const unsigned (&largest)[COUNT], int (&lost)[COUNT], int thread,
          crew_memory *memory)
{
    const int warps = LANES / 32; /* that share a row: the n-th notes row n */
    int lane = thread % 32, warp = thread / 32, within = warp % warps;
#pragma unroll
    for (int n = 0; n < COUNT; n++)
        lost[n] = __reduce_add_sync(~0u, lost[n]);
    if (warps > 1) {
        if (lane == 0)
#pragma unroll
            for (int n = 0; n < COUNT; n++)
                memory->rows[n][warp].losses = lost[n];
        crew_sync<CREW_A>(); /* all warps' losses are there */
        int first = warp - within;
#pragma unroll
        for (int n = 0; n < COUNT; n++)
            if (within == n)
                lost[n] = __reduce_add_sync(
                    ~0u,
                    lane < warps ? memory->rows[n][first + lane].losses : 0);
    }
#pragma unroll
    for (int n = 0; n < COUNT; n++)
        if (lane == 0 && (warps == 1 || within == n) &&
            s + n * apart < j.to.span)
            write_mark(j, s + n * apart, largest[n], lost[n]);
}

/* COUNT rows `apart` from s on, at most 4 LANES VECTORS elements each; zeros
 * behind the operand's end. */
template <reach HOW, int LANES, int COUNT, int VECTORS>
__device__ __forceinline__ void load_rows(const job &j, int64_t s,
                                          int64_t apart, int thread,
                                          float4 (&v)[COUNT][VECTORS])
{
#pragma unroll
    for (int n = 0; n < COUNT; n++)
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            int k = (i * LANES + thread % LANES) * 4;
            int64_t row = s + n * apart;
            v[n][i] = load4<HOW>(j.from.data + row * j.from.span_stride + k, 1,
                                 row < j.to.span ? j.to.depth - k : 0);
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
    int lost[COUNT];
#pragma unroll
    for (int n = 0; n < COUNT; n++) {
        scale f = scale_by(exponent_for(largest[n])), all[4] = {f, f, f, f};
        int64_t row = s + n * apart, at = row * j.to.pitch;
        int four[4] = {};
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            int k = (i * LANES + thread % LANES) * 4;
            if (k < j.to.pitch && row < j.to.span)
                cut_four(j.to, v[n][i], all, at + k, four, seen);
        }
        lost[n] = four[0] + four[1] + four[2] + four[3];
    }
    note_rows<LANES, COUNT>(j, s, apart, largest, lost, thread, memory);
}

/* This block's rows: the next are on their way while some are cut. */
template <reach HOW, int LANES, int COUNT, int VECTORS>
__device__ __forceinline__ unsigned split_rows(const job &j, int thread,
                                               crew_memory *memory)
{
    int64_t apart = (int64_t)gridDim.x * (CREW / LANES);
    int64_t s = (int64_t)(thread / LANES) * gridDim.x + blockIdx.x;
    /* where there are registers for it */
    const bool ahead = COUNT * VECTORS <= (HOW == ALIGNED ? 4 : 2);
    float4 now[COUNT][VECTORS], next[COUNT][VECTORS];
    unsigned most = 0;
    tally seen = {0, 0};
    load_rows<HOW, LANES>(j, s, apart, thread, now);
    for (; s < j.to.span; s += COUNT * apart) {
        unsigned largest[COUNT];
        measure_rows<LANES>(now, largest, thread, memory);
        if (ahead)
            load_rows<HOW, LANES>(j, s + COUNT * apart, apart, thread, next);
        cut_rows<LANES>(j, s, apart, now, largest, &seen, thread, memory);
        if (!ahead)
            load_rows<HOW, LANES>(j, s + COUNT * apart, apart, thread, next);
#pragma unroll
        for (int n = 0; n < COUNT; n++) {
            most = max(most, largest[n]);
#pragma unroll
            for (int i = 0; i < VECTORS; i++)
                now[n][i] = next[n][i];
        }
    }
    return facts_of(seen, most);
}

/* A row of any length, read twice by the block. */
template <reach HOW>
__device__ __forceinline__ unsigned
cut_long_row(const job &j, int64_t s, int thread, crew_memory *memory)
{
    const float *from = j.from.data + s * j.from.span_stride;
    unsigned largest[1] = {};
    int lost[1], four[4] = {};
#pragma unroll 8
    for (int64_t k = thread * 4; k < j.to.depth; k += CREW * 4)
        largest[0] = max(largest[0],
                         magnitude4(load4<HOW>(from + k, 1, j.to.depth - k)));
    fold_largest<CREW, 1>(largest, thread, memory);
    scale f = scale_by(exponent_for(largest[0])), all[4] = {f, f, f, f};
    tally seen = {0, 0};
#pragma unroll 4
    for (int64_t k = thread * 4; k < j.to.pitch; k += CREW * 4)
        cut_four(j.to, load4<HOW>(from + k, 1, j.to.depth - k), all,
                 s * j.to.pitch + k, four, &seen);
    lost[0] = four[0] + four[1] + four[2] + four[3];
    note_rows<CREW, 1>(j, s, 1, largest, lost, thread, memory);
    return facts_of(seen, largest[0]);
}

/* A crew's work. Returns the facts that its threads have seen. */

template <reach HOW>
__device__ __forceinline__ unsigned split_a(const job &j, int thread,
                                            crew_memory *memory)
{
    unsigned facts = 0;
    const int many = HOW == ALIGNED ? 4 : 2; /* loads of a thread */
    if (j.to.pitch <= 128)
        return split_rows<HOW, 32, many, 1>(j, thread, memory);
    if (j.to.pitch <= 256)
        return split_rows<HOW, 32, many / 2, 2>(j, thread, memory);
    if (j.to.pitch <= 512)
        return split_rows<HOW, 32, 1, 4>(j, thread, memory);
    if (j.to.pitch <= 1024)
        return split_rows<HOW, 32, 1, 8>(j, thread, memory);
    if (j.to.pitch <= 2048)
        return split_rows<HOW, CREW, many, 1>(j, thread, memory);
    if (j.to.pitch <= 4096)
        return split_rows<HOW, CREW, many / 2, 2>(j, thread, memory);
    if (j.to.pitch <= 8192)
        return split_rows<HOW, CREW, 1, 4>(j, thread, memory);
    for (int64_t s = blockIdx.x; s < j.to.span; s += gridDim.x)
        facts |= cut_long_row<HOW>(j, s, thread, memory);
    return facts;
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
        special |= cut_strip(j, part, thread, held, &seen, memory);
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
        facts = split_b<HOW>(b, p, thread, held, &memory);
    if (threadIdx.x >= CREW && a.how != READY)
        facts = split_a<HOW>(a, thread, &memory);
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

/* Bytes of shared memory for a strip: what a block may have, less its own. */
static gpu_status most_held(cuda_device *d, int *bytes)
{
    static int device, most;
    if (device != d->ordinal + 1) {
        CHECK(d, cudaDeviceGetAttribute(&most,
                                        cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                        d->ordinal));
        most = (most - (int)sizeof(crew_memory) - 64) / STRIP_ROW * STRIP_ROW;
        device = d->ordinal + 1;
    }
    *bytes = most;
    return GPU_OK;
}

/* As few groups as can be, and for those as many slices as there are blocks
 * for. Returns 0 when a column of strips is more than all blocks can hold. */
static int plan_strips(const cuda_device *d, int64_t span, int64_t depth,
                       int held, strips *p, int *slices, int *rows)
{
    int64_t columns = ceil_div(span, STRIP), most = held / STRIP_ROW;
    int64_t least = ceil_div(depth, most), at_once = d->sms / least;
    if (at_once == 0)
        return 0;
    p->groups = (int)ceil_div(columns, smaller(at_once, columns));
    p->at_once = (int)ceil_div(columns, p->groups);
    *rows = (int)larger(ceil_div(depth, d->sms / p->at_once), CREW_WARPS);
    *slices = (int)ceil_div(depth, *rows);
    return 1;
}

gpu_status gpu_cuda_together_bytes(cuda_device *d, int64_t span, int64_t depth,
                                   size_t *bytes)
{
    strips p;
    int held, slices, rows;
    TRY(most_held(d, &held));
    *bytes = 0;
    if (plan_strips(d, span, depth, held, &p, &slices, &rows))
        *bytes = (size_t)slices * (size_t)span * sizeof(unsigned);
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
    int held, bytes = b->how == READY ? 0 : b->slice_rows * STRIP_ROW;
    TRY(most_held(d, &held));
    if (prepared != d->ordinal + 1)
        CHECK(d, cudaFuncSetAttribute(
                     split_both<HOW>,
                     cudaFuncAttributeMaxDynamicSharedMemorySize, held));
    TRY(keep_division(d, (const void *)split_both<HOW>, &prepared));
    return launch_behind(d, split_both<HOW>, dim3((unsigned)d->sms), 2 * CREW,
                         (size_t)bytes, 1, *a, *b, p);
}

gpu_status gpu_cuda_split_together(cuda_device *d, const job *a, const job *b,
                                   unsigned *tickets, int *done)
{
    strips p = {1, 1, tickets};
    job y = *b;
    int held;
    TRY(most_held(d, &held));
    *done = is_straight(a, ROWS) && is_straight(b, COLUMNS) &&
            (b->how == READY || plan_strips(d, b->to.span, b->to.depth, held,
                                            &p, &y.slices, &y.slice_rows));
    if (!*done)
        return GPU_OK;
    return is_aligned(a) && is_aligned(b) ? launch<ALIGNED>(d, a, &y, p)
                                          : launch<ACROSS>(d, a, &y, p);
}
