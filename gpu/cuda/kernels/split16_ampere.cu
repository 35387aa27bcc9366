/* split16 on mma.sync: FP32-accurate products from halves, a block of eight
 * warps a tile of 128 x 128, a warp 64 x 32 of it.
 *
 * The tensor core adds with truncation, so it adds up only 64 of k from zero;
 * that part then goes into an FP32 sum in registers, rounded to nearest. In a
 * chunk of 64 the small products come first: all of lo hi, then hi lo, then
 * hi hi, so that only the last four steps truncate at full size. a's hi
 * fragments stay in registers from the second pass to the third: two thirds of
 * the reads that this order adds are spared.
 *
 * Limited by the tensor cores: a chunk is 1536 m16n8k16 (8 cycles each on
 * sm_80, four at a time: 3072 cycles) against 224 KiB read from shared memory
 * and 64 KiB written (2304 cycles). Any GPU from sm_80; 96 KiB of shared
 * memory, 112 KiB where there are so many. */
#include "split16.h"

enum {
    SIDE = 128, /* of a tile */
    CHUNK = 64, /* of k */
    STEPS = CHUNK / 16,
    THREADS = 256,
    WARPS = THREADS / 32,
    WARP_ROWS = 64,
    WARP_COLS = 32,
    TALL = WARP_ROWS / 16, /* fragments down a warp's outputs */
    WIDE = WARP_COLS / 8,  /* and across */
    TILE_PITCH = SIDE + 8, /* spreads staged rows over the banks */
    FOLD_THREADS = 128
};

/* A piece is one plane of one operand: 128 x 64 halves. Its 16-byte cells are
 * permuted within each 128 bytes by the row's last three bits, so that eight
 * rows' cells of one column lie in different banks.
 *
 * Slots for pieces. Each is refilled as soon as all warps are done with it;
 * b's hi plane is used from a chunk's first pass to its last and so has three.
 * a's lo plane gets a second where there is room: else it has one pass of
 * time to arrive, which is enough where tensor cores are slower. */
enum {
    A_HI = 0,
    B_LO = 1,
    B_HI = 2,
    A_LO = 5,
    SLOTS = 6,
    SLOTS_DEEP = 7,
    PIECE_BYTES = SIDE * CHUNK * 2,
    A_ROW_BYTES = CHUNK * 2,
    B_ROW_BYTES = SIDE * 2,
    COPIES = PIECE_BYTES / 16 / THREADS,
    A_ROWS_APART = THREADS / (A_ROW_BYTES / 16),
    B_ROWS_APART = THREADS / (B_ROW_BYTES / 16),
    COPY_BYTES = THREADS * 16
};

enum plane { HI = 0, LO = 1 };

/* A thread's part of its warp's outputs. */
typedef struct outputs {
    float at[TALL][WIDE][4];
} outputs;

/* a's hi fragments of a chunk. */
typedef struct fragments {
    uint32_t at[STEPS][TALL][4];
} fragments;

/* What a thread copies: 16 bytes of every 32nd row of a's piece and of every
 * 16th of b's. The pointers are to the first in chunk 0 of the hi planes; the
 * lefts count the rows from there on, 0 for b beyond its last column. */
typedef struct source {
    const __half *a, *b;
    int a_left;
    int64_t b_left;
    uint32_t a_to, b_to; /* places in a piece */
} source;

/* A warp's place: where its lanes read in a piece of a and of b, and whether
 * any of its outputs exist. */
typedef struct reader {
    uint32_t a, b;
    int row, col;
    bool busy;
} reader;

/* The chunks a block multiplies, in shared memory at `pool`. */
typedef struct range {
    int first, last;
    uint32_t pool;
    bool deep;
} range;

__device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* x, in a way that what follows from it is worked out again each time: what
 * the loops have in common would not fit into the registers left. */
__device__ __forceinline__ uint32_t afresh(uint32_t x)
{
    asm volatile("" : "+r"(x));
    return x;
}

__device__ __forceinline__ int64_t afresh(int64_t x)
{
    asm volatile("" : "+l"(x));
    return x;
}

/* 16 bytes from global to shared memory, or 16 zeros. */
__device__ __forceinline__ void copy_16(uint32_t to, const void *from,
                                        bool inside)
{
    asm volatile(
        "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
        "l"(from), "r"(inside ? 16 : 0)
        : "memory");
}

__device__ __forceinline__ void end_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most `newer` of this thread's groups are under way. */
template <int newer> __device__ __forceinline__ void wait_groups()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(newer) : "memory");
}

__device__ __forceinline__ void wait_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* A barrier for all warps, wherever in the code they come to it. */
__device__ __forceinline__ void meet()
{
    asm volatile("bar.sync 0;" ::: "memory");
}

/* Four 8 x 8 matrices of halves; lane l names row l % 8 of matrix l / 8. */
__device__ __forceinline__ void load_matrices(uint32_t *to, uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at));
}

__device__ __forceinline__ void load_turned(uint32_t *to, uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at));
}

/* d (16 x 8) += a (16 x 16) b (16 x 8) */
__device__ __forceinline__ void multiply_add(float *d, const uint32_t *a,
                                             const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
                   "r"(b[1]));
}

__device__ __forceinline__ source aim_copies(const split_product &p,
                                             int64_t row, int64_t col)
{
    int t = threadIdx.x;
    int a_cell = t % (A_ROW_BYTES / 16), a_row = t / (A_ROW_BYTES / 16);
    int b_cell = t % (B_ROW_BYTES / 16), b_row = t / (B_ROW_BYTES / 16);
    source s;
    s.a = p.a.planes + (row + a_row) * p.a.pitch + a_cell * 8;
    s.b = p.b.planes + b_row * p.b.pitch + col + b_cell * 8;
    s.a_left = (int)min(p.m - row - a_row, (int64_t)SIDE);
    s.b_left = col + b_cell * 8 < p.b.pitch ? p.k - b_row : 0;
    s.a_to = a_row * A_ROW_BYTES + (a_cell ^ (a_row & 7)) * 16;
    s.b_to = b_row * B_ROW_BYTES + (b_cell ^ (b_row & 7)) * 16;
    return s;
}

/* The lanes' rows and cells for ldmatrix. Warps are dealt so that the four
 * schedulers have equal work also where only a half of the rows or of the
 * columns exists. */
__device__ __forceinline__ reader aim_reads(const split_product &p, int64_t row,
                                            int64_t col)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    reader r;
    r.row = (warp + warp / 4) % 2 * WARP_ROWS;
    r.col = warp / 2 * WARP_COLS;
    r.busy = row + r.row < p.m && col + r.col < p.n;
    int a_row = r.row + lane % 16, a_cell = lane / 16;
    int b_row = lane % 16, b_cell = r.col / 8 + lane / 16;
    r.a = a_row * A_ROW_BYTES + (a_cell ^ (lane & 7)) * 16;
    r.b = b_row * B_ROW_BYTES + (b_cell ^ (lane & 7)) * 16;
    return r;
}

__device__ __forceinline__ void copy_a(const split_product &p, const source &s,
                                       plane which, int chunk, uint32_t slot)
{
    const __half *from =
        s.a + (which == LO ? p.a.plane : 0) + (int64_t)chunk * CHUNK;
    int64_t apart = A_ROWS_APART * afresh(p.a.pitch);
    uint32_t to = slot + afresh(s.a_to);
#pragma unroll
    for (int n = 0; n < COPIES; n++) {
        bool inside = n * A_ROWS_APART < s.a_left;
        copy_16(to + n * COPY_BYTES, inside ? from : p.a.planes, inside);
        from += apart;
    }
}

__device__ __forceinline__ void copy_b(const split_product &p, const source &s,
                                       plane which, int chunk, uint32_t slot)
{
    int64_t row = (int64_t)chunk * CHUNK, pitch = afresh(p.b.pitch);
    const __half *from = s.b + (which == LO ? p.b.plane : 0) + row * pitch;
    int left = (int)min(s.b_left - row, (int64_t)CHUNK);
    uint32_t to = slot + afresh(s.b_to);
#pragma unroll
    for (int n = 0; n < COPIES; n++) {
        bool inside = n * B_ROWS_APART < left;
        copy_16(to + n * COPY_BYTES, inside ? from : p.b.planes, inside);
        from += B_ROWS_APART * pitch;
    }
}

/* b's fragments of 16 of k and the warp's 32 columns. */
__device__ __forceinline__ void load_b(uint32_t (*b)[2], uint32_t at, int step)
{
    at += step * 16 * B_ROW_BYTES;
    load_turned(b[0], at);
    load_turned(b[2], at ^ 32); /* 16 columns on */
}

/* a's fragment of 16 of k and the i-th 16 rows. */
__device__ __forceinline__ void load_a(uint32_t *a, uint32_t at, int step,
                                       int i)
{
    load_matrices(a, (at ^ step * 32) + i * 16 * A_ROW_BYTES);
}

/* part += a b over one chunk. */
__device__ __forceinline__ void pass(outputs &part, uint32_t a_at,
                                     uint32_t b_at)
{
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        uint32_t b[WIDE][2];
        load_b(b, b_at, step);
#pragma unroll
        for (int i = 0; i < TALL; i++) {
            uint32_t a[4];
            load_a(a, a_at, step, i);
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                multiply_add(part.at[i][j], a, b[j]);
        }
    }
}

/* part += a b over one chunk; a's fragments are kept, or taken from there. */
template <bool KEEP>
__device__ __forceinline__ void pass_kept(outputs &part, fragments &kept,
                                          uint32_t a_at, uint32_t b_at)
{
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        uint32_t b[WIDE][2];
        load_b(b, b_at, step);
#pragma unroll
        for (int i = 0; i < TALL; i++) {
            if (KEEP)
                load_a(kept.at[step][i], a_at, step, i);
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                multiply_add(part.at[i][j], kept.at[step][i], b[j]);
        }
    }
}

/* A chunk's part goes into the sum. */
__device__ __forceinline__ void promote(outputs &sum, const outputs &part)
{
#pragma unroll
    for (int i = 0; i < TALL; i++)
#pragma unroll
        for (int j = 0; j < WIDE; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                sum.at[i][j][e] += part.at[i][j][e];
}

__device__ __forceinline__ uint32_t slot_of(const range &r, int slot)
{
    return r.pool + slot * PIECE_BYTES;
}

__device__ __forceinline__ uint32_t a_lo_slot(const range &r, int chunk)
{
    return slot_of(r, r.deep ? A_LO + chunk % 2 : A_LO);
}

__device__ __forceinline__ uint32_t b_hi_slot(const range &r, int chunk)
{
    return slot_of(r, B_HI + chunk % 3);
}

/* Three products, or four. A warp without outputs copies and waits: a loop of
 * its own, since branches in the other would cost registers. */
template <bool BUSY>
__device__ __forceinline__ void
multiply_planes(const split_product &p, const source &s, const reader &w,
                const range &r, bool four, outputs &sum)
{
    copy_a(p, s, LO, r.first, a_lo_slot(r, r.first));
    copy_b(p, s, HI, r.first, b_hi_slot(r, r.first));
    end_group();
    copy_a(p, s, HI, r.first, slot_of(r, A_HI));
    copy_b(p, s, LO, r.first, slot_of(r, B_LO));
    if (r.first + 1 < r.last) {
        copy_b(p, s, HI, r.first + 1, b_hi_slot(r, r.first + 1));
        if (r.deep)
            copy_a(p, s, LO, r.first + 1, a_lo_slot(r, r.first + 1));
    }
    end_group();
    wait_groups<1>();
    meet(); /* the first two pieces are there */
    for (int chunk = r.first; chunk < r.last; chunk++) {
        uint32_t a_hi = slot_of(r, A_HI) + afresh(w.a);
        uint32_t a_lo = a_lo_slot(r, chunk) + afresh(w.a);
        uint32_t b_hi = b_hi_slot(r, chunk) + afresh(w.b);
        uint32_t b_lo = slot_of(r, B_LO) + afresh(w.b);
        fragments kept;
        outputs part = {};
        if (four) {
            wait_copies();
            meet(); /* b_lo is there */
            if (BUSY) {
                pass(part, a_lo, b_lo);
                pass(part, a_lo, b_hi);
            }
        } else if (BUSY) {
            pass(part, a_lo, b_hi);
        }
        wait_copies();
        meet(); /* a_hi, b_lo are there; a_lo, the last b_hi free */
        if (chunk + 1 + r.deep < r.last)
            copy_a(p, s, LO, chunk + 1 + r.deep,
                   a_lo_slot(r, chunk + 1 + r.deep));
        if (chunk + 2 < r.last)
            copy_b(p, s, HI, chunk + 2, b_hi_slot(r, chunk + 2));
        if (BUSY)
            pass_kept<true>(part, kept, a_hi, b_lo);
        if (!r.deep)
            wait_copies();
        meet(); /* the next a_lo, b_hi are there; a_hi, b_lo free */
        if (chunk + 1 < r.last) {
            copy_a(p, s, HI, chunk + 1, slot_of(r, A_HI));
            copy_b(p, s, LO, chunk + 1, slot_of(r, B_LO));
        }
        if (BUSY) {
            pass_kept<false>(part, kept, 0, b_hi);
            promote(sum, part);
        }
    }
}

/* Both hi planes in slots 2 stage and 2 stage + 1 of three stages. */
__device__ __forceinline__ void copy_hi(const split_product &p, const source &s,
                                        const range &r, int chunk)
{
    int stage = chunk % 3;
    if (chunk < r.last) {
        copy_a(p, s, HI, chunk, slot_of(r, 2 * stage));
        copy_b(p, s, HI, chunk, slot_of(r, 2 * stage + 1));
    }
    end_group();
}

/* hi hi alone. */
template <bool BUSY>
__device__ __forceinline__ void multiply_hi(const split_product &p,
                                            const source &s, const reader &w,
                                            const range &r, outputs &sum)
{
    copy_hi(p, s, r, r.first);
    copy_hi(p, s, r, r.first + 1);
    for (int chunk = r.first; chunk < r.last; chunk++) {
        wait_groups<1>();
        meet(); /* this chunk is there, the last one's slots free */
        copy_hi(p, s, r, chunk + 2);
        uint32_t stage = slot_of(r, 2 * (chunk % 3));
        outputs part = {};
        if (BUSY) {
            pass(part, stage + w.a, stage + PIECE_BYTES + w.b);
            promote(sum, part);
        }
    }
}

template <bool BUSY>
__device__ __forceinline__ void
multiply(const split_product &p, const source &s, const reader &w,
         const range &r, int products, outputs &sum)
{
    if (products == 1)
        multiply_hi<BUSY>(p, s, w, r, sum);
    else
        multiply_planes<BUSY>(p, s, w, r, products == 4, sum);
}

/* 2^e x, rounded once. 2^126 twice is more than what can matter: x is 0 or
 * of 2^-48 .. 2^100. */
__device__ __forceinline__ float scale(float x, int e)
{
    e = max(-252, min(252, e));
    int half = e / 2;
    x *= __int_as_float((half + 127) << 23);
    return x * __int_as_float((e - half + 127) << 23);
}

/* What comes of a row or column besides its products. */
typedef struct line {
    int exponent;
    float loss;
} line;

__device__ __forceinline__ line line_of(const split_planes &planes, int64_t at,
                                        float unit)
{
    unsigned mark = at < planes.span ? __ldg(planes.marks + at) : MARK_ZERO;
    return {mark_exponent(mark), mark_losses(mark) * unit};
}

/* What c at (i, j) becomes. A sum that is not a number hides no loss. */
__device__ __forceinline__ float finish(const split_product &p, int64_t i,
                                        int64_t j, float sum, line row,
                                        line column)
{
    if (fabsf(sum) < row.loss + column.loss) {
        unsigned place = atomicAdd(p.count, 1);
        if (place < p.capacity)
            p.uncertain[place] = i * p.n + j;
    }
    return p.alpha * scale(sum, -(row.exponent + column.exponent));
}

/* Rows of the workspace: a slice's sums. */
__host__ __device__ __forceinline__ int64_t workspace_pitch(int64_t n)
{
    return (n + 31) / 32 * 32;
}

/* The first row and column of this block's tile. */
__device__ __forceinline__ void find_corner(const split_product &p,
                                            int64_t *row, int64_t *col)
{
    int64_t down = (p.m + SIDE - 1) / SIDE, across = (p.n + SIDE - 1) / SIDE;
    tile_of(blockIdx.x, down, across, row, col);
    *row *= SIDE;
    *col *= SIDE;
}

/* The tile goes into shared memory, so that a warp can write whole rows. */
__device__ __forceinline__ void stage_outputs(float *tile, const outputs &sum,
                                              const reader &w)
{
    int lane = threadIdx.x % 32;
    float *to = tile + (w.row + lane / 4) * TILE_PITCH + w.col + lane % 4 * 2;
    __syncthreads(); /* nobody reads pieces any more */
#pragma unroll
    for (int i = 0; i < TALL; i++)
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            const float *from = sum.at[i][j];
            float *at = to + i * 16 * TILE_PITCH + j * 8;
            *(float2 *)at = make_float2(from[0], from[1]);
            *(float2 *)(at + 8 * TILE_PITCH) = make_float2(from[2], from[3]);
        }
    __syncthreads(); /* the tile is there */
}

/* Columns' scales are read before the first store: the compiler must take
 * every store for one that may change them. */
__device__ __forceinline__ void
write_tile(const split_product &p, const float *tile, int64_t row, int64_t col)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    line column[SIDE / 32];
#pragma unroll
    for (int q = 0; q < SIDE / 32; q++)
        column[q] = line_of(p.b, col + lane + 32 * q, p.unit);
#pragma unroll 2
    for (int r = warp; r < SIDE && row + r < p.m; r += WARPS) {
        line mine = line_of(p.a, row + r, p.unit);
#pragma unroll
        for (int q = 0; q < SIDE / 32; q++) {
            int64_t i = row + r, j = col + lane + 32 * q;
            float sum = tile[r * TILE_PITCH + lane + 32 * q];
            if (j < p.n)
                p.c[i * p.c_row + j * p.c_col] =
                    finish(p, i, j, sum, mine, column[q]);
        }
    }
}

/* Sums wait for those of the other blocks that share this tile. */
__device__ __forceinline__ void write_partial(const split_product &p,
                                              const float *tile, int64_t row,
                                              int64_t col)
{
    int64_t pitch = workspace_pitch(p.n);
    float *to = p.partial + blockIdx.y * p.m * pitch;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int r = warp; r < SIDE && row + r < p.m; r += WARPS)
        for (int j = lane; j < SIDE && col + j < p.n; j += 32)
            to[(row + r) * pitch + col + j] = tile[r * TILE_PITCH + j];
}

/* Block (t, s) multiplies the s-th `chunks` chunks of tile t. */
__global__ void __launch_bounds__(THREADS, 1)
    ampere_kernel(const __grid_constant__ split_product p, int chunks,
                  bool deep)
{
    extern __shared__ __align__(1024) unsigned char pool[];
    int products = products_for(*p.a.facts, *p.b.facts);
    if (products == 0)
        return;
    int64_t row, col;
    find_corner(p, &row, &col);
    source s = aim_copies(p, row, col);
    reader w = aim_reads(p, row, col);
    int all = (int)((p.k + CHUNK - 1) / CHUNK);
    int first = (int)blockIdx.y * chunks;
    range r = {first, min(all, first + chunks), shared_address(pool), deep};
    outputs sum = {};
    if (w.busy)
        multiply<true>(p, s, w, r, products, sum);
    else
        multiply<false>(p, s, w, r, products, sum);
    stage_outputs((float *)pool, sum, w);
    find_corner(p, &row, &col); /* again: cheaper than registers kept */
    if (gridDim.y > 1)
        write_partial(p, (const float *)pool, row, col);
    else
        write_tile(p, (const float *)pool, row, col);
}

/* The slices' sums in a fixed order, four at a time. */
__global__ void __launch_bounds__(FOLD_THREADS)
    fold_kernel(const __grid_constant__ split_product p, int slices)
{
    int64_t e = blockIdx.x * (int64_t)FOLD_THREADS + threadIdx.x;
    if (products_for(*p.a.facts, *p.b.facts) == 0 || e >= p.m * p.n)
        return;
    int64_t i = divide(e, p.n), j = e - i * p.n;
    int64_t pitch = workspace_pitch(p.n), apart = p.m * pitch;
    const float *from = p.partial + i * pitch + j;
    float sum[4] = {};
    int s = 0;
    for (; s + 4 <= slices; s += 4)
#pragma unroll
        for (int u = 0; u < 4; u++)
            sum[u] += from[(s + u) * apart];
    for (; s < slices; s++)
        sum[0] += from[s * apart];
    float whole = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    p.c[i * p.c_row + j * p.c_col] = finish(
        p, i, j, whole, line_of(p.a, i, p.unit), line_of(p.b, j, p.unit));
}

static int64_t count_tiles(const split_product *p)
{
    return ceil_div(p->m, SIDE) * ceil_div(p->n, SIDE);
}

/* The time of a product cut into slices, in chunks: rounds of blocks, each
 * with a start and an end worth two chunks; folding is a launch and the way
 * of the sums through memory. */
static int64_t estimate_time(int64_t tiles, int64_t chunks, int64_t slices,
                             int sms)
{
    int64_t rounds = ceil_div(tiles * slices, sms);
    int64_t time = rounds * (ceil_div(chunks, slices) + 2);
    return slices == 1 ? time : time + 3 + ceil_div(4 * tiles * slices, sms);
}

/* How many chunks of k a block takes: all but for few tiles. */
static int choose_chunks(const split_product *p, int sms)
{
    int64_t chunks = ceil_div(p->k, CHUNK), tiles = count_tiles(p);
    int64_t most = smaller(chunks / 2, 2 * sms / tiles), best = 1;
    for (int64_t s = 2; s <= most; s++)
        if (estimate_time(tiles, chunks, s, sms) <
            estimate_time(tiles, chunks, best, sms))
            best = s;
    return (int)ceil_div(chunks, best);
}

static int count_slices(const split_product *p, int chunks)
{
    return (int)ceil_div(ceil_div(p->k, CHUNK), chunks);
}

size_t gpu_cuda_split16_ampere_workspace(const cuda_device *d,
                                         const split_product *p)
{
    int slices = count_slices(p, choose_chunks(p, d->sms));
    if (slices == 1)
        return 0;
    return (size_t)slices * p->m * workspace_pitch(p->n) * sizeof(float);
}

static gpu_status fold_slices(cuda_device *d, const split_product *p,
                              int slices)
{
    unsigned blocks = grid_for(ceil_div(p->m * p->n, FOLD_THREADS));
    fold_kernel<<<blocks, FOLD_THREADS, 0, d->stream>>>(*p, slices);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_split16_ampere(cuda_device *d, const split_product *p)
{
    int room = 0;
    CHECK(d, cudaDeviceGetAttribute(
                 &room, cudaDevAttrMaxSharedMemoryPerBlockOptin, d->ordinal));
    bool deep = room >= SLOTS_DEEP * PIECE_BYTES;
    int bytes = (deep ? SLOTS_DEEP : SLOTS) * PIECE_BYTES;
    CHECK(d, cudaFuncSetAttribute(ampere_kernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  bytes));
    int chunks = choose_chunks(p, d->sms);
    int slices = count_slices(p, chunks);
    dim3 grid(grid_for(count_tiles(p)), slices);
    ampere_kernel<<<grid, THREADS, bytes, d->stream>>>(*p, chunks, deep);
    LAUNCHED(d);
    return slices == 1 ? GPU_OK : fold_slices(d, p, slices);
}
