/* split16-c64: LU with partial pivoting of square c64 matrices, right-looking,
 * as lu_split16.cu has it of f32 ones, by real products alone. Real and
 * imaginary parts lie apart, 16 columns of each in turn (pivot_complex.h),
 * while the matrix is factored: then c -= a b is one real product of twice the
 * depth, of a and c as they lie and of b doubled, each row and i times it. Rows
 * of U are doubled by who solves for them.
 *
 * A panel of nb columns is factored 16 at a time by one cluster, 64 of them
 * joined by products, all of them by products of 64; then the rows of the whole
 * matrix are exchanged, U's block row solved by halves, and the rest updated by
 * split16 in place, 2 nb deep, at 160 to 230 TFLOP/s of real products.
 *
 * Limited by the tensor cores above 8192, by the panels below. Needs sm_90a
 * with clusters of 16 blocks. */
#include <stdlib.h>
#include "kernel.h"
#include "lanes.h"
#include "padded.h"
#include "pivot_complex.h"

constexpr int JOINED = 64;       /* columns, within a panel */
constexpr int MOST_ROWS = 16384; /* that a cluster holds */
constexpr int SIDE_STEP = 32;    /* sides are rounded up to this */
/* Pivots whose squares are in range, with room for their sums. */
constexpr float LEAST_SIZE = 0x1p-50f, MOST_SIZE = 0x1p50f;

static int panel_width(int n)
{
    return n >= 8192 ? 512 : n >= 2048 ? 256 : 128;
}

/* What is worked on: a copy whose sides are rounded up, with the identity's
 * elements behind the last row and column; U's rows of a panel, doubled; and
 * the numbers of rows: where the panel's came from (content), the same and its
 * inverse for its first rows (from, to), those of its innermost columns, and
 * the whole matrix's. */
typedef struct complex_work {
    float *data, *doubled; /* side x ld, 2 width x ld */
    int n, side, width;
    int64_t ld; /* 2 side */
    int *content, *from, *to, *inner_from, *inner_to, *order;
    int *odd; /* is there what ends the attempt? */
    void *room;
    size_t bytes;
} complex_work;

/* --- the copy ------------------------------------------------------------- */

enum { TILE = 32, TILE_ROWS = 8 };

/* A tile at a time, through shared memory, as a may lie either way. */
__global__ void __launch_bounds__(TILE *TILE_ROWS)
    split_parts(const float2 *a, int64_t row, int64_t col, int n, float *to,
                int64_t ld)
{
    __shared__ float2 tile[TILE][TILE + 1];
    const int i0 = (int)blockIdx.y * TILE, j0 = (int)blockIdx.x * TILE;
    const int x = (int)threadIdx.x, by_columns = row == 1;
#pragma unroll
    for (int k = (int)threadIdx.y; k < TILE; k += TILE_ROWS) {
        int i = i0 + (by_columns ? x : k), j = j0 + (by_columns ? k : x);
        float2 v = {i == j ? 1.0f : 0.0f, 0};
        if (i < n && j < n)
            v = a[i * row + j * col];
        tile[i - i0][j - j0] = v;
    }
    __syncthreads(); /* the tile is there */
#pragma unroll
    for (int k = (int)threadIdx.y; k < TILE; k += TILE_ROWS) {
        float *p = to + (i0 + k) * ld + column_place(j0 + x);
        p[0] = tile[k][x].x;
        p[GROUP] = tile[k][x].y;
    }
}

__global__ void __launch_bounds__(TILE *TILE_ROWS)
    join_parts(const float *from, int64_t ld, int n, float2 *a, int64_t row,
               int64_t col)
{
    __shared__ float2 tile[TILE][TILE + 1];
    const int i0 = (int)blockIdx.y * TILE, j0 = (int)blockIdx.x * TILE;
    const int x = (int)threadIdx.x, by_columns = row == 1;
#pragma unroll
    for (int k = (int)threadIdx.y; k < TILE; k += TILE_ROWS) {
        const float *p = from + (i0 + k) * ld + column_place(j0 + x);
        tile[k][x] = make_float2(p[0], p[GROUP]);
    }
    __syncthreads(); /* the tile is there */
#pragma unroll
    for (int k = (int)threadIdx.y; k < TILE; k += TILE_ROWS) {
        int i = i0 + (by_columns ? x : k), j = j0 + (by_columns ? k : x);
        if (i < n && j < n)
            a[i * row + j * col] = tile[i - i0][j - j0];
    }
}

enum { LOOKERS = 256 };

/* *odd is set where there is Inf or NaN, or a pivot too small or too large. */
static __global__ void __launch_bounds__(LOOKERS)
    look_at_factors(const float *a, int64_t ld, int side, int *odd)
{
    float sum = 0; /* zero times anything finite */
    for (int i = (int)blockIdx.x; i < side; i += (int)gridDim.x) {
        const float *p = a + i * ld, *pivot = p + column_place(i);
        float size = fmaxf(fabsf(pivot[0]), fabsf(pivot[GROUP]));
        if (threadIdx.x == 0 && size > 0 &&
            (size < LEAST_SIZE || size > MOST_SIZE))
            *odd = 1;
        for (int j = 4 * (int)threadIdx.x; j < ld; j += 4 * LOOKERS) {
            float4 v = *(const float4 *)(p + j);
            sum += v.x * 0 + v.y * 0 + v.z * 0 + v.w * 0;
        }
    }
    if (!(sum == 0))
        *odd = 1;
}

static __global__ void number_rows(int *p, int n)
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

static dim3 tiles_of(const complex_work *w)
{
    return dim3((unsigned)(w->side / TILE), (unsigned)(w->side / TILE));
}

static gpu_status begin_work(cuda_device *d, const gpu_view *a, complex_work *w)
{
    int **numbers[] = {&w->content,    &w->from,     &w->to,
                       &w->inner_from, &w->inner_to, &w->order};
    *w = {};
    w->n = (int)a->rows;
    w->side = (int)(ceil_div(w->n, SIDE_STEP) * SIDE_STEP);
    w->ld = 2 * w->side;
    w->width = panel_width(w->side);
    int64_t rows = w->side + 2 * smaller(w->width, w->side);
    w->bytes = (size_t)(rows * w->ld) * sizeof(float) +
               (6 * (size_t)w->side + 1) * sizeof(int);
    TRY(gpu_cuda_take_room(d, w->bytes, &w->room));
    w->data = (float *)w->room;
    w->doubled = w->data + w->side * w->ld;
    int *next = (int *)(w->data + rows * w->ld);
    for (int i = 0; i < 6; i++)
        *numbers[i] = next + (int64_t)i * w->side;
    w->odd = next + 6 * (int64_t)w->side;
    return GPU_OK;
}

static gpu_status copy_in(cuda_device *d, const gpu_view *a,
                          const complex_work *w)
{
    split_parts<<<tiles_of(w), dim3(TILE, TILE_ROWS), 0, d->stream>>>(
        (const float2 *)a->data, a->row_stride, a->col_stride, w->n, w->data,
        w->ld);
    LAUNCHED(d);
    CHECK(d, cudaMemsetAsync(w->odd, 0, sizeof *w->odd, d->stream));
    return start_rows(d, w->order, w->side);
}

/* If all is fine. Waits. */
static gpu_status copy_out(cuda_device *d, const complex_work *w,
                           const gpu_view *a, int *order, int *is_fine)
{
    int odd = 0;
    look_at_factors<<<(unsigned)smaller(w->side, 8 * d->sms), LOOKERS, 0,
                      d->stream>>>(w->data, w->ld, w->side, w->odd);
    LAUNCHED(d);
    TRY(gpu_cuda_download(d, &odd, w->odd, sizeof odd));
    *is_fine = !odd;
    if (odd)
        return GPU_OK;
    CHECK(d, cudaMemcpyAsync(order, w->order, (size_t)w->n * sizeof *order,
                             cudaMemcpyDeviceToDevice, d->stream));
    join_parts<<<tiles_of(w), dim3(TILE, TILE_ROWS), 0, d->stream>>>(
        w->data, w->ld, w->n, (float2 *)a->data, a->row_stride, a->col_stride);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- steps ---------------------------------------------------------------- */

/* A panel: rows and columns count from its top left. */
typedef struct complex_block {
    const complex_work *w;
    int top; /* its first row and column, in the matrix */
} complex_block;

static float *element(const complex_block *b, int row, int col)
{
    const complex_work *w = b->w;
    return w->data + (b->top + row) * w->ld + 2 * (b->top + col);
}

static float *doubled_row(const complex_block *b, int row, int col)
{
    const complex_work *w = b->w;
    return w->doubled + 2 * row * w->ld + 2 * (b->top + col);
}

/* The rows [row, end) and columns from col on, cols of them, lose what the
 * columns [at, at + k) of theirs give times U's rows there. */
static gpu_status update(cuda_device *d, const complex_block *b, int row,
                         int end, int col, int cols, int at, int k)
{
    int64_t ld = b->w->ld, m = end - row;
    if (m <= 0 || cols <= 0)
        return GPU_OK;
    gpu_view to =
        gpu_cuda_rows_view(element(b, row, col), m, 2 * (int64_t)cols, ld);
    gpu_view left =
        gpu_cuda_rows_view(element(b, row, at), m, 2 * (int64_t)k, ld);
    gpu_view right = gpu_cuda_rows_view(doubled_row(b, at, col), 2 * (int64_t)k,
                                        2 * (int64_t)cols, ld);
    return gpu_cuda_subtract_views(d, &to, &left, &right);
}

/* Of the kernel below: a warp has four columns, eight threads each. */
constexpr int SOLVERS = 8, SOLVE_THREADS = GROUP * SOLVERS;

/* x = L^-1 x, of n rows, at most JOINED, and a group of columns a block; and x
 * doubled. A thread has every eighth row of a column in registers. */
__global__ void __launch_bounds__(SOLVE_THREADS)
    solve_rows(const float *L, int64_t ld, int n, float *x, float *doubled)
{
    constexpr int OWN = JOINED / SOLVERS;
    __shared__ float2 l[JOINED][JOINED + 1];
    const int t = (int)threadIdx.x, c = t / SOLVERS, q = t % SOLVERS;
    float re[OWN], im[OWN];
    for (int i = t; i < n * n; i += SOLVE_THREADS) {
        int r = i / n, k = i % n;
        const float *p = L + r * ld + column_place(k);
        if (k < r)
            l[r][k] = make_float2(p[0], p[GROUP]);
    }
    x += (int64_t)blockIdx.x * PAIRED + c;
    doubled += (int64_t)blockIdx.x * PAIRED + c;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        int r = i * SOLVERS + q;
        re[i] = r < n ? x[r * ld] : 0;
        im[i] = r < n ? x[r * ld + GROUP] : 0;
    }
    __syncthreads(); /* L is there */
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        if (i * SOLVERS >= n)
            break;
#pragma unroll 1
        for (int s = 0; s < SOLVERS; s++) {
            const int k = i * SOLVERS + s;
            float u = __shfl_sync(~0u, re[i], s, SOLVERS);
            float v = __shfl_sync(~0u, im[i], s, SOLVERS);
#pragma unroll
            for (int e = i; e < OWN; e++) {
                int r = e * SOLVERS + q;
                if (r <= k || r >= n)
                    continue;
                float2 f = l[r][k];
                re[e] = re[e] - f.x * u + f.y * v;
                im[e] = im[e] - f.x * v - f.y * u;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        int r = i * SOLVERS + q;
        if (r >= n)
            break;
        x[r * ld] = re[i];
        x[r * ld + GROUP] = im[i];
        store_doubled(doubled, ld, r, re[i], im[i]);
    }
}

/* U's rows [at, at + k) of columns from col on, cols of them; by halves. */
static gpu_status solve(cuda_device *d, const complex_block *b, int at, int k,
                        int col, int cols)
{
    if (cols <= 0)
        return GPU_OK;
    if (k > JOINED) {
        int half = (int)ceil_div(k / 2, JOINED) * JOINED;
        TRY(solve(d, b, at, half, col, cols));
        TRY(update(d, b, at + half, at + k, col, cols, at, half));
        return solve(d, b, at + half, k - half, col, cols);
    }
    solve_rows<<<(unsigned)(cols / GROUP), SOLVE_THREADS, 0, d->stream>>>(
        element(b, at, at), b->w->ld, k, element(b, at, col),
        doubled_row(b, at, col));
    LAUNCHED(d);
    return GPU_OK;
}

/* content, as where the first nb rows come from, and where they go. */
static __global__ void read_content(const int *content, int m, int nb,
                                    int *from, int *to)
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

/* m rows of nb columns. */
static gpu_status factor_panel(cuda_device *d, const complex_block *b, int m,
                               int nb)
{
    const complex_work *w = b->w;
    TRY(start_rows(d, w->content, m));
    for (int first = 0; first < nb; first += JOINED) {
        int end = (int)smaller(nb, first + JOINED);
        for (int s = first; s < end; s += GROUP) {
            complex_pivot_job job = {element(b, 0, 0),
                                     doubled_row(b, 0, 0),
                                     w->ld,
                                     m - s,
                                     s,
                                     nb,
                                     end,
                                     w->content,
                                     w->inner_from,
                                     w->inner_to};
            TRY(find_complex_pivots(d, job));
            TRY(update(d, b, s + GROUP, m, s + GROUP, end - s - GROUP, s,
                       GROUP));
        }
        TRY(solve(d, b, first, end - first, end, nb - end));
        TRY(update(d, b, end, m, end, nb - end, first, end - first));
    }
    read_content<<<(unsigned)ceil_div(m, 256), 256, 0, d->stream>>>(
        w->content, m, nb, w->from, w->to);
    LAUNCHED(d);
    return GPU_OK;
}

enum { EXCHANGE_THREADS = 512, EXCHANGE_FLOATS = 16384 };

/* A whole panel's exchanges on all numbers of its rows but [at, at + width),
 * its own, and on the order of the rows. a: the first row; cols: numbers in it.
 * A block moves `chunk` columns of all rows concerned at once, through shared
 * memory. */
static __global__ void __launch_bounds__(EXCHANGE_THREADS)
    exchange_rows(float *a, int64_t ld, int cols, int at, int width, int nb,
                  int chunk, const int *from, const int *to, int *order)
{
    extern __shared__ float4 moved[];
    const int t = (int)threadIdx.x, q = chunk / 4, block = (int)blockIdx.x;
    if (block == (cols - width + chunk - 1) / chunk) { /* the order */
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
    if (col >= at)
        col += width;
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

static gpu_status exchange(cuda_device *d, const complex_block *b, int nb)
{
    static int prepared;
    const complex_work *w = b->w;
    /* a divisor of what stands before and behind the panel */
    int chunk = 2 * SIDE_STEP, cols = (int)w->ld;
    while (chunk * nb > EXCHANGE_FLOATS)
        chunk /= 2;
    int bytes = 2 * nb * chunk * (int)sizeof(float);
    unsigned blocks = (unsigned)ceil_div(cols - 2 * nb, chunk) + 1;
    TRY(set_once(d, (const void *)exchange_rows,
                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                 2 * EXCHANGE_FLOATS * (int)sizeof(float), &prepared));
    exchange_rows<<<blocks, EXCHANGE_THREADS, bytes, d->stream>>>(
        w->data + b->top * w->ld, w->ld, cols, 2 * b->top, 2 * nb, nb, chunk,
        w->from, w->to, w->order + b->top);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- the whole ------------------------------------------------------------ */

/* The panel's multiprocessors, where the next is factored beside the update;
 * those of f32, as a device is parted once. */
enum { PANEL_SMS = 48 };

/* The columns behind a panel of nb columns and the next, and that one. The
 * lanes share no column of U's doubled rows. */
static gpu_status go_ahead(cuda_device *d, cuda_lanes *lanes,
                           const complex_block *b, int m, int nb, int next)
{
    const complex_block behind = {b->w, b->top + nb};
    TRY(gpu_cuda_fork_lanes(d, lanes));
    TRY(update(lanes->rest, b, nb, m, nb + next, m - nb - next, 0, nb));
    TRY(factor_panel(lanes->panel, &behind, m - nb, next));
    return gpu_cuda_join_lanes(d, lanes);
}

/* The same as factor_blocks; of a panel's update the next one's columns come
 * first. */
static gpu_status factor_ahead(cuda_device *d, cuda_lanes *lanes,
                               const complex_work *w)
{
    const complex_block first = {w, 0};
    TRY(factor_panel(d, &first, w->side, (int)smaller(w->width, w->side)));
    for (int j = 0; j < w->side; j += w->width) {
        const complex_block b = {w, j}, behind = {w, j + w->width};
        int m = w->side - j, nb = (int)smaller(w->width, m);
        int next = (int)smaller(w->width, m - nb);
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        TRY(exchange(d, &b, nb));
        TRY(solve(d, &b, 0, nb, nb, m - nb));
        TRY(update(d, &b, nb, m, nb, next, 0, nb));
        if (next < m - nb)
            TRY(go_ahead(d, lanes, &b, m, nb, next));
        else if (next > 0)
            TRY(factor_panel(d, &behind, m - nb, next));
    }
    return GPU_OK;
}

static gpu_status factor_blocks(cuda_device *d, const complex_work *w)
{
    for (int j = 0; j < w->side; j += w->width) {
        const complex_block b = {w, j};
        int m = w->side - j, nb = (int)smaller(w->width, m);
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        TRY(factor_panel(d, &b, m, nb));
        TRY(exchange(d, &b, nb));
        TRY(solve(d, &b, 0, nb, nb, m - nb));
        TRY(update(d, &b, nb, m, nb, m - nb, 0, nb));
    }
    return GPU_OK;
}

bool gpu_cuda_can_complex_lu(const cuda_device *d, const gpu_view *a)
{
    return d->capability == 90 && d->sms >= 100 && a->dtype == GPU_C64 &&
           a->rows == a->cols && a->rows >= 64 && a->rows <= MOST_ROWS;
}

static gpu_status factor_with(cuda_device *d, const complex_work *w,
                              int is_ahead)
{
    cuda_lanes *lanes = NULL;
    if (is_ahead && w->side > w->width)
        TRY(gpu_cuda_find_lanes(d, PANEL_SMS, &lanes));
    if (lanes == NULL)
        return factor_blocks(d, w);
    gpu_status status = factor_ahead(d, lanes, w);
    gpu_cuda_rest_lanes(d, lanes);
    return status;
}

gpu_status gpu_cuda_complex_lu(cuda_device *d, const gpu_view *a, int is_ahead,
                               int *order, int *is_fine)
{
    complex_work w;
    *is_fine = 0;
    TRY(begin_work(d, a, &w));
    gpu_status status = copy_in(d, a, &w);
    if (status == GPU_OK)
        status = factor_with(d, &w, is_ahead);
    if (status == GPU_OK)
        status = copy_out(d, &w, a, order, is_fine);
    gpu_cuda_free(d, w.room, w.bytes);
    return status;
}

static gpu_status factor_lu(void *device, gpu_factoring *f)
{
    ENTER(d, device);
    if (gpu_cuda_can_complex_lu(d, &f->a))
        return gpu_cuda_factor_lu(d, f);
    return FAIL(GPU_ARGUMENT,
                "lu: kernel %s cannot do %lldx%lld: it takes square matrices "
                "of sides from 64 to %d",
                f->rung->name, (long long)f->a.rows, (long long)f->a.cols,
                MOST_ROWS);
}

#define RUNG(symbol, called, what) \
    const gpu_kernel symbol = {    \
        .operation = "lu",         \
        .name = called,            \
        .idea = what,              \
        .needs = "sm_90",          \
        .precision = "f32",        \
        .capability = 90,          \
        .dtypes = 1u << GPU_C64,   \
        .bound = NULL,             \
        .matmul = NULL,            \
        .dot = NULL,               \
        .factor = factor_lu,       \
    }
RUNG(gpu_cuda_lu_complex, "split16-c64",
     "complex, by real products on tensor cores; pivots by clusters");
RUNG(gpu_cuda_lu_complex_ahead, "ahead-c64",
     "the same, the next panel factored beside the update");
