/* split16: LU with partial pivoting of f32 matrices, square ones and taller
 * ones of whole blocks of columns, right-looking, in blocks of nb columns: the
 * panel's columns are factored 32 at a time by one cluster (pivot_columns.h),
 * 128 of them joined by products, all of them by products of 128; then the rows
 * of the whole matrix are exchanged, U's block row solved by halves, and the
 * rest updated by split16 in place, at 160 to 230 TFLOP/s.
 *
 * Limited by the panels up to 16384: n pivot searches one after the other, 0.9
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

enum { BESIDE_ROWS = 64, BESIDE_THREADS = 256 };

/* c -= l u, m x cols: of W columns at `l` with the rows beside them, which are
 * above those of c; all rows ld apart. Bytes, and a launch: so it begins while
 * the pivots are still looked for. A block has 64 rows, a thread 8 of them, 8
 * apart, and four columns. */
template <int W>
__global__ void __launch_bounds__(BESIDE_THREADS)
    update_beside(float *l, int64_t ld, int m, int cols)
{
    __shared__ __align__(16) float x[W][JOINED - W];
    __shared__ __align__(16) float v[BESIDE_ROWS][W + 4];
    const int t = (int)threadIdx.x, first = (int)blockIdx.x * BESIDE_ROWS;
    const int j = t % 32 * 4, i = t / 32; /* a thread's part of c */
    float *c = l + W * ld;                /* the rows of L that multiply */
    wait_for_previous();
    let_next_start();
    for (int e = t; e < BESIDE_ROWS * W / 4; e += BESIDE_THREADS) {
        int r = e / (W / 4), q = e % (W / 4) * 4;
        float4 z = make_float4(0, 0, 0, 0);
        if (first + r < m)
            z = *(const float4 *)(c + (first + r) * ld + q);
        *(float4 *)&v[r][q] = z;
    }
    for (int e = t; e < W * (cols / 4); e += BESIDE_THREADS) {
        int r = e / (cols / 4), q = e % (cols / 4) * 4;
        *(float4 *)&x[r][q] = *(const float4 *)(l + r * ld + W + q);
    }
    float4 old[8], sum[8];
#pragma unroll
    for (int e = 0; e < 8; e++) {
        int row = first + i + 8 * e;
        sum[e] = make_float4(0, 0, 0, 0);
        if (row < m && j < cols)
            old[e] = *(const float4 *)(c + row * ld + W + j);
    }
    __syncthreads(); /* both factors are there */
    if (j >= cols)
        return;
#pragma unroll 2
    for (int k = 0; k < W; k += 4) {
        float4 z[4];
#pragma unroll
        for (int f = 0; f < 4; f++)
            z[f] = *(const float4 *)&x[k + f][j];
#pragma unroll
        for (int e = 0; e < 8; e++) {
            float4 u = *(const float4 *)&v[i + 8 * e][k];
            sum[e].x +=
                u.x * z[0].x + u.y * z[1].x + u.z * z[2].x + u.w * z[3].x;
            sum[e].y +=
                u.x * z[0].y + u.y * z[1].y + u.z * z[2].y + u.w * z[3].y;
            sum[e].z +=
                u.x * z[0].z + u.y * z[1].z + u.z * z[2].z + u.w * z[3].z;
            sum[e].w +=
                u.x * z[0].w + u.y * z[1].w + u.z * z[2].w + u.w * z[3].w;
        }
    }
#pragma unroll
    for (int e = 0; e < 8; e++) {
        int row = first + i + 8 * e;
        if (row >= m)
            break;
        *(float4 *)(c + row * ld + W + j) =
            make_float4(old[e].x - sum[e].x, old[e].y - sum[e].y,
                        old[e].z - sum[e].z, old[e].w - sum[e].w);
    }
}

/* The columns from s on, as many as are done at once, which becomes *width. */
static gpu_status factor_innermost(cuda_device *d, float *a, int64_t ld, int m,
                                   int nb, int s, int end, const exchanges *e,
                                   int *width)
{
    int w = *width = columns_at_once(m - s);
    int rows = m - s - w, cols = end - s - w;
    pivot_job job = {a,   ld,         m - s,         s,          nb,
                     end, e->content, e->inner_from, e->inner_to};
    TRY(find_pivots(d, job));
    if (rows <= 0 || cols <= 0)
        return GPU_OK;
    return launch_behind(d, w == 16 ? update_beside<16> : update_beside<32>,
                         dim3((unsigned)ceil_div(rows, BESIDE_ROWS)),
                         BESIDE_THREADS, 0, 1, a + s * ld + s, ld, rows, cols);
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

/* n: all the matrix's columns; a: its row j. */
static gpu_status exchange(cuda_device *d, float *a, int64_t ld, int n, int j,
                           int nb, const exchanges *e)
{
    static int prepared;
    /* a divisor of what stands before the panel: whole panels of 512 or 1024.
     * Columns of this one have been exchanged */
    int chunk = 64;
    while (chunk * nb > EXCHANGE_FLOATS)
        chunk /= 2;
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
    int n = p->across;
    int64_t ld = p->ld;
    for (int j = 0; j < n; j += width) {
        int nb = (int)smaller(width, n - j), rest = n - j - nb;
        float *a = p->data + j * ld + j, *right = a + nb;
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        TRY(factor_panel(d, a, ld, p->side - j, nb, e));
        TRY(exchange(d, p->data + j * ld, ld, n, j, nb, e));
        if (rest == 0)
            break;
        TRY(gpu_cuda_solve_unit_lower(d, a, ld, nb, right, ld, rest));
        TRY(gpu_cuda_subtract(d, right + nb * ld, a + nb * ld, right, ld,
                              p->side - j - nb, rest, nb, 0));
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

/* Of `cols` columns of m rows, to be updated by nb columns beside a panel of
 * `next`, those that the panel's lane takes when it is through with its panel,
 * so that both end at about the same time. In microseconds on one H200: a
 * panel's column 2.1 and more with its rows, an update at 1.6 TFLOP/s a
 * multiprocessor. At 32768 a panel taken for two thirds of that costs 4 %, and
 * no share at all as much. */
static int columns_of_panel_lane(const cuda_lanes *lanes, int m, int cols,
                                 int nb, int next)
{
    const int least = 1024, step = 256; /* fewer are far from that rate */
    double panel = next * (2.1 + 1e-4 * m), column = 2.0 * nb * m / 1.6e6;
    double here = lanes->panel->sms, there = lanes->rest->sms;
    double own =
        (cols * column / there - panel) / (column * (1 / there + 1 / here));
    return own < least ? 0 : (int)own / step * step;
}

/* The columns [next, rest) of the rows behind a panel of nb columns, and the
 * panel behind it, which ends there. a: the first one's top left; below, rest:
 * rows and columns behind it. */
static gpu_status go_ahead(cuda_device *d, cuda_lanes *lanes, float *a,
                           int64_t ld, int below, int rest, int nb, int next,
                           const exchanges *e)
{
    const float *left = a + nb * ld, *right = a + nb;
    float *behind = a + nb * ld + nb;
    int own = columns_of_panel_lane(lanes, below, rest - next, nb, next);
    int first = rest - own; /* of the panel's lane */
    TRY(gpu_cuda_fork_lanes(d, lanes));
    TRY(gpu_cuda_subtract(lanes->rest, behind + next, left, right + next, ld,
                          below, first - next, nb, 0));
    TRY(factor_panel(lanes->panel, behind, ld, below, next, e));
    TRY(gpu_cuda_subtract(lanes->panel, behind + first, left, right + first, ld,
                          below, own, nb, 0));
    return gpu_cuda_join_lanes(d, lanes);
}

static gpu_status factor_ahead(cuda_device *d, cuda_lanes *lanes,
                               const padded *p, const exchanges *e)
{
    int n = p->across, width = panel_width_ahead(n);
    int64_t ld = p->ld;
    TRY(factor_panel(d, p->data, ld, p->side, (int)smaller(width, n), e));
    for (int j = 0; j < n; j += width) {
        int nb = (int)smaller(width, n - j), rest = n - j - nb;
        int next = (int)smaller(width, rest), below = p->side - j - nb;
        float *a = p->data + j * ld + j, *behind = a + nb * ld + nb;
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        TRY(exchange(d, p->data + j * ld, ld, n, j, nb, e));
        if (rest == 0)
            break;
        TRY(gpu_cuda_solve_unit_lower(d, a, ld, nb, a + nb, ld, rest));
        TRY(gpu_cuda_subtract(d, behind, a + nb * ld, a + nb, ld, below, next,
                              nb, 0));
        if (next < rest)
            TRY(go_ahead(d, lanes, a, ld, below, rest, nb, next, e));
        else
            TRY(factor_panel(d, behind, ld, below, next, e));
    }
    return GPU_OK;
}

/* --- the whole ------------------------------------------------------------ */

/* Columns beside whole blocks of them would be those of the identity, whose
 * ones have to lie below the matrix. */
bool gpu_cuda_can_own_lu(const cuda_device *d, const gpu_view *a)
{
    bool fits = a->rows == a->cols || (a->rows > a->cols && a->cols % PAD == 0);
    return d->capability == 90 && d->sms >= 100 && a->dtype == GPU_F32 &&
           fits && a->cols >= 64 && a->rows <= MOST_SIDE;
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
    return n >= 8192;
}

static gpu_status factor_with(cuda_device *d, const padded *p, int is_ahead,
                              const exchanges *e)
{
    cuda_lanes *lanes = NULL;
    if (is_ahead && p->across > panel_width_ahead(p->across))
        TRY(gpu_cuda_find_lanes(d, PANEL_SMS, &lanes));
    if (lanes == NULL)
        return factor_blocks(d, p, panel_width(p->across), e);
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
        status = gpu_cuda_unpad(d, &p, PADDED_ALL, LEAST_PIVOT, INFINITY, a,
                                is_fine);
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
                "of sides from 64 to %d, and taller ones of up to so many rows "
                "whose columns, 64 or more, are a multiple of %d",
                f->rung->name, (long long)f->a.rows, (long long)f->a.cols,
                MOST_SIDE, PAD);
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
