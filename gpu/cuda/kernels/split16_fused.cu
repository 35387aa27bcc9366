/* split16 in one launch on Hopper: operands are cut into planes inside the
 * product, on their way from global to shared memory.
 *
 * A block has two warpgroups that cut and two that multiply, 64 of its 128 x
 * 128 results each. Rows of a and columns of b are scaled anew every 32 of k,
 * by what is largest there, so nothing has to be measured before; a chunk's
 * products get their scale back as they are added to the master. Blocks share
 * a tile and take slices of k where tiles are few; partial sums are added in
 * a fixed order. What the planes do not make certain is computed again right
 * here: single results in f64, whole rows of NaN, Inf or extreme exponents by
 * plain FP32 sums.
 *
 * Every element is cut once for each tile it meets, so for large products it
 * is better cut before (split_planes.cu); here limits are shared memory, of
 * which a step reads and writes 208 KiB, and instructions, about 9 for each
 * element cut. Needs sm_90a; any strides. */
#include "split16_tile.h"

constexpr int CUTTERS = 256, THREADS = CONSUMERS + CUTTERS;
constexpr int CUT_REGISTERS = 88, MULTIPLY_REGISTERS = 168;
constexpr int STEP = 32; /* of k, cut and multiplied at once; DEPTH is two */
constexpr int DEEP = 2, BUFFERS = 2 * DEEP; /* of DEPTH, of STEP */
constexpr int GROUP = 8, MOST_SLICES = 128;
constexpr int PASSES = 4;   /* four elements a thread and operand, so often */
constexpr int EXTREME = 60; /* exponents beyond: scales could overflow */

/* Facts of a step: of a as they are, of b four bits higher. */
enum { FACTS_B = 4, FACTS_MASK = 15 };

/* One operand as it is read: span x depth. */
typedef struct fused_source {
    const float *data;
    int64_t span, depth, span_stride, depth_stride;
    int wide; /* 16-byte loads along its near dimension */
} fused_source;

/* What is known of the rows of a, or columns of b, of a tile after all its
 * steps: the largest scale, and the largest of those steps that lost bits. */
typedef struct span_bounds {
    float scale[SIDE], lost[SIDE];
} span_bounds;

typedef struct fused_product {
    fused_source a, b;
    product<float> whole; /* for what is computed again */
    int steps, slice_steps, slices, down, across;
    unsigned *tickets;
    float *partial;      /* tiles x slices x 128 x 128 */
    span_bounds *bounds; /* tiles x slices x 2: a's and b's */
    unsigned *facts;     /* tiles x slices */
    float unit;          /* times lost and scale: what is certain above it */
} fused_product;

typedef struct fused_memory {
    unsigned char planes[DEEP][4 * PLANE]; /* a hi, a lo, b hi, b lo */
    unsigned char stages[WARPS * STAGE];
    float scale_a[BUFFERS][SIDE], scale_b[BUFFERS][SIDE]; /* of a step */
    span_bounds a[2], b[2]; /* of even and odd tiles */
    unsigned largest[2][WARPS][SIDE];
    unsigned facts[BUFFERS][WARPS];
    uint64_t full[BUFFERS], empty[BUFFERS];
} fused_memory;

constexpr int SHARED = sizeof(fused_memory) + 1024;

/* --- a block's tiles ---------------------------------------------------- */

typedef struct spot {
    int tile, row, col, slice, first, last; /* steps */
} spot;

__device__ __forceinline__ spot find_spot(const fused_product &p, int item)
{
    spot x;
    x.tile = item / p.slices;
    x.slice = item % p.slices;
    int per = GROUP * p.across, group = x.tile / per, first = group * GROUP;
    int rows = min(GROUP, p.down - first), rest = x.tile - group * per;
    x.row = (first + rest % rows) * SIDE;
    x.col = rest / rows * SIDE;
    x.first = x.slice * p.slice_steps;
    x.last = min(p.steps, x.first + p.slice_steps);
    return x;
}

/* --- cutting ------------------------------------------------------------ */

/* Where an operand lies along k, a warp takes four rows a pass, 8 lanes each;
 * these four, so that their stores meet no bank twice. */
__device__ __forceinline__ int row_of(int warp, int lane)
{
    return warp / 2 * 8 + warp % 2 * 2 + lane / 8 % 2 + lane / 16 * 4;
}

/* A thread's part of 128 x 32 of an operand. Along k: 32 rows a pass. Along
 * the span: a warp 128 of it, eight k a pass. */
template <int WAY>
__device__ __forceinline__ void load_part(float4 (&v)[PASSES],
                                          const fused_source &s, int span,
                                          int depth, int warp, int lane)
{
    int64_t i = span + (WAY == ALONG_K ? row_of(warp, lane) : lane * 4);
    int64_t k = depth + (WAY == ALONG_K ? lane % 8 * 4 : warp);
    int64_t step = WAY == ALONG_K ? 32 * s.span_stride : 8 * s.depth_stride;
    int64_t near = WAY == ALONG_K ? s.depth_stride : s.span_stride;
    int64_t left = WAY == ALONG_K ? s.depth - k : s.span - i;
    int64_t lines = WAY == ALONG_K ? s.span - i : s.depth - k;
    const int apart = WAY == ALONG_K ? 32 : 8;
    const float *p = s.data + i * s.span_stride + k * s.depth_stride;
    if (s.wide) {
#pragma unroll
        for (int n = 0; n < PASSES; n++)
            v[n] = left > 0 && n * apart < lines
                       ? *(const float4 *)(p + n * step)
                       : make_float4(0, 0, 0, 0);
        return;
    }
#pragma unroll
    for (int n = 0; n < PASSES; n++) {
        bool in = n * apart < lines;
        const float *q = p + n * step;
        v[n] = make_float4(
            in && left > 0 ? q[0] : 0, in && left > 1 ? q[near] : 0,
            in && left > 2 ? q[2 * near] : 0, in && left > 3 ? q[3 * near] : 0);
    }
}

/* The larger magnitude; NaN if either is. */
__device__ __forceinline__ float larger_of(float x, float y)
{
    float z;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(fabsf(x)), "f"(fabsf(y)));
    return z;
}

/* The power of two that brings a magnitude to [2^14, 2^15). */
__device__ __forceinline__ int exponent_for(unsigned magnitude)
{
    if (magnitude < 0x00800000u)
        return magnitude ? 2 * EXTREME : 0; /* subnormals: extreme */
    return 141 - (int)(magnitude >> 23);
}

__device__ __forceinline__ float power(int exponent)
{
    return __int_as_float((exponent + 127) << 23);
}

/* A scale, 1 where it is extreme, and what to multiply with to undo it. */
typedef struct chunk_scale {
    float up, down;
    int extreme;
} chunk_scale;

__device__ __forceinline__ chunk_scale scale_for(unsigned magnitude)
{
    int e = exponent_for(magnitude);
    int extreme = e > EXTREME || e < -EXTREME;
    e = extreme ? 0 : e;
    return {power(e), power(-e), extreme};
}

/* What cutting has shown. */
typedef struct shown {
    unsigned low;   /* bits of all lo parts */
    unsigned least; /* of the smallest magnitude but zero: twice its bits - 1 */
} shown;

/* A scaled element below 2^-3 may lose bits: hi and lo end at 2^-24. */
__device__ __forceinline__ int may_lose(unsigned least)
{
    return least < 2 * 0x3e000000u - 1u;
}

__device__ __forceinline__ unsigned pack(__half2 h)
{
    return *(unsigned *)&h;
}

/* Four elements as they are written: 8 bytes for each plane. */
typedef struct cut_four {
    uint2 hi, lo;
} cut_four;

__device__ __forceinline__ cut_four cut(float4 v, const float (&up)[4],
                                        shown *s)
{
    float y[4] = {v.x * up[0], v.y * up[1], v.z * up[2], v.w * up[3]};
    __half2 h0 = __floats2half2_rn(y[0], y[1]);
    __half2 h1 = __floats2half2_rn(y[2], y[3]);
    float2 back0 = __half22float2(h0), back1 = __half22float2(h1);
    __half2 l0 = __floats2half2_rn(y[0] - back0.x, y[1] - back0.y);
    __half2 l1 = __floats2half2_rn(y[2] - back1.x, y[3] - back1.y);
#pragma unroll
    for (int i = 0; i < 4; i++)
        s->least = min(s->least, __float_as_uint(y[i]) * 2u - 1u);
    s->low |= pack(l0) | pack(l1);
    return {make_uint2(pack(h0), pack(h1)), make_uint2(pack(l0), pack(l1))};
}

/* Are they all integers? Beyond 2^22 they may pass for none. */
__device__ __forceinline__ int are_whole(const float4 (&v)[PASSES])
{
    const float shift = 0x1.8p23f;
    int whole = 1;
#pragma unroll
    for (int n = 0; n < PASSES; n++)
        whole &= v[n].x + shift - shift == v[n].x &
                 v[n].y + shift - shift == v[n].y &
                 v[n].z + shift - shift == v[n].z &
                 v[n].w + shift - shift == v[n].w;
    return whole;
}

__device__ __forceinline__ unsigned facts_shown(const shown &s, int whole,
                                                int extreme)
{
    return (s.low & 0x7fff7fffu ? FACT_LOW : 0) |
           (whole ? 0 : FACT_FRACTIONAL) | (extreme ? FACT_SPECIAL : 0);
}

/* Where an operand goes, and the findings about it. */
typedef struct ledger {
    unsigned char *planes;
    int half;            /* which 32 of its 64 of k */
    float *scale;        /* this step's */
    span_bounds *bounds; /* the tile's */
    int is_first;        /* step of the tile */
} ledger;

__device__ __forceinline__ void write_cut(const ledger &to, int at,
                                          const cut_four &c)
{
    *(uint2 *)(to.planes + at) = c.hi;
    *(uint2 *)(to.planes + at + PLANE) = c.lo;
}

/* Notes a row's scale; among 8 lanes that know four rows, the first four do
 * one each. */
__device__ __forceinline__ void note_rows(const ledger &to,
                                          const float (&down)[PASSES],
                                          const unsigned (&lost)[PASSES],
                                          int warp, int lane)
{
    int n = lane % 8;
    float mine = n == 0   ? down[0]
                 : n == 1 ? down[1]
                 : n == 2 ? down[2]
                          : down[3];
    unsigned all = n == 0   ? lost[0]
                   : n == 1 ? lost[1]
                   : n == 2 ? lost[2]
                            : lost[3];
    if (n >= PASSES)
        return;
    int row = n * 32 + row_of(warp, lane);
    float is_lost = all >> (lane & ~7) & 0xff ? mine : 0;
    to.scale[row] = mine;
    if (!to.is_first) {
        mine = fmaxf(mine, to.bounds->scale[row]);
        is_lost = fmaxf(is_lost, to.bounds->lost[row]);
    }
    to.bounds->scale[row] = mine;
    to.bounds->lost[row] = is_lost;
}

/* Cuts a part whose rows lie along k: 8 lanes know all of a row. */
__device__ __forceinline__ unsigned cut_rows(const float4 (&v)[PASSES],
                                             const ledger &to, int warp,
                                             int lane, int *whole)
{
    unsigned largest[PASSES], lost[PASSES];
    float down[PASSES];
    shown all = {0, ~0u};
    int extreme = 0;
#pragma unroll
    for (int n = 0; n < PASSES; n++)
        largest[n] = __float_as_uint(
            larger_of(larger_of(v[n].x, v[n].y), larger_of(v[n].z, v[n].w)));
#pragma unroll
    for (int apart = 1; apart < 8; apart *= 2)
#pragma unroll
        for (int n = 0; n < PASSES; n++)
            largest[n] =
                max(largest[n], __shfl_xor_sync(~0u, largest[n], apart));
#pragma unroll
    for (int n = 0; n < PASSES; n++) {
        chunk_scale f = scale_for(largest[n]);
        int row = n * 32 + row_of(warp, lane);
        float up[4] = {f.up, f.up, f.up, f.up};
        all.least = ~0u;
        write_cut(to,
                  row * 128 + (((to.half * 4 + lane % 8 / 2) ^ (row & 7)) * 16 +
                               lane % 2 * 8),
                  cut(v[n], up, &all));
        lost[n] = __ballot_sync(~0u, may_lose(all.least));
        down[n] = f.down;
        extreme |= f.extreme;
    }
    note_rows(to, down, lost, warp, lane);
    if (*whole)
        *whole = __all_sync(~0u, are_whole(v));
    return facts_shown(all, *whole, extreme);
}

__device__ __forceinline__ uint4 largest4(uint4 x, uint4 y)
{
    return make_uint4(max(x.x, y.x), max(x.y, y.y), max(x.z, y.z),
                      max(x.w, y.w));
}

__device__ __forceinline__ float4 larger4(float4 x, float4 y)
{
    return make_float4(larger_of(x.x, y.x), larger_of(x.y, y.y),
                       larger_of(x.z, y.z), larger_of(x.w, y.w));
}

/* Notes the scales of a lane's four columns. */
__device__ __forceinline__ void note_columns(const ledger &to, float4 down,
                                             int lane)
{
    float4 *bounds = (float4 *)&to.bounds->scale[lane * 4];
    *(float4 *)&to.scale[lane * 4] = down;
    *bounds = to.is_first ? down : larger4(down, *bounds);
}

/* The scales of this thread's four columns, from all warps' maxima. */
__device__ __forceinline__ void
share_scales(const float4 (&v)[PASSES], const ledger &to,
             unsigned (*largest)[SIDE], chunk_scale (&f)[4], int warp, int lane)
{
    float4 most = larger4(larger4(v[0], v[1]), larger4(v[2], v[3]));
    *(float4 *)&largest[warp][lane * 4] = most;
    if (warp == 0 && to.is_first)
        *(float4 *)&to.bounds->lost[lane * 4] = make_float4(0, 0, 0, 0);
    asm volatile("bar.sync 2, 256;" ::: "memory"); /* all maxima are there */
    uint4 all = *(uint4 *)&largest[0][lane * 4];
#pragma unroll
    for (int i = 1; i < WARPS; i++)
        all = largest4(all, *(uint4 *)&largest[i][lane * 4]);
    f[0] = scale_for(all.x);
    f[1] = scale_for(all.y);
    f[2] = scale_for(all.z);
    f[3] = scale_for(all.w);
    if (warp == 0)
        note_columns(
            to, make_float4(f[0].down, f[1].down, f[2].down, f[3].down), lane);
}

/* Cuts a part whose rows lie along the span. */
__device__ __forceinline__ unsigned cut_columns(const float4 (&v)[PASSES],
                                                const ledger &to,
                                                unsigned (*largest)[SIDE],
                                                int warp, int lane, int *whole)
{
    chunk_scale f[4];
    share_scales(v, to, largest, f, warp, lane);
    float up[4] = {f[0].up, f[1].up, f[2].up, f[3].up};
    shown all = {0, ~0u};
#pragma unroll
    for (int n = 0; n < PASSES; n++) /* the row's last three bits: the warp */
        write_cut(to,
                  lane / 16 * (PLANE / 2) +
                      (to.half * STEP + n * 8 + warp) * 128 +
                      (((lane % 16 / 2) ^ warp) * 16 + lane % 2 * 8),
                  cut(v[n], up, &all));
    if (may_lose(all.least)) { /* in one of the four: said of all */
#pragma unroll
        for (int i = 0; i < 4; i++)
            atomicMax((int *)&to.bounds->lost[lane * 4 + i],
                      __float_as_int(f[i].down));
    }
    if (*whole)
        *whole = __all_sync(~0u, are_whole(v));
    return facts_shown(
        all, *whole, f[0].extreme | f[1].extreme | f[2].extreme | f[3].extreme);
}

/* The next step of a block's work. */
typedef struct cut_cursor {
    int item, step;
    spot at;
} cut_cursor;

__device__ __forceinline__ bool advance(cut_cursor *c, const fused_product &p,
                                        int items)
{
    if (++c->step < c->at.last)
        return true;
    c->item += gridDim.x;
    if (c->item >= items)
        return false;
    c->at = find_spot(p, c->item);
    c->step = c->at.first;
    return true;
}

/* One operand's part of a step, cut either way. */
template <int WAY>
__device__ __forceinline__ unsigned
cut_part(const float4 (&v)[PASSES], const ledger &to, unsigned (*largest)[SIDE],
         int warp, int lane, int *whole)
{
    return WAY == ALONG_K ? cut_rows(v, to, warp, lane, whole)
                          : cut_columns(v, to, largest, warp, lane, whole);
}

/* Fills buffer after buffer; while one operand is cut, the other one's next
 * part is on its way. */
template <int A, int B>
__device__ __forceinline__ void cut_all(const fused_product &p,
                                        fused_memory *memory, int items)
{
    int warp = (int)threadIdx.x / 32 % WARPS, lane = (int)threadIdx.x % 32;
    cut_cursor c = {(int)blockIdx.x, 0, find_spot(p, (int)blockIdx.x)};
    c.step = c.at.first;
    int buffer = 0, parity = 0, turn = 0, whole_a = 1, whole_b = 1;
    uint32_t phase = 1;
    float4 a[PASSES], b[PASSES];
    load_part<A>(a, p.a, c.at.row, c.step * STEP, warp, lane);
    load_part<B>(b, p.b, c.at.col, c.step * STEP, warp, lane);
    for (bool more = true; more;) {
        int is_first = c.step == c.at.first, item = c.item;
        unsigned char *planes = memory->planes[buffer / 2];
        ledger to_a = {planes, buffer % 2, memory->scale_a[buffer],
                       &memory->a[parity], is_first};
        ledger to_b = {planes + 2 * PLANE, buffer % 2, memory->scale_b[buffer],
                       &memory->b[parity], is_first};
        barrier_wait(shared_address(&memory->empty[buffer]), phase);
        unsigned facts =
            cut_part<A>(a, to_a, memory->largest[turn], warp, lane, &whole_a);
        turn ^= A == ALONG_SPAN;
        more = advance(&c, p, items);
        if (more)
            load_part<A>(a, p.a, c.at.row, c.step * STEP, warp, lane);
        facts |=
            cut_part<B>(b, to_b, memory->largest[turn], warp, lane, &whole_b)
            << FACTS_B;
        turn ^= B == ALONG_SPAN;
        if (more)
            load_part<B>(b, p.b, c.at.col, c.step * STEP, warp, lane);
        facts = __reduce_or_sync(~0u, facts);
        publish_shared();
        __syncwarp(); /* the warp's part is written */
        if (lane == 0) {
            memory->facts[buffer][warp] = facts;
            barrier_arrive(shared_address(&memory->full[buffer]));
        }
        parity ^= c.item != item;
        if (++buffer == BUFFERS) {
            buffer = 0;
            phase ^= 1;
        }
    }
}

/* --- multiplying -------------------------------------------------------- */

#ifdef WGMMA
/* Which products a step needs; a step with NaN or Inf is computed again. */
__device__ __forceinline__ int products_of(unsigned facts)
{
    unsigned a = facts & FACTS_MASK, b = facts >> FACTS_B;
    if (!((a | b) & FACT_LOW))
        return 1;
    return a & b & FACT_LOW && !((a | b) & FACT_FRACTIONAL) ? 4 : 3;
}

/* master += chunk, scaled back. */
__device__ __forceinline__ void add_scaled(float (&master)[64],
                                           const float (&chunk)[64],
                                           const float *rows, const float *cols,
                                           int lane)
{
    float up = rows[lane / 4], down = rows[lane / 4 + 8];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        float2 f = *(const float2 *)(cols + 8 * j + lane % 4 * 2);
        master[4 * j] += chunk[4 * j] * (up * f.x);
        master[4 * j + 1] += chunk[4 * j + 1] * (up * f.y);
        master[4 * j + 2] += chunk[4 * j + 2] * (down * f.x);
        master[4 * j + 3] += chunk[4 * j + 3] * (down * f.y);
    }
}

template <int PRODUCTS, int A, int B>
__device__ __forceinline__ void multiply_step(float (&chunk)[64], uint32_t a,
                                              uint32_t b)
{
    wgmma_fence();
    multiply_chunk<PRODUCTS, A, B, 0, STEP / 16>(chunk, a, b);
    wgmma_commit();
    wgmma_wait<0>(chunk);
}
#endif

__device__ __forceinline__ unsigned all_facts(const unsigned *of_warps)
{
    unsigned facts = 0;
#pragma unroll
    for (int i = 0; i < WARPS; i++)
        facts |= of_warps[i];
    return facts;
}

/* --- what is computed again --------------------------------------------- */

/* By a whole warp, in f64; every lane gets the sum. */
__device__ __forceinline__ double exact_sum(const product<float> &g, int64_t i,
                                            int64_t j, int lane)
{
    const float *a = g.a + i * g.a_row, *b = g.b + j * g.b_col;
    double sum = 0;
#pragma unroll 4
    for (int64_t k = lane; k < g.k; k += 32)
        sum += (double)a[k * g.a_col] * (double)b[k * g.b_row];
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        sum += __shfl_xor_sync(~0u, sum, apart);
    return sum;
}

/* A thread's 64 results of a tile as plain FP32 sums. */
__device__ __forceinline__ void
sum_plainly(float (&sum)[64], const product<float> &g, int row, int col)
{
    const float *up = g.a + min((int64_t)row, g.m - 1) * g.a_row;
    const float *down = g.a + min((int64_t)row + 8, g.m - 1) * g.a_row;
#pragma unroll
    for (int i = 0; i < 64; i++)
        sum[i] = 0;
    for (int64_t k = 0; k < g.k; k++) {
        float x = up[k * g.a_col], y = down[k * g.a_col];
        const float *b = g.b + k * g.b_row;
#pragma unroll
        for (int j = 0; j < 16; j++) {
            float left = b[min((int64_t)col + 8 * j, g.n - 1) * g.b_col];
            float right = b[min((int64_t)col + 8 * j + 1, g.n - 1) * g.b_col];
            sum[4 * j] += x * left;
            sum[4 * j + 1] += x * right;
            sum[4 * j + 2] += y * left;
            sum[4 * j + 3] += y * right;
        }
    }
}

/* --- results ------------------------------------------------------------ */

__device__ __forceinline__ result result_of(const fused_product &p)
{
    const product<float> &g = p.whole;
    return {g.c, g.m, g.n, g.c_row, g.c_col, g.beta};
}

/* What a result must reach to be certain. */
__device__ __forceinline__ float least_certain(float lost_a, float scale_a,
                                               float lost_b, float scale_b,
                                               float unit)
{
    return (lost_a * scale_b + scale_a * lost_b) * unit;
}

/* Which of a thread's results are uncertain: bits. */
__device__ __forceinline__ uint64_t find_uncertain(const float (&sum)[64],
                                                   const span_bounds &a,
                                                   const span_bounds &b,
                                                   int row, int lane,
                                                   float unit)
{
    int i = row + lane / 4;
    uint64_t found = 0;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        unsigned bits = 0;
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int r = i + e / 2 * 8, c = 8 * j + lane % 4 * 2 + e % 2;
            float least = least_certain(a.lost[r], a.scale[r], b.lost[c],
                                        b.scale[c], unit);
            bits |= fabsf(sum[4 * j + e]) < least ? 1u << e : 0;
        }
        found |= (uint64_t)bits << (4 * j);
    }
    return found;
}

/* Bits of results that lie outside c are cleared. */
__device__ __forceinline__ uint64_t inside(uint64_t bits, const result &to,
                                           int row, int col)
{
    uint64_t in = 0;
    for (; bits; bits &= bits - 1) {
        int e = __ffsll((long long)bits) - 1;
        if (row + e % 4 / 2 * 8 < to.m && col + e / 4 * 8 + e % 2 < to.n)
            in |= bits & -bits;
    }
    return in;
}

/* Replaces uncertain results among a warp's 16 x 32 staged ones: those in
 * bits 4 first .. 4 first + 15. */
__device__ __forceinline__ void repair_stage(const product<float> &g,
                                             uint64_t bits, int first, int row,
                                             int col, uint32_t stage, int lane)
{
    unsigned mine = (unsigned)(bits >> (4 * first)) & 0xffff;
    for (unsigned any; (any = __ballot_sync(~0u, mine != 0)) != 0;) {
        int from = __ffs((int)any) - 1;
        int e = __ffs((int)__shfl_sync(~0u, mine, from)) - 1;
        int r = from / 4 + e % 4 / 2 * 8;
        int c = e / 4 * 8 + from % 4 * 2 + e % 2;
        double sum = exact_sum(g, row + r, col + c, lane);
        if (lane == from) {
            mine &= mine - 1;
            float x = (float)((double)g.alpha * sum);
            asm volatile(
                "st.shared.f32 [%0], %1;" ::"r"(stage + r * STAGE_ROW + c * 4),
                "f"(x)
                : "memory");
        }
    }
}

/* Writes a warp's 16 rows of a tile. */
__device__ __forceinline__ void write_rows(const fused_product &p,
                                           const float (&sum)[64],
                                           uint64_t uncertain, int row, int col,
                                           uint32_t stage, int lane)
{
    result to = result_of(p);
    float alpha = p.whole.alpha;
    uint32_t mine = stage + lane / 4 * STAGE_ROW + lane % 4 * 8;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        uint32_t at = mine + j % 4 * 32;
        stage_pair(at, alpha * sum[4 * j], alpha * sum[4 * j + 1]);
        stage_pair(at + 8 * STAGE_ROW, alpha * sum[4 * j + 2],
                   alpha * sum[4 * j + 3]);
        if (j % 4 == 3) {
            int first = j - 3;
            __syncwarp(); /* 32 columns are staged */
            repair_stage(p.whole, uncertain, first, row, col + first * 8, stage,
                         lane);
            __syncwarp(); /* repaired ones too */
            write_stage(to, stage, row, col + first * 8, lane);
            __syncwarp(); /* the stage is free */
        }
    }
}

/* Above this many of a warp's 2048 results, all are summed plainly. */
enum { MANY = 64 };

#ifdef WGMMA
__device__ __forceinline__ void finish_tile(const fused_product &p,
                                            float (&sum)[64], unsigned facts,
                                            const span_bounds &a,
                                            const span_bounds &b, spot at,
                                            int warp, int lane, uint32_t stage)
{
    int row = at.row + warp * 16, col = at.col + lane % 4 * 2;
    int plainly = (facts | facts >> FACTS_B) & FACT_SPECIAL;
    uint64_t uncertain = find_uncertain(sum, a, b, warp * 16, lane, p.unit);
    if (uncertain)
        uncertain = inside(uncertain, result_of(p), row + lane / 4, col);
    if (__reduce_add_sync(~0u, __popcll(uncertain)) > MANY)
        plainly = 1;
    if (plainly) {
        uncertain = 0;
        sum_plainly(sum, p.whole, row + lane / 4, col);
    }
    write_rows(p, sum, uncertain, row, at.col, stage, lane);
}
#endif

/* --- slices ------------------------------------------------------------- */

/* The slices' bounds of four columns, or of one row. */
typedef struct joined_bounds {
    float4 scale, lost;
} joined_bounds;

__device__ __forceinline__ float4 largest_float4(float4 x, float4 y)
{
    return make_float4(fmaxf(x.x, y.x), fmaxf(x.y, y.y), fmaxf(x.z, y.z),
                       fmaxf(x.w, y.w));
}

/* Four columns of one row, by plain sums or in f64 where that is needed. */
__device__ __forceinline__ void finish_four(const fused_product &p,
                                            float (&x)[4], int special,
                                            const joined_bounds &b, float scale,
                                            float lost, int i, int j, int lane)
{
    const product<float> &g = p.whole;
    float scales[4] = {b.scale.x, b.scale.y, b.scale.z, b.scale.w};
    float losts[4] = {b.lost.x, b.lost.y, b.lost.z, b.lost.w};
    unsigned uncertain = 0;
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (j + e < g.n &&
            (special || fabsf(x[e]) < least_certain(lost, scale, losts[e],
                                                    scales[e], p.unit)))
            uncertain |= 1u << e;
    int plainly = __reduce_add_sync(~0u, __popc(uncertain)) > MANY / 4;
    for (unsigned any;
         !plainly && (any = __ballot_sync(~0u, uncertain != 0)) != 0;) {
        int from = __ffs((int)any) - 1;
        int e = __ffs((int)__shfl_sync(~0u, uncertain, from)) - 1;
        double sum = exact_sum(g, i, __shfl_sync(~0u, j, from) + e, lane);
#pragma unroll
        for (int f = 0; f < 4; f++)
            if (lane == from && f == e)
                x[f] = (float)sum;
        if (lane == from)
            uncertain &= uncertain - 1;
    }
    if (!plainly)
        return;
    x[0] = x[1] = x[2] = x[3] = 0;
    for (int64_t k = 0; k < g.k; k++) {
        float y = g.a[i * g.a_row + k * g.a_col];
#pragma unroll
        for (int e = 0; e < 4; e++)
            x[e] +=
                y * g.b[k * g.b_row + min((int64_t)j + e, g.n - 1) * g.b_col];
    }
}

__device__ __forceinline__ void write_row(const fused_product &p,
                                          const float (&x)[4], int i, int j)
{
    result to = result_of(p);
    float alpha = p.whole.alpha;
    if (is_wide(to) && j + 4 <= to.n) {
        write_four(to, i, j,
                   make_float4(alpha * x[0], alpha * x[1], alpha * x[2],
                               alpha * x[3]));
        return;
    }
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (j + e < to.n)
            write_one(to, i, j + e, alpha * x[e]);
}

/* Adds the slices of this block's share of the tile's rows. */
__device__ __forceinline__ void join_slices(const fused_product &p, spot at,
                                            int warp, int lane)
{
    int64_t first = (int64_t)at.tile * p.slices;
    const float *partial = p.partial + first * SIDE * SIDE + lane * 4;
    const span_bounds *bounds = p.bounds + first * 2;
    joined_bounds b = {make_float4(0, 0, 0, 0), make_float4(0, 0, 0, 0)};
    unsigned special = 0;
#pragma unroll 4
    for (int s = 0; s < p.slices; s++) {
        const span_bounds &of_b = bounds[2 * s + 1];
        b.scale = largest_float4(b.scale,
                                 __ldcg((const float4 *)&of_b.scale[lane * 4]));
        b.lost = largest_float4(b.lost,
                                __ldcg((const float4 *)&of_b.lost[lane * 4]));
        unsigned facts = __ldcg(p.facts + first + s);
        special |= (facts | facts >> FACTS_B) & FACT_SPECIAL;
    }
    int end = (at.slice + 1) * SIDE / p.slices;
    for (int r = at.slice * SIDE / p.slices + warp; r < end; r += WARPS) {
        if (at.row + r >= p.whole.m)
            break;
        float scale = 0, lost = 0;
        for (int s = lane; s < p.slices; s += 32) {
            scale = fmaxf(scale, __ldcg(&bounds[2 * s].scale[r]));
            lost = fmaxf(lost, __ldcg(&bounds[2 * s].lost[r]));
        }
        scale = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(scale)));
        lost = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(lost)));
        float4 sum = add_slices(partial + r * SIDE, p.slices);
        float x[4] = {sum.x, sum.y, sum.z, sum.w};
        finish_four(p, x, (int)special, b, scale, lost, at.row + r,
                    at.col + lane * 4, lane);
        write_row(p, x, at.row + r, at.col + lane * 4);
    }
}

/* Hands this slice's sums and findings to the others, and joins. */
__device__ __forceinline__ void
share_tile(const fused_product &p, const float (&sum)[64], unsigned facts,
           const span_bounds *a, const span_bounds *b, spot at, int thread)
{
    int64_t mine = (int64_t)at.tile * p.slices + at.slice;
    int warp = thread / 32, lane = thread % 32;
    keep_partial(p.partial + mine * SIDE * SIDE, sum, warp * 16, lane);
    const float *from = thread < SIDE ? (const float *)a : (const float *)b;
    float *to = (float *)(p.bounds + mine * 2 + thread / SIDE);
    __stcg(to + thread % SIDE, from[thread % SIDE]);
    __stcg(to + SIDE + thread % SIDE, from[SIDE + thread % SIDE]);
    if (thread == 0)
        __stcg(p.facts + mine, facts);
    meet(p.tickets + at.tile, (unsigned)p.slices, thread);
    join_slices(p, at, warp, lane);
}

/* --- the kernel --------------------------------------------------------- */

#ifdef WGMMA
template <int A, int B>
__device__ __forceinline__ void multiply_all(const fused_product &p,
                                             fused_memory *memory, int items)
{
    int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32;
    uint32_t stage = shared_address(memory->stages) + warp * STAGE;
    uint32_t planes = shared_address(memory->planes[0]);
    uint32_t a = low_word(planes + warp / 4 * (PLANE / 2),
                          A == ALONG_K ? ALONG_K_LOW : ALONG_SPAN_LOW);
    uint32_t b = low_word(planes + 2 * PLANE,
                          B == ALONG_K ? ALONG_K_LOW : ALONG_SPAN_LOW);
    int buffer = 0, parity = 0;
    uint32_t phase = 0;
    for (int item = (int)blockIdx.x; item < items; item += gridDim.x) {
        spot at = find_spot(p, item);
        unsigned facts = 0;
        float sum[64], chunk[64];
#pragma unroll
        for (int i = 0; i < 64; i++)
            sum[i] = 0;
        for (int step = at.first; step < at.last; step++) {
            barrier_wait(shared_address(&memory->full[buffer]), phase);
            unsigned now = all_facts(memory->facts[buffer]);
            facts |= now;
            uint32_t skip = buffer / 2 * (4 * PLANE >> 4);
            uint32_t x = a + skip + buffer % 2 * (A == ALONG_K ? 4 : 256);
            uint32_t y = b + skip + buffer % 2 * (B == ALONG_K ? 4 : 256);
            int products = products_of(now);
            if (products == 3)
                multiply_step<3, A, B>(chunk, x, y);
            else if (products == 1)
                multiply_step<1, A, B>(chunk, x, y);
            else
                multiply_step<4, A, B>(chunk, x, y);
            add_scaled(sum, chunk, memory->scale_a[buffer] + warp * 16,
                       memory->scale_b[buffer], lane);
            if (step == at.last - 1)
                break;
            __syncwarp(); /* the warp has read the scales */
            if (lane == 0)
                barrier_arrive(shared_address(&memory->empty[buffer]));
            if (++buffer == BUFFERS) {
                buffer = 0;
                phase ^= 1;
            }
        }
        if (p.slices > 1)
            share_tile(p, sum, facts, &memory->a[parity], &memory->b[parity],
                       at, thread);
        else
            finish_tile(p, sum, facts, memory->a[parity], memory->b[parity], at,
                        warp, lane, stage);
        __syncwarp(); /* the warp has read the bounds */
        if (lane == 0)
            barrier_arrive(shared_address(&memory->empty[buffer]));
        if (++buffer == BUFFERS) {
            buffer = 0;
            phase ^= 1;
        }
        parity ^= 1;
    }
}
#endif

template <int A, int B>
__global__ void __launch_bounds__(THREADS, 1)
    fused(const __grid_constant__ fused_product p)
{
#ifdef WGMMA
    extern __shared__ uint8_t raw[];
    fused_memory *memory =
        (fused_memory *)(((uintptr_t)raw + 1023) & ~(uintptr_t)1023);
    int items = p.down * p.across * p.slices;
    if (threadIdx.x == 0) {
        for (int i = 0; i < BUFFERS; i++) {
            barrier_init(shared_address(&memory->full[i]), WARPS);
            barrier_init(shared_address(&memory->empty[i]), WARPS);
        }
        barriers_ready();
    }
    __syncthreads(); /* barriers are ready */
    if (threadIdx.x < CONSUMERS) {
        take_registers<MULTIPLY_REGISTERS>();
        multiply_all<A, B>(p, memory, items);
    } else {
        give_registers<CUT_REGISTERS>();
        cut_all<A, B>(p, memory, items);
    }
#endif
}

/* --- the host's side ---------------------------------------------------- */

static fused_source source_of(const float *data, int64_t span, int64_t depth,
                              int64_t span_stride, int64_t depth_stride,
                              int *way)
{
    int along_k = stride_size(depth_stride) <= stride_size(span_stride);
    int64_t near = along_k ? depth_stride : span_stride;
    int64_t far = along_k ? span_stride : depth_stride;
    int64_t extent = along_k ? depth : span;
    *way = along_k ? ALONG_K : ALONG_SPAN;
    return {data,
            span,
            depth,
            span_stride,
            depth_stride,
            near == 1 && far % 4 == 0 && extent % 4 == 0 && is_aligned(data)};
}

/* Slices of k for which all blocks run at once, with two steps each at least
 * where there are so many. */
static int slices_for(const cuda_device *d, int64_t tiles, int64_t steps)
{
    int64_t slices = smaller(d->sms / tiles, MOST_SLICES);
    slices = smaller(slices, steps);
    return (int)larger(slices, 1);
}

template <int A, int B>
static gpu_status launch(cuda_device *d, const fused_product &p)
{
    static int prepared = -1;
    if (prepared != d->ordinal) {
        CHECK(d, cudaFuncSetAttribute(
                     fused<A, B>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                     SHARED));
        prepared = d->ordinal;
    }
    int64_t items = (int64_t)p.down * p.across * p.slices;
    fused<A, B>
        <<<(unsigned)smaller(items, d->sms), THREADS, SHARED, d->stream>>>(p);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_split16_fused(cuda_device *d, const gpu_gemm *g)
{
    int way_a, way_b;
    fused_product p = {};
    const product<float> w = typed_product<float>(g);
    p.whole = w;
    p.a = source_of(w.a, w.m, w.k, w.a_row, w.a_col, &way_a);
    p.b = source_of(w.b, w.n, w.k, w.b_col, w.b_row, &way_b);
    p.steps = (int)ceil_div(w.k, STEP);
    p.down = (int)ceil_div(w.m, SIDE);
    p.across = (int)ceil_div(w.n, SIDE);
    int64_t tiles = (int64_t)p.down * p.across;
    int slices = slices_for(d, tiles, p.steps);
    p.slice_steps = (int)ceil_div(p.steps, slices);
    p.slices = (int)ceil_div(p.steps, p.slice_steps);
    p.unit = (float)((1 << 14) * sqrt((double)w.k));
    p.tickets = d->tickets;
    if (p.slices > 1) {
        size_t items = (size_t)tiles * p.slices;
        TRY(gpu_cuda_scratch(
            d, items * (SIDE * SIDE * 4 + 2 * sizeof(span_bounds) + 4),
            (void **)&p.partial));
        p.bounds = (span_bounds *)(p.partial + items * SIDE * SIDE);
        p.facts = (unsigned *)(p.bounds + items * 2);
    }
    if (way_a == ALONG_K)
        return way_b == ALONG_K ? launch<ALONG_K, ALONG_K>(d, p)
                                : launch<ALONG_K, ALONG_SPAN>(d, p);
    return way_b == ALONG_K ? launch<ALONG_SPAN, ALONG_K>(d, p)
                            : launch<ALONG_SPAN, ALONG_SPAN>(d, p);
}
