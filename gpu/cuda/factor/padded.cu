/* Copies that our own factorisations work on, and the products in them. */
#include "la.h"
#include "lanes.h"
#include "padded.h"

enum { TILE = 32, TILE_ROWS = 8 };

/* A tile of 32 x 32 at a time, through shared memory, as one side may lie row
 * by row and the other column by column. Tiles above the diagonal are left out
 * where only the lower triangle is meant. */
template <class T>
__global__ void __launch_bounds__(TILE *TILE_ROWS)
    copy_in(const T *a, int64_t row, int64_t col, int n, T scale, float *to,
            int64_t ld, int part)
{
    __shared__ float tile[TILE][TILE + 1];
    int i0 = (int)blockIdx.y * TILE, j0 = (int)blockIdx.x * TILE;
    int x = threadIdx.x, by_columns = row == 1;
    if (part == PADDED_LOWER && j0 > i0)
        return;
#pragma unroll
    for (int k = threadIdx.y; k < TILE; k += TILE_ROWS) {
        int i = i0 + (by_columns ? x : k), j = j0 + (by_columns ? k : x);
        float v = i == j;
        if (i < n && j < n)
            v = (float)(a[i * row + j * col] * scale);
        if (by_columns)
            tile[x][k] = v;
        else
            tile[k][x] = v;
    }
    __syncthreads(); /* the tile is there */
#pragma unroll
    for (int k = threadIdx.y; k < TILE; k += TILE_ROWS)
        to[(i0 + k) * ld + j0 + x] = tile[k][x];
}

__global__ void __launch_bounds__(TILE *TILE_ROWS)
    copy_out(const float *from, int64_t ld, int n, float *a, int64_t row,
             int64_t col, int part)
{
    __shared__ float tile[TILE][TILE + 1];
    int i0 = (int)blockIdx.y * TILE, j0 = (int)blockIdx.x * TILE;
    int x = threadIdx.x, by_columns = row == 1;
    if (part == PADDED_LOWER && j0 > i0)
        return;
#pragma unroll
    for (int k = threadIdx.y; k < TILE; k += TILE_ROWS)
        tile[k][x] = from[(i0 + k) * ld + j0 + x];
    __syncthreads(); /* the tile is there */
#pragma unroll
    for (int k = threadIdx.y; k < TILE; k += TILE_ROWS) {
        int i = i0 + (by_columns ? x : k), j = j0 + (by_columns ? k : x);
        if (i < n && j < n && (part == PADDED_ALL || j <= i))
            a[i * row + j * col] = by_columns ? tile[x][k] : tile[k][x];
    }
}

enum { LOOKERS = 256 };

/* A block looks at rows, four columns a thread; *odd is set where there is Inf
 * or NaN in the part that is meant, or less than least on the diagonal. */
__global__ void __launch_bounds__(LOOKERS)
    look_for_odd(const float *a, int64_t ld, int side, int part, float least,
                 int *odd)
{
    float sum = 0; /* zero times anything finite */
    for (int i = (int)blockIdx.x; i < side; i += (int)gridDim.x) {
        int end = part == PADDED_LOWER ? i + 1 : side;
        float pivot = fabsf(a[i * ld + i]);
        if (threadIdx.x == 0 && pivot > 0 && pivot < least)
            *odd = 1;
        for (int j = 4 * (int)threadIdx.x; j < end; j += 4 * LOOKERS) {
            float4 v = *(const float4 *)(a + i * ld + j);
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
    unsigned across = (unsigned)(p->side / TILE);
    return dim3(across, across);
}

gpu_status gpu_cuda_pad(cuda_device *d, const gpu_view *a, double scale,
                        padded_part part, padded *p)
{
    *p = {};
    p->n = (int)a->rows;
    p->side = (int)(ceil_div(a->rows, PAD) * PAD);
    p->ld = ceil_div(p->side, PAD_ROW) * PAD_ROW;
    p->bytes = (size_t)(p->side * p->ld) * sizeof(float);
    TRY(gpu_cuda_take_room(d, sizeof *p->odd, (void **)&p->odd));
    gpu_status status = gpu_cuda_take_room(d, p->bytes, (void **)&p->data);
    if (status == GPU_OK)
        status = gpu_cuda_check(
            d, cudaMemsetAsync(p->odd, 0, sizeof *p->odd, d->stream));
    if (status == GPU_OK && a->dtype == GPU_F64)
        copy_in<<<tiles_of(p), dim3(TILE, TILE_ROWS), 0, d->stream>>>(
            (const double *)a->data, a->row_stride, a->col_stride, p->n, scale,
            p->data, p->ld, part);
    else if (status == GPU_OK)
        copy_in<<<tiles_of(p), dim3(TILE, TILE_ROWS), 0, d->stream>>>(
            (const float *)a->data, a->row_stride, a->col_stride, p->n,
            (float)scale, p->data, p->ld, part);
    if (status == GPU_OK)
        status = gpu_cuda_check(d, cudaGetLastError());
    if (status != GPU_OK)
        gpu_cuda_end_padded(d, p);
    return status;
}

gpu_status gpu_cuda_unpad(cuda_device *d, const padded *p, padded_part part,
                          float least, const gpu_view *a, int *is_fine)
{
    int odd = 0;
    look_for_odd<<<(unsigned)smaller(p->side, 8 * d->sms), LOOKERS, 0,
                   d->stream>>>(p->data, p->ld, p->side, part, least, p->odd);
    LAUNCHED(d);
    TRY(gpu_cuda_download(d, &odd, p->odd, sizeof odd));
    *is_fine = !odd;
    if (odd)
        return GPU_OK;
    copy_out<<<tiles_of(p), dim3(TILE, TILE_ROWS), 0, d->stream>>>(
        p->data, p->ld, p->n, (float *)a->data, a->row_stride, a->col_stride,
        part);
    return gpu_cuda_check(d, cudaGetLastError());
}

void gpu_cuda_end_padded(cuda_device *d, padded *p)
{
    gpu_cuda_free(d, p->data, p->bytes);
    gpu_cuda_free(d, p->odd, sizeof *p->odd);
    p->data = NULL;
    p->odd = NULL;
}

/* --- products ------------------------------------------------------------- */

/* Below it a product is bytes and launches, and split16 splits in vain. On a
 * panel's few multiprocessors it gains more. */
static int is_worth_splitting(const cuda_device *d, int64_t m, int64_t n,
                              int64_t k)
{
    if (k < 128 || m < 128 || n < 128)
        return 0;
    if (d->lane == LANE_PANEL)
        return m >= 1024;
    return n >= 2048 || (k >= 256 && n >= 512 && m * n >= 1 << 20);
}

gpu_status gpu_cuda_subtract(cuda_device *d, float *c, const float *a,
                             const float *b, int64_t ld, int64_t m, int64_t n,
                             int64_t k, int is_turned)
{
    if (m <= 0 || n <= 0 || k <= 0)
        return GPU_OK;
    if (is_worth_splitting(d, m, n, k) ||
        (is_turned && is_worth_splitting(d, n, m, k))) {
        gpu_gemm g = {};
        g.a = {(void *)a, GPU_F32, m, k, ld, 1};
        g.b = {(void *)b,          GPU_F32,           k, n,
               is_turned ? 1 : ld, is_turned ? ld : 1};
        g.c = {c, GPU_F32, m, n, ld, 1};
        g.alpha = -1;
        g.beta = 1;
        return gpu_cuda_split16_add(d, &g);
    }
    /* column by column: c^T -= b^T a^T */
    la_product p = {};
    p.mode = LA_F32;
    p.m = n;
    p.n = m;
    p.k = k;
    p.a = {(void *)b, ld, is_turned};
    p.b = {(void *)a, ld, 0};
    p.c = {c, ld, 0};
    p.alpha = -1;
    p.beta = 1;
    return gpu_cuda_la_matmul(d, "split16", &p);
}
