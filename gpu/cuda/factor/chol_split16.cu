/* split16: Cholesky of large f32 matrices, right-looking, in blocks of nb
 * columns: blocks of 128 on the diagonal by one block of threads, what is below
 * them by block_solve.h, joined by products; then the lower triangle of the
 * rest is updated by split16 in place, in blocks of columns whose upper halves
 * are done in vain.
 *
 * Limited by the blocks on the diagonal up to 8192, n / 128 of them one after
 * the other, 50 us each; above by the tensor cores' power. Source: Golub and
 * Van Loan, Matrix Computations, 4th edition, 4.2. Needs sm_90a. */
#include <limits.h>
#include "block_solve.h"
#include "kernel.h"
#include "padded.h"

constexpr int DIAGONAL_THREADS = 256, PITCH = MOST_BLOCK + 1;
static const float LEAST_ROOT = 0x1p-50f; /* of a pivot that is well in range */

static int panel_width(int n)
{
    return n > 24576 ? 2048 : 1024;
}

/* Columns that are updated at once. */
static int update_width(int n)
{
    return n > 24576 ? 4096 : 2048;
}

/* --- the block on the diagonal -------------------------------------------- */

/* Takes from the square of 16 S behind k + 32 what the 32 columns from k on
 * have in it. */
template <int S>
__device__ __forceinline__ void update_behind(float (*a)[PITCH], int k, int t)
{
    int i = k + 32 + t / 16, j = k + 32 + t % 16;
    float sum[S][S] = {};
    for (int c = k; c < k + 32; c++) {
        float x[S], y[S];
#pragma unroll
        for (int e = 0; e < S; e++) {
            x[e] = a[i + 16 * e][c];
            y[e] = a[j + 16 * e][c];
        }
#pragma unroll
        for (int e = 0; e < S; e++)
#pragma unroll
            for (int f = 0; f < S; f++)
                sum[e][f] += x[e] * y[f];
    }
#pragma unroll
    for (int e = 0; e < S; e++)
#pragma unroll
        for (int f = 0; f < S; f++)
            a[i + 16 * e][j + 16 * f] -= sum[e][f];
}

/* g: n x n, a multiple of 32 up to 128, row by row, becomes L in its lower
 * triangle. minor: the least number, from `first` on, of a pivot that is not
 * positive. */
__global__ void __launch_bounds__(DIAGONAL_THREADS)
    factor_diagonal(float *g, int64_t ld, int n, int first, int *minor)
{
    extern __shared__ float diagonal_memory[];
    float(*a)[PITCH] = (float(*)[PITCH])diagonal_memory;
    __shared__ float inverse[32];
    int t = (int)threadIdx.x, lane = t % 32, warp = t / 32;
#pragma unroll 8
    for (int i = warp; i < n; i += 8)
        for (int c = lane; c < n; c += 32)
            a[i][c] = g[i * ld + c];
    __syncthreads(); /* the block is there */
    for (int k = 0; k < n; k += 32) {
        if (warp == 0) {
            float v[32]; /* a row; it rotates: v[0] is column c */
#pragma unroll
            for (int c = 0; c < 32; c++)
                v[c] = a[k + lane][k + c];
#pragma unroll 1
            for (int c = 0; c < 32; c++) {
                float d = __shfl_sync(~0u, v[0], c), r = rsqrtf(d);
                if (!(d > 0) && lane == 0)
                    atomicMin(minor, first + k + c);
                r = r * (1.5f - 0.5f * d * r * r);
                float x = v[0] * r;
                if (lane >= c)
                    a[k + lane][k + c] = x;
                if (lane == c)
                    inverse[c] = r;
#pragma unroll
                for (int e = 1; e < 32; e++)
                    v[e - 1] = v[e] - x * __shfl_sync(~0u, x, (c + e) & 31);
            }
        }
        __syncthreads(); /* 32 columns of the diagonal are done */
        int row = k + 32 + t;
        if (row < n) {
            float v[32];
#pragma unroll
            for (int c = 0; c < 32; c++)
                v[c] = a[row][k + c];
#pragma unroll 1
            for (int c = 0; c < 32; c++) {
                float x = v[0] * inverse[c];
                a[row][k + c] = x;
                const float *l = &a[k + c][k + c];
#pragma unroll
                for (int e = 1; e < 32; e++)
                    v[e - 1] = v[e] - x * (c + e < 32 ? l[e * PITCH] : 0);
            }
        }
        __syncthreads(); /* and what is below them */
        int left = n - k - 32;
        if (left == 96)
            update_behind<6>(a, k, t);
        else if (left == 64)
            update_behind<4>(a, k, t);
        else if (left == 32)
            update_behind<2>(a, k, t);
        __syncthreads(); /* the rest is up to date */
    }
#pragma unroll 8
    for (int i = warp; i < n; i += 8)
        for (int c = lane; c <= i; c += 32)
            g[i * ld + c] = a[i][c];
}

static gpu_status factor_block(cuda_device *d, float *a, int64_t ld, int n,
                               int first, int *minor)
{
    static int prepared;
    size_t most = MOST_BLOCK * PITCH * sizeof(float);
    if (prepared != d->ordinal + 1)
        CHECK(d, cudaFuncSetAttribute(
                     (const void *)factor_diagonal,
                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most));
    prepared = d->ordinal + 1;
    factor_diagonal<<<1, DIAGONAL_THREADS, (size_t)n * PITCH * sizeof(float),
                      d->stream>>>(a, ld, n, first, minor);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- blocks of columns
 * --------------------------------------------------------- */

/* m rows of nb columns, whose top is the block on the diagonal. first: its row
 * in the matrix. */
static gpu_status factor_panel(cuda_device *d, float *a, int64_t ld, int m,
                               int nb, int first, int *minor)
{
    for (int s = 0; s < nb; s += MOST_BLOCK) {
        int k = (int)smaller(MOST_BLOCK, nb - s), end = s + k;
        float *p = a + s * ld + s, *below = p + k * ld;
        TRY(factor_block(d, p, ld, k, first + s, minor));
        TRY(solve_with_block<true>(d, p, ld, k, below, m - end));
        TRY(gpu_cuda_subtract(d, below + k, below, below, ld, m - end, nb - end,
                              k, 1));
    }
    return GPU_OK;
}

/* Takes the panel's columns, nb of them from j on, from the lower triangle
 * behind them. */
static gpu_status update_behind_panel(cuda_device *d, const padded *p, int j,
                                      int nb)
{
    int width = update_width(p->n);
    int64_t ld = p->ld;
    for (int c = j + nb; c < p->side; c += width) {
        int w = (int)smaller(width, p->side - c);
        const float *left = p->data + c * ld + j;
        TRY(gpu_cuda_subtract(d, p->data + c * ld + c, left, left, ld,
                              p->side - c, w, nb, 1));
    }
    return GPU_OK;
}

static gpu_status factor_blocks(cuda_device *d, const padded *p, int *minor)
{
    int width = panel_width(p->n);
    for (int j = 0; j < p->side; j += width) {
        int nb = (int)smaller(width, p->side - j);
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        TRY(factor_panel(d, p->data + j * p->ld + j, p->ld, p->side - j, nb, j,
                         minor));
        TRY(update_behind_panel(d, p, j, nb));
    }
    return GPU_OK;
}

/* --- the whole
 * ----------------------------------------------------------------- */

bool gpu_cuda_can_own_cholesky(const cuda_device *d, const gpu_view *a)
{
    return d->capability == 90 && d->sms >= 100 && a->dtype == GPU_F32 &&
           a->rows >= 64 && a->rows < INT_MAX / 2;
}

/* What is not positive becomes NaN, and so does what follows: so the first
 * number that was noted is the minor's. */
static gpu_status factor_padded(cuda_device *d, gpu_factoring *f, padded *p,
                                int *minor)
{
    int found = INT_MAX, is_fine = 0;
    TRY(gpu_cuda_upload(d, minor, &found, sizeof found));
    TRY(factor_blocks(d, p, minor));
    TRY(gpu_cuda_download(d, &found, minor, sizeof found));
    f->trouble = found < p->n ? found + 1 : 0;
    if (f->trouble > 0)
        return GPU_OK;
    TRY(gpu_cuda_unpad(d, p, PADDED_LOWER, LEAST_ROOT, &f->a, &is_fine));
    if (!is_fine) /* what overflows or underflows; a is as it was */
        return gpu_cuda_factor_cusolver.factor(d, f);
    return gpu_cuda_wait(d);
}

static gpu_status factor_chol(void *device, gpu_factoring *f)
{
    ENTER(d, device);
    padded p;
    int *minor;
    if (!gpu_cuda_can_own_cholesky(d, &f->a))
        return FAIL(GPU_ARGUMENT,
                    "chol: kernel split16 cannot do %lldx%lld: it takes sides "
                    "from 64 on",
                    (long long)f->a.rows, (long long)f->a.cols);
    TRY(gpu_cuda_take_room(d, sizeof *minor, (void **)&minor));
    gpu_status status = gpu_cuda_pad(d, &f->a, 1, PADDED_LOWER, &p);
    if (status == GPU_OK) {
        status = factor_padded(d, f, &p, minor);
        gpu_cuda_end_padded(d, &p);
    } else if (status == GPU_MEMORY) {
        status = gpu_cuda_factor_cusolver.factor(d, f); /* it takes less */
    }
    gpu_cuda_free(d, minor, sizeof *minor);
    return status;
}

const gpu_kernel gpu_cuda_chol_split16 = {
    .operation = "chol",
    .name = "split16",
    .idea = "blocked; the triangle updated on tensor cores",
    .needs = "sm_90",
    .precision = "f32",
    .capability = 90,
    .dtypes = 1u << GPU_F32,
    .bound = NULL,
    .matmul = NULL,
    .dot = NULL,
    .factor = factor_chol,
};
