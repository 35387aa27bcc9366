/* Factorisations by LAPACK (Anderson et al., LAPACK Users' Guide, 3rd edition,
 * 1999), whose names the routines have here. It computes on one thread, which
 * nothing can stop: so where it lasts it runs apart, on copies, and is left
 * alone when the user stops it. */
#include "blas.h"
#include "complex_numbers.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- the routines ---------------------------------------------------------
 * Each by the type of its elements; of words Fortran takes the length last.
 * Those that, of complex elements, work in real numbers as well take other
 * arguments there: these stand for themselves, with a z before the name. */

typedef const char *word;
typedef const int *number;

static struct {
    void (*potrf[GPU_ALL_DTYPES])(word lower, number n, void *a, number lda,
                                  int *info, size_t);
    void (*getrf[GPU_ALL_DTYPES])(number m, number n, void *a, number lda,
                                  int *pivots, int *info);
    void (*geqrf[GPU_ALL_DTYPES])(number m, number n, void *a, number lda,
                                  void *tau, void *work, number lwork,
                                  int *info);
    void (*geqp3[GPU_ALL_DTYPES])(number m, number n, void *a, number lda,
                                  int *places, void *tau, void *work,
                                  number lwork, int *info);
    void (*orgqr[GPU_ALL_DTYPES])(number m, number n, number k, void *a,
                                  number lda, const void *tau, void *work,
                                  number lwork, int *info);
    void (*ormqr[GPU_ALL_DTYPES])(word side, word trans, number m, number n,
                                  number k, void *a, number lda,
                                  const void *tau, void *c, number ldc,
                                  void *work, number lwork, int *info, size_t,
                                  size_t);
    void (*trtrs[GPU_ALL_DTYPES])(word lower, word trans, word unit, number n,
                                  number nrhs, void *a, number lda, void *b,
                                  number ldb, int *info, size_t, size_t,
                                  size_t);
    void (*gesdd[GPU_ALL_DTYPES])(word job, number m, number n, void *a,
                                  number lda, void *s, void *u, number ldu,
                                  void *vt, number ldvt, void *work,
                                  number lwork, int *iwork, int *info, size_t);
    void (*gesvd[GPU_ALL_DTYPES])(word job_u, word job_v, number m, number n,
                                  void *a, number lda, void *s, void *u,
                                  number ldu, void *vt, number ldvt, void *work,
                                  number lwork, int *info, size_t, size_t);
    void (*syevd[GPU_ALL_DTYPES])(word job, word lower, number n, void *a,
                                  number lda, void *w, void *work, number lwork,
                                  int *iwork, number liwork, int *info, size_t,
                                  size_t);
    void (*sygvd[GPU_ALL_DTYPES])(number type, word job, word lower, number n,
                                  void *a, number lda, void *b, number ldb,
                                  void *w, void *work, number lwork, int *iwork,
                                  number liwork, int *info, size_t, size_t);
    void (*geev[GPU_ALL_DTYPES])(word job_left, word job_right, number n,
                                 void *a, number lda, void *wr, void *wi,
                                 void *vl, number ldvl, void *vr, number ldvr,
                                 void *work, number lwork, int *info, size_t,
                                 size_t);
    void (*ggev[GPU_ALL_DTYPES])(word job_left, word job_right, number n,
                                 void *a, number lda, void *b, number ldb,
                                 void *alphar, void *alphai, void *beta,
                                 void *vl, number ldvl, void *vr, number ldvr,
                                 void *work, number lwork, int *info, size_t,
                                 size_t);
    void (*gees[GPU_ALL_DTYPES])(word job, word sort, const void *select,
                                 number n, void *a, number lda, int *count,
                                 void *wr, void *wi, void *vs, number ldvs,
                                 void *work, number lwork, int *bwork,
                                 int *info, size_t, size_t);
    void (*gehrd[GPU_ALL_DTYPES])(number n, number low, number high, void *a,
                                  number lda, void *tau, void *work,
                                  number lwork, int *info);
    void (*orghr[GPU_ALL_DTYPES])(number n, number low, number high, void *a,
                                  number lda, const void *tau, void *work,
                                  number lwork, int *info);
    void (*sytrf_rk[GPU_ALL_DTYPES])(word lower, number n, void *a, number lda,
                                     void *e, int *pivots, void *work,
                                     number lwork, int *info, size_t);
    void (*trsyl[GPU_ALL_DTYPES])(word trans_a, word trans_b, number sign,
                                  number m, number n, const void *a, number lda,
                                  const void *b, number ldb, void *c,
                                  number ldc, void *scale, int *info, size_t,
                                  size_t);
    void (*zgeqp3[GPU_ALL_DTYPES])(number m, number n, void *a, number lda,
                                   int *places, void *tau, void *work,
                                   number lwork, void *reals, int *info);
    void (*zgesdd[GPU_ALL_DTYPES])(word job, number m, number n, void *a,
                                   number lda, void *s, void *u, number ldu,
                                   void *vt, number ldvt, void *work,
                                   number lwork, void *reals, int *iwork,
                                   int *info, size_t);
    void (*zgesvd[GPU_ALL_DTYPES])(word job_u, word job_v, number m, number n,
                                   void *a, number lda, void *s, void *u,
                                   number ldu, void *vt, number ldvt,
                                   void *work, number lwork, void *reals,
                                   int *info, size_t, size_t);
    void (*zheevd[GPU_ALL_DTYPES])(word job, word lower, number n, void *a,
                                   number lda, void *w, void *work,
                                   number lwork, void *reals, number lreals,
                                   int *iwork, number liwork, int *info, size_t,
                                   size_t);
    void (*zhegvd[GPU_ALL_DTYPES])(number type, word job, word lower, number n,
                                   void *a, number lda, void *b, number ldb,
                                   void *w, void *work, number lwork,
                                   void *reals, number lreals, int *iwork,
                                   number liwork, int *info, size_t, size_t);
    void (*zgeev[GPU_ALL_DTYPES])(word job_left, word job_right, number n,
                                  void *a, number lda, void *w, void *vl,
                                  number ldvl, void *vr, number ldvr,
                                  void *work, number lwork, void *reals,
                                  int *info, size_t, size_t);
    void (*zggev[GPU_ALL_DTYPES])(word job_left, word job_right, number n,
                                  void *a, number lda, void *b, number ldb,
                                  void *alpha, void *beta, void *vl,
                                  number ldvl, void *vr, number ldvr,
                                  void *work, number lwork, void *reals,
                                  int *info, size_t, size_t);
    void (*zgees[GPU_ALL_DTYPES])(word job, word sort, const void *select,
                                  number n, void *a, number lda, int *count,
                                  void *w, void *vs, number ldvs, void *work,
                                  number lwork, void *reals, int *bwork,
                                  int *info, size_t, size_t);
    void (*gbsv[GPU_ALL_DTYPES])(number n, number below, number above,
                                 number nrhs, void *ab, number ldab,
                                 int *pivots, void *b, number ldb, int *info);
    /* Of complex elements, beside those above: */
    __typeof__(((gpu_cpu_complex_blas *)0)->trsm) trsm[GPU_ALL_DTYPES];
    __typeof__(((gpu_cpu_complex_blas *)0)->gemm) gemm[GPU_ALL_DTYPES];
} lapack;

/* By the names that it has for real elements and for complex ones; NULL: of
 * those there is none. */
static int find_all(const char *real, const char *other, void *slots)
{
    static const char letters[GPU_ALL_DTYPES] = {
        [GPU_F32] = 's', [GPU_F64] = 'd', [GPU_C64] = 'c', [GPU_C128] = 'z'};
    void **slot = slots;
    char routine[16];
    for (int t = 0; t < GPU_ALL_DTYPES; t++) {
        const char *name = gpu_dtype_is_complex(t) ? other : real;
        if (!letters[t] || !name)
            continue;
        snprintf(routine, sizeof routine, "%c%s_", letters[t], name);
        slot[t] = gpu_cpu_find_lapack(routine);
        if (!slot[t])
            return 0;
    }
    return 1;
}

/* The same name for all, another one for complex elements, and routines of
 * their own. */
#define FIND(name) find_all(#name, #name, lapack.name)
#define FIND_AS(name, other) find_all(#name, #other, lapack.name)
#define FIND_TWO(name, other)              \
    (find_all(#name, NULL, lapack.name) && \
     find_all(NULL, #other, lapack.z##other))

static int find_routines(void)
{
    return FIND(potrf) && FIND(getrf) && FIND(geqrf) && FIND(trtrs) &&
           FIND(gehrd) && FIND(trsyl) && FIND(gbsv) && FIND_AS(orgqr, ungqr) &&
           FIND_AS(ormqr, unmqr) && FIND_AS(orghr, unghr) &&
           FIND_AS(sytrf_rk, hetrf_rk) && FIND_TWO(geqp3, geqp3) &&
           FIND_TWO(gesdd, gesdd) && FIND_TWO(gesvd, gesvd) &&
           FIND_TWO(syevd, heevd) && FIND_TWO(sygvd, hegvd) &&
           FIND_TWO(geev, geev) && FIND_TWO(ggev, ggev) &&
           FIND_TWO(gees, gees) && find_all(NULL, "trsm", lapack.trsm) &&
           find_all(NULL, "gemm", lapack.gemm);
}

static gpu_status load(void)
{
    static const char without[] = "solve, inv and det need none";
    static int is_found;
    gpu_status status = gpu_cpu_load_blas("factor", without);
    if (status != GPU_OK)
        return status;
    is_found = is_found || find_routines();
    if (is_found)
        return GPU_OK;
    return gpu_cpu_host->fail(GPU_UNSUPPORTED,
                              "factor: there is no LAPACK here: install "
                              "libopenblas0-pthread or liblapack3; %s",
                              without);
}

/* --- one call -------------------------------------------------------------
 * What a routine works on is the call's own, so that it may go on alone. */

enum {
    OUT_OF_MEMORY = INT_MIN,
    TOO_LARGE = INT_MIN + 1
}; /* beside LAPACK's info */

typedef struct call {
    gpu_factoring f;   /* its views are of `memory` */
    gpu_factoring *of; /* the caller's */
    void *memory;
    size_t bytes;
    int *pivots; /* behind the matrices */
    void *reals; /* behind those, real_numbers() of them */
    int info;
    /* Of one that runs apart: */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t done;
    int is_done, is_left; /* nobody waits for it any more */
} call;

static int rows_of(const gpu_view *v)
{
    return v->rows > 0 ? (int)v->rows : 1;
}

/* Asks a routine how much room it wants, gives it that, and calls it. */
#define WITH_ROOM(routine_call)                     \
    do {                                            \
        char one[sizeof(gpu_complex)];              \
        void *work = one;                           \
        int lwork = -1;                             \
        routine_call;                               \
        if (c->info != 0)                           \
            break;                                  \
        c->info = make_room(t, one, &lwork, &work); \
        if (c->info != 0)                           \
            break;                                  \
        routine_call;                               \
        free(work);                                 \
    } while (0)

/* The answer stands in an element, in its real part, of which one in f32 may be
 * rounded down. */
static int make_room(gpu_dtype t, const void *answer, int *lwork, void **work)
{
    int is_f32 = gpu_dtype_of_parts(t) == GPU_F32;
    double wanted =
        is_f32 ? (double)*(const float *)answer : *(const double *)answer;
    if (is_f32 && wanted > 1 << 24)
        wanted = ceil(wanted * (1 + 0x1p-23));
    if (!(wanted < INT_MAX))
        return TOO_LARGE;
    *lwork = wanted > 1 ? (int)wanted : 1;
    *work = malloc((size_t)*lwork * gpu_cpu_size(t));
    return *work ? 0 : OUT_OF_MEMORY;
}

/* The exchanges of rows, one after the other, as the order they lead to. */
static void read_exchanges(const int *pivots, int64_t count, int64_t rows,
                           int64_t *places)
{
    for (int64_t i = 0; i < rows; i++)
        places[i] = i;
    for (int64_t i = 0; i < count; i++) {
        int64_t other = pivots[i] - 1, place = places[i];
        places[i] = places[other];
        places[other] = place;
    }
}

/* The same of LDL's: of a 2 x 2 block both exchanges are negative. */
static void read_blocks(int *pivots, int64_t n, int64_t *places)
{
    for (int64_t i = 0; i < n; i++)
        pivots[i] = abs(pivots[i]);
    read_exchanges(pivots, n, n, places);
}

static void factor_lu(call *c, gpu_dtype t, int m, int n)
{
    lapack.getrf[t](&m, &n, c->f.a.data, &m, c->pivots, &c->info);
}

static void factor_qr(call *c, gpu_dtype t, int m, int n)
{
    void *a = c->f.a.data, *tau = c->f.values.data;
    if (c->f.places)
        memset(c->pivots, 0, (size_t)n * sizeof *c->pivots);
    if (!c->f.places)
        WITH_ROOM(lapack.geqrf[t](&m, &n, a, &m, tau, work, &lwork, &c->info));
    else if (gpu_dtype_is_complex(t))
        WITH_ROOM(lapack.zgeqp3[t](&m, &n, a, &m, c->pivots, tau, work, &lwork,
                                   c->reals, &c->info));
    else
        WITH_ROOM(lapack.geqp3[t](&m, &n, a, &m, c->pivots, tau, work, &lwork,
                                  &c->info));
}

static void make_q(call *c, gpu_dtype t, int m, int k)
{
    size_t column = (size_t)m * gpu_cpu_size(t);
    int cols = (int)c->f.b.cols, reflections = k < cols ? k : cols;
    memcpy(c->f.b.data, c->f.a.data, column * (size_t)reflections);
    WITH_ROOM(lapack.orgqr[t](&m, &cols, &reflections, c->f.b.data, &m,
                              c->f.values.data, work, &lwork, &c->info));
}

static void apply_q(call *c, gpu_dtype t, int m, int k)
{
    int cols = (int)c->f.b.cols;
    word turned = !c->f.is_turned ? "N" : gpu_dtype_is_complex(t) ? "C" : "T";
    WITH_ROOM(lapack.ormqr[t]("L", turned, &m, &cols, &k, c->f.a.data, &m,
                              c->f.values.data, c->f.b.data, &m, work, &lwork,
                              &c->info, 1, 1));
}

static void solve_triangle(call *c, gpu_dtype t, int n)
{
    int cols = (int)c->f.b.cols;
    word turned = !c->f.is_turned ? "N" : c->f.is_conjugated ? "C" : "T";
    lapack.trtrs[t](c->f.is_lower ? "L" : "U", turned, c->f.is_unit ? "U" : "N",
                    &n, &cols, c->f.a.data, &n, c->f.b.data, &n, &c->info, 1, 1,
                    1);
}

static void copy_in(const gpu_view *from, const gpu_view *to)
{
    if (from->data)
        memcpy(to->data, from->data, gpu_cpu_view_bytes(from));
}

/* a as it was, unless nobody waits for it. */
static int copy_again(call *c)
{
    pthread_mutex_lock(&c->lock);
    int is_wanted = !c->is_left;
    if (is_wanted)
        copy_in(&c->of->a, &c->f.a);
    pthread_mutex_unlock(&c->lock);
    return is_wanted;
}

/* How many real numbers, of the type of the parts, a routine for complex
 * elements wants to work in. */
static size_t real_numbers(const gpu_factoring *f)
{
    size_t m = (size_t)f->a.rows, n = (size_t)f->a.cols;
    size_t k = m < n ? m : n, longer = m < n ? n : m;
    size_t few = 5 * k * k, many = 2 * k * (longer + k);
    if (!gpu_dtype_is_complex(f->a.dtype))
        return 0;
    switch (f->kind) {
    case GPU_FACTOR_SVD:
        return (f->b.data ? few > many ? few : many : 0) + 7 * k;
    case GPU_FACTOR_EIGH:
    case GPU_FACTOR_EIGH_PAIR:
        return f->wants_vectors ? 1 + 5 * n + 2 * n * n : n;
    case GPU_FACTOR_EIG_PAIR:
        return 8 * n;
    default:
        return 2 * n;
    }
}

/* By divide and conquer; which fails sometimes where plain QR does not. */
static void factor_svd(call *c, gpu_dtype t, int m, int n)
{
    gpu_factoring *f = &c->f;
    int k = m < n ? m : n, ldu = rows_of(&f->b), ldvt = rows_of(&f->v);
    word job = !f->b.data ? "N" : f->b.cols == k && f->v.rows == k ? "S" : "A";
    int *room = c->pivots, is_complex = gpu_dtype_is_complex(t); /* 8 k */
    void *a = f->a.data, *s = f->values.data, *u = f->b.data, *vt = f->v.data;
    if (is_complex)
        WITH_ROOM(lapack.zgesdd[t](job, &m, &n, a, &m, s, u, &ldu, vt, &ldvt,
                                   work, &lwork, c->reals, room, &c->info, 1));
    else
        WITH_ROOM(lapack.gesdd[t](job, &m, &n, a, &m, s, u, &ldu, vt, &ldvt,
                                  work, &lwork, room, &c->info, 1));
    if (c->info <= 0 || !copy_again(c))
        return;
    if (is_complex)
        WITH_ROOM(lapack.zgesvd[t](job, job, &m, &n, a, &m, s, u, &ldu, vt,
                                   &ldvt, work, &lwork, c->reals, &c->info, 1,
                                   1));
    else
        WITH_ROOM(lapack.gesvd[t](job, job, &m, &n, a, &m, s, u, &ldu, vt,
                                  &ldvt, work, &lwork, &c->info, 1, 1));
}

/* LAPACK counts its real numbers in ints, too. */
static int fit_reals(call *c, int *count)
{
    if (real_numbers(&c->f) > INT_MAX) {
        c->info = TOO_LARGE;
        return 0;
    }
    *count = (int)real_numbers(&c->f);
    return 1;
}

static void factor_eigh(call *c, gpu_dtype t, int n)
{
    word job = c->f.wants_vectors ? "V" : "N";
    int liwork = c->f.wants_vectors ? 3 + 5 * n : 1, lreals;
    void *a = c->f.a.data, *w = c->f.values.data;
    if (!gpu_dtype_is_complex(t))
        WITH_ROOM(lapack.syevd[t](job, "L", &n, a, &n, w, work, &lwork,
                                  c->pivots, &liwork, &c->info, 1, 1));
    else if (fit_reals(c, &lreals))
        WITH_ROOM(lapack.zheevd[t](job, "L", &n, a, &n, w, work, &lwork,
                                   c->reals, &lreals, c->pivots, &liwork,
                                   &c->info, 1, 1));
}

static void factor_pair(call *c, gpu_dtype t, int n)
{
    word job = c->f.wants_vectors ? "V" : "N";
    int liwork = c->f.wants_vectors ? 3 + 5 * n : 1, type = 1, lreals;
    void *a = c->f.a.data, *b = c->f.b.data, *w = c->f.values.data;
    if (!gpu_dtype_is_complex(t))
        WITH_ROOM(lapack.sygvd[t](&type, job, "L", &n, a, &n, b, &n, w, work,
                                  &lwork, c->pivots, &liwork, &c->info, 1, 1));
    else if (fit_reals(c, &lreals))
        WITH_ROOM(lapack.zhegvd[t](&type, job, "L", &n, a, &n, b, &n, w, work,
                                   &lwork, c->reals, &lreals, c->pivots,
                                   &liwork, &c->info, 1, 1));
}

static void factor_eig(call *c, gpu_dtype t, int n)
{
    gpu_factoring *f = &c->f;
    word left = f->v.data ? "V" : "N", right = f->b.data ? "V" : "N";
    if (gpu_dtype_is_complex(t))
        WITH_ROOM(lapack.zgeev[t](left, right, &n, f->a.data, &n,
                                  f->values.data, f->v.data, &n, f->b.data, &n,
                                  work, &lwork, c->reals, &c->info, 1, 1));
    else
        WITH_ROOM(lapack.geev[t](left, right, &n, f->a.data, &n, f->values.data,
                                 f->imaginary.data, f->v.data, &n, f->b.data,
                                 &n, work, &lwork, &c->info, 1, 1));
}

/* Left vectors take a's place, which is in use until the end. */
static void factor_eig_pair(call *c, gpu_dtype t, int n)
{
    gpu_factoring *f = &c->f;
    size_t bytes = gpu_cpu_view_bytes(&f->a);
    void *left = f->wants_vectors ? malloc(bytes) : NULL;
    char *beta = (char *)f->values.data + (size_t)n * gpu_cpu_size(t);
    if (f->wants_vectors && !left) {
        c->info = OUT_OF_MEMORY;
        return;
    }
    word wants_left = left ? "V" : "N", wants_right = f->v.data ? "V" : "N";
    if (gpu_dtype_is_complex(t))
        WITH_ROOM(lapack.zggev[t](wants_left, wants_right, &n, f->a.data, &n,
                                  f->b.data, &n, f->values.data, beta, left, &n,
                                  f->v.data, &n, work, &lwork, c->reals,
                                  &c->info, 1, 1));
    else
        WITH_ROOM(lapack.ggev[t](wants_left, wants_right, &n, f->a.data, &n,
                                 f->b.data, &n, f->values.data,
                                 f->imaginary.data, beta, left, &n, f->v.data,
                                 &n, work, &lwork, &c->info, 1, 1));
    if (left)
        memcpy(f->a.data, left, bytes);
    free(left);
}

static void factor_schur(call *c, gpu_dtype t, int n)
{
    gpu_factoring *f = &c->f;
    int count;
    if (gpu_dtype_is_complex(t))
        WITH_ROOM(lapack.zgees[t]("V", "N", NULL, &n, f->a.data, &n, &count,
                                  f->values.data, f->b.data, &n, work, &lwork,
                                  c->reals, c->pivots, &c->info, 1, 1));
    else
        WITH_ROOM(lapack.gees[t]("V", "N", NULL, &n, f->a.data, &n, &count,
                                 f->values.data, f->imaginary.data, f->b.data,
                                 &n, work, &lwork, c->pivots, &c->info, 1, 1));
}

static void clear_below_subdiagonal(const gpu_view *a)
{
    size_t size = gpu_cpu_size(a->dtype), n = (size_t)a->rows;
    for (size_t j = 0; j + 2 < n; j++)
        memset((char *)a->data + (j * n + j + 2) * size, 0, (n - j - 2) * size);
}

static void factor_hessenberg(call *c, gpu_dtype t, int n)
{
    gpu_factoring *f = &c->f;
    int low = 1;
    WITH_ROOM(lapack.gehrd[t](&n, &low, &n, f->a.data, &n, f->values.data, work,
                              &lwork, &c->info));
    if (c->info != 0)
        return;
    memcpy(f->b.data, f->a.data, gpu_cpu_view_bytes(&f->a));
    WITH_ROOM(lapack.orghr[t](&n, &low, &n, f->b.data, &n, f->values.data, work,
                              &lwork, &c->info));
    clear_below_subdiagonal(&f->a);
}

static void factor_ldl(call *c, gpu_dtype t, int n)
{
    WITH_ROOM(lapack.sytrf_rk[t]("L", &n, c->f.a.data, &n, c->f.values.data,
                                 c->pivots, work, &lwork, &c->info, 1));
}

/* Some of OpenBLAS's dot products of complex numbers that lie apart read an
 * element more than there are: a copy with memory behind it, to be freed. */
static void *copy_with_margin(const gpu_view *v)
{
    const size_t columns_more = 4;
    size_t bytes = gpu_cpu_view_bytes(v);
    size_t column = (size_t)v->rows * gpu_cpu_size(v->dtype);
    char *copy = malloc(bytes + columns_more * column);
    if (copy) {
        memcpy(copy, v->data, bytes);
        memset(copy + bytes, 0, columns_more * column);
    }
    return copy;
}

/* x comes as scale times the solution, scale below 1 where that would
 * overflow. Its dot products go along rows of a and down columns of x to their
 * ends; those with v end before its last. */
static void solve_sylvester(call *c, gpu_dtype t, int m)
{
    gpu_factoring *f = &c->f;
    int n = (int)f->v.rows, plus = 1;
    int is_f32 = gpu_dtype_of_parts(t) == GPU_F32;
    int64_t numbers = f->b.rows * f->b.cols * (gpu_dtype_is_complex(t) ? 2 : 1);
    union {
        double f64;
        float f32;
    } scale = {1};
    int is_copied = gpu_dtype_is_complex(t);
    void *a = is_copied ? copy_with_margin(&f->a) : f->a.data;
    void *x = is_copied ? copy_with_margin(&f->b) : f->b.data;
    int is_short = is_copied && (!a || !x);
    if (is_short)
        c->info = OUT_OF_MEMORY;
    else
        lapack.trsyl[t]("N", "N", &plus, &m, &n, a, &m, f->v.data, &n, x, &m,
                        &scale, &c->info, 1, 1);
    if (is_copied && !is_short)
        memcpy(f->b.data, x, gpu_cpu_view_bytes(&f->b));
    if (is_copied) {
        free(a);
        free(x);
    }
    if (is_short)
        return;
    double by = is_f32 ? (double)scale.f32 : scale.f64;
    for (int64_t i = 0; by != 1 && i < numbers; i++)
        if (is_f32)
            ((float *)f->b.data)[i] /= (float)by;
        else
            ((double *)f->b.data)[i] /= by;
}

/* The diagonals as rows of a matrix, above which rows are left free. */
static void solve_band(call *c, gpu_dtype t, int n)
{
    gpu_factoring *f = &c->f;
    int below = (int)f->below, above = (int)f->above,
        rows = 2 * below + above + 1;
    int cols = (int)f->b.cols;
    size_t size = gpu_cpu_size(t);
    char *band = calloc((size_t)rows * (size_t)n, size);
    if (!band) {
        c->info = OUT_OF_MEMORY;
        return;
    }
    for (int j = 0; j < n; j++) {
        int first = j > above ? j - above : 0;
        int end = j + below + 1 < n ? j + below + 1 : n;
        memcpy(band + ((size_t)j * (size_t)rows +
                       (size_t)(below + above + first - j)) *
                          size,
               (char *)f->a.data +
                   ((size_t)j * (size_t)n + (size_t)first) * size,
               (size_t)(end - first) * size);
    }
    lapack.gbsv[t](&n, &below, &above, &cols, band, &rows, c->pivots, f->b.data,
                   &n, &c->info);
    free(band);
}

static void run(call *c)
{
    gpu_dtype t = c->f.a.dtype;
    int m = (int)c->f.a.rows, n = (int)c->f.a.cols, k = m < n ? m : n;
    c->info = 0;
    switch (c->f.kind) {
    case GPU_FACTOR_CHOLESKY:
        lapack.potrf[t]("L", &n, c->f.a.data, &n, &c->info, 1);
        break;
    case GPU_FACTOR_LU:
        factor_lu(c, t, m, n);
        break;
    case GPU_FACTOR_QR:
        factor_qr(c, t, m, n);
        break;
    case GPU_FACTOR_Q:
        make_q(c, t, m, k);
        break;
    case GPU_FACTOR_APPLY_Q:
        apply_q(c, t, m, k);
        break;
    case GPU_FACTOR_TRIANGLE:
        solve_triangle(c, t, n);
        break;
    case GPU_FACTOR_SVD:
        factor_svd(c, t, m, n);
        break;
    case GPU_FACTOR_EIGH:
        factor_eigh(c, t, n);
        break;
    case GPU_FACTOR_EIGH_PAIR:
        factor_pair(c, t, n);
        break;
    case GPU_FACTOR_EIG:
        factor_eig(c, t, n);
        break;
    case GPU_FACTOR_EIG_PAIR:
        factor_eig_pair(c, t, n);
        break;
    case GPU_FACTOR_SCHUR:
        factor_schur(c, t, n);
        break;
    case GPU_FACTOR_HESSENBERG:
        factor_hessenberg(c, t, n);
        break;
    case GPU_FACTOR_LDL:
        factor_ldl(c, t, n);
        break;
    case GPU_FACTOR_SYLVESTER:
        solve_sylvester(c, t, m);
        break;
    case GPU_FACTOR_BAND:
        solve_band(c, t, n);
        break;
    case GPU_FACTOR_BATCH: /* not LAPACK's */
    case GPU_FACTOR_LOOK:
        break;
    }
}

/* --- its memory ----------------------------------------------------------- */

enum { ALIGNMENT = 64, VIEWS = 5 };
enum { A = 1, B = 2, V = 4, VALUES = 8, IMAGINARY = 16 };

/* Of each kind the matrices that are read, and that are written. */
static const struct {
    unsigned reads, writes;
} uses[] = {[GPU_FACTOR_CHOLESKY] = {A, A},
            [GPU_FACTOR_LU] = {A, A},
            [GPU_FACTOR_QR] = {A, A | VALUES},
            [GPU_FACTOR_Q] = {A | VALUES, B},
            [GPU_FACTOR_APPLY_Q] = {A | B | VALUES, B},
            [GPU_FACTOR_TRIANGLE] = {A | B, B},
            [GPU_FACTOR_SVD] = {A, B | V | VALUES},
            [GPU_FACTOR_EIGH] = {A, A | VALUES},
            [GPU_FACTOR_EIGH_PAIR] = {A | B, A | VALUES},
            [GPU_FACTOR_EIG] = {A, B | V | VALUES | IMAGINARY},
            [GPU_FACTOR_EIG_PAIR] = {A | B, A | V | VALUES | IMAGINARY},
            [GPU_FACTOR_SCHUR] = {A, A | B | VALUES | IMAGINARY},
            [GPU_FACTOR_HESSENBERG] = {A, A | B},
            [GPU_FACTOR_LDL] = {A, A | VALUES},
            [GPU_FACTOR_SYLVESTER] = {A | B | V, B},
            [GPU_FACTOR_BAND] = {A | B, B},
            [GPU_FACTOR_BATCH] = {A | B, B},
            [GPU_FACTOR_LOOK] = {A, 0}};

/* Those of it, in the order of the bits above. */
static void list_views(gpu_factoring *f, gpu_view *view[VIEWS])
{
    view[0] = &f->a;
    view[1] = &f->b;
    view[2] = &f->v;
    view[3] = &f->values;
    view[4] = &f->imaginary;
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t whole_numbers(const gpu_factoring *f)
{
    size_t m = (size_t)f->a.rows, n = (size_t)f->a.cols, k = m < n ? m : n;
    return f->kind == GPU_FACTOR_SVD ? 8 * k : 5 * (n > k ? n : k) + 3;
}

/* On copies where it runs apart, or a may be wanted again; else on the
 * caller's own. */
static gpu_status begin_call(call *c, gpu_factoring *of, int is_apart)
{
    int copies = is_apart || of->kind == GPU_FACTOR_SVD;
    gpu_view *view[VIEWS], *given[VIEWS];
    pthread_condattr_t how;
    size_t at = 0;
    *c = (call){.f = *of, .of = of};
    list_views(of, given);
    list_views(&c->f, view);
    for (int i = 0; i < VIEWS && copies; i++)
        c->bytes += aligned(given[i]->data ? gpu_cpu_view_bytes(given[i]) : 0);
    size_t numbers = c->bytes;
    c->bytes += aligned(whole_numbers(of) * sizeof *c->pivots);
    size_t reals = c->bytes;
    c->bytes +=
        real_numbers(of) * gpu_cpu_size(gpu_dtype_of_parts(of->a.dtype));
    if (gpu_cpu_alloc(NULL, c->bytes, &c->memory) != GPU_OK)
        return GPU_MEMORY;
    for (int i = 0; i < VIEWS && copies; i++) {
        if (!given[i]->data)
            continue;
        view[i]->data = (char *)c->memory + at;
        at += aligned(gpu_cpu_view_bytes(given[i]));
        if (uses[of->kind].reads >> i & 1)
            copy_in(given[i], view[i]);
    }
    c->pivots = (int *)(void *)((char *)c->memory + numbers);
    c->reals = (char *)c->memory + reals;
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&c->done, &how);
    pthread_condattr_destroy(&how);
    return GPU_OK;
}

static void take_results(const call *c, gpu_factoring *to)
{
    gpu_factoring own = c->f;
    gpu_view *view[VIEWS], *wanted[VIEWS];
    list_views(to, wanted);
    list_views(&own, view);
    for (int i = 0; i < VIEWS; i++)
        if (uses[to->kind].writes >> i & 1 && view[i]->data != wanted[i]->data)
            copy_in(view[i], wanted[i]);
    if (to->kind == GPU_FACTOR_LDL)
        read_blocks(c->pivots, to->a.rows, to->places);
    if (to->kind == GPU_FACTOR_LU)
        read_exchanges(c->pivots, gpu_cpu_smaller(to->a.rows, to->a.cols),
                       to->a.rows, to->places);
    if (to->kind == GPU_FACTOR_QR && to->places)
        for (int64_t j = 0; j < to->a.cols; j++)
            to->places[j] = c->pivots[j] - 1;
    to->trouble = c->info;
}

static gpu_status end_call(call *c)
{
    gpu_status status = GPU_OK;
    const gpu_factoring *f = c->of;
    if (c->info == OUT_OF_MEMORY)
        status = GPU_MEMORY;
    else if (c->info == TOO_LARGE)
        status = gpu_cpu_host->fail(
            GPU_UNSUPPORTED,
            "factor: %lld x %lld is too large for LAPACK's workspace",
            (long long)f->a.rows, (long long)f->a.cols);
    else if (c->info < 0)
        status = gpu_cpu_host->fail(
            GPU_ARGUMENT, "factor: LAPACK refuses argument %d", -c->info);
    else
        take_results(c, c->of);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->done);
    gpu_cpu_free(NULL, c->memory, c->bytes);
    free(c);
    return gpu_cpu_stop(status);
}

/* --- apart ----------------------------------------------------------------
 * Calls that were left go on until they end. While one does the library must
 * stay as it is: so when the process ends first, its thread is parked. */

/* From so many steps on, about 10 ms. */
static const double WORTH_A_THREAD = 2e7;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static call *left[GPU_CPU_APART];

static void park(int signal)
{
    (void)signal;
    for (;;)
        pause();
}

static void park_left(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < GPU_CPU_APART; i++)
        if (left[i])
            pthread_kill(left[i]->thread, SIGRTMAX - 1);
    pthread_mutex_unlock(&lock);
}

static void prepare_to_park(void)
{
    static int is_prepared;
    struct sigaction how = {.sa_handler = park};
    if (is_prepared)
        return;
    is_prepared = 1;
    sigfillset(&how.sa_mask);
    sigaction(SIGRTMAX - 1, &how, NULL);
    atexit(park_left);
}

/* The last thing that is done of a call that was left. */
static void drop(call *c)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < GPU_CPU_APART; i++)
        if (left[i] == c)
            left[i] = NULL;
    pthread_mutex_unlock(&lock);
    free(c->memory);
    free(c);
}

static void *run_apart(void *data)
{
    call *c = data;
    run(c);
    pthread_mutex_lock(&c->lock);
    c->is_done = 1;
    int is_left = c->is_left;
    pthread_cond_signal(&c->done);
    pthread_mutex_unlock(&c->lock);
    if (is_left)
        drop(c);
    return NULL;
}

/* A place among those left; -1: as many go on as may. */
static int free_place(void)
{
    pthread_mutex_lock(&lock);
    int place = -1;
    for (int i = 0; i < GPU_CPU_APART; i++)
        if (!left[i])
            place = i;
    pthread_mutex_unlock(&lock);
    return place;
}

/* Returns with c's lock held, when it is done or the user has enough. */
static void wait_for(call *c)
{
    enum { LOOK = 10000000 }; /* ns */
    pthread_mutex_lock(&c->lock);
    while (!c->is_done && !gpu_cpu_interrupted()) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&c->done, &c->lock, &until);
    }
}

static int start_apart(call *c)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGRTMAX - 1);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&c->thread, NULL, run_apart, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !failed;
}

/* Where it was left the call is no longer the caller's. */
static gpu_status wait_or_leave(call *c, int place)
{
    wait_for(c);
    if (!c->is_done) {
        prepare_to_park();
        c->is_left = 1;
        pthread_mutex_lock(&lock);
        left[place] = c;
        pthread_mutex_unlock(&lock);
        pthread_detach(c->thread);
        pthread_mutex_unlock(&c->lock);
        return gpu_cpu_stop(GPU_INTERRUPTED);
    }
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    return end_call(c);
}

/* Until one of those left has ended. */
static int wait_for_place(void)
{
    int place;
    while ((place = free_place()) < 0 && !gpu_cpu_interrupted()) {
        struct timespec pause = {0, 10000000};
        nanosleep(&pause, NULL);
    }
    return place;
}

static double steps_of(const gpu_factoring *f)
{
    double m = (double)f->a.rows, n = (double)f->a.cols;
    double each = gpu_dtype_is_complex(f->a.dtype) ? 4 : 1;
    int is_of_b = f->kind == GPU_FACTOR_Q || f->kind == GPU_FACTOR_APPLY_Q ||
                  f->kind == GPU_FACTOR_TRIANGLE ||
                  f->kind == GPU_FACTOR_SYLVESTER;
    if (f->kind == GPU_FACTOR_BAND)
        return each * m * (double)f->below *
               (double)(f->below + f->above + f->b.cols);
    return each * m * n * (is_of_b ? (double)f->b.cols : m < n ? m : n);
}

/* Cholesky's, of a block of columns. */
static int64_t factor_corner(const gpu_view *a)
{
    int n = (int)a->rows, ld = (int)a->col_stride, info = 0;
    lapack.potrf[a->dtype]("L", &n, a->data, &ld, &info, 1);
    return info;
}

/* Sides from which all cores are worth it, of complex matrices as well. */
enum { WORTH_BLOCKS = 384, WORTH_COMPLEX_BLOCKS = 192 };

static int is_for_complex_blocks(const gpu_factoring *f)
{
    return gpu_dtype_is_complex(f->a.dtype) && gpu_cpu_blas.is_shared &&
           (f->kind == GPU_FACTOR_LU || f->kind == GPU_FACTOR_CHOLESKY) &&
           gpu_cpu_smaller(f->a.rows, f->a.cols) >= WORTH_COMPLEX_BLOCKS;
}

static gpu_status factor_complex_blocks(gpu_factoring *f)
{
    gpu_dtype t = f->a.dtype;
    gpu_cpu_complex_blas blas = {lapack.getrf[t], lapack.potrf[t],
                                 lapack.trsm[t], lapack.gemm[t]};
    return gpu_cpu_complex_blocks(f, &blas);
}

/* --- LU of what is very small ------------------------------------------------
 * LAPACK's libraries multiply by a pivot's reciprocal, which overflows where
 * the pivot is no normal number. So a matrix without an element of some size is
 * multiplied by a power of two first, and U divided by it; L is the same. */

/* How many powers of two bring the largest of n numbers, all of them below the
 * limit, near 1; 0 where one is not, which mostly is the first. */
#define POWERS_TO_LIFT(type, magnitude)                                    \
    static int powers_to_lift_##type(const type *x, int64_t n, type limit) \
    {                                                                      \
        type most = 0;                                                     \
        int power = 0;                                                     \
        for (int64_t i = 0; i < n; i++) {                                  \
            if (!(magnitude(x[i]) < limit))                                \
                return 0;                                                  \
            if (magnitude(x[i]) > most)                                    \
                most = magnitude(x[i]);                                    \
        }                                                                  \
        frexp(most, &power);                                               \
        return -power;                                                     \
    }
POWERS_TO_LIFT(float, fabsf)
POWERS_TO_LIFT(double, fabs)

static int64_t numbers_in(const gpu_view *a, int64_t rows)
{
    return gpu_dtype_is_complex(a->dtype) ? 2 * rows : rows;
}

static int is_of_f32(const gpu_view *a)
{
    return gpu_dtype_of_parts(a->dtype) == GPU_F32;
}

/* The first `rows` elements of column j times 2^power. */
static void shift_column(const gpu_view *a, int64_t j, int64_t rows, int power)
{
    int64_t n = numbers_in(a, rows), first = j * numbers_in(a, a->rows);
    for (int64_t i = first; i < first + n; i++)
        if (is_of_f32(a))
            ((float *)a->data)[i] = ldexpf(((float *)a->data)[i], power);
        else
            ((double *)a->data)[i] = ldexp(((double *)a->data)[i], power);
}

static int lift(const gpu_view *a)
{
    int64_t n = numbers_in(a, a->rows) * a->cols;
    int power = is_of_f32(a) ? powers_to_lift_float(a->data, n, 0x1p-60f)
                             : powers_to_lift_double(a->data, n, 0x1p-500);
    for (int64_t j = 0; power > 0 && j < a->cols; j++)
        shift_column(a, j, a->rows, power);
    return power;
}

static void sink_upper(const gpu_view *a, int power)
{
    for (int64_t j = 0; power > 0 && j < a->cols; j++)
        shift_column(a, j, gpu_cpu_smaller(j + 1, a->rows), -power);
}

static gpu_status factor(gpu_factoring *f)
{
    if (f->kind == GPU_FACTOR_BATCH)
        return gpu_cpu_solve_batch(f);
    if (f->kind == GPU_FACTOR_LOOK)
        return gpu_cpu_look(f);
    gpu_status status = load();
    if (status == GPU_UNSUPPORTED && gpu_cpu_is_complex_lu(f))
        return gpu_cpu_complex_lu(f);
    if (status != GPU_OK)
        return status;
    if (f->a.rows > INT_MAX || f->a.cols > INT_MAX || f->b.cols > INT_MAX)
        return gpu_cpu_host->fail(
            GPU_UNSUPPORTED, "factor: LAPACK takes sides up to %d", INT_MAX);
    if (f->kind == GPU_FACTOR_CHOLESKY && f->a.rows >= WORTH_BLOCKS &&
        !gpu_dtype_is_complex(f->a.dtype))
        return gpu_cpu_cholesky(f, factor_corner);
    if (is_for_complex_blocks(f))
        return factor_complex_blocks(f);
    int is_apart = steps_of(f) > WORTH_A_THREAD && gpu_cpu_blas.is_shared;
    int place = is_apart ? wait_for_place() : 0;
    if (place < 0)
        return gpu_cpu_stop(GPU_INTERRUPTED);
    call *c = malloc(sizeof *c);
    if (!c)
        return gpu_cpu_stop(GPU_MEMORY);
    status = begin_call(c, f, is_apart);
    if (status != GPU_OK) {
        free(c);
        return gpu_cpu_stop(status);
    }
    if (is_apart && start_apart(c))
        return wait_or_leave(c, place);
    run(c);
    return end_call(c);
}

gpu_status gpu_cpu_factor(void *device, gpu_factoring *f)
{
    (void)device;
    int power = f->kind == GPU_FACTOR_LU ? lift(&f->a) : 0;
    gpu_status status = factor(f);
    if (status == GPU_OK)
        sink_upper(&f->a, power);
    return status;
}
