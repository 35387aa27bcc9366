/* split16's second part on Hopper: three FP16 products with FP32's accuracy.
 *
 * A persistent grid of blocks with one warpgroup that feeds a ring of slots
 * in shared memory by the tensor copy engine and two that multiply, 64 rows
 * of c each. A slot holds 128 x 64 of both planes of one operand. Products go
 * into a chunk accumulator, small ones first, and every 64 or 32 of k that is
 * added to a master: wgmma rounds toward zero, so a long chain in it would
 * drift. Tiles are 128 x 256 by pairs of blocks that share b, or 128 x 128;
 * where tiles are few, blocks share one and take slices of k, which are then
 * added in a fixed order.
 *
 * Limited by power first (the tensor cores reach 95 % of their cycles), then
 * by bytes: a pair moves 32 KiB from L2 for each 2.1 MFLOP. Needs sm_90a. */
#include "split16_tile.h"
#include "split_certify.h"

constexpr int SLOT = 2 * PLANE, SLOTS = 6; /* bytes */
[[maybe_unused]] constexpr int FEED = 128, THREADS = 384;
[[maybe_unused]] constexpr int FEED_REGISTERS = 40, MULTIPLY_REGISTERS = 232;
constexpr int SHARED = SLOTS * SLOT + 16 * SLOTS + WARPS * STAGE + 1024;
[[maybe_unused]] constexpr int GROUP =
    8; /* rows of tiles that go column by column */

/* HALVES: 128 columns each of a block's tile. CHUNK: of k, added to the
 * master at once. PAIR: blocks of a cluster, one above the other, share b. */
template <int HALVES_, int CHUNK_, int PAIR_> struct config {
    static constexpr int HALVES = HALVES_, CHUNK = CHUNK_, PAIR = PAIR_;
};

typedef struct plan {
    int steps;        /* of 64 along k */
    int down, across; /* tiles, of a pair where there are pairs */
    int slices, slice_steps;
    unsigned *tickets; /* one a tile, zero between launches */
} plan;

/* Shared memory and who this block is. */
typedef struct block {
    uint32_t slots, full, empty, stages; /* addresses */
    uint32_t rank;                       /* in the pair */
    int first, last;                     /* steps of k */
} block;

/* The ring's next slot and the phase of its barriers. */
typedef struct cursor {
    int slot;
    uint32_t phase;
} cursor;

__device__ __forceinline__ int advance(cursor *c)
{
    int slot = c->slot;
    if (++c->slot == SLOTS) {
        c->slot = 0;
        c->phase ^= 1;
    }
    return slot;
}

/* The first row and column of tile t. */
template <class G>
__device__ __forceinline__ void tile_corner(const plan &p, const block &b,
                                            int t, int *row, int *col)
{
    int per = GROUP * p.across, group = t / per, first = group * GROUP;
    int rows = min(GROUP, p.down - first), rest = t - group * per;
    *row = ((first + rest % rows) * G::PAIR + (int)b.rank) * SIDE;
    *col = rest / rows * SIDE * G::HALVES;
}

/* --- feeding ------------------------------------------------------------ */

typedef struct maps {
    CUtensorMap a;    /* k, rows, planes: boxes of 64 x 128 x 2 */
    CUtensorMap a_hi; /* the same, boxes of one plane */
    CUtensorMap b; /* 64 columns, k, groups of them, planes: 64 x 64 x 2 x 1 */
} maps;

template <class G>
__device__ __forceinline__ void feed_b(const maps &m, const block &b,
                                       uint32_t to, uint32_t full, int k,
                                       int col, int planes)
{
    if (G::PAIR == 1) {
        copy_box4(to, &m.b, full, 0, k, col / 64, 0);
        if (planes == 2)
            copy_box4(to + PLANE, &m.b, full, 0, k, col / 64, 1);
    } else if ((int)b.rank < planes) { /* each block brings both a plane */
        multicast_box4(to + b.rank * PLANE, &m.b, full, 0, k, col / 64,
                       (int)b.rank, 3);
    }
}

/* Brings, for each step, the left half of b, then a, then b's right half. */
template <class G>
__device__ __forceinline__ void feed(const maps &m, const plan &p,
                                     const block &b, int planes, int first,
                                     int stride)
{
    cursor c = {0, 1};
    for (int t = first; t < p.down * p.across; t += stride) {
        int row, col;
        tile_corner<G>(p, b, t, &row, &col);
        for (int step = b.first; step < b.last; step++) {
#pragma unroll
            for (int part = 0; part <= G::HALVES; part++) {
                barrier_wait(b.empty + 8 * c.slot, c.phase);
                uint32_t full = b.full + 8 * c.slot;
                uint32_t to = b.slots + c.slot * SLOT;
                barrier_expect(full, planes * PLANE);
                if (part != 1) {
                    feed_b<G>(m, b, to, full, step * DEPTH,
                              col + (part ? SIDE : 0), planes);
                } else {
                    copy_box3(to, planes == 2 ? &m.a : &m.a_hi, full,
                              step * DEPTH, row, 0);
                }
                advance(&c);
            }
        }
    }
}

/* --- multiplying -------------------------------------------------------- */

#ifdef WGMMA
__device__ __forceinline__ void add_chunk(float (&master)[64],
                                          const float (&chunk)[64])
{
#pragma unroll
    for (int i = 0; i < 64; i++)
        master[i] += chunk[i];
}

/* One consumer's way through the ring. */
typedef struct consumer {
    uint32_t full, empty; /* barriers */
    uint32_t a, b;        /* low words of slot 0's descriptors */
    int thread;           /* in the warpgroup */
} consumer;

__device__ __forceinline__ int take(const consumer &w, cursor *c)
{
    barrier_wait(w.full + 8 * c->slot, c->phase);
    return advance(c);
}

/* The slot may be filled again, in both blocks of a pair. */
template <class G>
__device__ __forceinline__ void give(const consumer &w, int slot)
{
    if (G::PAIR > 1) {
        if (w.thread < G::PAIR)
            barrier_arrive_at(w.empty + 8 * slot, w.thread);
    } else if (w.thread == 0) {
        barrier_arrive(w.empty + 8 * slot);
    }
}

/* 64 x 256: while this warpgroup adds a chunk, the other one multiplies. */
template <class G, int PRODUCTS>
__device__ __forceinline__ void
multiply_wide(float (&master)[2][64], const consumer &w, cursor *c, int steps)
{
    const int parts = DEPTH / G::CHUNK, per = 4 / parts;
    float chunk[64];
    for (int step = 0; step < steps; step++) {
        int b = take(w, c), a = take(w, c);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            if (half == 1)
                b = take(w, c);
#pragma unroll
            for (int part = 0; part < parts; part++) {
                uint32_t x = w.a + a * (SLOT >> 4), y = w.b + b * (SLOT >> 4);
                wgmma_fence();
                if (part == 0)
                    multiply_chunk<PRODUCTS, ALONG_K, ALONG_SPAN, 0, per>(chunk,
                                                                          x, y);
                else
                    multiply_chunk<PRODUCTS, ALONG_K, ALONG_SPAN, 4 - per, 4>(
                        chunk, x, y);
                wgmma_commit();
                wgmma_wait<0>(chunk);
                if (part == parts - 1) {
                    give<G>(w, b);
                    if (half == 1)
                        give<G>(w, a);
                }
                add_chunk(master[half], chunk);
            }
        }
    }
}

/* 64 x 128 with two chunk accumulators: one is added while the other fills.
 * Even chunks go to the first, odd ones to the second. */
template <class G, int PRODUCTS>
__device__ __forceinline__ void
multiply_narrow(float (&master)[1][64], const consumer &w, cursor *c, int steps)
{
    const int parts = DEPTH / G::CHUNK, per = 4 / parts;
    float even[64], odd[64];
    int a[2], b[2];
    auto issue_even = [&]() {
        b[0] = take(w, c);
        a[0] = take(w, c);
        wgmma_fence();
        multiply_chunk<PRODUCTS, ALONG_K, ALONG_SPAN, 0, per>(
            even, w.a + a[0] * (SLOT >> 4), w.b + b[0] * (SLOT >> 4));
        wgmma_commit();
    };
    auto issue_odd = [&]() {
        b[1] = parts == 1 ? take(w, c) : b[0];
        a[1] = parts == 1 ? take(w, c) : a[0];
        wgmma_fence();
        multiply_chunk<PRODUCTS, ALONG_K, ALONG_SPAN, 4 - per, 4>(
            odd, w.a + a[1] * (SLOT >> 4), w.b + b[1] * (SLOT >> 4));
        wgmma_commit();
    };
    auto fold_even = [&]() {
        if (parts == 1) {
            give<G>(w, b[0]);
            give<G>(w, a[0]);
        }
        add_chunk(master[0], even);
    };
    auto fold_odd = [&]() {
        give<G>(w, b[1]);
        give<G>(w, a[1]);
        add_chunk(master[0], odd);
    };
    int chunks = steps * parts, i = 1;
    issue_even();
    for (; i + 1 < chunks; i += 2) {
        issue_odd();
        wgmma_wait<1>(even);
        fold_even();
        issue_even();
        wgmma_wait<1>(odd);
        fold_odd();
    }
    if (i < chunks) {
        issue_odd();
        wgmma_wait<1>(even);
        fold_even();
        wgmma_wait<0>(odd);
        fold_odd();
    } else {
        wgmma_wait<0>(even);
        fold_even();
    }
}

template <class G, int PRODUCTS>
__device__ __forceinline__ void multiply_tile(float (&master)[G::HALVES][64],
                                              const consumer &w, cursor *c,
                                              int steps)
{
    if constexpr (G::HALVES == 2)
        multiply_wide<G, PRODUCTS>(master, w, c, steps);
    else
        multiply_narrow<G, PRODUCTS>(master, w, c, steps);
}
#endif

/* --- results ------------------------------------------------------------ */

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

/* The marks of this thread's columns of one half: 8 j and 8 j + 1 from col on.
 * All are asked for before any is waited for, and before anything is stored
 * that they might be thought to depend on. */
__device__ __forceinline__ void load_marks(const split_product &p, int col,
                                           uint2 (&marks)[16])
{
    int last = (int)(p.n - 1) & ~1;
#pragma unroll
    for (int j = 0; j < 16; j++)
        asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];"
                     : "=r"(marks[j].x), "=r"(marks[j].y)
                     : "l"(p.b.marks + min(col + 8 * j, last)));
}

__device__ __forceinline__ unsigned load_row_mark(const split_product &p,
                                                  int row)
{
    return __ldg(p.a.marks + min(row, (int)(p.m - 1)));
}

/* Which of a thread's 64 results of one half are uncertain: bits. Element
 * 4 j + e lies in column 8 j + e % 2, row 8 (e / 2). */
__device__ __forceinline__ uint64_t find_uncertain(const float (&sum)[64],
                                                   const uint2 (&marks)[16],
                                                   unsigned above,
                                                   unsigned below, float unit)
{
    float up = mark_losses(above) * unit, down = mark_losses(below) * unit;
    uint64_t found = 0;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        float left = mark_losses(marks[j].x) * unit;
        float right = mark_losses(marks[j].y) * unit;
        unsigned bits = (fabsf(sum[4 * j]) < up + left ? 1 : 0) |
                        (fabsf(sum[4 * j + 1]) < up + right ? 2 : 0) |
                        (fabsf(sum[4 * j + 2]) < down + left ? 4 : 0) |
                        (fabsf(sum[4 * j + 3]) < down + right ? 8 : 0);
        found |= (uint64_t)bits << (4 * j);
    }
    return found;
}

/* Writes one half of this warpgroup's 64 rows. */
__device__ __forceinline__ void write_half(const split_product &p,
                                           const float (&sum)[64], int row,
                                           int col, uint32_t stage, int lane)
{
    int i = row + lane / 4, j0 = col + lane % 4 * 2;
    uint2 marks[16];
    load_marks(p, j0, marks);
    unsigned upper = load_row_mark(p, i), lower = load_row_mark(p, i + 8);
    uint64_t uncertain = find_uncertain(sum, marks, upper, lower, p.unit);
    for (; uncertain; uncertain &= uncertain - 1) {
        int e = __ffsll((long long)uncertain) - 1;
        int down = i + (e & 2 ? 8 : 0), across = j0 + e / 4 * 8 + e % 2;
        if (down < p.m && across < p.n)
            note_uncertain(p, down, across);
    }
    undo above = undo_scale(upper), below = undo_scale(lower);
    result to = result_of(p);
    uint32_t mine = stage + lane / 4 * STAGE_ROW + lane % 4 * 8;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        undo left = undo_scale(marks[j].x), right = undo_scale(marks[j].y);
        uint32_t at = mine + j % 4 * 32;
        stage_pair(at, p.alpha * undone(sum[4 * j], above, left),
                   p.alpha * undone(sum[4 * j + 1], above, right));
        stage_pair(at + 8 * STAGE_ROW,
                   p.alpha * undone(sum[4 * j + 2], below, left),
                   p.alpha * undone(sum[4 * j + 3], below, right));
        if (j % 4 == 3) {
            __syncwarp(); /* 32 columns are staged */
            write_stage(to, stage, row, col + (j - 3) * 8, lane);
            __syncwarp(); /* the stage is free */
        }
    }
}

/* --- slices of k -------------------------------------------------------- */

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
    c.first = col;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        unsigned mark = __ldg(p.b.marks + min(col + e, (int)p.n - 1));
        c.least[e] = mark_losses(mark) * p.unit;
        c.scale[e] = undo_scale(mark);
    }
    return c;
}

/* Four sums of row i are scaled back and written. */
__device__ __forceinline__ void write_row(const split_product &p, float4 sum,
                                          int i, unsigned mark,
                                          const four_columns &c)
{
    float x[4] = {sum.x, sum.y, sum.z, sum.w};
    float least = mark_losses(mark) * p.unit;
    undo row = undo_scale(mark);
#pragma unroll
    for (int e = 0; e < 4; e++) {
        if (c.first + e < p.n && fabsf(x[e]) < least + c.least[e])
            note_uncertain(p, i, c.first + e);
        x[e] = p.alpha * undone(x[e], row, c.scale[e]);
    }
    result to = result_of(p);
    if (is_wide(to) && c.first + 4 <= p.n) {
        write_four(to, i, c.first, make_float4(x[0], x[1], x[2], x[3]));
        return;
    }
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (c.first + e < p.n)
            write_one(to, i, c.first + e, x[e]);
}

/* Adds the slices of this block's share of the tile's rows, four at once a
 * warp: their loads must not wait for each other. */
__device__ __forceinline__ void join_slices(const split_product &p,
                                            const plan &q, int tile, int slice,
                                            int row, const four_columns &c,
                                            int thread)
{
    const int many = 4;
    const float *partial =
        p.partial + (int64_t)tile * q.slices * SIDE * SIDE + thread % 32 * 4;
    int first = slice * SIDE / q.slices, end = (slice + 1) * SIDE / q.slices;
    for (int r = first + thread / 32; r < end; r += many * WARPS) {
        float4 sum[many];
        unsigned mark[many];
#pragma unroll
        for (int n = 0; n < many; n++)
            mark[n] = load_row_mark(p, row + r + n * WARPS);
        add_slices(partial + r * SIDE, q.slices, min(end - r, many * WARPS),
                   sum);
#pragma unroll
        for (int n = 0; n < many; n++)
            if (r + n * WARPS < end && row + r + n * WARPS < p.m)
                write_row(p, sum[n], row + r + n * WARPS, mark[n], c);
    }
}

/* --- the kernel --------------------------------------------------------- */

template <class G>
__device__ __forceinline__ block prepare_block(const plan &p, uint8_t *raw)
{
    block b;
    b.slots = (shared_address(raw) + 1023) & ~1023u;
    b.full = b.slots + SLOTS * SLOT;
    b.empty = b.full + 8 * SLOTS;
    b.stages = b.empty + 8 * SLOTS;
    b.rank = G::PAIR > 1 ? cluster_rank() : 0;
    int slice = (int)blockIdx.x % p.slices;
    b.first = slice * p.slice_steps;
    b.last = min(p.steps, b.first + p.slice_steps);
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; i++) {
            barrier_init(b.full + 8 * i, 1);
            barrier_init(b.empty + 8 * i, 2 * G::PAIR);
        }
        barriers_ready();
    }
    if (G::PAIR > 1)
        cluster_sync(); /* the pair's barriers are ready */
    else
        __syncthreads(); /* barriers are ready */
    return b;
}

#ifdef WGMMA
template <class G>
__device__ __forceinline__ void consume(const split_product &p, const plan &q,
                                        const block &b, int products, int first,
                                        int stride)
{
    int thread = (int)threadIdx.x - FEED, group = thread / 128;
    int lane = thread % 32, warp = thread / 32;
    uint32_t rows = b.slots + group * PLANE / 2; /* 64 of a's 128 */
    consumer w = {b.full, b.empty, low_word(rows, ALONG_K_LOW),
                  low_word(b.slots, ALONG_SPAN_LOW), thread % 128};
    cursor c = {0, 0};
    for (int t = first; t < q.down * q.across; t += stride) {
        int row, col;
        tile_corner<G>(q, b, t, &row, &col);
        float sum[G::HALVES][64];
#pragma unroll
        for (int half = 0; half < G::HALVES; half++)
#pragma unroll
            for (int i = 0; i < 64; i++)
                sum[half][i] = 0;
        if (products == 3)
            multiply_tile<G, 3>(sum, w, &c, b.last - b.first);
        else if (products == 1)
            multiply_tile<G, 1>(sum, w, &c, b.last - b.first);
        else
            multiply_tile<G, 4>(sum, w, &c, b.last - b.first);
        if (G::HALVES == 1 && q.slices > 1) {
            int slice = (int)blockIdx.x % q.slices;
            four_columns c = find_columns(p, col + lane * 4);
            keep_partial(p.partial +
                             ((int64_t)t * q.slices + slice) * SIDE * SIDE,
                         sum[0], warp * 16, lane);
            meet(q.tickets + t, (unsigned)q.slices, thread);
            join_slices(p, q, t, slice, row, c, thread);
            continue;
        }
#pragma unroll
        for (int half = 0; half < G::HALVES; half++)
            write_half(p, sum[half], row + warp * 16, col + half * SIDE,
                       b.stages + warp * STAGE, lane);
    }
}
#endif

template <class G>
__global__ void __launch_bounds__(THREADS, 1)
    multiply_planes(const __grid_constant__ maps m,
                    const __grid_constant__ split_product p,
                    const __grid_constant__ plan q,
                    const __grid_constant__ product<float> g)
{
#ifdef WGMMA
    extern __shared__ uint8_t raw[];
    block b = prepare_block<G>(q, raw);
    wait_for_previous();
    int products = products_for(*p.a.facts, *p.b.facts);
    int share = G::PAIR * q.slices;
    int first = (int)blockIdx.x / share, stride = (int)gridDim.x / share;
    if (threadIdx.x < FEED) {
        give_registers<FEED_REGISTERS>();
        if (threadIdx.x == 0 && products > 0)
            feed<G>(m, q, b, products == 1 ? 1 : 2, first, stride);
    } else {
        take_registers<MULTIPLY_REGISTERS>();
        if (products > 0)
            consume<G>(p, q, b, products, first, stride);
        certify<1>(p, g, (int)threadIdx.x - FEED,
                   (double *)__cvta_shared_to_generic(b.slots));
    }
    if (G::PAIR > 1)
        cluster_sync(); /* the other block may still write here */
#endif
}

/* --- the host's side ---------------------------------------------------- */

typedef config<2, 64, 2> wide64;
typedef config<2, 32, 2> wide32;
typedef config<1, 64, 1> narrow64;
typedef config<1, 32, 1> narrow32;

typedef CUresult encode_function(CUtensorMap *, CUtensorMapDataType, cuuint32_t,
                                 void *, const cuuint64_t *, const cuuint64_t *,
                                 const cuuint32_t *, const cuuint32_t *,
                                 CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill);

static gpu_status find_encode(cuda_device *d, encode_function **out)
{
    static encode_function *found;
    if (!found) {
        cudaDriverEntryPointQueryResult result;
        CHECK(d, cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled",
                                                  (void **)&found, 12000,
                                                  cudaEnableDefault, &result));
        if (result != cudaDriverEntryPointSuccess || !found)
            return FAIL(GPU_UNSUPPORTED, "matmul: split16 needs a driver for "
                                         "CUDA 12 or newer");
    }
    *out = found;
    return GPU_OK;
}

static gpu_status encode(encode_function *fn, CUtensorMap *map, void *data,
                         int rank, const cuuint64_t *size,
                         const cuuint64_t *bytes, const cuuint32_t *box)
{
    const cuuint32_t ones[] = {1, 1, 1, 1};
    CUresult r =
        fn(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, (cuuint32_t)rank, data, size,
           bytes, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
           CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (r != CUDA_SUCCESS)
        return FAIL(GPU_INTERNAL, "matmul: no map of the planes (error %d)",
                    (int)r);
    return GPU_OK;
}

static gpu_status make_maps(cuda_device *d, const split_product *p, maps *out)
{
    encode_function *fn;
    TRY(find_encode(d, &fn));
    const split_planes *a = &p->a, *b = &p->b;
    const cuuint64_t a_size[] = {(cuuint64_t)p->k, (cuuint64_t)p->m, 2};
    const cuuint64_t a_bytes[] = {(cuuint64_t)a->pitch * 2,
                                  (cuuint64_t)a->plane * 2};
    const cuuint32_t a_box[] = {DEPTH, SIDE, 2}, hi_box[] = {DEPTH, SIDE, 1};
    TRY(encode(fn, &out->a, a->planes, 3, a_size, a_bytes, a_box));
    TRY(encode(fn, &out->a_hi, a->planes, 3, a_size, a_bytes, hi_box));
    const cuuint64_t b_size[] = {64, (cuuint64_t)p->k,
                                 (cuuint64_t)b->pitch / 64, 2};
    const cuuint64_t b_bytes[] = {(cuuint64_t)b->pitch * 2, 128,
                                  (cuuint64_t)b->plane * 2};
    const cuuint32_t b_box[] = {64, DEPTH, 2, 1};
    return encode(fn, &out->b, b->planes, 4, b_size, b_bytes, b_box);
}

/* How many slices of k a tile of 128 x 128 is cut into: a power of two for
 * which all blocks run at once and each has at least two steps. */
static int slices_for(const cuda_device *d, const split_product *p)
{
    int64_t tiles = ceil_div(p->m, SIDE) * ceil_div(p->n, SIDE);
    int64_t steps = ceil_div(p->k, DEPTH);
    int slices = 1;
    while (tiles * slices * 2 <= d->sms && steps >= slices * 4 && slices < 32)
        slices *= 2;
    return slices;
}

size_t gpu_cuda_split16_hopper_workspace(const cuda_device *d,
                                         const split_product *p)
{
    int slices = slices_for(d, p);
    int64_t tiles = ceil_div(p->m, SIDE) * ceil_div(p->n, SIDE);
    return slices == 1 ? 0
                       : (size_t)(tiles * slices) * SIDE * SIDE * sizeof(float);
}

template <class G>
static gpu_status launch(cuda_device *d, const split_product *p,
                         const gpu_gemm *g, int slices)
{
    maps m;
    TRY(make_maps(d, p, &m));
    plan q = {};
    q.steps = (int)ceil_div(p->k, DEPTH);
    q.down = (int)ceil_div(p->m, SIDE * G::PAIR);
    q.across = (int)ceil_div(p->n, SIDE * G::HALVES);
    q.slice_steps = (int)ceil_div(q.steps, slices);
    q.slices = (int)ceil_div(q.steps, q.slice_steps);
    q.tickets = d->tickets;
    static int prepared;
    if (prepared != d->ordinal + 1)
        CHECK(d, cudaFuncSetAttribute(
                     multiply_planes<G>,
                     cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    TRY(keep_division(d, (const void *)multiply_planes<G>, &prepared));
    int64_t tiles = (int64_t)q.down * q.across;
    int64_t most = d->sms / (G::PAIR * q.slices);
    int64_t blocks = smaller(tiles, most) * G::PAIR * q.slices;
    return launch_behind(d, multiply_planes<G>, dim3((unsigned)blocks), THREADS,
                         SHARED, G::PAIR, m, *p, q, typed_product<float>(g));
}

/* Rounds of tiles times the time of one: a pair's tile takes twice as long as
 * a square one, less a twentieth for the bytes it saves. */
static bool is_wide_better(const cuda_device *d, const split_product *p)
{
    int64_t pairs = ceil_div(p->m, 2 * SIDE) * ceil_div(p->n, 2 * SIDE);
    int64_t squares = ceil_div(p->m, SIDE) * ceil_div(p->n, SIDE);
    int64_t wide_rounds = ceil_div(pairs, d->sms / 2);
    int64_t square_rounds = ceil_div(squares, d->sms);
    return wide_rounds * 2 * 0.95 <= (double)square_rounds;
}

/* Additions into the master every 64 of k; every 32 where k is short or cut
 * into slices, as there the error of the products themselves shows more. */
gpu_status gpu_cuda_split16_hopper(cuda_device *d, const split_product *p,
                                   const gpu_gemm *g)
{
    int slices = slices_for(d, p);
    int is_short = p->k < 512;
    if (slices > 1)
        return launch<narrow32>(d, p, g, slices);
    if (is_wide_better(d, p))
        return is_short ? launch<wide32>(d, p, g, 1)
                        : launch<wide64>(d, p, g, 1);
    return is_short ? launch<narrow32>(d, p, g, 1)
                    : launch<narrow64>(d, p, g, 1);
}
