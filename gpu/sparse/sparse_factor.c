/* Sparse systems: factors, which SuiteSparse makes on the CPU, and triangles,
 * which need none. */
#include "complex_numbers.h"
#include "sparse.h"

#include <complex.h>
#include <stdlib.h>

/* The matrix, which the factors' solutions are refined with, on the CPU. */
struct gpu_sparse_factors {
    gpu_sparse here;
    gpu_sparse_factoring how;
    void *made;   /* the backend's; NULL in a dry run */
    size_t bytes; /* about what that takes */
};

static size_t all_bytes; /* of all factors that there are */

void gpu_sparse_factors_free(gpu_sparse_factors *f)
{
    if (!f)
        return;
    if (f->made)
        gpu_cpu()->backend->sparse_forget(gpu_cpu()->handle, f->made);
    all_bytes -= f->bytes;
    gpu_sparse_release(&f->here);
    free(f);
}

size_t gpu_sparse_factors_bytes(const gpu_sparse_factors *f)
{
    return f->bytes + gpu_sparse_bytes(&f->here);
}

size_t gpu_sparse_all_factors_bytes(void)
{
    return all_bytes;
}

/* Each entry a number and its place, and what orders them. */
static void count_bytes(gpu_sparse_factors *f, const gpu_sparse_report *told)
{
    size_t each = gpu_dtype_size(f->here.values.dtype) + sizeof(int64_t);
    f->bytes = (size_t)told->count * each + gpu_sparse_bytes(&f->here);
    all_bytes += f->bytes;
}

static gpu_status factor_here(gpu_sparse_factors *f, gpu_sparse_report *told)
{
    /* in the order of gpu_sparse_factoring */
    static const char *const makers[] = {"umfpack", "cholmod", "spqr", "gbtrf",
                                         "pbtrf"};
    gpu_device *cpu = gpu_cpu();
    gpu_status status = gpu_settle(&f->here.values);
    if (gpu_dry || status != GPU_OK)
        return status;
    gpu_csr rows = gpu_csr_of(&f->here);
    gpu_matrix shape = {.dtype = f->here.values.dtype,
                        .ndim = 2,
                        .rows = f->here.rows,
                        .cols = f->here.cols};
    gpu_operation o = {.name = "factor",
                       .kernel = makers[f->how],
                       .device = cpu,
                       .result = &shape,
                       .extent = &f->here.values,
                       .bytes = (double)gpu_sparse_bytes(&f->here)};
    gpu_begin_operation(&o);
    return gpu_end_operation(&o, cpu->backend->sparse_factor(cpu->handle,
                                                             f->how, &rows,
                                                             told, &f->made));
}

gpu_status gpu_sparse_factor(const gpu_sparse *s, gpu_sparse_factoring how,
                             gpu_sparse_report *told, gpu_sparse_factors **out)
{
    gpu_device *d;
    *out = NULL;
    *told = (gpu_sparse_report){
        .rank = s->rows < s->cols ? s->rows : s->cols,
        .is_single = gpu_dtype_of_parts(s->values.dtype) == GPU_F32};
    TRY(gpu_sparse_check("factor", s, &d));
    gpu_sparse_factors *f = calloc(1, sizeof *f);
    if (!f)
        return gpu_fail(GPU_MEMORY, "factor: out of memory");
    f->how = how;
    if (!d->is_cpu)
        gpu_note_fallback();
    gpu_status status =
        gpu_sparse_clone(s, gpu_is_complex(&s->values) ? GPU_C128 : GPU_F64,
                         gpu_cpu(), &f->here);
    if (status == GPU_OK)
        status = factor_here(f, told);
    if (status != GPU_OK) {
        gpu_sparse_factors_free(f);
        return status;
    }
    if (f->made)
        count_bytes(f, told);
    *out = f;
    return GPU_OK;
}

/* m's rows without gaps on the CPU. */
static gpu_status bring_lines(const gpu_matrix *m, gpu_dtype type,
                              gpu_matrix *here)
{
    TRY(gpu_clone(m, type, gpu_cpu(), here));
    gpu_status status = gpu_settle(here);
    if (status != GPU_OK)
        gpu_release(here);
    return status;
}

gpu_status gpu_sparse_solve(gpu_sparse_factors *f, int turned,
                            const gpu_matrix *b, gpu_matrix *x)
{
    gpu_matrix right;
    gpu_device *cpu = gpu_cpu();
    gpu_dtype type = f->here.values.dtype;
    int is_least = f->how == GPU_SPARSE_QR && !turned;
    int is_shortest = f->how == GPU_SPARSE_QR && turned;
    int64_t n = is_least ? f->here.cols : f->here.rows;
    int64_t width = is_shortest ? f->here.cols : f->here.rows;
    x->storage = NULL;
    if (b->cols != n)
        return gpu_fail(GPU_SHAPE, "solve: right sides are %s, the matrix %s",
                        gpu_size_text(b->cols, b->rows),
                        gpu_size_text(f->here.rows, f->here.cols));
    TRY(bring_lines(b, type, &right));
    gpu_status status = gpu_create(x, cpu, type, 2, b->rows, width);
    if (status == GPU_OK && f->made && b->rows > 0) {
        gpu_csr rows = gpu_csr_of(&f->here);
        gpu_operation o = {.name = "solve",
                           .kernel = "factors",
                           .device = cpu,
                           .result = x,
                           .extent = &f->here.values};
        gpu_begin_operation(&o);
        status = gpu_end_operation(
            &o, cpu->backend->sparse_solve(cpu->handle, f->made, &rows, turned,
                                           gpu_view_of(&right).data,
                                           gpu_target_of(x).data, b->rows));
        if (status != GPU_OK)
            gpu_release(x);
    }
    gpu_release(&right);
    return status;
}

/* --- what needs no factors ------------------------------------------------ */

gpu_status gpu_sparse_bands(const gpu_sparse *s, gpu_structure *out)
{
    gpu_device *d;
    gpu_sparse here;
    *out = (gpu_structure){0};
    TRY(gpu_sparse_check("solve", s, &d));
    TRY(gpu_sparse_clone(s, s->values.dtype, gpu_cpu(), &here));
    gpu_csr c = gpu_csr_of(&here);
    for (int64_t i = 0; i < c.rows; i++) {
        int32_t first = c.starts[i], last = c.starts[i + 1] - 1;
        if (first > last)
            continue;
        if (i - c.columns[first] > out->below)
            out->below = i - c.columns[first];
        if (c.columns[last] - i > out->above)
            out->above = c.columns[last] - i;
    }
    gpu_sparse_release(&here);
    return GPU_OK;
}

/* Of a triangle on the CPU: lines of right sides become those of solutions. A
 * row is read once for each line. */
typedef struct triangle {
    gpu_csr rows;
    int is_lower, is_turned;
    int64_t zero; /* where the first zero on the diagonal is, or 0 */
} triangle;

/* Its entry on the diagonal, or -1. The diagonal ends a row of a lower one, and
 * begins one of an upper one, but where entries of the other half stand. */
static int64_t find_diagonal(const gpu_csr *c, int64_t i)
{
    int64_t low = c->starts[i], high = c->starts[i + 1];
    if (low < high && c->columns[low] == i)
        return low;
    if (low < high && c->columns[high - 1] == i)
        return high - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (c->columns[middle] < i)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->starts[i + 1] && c->columns[low] == i ? low : -1;
}

#define SUBSTITUTE(name, type, conjugated)                                  \
    static int64_t substitute_##name(const triangle *t, type *x)            \
    {                                                                       \
        const gpu_csr *c = &t->rows;                                        \
        const type *values = c->values;                                     \
        int rises = t->is_lower != t->is_turned;                            \
        for (int64_t step = 0; step < c->rows; step++) {                    \
            int64_t i = rises ? step : c->rows - 1 - step;                  \
            int64_t at = find_diagonal(c, i);                               \
            int64_t first = t->is_lower ? c->starts[i] : at + 1;            \
            int64_t last = t->is_lower ? at : c->starts[i + 1];             \
            if (at < 0 || values[at] == 0)                                  \
                return i + 1;                                               \
            type sum = x[i];                                                \
            if (!t->is_turned)                                              \
                for (int64_t k = first; k < last; k++)                      \
                    sum -= values[k] * x[c->columns[k]];                    \
            x[i] = sum =                                                    \
                sum / (t->is_turned ? conjugated(values[at]) : values[at]); \
            if (t->is_turned)                                               \
                for (int64_t k = first; k < last; k++)                      \
                    x[c->columns[k]] -= conjugated(values[k]) * sum;        \
        }                                                                   \
        return 0;                                                           \
    }
#define ITSELF(x) (x)
SUBSTITUTE(real, double, ITSELF)
SUBSTITUTE(complex, double _Complex, conj)

static gpu_status substitute(triangle *t, gpu_matrix *x)
{
    char *line = gpu_target_of(x).data;
    size_t bytes = (size_t)x->cols * gpu_dtype_size(x->dtype);
    for (int64_t i = 0; i < x->rows && t->zero == 0; i++) {
        void *at = line + (size_t)i * bytes;
        t->zero = gpu_is_complex(x) ? substitute_complex(t, at)
                                    : substitute_real(t, at);
        TRY(gpu_poll());
    }
    return GPU_OK;
}

gpu_status gpu_sparse_solve_triangle(const gpu_sparse *s, int is_lower,
                                     int is_turned, const gpu_matrix *b,
                                     gpu_matrix *x, int64_t *zero)
{
    gpu_device *d;
    gpu_sparse here;
    gpu_dtype type = gpu_is_complex(&s->values) ? GPU_C128 : GPU_F64;
    x->storage = NULL;
    *zero = 0;
    TRY(gpu_sparse_check("solve", s, &d));
    if (s->rows != s->cols || b->cols != s->rows)
        return gpu_fail(GPU_SHAPE, "solve: right sides are %s, the matrix %s",
                        gpu_size_text(b->cols, b->rows),
                        gpu_size_text(s->rows, s->cols));
    if (!d->is_cpu)
        gpu_note_fallback();
    TRY(gpu_sparse_clone(s, type, gpu_cpu(), &here));
    gpu_status status = gpu_settle(&here.values);
    if (status == GPU_OK)
        status = bring_lines(b, type, x);
    if (status == GPU_OK && !gpu_dry) {
        triangle t = {gpu_csr_of(&here), is_lower, is_turned, 0};
        status = substitute(&t, x);
        *zero = t.zero;
    }
    if (status != GPU_OK || *zero > 0)
        gpu_release(x);
    gpu_sparse_release(&here);
    return status;
}
