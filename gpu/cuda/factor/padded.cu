/* Copies that our own factorisations work on, and the products in them. */
#include <math.h>
#include "block_solve.h"
#include "doubled.h"
#include "la.h"
#include "lanes.h"
#include "padded.h"

enum { TILE = 32, TILE_ROWS = 8 };

/* Elements of a copy: where they lie. */
__device__ __forceinline__ void place(float *to, int64_t ld, int i, int j,
                                      float v)
{
    to[i * ld + j] = v;
}

__device__ __forceinline__ void place(float *to, int64_t ld, int i, int j,
                                      float2 v)
{
    place(to, ld, 2 * i, j, v.x);
    place(to, ld, 2 * i + 1, j, v.y);
}

template <class E>
__device__ __forceinline__ E taken(const float *from, int64_t ld, int i, int j)
{
    return from[i * ld + j];
}

template <>
__device__ __forceinline__ float2 taken<float2>(const float *from, int64_t ld,
                                                int i, int j)
{
    return {from[2 * i * ld + j], from[(2 * i + 1) * ld + j]};
}

/* A tile of 32 x 32 at a time, through shared memory, as one side may lie row
 * by row and the other column by column. Tiles above the diagonal are left out
 * where only the lower triangle is meant. E: an element of the copy, of which S
 * is a part. */
template <class E, class T, class S>
__global__ void __launch_bounds__(TILE *TILE_ROWS)
    copy_in(const T *a, int64_t row, int64_t col, int rows, int cols, S scale,
            const float *scales, float *to, int64_t ld, int part)
{
    __shared__ E tile[TILE][TILE + 1];
    int i0 = (int)blockIdx.y * TILE, j0 = (int)blockIdx.x * TILE;
    int x = threadIdx.x, by_columns = row == 1;
    if (part == PADDED_LOWER && j0 > i0)
        return;
#pragma unroll
    for (int k = threadIdx.y; k < TILE; k += TILE_ROWS) {
        int i = i0 + (by_columns ? x : k), j = j0 + (by_columns ? k : x);
        E v = unit<E>(i == j);
        if (i < rows && j < cols)
            v = times(a[i * row + j * col], scales ? (S)scales[j] : scale);
        if (by_columns)
            tile[x][k] = v;
        else
            tile[k][x] = v;
    }
    __syncthreads(); /* the tile is there */
#pragma unroll
    for (int k = threadIdx.y; k < TILE; k += TILE_ROWS)
        place(to, ld, i0 + k, j0 + x, tile[k][x]);
}

template <class E>
__global__ void __launch_bounds__(TILE *TILE_ROWS)
    copy_out(const float *from, int64_t ld, int rows, int cols,
             const float *scales, E *a, int64_t row, int64_t col, int part)
{
    __shared__ E tile[TILE][TILE + 1];
    int i0 = (int)blockIdx.y * TILE, j0 = (int)blockIdx.x * TILE;
    int x = threadIdx.x, by_columns = row == 1;
    if (part == PADDED_LOWER && j0 > i0)
        return;
#pragma unroll
    for (int k = threadIdx.y; k < TILE; k += TILE_ROWS)
        tile[k][x] = taken<E>(from, ld, i0 + k, j0 + x);
    __syncthreads(); /* the tile is there */
#pragma unroll
    for (int k = threadIdx.y; k < TILE; k += TILE_ROWS) {
        int i = i0 + (by_columns ? x : k), j = j0 + (by_columns ? k : x);
        E v = by_columns ? tile[x][k] : tile[k][x];
        if (i < rows && j < cols && (part == PADDED_ALL || j <= i))
            a[i * row + j * col] =
                scales && j >= i ? times(v, 1 / scales[j]) : v;
    }
}

enum { LOOKERS = 256 };

/* A block looks at rows, four columns a thread; *odd is set where there is Inf
 * or NaN in the part that is meant, or on the diagonal, whose numbers are real,
 * less than least or more than most. */
__global__ void __launch_bounds__(LOOKERS)
    look_for_odd(const float *a, int64_t ld, int parts, int side, int across,
                 int part, float least, float most, int *odd)
{
    float sum = 0; /* zero times anything finite */
    for (int r = (int)blockIdx.x; r < parts * side; r += (int)gridDim.x) {
        int i = r / parts;
        int end = part == PADDED_LOWER ? min(i + 1, across) : across;
        if (threadIdx.x == 0 && r == i * parts && i < across) {
            float pivot = fabsf(a[r * ld + i]);
            if (pivot > 0 && (pivot < least || pivot > most))
                *odd = 1;
        }
        for (int j = 4 * (int)threadIdx.x; j < end; j += 4 * LOOKERS) {
            float4 v = *(const float4 *)(a + r * ld + j);
            sum += v.x * 0;
            if (j + 1 < end)
                sum += v.y * 0;
            if (j + 2 < end)
                sum += v.z * 0;
            if (j + 3 < end)
                sum += v.w * 0;
        }
    }
    if (!(sum == 0))
        *odd = 1;
}

static dim3 tiles_of(const padded *p)
{
    return dim3((unsigned)(p->across / TILE), (unsigned)(p->side / TILE));
}

template <class E, class T, class S>
static void launch_copy(cuda_device *d, const gpu_view *a, int rows, int cols,
                        S scale, padded_part part, const padded *p)
{
    copy_in<E><<<tiles_of(p), dim3(TILE, TILE_ROWS), 0, d->stream>>>(
        (const T *)a->data, a->row_stride, a->col_stride, rows, cols, scale,
        p->scales, p->data, p->ld, part);
}

/* rows, cols: of a's that are copied. */
static gpu_status fill_padded(cuda_device *d, const gpu_view *a, int rows,
                              int cols, double scale, padded_part part,
                              padded *p)
{
    if (a->dtype == GPU_F64)
        launch_copy<float, double>(d, a, rows, cols, scale, part, p);
    else if (a->dtype == GPU_C64)
        launch_copy<float2, float2>(d, a, rows, cols, (float)scale, part, p);
    else
        launch_copy<float, float>(d, a, rows, cols, (float)scale, part, p);
    gpu_status status = gpu_cuda_check(d, cudaGetLastError());
    if (status != GPU_OK)
        gpu_cuda_end_padded(d, p);
    return status;
}

static int parts_of(const gpu_view *a)
{
    return a->dtype == GPU_C64 ? 2 : 1;
}

/* For a, without elements yet. */
static gpu_status begin_padded(cuda_device *d, const gpu_view *a, padded *p)
{
    *p = {};
    p->parts = parts_of(a);
    p->n = (int)a->rows;
    p->cols = (int)a->cols;
    p->side = (int)(ceil_div(a->rows, PAD) * PAD);
    p->across = (int)(ceil_div(a->cols, PAD) * PAD);
    p->ld = ceil_div(p->across, PAD_ROW) * PAD_ROW;
    p->bytes = (size_t)(p->parts * p->side * p->ld) * sizeof(float);
    TRY(gpu_cuda_take_room(d, sizeof *p->odd, (void **)&p->odd));
    gpu_status status = gpu_cuda_take_room(d, p->bytes, (void **)&p->data);
    if (status == GPU_OK)
        status = gpu_cuda_check(
            d, cudaMemsetAsync(p->odd, 0, sizeof *p->odd, d->stream));
    if (status != GPU_OK)
        gpu_cuda_end_padded(d, p);
    return status;
}

gpu_status gpu_cuda_pad(cuda_device *d, const gpu_view *a, double scale,
                        padded_part part, padded *p)
{
    TRY(begin_padded(d, a, p));
    return fill_padded(d, a, p->n, p->cols, scale, part, p);
}

gpu_status gpu_cuda_pad_identity(cuda_device *d, const gpu_view *b, padded *p)
{
    TRY(begin_padded(d, b, p));
    return fill_padded(d, b, 0, 0, 1, PADDED_ALL, p);
}

gpu_status gpu_cuda_copy_back(cuda_device *d, const padded *p, padded_part part,
                              const gpu_view *a)
{
    dim3 tiles = tiles_of(p), threads(TILE, TILE_ROWS);
    if (p->parts == 2)
        copy_out<<<tiles, threads, 0, d->stream>>>(
            p->data, p->ld, p->n, p->cols, p->scales, (float2 *)a->data,
            a->row_stride, a->col_stride, part);
    else
        copy_out<<<tiles, threads, 0, d->stream>>>(
            p->data, p->ld, p->n, p->cols, p->scales, (float *)a->data,
            a->row_stride, a->col_stride, part);
    return gpu_cuda_check(d, cudaGetLastError());
}

/* The power of two that brings a number to [1, 2), or as near as one does. */
__device__ __forceinline__ float scale_of(unsigned bits)
{
    int exponent = (int)(bits >> 23);
    return bits == 0 ? 1 : scalbnf(1, exponent == 0 ? 126 : 127 - exponent);
}

/* A block has a column, of so many numbers; *most becomes the bits of the
 * largest magnitude of all. scales: NULL, or for each column its own. */
__global__ void __launch_bounds__(LOOKERS)
    find_largest(const float *a, int64_t ld, int numbers, int cols,
                 float *scales, unsigned *most)
{
    __shared__ unsigned of_column;
    for (int j = (int)blockIdx.x; j < cols; j += (int)gridDim.x) {
        unsigned largest = 0;
        if (threadIdx.x == 0)
            of_column = 0;
        __syncthreads(); /* so it is */
#pragma unroll 4
        for (int i = (int)threadIdx.x; i < numbers; i += LOOKERS)
            largest = max(largest, __float_as_uint(a[i + j * ld]) & 0x7fffffff);
        largest = __reduce_max_sync(~0u, largest);
        if (threadIdx.x % 32 == 0)
            atomicMax(&of_column, largest);
        __syncthreads(); /* the column's is known */
        if (threadIdx.x == 0) {
            atomicMax(most, of_column);
            if (scales)
                scales[j] = scale_of(of_column);
        }
        __syncthreads(); /* and read */
    }
}

gpu_status gpu_cuda_find_largest(cuda_device *d, const gpu_view *a,
                                 float *scales, float *largest)
{
    unsigned *most;
    int parts = parts_of(a);
    TRY(gpu_cuda_take_room(d, sizeof *most, (void **)&most));
    gpu_status status =
        gpu_cuda_check(d, cudaMemsetAsync(most, 0, sizeof *most, d->stream));
    if (status == GPU_OK) {
        find_largest<<<(unsigned)smaller(a->cols, 16 * d->sms), LOOKERS, 0,
                       d->stream>>>((const float *)a->data,
                                    parts * a->col_stride, parts * (int)a->rows,
                                    (int)a->cols, scales, most);
        status = gpu_cuda_check(d, cudaGetLastError());
    }
    if (status == GPU_OK)
        status = gpu_cuda_download(d, largest, most, sizeof *largest);
    gpu_cuda_free(d, most, sizeof *most);
    return status;
}

gpu_status gpu_cuda_pad_by_columns(cuda_device *d, const gpu_view *a, padded *p,
                                   int *is_finite)
{
    float largest;
    TRY(begin_padded(d, a, p));
    p->scale_bytes = (size_t)a->cols * sizeof *p->scales;
    gpu_status status =
        gpu_cuda_take_room(d, p->scale_bytes, (void **)&p->scales);
    if (status == GPU_OK)
        status = gpu_cuda_find_largest(d, a, p->scales, &largest);
    if (status != GPU_OK) {
        gpu_cuda_end_padded(d, p);
        return status;
    }
    *is_finite = largest - largest == 0;
    return fill_padded(d, a, p->n, p->cols, 1, PADDED_ALL, p);
}

gpu_status gpu_cuda_unpad(cuda_device *d, const padded *p, padded_part part,
                          float least, float most, const gpu_view *a,
                          int *is_fine)
{
    int odd = 0;
    look_for_odd<<<(unsigned)smaller(p->side, 8 * d->sms), LOOKERS, 0,
                   d->stream>>>(p->data, p->ld, p->parts, p->side, p->across,
                                part, least, most, p->odd);
    LAUNCHED(d);
    TRY(gpu_cuda_download(d, &odd, p->odd, sizeof odd));
    *is_fine = !odd;
    return odd ? GPU_OK : gpu_cuda_copy_back(d, p, part, a);
}

void gpu_cuda_end_padded(cuda_device *d, padded *p)
{
    gpu_cuda_free(d, p->data, p->bytes);
    gpu_cuda_free(d, p->odd, sizeof *p->odd);
    gpu_cuda_free(d, p->scales, p->scale_bytes);
    p->scales = NULL;
    p->data = NULL;
    p->odd = NULL;
}

/* --- products ------------------------------------------------------------- */

/* Of what has few results of many products each: cuBLAS takes longer. */
static const double LEAST_DEEP = 2e9;

/* Below it a product is bytes and launches, and split16 splits in vain. On a
 * panel's few multiprocessors it gains more. */
static int is_worth_splitting(const cuda_device *d, int64_t m, int64_t n,
                              int64_t k)
{
    if (k < 128 || m < 128 || n < 128)
        return 0;
    if (d->lane == LANE_PANEL)
        return m >= 1024;
    return n >= 2048 || (k >= 256 && n >= 512 && m * n >= 1 << 20) ||
           (k >= 256 && n >= 256 && m * n >= 1 << 21);
}

/* Where b is turned c's columns may be few. */
static int is_for_split16(const cuda_device *d, const gpu_view *c,
                          const gpu_view *b)
{
    int64_t m = c->rows, n = c->cols, k = b->rows;
    return is_worth_splitting(d, m, n, k) ||
           (b->row_stride == 1 && (n >= 256 || k >= 256) &&
            is_worth_splitting(d, n, m, k));
}

static la_operand operand_of(const gpu_view *v)
{
    int is_turned = v->row_stride == 1 && v->cols > 1;
    return {v->data, is_turned ? v->col_stride : v->row_stride, is_turned};
}

/* Column by column: c^T = alpha b^T a^T + beta c^T. */
static gpu_status multiply_by_cublas(cuda_device *d, const gpu_gemm *g)
{
    la_product p = {};
    p.mode = LA_F32;
    p.m = g->c.cols;
    p.n = g->c.rows;
    p.k = g->a.cols;
    p.a = operand_of(&g->b);
    p.b = operand_of(&g->a);
    p.c = operand_of(&g->c);
    p.alpha = g->alpha;
    p.beta = g->beta;
    return gpu_cuda_la_matmul(d, "split16", &p);
}

static gpu_gemm gemm_of(const gpu_view *c, const gpu_view *a, const gpu_view *b,
                        double alpha, double beta)
{
    gpu_gemm g = {};
    g.a = *a;
    g.b = *b;
    g.c = *c;
    g.alpha = alpha;
    g.beta = beta;
    return g;
}

gpu_status gpu_cuda_multiply_views(cuda_device *d, const gpu_view *c,
                                   const gpu_view *a, const gpu_view *b)
{
    if (c->rows <= 0 || c->cols <= 0)
        return GPU_OK;
    gpu_gemm g = gemm_of(c, a, b, 1, 0);
    double flops = 2.0 * (double)c->rows * (double)c->cols * (double)b->rows;
    int is_deep = b->rows >= 1024 && flops >= LEAST_DEEP;
    return is_deep || is_for_split16(d, c, b) ? gpu_cuda_split16_normwise(d, &g)
                                              : multiply_by_cublas(d, &g);
}

gpu_status gpu_cuda_subtract_views(cuda_device *d, const gpu_view *c,
                                   const gpu_view *a, const gpu_view *b)
{
    if (c->rows <= 0 || c->cols <= 0 || a->cols <= 0)
        return GPU_OK;
    gpu_gemm g = gemm_of(c, a, b, -1, 1);
    return is_for_split16(d, c, b) ? gpu_cuda_split16_add(d, &g)
                                   : multiply_by_cublas(d, &g);
}

gpu_view gpu_cuda_rows_view(const float *data, int64_t rows, int64_t cols,
                            int64_t ld)
{
    return {(void *)data, GPU_F32, rows, cols, ld, 1};
}

gpu_status gpu_cuda_subtract(cuda_device *d, float *c, const float *a,
                             const float *b, int64_t ld, int64_t m, int64_t n,
                             int64_t k, int is_turned)
{
    gpu_view to = gpu_cuda_rows_view(c, m, n, ld);
    gpu_view left = gpu_cuda_rows_view(a, m, k, ld);
    gpu_view right =
        gpu_cuda_rows_view(b, is_turned ? n : k, is_turned ? k : n, ld);
    if (is_turned)
        swap_axes(&right);
    return gpu_cuda_subtract_views(d, &to, &left, &right);
}

gpu_status gpu_cuda_subtract_lower(cuda_device *d, const gpu_view *c,
                                   const gpu_view *a, const gpu_view *b)
{
    gpu_view right = *b;
    swap_axes(&right);
    if (c->rows <= 0 || a->cols <= 0 || !is_for_split16(d, c, &right))
        return gpu_cuda_subtract_views(d, c, a, &right);
    gpu_gemm g = gemm_of(c, a, &right, -1, 1);
    return gpu_cuda_split16_add_lower(d, &g);
}

/* By halves. */
gpu_status gpu_cuda_solve_unit_lower(cuda_device *d, const float *L,
                                     int64_t ldl, int nb, float *x, int64_t ldx,
                                     int n)
{
    if (nb <= MOST_BLOCK)
        return solve_with_block(d, L, ldl, nb, x, ldx, n);
    int half = (int)ceil_div(nb / 2, MOST_BLOCK) * MOST_BLOCK, rest = nb - half;
    float *below = x + half * ldx;
    gpu_view to = gpu_cuda_rows_view(below, rest, n, ldx);
    gpu_view left = gpu_cuda_rows_view(L + half * ldl, rest, half, ldl);
    gpu_view right = gpu_cuda_rows_view(x, half, n, ldx);
    TRY(gpu_cuda_solve_unit_lower(d, L, ldl, half, x, ldx, n));
    TRY(gpu_cuda_subtract_views(d, &to, &left, &right));
    return gpu_cuda_solve_unit_lower(d, L + half * ldl + half, ldl, rest, below,
                                     ldx, n);
}
