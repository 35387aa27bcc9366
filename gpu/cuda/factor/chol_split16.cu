/* split16: Cholesky of large f32 and c64 matrices, right-looking, in blocks of
 * nb columns: the square on the diagonal in steps of 128 columns
 * (definite_block.h), joined by products; what is below it by halves; then the
 * lower triangle of the rest is updated by split16 in place. The next square is
 * updated first, and factored beside the update of what is behind it: few
 * multiprocessors are kept free for it. Those of c64: chol_complex.cu.
 *
 * Limited by the squares up to 8192, n / 128 blocks one after the other (of c64
 * n / 64), 37 us each; above by the tensor cores' power. Source: Golub and Van
 * Loan, Matrix Computations, 4th edition, 4.2. Needs sm_90a. */
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

/* Of c64, whose panels are doubled. */
static int complex_width(int n)
{
    return n > 8192 ? 512 : 256;
}

/* --- blocks of columns ---------------------------------------------------- */

static float *element(const padded *p, int i, int j)
{
    return p->data + i * p->ld + j;
}

gpu_status gpu_cuda_factor_square(cuda_device *d, const cholesky *c,
                                  const padded *p, int j, int nb, int first)
{
    int64_t ld = p->ld;
    int end = j + nb;
    for (int s = j; s < end; s += MOST_DEFINITE) {
        int k = (int)smaller(MOST_DEFINITE, end - s), next = s + k;
        float *block = element(p, s, s);
        float *inverses = c->inverses + (int64_t)s * STEP;
        gpu_view below =
            gpu_cuda_rows_view(element(p, next, s), end - next, k, ld);
        TRY(factor_definite_block(d, block, ld, k, inverses, first + s,
                                  c->minor));
        TRY(solve_below_block(d, block, ld, k, inverses, &below));
        TRY(update_square_behind(d, (float *)below.data, element(p, next, next),
                                 ld, end - next, k));
    }
    return GPU_OK;
}

/* By halves. */
gpu_status gpu_cuda_solve_rows(cuda_device *d, const cholesky *c,
                               const padded *p, int j, int nb,
                               const gpu_view *x)
{
    if (nb <= MOST_DEFINITE)
        return solve_below_block(d, element(p, j, j), p->ld, nb,
                                 c->inverses + (int64_t)j * STEP, x);
    int half = (int)ceil_div(nb / 2, MOST_DEFINITE) * MOST_DEFINITE;
    gpu_view done = *x, rest = *x;
    gpu_view L =
        gpu_cuda_rows_view(element(p, j + half, j), nb - half, half, p->ld);
    done.cols = half;
    rest.cols = nb - half;
    rest.data = (float *)x->data + half;
    swap_axes(&L);
    TRY(gpu_cuda_solve_rows(d, c, p, j, half, &done));
    TRY(gpu_cuda_subtract_views(d, &rest, &done, &L));
    return gpu_cuda_solve_rows(d, c, p, j + half, nb - half, &rest);
}

/* The square of nb on the diagonal from row j on becomes L. */
static gpu_status factor_square(cuda_device *d, const cholesky *c, int j,
                                int nb)
{
    return c->p->parts == 2 ? gpu_cuda_factor_doubled_square(d, c, j, nb)
                            : gpu_cuda_factor_square(d, c, c->p, j, nb, 0);
}

/* So do the rows below it. */
static gpu_status solve_below_square(cuda_device *d, const cholesky *c, int j,
                                     int nb)
{
    const padded *p = c->p;
    if (p->parts == 2)
        return gpu_cuda_solve_doubled_rows(d, c, j, nb);
    gpu_view x =
        gpu_cuda_rows_view(element(p, j + nb, j), p->side - j - nb, nb, p->ld);
    return gpu_cuda_solve_rows(d, c, p, j, nb, &x);
}

/* Takes the columns [j, j + nb) from rows i to `end`, as far as they are in the
 * lower triangle behind these columns. */
static gpu_status update_rows(cuda_device *d, const cholesky *c, int i, int end,
                              int j, int nb)
{
    const padded *p = c->p;
    if (p->parts == 2)
        return gpu_cuda_update_by_doubled(d, c, i, end, j, nb);
    int first = j + nb;
    int64_t m = end - i, n = end - first;
    gpu_view to = gpu_cuda_rows_view(element(p, i, first), m, n, p->ld);
    gpu_view a = gpu_cuda_rows_view(element(p, i, j), m, nb, p->ld);
    gpu_view b = gpu_cuda_rows_view(element(p, first, j), n, nb, p->ld);
    return gpu_cuda_subtract_lower(d, &to, &a, &b);
}

/* What is behind the columns [j, j + nb), which are done, is updated; its first
 * square, of `next`, is factored beside it. */
static gpu_status go_on(cuda_device *d, cuda_side *side, const cholesky *c,
                        int j, int nb, int next)
{
    int first = j + nb, behind = first + next, all = d->sms;
    TRY(update_rows(d, c, first, behind, j, nb));
    if (side == NULL || behind >= c->p->side) {
        TRY(factor_square(d, c, first, next));
        return update_rows(d, c, behind, c->p->side, j, nb);
    }
    TRY(gpu_cuda_begin_side(d, side));
    TRY(factor_square(side->device, c, first, next));
    d->sms -= SQUARE_SMS; /* kernels of split16 fill what a device has */
    gpu_status status = update_rows(d, c, behind, c->p->side, j, nb);
    d->sms = all;
    TRY(status);
    return gpu_cuda_join_side(d, side);
}

static gpu_status factor_blocks(cuda_device *d, cuda_side *side,
                                const cholesky *c)
{
    int width = c->width;
    TRY(factor_square(d, c, 0, (int)smaller(width, c->p->side)));
    for (int j = 0; j + width < c->p->side; j += width) {
        int next = (int)smaller(width, c->p->side - j - width);
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        TRY(solve_below_square(d, c, j, width));
        TRY(go_on(d, side, c, j, width, next));
    }
    return GPU_OK;
}

/* --- the memory ----------------------------------------------------------- */

static gpu_status begin_cholesky(cuda_device *d, const padded *p, cholesky *c)
{
    int none = INT_MAX, parts = p->parts;
    *c = {p, parts == 2 ? complex_width(p->n) : panel_width(p->n)};
    size_t inverses = (size_t)(parts == 2 ? 2 * c->width : p->side) * STEP;
    size_t panel =
        parts == 2 ? (size_t)(2 * p->side) * (size_t)(2 * c->width) : 0;
    c->bytes = (inverses + 2 * panel) * sizeof(float) + sizeof *c->minor;
    TRY(gpu_cuda_take_room(d, c->bytes, (void **)&c->inverses));
    c->doubled[0] = c->inverses + inverses;
    c->doubled[1] = c->doubled[0] + panel;
    c->minor = (int *)(c->doubled[1] + panel);
    gpu_status status = gpu_cuda_upload(d, c->minor, &none, sizeof *c->minor);
    if (status != GPU_OK)
        gpu_cuda_free(d, c->inverses, c->bytes);
    return status;
}

static void end_cholesky(cuda_device *d, cholesky *c)
{
    gpu_cuda_free(d, c->inverses, c->bytes);
}

/* --- the whole ------------------------------------------------------------ */

bool gpu_cuda_can_own_cholesky(const cuda_device *d, const gpu_view *a)
{
    int is_taken = a->dtype == GPU_F32 || a->dtype == GPU_C64;
    return d->capability == 90 && d->sms >= 100 && is_taken && a->rows >= 64 &&
           a->rows < INT_MAX / 4;
}

/* a is as it was until the whole factor is there: so what ours is not for is
 * left to cuSOLVER, and so is to say which minor is not positive. */
static gpu_status factor_padded(cuda_device *d, gpu_factoring *f,
                                const cholesky *c)
{
    const padded *p = c->p;
    int found = INT_MAX, is_fine = 0;
    cuda_side *side = NULL;
    TRY(gpu_cuda_find_side(d, &side));
    gpu_status status = factor_blocks(d, side, c);
    gpu_cuda_rest_side(d, side);
    TRY(status);
    TRY(gpu_cuda_download(d, &found, c->minor, sizeof found));
    if (found / p->parts < p->n) /* it, or what is too small for us? */
        return gpu_cuda_factor_cusolver.factor(d, f);
    TRY(gpu_cuda_unpad(d, p, PADDED_LOWER, LEAST_ROOT, MOST_ROOT, &f->a,
                       &is_fine));
    if (!is_fine) /* what overflows or underflows; a is as it was */
        return gpu_cuda_factor_cusolver.factor(d, f);
    return gpu_cuda_wait(d);
}

static gpu_status factor_chol(void *device, gpu_factoring *f)
{
    ENTER(d, device);
    padded p;
    cholesky c;
    if (!gpu_cuda_can_own_cholesky(d, &f->a))
        return FAIL(GPU_ARGUMENT,
                    "chol: kernel split16 cannot do %lldx%lld: it takes sides "
                    "from 64 on",
                    (long long)f->a.rows, (long long)f->a.cols);
    gpu_status status = gpu_cuda_pad(d, &f->a, 1, PADDED_LOWER, &p);
    if (status == GPU_OK) {
        status = begin_cholesky(d, &p, &c);
        if (status == GPU_OK) {
            status = factor_padded(d, f, &c);
            end_cholesky(d, &c);
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
