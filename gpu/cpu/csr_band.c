/* Factors of a sparse matrix whose entries lie near its diagonal, by LAPACK:
 * P L U, and of a positive definite one L L^H, within the band. Source:
 * Anderson et al., LAPACK Users' Guide, 3rd edition, 1999. As of SuiteSparse's,
 * what is factored is the transpose M of the matrix, whose columns are its
 * rows. */
#include <stdlib.h>
#include <string.h>
#include "blas.h"

typedef const int *number;

/* gbtrf and so on, of doubles or complex doubles. */
typedef struct routines {
    void (*factor)(number m, number n, number below, number above, void *band,
                   number lines, int *pivots, int *info);
    void (*solve)(const char *trans, number n, number below, number above,
                  number nrhs, const void *band, number lines,
                  const int *pivots, void *b, number ldb, int *info, size_t);
    void (*factor_positive)(const char *half, number n, number below,
                            void *band, number lines, int *info, size_t);
    void (*solve_positive)(const char *half, number n, number below,
                           number nrhs, const void *band, number lines, void *b,
                           number ldb, int *info, size_t);
} routines;

struct gpu_cpu_band {
    int is_complex, is_positive;
    int n, below, above; /* of M */
    int lines;           /* of a column of the band: for P L U `below` more */
    char *band;
    int *pivots;
};

static gpu_status find_routines(int is_complex, const routines **out)
{
    static routines known[2];
    static const char *const names[2][4] = {
        {"dgbtrf_", "dgbtrs_", "dpbtrf_", "dpbtrs_"},
        {"zgbtrf_", "zgbtrs_", "zpbtrf_", "zpbtrs_"}};
    static const char without[] = "full(S), or gmres(S, b), does without";
    routines *r = &known[is_complex];
    void **slot = (void *)r;
    gpu_status status = gpu_cpu_load_blas("solve", without);
    *out = r;
    for (int k = 0; k < 4 && status == GPU_OK; k++) {
        slot[k] = slot[k] ? slot[k] : gpu_cpu_find_lapack(names[is_complex][k]);
        if (!slot[k])
            status = gpu_cpu_host->fail(GPU_UNSUPPORTED,
                                        "solve: there is no LAPACK here: "
                                        "install libopenblas0-pthread or "
                                        "liblapack3; %s",
                                        without);
    }
    return status;
}

void gpu_cpu_band_free(gpu_cpu_band *f)
{
    if (!f)
        return;
    free(f->band);
    free(f->pivots);
    free(f);
}

/* How far entries of s lie from the diagonal; of M the other way round. */
static void find_width(const gpu_csr *s, gpu_cpu_band *f)
{
    for (int64_t i = 0; i < s->rows; i++) {
        int64_t first = s->starts[i], last = s->starts[i + 1] - 1;
        if (first > last)
            continue;
        if (i - s->columns[first] > f->above)
            f->above = (int)(i - s->columns[first]);
        if (s->columns[last] - i > f->below)
            f->below = (int)(s->columns[last] - i);
    }
}

/* M's element (i, j) lies in line `diagonal` + i - j of column j; of a positive
 * one its lower half alone. */
static void spread(const gpu_csr *s, const gpu_cpu_band *f, int diagonal)
{
    size_t size = gpu_cpu_size(s->dtype);
    const char *values = s->values;
    for (int64_t j = 0; j < s->rows; j++)
        for (int64_t e = s->starts[j]; e < s->starts[j + 1]; e++) {
            int64_t line = diagonal + s->columns[e] - j;
            if (line >= diagonal || !f->is_positive)
                memcpy(f->band + (size_t)(j * f->lines + line) * size,
                       values + (size_t)e * size, size);
        }
}

/* Of U, whose diagonal is the line that M's was spread to. */
static int64_t count_zeros(const gpu_cpu_band *f)
{
    int64_t zeros = 0, parts = f->is_complex ? 2 : 1;
    for (int64_t j = 0; j < f->n; j++) {
        const double *pivot = (const double *)(const void *)f->band +
                              parts * (j * f->lines + f->below + f->above);
        zeros += pivot[0] == 0 && pivot[parts - 1] == 0;
    }
    return zeros;
}

static gpu_status factor(const routines *r, const gpu_csr *s, gpu_cpu_band *f,
                         gpu_sparse_report *told)
{
    int info = 0;
    size_t size = gpu_cpu_size(s->dtype);
    f->band = calloc((size_t)f->n * (size_t)f->lines + 1, size);
    f->pivots = malloc(((size_t)f->n + 1) * sizeof *f->pivots);
    if (!f->band || !f->pivots)
        return gpu_cpu_stop(GPU_MEMORY);
    spread(s, f, f->is_positive ? 0 : f->below + f->above);
    if (gpu_cpu_interrupted())
        return gpu_cpu_stop(GPU_INTERRUPTED);
    if (f->is_positive)
        r->factor_positive("L", &f->n, &f->below, f->band, &f->lines, &info, 1);
    else
        r->factor(&f->n, &f->n, &f->below, &f->above, f->band, &f->lines,
                  f->pivots, &info);
    if (info > 0)
        told->trouble = f->is_positive ? info : count_zeros(f);
    told->count = (int64_t)f->n * f->lines;
    return GPU_OK;
}

gpu_status gpu_cpu_band_factor(const gpu_csr *s, int is_positive,
                               gpu_sparse_report *told, gpu_cpu_band **out)
{
    const routines *r;
    int is_complex = s->dtype == GPU_C128;
    gpu_status status = find_routines(is_complex, &r);
    *out = NULL;
    if (status != GPU_OK)
        return status;
    gpu_cpu_band *f = calloc(1, sizeof *f);
    if (!f)
        return gpu_cpu_stop(GPU_MEMORY);
    f->n = (int)s->rows;
    f->is_complex = is_complex;
    f->is_positive = is_positive;
    find_width(s, f);
    int64_t lines = is_positive ? (int64_t)f->below + 1
                                : 2 * (int64_t)f->below + f->above + 1;
    f->lines = (int)lines;
    status =
        lines > INT32_MAX ? gpu_cpu_stop(GPU_MEMORY) : factor(r, s, f, told);
    if (status == GPU_OK)
        *out = f;
    else
        gpu_cpu_band_free(f);
    return status;
}

gpu_status gpu_cpu_band_solve(const gpu_cpu_band *f, int turned, void *x,
                              int64_t count)
{
    const routines *r;
    enum { AT_ONCE = 1 << 20 };
    size_t line = (size_t)f->n * (f->is_complex ? 2 : 1) * sizeof(double);
    gpu_status status = find_routines(f->is_complex, &r);
    for (int64_t i = 0; i < count && status == GPU_OK; i += AT_ONCE) {
        int info, right = (int)gpu_cpu_smaller(count - i, AT_ONCE);
        char *b = (char *)x + (size_t)i * line;
        if (f->is_positive)
            r->solve_positive("L", &f->n, &f->below, &right, f->band, &f->lines,
                              b, &f->n, &info, 1);
        else
            r->solve(turned ? "N" : "T", &f->n, &f->below, &f->above, &right,
                     f->band, &f->lines, f->pivots, b, &f->n, &info, 1);
        if (gpu_cpu_interrupted())
            status = gpu_cpu_stop(GPU_INTERRUPTED);
    }
    return status;
}
