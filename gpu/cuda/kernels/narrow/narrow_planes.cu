/* The first part of bf16 and tf32: operands are rounded to nearest and packed
 * into lines that the tensor copy engine can read.
 *
 * One launch for both operands: where lines run as the operand's neighbours
 * do, 16 bytes at once; else tiles of 64 x 64 turn in shared memory. Limited
 * by bytes: 6 an element for bf16, 8 for tf32. Any strides. */
#include "narrow.h"
#include "split16.h"
#include "copies.h"

#include <cuda_bf16.h>

enum { THREADS = 256, TURN = 64, MANY = 4 };

/* An operand and where it goes: element x of line l. */
typedef struct job {
    const float *from;
    int64_t line_stride, stride;
    int64_t lines, length, pitch;
    void *to;
    reach how;
    int is_turned; /* the operand's neighbours lie across the lines */
    unsigned blocks;
} job;

/* --- loading ------------------------------------------------------------ */

/* Four neighbours out of the two aligned groups that hold them: no byte of a
 * group without a wanted element is read. What lies behind the last wanted
 * element is not looked at by anybody. */
__device__ __forceinline__ float4 load_across(const float *p, int64_t left)
{
    int shift = shift_of(p);
    const float4 *group = (const float4 *)(p - shift);
    float4 none = make_float4(0, 0, 0, 0);
    float4 a = left > 0 ? group[0] : none;
    float4 b = shift + left > 4 ? group[1] : none;
    vector<float> v =
        join({{a.x, a.y, a.z, a.w}}, {{b.x, b.y, b.z, b.w}}, shift);
    return make_float4(v.at[0], v.at[1], v.at[2], v.at[3]);
}

template <reach HOW>
__device__ __forceinline__ float4 load4(const float *p, int64_t stride,
                                        int64_t left)
{
    if (HOW == ALIGNED)
        return left > 0 ? *(const float4 *)p : make_float4(0, 0, 0, 0);
    if (HOW == ACROSS)
        return load_across(p, left);
    return make_float4(left > 0 ? p[0] : 0, left > 1 ? p[stride] : 0,
                       left > 2 ? p[2 * stride] : 0,
                       left > 3 ? p[3 * stride] : 0);
}

/* --- rounding ----------------------------------------------------------- */

/* Elements in 16 bytes. */
template <narrow_kind KIND> constexpr int UNIT = KIND == NARROW_BF16 ? 8 : 4;

__device__ __forceinline__ unsigned two_bf16(float x, float y)
{
    __nv_bfloat162 two = __floats2bfloat162_rn(x, y);
    return *(unsigned *)&two;
}

/* To nearest, ties to even, as the copy engine rounds. The tensor cores do not
 * see a NaN's lower bits, so it gets all of them. */
__device__ __forceinline__ unsigned one_tf32(float x)
{
    unsigned bits = __float_as_uint(x);
    unsigned rounded = bits + 0xfff + (bits >> 13 & 1);
    return x == x ? rounded & ~0x1fffu : 0x7fffffffu;
}

template <narrow_kind KIND>
__device__ __forceinline__ uint4 round_unit(const float (&x)[UNIT<KIND>])
{
    if constexpr (KIND == NARROW_BF16)
        return make_uint4(two_bf16(x[0], x[1]), two_bf16(x[2], x[3]),
                          two_bf16(x[4], x[5]), two_bf16(x[6], x[7]));
    else
        return make_uint4(one_tf32(x[0]), one_tf32(x[1]), one_tf32(x[2]),
                          one_tf32(x[3]));
}

/* --- lines as they are -------------------------------------------------- */

/* Four units a thread, all loaded before the first is stored. */
template <narrow_kind KIND, reach HOW>
__device__ __forceinline__ void round_lines(const job &j, unsigned block)
{
    const int unit = UNIT<KIND>;
    int64_t per_line = j.pitch / unit, units = j.lines * per_line;
    int64_t first = (int64_t)block * (THREADS * MANY) + threadIdx.x;
    float x[MANY][unit];
#pragma unroll
    for (int i = 0; i < MANY; i++) {
        int64_t u = first + i * THREADS;
        int64_t line = divide(u, per_line), at = (u - line * per_line) * unit;
        int64_t left = u < units ? j.length - at : 0;
        const float *from = j.from + line * j.line_stride + at * j.stride;
#pragma unroll
        for (int e = 0; e < unit; e += 4)
            *(float4 *)&x[i][e] =
                load4<HOW>(from + e * j.stride, j.stride, left - e);
    }
#pragma unroll
    for (int i = 0; i < MANY; i++)
        if (first + i * THREADS < units)
            ((uint4 *)j.to)[first + i * THREADS] = round_unit<KIND>(x[i]);
}

/* --- lines across ------------------------------------------------------- */

typedef float turned_tile[TURN][TURN + 1];

/* tile[x][l] = element x of line l, neighbours being along l. */
template <reach HOW>
__device__ __forceinline__ void read_tile(const job &j, int64_t line,
                                          int64_t at, turned_tile &tile)
{
    int l = threadIdx.x % 16 * 4;
    float4 v[MANY];
#pragma unroll
    for (int i = 0; i < MANY; i++) {
        int64_t x = at + threadIdx.x / 16 + i * 16;
        v[i] = load4<HOW>(j.from + x * j.stride + (line + l) * j.line_stride,
                          j.line_stride, x < j.length ? j.lines - line - l : 0);
    }
#pragma unroll
    for (int i = 0; i < MANY; i++) {
        float *to = &tile[threadIdx.x / 16 + i * 16][l];
        to[0] = v[i].x;
        to[1] = v[i].y;
        to[2] = v[i].z;
        to[3] = v[i].w;
    }
}

template <narrow_kind KIND>
__device__ __forceinline__ void write_tile(const job &j, int64_t line,
                                           int64_t at, const turned_tile &tile)
{
    const int unit = UNIT<KIND>, per_line = TURN / unit;
    const int lines = THREADS / per_line; /* at once */
    int u = threadIdx.x % per_line * unit;
#pragma unroll
    for (int i = 0; i < TURN / lines; i++) {
        int l = threadIdx.x / per_line + i * lines;
        float x[unit];
#pragma unroll
        for (int e = 0; e < unit; e++)
            x[e] = tile[u + e][l];
        int64_t to = (line + l) * j.pitch + at + u;
        if (line + l < j.lines && at + u < j.pitch)
            ((uint4 *)j.to)[to / unit] = round_unit<KIND>(x);
    }
}

template <narrow_kind KIND, reach HOW>
__device__ __forceinline__ void round_across(const job &j, unsigned block,
                                             turned_tile &tile)
{
    unsigned along = (unsigned)((j.pitch + TURN - 1) / TURN);
    int64_t line = (int64_t)(block / along) * TURN;
    int64_t at = (int64_t)(block % along) * TURN;
    read_tile<HOW>(j, line, at, tile);
    __syncthreads(); /* the tile is filled */
    write_tile<KIND>(j, line, at, tile);
}

template <narrow_kind KIND, reach HOW>
__device__ __forceinline__ void round_job(const job &j, unsigned block,
                                          turned_tile &tile)
{
    if (j.is_turned)
        round_across<KIND, HOW>(j, block, tile);
    else
        round_lines<KIND, HOW>(j, block);
}

template <narrow_kind KIND>
__device__ __forceinline__ void round_any(const job &j, unsigned block,
                                          turned_tile &tile)
{
    if (j.how == ALIGNED)
        round_job<KIND, ALIGNED>(j, block, tile);
    else if (j.how == ACROSS)
        round_job<KIND, ACROSS>(j, block, tile);
    else
        round_job<KIND, APART>(j, block, tile);
}

template <narrow_kind KIND>
__global__ void __launch_bounds__(THREADS)
    round_operands(const __grid_constant__ job a, const __grid_constant__ job b)
{
    __shared__ turned_tile tile;
    let_next_start();
    wait_for_previous();
    if (blockIdx.x < b.blocks)
        round_any<KIND>(b, blockIdx.x, tile);
    else
        round_any<KIND>(a, blockIdx.x - b.blocks, tile);
}

/* --- the host's side ---------------------------------------------------- */

/* Can the copy engine read the operand where it lies, and round it? */
static int is_readable(narrow_kind kind, const gpu_view *v, int64_t stride,
                       int64_t line_stride, int64_t length)
{
    return kind == NARROW_TF32 && stride == 1 && is_aligned(v->data) &&
           line_stride % 4 == 0 && line_stride >= length &&
           line_stride < (int64_t)1 << 36;
}

narrow_plane gpu_cuda_narrow_plane(const cuda_device *d, narrow_kind kind,
                                   const gpu_view *v, int is_a)
{
    narrow_plane p = {};
    int64_t unit = kind == NARROW_BF16 ? 64 : 32; /* 128 bytes */
    p.is_along_k = is_a || kind == NARROW_TF32;
    int by_rows = is_a || !p.is_along_k; /* lines are the operand's rows */
    p.lines = by_rows ? v->rows : v->cols;
    p.length = by_rows ? v->cols : v->rows;
    p.pitch = ceil_div(p.length, unit) * unit;
    int64_t stride = by_rows ? v->col_stride : v->row_stride;
    int64_t line_stride = by_rows ? v->row_stride : v->col_stride;
    p.is_direct = d->capability == 90 &&
                  is_readable(kind, v, stride, line_stride, p.length);
    if (p.is_direct) {
        p.data = v->data;
        p.pitch = line_stride;
    }
    return p;
}

size_t gpu_cuda_narrow_bytes(narrow_kind kind, const narrow_plane *p)
{
    size_t element = kind == NARROW_BF16 ? 2 : 4;
    return p->is_direct ? 0 : (size_t)(p->lines * p->pitch) * element;
}

static job plan_job(narrow_kind kind, const gpu_view *v, const narrow_plane *p,
                    int by_rows)
{
    job j = {};
    if (p->is_direct)
        return j;
    j.from = (const float *)v->data;
    j.stride = by_rows ? v->col_stride : v->row_stride;
    j.line_stride = by_rows ? v->row_stride : v->col_stride;
    j.lines = p->lines;
    j.length = p->length;
    j.pitch = p->pitch;
    j.to = p->data;
    j.is_turned = stride_size(j.line_stride) < stride_size(j.stride);
    int64_t near = j.is_turned ? j.line_stride : j.stride;
    int64_t far = j.is_turned ? j.stride : j.line_stride;
    j.how = APART;
    if (near == 1)
        j.how = far % 4 == 0 && is_aligned(v->data) ? ALIGNED : ACROSS;
    int64_t unit = kind == NARROW_BF16 ? 8 : 4;
    if (j.is_turned)
        j.blocks =
            (unsigned)(ceil_div(j.lines, TURN) * ceil_div(j.pitch, TURN));
    else
        j.blocks = (unsigned)ceil_div(j.lines * j.pitch / unit, THREADS * MANY);
    return j;
}

template <narrow_kind KIND>
static gpu_status launch_round(cuda_device *d, const job &a, const job &b)
{
    static int prepared;
    unsigned blocks = a.blocks + b.blocks;
    TRY(keep_division(d, (const void *)round_operands<KIND>, 0, &prepared));
    return launch_behind(d, round_operands<KIND>, dim3(blocks), THREADS, 0, 1,
                         a, b);
}

gpu_status gpu_cuda_narrow_round(cuda_device *d, narrow_kind kind,
                                 const gpu_gemm *g, const narrow_plane *a,
                                 const narrow_plane *b)
{
    job x = plan_job(kind, &g->a, a, 1);
    job y = plan_job(kind, &g->b, b, !b->is_along_k);
    if (x.blocks + y.blocks == 0)
        return GPU_OK;
    if (kind == NARROW_BF16)
        return launch_round<NARROW_BF16>(d, x, y);
    return launch_round<NARROW_TF32>(d, x, y);
}
