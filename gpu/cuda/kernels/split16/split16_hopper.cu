/* split16's second part on Hopper: three FP16 products with FP32's accuracy.
 *
 * A persistent grid of blocks with one warpgroup that feeds a ring of slots
 * in shared memory by the tensor copy engine and two that multiply, 64 rows
 * of c each. Products go into a chunk accumulator, small ones first, and every
 * 64 or 32 of k that is added to the sums: wgmma rounds toward zero, so a long
 * chain in it would drift. Tiles are 128 x 256 by pairs of blocks that share
 * b, or 128 x 128; where tiles are few, they are smaller (split16_small.h), or
 * k is cut into slices that meet in global memory and are added in a fixed
 * order. Blocks that have no tile left do c's edges (split16_edges.h).
 *
 * Limited by power first (the tensor cores reach 95 % of their cycles), then
 * by bytes: a pair moves 32 KiB from L2 for each 2.1 MFLOP. Needs sm_90a. */
#include "hopper.h"
#include "split16_edges.h"
#include "split16_small.h"
#include "split16_tile.h"
#include "split16_results.h"
#include "split_f64_product.h"

/* --- the ring ---------------------------------------------------------------
 * The way of a step of k through it: asked for by one warpgroup, multiplied by
 * two, given back. A slot holds 128 x 64 of both planes of one operand. */

constexpr int SLOT = 2 * PLANE, SLOTS = 6; /* bytes */

/* HALVES: 128 columns each of a block's tile. CHUNK: of k, added to the sums
 * at once. PAIR: blocks of a cluster, one above the other, share b. THEN: is
 * there an epilogue? ADDS: to c, and nothing is certified. TURNS: blocks take
 * turns, see find_tiles, and what is noted is for a launch behind this. */
template <int HALVES_, int CHUNK_, int PAIR_, bool THEN_, int ADDS_ = 0,
          int TURNS_ = ADDS_>
struct config {
    static constexpr int HALVES = HALVES_, CHUNK = CHUNK_, PAIR = PAIR_;
    static constexpr int ADDS = ADDS_, TURNS = TURNS_;
    static constexpr bool THEN = THEN_;
    /* may k be cut into slices? (32 of it only, but the kernels without an
     * epilogue are tuned as they are) */
    static constexpr bool IS_CUT = HALVES == 1 && (CHUNK == 32 || !THEN);
};

typedef struct plan {
    int steps;         /* of 64 along k */
    int down, across;  /* tiles, of a pair where there are pairs */
    int tiles;         /* that are wanted */
    int abreast, turn; /* teams of blocks and tiles of a turn: see find_tiles */
    int is_lower;      /* see split_product */
    int slices, slice_steps;
    unsigned *tickets; /* one a tile, zero between launches */
} plan;

/* Known where there can be one alone. */
template <class G> __device__ __forceinline__ int slices_of(const plan &p)
{
    return G::THEN && !G::IS_CUT ? 1 : p.slices;
}

/* Shared memory and who this block is. */
typedef struct block {
    ring slots;
    uint32_t stages; /* address */
    uint32_t rank;   /* in the pair */
    int first, last; /* steps of k */
} block;

/* --- a triangle's tiles -------------------------------------------------- */

/* Tiles at or below the diagonal that ends at the last of them. */
__host__ __device__ __forceinline__ int lower_tiles(int down, int across)
{
    return down * (across - down) + down * (down + 1) / 2;
}

/* Tile t of those: in groups of eight rows, whose columns come one after the
 * other, as in grouped_tile. */
__device__ __forceinline__ void lower_tile(int t, int down, int across,
                                           int *row, int *col)
{
    const int height = 8;
    int first = 0, rows = min(height, down), whole = across - down;
    for (int count; t >= (count = lower_tiles(rows, whole + rows));) {
        t -= count;
        first += rows;
        whole += rows;
        rows = min(height, down - first);
    }
    if (t < rows * whole) {
        *row = first + t % rows;
        *col = t / rows;
        return;
    }
    t -= rows * whole;
    int c = 0; /* a column of the triangle: rows - c tiles */
    for (; t >= rows - c; c++)
        t -= rows - c;
    *row = first + c + t;
    *col = whole + c;
}

template <class G>
__device__ __forceinline__ void find_tile(const plan &p, const block &b, int t,
                                          int *row, int *col)
{
    if (!G::ADDS || !p.is_lower) {
        tile_corner<G>(p, b, t, row, col);
        return;
    }
    lower_tile(t, p.down, p.across, row, col);
    *row = (*row * G::PAIR + (int)b.rank) * SIDE;
    *col *= SIDE * G::HALVES;
}

/* --- feeding ------------------------------------------------------------ */

typedef struct maps {
    CUtensorMap a; /* k, rows, planes: boxes of 64 x 128 x 2 */
    CUtensorMap b; /* 64 columns, k, groups of them, planes: 64 x 64 x 2 x 2 */
    CUtensorMap a_one, b_one; /* the same, boxes of one plane */
} maps;

template <class G>
__device__ __forceinline__ void feed_b(const maps &m, const block &b,
                                       uint32_t to, uint32_t full, int k,
                                       int col, int planes)
{
    if (G::PAIR == 1)
        copy_box4(to, planes == 2 ? &m.b : &m.b_one, full, 0, k, col / 64, 0);
    else if ((int)b.rank < planes) /* each block brings both a plane */
        multicast_box4(to + b.rank * PLANE, &m.b_one, full, 0, k, col / 64,
                       (int)b.rank, 3);
}

/* The tiles of a team of blocks: every stride-th from first to last. */
typedef struct tile_range {
    int first, last, stride;
} tile_range;

/* Where kernels of others, as messages are, hold multiprocessors, a block that
 * starts late would delay its whole share of the tiles. So they are dealt in
 * turns of `turn`, one after the other in the order of blocks, of which a team
 * has a share of one. Kernels whose blocks wait for all others at their end, to
 * certify, have one turn. */
template <class G>
__device__ __forceinline__ tile_range find_tiles(const plan &q)
{
    int share = G::PAIR * slices_of<G>(q), team = (int)blockIdx.x / share;
    if (!G::TURNS)
        return {team, q.tiles, (int)gridDim.x / share};
    int from = team / q.abreast * q.turn;
    return {from + team % q.abreast, min(q.tiles, from + q.turn), q.abreast};
}

/* Brings, for each step, the left half of b, then a, then b's right half. */
template <class G>
__device__ __forceinline__ void feed(const maps &m, const plan &p,
                                     const block &b, int planes, tile_range r)
{
    cursor c = {0, 1};
    for (int t = r.first; t < r.last; t += r.stride) {
        int row, col;
        find_tile<G>(p, b, t, &row, &col);
        for (int step = b.first; step < b.last; step++) {
#pragma unroll
            for (int part = 0; part <= G::HALVES; part++) {
                uint32_t full = open_slot(b.slots, c, planes * PLANE);
                uint32_t to = b.slots.first + c.slot * SLOT;
                if (part != 1)
                    feed_b<G>(m, b, to, full, step * DEPTH,
                              col + (part ? SIDE : 0), planes);
                else
                    copy_box3(to, planes == 2 ? &m.a : &m.a_one, full,
                              step * DEPTH, row, 0);
                advance<SLOTS>(&c);
            }
        }
    }
}

/* --- multiplying -------------------------------------------------------- */

#ifdef WGMMA
/* One consumer's way through the ring. */
typedef struct consumer {
    ring slots;
    uint32_t a, b; /* low words of slot 0's descriptors */
    int thread;    /* in the warpgroup */
} consumer;

__device__ __forceinline__ int take(const consumer &w, cursor *c)
{
    await_slot(w.slots, *c);
    return advance<SLOTS>(c);
}

/* 64 x 256: while this warpgroup adds a chunk, the other one multiplies. */
template <class G, int PRODUCTS>
__device__ __forceinline__ void
multiply_wide(float (&sum)[2][64], const consumer &w, cursor *c, int steps)
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
                    give_slot<G::PAIR>(w.slots, b, w.thread);
                    if (half == 1)
                        give_slot<G::PAIR>(w.slots, a, w.thread);
                }
                add_chunk(sum[half], chunk);
            }
        }
    }
}

/* 64 x 128 with two chunk accumulators: one is added while the other fills.
 * Even chunks go to the first, odd ones to the second. */
template <class G, int PRODUCTS>
__device__ __forceinline__ void
multiply_square(float (&sum)[1][64], const consumer &w, cursor *c, int steps)
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
            give_slot<G::PAIR>(w.slots, b[0], w.thread);
            give_slot<G::PAIR>(w.slots, a[0], w.thread);
        }
        add_chunk(sum[0], even);
    };
    auto fold_odd = [&]() {
        give_slot<G::PAIR>(w.slots, b[1], w.thread);
        give_slot<G::PAIR>(w.slots, a[1], w.thread);
        add_chunk(sum[0], odd);
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
__device__ __forceinline__ void multiply_tile(float (&sum)[G::HALVES][64],
                                              const consumer &w, cursor *c,
                                              int steps)
{
    if constexpr (G::HALVES == 2)
        multiply_wide<G, PRODUCTS>(sum, w, c, steps);
    else
        multiply_square<G, PRODUCTS>(sum, w, c, steps);
}
#endif

/* --- the schedule -----------------------------------------------------------
 * Which tiles a product gets: the time of each way is estimated, and the least
 * wins. */

/* Microseconds, from one H200: of a step of k in a tile of each kind; of
 * 16 KiB from L2 when all blocks ask at once; of a tile's beginning and end;
 * of what joins parts of k in a team, and in global memory, there and for
 * each of them. */
static const double SHORT_STEP = 0.27, TALL_STEP = 0.46, SQUARE_STEP = 0.9;
static const double WIDE_STEP = 1.71, PLANE_TIME = 0.0014;
static const double EDGES = 2.5, JOIN_NEAR = 1.2, JOIN_FAR = 5;
static const double JOIN_EACH = 0.25;

/* More of the small tiles, and the larger ones' fewer bytes count. */
constexpr int64_t MOST_ROUNDS = 5;

static int64_t tiles_of(const split_product *p, int64_t height, int64_t width)
{
    int64_t down = ceil_div(p->m, height), across = ceil_div(p->n, width);
    return p->is_lower ? lower_tiles((int)down, (int)across) : down * across;
}

/* The time of tiles of which `fit` are done at once: `steps` of k each, which
 * takes its multiplications or its bytes, `planes` of 16 KiB in each block of
 * a tile, whatever takes longer. */
static double time_of(int64_t tiles, int64_t fit, int64_t steps, double step,
                      double planes)
{
    double bytes = (double)smaller(tiles, fit) * planes * PLANE_TIME;
    double tile = EDGES + (double)steps * (step > bytes ? step : bytes);
    return (double)ceil_div(tiles, fit) * tile;
}

/* Clusters of more than two blocks do not fill the device. */
static double short_time(const cuda_device *d, const split_product *p, int team)
{
    int64_t fit = (team > 2 ? d->sms * 5 / 6 : d->sms) / team;
    int64_t steps = ceil_div(ceil_div(p->k, DEPTH), team);
    return time_of(tiles_of(p, 64, 64), fit, steps, SHORT_STEP, 2 * team) +
           (team > 1 ? JOIN_NEAR : 0);
}

static void consider(split_way *best, split_way w)
{
    if (w.time < best->time)
        *best = w;
}

static void consider_small(const cuda_device *d, const split_product *p,
                           split_way *best)
{
    int64_t steps = ceil_div(p->k, DEPTH), squares = tiles_of(p, 128, 128);
    if (squares <= MOST_ROUNDS * (d->sms / 2))
        consider(best, {split_way::TALL, 2,
                        time_of(squares, d->sms / 2, steps, TALL_STEP, 4)});
    if (tiles_of(p, 64, 64) > MOST_ROUNDS * d->sms)
        return;
    for (int team = 1; team <= MOST_TEAM; team++)
        if (team == 1 || steps >= team * 2)
            consider(best, {split_way::SHORT, team, short_time(d, p, team)});
}

/* The least time of all. Slices must all run at once; a part of k has at least
 * two steps. What adds to c has large tiles alone. */
static split_way choose(const cuda_device *d, const split_product *p)
{
    int64_t steps = ceil_div(p->k, DEPTH), squares = tiles_of(p, 128, 128);
    int64_t pairs = tiles_of(p, 256, 256), sms = gpu_cuda_free_sms(d);
    split_way best = {split_way::SQUARE, 1,
                      time_of(squares, sms, steps, SQUARE_STEP, 4)};
    consider(&best, {split_way::WIDE, 1,
                     time_of(pairs, sms / 2, steps, WIDE_STEP, 8)});
    if (p->adds)
        return best;
    consider_small(d, p, &best);
    for (int n = 2; squares * n <= sms && steps >= n * 2; n *= 2)
        consider(&best, {split_way::SLICES, n,
                         JOIN_FAR + JOIN_EACH * n +
                             time_of(squares, sms / n, ceil_div(steps, n),
                                     SQUARE_STEP, 4.0 * n)});
    return best;
}

/* --- slices -------------------------------------------------------------- */

[[maybe_unused]] constexpr int FEED = 128, THREADS = 384;
[[maybe_unused]] constexpr int FEED_REGISTERS = 40, MULTIPLY_REGISTERS = 232;

constexpr int SHARED =
    SLOTS * SLOT + barrier_bytes(SLOTS) + WARPS * STAGE + 1024;
static_assert(SLOTS * SLOT >= EDGE_BYTES);

/* Adds the slices of this block's share of the tile's rows, four at once a
 * warp: their loads must not wait for each other. */
template <bool THEN>
__device__ __forceinline__ void
join_slices(const split_product &p, const plan &q, int tile, int slice, int row,
            const four_columns &c, int thread)
{
    const int many = 4;
    const float *partial =
        p.partial + (int64_t)tile * q.slices * SIDE * SIDE + thread % 32 * 4;
    int first = slice * SIDE / q.slices, end = (slice + 1) * SIDE / q.slices;
    for (int r = first + thread / 32; r < end; r += many * WARPS) {
        some_rows<many, WARPS> rows =
            find_rows<many, WARPS>(p, row + r, row + end);
        float4 sum[many];
        add_slices(partial + r * SIDE, q.slices, min(end - r, many * WARPS),
                   sum);
        write_some<THEN>(p, sum, rows, c,
                         [&](int i, int j) { note_uncertain(p, i, j); });
    }
}

/* --- the kernel --------------------------------------------------------- */

template <class G>
__device__ __forceinline__ block prepare_block(const plan &p, uint8_t *raw)
{
    block b;
    uint32_t memory = (shared_address(raw) + 1023) & ~1023u;
    b.slots = ring_at(memory, SLOTS * SLOT, SLOTS);
    b.stages = memory + SLOTS * SLOT + barrier_bytes(SLOTS);
    b.rank = G::PAIR > 1 ? cluster_rank() : 0;
    int slice = (int)blockIdx.x % slices_of<G>(p);
    b.first = slice * p.slice_steps;
    b.last = min(p.steps, b.first + p.slice_steps);
    if (threadIdx.x == 0)
        init_ring(b.slots, SLOTS, 2 * G::PAIR); /* warpgroups */
    if (G::PAIR > 1)
        cluster_sync(); /* the pair's barriers are ready */
    else
        __syncthreads(); /* barriers are ready */
    return b;
}

#ifdef WGMMA
template <class G>
__device__ __forceinline__ void
finish_tile(const split_product &p, const plan &q, const block &b, int tile,
            float (&sum)[G::HALVES][64], int row, int col)
{
    int thread = (int)threadIdx.x - FEED;
    if (G::THEN) /* no register holds what is known of it */
        asm volatile("" : "+r"(thread));
    int lane = thread % 32, warp = thread / 32;
    if (G::IS_CUT && q.slices > 1) {
        int slice = (int)blockIdx.x % q.slices;
        int64_t part = (int64_t)tile * q.slices + slice;
        four_columns c = find_columns(p, col + lane * 4);
        int part_row = slice * SIDE / q.slices + warp * 16;
        fetch_u<G::THEN>(p, row + part_row,
                         (slice + 1) * SIDE / q.slices - part_row, col, SIDE,
                         lane < 16 ? lane : SIDE);
        keep_partial(p.partial + part * SIDE * SIDE, sum[0], warp * 16, lane);
        meet(q.tickets + tile, (unsigned)q.slices, thread);
        join_slices<G::THEN>(p, q, tile, slice, row, c, thread);
        return;
    }
    row += warp * 16;
    fetch_u<G::THEN>(p, row, 16, col, G::HALVES * SIDE, lane);
#pragma unroll 1
    for (int half = 0; half < G::HALVES; half++) { /* see write_rows */
        int j = col + half * SIDE;
        marks<16> m = load_marks<16>(p, row + lane / 4, j + lane % 4 * 2);
        write_rows<16, G::THEN, G::ADDS>(
            p, sum[0], m, row, j, b.stages + warp * STAGE, lane,
            [&](int down, int across) { note_uncertain(p, down, across); });
#pragma unroll
        for (int i = 0; i < 64; i++)
            sum[0][i] = sum[G::HALVES - 1][i];
    }
}

template <class G>
__device__ __forceinline__ void consume(const split_product &p, const plan &q,
                                        const block &b, int products,
                                        tile_range r)
{
    int thread = (int)threadIdx.x - FEED;
    uint32_t rows = b.slots.first + thread / 128 * PLANE / 2; /* 64 of 128 */
    consumer w = {b.slots, low_word(rows, ALONG_K_LOW),
                  low_word(b.slots.first, ALONG_SPAN_LOW), thread % 128};
    cursor c = {0, 0};
    for (int t = r.first; t < r.last; t += r.stride) {
        int row, col;
        find_tile<G>(q, b, t, &row, &col);
        if (G::ADDS)
            prefetch_results<SIDE * G::HALVES>(result_of<false>(p), row, col,
                                               thread);
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
        finish_tile<G>(p, q, b, t, sum, row, col);
    }
}
#endif

/* What blocks do that have no tile left: c's edges, and what is not certain.
 * shared: the ring. */
__device__ __forceinline__ void finish_grid(const split_product &p,
                                            const product<float> &g,
                                            const edge_work &edges, int thread,
                                            void *shared)
{
    bool has_edges = edges.below.units + edges.beside.units > 0;
    if (has_edges)
        multiply_edges(edges, thread, (char *)shared);
    certify<1>(p, g, thread, (double *)shared);
    if (has_edges && blockIdx.x == 0 && thread == 0)
        *edges.ticket = 0; /* all have drawn: certify waits for them */
}

template <class G>
__global__ void __launch_bounds__(THREADS, 1)
    multiply_planes(const __grid_constant__ maps m,
                    const __grid_constant__ split_product p,
                    const __grid_constant__ plan q,
                    const __grid_constant__ product<float> g,
                    const __grid_constant__ edge_work edges)
{
#ifdef WGMMA
    extern __shared__ uint8_t raw[];
    if (threadIdx.x == 0) {
        prefetch_map(&m.a);
        prefetch_map(G::PAIR > 1 ? &m.b_one : &m.b);
    }
    block b = prepare_block<G>(q, raw);
    wait_for_previous();
    int products = products_for(*p.a.facts, *p.b.facts);
    tile_range tiles = find_tiles<G>(q);
    if (threadIdx.x < FEED) {
        give_registers<FEED_REGISTERS>();
        if (threadIdx.x == 0 && products > 0)
            feed<G>(m, q, b, products == 1 ? 1 : 2, tiles);
    } else {
        take_registers<MULTIPLY_REGISTERS>();
        if (products > 0)
            consume<G>(p, q, b, products, tiles);
        if (!G::TURNS)
            finish_grid(p, g, edges, (int)threadIdx.x - FEED,
                        __cvta_shared_to_generic(b.slots.first));
    }
    if (G::PAIR > 1)
        cluster_sync(); /* the other block may still write here */
#endif
}

/* --- the host's side ---------------------------------------------------- */

template <bool THEN> using wide64 = config<2, 64, 2, THEN>;
template <bool THEN> using wide32 = config<2, 32, 2, THEN>;
template <bool THEN> using square64 = config<1, 64, 1, THEN>;
template <bool THEN> using square32 = config<1, 32, 1, THEN>;
typedef config<2, 64, 2, false, 0, 1> wide64_turns;
typedef config<2, 32, 2, false, 0, 1> wide32_turns;
typedef config<2, 64, 2, false, 1> wide64_add;
typedef config<2, 32, 2, false, 1> wide32_add;
typedef config<1, 64, 1, false, 1> square64_add;
typedef config<1, 32, 1, false, 1> square32_add;

static gpu_status make_map(cuda_device *d, const split_planes *p,
                           const map_shape &shape, CUtensorMap *out)
{
    return gpu_cuda_make_map(d, "split16", p->planes, &shape, out);
}

/* Boxes of so many rows and planes of a. */
static map_shape rows_of(const split_planes *a, int rows, int planes)
{
    return {CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            3,
            {(cuuint64_t)a->length, (cuuint64_t)a->lines, 2, 1},
            {(cuuint64_t)a->pitch * 2, (cuuint64_t)a->plane * 2, 0},
            {DEPTH, (cuuint32_t)rows, (cuuint32_t)planes, 1},
            CU_TENSOR_MAP_L2_PROMOTION_L2_256B};
}

/* Boxes of so many groups of 64 columns and planes of b. */
static map_shape columns_of(const split_planes *b, int groups, int planes)
{
    return {CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            4,
            {64, (cuuint64_t)b->lines, (cuuint64_t)b->pitch / 64, 2},
            {(cuuint64_t)b->pitch * 2, 128, (cuuint64_t)b->plane * 2},
            {64, DEPTH, (cuuint32_t)groups, (cuuint32_t)planes},
            CU_TENSOR_MAP_L2_PROMOTION_L2_256B};
}

/* Pairs bring b a plane at a time. */
static gpu_status make_maps(cuda_device *d, const split_product *p, int is_pair,
                            maps *out)
{
    TRY(make_map(d, &p->a, rows_of(&p->a, SIDE, 2), &out->a));
    TRY(make_map(d, &p->a, rows_of(&p->a, SIDE, 1), &out->a_one));
    if (!is_pair)
        TRY(make_map(d, &p->b, columns_of(&p->b, SIDE / 64, 2), &out->b));
    return make_map(d, &p->b, columns_of(&p->b, SIDE / 64, 1), &out->b_one);
}

/* Teams of blocks, of which `most` run at once. */
template <class G>
static int64_t count_teams(const cuda_device *d, plan *q, int64_t most)
{
    const int64_t many = 8, least = 2; /* turns; tiles of a team in each */
    int64_t turns = 1;
    if (G::TURNS && d->guests > 0)
        turns = larger(1, smaller(many, q->tiles / (least * most)));
    q->turn = (int)ceil_div(q->tiles, turns);
    q->abreast = (int)smaller(q->turn, most);
    return q->abreast * turns;
}

template <class G>
static gpu_status launch(cuda_device *d, const split_product *p, int slices,
                         const gpu_gemm *g, const edge_work *edges)
{
    maps m = {};
    TRY(make_maps(d, p, G::PAIR > 1, &m));
    plan q = {};
    q.steps = (int)ceil_div(p->k, DEPTH);
    q.down = (int)ceil_div(p->m, SIDE * G::PAIR);
    q.across = (int)ceil_div(p->n, SIDE * G::HALVES);
    q.is_lower = p->is_lower;
    q.tiles = (int)tiles_of(p, SIDE * G::PAIR, SIDE * G::HALVES);
    q.slice_steps = (int)ceil_div(q.steps, slices);
    q.slices = (int)ceil_div(q.steps, q.slice_steps);
    q.tickets = d->tickets;
    static int prepared;
    TRY(keep_division(d, (const void *)multiply_planes<G>, SHARED, &prepared));
    int sms = G::TURNS ? d->sms : gpu_cuda_free_sms(d); /* others wait */
    int64_t most = sms / (G::PAIR * q.slices);
    int64_t blocks = count_teams<G>(d, &q, most) * G::PAIR * q.slices;
    return launch_behind(d, multiply_planes<G>, dim3((unsigned)blocks), THREADS,
                         SHARED, G::PAIR, m, *p, q, typed_product<float>(g),
                         *edges);
}

/* Short tiles with a team for each, or tall ones by pairs. */
template <class G>
static gpu_status launch_small(cuda_device *d, const split_product *p,
                               const gpu_gemm *g, int cluster)
{
    small_maps m;
    TRY(make_map(d, &p->a, rows_of(&p->a, G::ROWS, G::IS_TALL ? 1 : 2), &m.a));
    TRY(make_map(d, &p->b, columns_of(&p->b, 1, 2), &m.b));
    small_plan q = {};
    q.steps = (int)ceil_div(p->k, DEPTH);
    q.down = (int)ceil_div(p->m, G::ROWS);
    q.cluster = cluster;
    int64_t across = ceil_div(p->n, G::IS_TALL ? 128 : 64);
    static int prepared;
    TRY(keep_division(d, (const void *)multiply_small<G>, G::SHARED,
                      &prepared));
    return launch_behind(
        d, multiply_small<G>, dim3((unsigned)(q.down * across * cluster)),
        SMALL_THREADS, G::SHARED, cluster, m, *p, q, typed_product<float>(g));
}

static split_way way_of(const cuda_device *d, int64_t m, int64_t n, int64_t k,
                        int adds, int is_lower)
{
    split_product p = {};
    p.m = m;
    p.n = n;
    p.k = k;
    p.adds = adds;
    p.is_lower = is_lower;
    return choose(d, &p);
}

split_way gpu_cuda_split16_hopper_way(const cuda_device *d, int64_t m,
                                      int64_t n, int64_t k)
{
    return way_of(d, m, n, k, 0, 0);
}

split_way gpu_cuda_split16_hopper_add_way(const cuda_device *d, int64_t m,
                                          int64_t n, int64_t k, int is_lower)
{
    return way_of(d, m, n, k, 1, is_lower);
}

size_t gpu_cuda_split16_hopper_workspace(const split_product *p, split_way w)
{
    return w.kind != split_way::SLICES
               ? 0
               : (size_t)(tiles_of(p, SIDE, SIDE) * w.parts) * SIDE * SIDE *
                     sizeof(float);
}

/* c += alpha a b. */
static gpu_status launch_adding(cuda_device *d, const split_product *p,
                                split_way w, const gpu_gemm *g)
{
    const edge_work none = {};
    if (w.kind == split_way::WIDE)
        return p->k < 512 ? launch<wide32_add>(d, p, 1, g, &none)
                          : launch<wide64_add>(d, p, 1, g, &none);
    return p->k < 512 ? launch<square32_add>(d, p, 1, g, &none)
                      : launch<square64_add>(d, p, 1, g, &none);
}

/* Additions into the sums every 64 of k; every 32 where k is short or cut, as
 * there the error of the products themselves shows more. */
template <bool THEN>
static gpu_status multiply(cuda_device *d, const split_product *p, split_way w,
                           const gpu_gemm *g, const edge_work *work)
{
    int is_short = p->k < 512;
    if (w.kind == split_way::SHORT)
        return launch_small<short_tile<THEN>>(d, p, g, w.parts);
    if (w.kind == split_way::TALL)
        return launch_small<tall_tile<THEN>>(d, p, g, w.parts);
    if (w.kind == split_way::SLICES)
        return launch<square32<THEN>>(d, p, w.parts, g, work);
    if (w.kind == split_way::WIDE)
        return is_short ? launch<wide32<THEN>>(d, p, 1, g, work)
                        : launch<wide64<THEN>>(d, p, 1, g, work);
    return is_short ? launch<square32<THEN>>(d, p, 1, g, work)
                    : launch<square64<THEN>>(d, p, 1, g, work);
}

gpu_status gpu_cuda_split16_hopper(cuda_device *d, const split_product *p,
                                   split_way w, const gpu_gemm *g,
                                   const split_edges *edges, int *has_edges,
                                   int *is_certain)
{
    const edge_work none = {};
    *is_certain = 1;
    if (p->adds)
        return launch_adding(d, p, w, g);
    if (d->guests > 0 && w.kind == split_way::WIDE && !p->then.changes) {
        *is_certain = 0;
        return p->k < 512 ? launch<wide32_turns>(d, p, 1, g, &none)
                          : launch<wide64_turns>(d, p, 1, g, &none);
    }
    edge_work work = plan_edges(edges, p->tickets + SPLIT_EDGES, has_edges);
    if (w.kind == split_way::SHORT || w.kind == split_way::TALL)
        *has_edges = 0;
    return p->then.changes ? multiply<true>(d, p, w, g, &work)
                           : multiply<false>(d, p, w, g, &work);
}
