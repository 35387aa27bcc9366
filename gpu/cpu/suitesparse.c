/* Factors of sparse matrices by SuiteSparse, loaded when somebody first asks
 * for them: UMFPACK (Davis, Algorithm 832, 2004), CHOLMOD (Chen, Davis, Hager
 * and Rajamanickam, Algorithm 887, 2008) and SPQR (Davis, Algorithm 915, 2011).
 *
 * They read compressed columns: the rows of s are the columns of its transpose,
 * which is what is factored. What they work with has the shape that the headers
 * say, so the libraries are those of the headers' versions.
 *
 * Nothing stops them while they run. */
#include "blas.h"
#include "cpu.h"

#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <suitesparse/SuiteSparseQR_C.h>
#include <suitesparse/amd.h>
#include <suitesparse/camd.h>
#include <suitesparse/ccolamd.h>
#include <suitesparse/cholmod.h>
#include <suitesparse/colamd.h>
#include <suitesparse/umfpack.h>

/* --- the libraries -------------------------------------------------------- */

enum { METIS_VERSION = 5 };

/* Address space of all of them, and of what they are linked to. */
static const size_t LIBRARIES = (size_t)128 << 20;

#define POINTER(function) __typeof__(function) *function
static struct umfpack {
    POINTER(umfpack_dl_defaults);
    POINTER(umfpack_dl_symbolic);
    POINTER(umfpack_zl_symbolic);
    POINTER(umfpack_dl_numeric);
    POINTER(umfpack_zl_numeric);
    POINTER(umfpack_dl_solve);
    POINTER(umfpack_zl_solve);
    POINTER(umfpack_dl_free_symbolic);
    POINTER(umfpack_zl_free_symbolic);
    POINTER(umfpack_dl_free_numeric);
    POINTER(umfpack_zl_free_numeric);
} umfpack;

static struct cholmod {
    POINTER(cholmod_l_start);
    POINTER(cholmod_l_finish);
    POINTER(cholmod_l_analyze);
    POINTER(cholmod_l_factorize);
    POINTER(cholmod_l_solve);
    POINTER(cholmod_l_free_factor);
    POINTER(cholmod_l_free_dense);
} cholmod;

static struct spqr {
    POINTER(SuiteSparseQR_C_factorize);
    POINTER(SuiteSparseQR_C_solve);
    POINTER(SuiteSparseQR_C_qmult);
    POINTER(SuiteSparseQR_C_free);
} spqr;

/* A function of a library and where its address goes. */
typedef struct symbol {
    const char *name;
    void *slot;
} symbol;

#define OF(library, function)          \
    {                                  \
#function, &(library).function \
    }
static const symbol umfpack_symbols[] = {OF(umfpack, umfpack_dl_defaults),
                                         OF(umfpack, umfpack_dl_symbolic),
                                         OF(umfpack, umfpack_zl_symbolic),
                                         OF(umfpack, umfpack_dl_numeric),
                                         OF(umfpack, umfpack_zl_numeric),
                                         OF(umfpack, umfpack_dl_solve),
                                         OF(umfpack, umfpack_zl_solve),
                                         OF(umfpack, umfpack_dl_free_symbolic),
                                         OF(umfpack, umfpack_zl_free_symbolic),
                                         OF(umfpack, umfpack_dl_free_numeric),
                                         OF(umfpack, umfpack_zl_free_numeric),
                                         {NULL, NULL}};
static const symbol cholmod_symbols[] = {
    OF(cholmod, cholmod_l_start),      OF(cholmod, cholmod_l_finish),
    OF(cholmod, cholmod_l_analyze),    OF(cholmod, cholmod_l_factorize),
    OF(cholmod, cholmod_l_solve),      OF(cholmod, cholmod_l_free_factor),
    OF(cholmod, cholmod_l_free_dense), {NULL, NULL}};
static const symbol spqr_symbols[] = {OF(spqr, SuiteSparseQR_C_factorize),
                                      OF(spqr, SuiteSparseQR_C_solve),
                                      OF(spqr, SuiteSparseQR_C_qmult),
                                      OF(spqr, SuiteSparseQR_C_free),
                                      {NULL, NULL}};

static struct library {
    const char *name;
    int version;
    const symbol *symbols;
    int is_loaded;
} umfpack_library = {"umfpack", UMFPACK_MAIN_VERSION, umfpack_symbols, 0},
  cholmod_library = {"cholmod", CHOLMOD_MAIN_VERSION, cholmod_symbols, 0},
  spqr_library = {"spqr", SPQR_MAIN_VERSION, spqr_symbols, 0};

static const char without[] = "full(S), or gmres(S, b), does without";

static gpu_status find_symbols(const struct library *l, void *file)
{
    for (const symbol *s = l->symbols; s->name; s++) {
        void *found = dlsym(file, s->name);
        if (!found)
            return gpu_cpu_host->fail(GPU_UNSUPPORTED,
                                      "solve: lib%s.so.%d lacks %s; %s",
                                      l->name, l->version, s->name, without);
        *(void **)s->slot = found;
    }
    return GPU_OK;
}

/* What they need of each other, which the loader does not look for beside the
 * program: found by its name once it is loaded. Where it is missing the library
 * that needs it says so. */
static void load_parts(void)
{
    static const struct {
        const char *name;
        int version;
    } parts[] = {{"suitesparseconfig", SUITESPARSE_MAIN_VERSION},
                 {"amd", AMD_MAIN_VERSION},
                 {"camd", CAMD_MAIN_VERSION},
                 {"colamd", COLAMD_MAIN_VERSION},
                 {"ccolamd", CCOLAMD_MAIN_VERSION},
                 {"metis", METIS_VERSION}};
    char name[48];
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(name, sizeof name, "lib%s.so.%d", parts[i].name,
                 parts[i].version);
        dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    snprintf(name, sizeof name, "libcholmod.so.%d", CHOLMOD_MAIN_VERSION);
    dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static gpu_status refuse_load(const struct library *l, const char *why)
{
    if (strstr(why, "No such file"))
        return gpu_cpu_host->fail(GPU_UNSUPPORTED,
                                  "solve: there is no SuiteSparse here: "
                                  "install lib%s%d (%s); %s",
                                  l->name, l->version, why, without);
    return gpu_cpu_host->fail(GPU_UNSUPPORTED,
                              "solve: lib%s.so.%d cannot be used: %s; %s",
                              l->name, l->version, why, without);
}

/* The BLAS below them is loaded first, as lumat has it. */
static gpu_status load(struct library *l)
{
    char name[48];
    if (l->is_loaded)
        return GPU_OK;
    gpu_status status = gpu_cpu_load_blas("solve", without);
    if (status != GPU_OK)
        return status;
    if (!gpu_cpu_has_room(LIBRARIES))
        return gpu_cpu_host->fail(
            GPU_MEMORY, "solve: out of memory to load SuiteSparse with; %s",
            without);
    snprintf(name, sizeof name, "lib%s.so.%d", l->name, l->version);
    load_parts();
    void *file = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!file)
        return refuse_load(l, dlerror());
    status = find_symbols(l, file);
    l->is_loaded = status == GPU_OK;
    if (status != GPU_OK)
        dlclose(file);
    return status;
}

/* --- factors -------------------------------------------------------------- */

/* What is kept of a matrix; of the libraries' own, what one of them made. */
typedef struct factors {
    gpu_sparse_factoring how;
    int is_complex;
    int64_t *starts, *columns; /* as they read them: 64 bits */
    void *numeric;             /* UMFPACK's */
    cholmod_common common;     /* CHOLMOD's and SPQR's, started */
    int has_common;
    cholmod_factor *triangle;
    SuiteSparseQR_C_factorization *orthogonal;
    gpu_cpu_band *band;
} factors;

void gpu_cpu_sparse_forget(void *device, void *made)
{
    factors *f = made;
    (void)device;
    if (!f)
        return;
    if (f->numeric && f->is_complex)
        umfpack.umfpack_zl_free_numeric(&f->numeric);
    else if (f->numeric)
        umfpack.umfpack_dl_free_numeric(&f->numeric);
    if (f->triangle)
        cholmod.cholmod_l_free_factor(&f->triangle, &f->common);
    if (f->orthogonal)
        spqr.SuiteSparseQR_C_free(&f->orthogonal, &f->common);
    if (f->has_common)
        cholmod.cholmod_l_finish(&f->common);
    gpu_cpu_band_free(f->band);
    free(f->starts);
    free(f->columns);
    free(f);
}

static int64_t *widen(const int32_t *from, int64_t n)
{
    int64_t *to = malloc(((size_t)n + 1) * sizeof *to);
    for (int64_t i = 0; to && i < n; i++)
        to[i] = from[i];
    return to;
}

/* The first entry that is not finite, or -1. */
static int64_t find_odd(const gpu_csr *s)
{
    const double *values = s->values;
    int parts = s->dtype == GPU_C128 ? 2 : 1;
    for (int64_t i = 0; i < s->count * parts; i++)
        if (!isfinite(values[i]))
            return i / parts;
    return -1;
}

static gpu_status refuse_odd(const gpu_csr *s, int64_t entry)
{
    int64_t row = 0;
    while (s->starts[row + 1] <= entry)
        row++;
    return gpu_cpu_host->fail(GPU_ARGUMENT,
                              "solve: the entry in row %lld, column %lld is "
                              "not finite; a factorisation needs finite "
                              "numbers",
                              (long long)row + 1,
                              (long long)s->columns[entry] + 1);
}

/* Factors have entries where the matrix has none, often many times as many. */
static gpu_status refuse_memory(const gpu_csr *s)
{
    const char *instead =
        s->rows != s->cols
            ? "lsqr(S, b) does"
            : "gmres(S, b), or cg(S, b) where S is positive definite, does";
    return gpu_cpu_host->fail(GPU_MEMORY,
                              "solve: out of memory for factors of %lldx%lld "
                              "with %lld entries, which fill in; %s without",
                              (long long)s->rows, (long long)s->cols,
                              (long long)s->count, instead);
}

/* --- UMFPACK -------------------------------------------------------------- */

static gpu_status check_umfpack(const gpu_csr *s, int64_t status)
{
    if (status >= 0)
        return GPU_OK;
    if (status == UMFPACK_ERROR_out_of_memory)
        return refuse_memory(s);
    return gpu_cpu_host->fail(GPU_UNSUPPORTED, "solve: UMFPACK says %lld",
                              (long long)status);
}

static gpu_status factor_lu(factors *f, const gpu_csr *s,
                            gpu_sparse_report *told)
{
    double control[UMFPACK_CONTROL], info[UMFPACK_INFO];
    void *symbolic = NULL;
    int64_t n = s->rows, done;
    gpu_status status = load(&umfpack_library);
    if (status != GPU_OK)
        return status;
    umfpack.umfpack_dl_defaults(control);
    done =
        f->is_complex
            ? umfpack.umfpack_zl_symbolic(n, n, f->starts, f->columns,
                                          s->values, NULL, &symbolic, control,
                                          info)
            : umfpack.umfpack_dl_symbolic(n, n, f->starts, f->columns,
                                          s->values, &symbolic, control, info);
    if (done < 0)
        return check_umfpack(s, done);
    if (gpu_cpu_interrupted())
        done = 0;
    else if (f->is_complex)
        done =
            umfpack.umfpack_zl_numeric(f->starts, f->columns, s->values, NULL,
                                       symbolic, &f->numeric, control, info);
    else
        done = umfpack.umfpack_dl_numeric(f->starts, f->columns, s->values,
                                          symbolic, &f->numeric, control, info);
    if (f->is_complex)
        umfpack.umfpack_zl_free_symbolic(&symbolic);
    else
        umfpack.umfpack_dl_free_symbolic(&symbolic);
    if (done < 0)
        return check_umfpack(s, done);
    if (!f->numeric)
        return gpu_cpu_stop(GPU_INTERRUPTED);
    told->trouble = done == UMFPACK_WARNING_singular_matrix
                        ? n - (int64_t)info[UMFPACK_UDIAG_NZ]
                        : 0;
    told->count = (int64_t)(info[UMFPACK_LNZ] + info[UMFPACK_UNZ]) - n;
    return GPU_OK;
}

static gpu_status solve_lu(factors *f, const gpu_csr *s, int turned,
                           const double *b, double *x)
{
    double control[UMFPACK_CONTROL], info[UMFPACK_INFO];
    int system = turned ? UMFPACK_A : UMFPACK_Aat;
    umfpack.umfpack_dl_defaults(control);
    return check_umfpack(
        s, f->is_complex ? umfpack.umfpack_zl_solve(
                               system, f->starts, f->columns, s->values, NULL,
                               x, NULL, b, NULL, f->numeric, control, info)
                         : umfpack.umfpack_dl_solve(system, f->starts,
                                                    f->columns, s->values, x, b,
                                                    f->numeric, control, info));
}

/* --- CHOLMOD -------------------------------------------------------------- */

static gpu_status check_cholmod(const factors *f, const gpu_csr *s,
                                const char *library)
{
    int status = f->common.status;
    if (status >= 0)
        return GPU_OK;
    if (status == CHOLMOD_OUT_OF_MEMORY)
        return refuse_memory(s);
    return gpu_cpu_host->fail(GPU_UNSUPPORTED, "solve: %s says %d", library,
                              status);
}

/* It says nothing by itself, and makes L L^H, which shows what is not positive
 * definite. */
static gpu_status start_cholmod(factors *f)
{
    gpu_status status = load(&cholmod_library);
    if (status != GPU_OK)
        return status;
    if (!cholmod.cholmod_l_start(&f->common))
        return gpu_cpu_stop(GPU_MEMORY);
    f->has_common = 1;
    f->common.print = 0;
    f->common.final_ll = 1;
    f->common.quick_return_if_not_posdef = 1;
    return GPU_OK;
}

/* The transpose of s, as CHOLMOD has matrices. */
static cholmod_sparse as_columns(const factors *f, const gpu_csr *s,
                                 int is_symmetric)
{
    return (cholmod_sparse){
        .nrow = (size_t)s->cols,
        .ncol = (size_t)s->rows,
        .nzmax = (size_t)s->count,
        .p = f->starts,
        .i = f->columns,
        .x = (void *)(uintptr_t)s->values, /* which is read alone */
        .stype = is_symmetric,
        .itype = CHOLMOD_LONG,
        .xtype = f->is_complex ? CHOLMOD_COMPLEX : CHOLMOD_REAL,
        .dtype = CHOLMOD_DOUBLE,
        .sorted = 1,
        .packed = 1};
}

static cholmod_dense as_dense(const factors *f, int64_t rows, int64_t cols,
                              const void *values)
{
    return (cholmod_dense){.nrow = (size_t)rows,
                           .ncol = (size_t)cols,
                           .nzmax = (size_t)(rows * cols),
                           .d = (size_t)rows,
                           .x = (void *)(uintptr_t)values,
                           .xtype =
                               f->is_complex ? CHOLMOD_COMPLEX : CHOLMOD_REAL,
                           .dtype = CHOLMOD_DOUBLE};
}

static gpu_status factor_chol(factors *f, const gpu_csr *s,
                              gpu_sparse_report *told)
{
    gpu_status status = start_cholmod(f);
    if (status != GPU_OK)
        return status;
    cholmod_sparse columns = as_columns(f, s, 1);
    f->triangle = cholmod.cholmod_l_analyze(&columns, &f->common);
    if (!f->triangle)
        return check_cholmod(f, s, "CHOLMOD");
    if (gpu_cpu_interrupted())
        return gpu_cpu_stop(GPU_INTERRUPTED);
    cholmod.cholmod_l_factorize(&columns, f->triangle, &f->common);
    status = check_cholmod(f, s, "CHOLMOD");
    if (status != GPU_OK)
        return status;
    if (f->triangle->minor < f->triangle->n)
        told->trouble = (int64_t)f->triangle->minor + 1;
    told->count = (int64_t)f->common.lnz;
    return GPU_OK;
}

/* --- SPQR ----------------------------------------------------------------- */

/* Columns shorter than that count as dependent: as SPQR has it, of the unit
 * that the numbers had. */
static double tolerance_of(const gpu_csr *s, int is_single)
{
    const double *values = s->values;
    int64_t parts = s->dtype == GPU_C128 ? 2 : 1;
    double longest = 0;
    if (!is_single)
        return SPQR_DEFAULT_TOL;
    for (int64_t i = 0; i < s->rows; i++) {
        double sum = 0;
        for (int64_t k = parts * s->starts[i]; k < parts * s->starts[i + 1];
             k++)
            sum += values[k] * values[k];
        longest = sum > longest ? sum : longest;
    }
    return 20 * (double)(s->rows + s->cols) * FLT_EPSILON * sqrt(longest);
}

static gpu_status factor_qr(factors *f, const gpu_csr *s,
                            gpu_sparse_report *told)
{
    enum { RANK = 4 }; /* where SPQR leaves it */
    gpu_status status = load(&spqr_library);
    if (status == GPU_OK)
        status = start_cholmod(f);
    if (status != GPU_OK)
        return status;
    cholmod_sparse columns = as_columns(f, s, 0);
    f->orthogonal = spqr.SuiteSparseQR_C_factorize(
        SPQR_ORDERING_DEFAULT, tolerance_of(s, told->is_single), &columns,
        &f->common);
    if (!f->orthogonal)
        return check_cholmod(f, s, "SPQR");
    told->rank = (int64_t)f->common.SPQR_istat[RANK];
    told->count = (int64_t)(f->common.SPQR_istat[0] + f->common.SPQR_istat[1]);
    return GPU_OK;
}

/* Of M = Q R E^T: x = E R^-1 Q^H b, or turned Q R^-H E^T b. NULL: there is no
 * memory. */
static cholmod_dense *solve_qr(factors *f, int turned, cholmod_dense *b)
{
    cholmod_dense *y =
        turned ? spqr.SuiteSparseQR_C_solve(SPQR_RTX_EQUALS_ETB, f->orthogonal,
                                            b, &f->common)
               : spqr.SuiteSparseQR_C_qmult(SPQR_QTX, f->orthogonal, b,
                                            &f->common);
    if (!y)
        return NULL;
    cholmod_dense *x =
        turned
            ? spqr.SuiteSparseQR_C_qmult(SPQR_QX, f->orthogonal, y, &f->common)
            : spqr.SuiteSparseQR_C_solve(SPQR_RETX_EQUALS_B, f->orthogonal, y,
                                         &f->common);
    cholmod.cholmod_l_free_dense(&y, &f->common);
    return x;
}

/* --- the entries ---------------------------------------------------------- */

static gpu_status factor_by(factors *f, const gpu_csr *s,
                            gpu_sparse_report *told)
{
    if (f->how == GPU_SPARSE_BANDED || f->how == GPU_SPARSE_BANDED_CHOL)
        return gpu_cpu_band_factor(s, f->how == GPU_SPARSE_BANDED_CHOL, told,
                                   &f->band);
    f->starts = widen(s->starts, s->rows + 1);
    f->columns = widen(s->columns, s->count);
    if (!f->starts || !f->columns)
        return refuse_memory(s);
    switch (f->how) {
    case GPU_SPARSE_LU:
        return factor_lu(f, s, told);
    case GPU_SPARSE_CHOL:
        return factor_chol(f, s, told);
    default:
        return factor_qr(f, s, told);
    }
}

gpu_status gpu_cpu_sparse_factor(void *device, gpu_sparse_factoring how,
                                 const gpu_csr *s, gpu_sparse_report *told,
                                 void **out)
{
    int64_t odd = find_odd(s);
    *out = NULL;
    if (odd >= 0)
        return refuse_odd(s, odd);
    factors *f = calloc(1, sizeof *f);
    if (!f)
        return gpu_cpu_stop(GPU_MEMORY);
    f->how = how;
    f->is_complex = s->dtype == GPU_C128;
    gpu_status status = factor_by(f, s, told);
    if (status == GPU_OK)
        *out = f;
    else
        gpu_cpu_sparse_forget(device, f);
    return status;
}

/* By CHOLMOD or SPQR, all right sides at once. */
static gpu_status solve_all(factors *f, const gpu_csr *s, int turned,
                            const void *b, void *x, int64_t count)
{
    int is_least = f->how == GPU_SPARSE_QR && !turned;
    int64_t rows = is_least ? s->cols : s->rows;
    cholmod_dense right = as_dense(f, rows, count, b);
    cholmod_dense *found = f->how == GPU_SPARSE_QR
                               ? solve_qr(f, turned, &right)
                               : cholmod.cholmod_l_solve(CHOLMOD_A, f->triangle,
                                                         &right, &f->common);
    if (!found) {
        gpu_status status = check_cholmod(f, s, "SuiteSparse");
        return status == GPU_OK ? GPU_MEMORY : status;
    }
    size_t line = found->nrow * gpu_cpu_size(s->dtype);
    for (size_t i = 0; i < found->ncol; i++)
        memcpy((char *)x + i * line,
               (char *)found->x + i * found->d * gpu_cpu_size(s->dtype), line);
    cholmod.cholmod_l_free_dense(&found, &f->common);
    return GPU_OK;
}

/* By UMFPACK, which takes one at a time. */
static gpu_status solve_each(factors *f, const gpu_csr *s, int turned,
                             const double *b, double *x, int64_t count)
{
    int64_t line = s->rows * (f->is_complex ? 2 : 1);
    gpu_status status = GPU_OK;
    for (int64_t i = 0; i < count && status == GPU_OK; i++) {
        status = solve_lu(f, s, turned, b + i * line, x + i * line);
        if (status == GPU_OK && gpu_cpu_interrupted())
            status = gpu_cpu_stop(GPU_INTERRUPTED);
    }
    return status;
}

/* The factors are there. */
static gpu_status refuse_solving(const gpu_csr *s, int64_t count)
{
    return gpu_cpu_host->fail(
        GPU_MEMORY, "solve: out of memory for %lld right side%s of %lld%s",
        (long long)count, count == 1 ? "" : "s", (long long)s->rows,
        count == 1 ? "" : "; fewer at a time take less");
}

gpu_status gpu_cpu_sparse_solve(void *device, void *made, const gpu_csr *s,
                                int turned, const void *b, void *x,
                                int64_t count)
{
    factors *f = made;
    gpu_status status;
    (void)device;
    if (f->band) {
        memcpy(x, b, (size_t)(s->rows * count) * gpu_cpu_size(s->dtype));
        return gpu_cpu_band_solve(f->band, turned, x, count);
    }
    status = f->how == GPU_SPARSE_LU ? solve_each(f, s, turned, b, x, count)
                                     : solve_all(f, s, turned, b, x, count);
    return status == GPU_MEMORY ? refuse_solving(s, count) : status;
}
