/* split16 on mma.sync: FP32-accurate products from halves, a block of eight
 * warps a tile of 128 x 128, a warp 64 x 32 of it.
 *
 * The tensor core adds with truncation, so it adds up only 32 of k from zero;
 * that part then goes into an FP32 sum in registers, rounded to nearest. With
 * 64, sm_80, which truncates after every 8 of k, would lose 4.4e-7 of a sum of
 * positive numbers, twice what plain FP32 loses at k = 256 (a model by bits;
 * 1.8e-7 with 32). In a chunk of 32 the small products come first: all of
 * lo hi, then hi lo, then hi hi, so that only the last two steps truncate at
 * full size. What hi hi needs is in registers by then: so the chunk's slot is
 * free before that pass, and during it the slot is refilled and the next
 * chunk's first fragments are loaded. A chunk has one barrier, before that
 * pass.
 *
 * Limited by the tensor cores: a chunk is 768 m16n8k16 (8 cycles each on
 * sm_80, four at a time: 1536 cycles) against 96 KiB read from shared memory
 * and 32 KiB written (1024 cycles). A copy has two chunks' time to arrive.
 * Any GPU from sm_80; 96 KiB of shared memory, which all of them have. */
#include "split16.h"

enum {
    SIDE = 128, /* of a tile */
    CHUNK = 32, /* of k */
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

/* A slot holds a chunk: both planes of a (128 x 32 halves each), then both of
 * b (32 x 128). 16-byte cells are permuted so that eight rows' cells of one
 * column lie in different banks: within b's 128 bytes by the row's last three
 * bits; within a's 64 bytes, two rows to 128, by the two bits above the last.
 * A thread copies two cells of each plane. */
enum {
    SLOTS = 3,
    PLANE_BYTES = SIDE * CHUNK * 2,
    A_HI = 0,
    A_LO = PLANE_BYTES,
    B_HI = 2 * PLANE_BYTES,
    B_LO = 3 * PLANE_BYTES,
    SLOT_BYTES = 4 * PLANE_BYTES,
    POOL_BYTES = SLOTS * SLOT_BYTES,
    A_ROW_BYTES = CHUNK * 2,
    B_ROW_BYTES = SIDE * 2,
    A_CELLS = A_ROW_BYTES / 16,
    B_CELLS = B_ROW_BYTES / 16,
    A_APART = THREADS / A_CELLS, /* rows between a thread's two cells */
    B_APART = THREADS / B_CELLS,
    COPIES = 8
};

/* A thread's part of its warp's outputs. */
typedef struct outputs {
    float at[TALL][WIDE][4];
} outputs;

/* What a thread holds of a chunk: all of the hi planes' fragments and, step
 * by step, a's low ones. */
typedef struct fragments {
    uint32_t a[STEPS][TALL][4], b[STEPS][WIDE][2], low[TALL][4];
} fragments;

/* What a thread copies of the next chunk. a's rows beyond the last repeat it,
 * b's columns beyond the pitch repeat others: nobody looks at what comes of
 * them. Beyond the end of k, a has zeros and b gets them. */
typedef struct source {
    const char *a, *b;   /* its first cells, in the hi planes */
    uint32_t a_second;   /* bytes from its first cell of a to the second */
    int b_left;          /* rows of b from its first cell's on */
    uint32_t a_to, b_to; /* places in a slot */
} source;

/* Where a warp's lanes read in a slot's hi planes, and whether outputs exist of
 * this warp, and of all warps. */
typedef struct reader {
    uint32_t a, b;
    bool busy, whole;
} reader;

/* How many chunks a block takes, and ways in the planes in bytes, ready to be
 * added: from hi to lo, from a thread's first cell of b to its second, and
 * from one chunk of b to the next. */
typedef struct plan {
    int chunks;
    int64_t a_low, b_low, b_second, b_chunk;
} plan;

/* x, in a way that what follows from it is worked out, or decided, again. */
__device__ __forceinline__ int afresh(int x)
{
    asm volatile("" : "+r"(x));
    return x;
}

/* 16 bytes from global to shared memory, or 16 zeros; or nothing. */
__device__ __forceinline__ void copy_16(uint32_t to, const void *from,
                                        bool inside, bool wanted)
{
    asm volatile("{ .reg .pred wanted;\n"
                 "setp.ne.b32 wanted, %3, 0;\n"
                 "@wanted cp.async.cg.shared.global.L2::128B "
                 "[%0], [%1], 16, %2; }" ::"r"(to),
                 "l"(from), "r"(inside ? 16 : 0), "r"((int)wanted)
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

/* Four 8 x 8 matrices of halves; lane l names row l % 8 of matrix l / 8. */
__device__ __forceinline__ void load_matrices(uint32_t *to, uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

__device__ __forceinline__ void load_turned(uint32_t *to, uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
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

/* --- copying ------------------------------------------------------------ */

__device__ __forceinline__ source aim_copies(const split_product &p,
                                             int64_t row, int64_t col,
                                             int64_t k)
{
    int t = threadIdx.x;
    int a_cell = t % A_CELLS, a_row = t / A_CELLS;
    int b_cell = t % B_CELLS, b_row = t / B_CELLS;
    int64_t first = min(row + a_row, p.m - 1);
    int64_t second = min(row + a_row + A_APART, p.m - 1);
    source s;
    s.a = (const char *)(p.a.planes + first * p.a.pitch + k + a_cell * 8);
    s.a_second = (uint32_t)((second - first) * p.a.pitch * 2);
    s.b = (const char *)(p.b.planes + (k + b_row) * p.b.pitch +
                         min(col + b_cell * 8, p.b.pitch - 8));
    s.b_left = (int)(p.k - k) - b_row;
    s.a_to = a_row * A_ROW_BYTES + (a_cell ^ (a_row / 2 & 3)) * 16;
    s.b_to = b_row * B_ROW_BYTES + (b_cell ^ (b_row & 7)) * 16;
    return s;
}

/* The same in the lo planes. */
__device__ __forceinline__ source lower(const plan &q, source s)
{
    s.a += q.a_low;
    s.b += q.b_low;
    return s;
}

/* The n-th of a thread's eight copies: hi and lo of a, then of b, its first
 * cell and its second. */
__device__ __forceinline__ void copy_cell(const plan &q, const source &s,
                                          uint32_t slot, int n, bool wanted)
{
    bool second = n % 2, low = n / 2 % 2;
    uint32_t to = slot + n / 2 * PLANE_BYTES + second * (PLANE_BYTES / 2);
    if (n < COPIES / 2) {
        const char *from = s.a + (low ? q.a_low : 0);
        copy_16(to + s.a_to, from + (second ? s.a_second : 0), true, wanted);
    } else {
        const char *from = s.b + (low ? q.b_low : 0);
        copy_16(to + s.b_to, from + (second ? q.b_second : 0),
                s.b_left > second * B_APART, wanted);
    }
}

/* The n-th copy of those that so many products need. */
template <int PRODUCTS>
__device__ __forceinline__ void copy_needed(const plan &q, const source &s,
                                            uint32_t slot, int n, bool wanted)
{
    if (PRODUCTS > 1)
        copy_cell(q, s, slot, n, wanted);
    else if (n < COPIES / 2)
        copy_cell(q, s, slot, n / 2 * 4 + n % 2, wanted);
}

template <int PRODUCTS>
__device__ __forceinline__ void copy_chunk(const plan &q, const source &s,
                                           uint32_t slot, bool wanted)
{
#pragma unroll
    for (int n = 0; n < COPIES; n++)
        copy_needed<PRODUCTS>(q, s, slot, n, wanted);
}

/* A chunk's copies are under way: the next chunk's come next. */
__device__ __forceinline__ void end_copies(const plan &q, source *s)
{
    end_group();
    s->a += CHUNK * 2;
    s->b += q.b_chunk;
    s->b_left -= CHUNK;
}

/* Fills the slots, and waits for the first chunk of so many. */
template <int PRODUCTS>
__device__ __forceinline__ void begin_copies(const plan &q, uint32_t pool,
                                             int chunks, source *s)
{
    __syncthreads(); /* nobody reads the slots any more */
    for (int n = 0; n < SLOTS; n++) {
        copy_chunk<PRODUCTS>(q, *s, pool + n * SLOT_BYTES, n < chunks);
        end_copies(q, s);
    }
    wait_groups<SLOTS - 1>();
    __syncthreads(); /* the first chunk is there */
}

/* The next chunk is there, and this one's slot is read by nobody any more. */
__device__ __forceinline__ void change_slots()
{
    wait_groups<SLOTS - 2>();
    __syncthreads();
}

__device__ __forceinline__ uint32_t slot_after(uint32_t pool, uint32_t slot)
{
    return slot == pool + (SLOTS - 1) * SLOT_BYTES ? pool : slot + SLOT_BYTES;
}

/* --- multiplying -------------------------------------------------------- */

/* A warp's first row and column in the tile. Warps are dealt so that the four
 * schedulers have equal work also where only a half of the rows or of the
 * columns exists. */
__device__ __forceinline__ int row_of_warp(int warp)
{
    return (warp + warp / 4) % 2 * WARP_ROWS;
}

__device__ __forceinline__ int col_of_warp(int warp)
{
    return warp / 2 * WARP_COLS;
}

/* The lanes' rows and cells for ldmatrix. */
__device__ __forceinline__ reader aim_reads(const split_product &p, int64_t row,
                                            int64_t col)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first_row = row_of_warp(warp), first_col = col_of_warp(warp);
    int a_row = first_row + lane % 16, a_cell = lane / 16;
    int b_row = lane % 16, b_cell = first_col / 8 + lane / 16;
    reader r;
    r.a = A_HI + a_row * A_ROW_BYTES + (a_cell ^ (a_row / 2 & 3)) * 16;
    r.b = B_HI + b_row * B_ROW_BYTES + (b_cell ^ (b_row & 7)) * 16;
    r.busy = row + first_row < p.m && col + first_col < p.n;
    r.whole = row + SIDE - WARP_ROWS < p.m && col + SIDE - WARP_COLS < p.n;
    return r;
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

/* What a chunk begins with. */
template <int PRODUCTS>
__device__ __forceinline__ void begin_chunk(fragments &f, uint32_t a,
                                            uint32_t b)
{
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        load_b(f.b[step], b, step);
#pragma unroll
        for (int i = 0; i < TALL; i++) {
            if (PRODUCTS == 1)
                load_a(f.a[step][i], a, step, i);
            else if (step == 0)
                load_a(f.low[i], a + A_LO, 0, i);
        }
    }
}

/* part += lo hi */
__device__ __forceinline__ void multiply_low(outputs &part, fragments &f,
                                             uint32_t a)
{
#pragma unroll
    for (int step = 0; step < STEPS; step++)
#pragma unroll
        for (int i = 0; i < TALL; i++) {
            if (step > 0)
                load_a(f.low[i], a + A_LO, step, i);
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                multiply_add(part.at[i][j], f.low[i], f.b[step][j]);
        }
}

/* part += hi lo; a's fragments are kept. */
__device__ __forceinline__ void multiply_high(outputs &part, fragments &f,
                                              uint32_t a, uint32_t b)
{
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        uint32_t low[WIDE][2];
        load_b(low, b + B_LO - B_HI, step);
#pragma unroll
        for (int i = 0; i < TALL; i++)
            load_a(f.a[step][i], a, step, i);
#pragma unroll
        for (int i = 0; i < TALL; i++)
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                multiply_add(part.at[i][j], f.a[step][i], low[j]);
    }
}

/* part += hi hi, all in registers. */
__device__ __forceinline__ void multiply_kept(outputs &part, const fragments &f,
                                              int step, int i)
{
#pragma unroll
    for (int j = 0; j < WIDE; j++)
        multiply_add(part.at[i][j], f.a[step][i], f.b[step][j]);
}

/* The same; between the products, the next chunk at a and b is begun in
 * registers that are needed no more and, if the tile is WHOLE, the slot is
 * refilled. */
template <int PRODUCTS, bool WHOLE>
__device__ __forceinline__ void
multiply_and_go_on(outputs &part, fragments &f, uint32_t a, uint32_t b,
                   const plan &q, const source &s, uint32_t slot, bool wanted)
{
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
#pragma unroll
        for (int i = 0; i < TALL; i++) {
            multiply_kept(part, f, step, i);
            if (WHOLE)
                copy_needed<PRODUCTS>(q, s, slot, step * TALL + i, wanted);
            if (PRODUCTS == 1)
                load_a(f.a[step][i], a, step, i);
            else if (step == 0)
                load_a(f.low[i], a + A_LO, 0, i);
        }
        load_b(f.b[step], b, step);
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

/* A chunk's small products. */
template <int PRODUCTS, bool WHOLE>
__device__ __forceinline__ void begin_part(outputs &part, fragments &f,
                                           const reader &w, uint32_t slot)
{
    part = {};
    if (PRODUCTS > 1 && (WHOLE || afresh(w.busy))) {
        multiply_low(part, f, slot + w.a);
        multiply_high(part, f, slot + w.a, slot + w.b);
    }
}

/* WHOLE: all warps have outputs. Where some have none, they only copy; since
 * they must come to the same barriers, one loop does both, and the compiler
 * must not make two of it. Barriers stand at the end of the loop: the
 * compiler would move the products of hi hi before one in the middle. */
template <int PRODUCTS, bool WHOLE>
__device__ __forceinline__ void multiply_chunks(const plan &q, source s,
                                                const reader &w, uint32_t pool,
                                                int chunks, outputs &sum)
{
    fragments f;
    outputs part;
    uint32_t slot = pool;
    begin_copies<PRODUCTS>(q, pool, chunks, &s);
    begin_chunk<PRODUCTS>(f, slot + w.a, slot + w.b);
    begin_part<PRODUCTS, WHOLE>(part, f, w, slot);
    change_slots();
    for (int left = chunks - 1; left > 0; left--) {
        uint32_t next = slot_after(pool, slot);
        bool wanted = left >= SLOTS;
        if (!WHOLE)
            copy_chunk<PRODUCTS>(q, s, slot, wanted);
        if (WHOLE || afresh(w.busy))
            multiply_and_go_on<PRODUCTS, WHOLE>(part, f, next + w.a, next + w.b,
                                                q, s, slot, wanted);
        end_copies(q, &s);
        promote(sum, part);
        slot = next;
        begin_part<PRODUCTS, WHOLE>(part, f, w, slot);
        change_slots();
    }
#pragma unroll
    for (int step = 0; step < STEPS; step++)
#pragma unroll
        for (int i = 0; i < TALL; i++)
            multiply_kept(part, f, step, i);
    promote(sum, part);
}

template <int PRODUCTS>
__device__ __forceinline__ void multiply(const plan &q, const source &s,
                                         const reader &w, uint32_t pool,
                                         int chunks, outputs &sum)
{
    if (w.whole)
        multiply_chunks<PRODUCTS, true>(q, s, w, pool, chunks, sum);
    else
        multiply_chunks<PRODUCTS, false>(q, s, w, pool, chunks, sum);
}

/* --- results ------------------------------------------------------------ */

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
    if (fabsf(sum) < row.loss + column.loss)
        note_uncertain(p, i, j);
    return p.alpha * scale(sum, -(row.exponent + column.exponent));
}

/* Rows of the workspace: a slice's sums. */
__host__ __device__ __forceinline__ int64_t workspace_pitch(int64_t n)
{
    return (n + 31) / 32 * 32;
}

/* The first row and column of this block's tile. */
__device__ __forceinline__ void find_corner(const split_product &p, int tile,
                                            int64_t *row, int64_t *col)
{
    int64_t down = (p.m + SIDE - 1) / SIDE, across = (p.n + SIDE - 1) / SIDE;
    tile_of(tile, down, across, row, col);
    *row *= SIDE;
    *col *= SIDE;
}

/* The tile goes into shared memory, so that a warp can write whole rows. */
__device__ __forceinline__ void stage_outputs(float *tile, const outputs &sum)
{
    int t = afresh((int)threadIdx.x), lane = t % 32;
    int row = row_of_warp(t / 32) + lane / 4;
    int col = col_of_warp(t / 32) + lane % 4 * 2;
    float *to = tile + row * TILE_PITCH + col;
    __syncthreads(); /* nobody reads the slots any more */
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

/* --- the kernel --------------------------------------------------------- */

/* Block (t, s) multiplies the s-th `chunks` chunks of tile t. */
__global__ void __launch_bounds__(THREADS, 1)
    ampere_kernel(const __grid_constant__ split_product p,
                  const __grid_constant__ plan q)
{
    extern __shared__ __align__(1024) unsigned char pool[];
    wait_for_previous();
    int products = products_for(*p.a.facts, *p.b.facts);
    if (products == 0)
        return;
    int64_t row, col;
    find_corner(p, (int)blockIdx.x, &row, &col);
    int all = (int)((p.k + CHUNK - 1) / CHUNK);
    int first = (int)blockIdx.y * q.chunks, chunks = min(q.chunks, all - first);
    source s = aim_copies(p, row, col, (int64_t)first * CHUNK);
    reader w = aim_reads(p, row, col);
    uint32_t slots = shared_address(pool);
    outputs sum = {};
    if (products != 3)
        multiply<1>(q, products == 4 ? lower(q, s) : s, w, slots, chunks, sum);
    if (products != 1)
        multiply<3>(q, s, w, slots, chunks, sum);
    stage_outputs((float *)pool, sum);
    /* again: cheaper than registers kept */
    find_corner(p, afresh((int)blockIdx.x), &row, &col);
    if (gridDim.y > 1)
        write_partial(p, (const float *)pool, row, col);
    else
        write_tile(p, (const float *)pool, row, col);
}

/* The slices' sums in a fixed order, four at a time. */
__global__ void __launch_bounds__(FOLD_THREADS)
    fold_kernel(const __grid_constant__ split_product p, int slices)
{
    wait_for_previous();
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

/* --- the host's side ---------------------------------------------------- */

static int64_t count_tiles(const split_product *p)
{
    return ceil_div(p->m, SIDE) * ceil_div(p->n, SIDE);
}

/* The time of a product cut into slices, in chunks: rounds of blocks, each
 * with a start and an end worth four chunks; folding is a launch and the way
 * of the sums through memory. */
static int64_t estimate_time(int64_t tiles, int64_t chunks, int64_t slices,
                             int sms)
{
    int64_t rounds = ceil_div(tiles * slices, sms);
    int64_t time = rounds * (ceil_div(chunks, slices) + 4);
    return slices == 1 ? time : time + 6 + ceil_div(8 * tiles * slices, sms);
}

/* How many chunks of k a block takes: all but for few tiles. */
static int choose_chunks(const split_product *p, int sms)
{
    int64_t chunks = ceil_div(p->k, CHUNK), tiles = count_tiles(p);
    int64_t most = smaller(chunks / 4, 2 * sms / tiles), best = 1;
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

static plan make_plan(const cuda_device *d, const split_product *p)
{
    int64_t row = p->b.pitch * 2;
    return {choose_chunks(p, d->sms), p->a.plane * 2, p->b.plane * 2,
            B_APART * row, CHUNK * row};
}

gpu_status gpu_cuda_split16_ampere(cuda_device *d, const split_product *p)
{
    static int prepared, fold_prepared;
    TRY(keep_division(d, (const void *)ampere_kernel, POOL_BYTES, &prepared));
    plan q = make_plan(d, p);
    int slices = count_slices(p, q.chunks);
    dim3 grid(grid_for(count_tiles(p)), slices);
    TRY(launch_behind(d, ampere_kernel, grid, THREADS, POOL_BYTES, 1, *p, q));
    if (slices == 1)
        return GPU_OK;
    TRY(keep_division(d, (const void *)fold_kernel, 0, &fold_prepared));
    unsigned blocks = grid_for(ceil_div(p->m * p->n, FOLD_THREADS));
    return launch_behind(d, fold_kernel, dim3(blocks), FOLD_THREADS, 0, 1, *p,
                         slices);
}
