/* The second part of bf16 and tf32 where there is no wgmma: mma.sync.
 *
 * Eight warps have a tile of 128 x 128, 64 x 32 each; steps of k come through
 * a ring of three slots by cp.async. A step is 64 bytes of each line of an
 * operand along k, or as many lines of one along n. Fragments of both types
 * are the same bytes. Limited by shared memory reads. Needs sm_80. */
#include "copies.h"
#include "narrow.h"

enum { THREADS = 256, SIDE = 128, SLOTS = 3 };
enum { OPERAND = SIDE * 64, SLOT = 2 * OPERAND }; /* bytes */

typedef struct kind_sizes {
    int element, step; /* bytes, of k */
} kind_sizes;

template <narrow_kind KIND>
constexpr kind_sizes SIZES =
    KIND == NARROW_BF16 ? kind_sizes{2, 32} : kind_sizes{4, 16};

/* --- shared memory ------------------------------------------------------ */

/* Chunks of 16 bytes lie so that eight lines' chunks, which are read at once,
 * are in different banks. Lines along k have 4 chunks, along n 16. */
__device__ __forceinline__ uint32_t along_k_at(int line, int chunk)
{
    return line * 64 + (chunk ^ (line >> 1 & 3)) * 16;
}

__device__ __forceinline__ uint32_t along_n_at(int line, int chunk)
{
    return line * 256 + (chunk ^ (line & 7)) * 16;
}

/* A part of a plane: 128 lines by 64 bytes, or a step of lines by 256. */
template <int ELEMENT>
__device__ __forceinline__ void copy_operand(const narrow_plane &p,
                                             bool is_along_k, uint32_t slot,
                                             int64_t line, int64_t at)
{
    int per_line = is_along_k ? 4 : 16;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int t = (int)threadIdx.x + i * THREADS;
        int l = t / per_line, chunk = t % per_line;
        int64_t x = at + chunk * (16 / ELEMENT);
        int64_t left = line + l < p.lines ? (p.length - x) * ELEMENT : 0;
        int bytes = (int)max((int64_t)0, min((int64_t)16, left));
        int64_t from = bytes ? (line + l) * p.pitch + x : 0;
        copy_async<16>(
            slot + (is_along_k ? along_k_at(l, chunk) : along_n_at(l, chunk)),
            (const char *)p.data + from * ELEMENT, bytes);
    }
}

/* --- fragments ---------------------------------------------------------- */

template <bool TURNED>
__device__ __forceinline__ void load_matrices(unsigned (&x)[4], uint32_t from)
{
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                     "{%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(from)
                     : "memory");
    else
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
            : "r"(from)
            : "memory");
}

/* 16 rows of a by 32 bytes of k. */
__device__ __forceinline__ void load_a(unsigned (&x)[4], uint32_t slot, int row,
                                       int half, int lane)
{
    load_matrices<false>(
        x, slot + along_k_at(row + lane % 16, half * 2 + lane / 16));
}

/* 16 columns of b by 32 bytes of k: two for the first eight, then two. */
template <narrow_kind KIND>
__device__ __forceinline__ void load_b(unsigned (&x)[4], uint32_t slot, int col,
                                       int half, int lane)
{
    if (KIND == NARROW_BF16)
        load_matrices<true>(
            x, slot + along_n_at(half * 16 + lane % 16, col / 8 + lane / 16));
    else
        load_matrices<false>(x,
                             slot + along_k_at(col + lane % 8 + lane / 16 * 8,
                                               half * 2 + lane / 8 % 2));
}

/* 16 x 8 += 16 x 16 times 16 x 8 (bf16), 16 x 8 times 8 x 8 (tf32). */
template <narrow_kind KIND>
__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4],
                                    unsigned x, unsigned y)
{
#if __CUDA_ARCH__ >= 800
    if (KIND == NARROW_BF16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(x),
                       "r"(y));
    else
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(x),
                       "r"(y));
#endif
}

/* --- the kernel --------------------------------------------------------- */

/* A warp's 64 x 32 sums: 16 x 8 each. */
typedef float warp_sums[4][4][4];

template <narrow_kind KIND>
__device__ __forceinline__ void multiply_slot(warp_sums &sum, uint32_t slot,
                                              int row, int col, int lane)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        unsigned a[4][4], b[2][4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            load_a(a[i], slot, row + i * 16, half, lane);
#pragma unroll
        for (int j = 0; j < 2; j++)
            load_b<KIND>(b[j], slot + OPERAND, col + j * 16, half, lane);
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                mma<KIND>(sum[i][j], a[i], b[j / 2][j % 2 * 2],
                          b[j / 2][j % 2 * 2 + 1]);
    }
}

__device__ __forceinline__ void write_sums(const narrow_product &p,
                                           const warp_sums &sum, int64_t row,
                                           int64_t col, int lane)
{
    product<float> to = {};
    to.c = p.c;
    to.c_row = p.c_row;
    to.c_col = p.c_col;
    to.alpha = p.alpha;
    to.beta = p.beta;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int64_t r = row + i * 16 + lane / 4 + e / 2 * 8;
                int64_t c = col + j * 8 + lane % 4 * 2 + e % 2;
                if (r < p.m && c < p.n)
                    write_c(to, r, c, sum[i][j][e]);
            }
}

template <narrow_kind KIND>
__device__ __forceinline__ void multiply_tile(const narrow_product &p,
                                              warp_sums &sum, uint32_t slots,
                                              int64_t row, int64_t col)
{
    const int element = SIZES<KIND>.element, step = SIZES<KIND>.step;
    const bool b_along_k = KIND == NARROW_TF32;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t steps = (p.k + step - 1) / step;
    auto copy = [&](int64_t s) {
        uint32_t slot = slots + (uint32_t)(s % SLOTS) * SLOT;
        if (s < steps) {
            copy_operand<element>(p.a, true, slot, row, s * step);
            copy_operand<element>(p.b, b_along_k, slot + OPERAND,
                                  b_along_k ? col : s * step,
                                  b_along_k ? s * step : col);
        }
        end_copies();
    };
    for (int s = 0; s < SLOTS - 1; s++)
        copy(s);
    for (int64_t s = 0; s < steps; s++) {
        wait_for_copies<SLOTS - 2>();
        __syncthreads(); /* slot s is full, the one before it is free */
        copy(s + SLOTS - 1);
        multiply_slot<KIND>(sum, slots + (uint32_t)(s % SLOTS) * SLOT,
                            warp / 4 * 64, warp % 4 * 32, lane);
    }
    __syncthreads(); /* all slots are free */
}

template <narrow_kind KIND>
__global__ void __launch_bounds__(THREADS)
    multiply(const __grid_constant__ narrow_product p)
{
    __shared__ alignas(128) unsigned char slots[SLOTS * SLOT];
    int64_t down = (p.m + SIDE - 1) / SIDE, across = (p.n + SIDE - 1) / SIDE;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int64_t t = blockIdx.x; t < down * across; t += gridDim.x) {
        int64_t i, j;
        tile_of(t, down, across, &i, &j);
        warp_sums sum = {};
        multiply_tile<KIND>(p, sum, shared_address(slots), i * SIDE, j * SIDE);
        write_sums(p, sum, i * SIDE + warp / 4 * 64, j * SIDE + warp % 4 * 32,
                   lane);
    }
}

gpu_status gpu_cuda_narrow_mma(cuda_device *d, const narrow_product *p)
{
    unsigned blocks = grid_for(ceil_div(p->m, SIDE) * ceil_div(p->n, SIDE));
    if (p->kind == NARROW_BF16)
        multiply<NARROW_BF16><<<blocks, THREADS, 0, d->stream>>>(*p);
    else
        multiply<NARROW_TF32><<<blocks, THREADS, 0, d->stream>>>(*p);
    LAUNCHED(d);
    return GPU_OK;
}
