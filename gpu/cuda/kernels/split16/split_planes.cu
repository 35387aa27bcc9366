/* split16's first part where split_both_operands.cu cannot do it, as an operand
 * lies the other way than its planes or is too deep: each is measured, scaled
 * and cut. Which of the two it is, is decided here.
 *
 * Limited by bytes: 4 read and 4 written an element where the scaled
 * dimension's lines are contiguous (one pass, a row stays in registers), 8
 * read and 4 written where they are not: column maxima come first. Two
 * launches do both operands: `measure` takes maxima and splits rows, `cut`
 * splits what had to be measured before, turning it where planes lie the
 * other way. Any GPU, any strides. */
#include "split_one_value.h"

enum { THREADS = 256, WARPS = THREADS / 32 };

/* What a row has shown to the warps of a block. */
typedef struct row_fold {
    unsigned largest[WARPS], facts[WARPS];
    int losses[WARPS];
} row_fold;

/* --- whole rows -------------------------------------------------------------
 * Split at once by blocks of eight warps: they are read, measured and cut
 * without leaving the registers. */

/* Over the LANES threads that share a row: all of them get the result. */

template <int LANES>
__device__ __forceinline__ unsigned row_largest(unsigned x, row_fold *fold)
{
    x = __reduce_max_sync(~0u, x);
    if (LANES == 32)
        return x;
    if (threadIdx.x % 32 == 0)
        fold->largest[threadIdx.x / 32] = x;
    __syncthreads(); /* all warps' maxima are there */
#pragma unroll
    for (int i = 0; i < LANES / 32; i++)
        x = max(x, fold->largest[i]);
    return x;
}

/* The first lane notes what the row has shown. */
template <int LANES>
__device__ __forceinline__ void note_row(const job &j, int64_t s, int lane,
                                         int exponent, int lost, unsigned facts,
                                         row_fold *fold)
{
    lost = __reduce_add_sync(~0u, lost);
    facts = __reduce_or_sync(~0u, facts);
    if (LANES > 32) {
        if (threadIdx.x % 32 == 0) {
            fold->losses[threadIdx.x / 32] = lost;
            fold->facts[threadIdx.x / 32] = facts;
        }
        __syncthreads(); /* all warps' findings are there */
        for (int i = 1; lane == 0 && i < LANES / 32; i++) {
            lost += fold->losses[i];
            facts |= fold->facts[i];
        }
    }
    if (lane != 0)
        return;
    j.to.marks[s] = (unsigned)(lost * MARK_LOSS + exponent + MARK_ZERO);
    j.to.flags[s] = (unsigned char)facts;
}

/* Splits rows whose elements LANES threads hold in registers, VECTORS times
 * four each; with VECTORS = 0 a row of any length is read twice. */
template <int LANES, int VECTORS, reach HOW>
__device__ __forceinline__ void split_rows(const job &j, unsigned block,
                                           row_fold *fold)
{
    const int held = VECTORS ? VECTORS : 1;
    int lane = threadIdx.x % LANES;
    int64_t s = (int64_t)block * (THREADS / LANES) + threadIdx.x / LANES;
    if (s >= j.to.span)
        return; /* whole warps: LANES is a warp, or the block one row */
    const float *row = j.from.data + s * j.from.span_stride;
    int64_t stride = j.from.depth_stride, depth = j.to.depth;
    auto load = [&](int64_t k) {
        return load4<HOW>(row + k * stride, stride, depth - k);
    };
    float4 v[held];
    unsigned largest = 0;
    if (VECTORS) {
#pragma unroll
        for (int i = 0; i < held; i++)
            v[i] = load((i * LANES + lane) * 4);
#pragma unroll
        for (int i = 0; i < held; i++)
            largest = max(largest, magnitude4(v[i]));
    } else {
#pragma unroll 8
        for (int64_t k = lane * 4; k < depth; k += LANES * 4)
            largest = max(largest, magnitude4(load(k)));
    }
    largest = row_largest<LANES>(largest, fold);
    int exponent = exponent_for(largest), lost[4] = {};
    scale f = scale_by(exponent), all[4] = {f, f, f, f};
    tally seen = {0, 0};
    int64_t line = s * j.to.pitch;
    if (VECTORS) {
#pragma unroll
        for (int i = 0; i < held; i++)
            if ((i * LANES + lane) * 4 < j.to.pitch)
                cut_four(j.to, v[i], all, line + (i * LANES + lane) * 4, lost,
                         &seen);
    } else {
#pragma unroll 4
        for (int64_t k = lane * 4; k < j.to.pitch; k += LANES * 4)
            cut_four(j.to, load(k), all, line + k, lost, &seen);
    }
    note_row<LANES>(j, s, lane, exponent, lost[0] + lost[1] + lost[2] + lost[3],
                    facts_of(seen, largest), fold);
}

/* --- measuring and cutting ----------------------------------------------- */

enum { MEASURED = 128, MOST_SLICES = 64, LEAST_SLICE = 64 };
enum { CUT_SPAN = 128, ROWS_AT_ONCE = 4 };

/* What measure folds over a block's warps: maxima of columns, or rows. */
typedef union measure_memory {
    unsigned columns[WARPS][MEASURED];
    row_fold row;
} measure_memory;

/* --- measure: maxima, and rows split whole ------------------------------ */

/* The largest magnitude of each of 128 columns over a slice of the depth. */
template <reach HOW>
__device__ __forceinline__ void measure_columns(const job &j, unsigned block,
                                                measure_memory &shared)
{
    unsigned(*largest)[MEASURED] = shared.columns;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned across = (unsigned)((j.to.span + MEASURED - 1) / MEASURED);
    int64_t first = (int64_t)(block % across) * MEASURED;
    int slice = (int)(block / across);
    int64_t s = first + lane * 4, left = j.to.span - s;
    int64_t end = min(j.to.depth, (int64_t)(slice + 1) * j.slice_rows);
    const float *column = j.from.data + s * j.from.span_stride;
    unsigned x = 0, y = 0, z = 0, w = 0;
#pragma unroll 8
    for (int64_t k = (int64_t)slice * j.slice_rows + warp; k < end;
         k += WARPS) {
        float4 v = load4<HOW>(column + k * j.from.depth_stride,
                              j.from.span_stride, left);
        x = max(x, magnitude(v.x));
        y = max(y, magnitude(v.y));
        z = max(z, magnitude(v.z));
        w = max(w, magnitude(v.w));
    }
    *(uint4 *)&largest[warp][lane * 4] = make_uint4(x, y, z, w);
    __syncthreads(); /* all warps' maxima are there */
    s = first + threadIdx.x;
    if (threadIdx.x < MEASURED && slice == 0 && read_with(s) < j.to.span)
        j.to.marks[s] = 0;
    if (threadIdx.x >= MEASURED || s >= j.to.span)
        return;
    for (int i = 1; i < WARPS; i++)
        largest[0][threadIdx.x] =
            max(largest[0][threadIdx.x], largest[i][threadIdx.x]);
    j.maxima[slice * j.to.span + s] = largest[0][threadIdx.x];
}

/* The largest magnitude of each of eight rows, a warp a row. */
template <reach HOW>
__device__ __forceinline__ void measure_rows(const job &j, unsigned block)
{
    int lane = threadIdx.x % 32;
    int64_t s = (int64_t)block * WARPS + threadIdx.x / 32;
    if (lane == 0 && read_with(s) < j.to.span)
        j.to.marks[s] = 0;
    if (s >= j.to.span)
        return;
    const float *row = j.from.data + s * j.from.span_stride;
    unsigned largest = 0;
#pragma unroll 8
    for (int64_t k = lane * 4; k < j.to.depth; k += 128)
        largest =
            max(largest,
                magnitude4(load4<HOW>(row + k * j.from.depth_stride,
                                      j.from.depth_stride, j.to.depth - k)));
    largest = __reduce_max_sync(~0u, largest);
    if (lane == 0)
        j.maxima[s] = largest;
}

/* An operand's own part of measure. The two operands have code of their own,
 * so that their parameters are constants at fixed places. */
template <int LANES, int VECTORS, reach HOW>
__device__ __forceinline__ void measure_a(const job &j, unsigned block,
                                          measure_memory &shared)
{
    if (j.how == ROWS)
        split_rows<LANES, VECTORS, HOW>(j, block, &shared.row);
    else
        measure_columns<HOW>(j, block, shared);
}

template <reach HOW>
__device__ __forceinline__ void measure_b(const job &j, unsigned block,
                                          measure_memory &shared)
{
    if (j.measure_rows)
        measure_rows<HOW>(j, block);
    else
        measure_columns<HOW>(j, block, shared);
}

/* b's blocks come first: cut has more to do for them. */
template <int LANES, int VECTORS>
__global__ void __launch_bounds__(THREADS)
    measure(const __grid_constant__ job a, const __grid_constant__ job b)
{
    __shared__ measure_memory shared;
    let_next_start();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        if (a.how != READY)
            *a.to.facts = 0;
        if (b.how != READY)
            *b.to.facts = 0;
    }
    unsigned block = blockIdx.x - b.measure_blocks;
    if (blockIdx.x < b.measure_blocks) {
        if (b.from.how == ALIGNED)
            measure_b<ALIGNED>(b, blockIdx.x, shared);
        else if (b.from.how == ACROSS)
            measure_b<ACROSS>(b, blockIdx.x, shared);
        else
            measure_b<APART>(b, blockIdx.x, shared);
    } else if (a.from.how == ALIGNED) {
        measure_a<LANES, VECTORS, ALIGNED>(a, block, shared);
    } else if (a.from.how == ACROSS) {
        measure_a<LANES, VECTORS, ACROSS>(a, block, shared);
    } else {
        measure_a<LANES, VECTORS, APART>(a, block, shared);
    }
}

/* --- cut: what has been measured ---------------------------------------- */

/* What a block of cut keeps: of its part of the span, exponents and how many
 * elements lost bits; whether NaN or Inf was met; and the tile it turns. */
typedef struct cut_memory {
    int exponents[CUT_SPAN], losses[CUT_SPAN];
    unsigned special;
    float tile[TURN][TURN + 1];
} cut_memory;

/* The block's COUNT scales from `first` on, into shared memory. */
template <int COUNT>
__device__ __forceinline__ void find_scales(const job &j, int64_t first,
                                            bool writes, int *exponents,
                                            unsigned *special)
{
    for (int i = threadIdx.x; i < COUNT; i += THREADS) {
        unsigned largest = 0;
        int64_t s = first + i;
#pragma unroll 16
        for (int slice = 0; slice < j.slices; slice++)
            if (s < j.to.span)
                largest = max(largest, __ldg(j.maxima + slice * j.to.span + s));
        exponents[i] = exponent_for(largest);
        if (largest >= 0x7f800000u)
            atomicOr(special, FACT_SPECIAL);
        if (writes && read_with(s) < j.to.span)
            atomicAdd(&j.to.marks[s], (unsigned)(exponents[i] + MARK_ZERO));
    }
}

__device__ __forceinline__ void note_facts(const job &j, tally seen,
                                           unsigned *special)
{
    unsigned facts = __reduce_or_sync(~0u, facts_of(seen, 0));
    if (threadIdx.x == 0)
        facts |= *special;
    if (threadIdx.x % 32 == 0 && facts)
        atomicOr(j.to.facts, facts);
}

/* A lane's four columns of ROWS_AT_ONCE rows, WARPS rows apart. */
typedef struct batch {
    float4 rows[ROWS_AT_ONCE];
} batch;

template <reach HOW>
__device__ __forceinline__ batch load_batch(const job &j, int64_t s, int64_t k,
                                            int64_t end)
{
    batch b;
    int64_t stride = j.from.span_stride, step = WARPS * j.from.depth_stride;
    const float *p = j.from.data + s * stride + k * j.from.depth_stride;
#pragma unroll
    for (int n = 0; n < ROWS_AT_ONCE; n++)
        b.rows[n] = load4<HOW>(p + n * step, stride,
                               k + n * WARPS < end ? j.to.span - s : 0);
    return b;
}

/* Splits 128 columns over cut_rows rows: b as it lies. The first rows are
 * asked for before the maxima are there. */
template <reach HOW>
__device__ __forceinline__ void cut_columns(const job &j, unsigned block,
                                            cut_memory &shared)
{
    int *exponents = shared.exponents, *losses = shared.losses;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned across = (unsigned)((j.to.span + CUT_SPAN - 1) / CUT_SPAN);
    int64_t first = (int64_t)(block % across) * CUT_SPAN;
    int64_t slice = block / across, s = first + lane * 4;
    int64_t k = slice * j.cut_rows + warp;
    int64_t end = min(j.to.depth, (slice + 1) * j.cut_rows);
    batch now = load_batch<HOW>(j, s, k, end);
    if (threadIdx.x < CUT_SPAN)
        losses[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        shared.special = 0;
    wait_for_previous();
    __syncthreads(); /* special is zero */
    find_scales<CUT_SPAN>(j, first, slice == 0, exponents, &shared.special);
    __syncthreads(); /* exponents are there */
    scale f[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        f[i] = scale_by(exponents[lane * 4 + i]);
    tally seen = {0, 0};
    int lost[4] = {};
    while (k < end) {
#pragma unroll
        for (int n = 0; n < ROWS_AT_ONCE; n++)
            if (k + n * WARPS < end && s < j.to.pitch)
                cut_four(j.to, now.rows[n], f, (k + n * WARPS) * j.to.pitch + s,
                         lost, &seen);
        k += ROWS_AT_ONCE * WARPS;
        if (k < end)
            now = load_batch<HOW>(j, s, k, end);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (lost[i])
            atomicAdd(&losses[lane * 4 + i], lost[i]);
    __syncthreads(); /* the block's losses are counted */
    s = first + threadIdx.x;
    if (threadIdx.x < CUT_SPAN && s < j.to.span && losses[threadIdx.x])
        atomicAdd(&j.to.marks[s], losses[threadIdx.x] * MARK_LOSS);
    note_facts(j, seen, &shared.special);
}

/* One 64 x 64 tile through shared memory: read along the one dimension,
 * written along the other. tile is [depth][span]. */
template <reach HOW>
__device__ __forceinline__ void read_tile(const job &j, int64_t s0, int64_t k0,
                                          float (*tile)[TURN + 1])
{
    int fast = threadIdx.x % 16 * 4, slow = threadIdx.x / 16;
    for (int line = slow; line < TURN; line += THREADS / 16) {
        int64_t s = s0 + (j.to.along_k ? fast : line);
        int64_t k = k0 + (j.to.along_k ? line : fast);
        bool in = j.to.along_k ? k < j.to.depth : s < j.to.span;
        int64_t left = j.to.along_k ? j.to.span - s : j.to.depth - k;
        int64_t step = j.to.along_k ? j.from.span_stride : j.from.depth_stride;
        float4 v = load4<HOW>(j.from.data + s * j.from.span_stride +
                                  k * j.from.depth_stride,
                              step, in ? left : 0);
        float x[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (j.to.along_k)
                tile[line][fast + i] = x[i];
            else
                tile[fast + i][line] = x[i];
        }
    }
}

__device__ __forceinline__ void write_tile(const job &j, int64_t s0, int64_t k0,
                                           float (*tile)[TURN + 1],
                                           const int *exponents, int *losses,
                                           tally *seen)
{
    int fast = threadIdx.x % 8 * 8, slow = threadIdx.x / 8;
    for (int line = slow; line < TURN; line += THREADS / 8) {
        int64_t at = (j.to.along_k ? s0 : k0) + line;
        int64_t along = (j.to.along_k ? k0 : s0) + fast;
        if (at >= j.to.lines || along >= j.to.pitch)
            continue;
        unsigned hi[4], lo[4];
#pragma unroll
        for (int i = 0; i < 8; i += 2) {
            int s0 = j.to.along_k ? line : fast + i;
            int s1 = j.to.along_k ? line : fast + i + 1;
            int k = j.to.along_k ? fast + i : line, next = j.to.along_k;
            cut_pair c =
                cut(tile[k][s0], tile[k + next][s1], scale_by(exponents[s0]),
                    scale_by(exponents[s1]), seen);
            hi[i / 2] = c.hi;
            lo[i / 2] = c.lo;
            int x = 0, y = 0;
            if (is_small(c))
                count_lost(c, &x, &y);
            if (x)
                atomicAdd(&losses[s0], 1);
            if (y)
                atomicAdd(&losses[s1], 1);
            seen->fractional |=
                is_fractional(tile[k][s0]) | is_fractional(tile[k + next][s1]);
        }
        __half *to = j.to.planes + at * j.to.pitch + along;
        __stcg((uint4 *)to, make_uint4(hi[0], hi[1], hi[2], hi[3]));
        __stcg((uint4 *)(to + j.to.plane),
               make_uint4(lo[0], lo[1], lo[2], lo[3]));
    }
}

/* Splits 64 of the span over cut_rows of the depth, turned. */
template <reach HOW>
__device__ __forceinline__ void cut_turned(const job &j, unsigned block,
                                           cut_memory &shared)
{
    int *exponents = shared.exponents, *losses = shared.losses;
    float(*tile)[TURN + 1] = shared.tile;
    unsigned across = (unsigned)((j.to.span + TURN - 1) / TURN);
    int64_t s0 = (int64_t)(block % across) * TURN, slice = block / across;
    int64_t end = min(j.to.depth, (slice + 1) * j.cut_rows);
    wait_for_previous();
    if (threadIdx.x < TURN)
        losses[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        shared.special = 0;
    __syncthreads(); /* special is zero */
    find_scales<TURN>(j, s0, slice == 0, exponents, &shared.special);
    tally seen = {0, 0};
    for (int64_t k0 = slice * j.cut_rows; k0 < end; k0 += TURN) {
        __syncthreads(); /* the tile is free, exponents are there */
        read_tile<HOW>(j, s0, k0, tile);
        __syncthreads(); /* the tile is filled */
        write_tile(j, s0, k0, tile, exponents, losses, &seen);
    }
    __syncthreads(); /* the block's losses are counted */
    int64_t s = s0 + threadIdx.x;
    if (threadIdx.x < TURN && s < j.to.span && losses[threadIdx.x])
        atomicAdd(&j.to.marks[s], losses[threadIdx.x] * MARK_LOSS);
    note_facts(j, seen, &shared.special);
}

/* What rows have shown, together. */
__device__ void gather_facts(const job &j)
{
    wait_for_previous();
    unsigned facts = 0;
    for (int64_t s = threadIdx.x; s < j.to.span; s += THREADS)
        facts |= j.to.flags[s];
    facts = __reduce_or_sync(~0u, facts);
    if (threadIdx.x % 32 == 0 && facts)
        atomicOr(j.to.facts, facts);
}

template <bool TURNS, reach HOW>
__device__ __forceinline__ void cut_b(const job &j, unsigned block,
                                      cut_memory &shared)
{
    if (!TURNS || j.how == COLUMNS)
        cut_columns<HOW>(j, block, shared);
    else
        cut_turned<HOW>(j, block, shared);
}

/* Without TURNS, for operands that lie as their planes do and have neighbours
 * in memory: the usual case, in fewer registers. */
template <bool TURNS>
__global__ void __launch_bounds__(THREADS, TURNS ? 2 : 3)
    cut_measured(const __grid_constant__ job a, const __grid_constant__ job b)
{
    __shared__ cut_memory shared;
    let_next_start();
    unsigned block = blockIdx.x - a.cut_blocks;
    if (blockIdx.x >= a.cut_blocks) {
        if (b.from.how == ALIGNED)
            cut_b<TURNS, ALIGNED>(b, block, shared);
        else if (!TURNS || b.from.how == ACROSS)
            cut_b<TURNS, ACROSS>(b, block, shared);
        else
            cut_b<TURNS, APART>(b, block, shared);
    } else if (!TURNS || a.how == ROWS) {
        gather_facts(a);
    } else if (a.from.how == ALIGNED) {
        cut_turned<ALIGNED>(a, blockIdx.x, shared);
    } else if (a.from.how == ACROSS) {
        cut_turned<ACROSS>(a, blockIdx.x, shared);
    } else {
        cut_turned<APART>(a, blockIdx.x, shared);
    }
}

/* --- the host's side ---------------------------------------------------- */

static int64_t round_up(int64_t x, int64_t to)
{
    return ceil_div(x, to) * to;
}

split_planes gpu_cuda_planes_at(void *block, int64_t span, int64_t depth,
                                int along_k)
{
    split_planes p = {};
    p.span = span;
    p.depth = depth;
    p.along_k = along_k;
    p.lines = along_k ? span : depth;
    p.length = along_k ? depth : span;
    p.pitch = round_up(p.length, TURN);
    p.plane = round_up(p.lines * p.pitch, ALIGN);
    int64_t padded = round_up(span, ALIGN);
    p.planes = (__half *)block;
    p.marks = (unsigned *)(p.planes + 2 * p.plane);
    p.facts = p.marks + padded;
    p.flags = (unsigned char *)(p.facts + ALIGN / sizeof(unsigned));
    return p;
}

size_t gpu_cuda_planes_bytes(int64_t span, int64_t depth, int along_k)
{
    split_planes p = gpu_cuda_planes_at(NULL, span, depth, along_k);
    return (size_t)((uintptr_t)p.flags) + (size_t)round_up(span, ALIGN);
}

static int slices_for(const cuda_device *d, int64_t span, int64_t depth)
{
    int64_t wanted = ceil_div((int64_t)d->sms * 3, ceil_div(span, MEASURED));
    int64_t most = ceil_div(depth, LEAST_SLICE);
    return (int)larger(1, smaller(smaller(wanted, most), MOST_SLICES));
}

gpu_status gpu_cuda_split_scratch(cuda_device *d, const gpu_gemm *p,
                                  size_t *bytes)
{
    int64_t m = p->c.rows, n = p->c.cols, k = p->a.cols;
    size_t together;
    TRY(gpu_cuda_together_bytes(d, n, k, &together));
    *bytes = (size_t)round_up(slices_for(d, m, k) * m * 4, ALIGN) +
             (size_t)round_up(slices_for(d, n, k) * n * 4, ALIGN) + together;
    return GPU_OK;
}

static method choose_method(const split_planes *to, int from_along_k)
{
    if (to->is_kept)
        return READY;
    if (to->along_k != from_along_k)
        return TURNED;
    return to->along_k ? ROWS : COLUMNS;
}

/* Blocks of cut: enough of them to fill the device, with a row of the depth
 * for each warp and load on its way, or whole tiles where they are turned. */
static void plan_cut(const cuda_device *d, job *j, int64_t width)
{
    int64_t across = ceil_div(j->to.span, width);
    int64_t wanted = ceil_div((int64_t)d->sms * 4, across);
    int64_t unit = j->how == TURNED ? (int)TURN : ROWS_AT_ONCE * (int)WARPS;
    int64_t rows = round_up(ceil_div(j->to.depth, wanted), unit);
    j->cut_rows = (int)smaller(rows, 1024);
    j->cut_blocks = (unsigned)(across * ceil_div(j->to.depth, j->cut_rows));
}

static job plan_job(const cuda_device *d, const gpu_view *v,
                    const split_planes *to, unsigned *maxima)
{
    int64_t span_stride = to->along_k ? v->row_stride : v->col_stride;
    int64_t depth_stride = to->along_k ? v->col_stride : v->row_stride;
    int from_along_k = stride_size(depth_stride) < stride_size(span_stride);
    if (span_stride == depth_stride)
        from_along_k = to->along_k;
    int64_t near = from_along_k ? depth_stride : span_stride;
    int64_t far = from_along_k ? span_stride : depth_stride;
    job j = {};
    j.from = {(const float *)v->data, span_stride, depth_stride, APART};
    if (near == 1)
        j.from.how = far % 4 == 0 && is_aligned(v->data) ? ALIGNED : ACROSS;
    j.to = *to;
    j.maxima = maxima;
    j.how = choose_method(to, from_along_k);
    j.measure_rows = from_along_k;
    j.slices = from_along_k ? 1 : slices_for(d, to->span, to->depth);
    j.slice_rows = (int)ceil_div(to->depth, j.slices);
    if (j.how == READY)
        return j;
    j.measure_blocks = (unsigned)(ceil_div(to->span, MEASURED) * j.slices);
    if (from_along_k)
        j.measure_blocks = (unsigned)ceil_div(to->span, WARPS);
    if (j.how == ROWS)
        j.cut_blocks = 1;
    else
        plan_cut(d, &j, j.how == COLUMNS ? (int)CUT_SPAN : (int)TURN);
    return j;
}

template <int LANES, int VECTORS>
static gpu_status launch_measure(cuda_device *d, const job *a, const job *b)
{
    job rows = *a;
    if (a->how == ROWS)
        rows.measure_blocks = (unsigned)ceil_div(a->to.span, THREADS / LANES);
    unsigned blocks = rows.measure_blocks + b->measure_blocks;
    static int prepared;
    TRY(keep_division(d, (const void *)measure<LANES, VECTORS>, 0, &prepared));
    measure<LANES, VECTORS><<<blocks, THREADS, 0, d->stream>>>(rows, *b);
    LAUNCHED(d);
    return GPU_OK;
}

static gpu_status launch_for_depth(cuda_device *d, const job *a, const job *b)
{
    int64_t depth = a->to.pitch;
    if (a->how != ROWS || depth <= 512)
        return launch_measure<32, 4>(d, a, b);
    if (depth <= 2048)
        return launch_measure<256, 2>(d, a, b);
    if (depth <= 4096)
        return launch_measure<256, 4>(d, a, b);
    if (depth <= 5120)
        return launch_measure<256, 5>(d, a, b);
    if (depth <= 8192)
        return launch_measure<256, 8>(d, a, b);
    if (depth <= 16384)
        return launch_measure<256, 16>(d, a, b);
    return launch_measure<256, 0>(d, a, b);
}

template <bool TURNS>
static gpu_status launch_cut(cuda_device *d, const job &a, const job &b)
{
    static int prepared;
    TRY(keep_division(d, (const void *)cut_measured<TURNS>, 0, &prepared));
    return launch_behind(d, cut_measured<TURNS>,
                         dim3(a.cut_blocks + b.cut_blocks), THREADS, 0, 1, a,
                         b);
}

gpu_status gpu_cuda_split(cuda_device *d, const gpu_gemm *p,
                          const split_planes *a, const split_planes *b,
                          void *scratch, unsigned *tickets)
{
    unsigned *a_maxima = (unsigned *)scratch;
    unsigned *b_maxima =
        a_maxima + round_up(slices_for(d, a->span, a->depth) * a->span, 64);
    job x = plan_job(d, &p->a, a, a_maxima);
    job y = plan_job(d, &p->b, b, b_maxima);
    if (x.how == READY && y.how == READY)
        return GPU_OK;
    int done;
    TRY(gpu_cuda_split_together(d, &x, &y, tickets, &done));
    if (done)
        return GPU_OK;
    TRY(launch_for_depth(d, &x, &y));
    if (x.how == TURNED || y.how == TURNED || y.from.how == APART)
        return launch_cut<true>(d, x, y);
    return launch_cut<false>(d, x, y);
}
