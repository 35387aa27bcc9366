/* x = T^-1 x for one vector; T: a triangle of f32 that lies row by row, or its
 * transpose. What refinement does in every step.
 *
 * A block has 128 rows at a time, in the order in which they can be solved. It
 * inverts its square on the diagonal, takes from its rows the products with
 * what is solved, 128 at a time as they come, and multiplies by the inverse. A
 * solved element travels as one word with a mark in its upper half, for which
 * the others look: no barrier, one way through the second-level cache.
 *
 * Limited by that way and the two products on it, 2 us for 128 rows, and from
 * 32768 on by the triangle's bytes: 0.06, 0.12, 0.26 and 0.74 ms at 4096, 8192,
 * 16384 and 32768, where cuBLAS takes 0.22, 0.5, 1.0 and 2.2. Blocks take rows
 * in order, and wait for earlier ones alone: some block can always go on,
 * however few run at once. The sums have a fixed order. Inverses of 128 are as
 * exact as a preconditioner has to be, and no more: of the answer itself they
 * may cost digits. Needs sm_80. */
#ifndef GPU_CUDA_VECTOR_SOLVE_H
#define GPU_CUDA_VECTOR_SOLVE_H

#include "cuda_device.h"

constexpr int VECTOR_BLOCK = 128, VECTOR_THREADS = 512;
constexpr int VECTOR_PITCH = VECTOR_BLOCK + 4, VECTOR_WARPS = 16;
constexpr int VECTOR_HALF = VECTOR_BLOCK / 2, VECTOR_HALF_PITCH = 68;
constexpr int VECTOR_ROWS = VECTOR_BLOCK / VECTOR_WARPS; /* of a warp */

/* n and ld are multiples of 4, t begins on 16 bytes. */
typedef struct vector_job {
    const float *t; /* n x n, rows ld apart */
    int64_t ld;
    int n, is_lower, is_unit;   /* of t as it lies */
    float *x;                   /* n of them, without gaps */
    unsigned *next;             /* zero: rows that were taken */
    unsigned long long *solved; /* zeros: n, rounded up to whole blocks */
} vector_job;

static int vector_blocks(int n)
{
    return (int)ceil_div(n, VECTOR_BLOCK);
}

/* Memory to work in: next, then solved. */
static size_t vector_bytes(int n)
{
    return ((size_t)vector_blocks(n) * VECTOR_BLOCK + 2) *
           sizeof(unsigned long long);
}

/* A block's shared memory. */
typedef struct vector_memory {
    float inverse[VECTOR_BLOCK][VECTOR_PITCH];
    float held[VECTOR_HALF][VECTOR_HALF_PITCH];
    float sums[VECTOR_WARPS][VECTOR_BLOCK];
    float x[2][VECTOR_BLOCK], y[VECTOR_BLOCK];
    int taken;
} vector_memory;

/* --- the inverse of a lower triangle of 128 ------------------------------- */

/* The square of 32 at [at, at): its inverse; a warp's. */
__device__ __forceinline__ void invert_lower(float (*l)[VECTOR_PITCH], int at,
                                             int lane)
{
    float y[32]; /* column `lane` of it */
    float own = 1 / l[at + lane][at + lane];
#pragma unroll
    for (int r = 0; r < 32; r++) {
        float sum[4] = {r == lane ? 1.0f : 0.0f, 0, 0, 0};
#pragma unroll
        for (int c = 0; c < r; c += 4) {
            float4 f = *(const float4 *)&l[at + r][at + c];
            sum[0] -= f.x * y[c];
            if (c + 1 < r)
                sum[1] -= f.y * y[c + 1];
            if (c + 2 < r)
                sum[2] -= f.z * y[c + 2];
            if (c + 3 < r)
                sum[3] -= f.w * y[c + 3];
        }
        y[r] =
            ((sum[0] + sum[1]) + (sum[2] + sum[3])) * __shfl_sync(~0u, own, r);
    }
    __syncwarp(); /* the square is read */
#pragma unroll
    for (int r = 0; r < 32; r++)
        l[at + r][at + lane] = y[r];
}

/* c = sign a b, S x S, by THREADS threads; a and c begin on 16 bytes. */
template <int S, int THREADS>
__device__ __forceinline__ void
multiply_squares(const float *a, int lda, const float *b, int ldb, float sign,
                 float *c, int ldc, int t)
{
    constexpr int EACH = S * S / THREADS, STEP = THREADS / S;
    const int i = t / S, j = t % S;
    float sum[EACH] = {};
#pragma unroll 2
    for (int k = 0; k < S; k += 4) {
        float v[4];
#pragma unroll
        for (int q = 0; q < 4; q++)
            v[q] = b[(k + q) * ldb + j];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            float4 u = *(const float4 *)(a + (i + e * STEP) * lda + k);
            sum[e] += u.x * v[0] + u.y * v[1] + u.z * v[2] + u.w * v[3];
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
        c[(i + e * STEP) * ldc + j] = sign * sum[e];
}

/* [a 0; b c]^-1 = [a^-1 0; -c^-1 b a^-1 c^-1], from squares of 32 up. All
 * threads call it. */
__device__ __forceinline__ void invert_block(vector_memory &s, int t)
{
    constexpr int P = VECTOR_PITCH, H = VECTOR_HALF_PITCH;
    float(*l)[P] = s.inverse;
    if (t < 128)
        invert_lower(l, t / 32 * 32, t % 32);
    __syncthreads(); /* the squares of 32 are inverted */
    int at = t / 256 * 64, u = t % 256;
    float *held = s.held[t / 256 * 32];
    multiply_squares<32, 256>(&l[at + 32][at], P, &l[at][at], P, 1, held, H, u);
    __syncthreads(); /* b a^-1 is there */
    multiply_squares<32, 256>(&l[at + 32][at + 32], P, held, H, -1,
                              &l[at + 32][at], P, u);
    __syncthreads(); /* those of 64 are */
    multiply_squares<64, 512>(l[64], P, l[0], P, 1, s.held[0], H, t);
    __syncthreads(); /* b a^-1 is there */
    multiply_squares<64, 512>(&l[64][64], P, s.held[0], H, -1, l[64], P, t);
    __syncthreads(); /* the whole is inverted */
}

/* --- pieces --------------------------------------------------------------- */

/* Four elements of t from (row, col) on; zeros beyond it. */
__device__ __forceinline__ float4 read_piece(const vector_job &job, int row,
                                             int col)
{
    if (row >= job.n || col >= job.n)
        return make_float4(0, 0, 0, 0);
    return __ldg((const float4 *)(job.t + row * job.ld + col));
}

/* The square on the diagonal of block `own` as a lower triangle, with ones
 * beyond t's end: of what is solved from its end, in the opposite order. */
template <bool TURNED>
__device__ __forceinline__ void bring_square(const vector_job &job, int own,
                                             bool is_forward, vector_memory &s,
                                             int t)
{
    for (int e = t; e < VECTOR_BLOCK * VECTOR_BLOCK / 4; e += VECTOR_THREADS) {
        int r = e / (VECTOR_BLOCK / 4), c = e % (VECTOR_BLOCK / 4) * 4;
        int row = own * VECTOR_BLOCK + r;
        float4 v = read_piece(job, row, own * VECTOR_BLOCK + c);
        float piece[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int q = 0; q < 4; q++) {
            int i = TURNED ? c + q : r, j = TURNED ? r : c + q;
            if (!is_forward) {
                i = VECTOR_BLOCK - 1 - i;
                j = VECTOR_BLOCK - 1 - j;
            }
            bool is_one = i == j && (job.is_unit || row >= job.n);
            s.inverse[i][j] = j > i ? 0 : is_one ? 1 : piece[q];
        }
    }
}

/* A thread's part of a square: four columns of each of its warp's rows. */
typedef struct vector_tile {
    float4 row[VECTOR_ROWS];
} vector_tile;

__device__ __forceinline__ void bring_tile(const vector_job &job, int row,
                                           int col, vector_tile *to)
{
#pragma unroll
    for (int k = 0; k < VECTOR_ROWS; k++)
        to->row[k] = read_piece(job, row + k, col);
}

__device__ __forceinline__ float sum_of_products(float4 a, float4 b)
{
    return a.x * b.x + a.y * b.y + (a.z * b.z + a.w * b.w);
}

/* The lanes' sums of each row, added up: a lane gets that of row_in_warp. */
__device__ __forceinline__ float fold_rows(float (&v)[VECTOR_ROWS], int lane)
{
#pragma unroll
    for (int half = VECTOR_ROWS / 2, bit = 16; half > 0; half /= 2, bit /= 2)
#pragma unroll
        for (int k = 0; k < half; k++) {
            float kept = lane & bit ? v[k + half] : v[k];
            float sent = lane & bit ? v[k] : v[k + half];
            v[k] = kept + __shfl_xor_sync(~0u, sent, bit);
        }
    float sum = v[0] + __shfl_xor_sync(~0u, v[0], 2);
    return sum + __shfl_xor_sync(~0u, sum, 1);
}

__device__ __forceinline__ int row_in_warp(int lane)
{
    return (lane & 16) / 4 + (lane & 8) / 4 + (lane & 4) / 4;
}

__device__ __forceinline__ float await_solved(const unsigned long long *from)
{
    unsigned long long word;
    do
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                     : "=l"(word)
                     : "l"(from)
                     : "memory");
    while (word >> 32 == 0);
    return __uint_as_float((unsigned)word);
}

__device__ __forceinline__ void tell_solved(unsigned long long *to, float x)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to),
                 "l"(1ull << 32 | __float_as_uint(x))
                 : "memory");
}

/* --- the kernel ----------------------------------------------------------- */

/* What is taken from a block's rows: a sum for each of a warp's rows, or, of
 * the transpose, for each of a lane's four columns. */
template <bool TURNED> struct vector_sums {
    float at[TURNED ? 4 : VECTOR_ROWS];
};

template <bool TURNED>
__device__ __forceinline__ void
take_products(const vector_job &job, const vector_tile &tile, int from,
              float (&x)[VECTOR_BLOCK], int t, vector_sums<TURNED> *sums)
{
    const int lane = t % 32, warp = t / 32;
    if (t < VECTOR_BLOCK)
        x[t] = await_solved(job.solved + from * VECTOR_BLOCK + t);
    __syncthreads(); /* they are there; the other x is read */
    if constexpr (TURNED) {
#pragma unroll
        for (int k = 0; k < VECTOR_ROWS; k++) {
            float by = x[warp * VECTOR_ROWS + k];
            sums->at[0] += tile.row[k].x * by;
            sums->at[1] += tile.row[k].y * by;
            sums->at[2] += tile.row[k].z * by;
            sums->at[3] += tile.row[k].w * by;
        }
    } else {
        float4 by = *(const float4 *)&x[4 * lane];
#pragma unroll
        for (int k = 0; k < VECTOR_ROWS; k++)
            sums->at[k] += sum_of_products(tile.row[k], by);
    }
}

/* s.y = the block's part of x, less the sums. */
template <bool TURNED>
__device__ __forceinline__ void take_from(const vector_job &job, int own,
                                          vector_sums<TURNED> &sums,
                                          vector_memory &s, int t)
{
    const int lane = t % 32, warp = t / 32;
    int row = TURNED ? t : warp * VECTOR_ROWS + row_in_warp(lane);
    int at = own * VECTOR_BLOCK + row;
    float old = row < VECTOR_BLOCK && at < job.n ? job.x[at] : 0;
    if constexpr (TURNED) {
        *(float4 *)&s.sums[warp][4 * lane] =
            make_float4(sums.at[0], sums.at[1], sums.at[2], sums.at[3]);
        __syncthreads(); /* the warps' sums are there */
        if (t < VECTOR_BLOCK) {
            float sum = 0;
#pragma unroll
            for (int k = 0; k < VECTOR_WARPS; k++)
                sum += s.sums[k][t];
            s.y[t] = old - sum;
        }
    } else {
        float sum = fold_rows(sums.at, lane);
        if (lane % 4 == 0)
            s.y[row] = old - sum;
    }
    __syncthreads(); /* y is there */
}

template <bool TURNED>
__global__ void __launch_bounds__(VECTOR_THREADS, 1)
    solve_vector(const __grid_constant__ vector_job job)
{
    extern __shared__ float4 vector_room[];
    vector_memory &s = *(vector_memory *)vector_room;
    const int t = (int)threadIdx.x, lane = t % 32, warp = t / 32;
    const int blocks = (job.n + VECTOR_BLOCK - 1) / VECTOR_BLOCK;
    const bool is_forward = (job.is_lower != 0) != TURNED;
    for (;;) {
        if (t == 0)
            s.taken = (int)atomicAdd(job.next, 1u);
        __syncthreads();            /* what is taken is there */
        const int before = s.taken; /* blocks */
        if (before >= blocks)
            return;
        auto place = [&](int k) { return is_forward ? k : blocks - 1 - k; };
        const int own = place(before);
        bring_square<TURNED>(job, own, is_forward, s, t);
        __syncthreads(); /* the square is there */
        invert_block(s, t);
        vector_tile inverse, tile[2];
#pragma unroll
        for (int k = 0; k < VECTOR_ROWS; k++) {
            int i = warp * VECTOR_ROWS + k, last = VECTOR_BLOCK - 1;
            float4 v = *(const float4 *)&s
                            .inverse[is_forward ? i : last - i]
                                    [is_forward ? 4 * lane : 124 - 4 * lane];
            inverse.row[k] = is_forward ? v : make_float4(v.w, v.z, v.y, v.x);
        }
        auto bring = [&](int k, vector_tile *to) {
            int down = TURNED ? place(k) : own,
                across = TURNED ? own : place(k);
            bring_tile(job, down * VECTOR_BLOCK + warp * VECTOR_ROWS,
                       across * VECTOR_BLOCK + 4 * lane, to);
        };
        vector_sums<TURNED> sums = {};
        if (before > 0)
            bring(0, &tile[0]);
        if (before > 1)
            bring(1, &tile[1]);
#pragma unroll 1
        for (int k = 0; k < before; k += 2) {
            take_products<TURNED>(job, tile[0], place(k), s.x[0], t, &sums);
            if (k + 2 < before)
                bring(k + 2, &tile[0]);
            if (k + 1 == before)
                break;
            take_products<TURNED>(job, tile[1], place(k + 1), s.x[1], t, &sums);
            if (k + 3 < before)
                bring(k + 3, &tile[1]);
        }
        take_from<TURNED>(job, own, sums, s, t);
        float4 y = *(const float4 *)&s.y[4 * lane];
        float x[VECTOR_ROWS];
#pragma unroll
        for (int k = 0; k < VECTOR_ROWS; k++)
            x[k] = sum_of_products(inverse.row[k], y);
        float solved = fold_rows(x, lane);
        int at = own * VECTOR_BLOCK + warp * VECTOR_ROWS + row_in_warp(lane);
        if (lane % 4 == 0) {
            tell_solved(job.solved + at, solved);
            if (at < job.n)
                job.x[at] = solved;
        }
    }
}

template <bool TURNED>
static gpu_status launch_vector(cuda_device *d, const vector_job &job)
{
    static int prepared;
    TRY(set_once(d, (const void *)solve_vector<TURNED>,
                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                 (int)sizeof(vector_memory), &prepared));
    unsigned blocks = (unsigned)smaller(vector_blocks(job.n), d->sms);
    solve_vector<TURNED>
        <<<blocks, VECTOR_THREADS, sizeof(vector_memory), d->stream>>>(job);
    LAUNCHED(d);
    return GPU_OK;
}

/* x = t^-1 x, or that of its transpose; work: vector_bytes(n). */
static gpu_status solve_vector_with(cuda_device *d, const float *t, int64_t ld,
                                    int n, int is_lower, int is_unit,
                                    int is_turned, float *x, void *work)
{
    vector_job job = {t,
                      ld,
                      n,
                      is_lower,
                      is_unit,
                      x,
                      (unsigned *)work,
                      (unsigned long long *)work + 2};
    TRY(gpu_cuda_check(d,
                       cudaMemsetAsync(work, 0, vector_bytes(n), d->stream)));
    return is_turned ? launch_vector<true>(d, job)
                     : launch_vector<false>(d, job);
}

#endif
