/* split16: QR of f32 matrices by Householder's reflections, blocked: 32 columns
 * at a time are reflected by one cluster (reflect_columns.h) and joined to
 * blocks of 128 (join_columns.h), these to panels by halves; then a panel's
 * reflections go to the columns behind it as two large products of split16,
 * with its triangle solved between them.
 *
 * Reflections H1 ... Hk of vectors V, with ones on its diagonal, and factors
 * tau: their product's transpose is 1 - V L^-1 diag(tau) V^T, where L is what
 * diag(tau) V^T V has below its diagonal, and ones. So no matrix T is made.
 *
 * Limited by the panels up to 8192, n reflections one after the other, about
 * 1 us each; above by the tensor cores' power. Sources: Golub and Van Loan,
 * Matrix Computations, 4th edition, 5.2; Puglisi, Modification of the
 * Householder method based on the compact WY representation, 1992. Needs
 * sm_90a with clusters of 16 blocks. */
#include "join_columns.h"
#include "kernel.h"
#include "padded.h"
#include "reflect_columns.h"

constexpr int MOST_ROWS = 32768; /* that a cluster holds */

static int panel_width(int n)
{
    return n > 24576 ? 2048 : n > 12288 ? 1024 : n > 4096 ? 512 : 256;
}

/* Of a panel that begins in row j, and whose rows are those of the matrix from
 * there on: its reflections as v, m x nb, and as vt, diag(tau) v^T; a block's
 * gram, see join_job; work: nb rows, ld apart, of the panel's triangle and,
 * behind it, of products. */
typedef struct reflections {
    float *v, *vt, *work, *gram, *partial;
    float *tau; /* of all columns */
    int nb;     /* at most; v's rows are so far apart */
    int64_t ldt, ld;
    void *memory;
    size_t bytes;
} reflections;

/* For p; most: of all columns with reflections. */
static gpu_status take_reflections(cuda_device *d, const padded *p, int most,
                                   reflections *h)
{
    h->nb = (int)smaller(panel_width(p->n), most);
    h->ldt = p->side;
    h->ld = ceil_div(p->across, PAD_ROW) * PAD_ROW + h->nb;
    struct {
        float **to;
        int64_t floats;
    } all[] = {
        {&h->v, (int64_t)p->side * h->nb}, {&h->vt, h->nb * h->ldt},
        {&h->work, h->nb * h->ld},         {&h->gram, JOINED * JOINED},
        {&h->partial, join_room(d)},       {&h->tau, p->across},
    };
    const int count = sizeof all / sizeof *all;
    h->bytes = 0;
    for (int i = 0; i < count; i++)
        h->bytes += (size_t)all[i].floats * sizeof(float);
    TRY(gpu_cuda_take_room(d, h->bytes, &h->memory));
    float *next = (float *)h->memory;
    for (int i = 0; i < count; i++) {
        *all[i].to = next;
        next += all[i].floats;
    }
    return GPU_OK;
}

/* --- a panel's reflections on other columns ------------------------------- */

/* The panel's reflections [s, s + k) on c, whose rows are the panel's from s
 * on. triangle: L of these reflections, rows ldl apart. */
static gpu_status reflect(cuda_device *d, const reflections *h, int s, int k,
                          const float *triangle, int64_t ldl, const gpu_view *c)
{
    float *sums = h->work + h->nb;
    gpu_view x = gpu_cuda_rows_view(sums, k, c->cols, h->ld);
    gpu_view v =
        gpu_cuda_rows_view(h->v + (int64_t)s * h->nb + s, c->rows, k, h->nb);
    gpu_view vt =
        gpu_cuda_rows_view(h->vt + s * h->ldt + s, k, c->rows, h->ldt);
    TRY(gpu_cuda_multiply_views(d, &x, &vt, c));
    TRY(gpu_cuda_solve_unit_lower(d, triangle, ldl, k, sums, h->ld,
                                  (int)c->cols));
    return gpu_cuda_subtract_views(d, c, &v, &x);
}

/* The triangle of the panel's reflections [s, s + k), where work begins. m: the
 * panel's rows. */
static gpu_status find_triangle(cuda_device *d, const reflections *h, int m,
                                int s, int k)
{
    gpu_view to = gpu_cuda_rows_view(h->work, k, k, h->ld);
    gpu_view v =
        gpu_cuda_rows_view(h->v + (int64_t)s * h->nb + s, m - s, k, h->nb);
    gpu_view vt = gpu_cuda_rows_view(h->vt + s * h->ldt + s, k, m - s, h->ldt);
    return gpu_cuda_multiply_views(d, &to, &vt, &v);
}

/* --- a panel -------------------------------------------------------------- */

/* Columns that are reflected at once, of m rows, where `left` are to be done.
 */
static int columns_at_once(int m, int left)
{
    return m > 16384 || left < 32 ? 16 : 32;
}

/* The columns [s, s + k) of the panel of m rows whose top left is a. */
static gpu_status factor_block(cuda_device *d, float *a, int64_t ld, int m,
                               int s, int k, const reflections *h, float *tau)
{
    for (int at = 0, width; at < k; at += width) {
        int t = s + at;
        width = columns_at_once(m - t, k - at);
        float *v = h->v + (int64_t)t * h->nb;
        reflect_job job = {a + t * ld + t,         ld,     m - t, v + t,  h->nb,
                           h->vt + t * h->ldt + t, h->ldt, t,     tau + t};
        TRY(find_reflections(d, &job, width));
        join_job join = {v + s, h->nb,   a + t * ld + s, ld, m - t,  k,
                         at,    tau + t, h->partial,     0,  h->gram};
        TRY(join_columns(d, &join, width));
    }
    return GPU_OK;
}

/* The columns [s, s + nb) of the panel, by halves: those of the second are as
 * the first's reflections leave them. Of a block the triangle is known. */
static gpu_status factor_panel(cuda_device *d, float *a, int64_t ld, int m,
                               int s, int nb, const reflections *h, float *tau)
{
    if (nb <= JOINED)
        return factor_block(d, a, ld, m, s, nb, h, tau);
    int half = (int)ceil_div(nb / 2, JOINED) * JOINED,
        is_block = half <= JOINED;
    gpu_view behind =
        gpu_cuda_rows_view(a + s * ld + s + half, m - s, nb - half, ld);
    TRY(factor_panel(d, a, ld, m, s, half, h, tau));
    if (!is_block)
        TRY(find_triangle(d, h, m, s, half));
    TRY(reflect(d, h, s, half, is_block ? h->gram : h->work,
                is_block ? JOINED : h->ld, &behind));
    return factor_panel(d, a, ld, m, s + half, nb - half, h, tau);
}

static gpu_status factor_panels(cuda_device *d, const padded *p,
                                const reflections *h)
{
    int last = (int)smaller(p->side, p->across);
    int64_t ld = p->ld;
    for (int j = 0; j < last; j += h->nb) {
        int nb = (int)smaller(h->nb, last - j), m = p->side - j;
        float *a = p->data + j * ld + j;
        gpu_view behind = gpu_cuda_rows_view(a + nb, m, p->across - j - nb, ld);
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        TRY(factor_panel(d, a, ld, m, 0, nb, h, h->tau + j));
        if (behind.cols == 0)
            break;
        TRY(find_triangle(d, h, m, 0, nb));
        TRY(reflect(d, h, 0, nb, h->work, h->ld, &behind));
    }
    return GPU_OK;
}

/* --- Q ----------------------------------------------------------------------
 * Of reflections that were found before. Q^T is the panels' products, one after
 * the other; Q the same backwards, in which each panel's reflections come the
 * other way round and diag(tau) stands on the other side. */

enum { TAKEN = 32, TAKEN_ROWS = 8 };

/* The reflections of the columns [j, j + nb) of a, which lies column by column,
 * of rows from j on: what is behind its last row, or the last reflection,
 * becomes zeros. */
__global__ void __launch_bounds__(TAKEN *TAKEN_ROWS)
    take_panel(const float *a, int64_t lda, int rows, int count,
               const float *tau, int j, int is_turned, const reflections h)
{
    __shared__ float tile[TAKEN][TAKEN + 1];
    int nb = (int)gridDim.y * TAKEN;
    int i0 = (int)blockIdx.x * TAKEN, k0 = (int)blockIdx.y * TAKEN;
    int x = (int)threadIdx.x;
    for (int y = (int)threadIdx.y; y < TAKEN; y += TAKEN_ROWS) {
        int i = i0 + x, k = k0 + y, row = j + i;
        int from = j + (is_turned ? k : nb - 1 - k);
        float v = row == from;
        if (row > from && row < rows && from < count)
            v = a[row + from * lda];
        if (from >= count)
            v = 0;
        float times = from < count ? tau[from] : 0;
        h.vt[k * h.ldt + i] = is_turned ? times * v : v;
        tile[y][x] = is_turned ? v : times * v;
    }
    __syncthreads(); /* the tile is there */
    for (int y = (int)threadIdx.y; y < TAKEN; y += TAKEN_ROWS)
        h.v[(int64_t)(i0 + y) * h.nb + k0 + x] = tile[x][y];
}

/* c, rows as many as f's Q has, becomes Q c or Q^T c. Of an identity Q changes
 * what is behind the rows and columns of the panels before. */
static gpu_status apply_panels(cuda_device *d, const gpu_factoring *f,
                               const padded *c, const reflections *h,
                               int is_identity)
{
    int count = (int)smaller(f->a.rows, f->a.cols);
    int panels = (int)ceil_div(count, h->nb);
    for (int n = 0; n < panels; n++) {
        int j = (f->is_turned ? n : panels - 1 - n) * h->nb, m = c->side - j;
        int nb = (int)smaller(h->nb, ceil_div(count - j, PAD) * PAD);
        int left = is_identity ? j : 0;
        gpu_view to = gpu_cuda_rows_view(c->data + j * c->ld + left, m,
                                         c->across - left, c->ld);
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        take_panel<<<dim3((unsigned)(m / TAKEN), (unsigned)(nb / TAKEN)),
                     dim3(TAKEN, TAKEN_ROWS), 0, d->stream>>>(
            (const float *)f->a.data, f->a.col_stride, (int)f->a.rows, count,
            (const float *)f->values.data, j, f->is_turned, *h);
        LAUNCHED(d);
        TRY(find_triangle(d, h, m, 0, nb));
        TRY(reflect(d, h, 0, nb, h->work, h->ld, &to));
    }
    return GPU_OK;
}

/* f->b becomes Q, or Q times what it is. */
static gpu_status apply_q(cuda_device *d, const gpu_factoring *f,
                          int is_identity)
{
    padded c;
    reflections h;
    int most = (int)ceil_div(smaller(f->a.rows, f->a.cols), PAD) * PAD;
    TRY(is_identity ? gpu_cuda_pad_identity(d, f->b.rows, f->b.cols, &c)
                    : gpu_cuda_pad(d, &f->b, 1, PADDED_ALL, &c));
    gpu_status status = take_reflections(d, &c, most, &h);
    if (status == GPU_OK) {
        status = apply_panels(d, f, &c, &h, is_identity);
        if (status == GPU_OK)
            status = gpu_cuda_copy_back(d, &c, PADDED_ALL, 1, &f->b);
        gpu_cuda_free(d, h.memory, h.bytes);
    }
    gpu_cuda_end_padded(d, &c);
    return status == GPU_OK ? gpu_cuda_wait(d) : status;
}

/* --- the whole ------------------------------------------------------------ */

enum { LEAST_COLUMNS = 256 }; /* of what Q is multiplied by */

bool gpu_cuda_can_own_qr(const cuda_device *d, const gpu_view *a)
{
    return d->capability == 90 && d->sms >= 100 && a->dtype == GPU_F32 &&
           a->rows >= 64 && a->cols >= 64 && a->rows <= MOST_ROWS &&
           a->cols <= MOST_ROWS;
}

/* Ours, where it is long and b is wide, or cuSOLVER refuses its size, as it
 * does 32768x32768; the other where there is no memory. */
static gpu_status make_q(cuda_device *d, gpu_factoring *f)
{
    const int64_t REFUSED = (int64_t)1 << 29; /* elements, and some more */
    int is_identity = f->kind == GPU_FACTOR_Q;
    int is_ours =
        f->b.cols >= LEAST_COLUMNS || f->a.rows * f->a.cols >= REFUSED;
    gpu_status status = GPU_MEMORY;
    if (is_ours && f->b.rows <= MOST_ROWS && f->b.cols <= MOST_ROWS)
        status = apply_q(d, f, is_identity);
    return status == GPU_MEMORY ? gpu_cuda_factor_cusolver.factor(d, f)
                                : status;
}

static gpu_status factor_padded(cuda_device *d, gpu_factoring *f, padded *p,
                                double scale)
{
    reflections h;
    size_t bytes = (size_t)smaller(p->n, p->cols) * sizeof *h.tau;
    TRY(take_reflections(d, p, (int)smaller(p->side, p->across), &h));
    gpu_status status = factor_panels(d, p, &h);
    if (status == GPU_OK)
        status = gpu_cuda_copy_back(d, p, PADDED_ALL, 1 / scale, &f->a);
    if (status == GPU_OK)
        status = gpu_cuda_check(d, cudaMemcpyAsync(f->values.data, h.tau, bytes,
                                                   cudaMemcpyDeviceToDevice,
                                                   d->stream));
    gpu_cuda_free(d, h.memory, h.bytes);
    return status == GPU_OK ? gpu_cuda_wait(d) : status;
}

/* What has no scale, and what there is no memory for, is cuSOLVER's. */
static gpu_status factor_qr(void *device, gpu_factoring *f)
{
    ENTER(d, device);
    padded p;
    double scale;
    if (f->kind != GPU_FACTOR_QR)
        return make_q(d, f);
    if (!gpu_cuda_can_own_qr(d, &f->a) || f->places != NULL)
        return FAIL(GPU_ARGUMENT,
                    "qr: kernel split16 cannot do %lldx%lld%s: it takes sides "
                    "from 64 to %d",
                    (long long)f->a.rows, (long long)f->a.cols,
                    f->places != NULL ? " with pivots" : "", MOST_ROWS);
    TRY(gpu_cuda_find_scale(d, &f->a, &scale));
    if (scale == 0)
        return gpu_cuda_factor_cusolver.factor(d, f);
    gpu_status status = gpu_cuda_pad(d, &f->a, scale, PADDED_ALL, &p);
    if (status == GPU_OK) {
        status = factor_padded(d, f, &p, scale);
        gpu_cuda_end_padded(d, &p);
    }
    return status == GPU_MEMORY ? gpu_cuda_factor_cusolver.factor(d, f)
                                : status;
}

const gpu_kernel gpu_cuda_qr_split16 = {
    .operation = "qr",
    .name = "split16",
    .idea = "blocked; reflections by clusters, the rest on tensor cores",
    .needs = "sm_90",
    .precision = "f32",
    .capability = 90,
    .dtypes = 1u << GPU_F32,
    .bound = NULL,
    .matmul = NULL,
    .dot = NULL,
    .factor = factor_qr,
};
