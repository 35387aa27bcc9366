/* The kernels `openblas`: products by the system's BLAS. */
#include "blas.h"

#include <limits.h>
#include <stdlib.h>

static const char without[] = "the kernel packed needs none";

/* --- products ---------------------------------------------------------------
 * matmul `openblas`: the system's BLAS on views, copying only operands whose
 * two steps are both other than 1. */

enum {
    LEAST = 64,    /* rows or columns of a panel, */
    PANELS = 8,    /* and how many there are, where they are no smaller */
    SMALLEST = 512 /* side below which a panel is not cut for the flag */
};

/* Products of numbers from which panels are worth it. */
static const double WORTH_PANELS = 4e6, WORTH_PANELS_BY_VECTOR = 1e5;

/* Work between two looks at the interrupt flag: about 20 ms on a slow core, to
 * which an element brought from memory is as long as so many products. */
static const double steps_at_most = 5.5e8, steps_an_element = 8;

/* --- layouts -------------------------------------------------------------- */

/* A matrix as row-major BLAS takes it: v, or v transposed, with ld. */
typedef struct operand {
    gpu_view v;
    CBLAS_TRANSPOSE transposed;
    int64_t ld;
} operand;

static int has_rows(const gpu_view *v)
{
    return (v->col_stride == 1 || v->cols == 1) &&
           (v->rows == 1 || v->row_stride >= v->cols) &&
           v->row_stride <= INT_MAX;
}

static int find_layout(operand *o)
{
    gpu_view t = gpu_cpu_turned(o->v);
    if (has_rows(&o->v)) {
        o->transposed = CblasNoTrans;
        o->ld = o->v.rows == 1 ? o->v.cols : o->v.row_stride;
        return 1;
    }
    if (has_rows(&t)) {
        o->transposed = CblasTrans;
        o->ld = t.rows == 1 ? t.cols : t.row_stride;
        return 1;
    }
    return 0;
}

/* Sets o up for v; *room gets a copy to be freed when one was needed. */
static gpu_status pack(const gpu_view *v, int read, operand *o, void **room)
{
    *room = NULL;
    o->v = *v;
    if (find_layout(o))
        return GPU_OK;
    o->transposed = CblasNoTrans;
    o->ld = v->cols;
    return gpu_cpu_stop(gpu_cpu_make_dense(&o->v, read, room));
}

static operand turned(operand o)
{
    o.v = gpu_cpu_turned(o.v);
    o.transposed = o.transposed == CblasTrans ? CblasNoTrans : CblasTrans;
    return o;
}

/* --- the product ----------------------------------------------------------
 * c is row-major here, or a vector. */

typedef struct product {
    operand a, b, c;
    double alpha, beta;
} product;

static void call_gemm(const product *p)
{
    int m = (int)p->c.v.rows, n = (int)p->c.v.cols, k = (int)p->a.v.cols;
    int lda = (int)p->a.ld, ldb = (int)p->b.ld, ldc = (int)p->c.ld;
    if (p->c.v.dtype == GPU_F64)
        gpu_cpu_blas.dgemm(CblasRowMajor, p->a.transposed, p->b.transposed, m,
                           n, k, p->alpha, p->a.v.data, lda, p->b.v.data, ldb,
                           p->beta, p->c.v.data, ldc);
    else
        gpu_cpu_blas.sgemm(CblasRowMajor, p->a.transposed, p->b.transposed, m,
                           n, k, (float)p->alpha, p->a.v.data, lda, p->b.v.data,
                           ldb, (float)p->beta, p->c.v.data, ldc);
}

/* BLAS takes the lowest address of a vector that runs backwards. */
static void *lowest(const gpu_view *v)
{
    gpu_view end =
        gpu_cpu_part(v, v->row_stride < 0 ? v->rows - 1 : 0, 0, 1, 1);
    return end.data;
}

/* c and b are columns. c is cleared first: not every gemv leaves it unread
 * when beta is 0. */
static void call_gemv(const product *p)
{
    const gpu_view *x = &p->b.v, *y = &p->c.v;
    int flipped = p->a.transposed == CblasTrans;
    int m = (int)(flipped ? p->a.v.cols : p->a.v.rows);
    int n = (int)(flipped ? p->a.v.rows : p->a.v.cols);
    int lda = (int)p->a.ld, ix = (int)x->row_stride, iy = (int)y->row_stride;
    if (p->beta == 0)
        for (int64_t i = 0; i < y->rows; i++)
            gpu_cpu_store_one(y, i, 0, 0);
    if (y->dtype == GPU_F64)
        gpu_cpu_blas.dgemv(CblasRowMajor, p->a.transposed, m, n, p->alpha,
                           p->a.v.data, lda, lowest(x), ix, p->beta, lowest(y),
                           iy);
    else
        gpu_cpu_blas.sgemv(CblasRowMajor, p->a.transposed, m, n,
                           (float)p->alpha, p->a.v.data, lda, lowest(x), ix,
                           (float)p->beta, lowest(y), iy);
}

static gpu_view cut(const gpu_view *v, int64_t i, int64_t j, int64_t rows,
                    int64_t cols)
{
    return gpu_cpu_part(v, i, j, gpu_cpu_smaller(rows, v->rows - i),
                        gpu_cpu_smaller(cols, v->cols - j));
}

/* BLAS works in blocks of registers: a thin side counts as one. */
static double steps_of(double m, double n, double k)
{
    double block = 16;
    m = m < block ? block : m;
    n = n < block ? block : n;
    k = k < block ? block : k;
    return m * n * k + steps_an_element * (m * n + m * k + n * k);
}

/* The library computes on the thread that calls it; several call it, each for
 * panels of c. They are cut by the shape alone, so that the bits of c depend
 * neither on how many threads there are nor on what else the machine does. */
typedef struct panels {
    const product *p;
    void (*call)(const product *p);
    int64_t m, n, k; /* of a panel, which is read k by k */
    int64_t across;
    int counted;
} panels;

static int64_t cut_side(int64_t side)
{
    int64_t panel = gpu_cpu_pieces(gpu_cpu_pieces(side, PANELS), 16) * 16;
    return panel < LEAST ? LEAST : panel;
}

static void choose_panels(panels *s)
{
    const product *p = s->p;
    int64_t rows = p->c.v.rows, cols = p->c.v.cols;
    double work = (double)rows * (double)cols * (double)p->a.v.cols;
    s->m = rows;
    s->n = cols;
    s->k = p->a.v.cols;
    if (work < (cols == 1 ? WORTH_PANELS_BY_VECTOR : WORTH_PANELS))
        return;
    *(rows >= cols ? &s->m : &s->n) = cut_side(rows >= cols ? rows : cols);
    while (steps_of((double)s->m, (double)s->n, (double)s->k) > steps_at_most ||
           s->m > INT_MAX || s->n > INT_MAX || s->k > INT_MAX) {
        int64_t *side = s->m > s->n ? &s->m : &s->n;
        if (*side < 2 * SMALLEST && s->k >= 2 * SMALLEST)
            side = &s->k;
        if (*side < 2 * SMALLEST)
            break;
        *side = (*side + 1) / 2;
    }
}

static gpu_status multiply_panel(const panels *s, int64_t i, int64_t j)
{
    const product *p = s->p;
    for (int64_t l = 0; l < p->a.v.cols; l += s->k) {
        product block = *p;
        block.a.v = cut(&p->a.v, i, l, s->m, s->k);
        block.b.v = cut(&p->b.v, l, j, s->k, s->n);
        block.c.v = cut(&p->c.v, i, j, s->m, s->n);
        block.beta = l == 0 ? p->beta : 1;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        s->call(&block);
        if (s->counted)
            gpu_cpu_advance(block.c.v.rows * block.c.v.cols * block.a.v.cols);
    }
    return GPU_OK;
}

static gpu_status multiply_panels(void *context, int64_t first, int64_t last)
{
    const panels *s = context;
    gpu_status status = GPU_OK;
    for (int64_t at = first; at < last && status == GPU_OK; at++)
        status =
            multiply_panel(s, at / s->across * s->m, at % s->across * s->n);
    return status;
}

static gpu_status multiply(const product *p, void (*call)(const product *p))
{
    panels s = {.p = p, .call = call};
    int64_t steps = p->c.v.rows * p->c.v.cols * p->a.v.cols;
    choose_panels(&s);
    s.across = gpu_cpu_pieces(p->c.v.cols, s.n);
    int64_t count = gpu_cpu_pieces(p->c.v.rows, s.m) * s.across;
    if (count > 1 || s.k < p->a.v.cols)
        s.counted = gpu_cpu_begin_stage(steps);
    gpu_status status =
        gpu_cpu_blas.is_shared
            ? gpu_cpu_parallel(count, steps, multiply_panels, &s)
            : gpu_cpu_stop(multiply_panels(&s, 0, count));
    gpu_cpu_end_stage(s.counted);
    return status;
}

static int is_step(int64_t stride)
{
    return stride != 0 && stride > -INT_MAX && stride < INT_MAX;
}

/* Dense operands; c may still be column-major. */
static gpu_status multiply_dense(product *p)
{
    if (p->c.v.rows == 1 && p->c.v.cols > 1) {
        operand a = p->a;
        p->a = turned(p->b);
        p->b = turned(a);
        p->c = turned(p->c);
    }
    if (p->c.v.cols == 1 && is_step(p->b.v.row_stride) &&
        is_step(p->c.v.row_stride))
        return multiply(p, call_gemv);
    if (p->c.transposed == CblasTrans) {
        operand a = p->a;
        p->a = turned(p->b);
        p->b = turned(a);
        p->c = turned(p->c);
    }
    return multiply(p, call_gemm);
}

static gpu_status multiply_any(void *device, const gpu_gemm *g)
{
    (void)device;
    void *rooms[3] = {0};
    product p = {.alpha = g->alpha, .beta = g->beta};
    gpu_status status = gpu_cpu_load_blas("openblas", without);
    if (status == GPU_OK)
        status = pack(&g->a, 1, &p.a, &rooms[0]);
    if (status == GPU_OK)
        status = pack(&g->b, 1, &p.b, &rooms[1]);
    if (status == GPU_OK)
        status = pack(&g->c, g->beta != 0, &p.c, &rooms[2]);
    gpu_view packed = p.c.v;
    if (status == GPU_OK)
        status = multiply_dense(&p);
    if (status == GPU_OK && rooms[2])
        status = gpu_cpu_copy(&packed, &g->c);
    gpu_cpu_free(NULL, rooms[0], rooms[0] ? gpu_cpu_view_bytes(&g->a) : 0);
    gpu_cpu_free(NULL, rooms[1], rooms[1] ? gpu_cpu_view_bytes(&g->b) : 0);
    gpu_cpu_free(NULL, rooms[2], rooms[2] ? gpu_cpu_view_bytes(&g->c) : 0);
    return status;
}

static gpu_status matmul(void *device, const gpu_gemm *g)
{
    gpu_status status = gpu_cpu_gram(device, g, multiply_any);
    return status == GPU_UNSUPPORTED ? multiply_any(device, g) : status;
}

const gpu_kernel gpu_cpu_matmul_openblas = {
    .operation = "matmul",
    .name = "openblas",
    .idea = "the system's BLAS, reading transposes and blocks where they lie",
    .needs = "BLAS",
    .precision = "f32",
    .dtypes = 1 << GPU_F32 | 1 << GPU_F64,
    .bound = gpu_cpu_product_bound,
    .matmul = matmul,
};

/* --- dot products --------------------------------------------------------- */

static gpu_view as_row(const gpu_view *v)
{
    return v->cols == 1 ? gpu_cpu_turned(*v) : *v;
}

static double blas_dot(const gpu_view *x, const gpu_view *y)
{
    /* BLAS takes the lowest address of a vector that runs backwards. */
    gpu_view a = *x, b = *y;
    int n = (int)x->cols, ia = (int)x->col_stride, ib = (int)y->col_stride;
    if (ia < 0)
        a = gpu_cpu_part(&a, 0, n - 1, 1, 1);
    if (ib < 0)
        b = gpu_cpu_part(&b, 0, n - 1, 1, 1);
    return x->dtype == GPU_F64 ? gpu_cpu_blas.ddot(n, a.data, ia, b.data, ib)
                               : gpu_cpu_blas.sdot(n, a.data, ia, b.data, ib);
}

static int fits_int(int64_t v)
{
    return v > -((int64_t)1 << 31) && v < (int64_t)1 << 31;
}

static gpu_status dot_openblas(void *device, const gpu_view *x,
                               const gpu_view *y, double *out)
{
    enum { CHUNK = 1 << 24 };
    gpu_view a = as_row(x), b = as_row(y);
    double sum = 0;
    if (!fits_int(a.col_stride) || !fits_int(b.col_stride))
        return gpu_cpu_dot_vector.dot(device, x, y, out);
    gpu_status status = gpu_cpu_load_blas("openblas", without);
    if (status != GPU_OK)
        return status;
    for (int64_t first = 0; first < a.cols; first += CHUNK) {
        int64_t n = a.cols - first < CHUNK ? a.cols - first : CHUNK;
        gpu_view pa = gpu_cpu_part(&a, 0, first, 1, n);
        gpu_view pb = gpu_cpu_part(&b, 0, first, 1, n);
        if (gpu_cpu_interrupted())
            return gpu_cpu_stop(GPU_INTERRUPTED);
        sum += blas_dot(&pa, &pb);
    }
    *out = sum;
    return GPU_OK;
}

static double bound_openblas(gpu_dtype dtype, int64_t k)
{
    return gpu_cpu_gamma(dtype, (double)k);
}

const gpu_kernel gpu_cpu_dot_openblas = {
    .operation = "dot",
    .name = "openblas",
    .idea = "the system's BLAS: sdot, ddot",
    .needs = "BLAS",
    .precision = "f32",
    .dtypes = 1 << GPU_F32 | 1 << GPU_F64,
    .bound = bound_openblas,
    .dot = dot_openblas,
};
