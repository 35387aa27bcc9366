/* matmul `openblas`: the system's BLAS on views, copying only operands whose
 * two steps are both other than 1. */
#include <limits.h>
#include <string.h>
#include "blas.h"
#include "cpu.h"

enum {
    TINY = 64,     /* m n k up to which plain loops beat a call */
    SMALLEST = 512 /* side below which a product is not cut */
};

/* Work between two looks at the interrupt flag, for each thread: about 20 ms
 * on a slow core, to which an element brought from memory is as long as so
 * many multiplications. */
static const double steps_a_thread = 5.5e8, steps_an_element = 8;

/* --- a few elements ------------------------------------------------------- */

#define TINY_PRODUCT(name, type)                                               \
    static void name(const gpu_gemm *p)                                        \
    {                                                                          \
        const type *a = p->a.data, *b = p->b.data;                             \
        type *c = p->c.data;                                                   \
        for (int64_t i = 0; i < p->c.rows; i++)                                \
            for (int64_t j = 0; j < p->c.cols; j++) {                          \
                double sum = 0;                                                \
                for (int64_t k = 0; k < p->a.cols; k++)                        \
                    sum +=                                                     \
                        (double)a[i * p->a.row_stride + k * p->a.col_stride] * \
                        (double)b[k * p->b.row_stride + j * p->b.col_stride];  \
                type *to = &c[i * p->c.row_stride + j * p->c.col_stride];      \
                sum *= p->alpha;                                               \
                *to = (type)(p->beta == 0 ? sum : sum + p->beta * *to);        \
            }                                                                  \
    }
TINY_PRODUCT(tiny_f32, float)
TINY_PRODUCT(tiny_f64, double)

static int is_tiny(const gpu_gemm *p)
{
    int64_t m = p->c.rows, n = p->c.cols, k = p->a.cols;
    return m <= TINY && n <= TINY && k <= TINY && m * n * k <= TINY;
}

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

static size_t packed_bytes(const gpu_view *v)
{
    return (size_t)(v->rows * v->cols) * gpu_cpu_size(v->dtype);
}

static gpu_status copy(const gpu_view *from, const gpu_view *to)
{
    gpu_program p = {.inputs = 1};
    p.compute = (uint8_t)from->dtype;
    return gpu_cpu_map(NULL, &p, from, to);
}

/* Sets o up for v; *room gets a copy to be freed when one was needed. */
static gpu_status pack(const gpu_view *v, int read, operand *o, void **room)
{
    *room = NULL;
    o->v = *v;
    if (find_layout(o))
        return GPU_OK;
    if (gpu_cpu_alloc(NULL, packed_bytes(v), room) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    o->v = (gpu_view){*room, v->dtype, v->rows, v->cols, v->cols, 1};
    o->transposed = CblasNoTrans;
    o->ld = v->cols;
    return read ? copy(v, &o->v) : GPU_OK;
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
    int64_t m = v->rows - i < rows ? v->rows - i : rows;
    int64_t n = v->cols - j < cols ? v->cols - j : cols;
    return gpu_cpu_part(v, i, j, m, n);
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

/* Sides of the blocks between two looks at the flag. */
static void choose_blocks(const product *p, int64_t *m, int64_t *n, int64_t *k)
{
    double budget = steps_a_thread * gpu_cpu_threads();
    *m = p->c.v.rows;
    *n = p->c.v.cols;
    *k = p->a.v.cols;
    while (steps_of((double)*m, (double)*n, (double)*k) > budget ||
           *m > INT_MAX || *n > INT_MAX || *k > INT_MAX) {
        int64_t *side = *m > *n ? m : n;
        if (*side < 2 * SMALLEST && *k >= 2 * SMALLEST)
            side = k;
        if (*side < 2 * SMALLEST)
            return;
        *side = (*side + 1) / 2;
    }
}

static gpu_status multiply(const product *p, void (*call)(const product *p))
{
    int64_t m, n, k, rows = p->c.v.rows, cols = p->c.v.cols;
    gpu_status status = GPU_OK;
    choose_blocks(p, &m, &n, &k);
    int is_one = m == rows && n == cols && k == p->a.v.cols;
    int counted = !is_one && gpu_cpu_begin_stage(rows * cols * p->a.v.cols);
    for (int64_t i = 0; i < p->c.v.rows; i += m)
        for (int64_t j = 0; j < p->c.v.cols; j += n)
            for (int64_t l = 0; l < p->a.v.cols; l += k) {
                product block = *p;
                block.a.v = cut(&p->a.v, i, l, m, k);
                block.b.v = cut(&p->b.v, l, j, k, n);
                block.c.v = cut(&p->c.v, i, j, m, n);
                block.beta = l == 0 ? p->beta : 1;
                if (status != GPU_OK || gpu_cpu_interrupted()) {
                    status = GPU_INTERRUPTED;
                    continue;
                }
                call(&block);
                if (counted)
                    gpu_cpu_advance(block.c.v.rows * block.c.v.cols *
                                    block.a.v.cols);
            }
    gpu_cpu_end_stage(counted);
    return gpu_cpu_stop(status);
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

static gpu_status matmul(void *device, const gpu_gemm *g)
{
    (void)device;
    void *rooms[3] = {0};
    product p = {.alpha = g->alpha, .beta = g->beta};
    if (is_tiny(g)) {
        (g->c.dtype == GPU_F64 ? tiny_f64 : tiny_f32)(g);
        return GPU_OK;
    }
    gpu_status status = gpu_cpu_load_blas();
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
        status = copy(&packed, &g->c);
    gpu_cpu_free(NULL, rooms[0], rooms[0] ? packed_bytes(&g->a) : 0);
    gpu_cpu_free(NULL, rooms[1], rooms[1] ? packed_bytes(&g->b) : 0);
    gpu_cpu_free(NULL, rooms[2], rooms[2] ? packed_bytes(&g->c) : 0);
    return status;
}

static double bound(gpu_dtype dtype, int64_t k)
{
    return gpu_cpu_gamma(dtype, (double)k);
}

const gpu_kernel gpu_cpu_matmul_openblas = {
    .operation = "matmul",
    .name = "openblas",
    .idea = "the system's BLAS, reading transposes and blocks where they lie",
    .needs = "BLAS",
    .precision = "f32",
    .dtypes = 1 << GPU_F32 | 1 << GPU_F64,
    .bound = bound,
    .matmul = matmul,
};
