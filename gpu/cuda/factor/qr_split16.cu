/* split16: QR of f32 and c64 matrices by Householder's reflections, blocked: 32
 * columns at a time are reflected by one cluster (reflect_columns.h) and joined
 * to blocks of 128 (join_columns.h), these to panels by halves; then a panel's
 * reflections go to the columns behind it as two large products of split16,
 * with its triangle solved between them.
 *
 * Reflections H1 ... Hk of vectors V, with ones on its diagonal, and factors
 * tau: their product's transpose is 1 - V L^-1 diag(tau) V^T, where L is what
 * diag(tau) V^T V has below its diagonal, and ones. So no matrix T is made.
 *
 * Of c64 the same with conjugates, by real products alone: V, its transpose and
 * L are doubled (padded.h), the matrix's rows are two, and so are those of what
 * they are multiplied to. A block of columns is factored in doubled form, 16 at
 * a time (reflect_complex.h).
 *
 * Limited by the panels up to 8192, n reflections one after the other, about
 * 1 us each; above by the tensor cores' power. Sources: Golub and Van Loan,
 * Matrix Computations, 4th edition, 5.2; Puglisi, Modification of the
 * Householder method based on the compact WY representation, 1992. Needs
 * sm_90a with clusters of 16 blocks. */
#include "doubled.h"
#include "join_columns.h"
#include "kernel.h"
#include "padded.h"
#include "reflect_columns.h"
#include "reflect_complex.h"

/* That a cluster holds, of numbers, or of pairs. */
constexpr int MOST_ROWS = 32768, MOST_COMPLEX_ROWS = 16384;

static int panel_width(int n)
{
    return n > 24576 ? 2048 : n > 12288 ? 1024 : n > 4096 ? 512 : 256;
}

/* Of a panel that begins in row j, and whose rows are those of the matrix from
 * there on: its reflections as v, m x nb, and as vt, diag(tau) v^T; a block's
 * gram, see join_job; work: nb rows, ld apart, of the panel's triangle and,
 * behind it, of products. Of complex ones each of these rows and columns is
 * two, and block is a block of columns, doubled. */
typedef struct reflections {
    float *v, *vt, *work, *gram, *partial, *block;
    float *tau; /* of all columns */
    int parts;  /* of a number, 1 or 2 */
    int nb;     /* at most */
    int64_t ldv, ldt, ld;
    void *memory;
    size_t bytes;
} reflections;

/* For p; most: of all columns with reflections. */
static gpu_status take_reflections(cuda_device *d, const padded *p, int most,
                                   reflections *h)
{
    const int parts = h->parts = p->parts;
    const int64_t rows = parts * p->side;
    h->nb = (int)smaller(panel_width(p->n), most);
    h->ldv = parts * h->nb;
    h->ldt = rows;
    h->ld = ceil_div(p->across, PAD_ROW) * PAD_ROW + h->ldv;
    struct {
        float **to;
        int64_t floats;
    } all[] = {
        {&h->v, rows * h->ldv},      {&h->vt, h->ldv * h->ldt},
        {&h->work, h->ldv * h->ld},  {&h->gram, JOINED * JOINED},
        {&h->partial, join_room(d)}, {&h->block, (parts - 1) * rows * JOINED},
        {&h->tau, parts * p->across}};
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

/* The panel's reflections [s, s + k) as v, of rows from s to m, and as vt. */
static gpu_view v_of(const reflections *h, int m, int s, int k)
{
    int64_t n = h->parts, at = n * s;
    return gpu_cuda_rows_view(h->v + at * h->ldv + at, n * (m - s), n * k,
                              h->ldv);
}

static gpu_view vt_of(const reflections *h, int m, int s, int k)
{
    int64_t n = h->parts, at = n * s;
    return gpu_cuda_rows_view(h->vt + at * h->ldt + at, n * k, n * (m - s),
                              h->ldt);
}

/* They go to c, whose rows are the panel's, m, from s on. triangle: L of these
 * reflections, rows ldl apart. */
static gpu_status reflect(cuda_device *d, const reflections *h, int m, int s,
                          int k, const float *triangle, int64_t ldl,
                          const gpu_view *c)
{
    float *sums = h->work + h->ldv;
    int numbers = h->parts * k;
    gpu_view x = gpu_cuda_rows_view(sums, numbers, c->cols, h->ld);
    gpu_view v = v_of(h, m, s, k), vt = vt_of(h, m, s, k);
    TRY(gpu_cuda_multiply_views(d, &x, &vt, c));
    TRY(gpu_cuda_solve_unit_lower(d, triangle, ldl, numbers, sums, h->ld,
                                  (int)c->cols));
    return gpu_cuda_subtract_views(d, c, &v, &x);
}

/* What a doubled triangle of n columns has on its diagonal is no part of it. */
static __global__ void clear_diagonal(float *a, int64_t ld, int n)
{
    int i = 2 * (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        a[(i + 1) * ld + i] = 0;
}

/* Their triangle, where work begins. */
static gpu_status find_triangle(cuda_device *d, const reflections *h, int m,
                                int s, int k)
{
    int numbers = h->parts * k;
    gpu_view to = gpu_cuda_rows_view(h->work, numbers, numbers, h->ld);
    gpu_view v = v_of(h, m, s, k), vt = vt_of(h, m, s, k);
    TRY(gpu_cuda_multiply_views(d, &to, &vt, &v));
    if (h->parts == 1)
        return GPU_OK;
    clear_diagonal<<<(unsigned)ceil_div(k, 256), 256, 0, d->stream>>>(
        h->work, h->ld, numbers);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- a panel -------------------------------------------------------------- */

/* Columns that are reflected at once, of m rows, where `left` are to be done.
 */
static int columns_at_once(int m, int left)
{
    return m > 16384 || left < 32 ? 16 : 32;
}

/* A panel of m rows whose top left is a, with the numbers of its columns'
 * reflections. */
typedef struct qr_panel {
    float *a, *tau;
    int64_t ld;
    int m;
} qr_panel;

/* Its columns [s, s + k), as a block of a's or, doubled, of h's. */
static gpu_status factor_block(cuda_device *d, const qr_panel *p, int s, int k,
                               const reflections *h)
{
    int64_t ld = p->ld;
    for (int at = 0, width; at < k; at += width) {
        int t = s + at;
        width = columns_at_once(p->m - t, k - at);
        float *v = h->v + t * h->ldv, *a = p->a + t * ld, *tau = p->tau + t;
        reflect_job job = {a + t,  ld,     p->m - t,
                           v + t,  h->ldv, h->vt + t * h->ldt + t,
                           h->ldt, t,      tau};
        TRY(find_reflections(d, &job, width));
        join_job join = {v + s, h->ldv, a + s, ld,         p->m - t, k,
                         at,    tau,    0,     h->partial, 0,        h->gram};
        TRY(join_columns(d, &join, width));
    }
    return GPU_OK;
}

enum { ROWS_AT_ONCE = 4, BLOCK_COLUMNS = JOINED / 2 };

/* block: k columns of a, whose rows are two, doubled; or the way back. */
static __global__ void __launch_bounds__(ROWS_AT_ONCE *BLOCK_COLUMNS)
    double_block(float *a, int64_t ld, int m, int k, float *block, int is_back)
{
    int c = (int)threadIdx.x;
    int i = (int)(blockIdx.x * ROWS_AT_ONCE + threadIdx.y);
    if (i >= m || c >= k)
        return;
    float *p = a + 2 * i * ld + c;
    if (is_back) {
        float2 v = *((const float2 *)(block + 2 * i * JOINED) + c);
        p[0] = v.x;
        p[ld] = -v.y;
    } else {
        place_doubled(block, JOINED, i, c, make_float2(p[0], p[ld]));
    }
}

static gpu_status turn_block(cuda_device *d, const qr_panel *p, int s, int k,
                             const reflections *h, int is_back)
{
    int m = p->m - s;
    double_block<<<(unsigned)ceil_div(m, ROWS_AT_ONCE),
                   dim3(BLOCK_COLUMNS, ROWS_AT_ONCE), 0, d->stream>>>(
        p->a + 2 * s * p->ld + s, p->ld, m, k, h->block, is_back);
    LAUNCHED(d);
    return GPU_OK;
}

/* The same of a complex one. */
static gpu_status factor_complex_block(cuda_device *d, const qr_panel *p, int s,
                                       int k, const reflections *h)
{
    TRY(turn_block(d, p, s, k, h, 0));
    for (int at = 0; at < k; at += COMPLEX_COLUMNS) {
        int t = s + at, m = p->m - t;
        float *v = h->v + 2 * t * h->ldv, *vt = h->vt + 2 * t * h->ldt + 2 * t;
        float *a = h->block + 2 * at * JOINED, *tau = p->tau + 2 * t;
        reflect_job job = {a + 2 * at, JOINED, m, v + 2 * t, h->ldv,
                           vt,         h->ldt, t, tau};
        TRY(find_complex_reflections(d, &job));
        join_job join = {v + 2 * s, h->ldv, a, JOINED,     2 * m, 2 * k,
                         2 * at,    tau,    1, h->partial, 0,     h->gram};
        TRY(join_columns(d, &join, 2 * COMPLEX_COLUMNS));
    }
    return turn_block(d, p, s, k, h, 1);
}

/* Its columns [s, s + nb), by halves: those of the second are as the first's
 * reflections leave them. Of a block the triangle is known. */
static gpu_status factor_panel(cuda_device *d, const qr_panel *p, int s, int nb,
                               const reflections *h)
{
    const int n = h->parts, joined = JOINED / n;
    if (nb <= joined)
        return n == 2 ? factor_complex_block(d, p, s, nb, h)
                      : factor_block(d, p, s, nb, h);
    int half = (int)ceil_div(nb / 2, joined) * joined,
        is_block = half <= joined;
    gpu_view behind = gpu_cuda_rows_view(p->a + n * s * p->ld + s + half,
                                         n * (p->m - s), nb - half, p->ld);
    TRY(factor_panel(d, p, s, half, h));
    if (!is_block)
        TRY(find_triangle(d, h, p->m, s, half));
    TRY(reflect(d, h, p->m, s, half, is_block ? h->gram : h->work,
                is_block ? JOINED : h->ld, &behind));
    return factor_panel(d, p, s + half, nb - half, h);
}

static gpu_status factor_panels(cuda_device *d, const padded *p,
                                const reflections *h)
{
    int last = (int)smaller(p->side, p->across), n = p->parts;
    for (int j = 0; j < last; j += h->nb) {
        int nb = (int)smaller(h->nb, last - j);
        const qr_panel panel = {p->data + n * j * p->ld + j, h->tau + n * j,
                                p->ld, p->side - j};
        gpu_view behind = gpu_cuda_rows_view(panel.a + nb, n * panel.m,
                                             p->across - j - nb, p->ld);
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        TRY(factor_panel(d, &panel, 0, nb, h));
        if (behind.cols == 0)
            break;
        TRY(find_triangle(d, h, panel.m, 0, nb));
        TRY(reflect(d, h, panel.m, 0, nb, h->work, h->ld, &behind));
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
template <class E>
__global__ void __launch_bounds__(TAKEN *TAKEN_ROWS)
    take_panel(const E *a, int64_t lda, int rows, int count, const E *tau,
               int j, int is_turned, const reflections h)
{
    __shared__ E tile[TAKEN][TAKEN + 1];
    int nb = (int)gridDim.y * TAKEN;
    int i0 = (int)blockIdx.x * TAKEN, k0 = (int)blockIdx.y * TAKEN;
    int x = (int)threadIdx.x;
    for (int y = (int)threadIdx.y; y < TAKEN; y += TAKEN_ROWS) {
        int i = i0 + x, k = k0 + y, row = j + i;
        int from = j + (is_turned ? k : nb - 1 - k);
        E v = unit<E>(row == from && from < count), by = unit<E>(0);
        if (row > from && row < rows && from < count)
            v = a[row + from * lda];
        if (from < count)
            by = tau[from];
        E scaled = times(by, v);
        place_doubled(h.vt, h.ldt, k, i, conjugate(is_turned ? scaled : v));
        tile[y][x] = is_turned ? v : scaled;
    }
    __syncthreads(); /* the tile is there */
    for (int y = (int)threadIdx.y; y < TAKEN; y += TAKEN_ROWS)
        place_doubled(h.v, h.ldv, i0 + y, k0 + x, tile[x][y]);
}

template <class E>
static void launch_take(cuda_device *d, const gpu_factoring *f, int j, int m,
                        int nb, int count, const reflections *h)
{
    take_panel<<<dim3((unsigned)(m / TAKEN), (unsigned)(nb / TAKEN)),
                 dim3(TAKEN, TAKEN_ROWS), 0, d->stream>>>(
        (const E *)f->a.data, f->a.col_stride, (int)f->a.rows, count,
        (const E *)f->values.data, j, f->is_turned, *h);
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
        gpu_view to = gpu_cuda_rows_view(c->data + c->parts * j * c->ld + left,
                                         c->parts * m, c->across - left, c->ld);
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        if (c->parts == 2)
            launch_take<float2>(d, f, j, m, nb, count, h);
        else
            launch_take<float>(d, f, j, m, nb, count, h);
        LAUNCHED(d);
        TRY(find_triangle(d, h, m, 0, nb));
        TRY(reflect(d, h, m, 0, nb, h->work, h->ld, &to));
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
    TRY(is_identity ? gpu_cuda_pad_identity(d, &f->b, &c)
                    : gpu_cuda_pad(d, &f->b, 1, PADDED_ALL, &c));
    gpu_status status = take_reflections(d, &c, most, &h);
    if (status == GPU_OK) {
        status = apply_panels(d, f, &c, &h, is_identity);
        if (status == GPU_OK)
            status = gpu_cuda_copy_back(d, &c, PADDED_ALL, &f->b);
        gpu_cuda_free(d, h.memory, h.bytes);
    }
    gpu_cuda_end_padded(d, &c);
    return status == GPU_OK ? gpu_cuda_wait(d) : status;
}

/* --- the whole ------------------------------------------------------------ */

enum { LEAST_COLUMNS = 256 }; /* of what Q is multiplied by */
static const float LEAST_TAME = 0x1p-60f, MOST_TAME = 0x1p100f;

/* 0 of types that are not ours. */
static int64_t most_rows(const gpu_view *a)
{
    return a->dtype == GPU_F32   ? MOST_ROWS
           : a->dtype == GPU_C64 ? MOST_COMPLEX_ROWS
                                 : 0;
}

bool gpu_cuda_can_own_qr(const cuda_device *d, const gpu_view *a)
{
    int64_t most = most_rows(a);
    return d->capability == 90 && d->sms >= 100 && most > 0 && a->rows >= 64 &&
           a->cols >= 64 && a->rows <= most && a->cols <= most;
}

/* Products in place take b's numbers to be finite, and their sums too. */
static gpu_status is_tame(cuda_device *d, const gpu_view *b, int *is_so)
{
    float largest;
    TRY(gpu_cuda_find_largest(d, b, NULL, &largest));
    *is_so = largest == 0 || (largest >= LEAST_TAME && largest <= MOST_TAME);
    return GPU_OK;
}

/* Ours, where it is long and b is wide and tame, or cuSOLVER refuses its size,
 * as it does 32768x32768; the other where there is no memory. */
static gpu_status make_q(cuda_device *d, gpu_factoring *f)
{
    const int64_t REFUSED = (int64_t)1 << 29; /* elements, and some more */
    int is_identity = f->kind == GPU_FACTOR_Q;
    int is_refused = f->a.rows * f->a.cols >= REFUSED;
    int is_ours = f->b.cols >= LEAST_COLUMNS || is_refused;
    int64_t most = most_rows(&f->b);
    gpu_status status = GPU_MEMORY;
    if (is_ours && !is_identity && !is_refused)
        TRY(is_tame(d, &f->b, &is_ours));
    if (is_ours && f->b.rows <= most && f->b.cols <= most)
        status = apply_q(d, f, is_identity);
    return status == GPU_MEMORY ? gpu_cuda_factor_cusolver.factor(d, f)
                                : status;
}

static gpu_status factor_padded(cuda_device *d, gpu_factoring *f, padded *p)
{
    reflections h;
    int64_t numbers = p->parts * smaller(p->n, p->cols);
    size_t bytes = (size_t)numbers * sizeof *h.tau;
    TRY(take_reflections(d, p, (int)smaller(p->side, p->across), &h));
    gpu_status status = factor_panels(d, p, &h);
    if (status == GPU_OK)
        status = gpu_cuda_copy_back(d, p, PADDED_ALL, &f->a);
    if (status == GPU_OK)
        status = gpu_cuda_check(d, cudaMemcpyAsync(f->values.data, h.tau, bytes,
                                                   cudaMemcpyDeviceToDevice,
                                                   d->stream));
    gpu_cuda_free(d, h.memory, h.bytes);
    return status == GPU_OK ? gpu_cuda_wait(d) : status;
}

/* What is not finite, and what there is no memory for, is cuSOLVER's. */
static gpu_status factor_qr(void *device, gpu_factoring *f)
{
    ENTER(d, device);
    padded p;
    int is_finite;
    if (f->kind != GPU_FACTOR_QR)
        return make_q(d, f);
    if (!gpu_cuda_can_own_qr(d, &f->a) || f->places != NULL)
        return FAIL(GPU_ARGUMENT,
                    "qr: kernel split16 cannot do %lldx%lld%s: it takes sides "
                    "from 64 to %lld",
                    (long long)f->a.rows, (long long)f->a.cols,
                    f->places != NULL ? " with pivots" : "",
                    (long long)most_rows(&f->a));
    gpu_status status = gpu_cuda_pad_by_columns(d, &f->a, &p, &is_finite);
    if (status == GPU_OK) {
        status = is_finite ? factor_padded(d, f, &p) : GPU_MEMORY;
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
    .dtypes = 1u << GPU_F32 | 1u << GPU_C64,
    .bound = NULL,
    .matmul = NULL,
    .dot = NULL,
    .factor = factor_qr,
};
