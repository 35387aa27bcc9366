/* The second part of bf16 and tf32: a persistent product on Hopper.
 *
 * A warpgroup feeds a ring of slots in shared memory by the tensor copy
 * engine and two multiply, 64 rows of c each. A slot holds a step of k, 128
 * bytes of each line: 128 lines of a, then b, in parts of 16 KiB. The whole
 * of k stays in wgmma's own sums. Tiles are 128 x 256 by pairs of blocks that
 * share b, or 128 x 128; where tiles are few, the blocks of a cluster share
 * one: each takes a slice of k, and they add the slices, in order, through
 * their shared memory. More slices than a cluster has blocks meet in global
 * memory.
 *
 * Limited by the tensor cores' power. Needs sm_90a. */
#include "narrow.h"
#include "hopper.h"
#include "split16_tile.h"

/* --- shapes -----------------------------------------------------------------
 * Of a tile and of the ring, and where a block stands in the product. */

enum { FEED = 128, THREADS = 384 };
enum { FEED_REGISTERS = 40, MULTIPLY_REGISTERS = 232 };
enum { PARTS = 12, MOST_SLOTS = PARTS / 2 }; /* of PLANE bytes, in the ring */
/* Of the ring's end, for sums on their way to the block that adds them. */
enum { EXCHANGE_PARTS = 4, MOST_TEAM = 8 };
constexpr int RING_BYTES = PARTS * PLANE;
constexpr int SHARED =
    RING_BYTES + barrier_bytes(MOST_SLOTS) + WARPS * STAGE + 1024;

/* HALVES: 128 columns each of a block's tile. PAIR: blocks of a cluster, one
 * above the other, share b. TEAM: blocks of a cluster share a tile, a slice of
 * k each. STEP: of k, 128 bytes. THEN: is there an epilogue? */
template <narrow_kind KIND_, int HALVES_, int PAIR_, int TEAM_, bool THEN_>
struct config {
    static constexpr narrow_kind KIND = KIND_;
    static constexpr bool THEN = THEN_;
    static constexpr int HALVES = HALVES_, PAIR = PAIR_, TEAM = TEAM_;
    static constexpr int STEP = KIND == NARROW_BF16 ? 64 : 32;
    static constexpr int SLOT = (1 + HALVES) * PLANE; /* bytes */
    static constexpr int SLOTS =
        (PARTS - (TEAM > 1 ? EXCHANGE_PARTS : 0)) / (1 + HALVES);
};

typedef struct plan {
    int steps;         /* of k */
    int down, across;  /* tiles, of a pair where there are pairs */
    int slices;        /* of k */
    unsigned *tickets; /* one a tile, zero between launches */
} plan;

/* Shared memory and who this block is. */
typedef struct block {
    ring slots;
    uint32_t stages; /* address */
    uint32_t rank;   /* in the pair */
    int slice;
    int first, last; /* steps of k */
} block;

/* --- the ring ---------------------------------------------------------------
 * The way of a step of k through it: asked for by one warpgroup, multiplied by
 * two, given back. */

/* --- feeding ------------------------------------------------------------ */

typedef struct maps {
    CUtensorMap a; /* k, rows, 1: boxes of a step x 128 */
    /* bf16: 64 columns, k, groups of them, 1: boxes of 64 x 64 x 2.
     * tf32: k, columns, 1, 1: boxes of 32 x 128. */
    CUtensorMap b;
} maps;

/* A part of b for this block alone, or for both of a pair. */
template <class G>
__device__ __forceinline__ void feed_b(const maps &m, uint32_t to,
                                       uint32_t full, int k, int col)
{
    int x = G::KIND == NARROW_BF16 ? 0 : k;
    int y = G::KIND == NARROW_BF16 ? k : col;
    int z = G::KIND == NARROW_BF16 ? col / 64 : 0;
    if (G::PAIR > 1)
        multicast_box4(to, &m.b, full, x, y, z, 0, 3);
    else
        copy_box4(to, &m.b, full, x, y, z, 0);
}

template <class G>
__device__ __forceinline__ void feed_slot(const maps &m, const block &b,
                                          const cursor &c, int k, int row,
                                          int col)
{
    uint32_t full = open_slot(b.slots, c, G::SLOT);
    uint32_t to = b.slots.first + c.slot * G::SLOT;
    copy_box3(to, &m.a, full, k, row, 0);
    const int count = G::HALVES / G::PAIR; /* of b: a pair shares its halves */
#pragma unroll
    for (int i = 0; i < count; i++) {
        int half = i + (int)b.rank;
        feed_b<G>(m, to + (1 + half) * PLANE, full, k, col + half * SIDE);
    }
}

template <class G>
__device__ __forceinline__ void feed(const maps &m, const plan &p,
                                     const block &b, int first, int stride)
{
    cursor c = {0, 1};
    for (int t = first; t < p.down * p.across; t += stride) {
        int row, col;
        tile_corner<G>(p, b, t, &row, &col);
        for (int step = b.first; step < b.last; step++) {
            feed_slot<G>(m, b, c, step * G::STEP, row, col);
            advance<G::SLOTS>(&c);
        }
    }
}

/* --- multiplying -------------------------------------------------------- */

#ifdef WGMMA
/* clang-format off */
#define REGISTERS128 \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95," \
    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109," \
    "%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122," \
    "%123,%124,%125,%126,%127}"
/* clang-format on */

/* 64 x 256 += 64 x 16 times 16 x 256, b along n. */
__device__ __forceinline__ void wide_bf16(float (&d)[2][64], uint32_t a,
                                          uint32_t b)
{
    asm volatile(
        "{.reg .b64 x, y;\n"
        "mov.b64 x, {%128, %130}; mov.b64 y, {%129, %130};\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " REGISTERS128
        ", x, y, 1, 1, 1, 0, 1;}"
        : GPU_ACC64(d[0]), GPU_ACC64(d[1])
        : "r"(a), "r"(b), "n"(ROWS_HIGH));
}

/* 64 x 256 += 64 x 8 times 8 x 256, both along k. */
__device__ __forceinline__ void wide_tf32(float (&d)[2][64], uint32_t a,
                                          uint32_t b)
{
    asm volatile(
        "{.reg .b64 x, y;\n"
        "mov.b64 x, {%128, %130}; mov.b64 y, {%129, %130};\n"
        "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 " REGISTERS128
        ", x, y, 1, 1, 1;}"
        : GPU_ACC64(d[0]), GPU_ACC64(d[1])
        : "r"(a), "r"(b), "n"(ROWS_HIGH));
}

/* Waits until at most one group is running, whose sums stay untouched. */
__device__ __forceinline__ void wait_for_all_but_one()
{
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}

/* The products of a quarter of a step. */
template <class G>
__device__ __forceinline__ void add_quarter(float (&sum)[G::HALVES][64],
                                            uint32_t a, uint32_t b)
{
    if constexpr (G::HALVES == 2 && G::KIND == NARROW_BF16)
        wide_bf16(sum, a, b);
    else if constexpr (G::HALVES == 2)
        wide_tf32(sum, a, b);
    else if constexpr (G::KIND == NARROW_BF16)
        wgmma_bf16(sum[0], a, b, 1);
    else
        wgmma_tf32(sum[0], a, b, 1);
}

/* One consumer's way through the ring. */
typedef struct consumer {
    ring slots;
    uint32_t a, b; /* low words of slot 0's descriptors */
    int thread;    /* in the warpgroup */
} consumer;

/* A slot is given back when the products of the next one have been issued, so
 * that the tensor cores always have work. */
template <class G>
__device__ __forceinline__ void multiply_tile(float (&sum)[G::HALVES][64],
                                              const consumer &w, cursor *c,
                                              int steps)
{
    const int along_b = G::KIND == NARROW_BF16 ? 128 : 2; /* 16 bytes */
    int before = 0;
    for (int step = 0; step < steps; step++) {
        await_slot(w.slots, *c);
        int slot = advance<G::SLOTS>(c);
        uint32_t a = w.a + slot * (G::SLOT >> 4);
        uint32_t b = w.b + slot * (G::SLOT >> 4);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; i++)
            add_quarter<G>(sum, a + 2 * i, b + along_b * i);
        wgmma_commit();
        wait_for_all_but_one();
        if (step > 0)
            give_slot<G::PAIR>(w.slots, before, w.thread);
        before = slot;
    }
#pragma unroll
    for (int half = 0; half < G::HALVES; half++)
        wgmma_wait<0>(sum[half]);
    give_slot<G::PAIR>(w.slots, before, w.thread);
}
#endif

/* --- sums -------------------------------------------------------------------
 * What becomes of them: slices of k are added in their order, through a
 * cluster's shared memory or through global memory, and a tile of results is
 * written. */

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

/* THEN: by way of p's epilogue. */
template <bool THEN>
__device__ __forceinline__ auto result_of(const narrow_product &p)
{
    if constexpr (THEN)
        return result_then{p.c, p.m, p.n, p.c_row, p.c_col, p.then};
    else
        return result{p.c, p.m, p.n, p.c_row, p.c_col, p.beta};
}

/* Writes one half of this warpgroup's 64 rows. */
template <bool THEN>
__device__ __forceinline__ void write_half(const narrow_product &p,
                                           const float (&sum)[64], int row,
                                           int col, uint32_t stage, int lane)
{
    auto to = result_of<THEN>(p);
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

/* What is asked for ahead of columns j and j + 1 of row i. */
template <class R> struct two_asked {
    decltype(ask_one(*(R *)0, 0, 0)) left, right;
};

template <class R>
__device__ __forceinline__ two_asked<R> ask_two(const R &to, int i, int j)
{
    return {ask_one(to, i, j), ask_one(to, i, j + 1)};
}

/* Those columns. */
__device__ __forceinline__ void write_two(const result &to, int i, int j,
                                          float x, float y, two_asked<result>)
{
    if (i < to.m && j + 2 <= to.n && is_wide(to) && to.beta == 0) {
        *(float2 *)(to.c + i * to.c_row + j) = make_float2(x, y);
        return;
    }
    if (i < to.m && j < to.n)
        write_one(to, i, j, x);
    if (i < to.m && j + 1 < to.n)
        write_one(to, i, j + 1, y);
}

__device__ __forceinline__ void write_two(const result_then &to, int i, int j,
                                          float x, float y,
                                          two_asked<result_then> with)
{
    result done = {to.c, to.m, to.n, to.c_row, to.c_col, 0};
    write_two(done, i, j, finish_result(to.then, x, with.left),
              finish_result(to.then, y, with.right), {});
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
    auto to = result_of<G::THEN>(p);
    two_asked<decltype(to)> with[many][2];
#pragma unroll
    for (int n = 0; n < 2 * many; n++)
        with[n / 2][n % 2] = ask_two(to, i + n % 2 * 8,
                                     col + (first + n / 2) * 8 + lane % 4 * 2);
#pragma unroll
    for (int n = 0; n < many; n++) {
        float4 x = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int s = 0; s < G::TEAM; s++)
            x = add(x, load_four(exchange_at<per>(b, s, rows, lane) +
                                 (first + n) * 512));
        int j = col + (first + n) * 8 + lane % 4 * 2;
        write_two(to, i, j, p.alpha * x.x, p.alpha * x.y, with[n][0]);
        write_two(to, i + 8, j, p.alpha * x.z, p.alpha * x.w, with[n][1]);
    }
}

/* Four columns of row i from col on. */
template <class R>
__device__ __forceinline__ void write_row(const R &to, float4 x, int i, int col)
{
    if (is_wide(to) && col + 4 <= to.n) {
        write_four(to, i, col, x);
        return;
    }
    float one[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (col + e < to.n)
            write_one(to, i, col + e, one[e]);
}

/* Adds the slices of this block's share of the tile's rows, four at once a
 * warp: their loads must not wait for each other. */
template <bool THEN>
__device__ __forceinline__ void join_slices(const narrow_product &p,
                                            const plan &q, int tile, int slice,
                                            int row, int col, int thread)
{
    const int many = 4;
    auto to = result_of<THEN>(p);
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
                write_row(to,
                          make_float4(p.alpha * sum[n].x, p.alpha * sum[n].y,
                                      p.alpha * sum[n].z, p.alpha * sum[n].w),
                          row + r + n * WARPS, col + at);
    }
}

/* --- the kernel --------------------------------------------------------- */

template <class G>
__device__ __forceinline__ block prepare_block(const plan &p, uint8_t *raw)
{
    block b;
    uint32_t memory = (shared_address(raw) + 1023) & ~1023u;
    b.slots = ring_at(memory, RING_BYTES, MOST_SLOTS);
    b.stages = memory + RING_BYTES + barrier_bytes(MOST_SLOTS);
    b.rank = G::PAIR > 1 ? cluster_rank() : 0;
    b.slice = (int)blockIdx.x % p.slices; /* the rank in a team */
    b.first = (int)((int64_t)p.steps * b.slice / p.slices);
    b.last = (int)((int64_t)p.steps * (b.slice + 1) / p.slices);
    if (threadIdx.x == 0)
        init_ring(b.slots, G::SLOTS, 2 * G::PAIR); /* warpgroups */
    if (G::PAIR * G::TEAM > 1)
        cluster_sync(); /* the cluster's barriers are ready */
    else
        __syncthreads(); /* barriers are ready */
    return b;
}

#ifdef WGMMA
template <class G>
__device__ __forceinline__ void
finish_tile(const narrow_product &p, const plan &q, const block &b, int tile,
            const float (&sum)[G::HALVES][64], int row, int col)
{
    int thread = (int)threadIdx.x - FEED, lane = thread % 32;
    int warp = thread / 32;
    if constexpr (G::TEAM > 1) {
        send_sums<G>(b, sum[0], warp, lane);
        cluster_sync(); /* all slices' sums are here */
        join_team<G>(p, b, row, col, warp, lane);
        return;
    }
    if (G::HALVES == 1 && q.slices > 1) {
        int64_t part = (int64_t)tile * q.slices + b.slice;
        keep_partial(p.partial + part * SIDE * SIDE, sum[0], warp * 16, lane);
        meet(q.tickets + tile, (unsigned)q.slices, thread);
        join_slices<G::THEN>(p, q, tile, b.slice, row, col, thread);
        return;
    }
#pragma unroll
    for (int half = 0; half < G::HALVES; half++)
        write_half<G::THEN>(p, sum[half], row + warp * 16, col + half * SIDE,
                            b.stages + warp * STAGE, lane);
}

template <class G>
__device__ __forceinline__ void consume(const narrow_product &p, const plan &q,
                                        const block &b, int first, int stride)
{
    int thread = (int)threadIdx.x - FEED;
    uint32_t a = b.slots.first + thread / 128 * PLANE / 2; /* 64 of 128 rows */
    uint32_t layout = G::KIND == NARROW_BF16 ? ALONG_SPAN_LOW : ALONG_K_LOW;
    consumer w = {b.slots, low_word(a, ALONG_K_LOW),
                  low_word(b.slots.first + PLANE, layout), thread % 128};
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
        multiply_tile<G>(sum, w, &c, b.last - b.first);
        finish_tile<G>(p, q, b, t, sum, row, col);
    }
}
#endif

template <class G>
__global__ void __launch_bounds__(THREADS, 1)
    multiply_planes(const __grid_constant__ maps m,
                    const __grid_constant__ narrow_product p,
                    const __grid_constant__ plan q)
{
#ifdef WGMMA
    extern __shared__ uint8_t raw[];
    if (threadIdx.x == 0) {
        prefetch_map(&m.a);
        prefetch_map(&m.b);
    }
    block b = prepare_block<G>(q, raw);
    let_next_start();
    wait_for_previous();
    int share = G::PAIR * q.slices;
    int first = (int)blockIdx.x / share, stride = (int)gridDim.x / share;
    if (threadIdx.x < FEED) {
        give_registers<FEED_REGISTERS>();
        if (threadIdx.x == 0)
            feed<G>(m, q, b, first, stride);
        __syncwarp();
        if (G::TEAM > 1)
            cluster_sync(); /* as the others do, a team has one tile */
    } else {
        take_registers<MULTIPLY_REGISTERS>();
        consume<G>(p, q, b, first, stride);
    }
    if (G::PAIR > 1)
        cluster_sync(); /* the other block may still write here */
#endif
}

/* --- the host's side ---------------------------------------------------- */

static CUtensorMapDataType type_of(narrow_kind kind, const narrow_plane *p)
{
    if (kind == NARROW_BF16)
        return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    return p->is_direct ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                        : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

/* Lines along k: boxes of 128 of them, a step long. */
static map_shape along_k(narrow_kind kind, const narrow_plane *p, int rank)
{
    cuuint64_t element = kind == NARROW_BF16 ? 2 : 4;
    cuuint64_t pitch = (cuuint64_t)p->pitch * element;
    return {type_of(kind, p),
            rank,
            {(cuuint64_t)p->length, (cuuint64_t)p->lines, 1, 1},
            {pitch, pitch, pitch},
            {128 / (cuuint32_t)element, SIDE, 1, 1},
            CU_TENSOR_MAP_L2_PROMOTION_L2_256B};
}

/* Lines of bf16 along n: boxes of 64 of them, two groups of 64 columns. */
static map_shape along_n(const narrow_plane *p)
{
    cuuint64_t pitch = (cuuint64_t)p->pitch * 2;
    return {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            4,
            {64, (cuuint64_t)p->lines, (cuuint64_t)p->pitch / 64, 1},
            {pitch, 128, pitch},
            {64, 64, 2, 1},
            CU_TENSOR_MAP_L2_PROMOTION_L2_256B};
}

static gpu_status make_maps(cuda_device *d, const narrow_product &p, maps *out)
{
    const char *name = p.kind == NARROW_BF16 ? "bf16" : "tf32";
    map_shape a = along_k(p.kind, &p.a, 3);
    map_shape b = p.b.is_along_k ? along_k(p.kind, &p.b, 4) : along_n(&p.b);
    TRY(gpu_cuda_make_map(d, name, p.a.data, &a, &out->a));
    return gpu_cuda_make_map(d, name, p.b.data, &b, &out->b);
}

static int64_t squares_of(const narrow_product &p)
{
    return ceil_div(p.m, SIDE) * ceil_div(p.n, SIDE);
}

static int64_t steps_of(const narrow_product &p)
{
    return ceil_div(p.k, p.kind == NARROW_BF16 ? 64 : 32);
}

/* How many slices of k a tile of 128 x 128 is cut into: a power of two for
 * which all blocks run at once and each has at least two steps. Clusters of
 * more than two blocks do not fill the device. */
static int slices_for(const cuda_device *d, const narrow_product &p)
{
    int64_t tiles = squares_of(p), steps = steps_of(p), most = d->sms;
    int slices = 1;
    while (tiles * slices * 2 <= most && steps >= slices * 4 && slices < 32) {
        slices *= 2;
        most = d->sms * 5 / 6;
    }
    return slices;
}

size_t gpu_cuda_narrow_workspace(const cuda_device *d, const narrow_product *p)
{
    int64_t slices = slices_for(d, *p);
    return slices <= MOST_TEAM ? 0
                               : (size_t)(squares_of(*p) * slices) * SIDE *
                                     SIDE * sizeof(float);
}

template <class G>
static gpu_status launch(cuda_device *d, const narrow_product &p, int slices)
{
    maps m;
    TRY(make_maps(d, p, &m));
    plan q = {};
    q.steps = (int)steps_of(p);
    q.down = (int)ceil_div(p.m, SIDE * G::PAIR);
    q.across = (int)ceil_div(p.n, SIDE * G::HALVES);
    q.slices = slices;
    q.tickets = d->tickets;
    static int prepared;
    TRY(keep_division(d, (const void *)multiply_planes<G>, SHARED, &prepared));
    int64_t tiles = (int64_t)q.down * q.across;
    int64_t most = d->sms / (G::PAIR * q.slices);
    int64_t blocks = smaller(tiles, most) * G::PAIR * q.slices;
    return launch_behind(d, multiply_planes<G>, dim3((unsigned)blocks), THREADS,
                         SHARED, G::PAIR * G::TEAM, m, p, q);
}

/* Rounds of tiles times the time of one: a pair's tile takes twice as long as
 * a square one, less a tenth for the bytes it saves. */
static bool is_wide_better(const cuda_device *d, const narrow_product &p)
{
    int64_t pairs = ceil_div(p.m, 2 * SIDE) * ceil_div(p.n, 2 * SIDE);
    int64_t wide_rounds = ceil_div(pairs, d->sms / 2);
    int64_t square_rounds = ceil_div(squares_of(p), d->sms);
    return wide_rounds * 1.8 <= (double)square_rounds;
}

template <narrow_kind KIND, bool THEN>
static gpu_status launch_for_shape(cuda_device *d, const narrow_product &p)
{
    int slices = slices_for(d, p);
    if (slices == 2)
        return launch<config<KIND, 1, 1, 2, THEN>>(d, p, slices);
    if (slices == 4)
        return launch<config<KIND, 1, 1, 4, THEN>>(d, p, slices);
    if (slices == 8)
        return launch<config<KIND, 1, 1, 8, THEN>>(d, p, slices);
    if (slices == 1 && is_wide_better(d, p))
        return launch<config<KIND, 2, 2, 1, THEN>>(d, p, slices);
    return launch<config<KIND, 1, 1, 1, THEN>>(d, p, slices);
}

gpu_status gpu_cuda_narrow_hopper(cuda_device *d, const narrow_product *p)
{
    if (p->kind == NARROW_BF16)
        return p->then.changes ? launch_for_shape<NARROW_BF16, true>(d, *p)
                               : launch_for_shape<NARROW_BF16, false>(d, *p);
    return p->then.changes ? launch_for_shape<NARROW_TF32, true>(d, *p)
                           : launch_for_shape<NARROW_TF32, false>(d, *p);
}
