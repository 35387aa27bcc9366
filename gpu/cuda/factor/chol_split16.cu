/* split16: Cholesky of large f32 and c64 matrices, right-looking, in blocks of
 * nb columns: the square on the diagonal in steps of 128 columns
 * (definite_block.h), joined by products; what is below it by halves; then the
 * lower triangle of the rest is updated by split16 in place. The next square is
 * updated first, and factored beside the update of what is behind it: few
 * multiprocessors are kept free for it. Those of c64: chol_complex.cu.
 *
 * Limited by the squares up to 8192, n / 128 blocks one after the other, 37 us
 * each; above by the tensor cores' power. Source: Golub and Van Loan, Matrix
 * Computations, 4th edition, 4.2. Needs sm_90a. */
#include <limits.h>
#include "definite_block.h"
#include "definite_rows.h"
#include "kernel.h"
#include "lanes.h"

/* Multiprocessors for the next square. */
enum { SQUARE_SMS = 12 };

static int panel_width(int n)
{
    return n > 24576 ? 2048 : n > 12288 ? 1024 : 512;
}

gpu_status gpu_cuda_take_notes(cuda_device *d, int side, cholesky_notes *notes)
{
    int none = INT_MAX;
    size_t inverses = (size_t)side * STEP * sizeof(float);
    notes->first = 0;
    notes->bytes = inverses + sizeof *notes->minor;
    TRY(gpu_cuda_take_room(d, notes->bytes, (void **)&notes->inverses));
    notes->minor = (int *)((char *)notes->inverses + inverses);
    gpu_status status =
        gpu_cuda_upload(d, notes->minor, &none, sizeof *notes->minor);
    if (status != GPU_OK)
        gpu_cuda_free(d, notes->inverses, notes->bytes);
    return status;
}

void gpu_cuda_end_notes(cuda_device *d, cholesky_notes *notes)
{
    gpu_cuda_free(d, notes->inverses, notes->bytes);
}

/* --- blocks of columns ---------------------------------------------------- */

static float *element(const padded *p, int i, int j)
{
    return p->data + i * p->ld + j;
}

gpu_status gpu_cuda_factor_square(cuda_device *d, const padded *p, int j,
                                  int nb, const cholesky_notes *notes)
{
    int64_t ld = p->ld;
    int end = j + nb;
    for (int s = j; s < end; s += MOST_DEFINITE) {
        int k = (int)smaller(MOST_DEFINITE, end - s), next = s + k;
        float *block = element(p, s, s), *below = element(p, next, s);
        float *inverses = notes->inverses + (int64_t)s * STEP;
        TRY(factor_definite_block(d, block, ld, k, inverses, notes->first + s,
                                  notes->minor));
        TRY(solve_below_block(d, block, ld, k, inverses, below, end - next));
        TRY(update_square_behind(d, below, element(p, next, next), ld,
                                 end - next, k));
    }
    return GPU_OK;
}

/* By halves. */
gpu_status gpu_cuda_solve_rows(cuda_device *d, const padded *p, int i, int j,
                               int nb, const cholesky_notes *notes)
{
    int m = p->side - i;
    if (nb <= MOST_DEFINITE)
        return solve_below_block(d, element(p, j, j), p->ld, nb,
                                 notes->inverses + (int64_t)j * STEP,
                                 element(p, i, j), m);
    int half = (int)ceil_div(nb / 2, MOST_DEFINITE) * MOST_DEFINITE;
    TRY(gpu_cuda_solve_rows(d, p, i, j, half, notes));
    TRY(gpu_cuda_subtract(d, element(p, i, j + half), element(p, i, j),
                          element(p, j + half, j), p->ld, m, nb - half, half,
                          1));
    return gpu_cuda_solve_rows(d, p, i, j + half, nb - half, notes);
}

/* Takes the columns [j, j + nb) from rows i to `end`, as far as they are in the
 * lower triangle behind these columns. */
static gpu_status update_rows(cuda_device *d, const padded *p, int i, int end,
                              int j, int nb)
{
    int first = j + nb;
    int64_t m = end - i, n = end - first;
    gpu_view c = gpu_cuda_rows_view(element(p, i, first), m, n, p->ld);
    gpu_view a = gpu_cuda_rows_view(element(p, i, j), m, nb, p->ld);
    gpu_view b = gpu_cuda_rows_view(element(p, first, j), n, nb, p->ld);
    return gpu_cuda_subtract_lower(d, &c, &a, &b);
}

/* What is behind the columns [j, j + nb), which are done, is updated; its first
 * square, of `next`, is factored beside it. */
static gpu_status go_on(cuda_device *d, cuda_side *side, const padded *p, int j,
                        int nb, int next, const cholesky_notes *notes)
{
    int first = j + nb, behind = first + next, all = d->sms;
    TRY(update_rows(d, p, first, behind, j, nb));
    if (side == NULL || behind >= p->side) {
        TRY(gpu_cuda_factor_square(d, p, first, next, notes));
        return update_rows(d, p, behind, p->side, j, nb);
    }
    TRY(gpu_cuda_begin_side(d, side));
    TRY(gpu_cuda_factor_square(side->device, p, first, next, notes));
    d->sms -= SQUARE_SMS; /* kernels of split16 fill what a device has */
    gpu_status status = update_rows(d, p, behind, p->side, j, nb);
    d->sms = all;
    TRY(status);
    return gpu_cuda_join_side(d, side);
}

static gpu_status factor_blocks(cuda_device *d, cuda_side *side,
                                const padded *p, const cholesky_notes *notes)
{
    int width = panel_width(p->n);
    TRY(gpu_cuda_factor_square(d, p, 0, (int)smaller(width, p->side), notes));
    for (int j = 0; j + width < p->side; j += width) {
        int next = (int)smaller(width, p->side - j - width);
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        TRY(gpu_cuda_solve_rows(d, p, j + width, j, width, notes));
        TRY(go_on(d, side, p, j, width, next, notes));
    }
    return GPU_OK;
}

/* --- the whole ------------------------------------------------------------ */

bool gpu_cuda_can_own_cholesky(const cuda_device *d, const gpu_view *a)
{
    int is_taken = a->dtype == GPU_F32 || a->dtype == GPU_C64;
    return d->capability == 90 && d->sms >= 100 && is_taken && a->rows >= 64 &&
           a->rows < INT_MAX / 4;
}

static gpu_status factor_real(cuda_device *d, const padded *p,
                              const cholesky_notes *notes)
{
    cuda_side *side = NULL;
    TRY(gpu_cuda_find_side(d, &side));
    gpu_status status = factor_blocks(d, side, p, notes);
    gpu_cuda_rest_side(d, side);
    return status;
}

/* What is not positive becomes NaN, and so does what follows: so the first
 * number that was noted is the minor's. */
static gpu_status factor_padded(cuda_device *d, gpu_factoring *f, padded *p,
                                cholesky_notes *notes)
{
    int found = INT_MAX, is_fine = 0;
    TRY(p->parts == 2 ? gpu_cuda_factor_complex(d, p, notes)
                      : factor_real(d, p, notes));
    TRY(gpu_cuda_download(d, &found, notes->minor, sizeof found));
    f->trouble = found / p->parts < p->n ? found / p->parts + 1 : 0;
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
    cholesky_notes notes;
    if (!gpu_cuda_can_own_cholesky(d, &f->a))
        return FAIL(GPU_ARGUMENT,
                    "chol: kernel split16 cannot do %lldx%lld: it takes sides "
                    "from 64 on",
                    (long long)f->a.rows, (long long)f->a.cols);
    gpu_status status = gpu_cuda_pad(d, &f->a, 1, PADDED_LOWER, &p);
    if (status == GPU_OK) {
        status = gpu_cuda_take_notes(d, p.parts * p.side, &notes);
        if (status == GPU_OK) {
            status = factor_padded(d, f, &p, &notes);
            gpu_cuda_end_notes(d, &notes);
        }
        gpu_cuda_end_padded(d, &p);
    }
    return status == GPU_MEMORY ? gpu_cuda_factor_cusolver.factor(d, f)
                                : status; /* it takes less */
}

const gpu_kernel gpu_cuda_chol_split16 = {
    .operation = "chol",
    .name = "split16",
    .idea = "blocked; the triangle updated on tensor cores",
    .needs = "sm_90",
    .precision = "f32",
    .capability = 90,
    .dtypes = 1u << GPU_F32 | 1u << GPU_C64,
    .bound = NULL,
    .matmul = NULL,
    .dot = NULL,
    .factor = factor_chol,
};
