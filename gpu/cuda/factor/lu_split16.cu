/* split16: LU with partial pivoting of square f32 matrices, right-looking, in
 * blocks of nb columns: the panel's columns are factored 32 at a time by one
 * cluster (pivot_columns.h), 128 of them joined by products, all of them by
 * products of 128; then the rows of the whole matrix are exchanged, U's block
 * row solved by halves, and the rest updated by split16 in place, at 160 to 230
 * TFLOP/s.
 *
 * Limited by the panels up to 16384: n pivot searches one after the other, 1.0
 * to 1.6 us each; above by the tensor cores' power. Source for the order of
 * the steps: Golub and Van Loan, Matrix Computations, 4th edition, 3.4. Needs
 * sm_90a with clusters of 16 blocks. */
#include <stdlib.h>
#include "kernel.h"
#include "lanes.h"
#include "padded.h"
#include "pivot_columns.h"

/* Of a panel, and within it. */
constexpr int JOINED = 128;
constexpr int MOST_SIDE = 32768;            /* rows that a cluster holds */
static const float LEAST_PIVOT = 0x1p-100f; /* that is well in range */

static int panel_width(int n)
{
    return n >= 12288 ? 1024 : 512;
}

/* Rows' numbers, `side` of each: where the panel's rows came from (content);
 * the same and its inverse for the first rows (from, to), of the panel and of
 * its innermost columns; the whole matrix's. */
typedef struct exchanges {
    int *content, *from, *to, *inner_from, *inner_to, *order;
    size_t bytes;
} exchanges;

static gpu_status take_exchanges(cuda_device *d, int side, exchanges *e)
{
    int **all[] = {&e->content, &e->from, &e->to, &e->inner_from, &e->inner_to};
    *e = {};
    e->bytes = 5 * (size_t)side * sizeof(int);
    TRY(gpu_cuda_take_room(d, e->bytes, (void **)&e->content));
    for (int i = 1; i < 5; i++)
        *all[i] = e->content + (int64_t)i * side;
    return GPU_OK;
}

/* --- in a panel ----------------------------------------------------------- */

__global__ void number_rows(int *p, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        p[i] = i;
}

static gpu_status start_rows(cuda_device *d, int *p, int n)
{
    number_rows<<<(unsigned)ceil_div(n, 256), 256, 0, d->stream>>>(p, n);
    LAUNCHED(d);
    return GPU_OK;
}

/* The row exchanges of the innermost columns at `at` on the panel's other
 * columns, and on content; up to `end` also the triangular solve. a: the
 * panel's top left. A thread has a column. */
template <int W>
__global__ void exchange_and_solve(float *a, int64_t ld, int at, int nb,
                                   int end, int *content, const int *from_,
                                   const int *to_)
{
    __shared__ float4 turned[W][W / 4]; /* L by columns, four rows each */
    __shared__ int from[W], to[W];
    int t = (int)threadIdx.x;
    if (t < W) {
        from[t] = from_[t];
        to[t] = to_[t];
    }
#pragma unroll 4
    for (int i = t; i < W * W / 4; i += (int)blockDim.x) {
        int r = i % W, q = i / W;
        float4 v = *(const float4 *)(a + (int64_t)(at + r) * ld + at + 4 * q);
        float *p = (float *)turned[4 * q] + r;
        p[0] = v.x;
        p[W] = v.y;
        p[2 * W] = v.z;
        p[3 * W] = v.w;
    }
    __syncthreads(); /* the block and its exchanges are there */
    int c = (int)blockIdx.x * (int)blockDim.x + t;
    if (c == nb) {
        int x[W], y[W], *p = content + at;
#pragma unroll
        for (int i = 0; i < W; i++) {
            x[i] = p[from[i]];
            y[i] = p[i];
        }
#pragma unroll
        for (int i = 0; i < W; i++)
            p[i] = x[i];
#pragma unroll
        for (int i = 0; i < W; i++)
            if (to[i] >= W)
                p[to[i]] = y[i];
        return;
    }
    if (c >= nb || (c >= at && c < at + W))
        return;
    float x[W], y[W], *p = a + (int64_t)at * ld + c;
#pragma unroll
    for (int i = 0; i < W; i++) {
        x[i] = p[from[i] * ld];
        y[i] = p[i * ld];
    }
    if (c >= at + W && c < end)
#pragma unroll
        for (int k = 0; k < W - 1; k++)
#pragma unroll
            for (int q = (k + 1) / 4; q < W / 4; q++) {
                float4 l = turned[k][q];
                if (4 * q > k)
                    x[4 * q] -= l.x * x[k];
                if (4 * q + 1 > k)
                    x[4 * q + 1] -= l.y * x[k];
                if (4 * q + 2 > k)
                    x[4 * q + 2] -= l.z * x[k];
                if (4 * q + 3 > k)
                    x[4 * q + 3] -= l.w * x[k];
            }
#pragma unroll
    for (int i = 0; i < W; i++)
        p[i * ld] = x[i];
#pragma unroll
    for (int i = 0; i < W; i++)
        if (to[i] >= W)
            p[to[i] * ld] = y[i];
}

/* content, as where the first nb rows come from, and where they go. */
__global__ void read_content(const int *content, int m, int nb, int *from,
                             int *to)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= m)
        return;
    int c = content[i];
    if (i < nb)
        from[i] = c;
    if (c < nb)
        to[c] = i;
}

/* The columns from s on, as many as are done at once, which becomes *width. */
static gpu_status factor_innermost(cuda_device *d, float *a, int64_t ld, int m,
                                   int nb, int s, int end, const exchanges *e,
                                   int *width)
{
    int w = *width = columns_at_once(m - s);
    float *p = a + s * ld + s;
    unsigned blocks = (unsigned)(nb / 64 + 1);
    TRY(find_pivots(d, p, ld, m - s, w, e->inner_from, e->inner_to));
    if (w == 16)
        exchange_and_solve<16><<<blocks, 64, 0, d->stream>>>(
            a, ld, s, nb, end, e->content, e->inner_from, e->inner_to);
    else
        exchange_and_solve<32><<<blocks, 64, 0, d->stream>>>(
            a, ld, s, nb, end, e->content, e->inner_from, e->inner_to);
    LAUNCHED(d);
    return gpu_cuda_subtract(d, p + w * ld + w, p + w * ld, p + w, ld,
                             m - s - w, end - s - w, w, 0);
}

/* m rows of nb columns. a: their top left. */
static gpu_status factor_panel(cuda_device *d, float *a, int64_t ld, int m,
                               int nb, const exchanges *e)
{
    TRY(start_rows(d, e->content, m));
    for (int first = 0, width; first < nb; first += JOINED) {
        int end = (int)smaller(nb, first + JOINED), k = end - first;
        float *p = a + first * ld + first;
        for (int s = first; s < end; s += width)
            TRY(factor_innermost(d, a, ld, m, nb, s, end, e, &width));
        if (end == nb)
            break;
        TRY(gpu_cuda_solve_unit_lower(d, p, ld, k, p + k, ld, nb - end));
        TRY(gpu_cuda_subtract(d, p + k * ld + k, p + k * ld, p + k, ld, m - end,
                              nb - end, k, 0));
    }
    read_content<<<(unsigned)ceil_div(m, 256), 256, 0, d->stream>>>(
        e->content, m, nb, e->from, e->to);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- beside it ------------------------------------------------------------ */

enum { EXCHANGE_THREADS = 512, EXCHANGE_FLOATS = 16384 };

/* A whole panel's exchanges on all columns but its own, [j, j + nb), and on
 * the order of the rows. a: row j of the matrix. A block moves `chunk` columns
 * of all rows concerned at once, through shared memory. */
__global__ void __launch_bounds__(EXCHANGE_THREADS)
    exchange_rows(float *a, int64_t ld, int n, int j, int nb, int chunk,
                  const int *from, const int *to, int *order)
{
    extern __shared__ float4 moved[];
    int t = (int)threadIdx.x, q = chunk / 4, block = (int)blockIdx.x;
    if (block == (n - nb + chunk - 1) / chunk) { /* the order */
        int *x = (int *)moved, *y = x + nb;
        for (int i = t; i < nb; i += EXCHANGE_THREADS) {
            x[i] = order[from[i]];
            y[i] = order[i];
        }
        __syncthreads(); /* all is read */
        for (int i = t; i < nb; i += EXCHANGE_THREADS) {
            order[i] = x[i];
            if (to[i] >= nb)
                order[to[i]] = y[i];
        }
        return;
    }
    int64_t col = (int64_t)block * chunk;
    if (col >= j)
        col += nb;
    float *p = a + col;
    float4 *top = moved, *old = moved + nb * q;
#pragma unroll 8
    for (int i = t; i < nb * q; i += EXCHANGE_THREADS)
        top[i] = *(const float4 *)(p + from[i / q] * ld + i % q * 4);
#pragma unroll 8
    for (int i = t; i < nb * q; i += EXCHANGE_THREADS) {
        int r = i / q;
        if (to[r] >= nb)
            old[i] = *(const float4 *)(p + r * ld + i % q * 4);
    }
    __syncthreads(); /* all is read */
    for (int i = t; i < nb * q; i += EXCHANGE_THREADS) {
        int r = i / q, other = to[r];
        *(float4 *)(p + r * ld + i % q * 4) = top[i];
        if (other >= nb)
            *(float4 *)(p + other * ld + i % q * 4) = old[i];
    }
}

/* n: the matrix's whole side; a: its row j. */
static gpu_status exchange(cuda_device *d, float *a, int64_t ld, int n, int j,
                           int nb, const exchanges *e)
{
    static int prepared;
    int chunk = (int)smaller(64, EXCHANGE_FLOATS / nb / 4 * 4);
    int bytes = 2 * nb * chunk * (int)sizeof(float);
    unsigned blocks = (unsigned)ceil_div(n - nb, chunk) + 1;
    TRY(set_once(d, (const void *)exchange_rows,
                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                 2 * EXCHANGE_FLOATS * (int)sizeof(float), &prepared));
    exchange_rows<<<blocks, EXCHANGE_THREADS, bytes, d->stream>>>(
        a, ld, n, j, nb, chunk, e->from, e->to, e->order + j);
    LAUNCHED(d);
    return GPU_OK;
}

static gpu_status factor_blocks(cuda_device *d, const padded *p, int width,
                                const exchanges *e)
{
    int n = p->side;
    int64_t ld = p->ld;
    for (int j = 0; j < n; j += width) {
        int nb = (int)smaller(width, n - j), rest = n - j - nb;
        float *a = p->data + j * ld + j, *right = a + nb;
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        TRY(factor_panel(d, a, ld, n - j, nb, e));
        TRY(exchange(d, p->data + j * ld, ld, n, j, nb, e));
        if (rest == 0)
            break;
        TRY(gpu_cuda_solve_unit_lower(d, a, ld, nb, right, ld, rest));
        TRY(gpu_cuda_subtract(d, right + nb * ld, a + nb * ld, right, ld, rest,
                              rest, nb, 0));
    }
    return GPU_OK;
}

/* --- looking ahead
 * ------------------------------------------------------------- The columns of
 * the next panel are updated first; then it is factored by one lane while the
 * other updates the rest. */

/* The panel's multiprocessors, of 132. */
enum { PANEL_SMS = 48 };

static int panel_width_ahead(int n)
{
    return n > 24576 ? 1024 : 512;
}

/* The columns [after, n) of the rows behind a panel of nb columns, and the
 * panel behind it, which ends there. a: the first one's top left; rest: rows
 * and columns behind it. */
static gpu_status go_ahead(cuda_device *d, cuda_lanes *lanes, float *a,
                           int64_t ld, int rest, int nb, int next,
                           const exchanges *e)
{
    float *behind = a + nb * ld + nb;
    TRY(gpu_cuda_fork_lanes(d, lanes));
    TRY(gpu_cuda_subtract(lanes->rest, behind + next, a + nb * ld,
                          a + nb + next, ld, rest, rest - next, nb, 0));
    TRY(factor_panel(lanes->panel, behind, ld, rest, next, e));
    return gpu_cuda_join_lanes(d, lanes);
}

static gpu_status factor_ahead(cuda_device *d, cuda_lanes *lanes,
                               const padded *p, const exchanges *e)
{
    int n = p->side, width = panel_width_ahead(n);
    int64_t ld = p->ld;
    TRY(factor_panel(d, p->data, ld, n, (int)smaller(width, n), e));
    for (int j = 0; j < n; j += width) {
        int nb = (int)smaller(width, n - j), rest = n - j - nb;
        int next = (int)smaller(width, rest);
        float *a = p->data + j * ld + j, *behind = a + nb * ld + nb;
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        TRY(exchange(d, p->data + j * ld, ld, n, j, nb, e));
        if (rest == 0)
            break;
        TRY(gpu_cuda_solve_unit_lower(d, a, ld, nb, a + nb, ld, rest));
        TRY(gpu_cuda_subtract(d, behind, a + nb * ld, a + nb, ld, rest, next,
                              nb, 0));
        if (next < rest)
            TRY(go_ahead(d, lanes, a, ld, rest, nb, next, e));
        else
            TRY(factor_panel(d, behind, ld, rest, next, e));
    }
    return GPU_OK;
}

/* --- the whole ------------------------------------------------------------ */

bool gpu_cuda_can_own_lu(const cuda_device *d, const gpu_view *a)
{
    return d->capability == 90 && d->sms >= 100 && a->dtype == GPU_F32 &&
           a->rows == a->cols && a->rows >= 64 && a->rows <= MOST_SIDE;
}

/* At first all rows are where they were. */
static gpu_status start_order(cuda_device *d, int *order, int n)
{
    size_t bytes = (size_t)n * sizeof *order;
    int *host = (int *)malloc(bytes);
    if (host == NULL)
        return FAIL(GPU_MEMORY, "lu: out of host memory");
    for (int i = 0; i < n; i++)
        host[i] = i;
    gpu_status status = gpu_cuda_upload(d, order, host, bytes);
    free(host);
    return status;
}

bool gpu_cuda_is_for_ahead(int64_t n)
{
    return n >= 10240;
}

static gpu_status factor_with(cuda_device *d, const padded *p, int is_ahead,
                              const exchanges *e)
{
    cuda_lanes *lanes = NULL;
    if (is_ahead && p->side > panel_width_ahead(p->side))
        TRY(gpu_cuda_find_lanes(d, PANEL_SMS, &lanes));
    if (lanes == NULL)
        return factor_blocks(d, p, panel_width(p->side), e);
    gpu_status status = factor_ahead(d, lanes, p, e);
    gpu_cuda_rest_lanes(d, lanes);
    return status;
}

gpu_status gpu_cuda_lu_of_padded(cuda_device *d, const padded *p, int is_ahead,
                                 int *order)
{
    exchanges e;
    TRY(take_exchanges(d, p->side, &e));
    e.order = order;
    gpu_status status = start_order(d, order, p->side);
    if (status == GPU_OK)
        status = factor_with(d, p, is_ahead, &e);
    gpu_cuda_free(d, e.content, e.bytes);
    return status;
}

gpu_status gpu_cuda_own_lu(cuda_device *d, const gpu_view *a, int is_ahead,
                           int *order, int *is_fine)
{
    padded p;
    int *whole;
    TRY(gpu_cuda_pad(d, a, 1, PADDED_ALL, &p));
    size_t bytes = (size_t)p.side * sizeof *whole;
    gpu_status status = gpu_cuda_take_room(d, bytes, (void **)&whole);
    if (status == GPU_OK) {
        status = gpu_cuda_lu_of_padded(d, &p, is_ahead, whole);
        if (status == GPU_OK)
            status = gpu_cuda_check(
                d, cudaMemcpyAsync(order, whole, (size_t)p.n * sizeof *order,
                                   cudaMemcpyDeviceToDevice, d->stream));
        gpu_cuda_free(d, whole, bytes);
    }
    if (status == GPU_OK)
        status = gpu_cuda_unpad(d, &p, PADDED_ALL, LEAST_PIVOT, a, is_fine);
    gpu_cuda_end_padded(d, &p);
    return status;
}

static gpu_status factor_lu(void *device, gpu_factoring *f)
{
    ENTER(d, device);
    if (gpu_cuda_can_own_lu(d, &f->a))
        return gpu_cuda_factor_lu(d, f);
    return FAIL(GPU_ARGUMENT,
                "lu: kernel %s cannot do %lldx%lld: it takes square matrices "
                "of sides from 64 to %d",
                f->rung->name, (long long)f->a.rows, (long long)f->a.cols,
                MOST_SIDE);
}

#define RUNG(symbol, called, what) \
    const gpu_kernel symbol = {    \
        .operation = "lu",         \
        .name = called,            \
        .idea = what,              \
        .needs = "sm_90",          \
        .precision = "f32",        \
        .capability = 90,          \
        .dtypes = 1u << GPU_F32,   \
        .bound = NULL,             \
        .matmul = NULL,            \
        .dot = NULL,               \
        .factor = factor_lu,       \
    }
RUNG(gpu_cuda_lu_split16, "split16",
     "blocked; pivots by clusters, the rest updated on tensor cores");
RUNG(gpu_cuda_lu_ahead, "ahead",
     "the same, the next panel factored beside the update");
