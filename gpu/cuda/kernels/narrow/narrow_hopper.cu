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
#include "narrow_ring.h"
#include "narrow_sums.h"
#include "tensor_map.h"

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
        join_slices(p, q, tile, b.slice, row, col, thread);
        return;
    }
#pragma unroll
    for (int half = 0; half < G::HALVES; half++)
        write_half(p, sum[half], row + warp * 16, col + half * SIDE,
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
    if (prepared != d->ordinal + 1)
        CHECK(d, cudaFuncSetAttribute(
                     multiply_planes<G>,
                     cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    TRY(keep_division(d, (const void *)multiply_planes<G>, &prepared));
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

template <narrow_kind KIND>
static gpu_status launch_for_shape(cuda_device *d, const narrow_product &p)
{
    int slices = slices_for(d, p);
    if (slices == 2)
        return launch<config<KIND, 1, 1, 2>>(d, p, slices);
    if (slices == 4)
        return launch<config<KIND, 1, 1, 4>>(d, p, slices);
    if (slices == 8)
        return launch<config<KIND, 1, 1, 8>>(d, p, slices);
    if (slices == 1 && is_wide_better(d, p))
        return launch<config<KIND, 2, 2, 1>>(d, p, slices);
    return launch<config<KIND, 1, 1, 1>>(d, p, slices);
}

gpu_status gpu_cuda_narrow_hopper(cuda_device *d, const narrow_product *p)
{
    if (p->kind == NARROW_BF16)
        return launch_for_shape<NARROW_BF16>(d, *p);
    return launch_for_shape<NARROW_TF32>(d, *p);
}
