/* Factorisations by LAPACK (Anderson et al., LAPACK Users' Guide, 3rd edition,
 * 1999), whose names the routines have here. It computes on one thread, which
 * nothing can stop: so where it lasts it runs apart, on copies, and is left
 * alone when the user stops it. */
#include "blas.h"

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
 * Each for f32 and for f64; of words Fortran takes the length last. */

typedef const char *word;
typedef const int *number;

static struct {
    void (*potrf[2])(word lower, number n, void *a, number lda, int *info,
                     size_t);
    void (*getrf[2])(number m, number n, void *a, number lda, int *pivots,
                     int *info);
    void (*geqrf[2])(number m, number n, void *a, number lda, void *tau,
                     void *work, number lwork, int *info);
    void (*geqp3[2])(number m, number n, void *a, number lda, int *places,
                     void *tau, void *work, number lwork, int *info);
    void (*orgqr[2])(number m, number n, number k, void *a, number lda,
                     const void *tau, void *work, number lwork, int *info);
    void (*ormqr[2])(word side, word trans, number m, number n, number k,
                     void *a, number lda, const void *tau, void *c, number ldc,
                     void *work, number lwork, int *info, size_t, size_t);
    void (*trtrs[2])(word lower, word trans, word unit, number n, number nrhs,
                     void *a, number lda, void *b, number ldb, int *info,
                     size_t, size_t, size_t);
    void (*gesdd[2])(word job, number m, number n, void *a, number lda, void *s,
                     void *u, number ldu, void *vt, number ldvt, void *work,
                     number lwork, int *iwork, int *info, size_t);
    void (*gesvd[2])(word job_u, word job_v, number m, number n, void *a,
                     number lda, void *s, void *u, number ldu, void *vt,
                     number ldvt, void *work, number lwork, int *info, size_t,
                     size_t);
    void (*syevd[2])(word job, word lower, number n, void *a, number lda,
                     void *w, void *work, number lwork, int *iwork,
                     number liwork, int *info, size_t, size_t);
} lapack;

static int find_both(const char *name, void *slots)
{
    void **slot = slots;
    char routine[16];
    for (int t = 0; t < 2; t++) {
        snprintf(routine, sizeof routine, "%c%s_", t == GPU_F64 ? 'd' : 's',
                 name);
        slot[t] = gpu_cpu_find_lapack(routine);
    }
    return slot[GPU_F32] && slot[GPU_F64];
}

static gpu_status load(void)
{
    static const char without[] = "solve, inv and det need none";
    static int is_found;
    gpu_status status = gpu_cpu_load_blas("factor", without);
    if (status != GPU_OK)
        return status;
#define FIND(name) find_both(#name, lapack.name)
    is_found =
        is_found || (FIND(potrf) && FIND(getrf) && FIND(geqrf) && FIND(geqp3) &&
                     FIND(orgqr) && FIND(ormqr) && FIND(trtrs) && FIND(gesdd) &&
                     FIND(gesvd) && FIND(syevd));
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
        char one[sizeof(double)];                   \
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

/* The answer stands in an element, of which one in f32 may be rounded down. */
static int make_room(gpu_dtype t, const void *answer, int *lwork, void **work)
{
    double wanted =
        t == GPU_F64 ? *(const double *)answer : (double)*(const float *)answer;
    if (t == GPU_F32 && wanted > 1 << 24)
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

static void factor_lu(call *c, gpu_dtype t, int m, int n)
{
    lapack.getrf[t](&m, &n, c->f.a.data, &m, c->pivots, &c->info);
}

static void factor_qr(call *c, gpu_dtype t, int m, int n)
{
    void *a = c->f.a.data, *tau = c->f.values.data;
    if (c->f.places) {
        memset(c->pivots, 0, (size_t)n * sizeof *c->pivots);
        WITH_ROOM(lapack.geqp3[t](&m, &n, a, &m, c->pivots, tau, work, &lwork,
                                  &c->info));
    } else {
        WITH_ROOM(lapack.geqrf[t](&m, &n, a, &m, tau, work, &lwork, &c->info));
    }
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
    word turned = c->f.is_turned ? "T" : "N";
    WITH_ROOM(lapack.ormqr[t]("L", turned, &m, &cols, &k, c->f.a.data, &m,
                              c->f.values.data, c->f.b.data, &m, work, &lwork,
                              &c->info, 1, 1));
}

static void solve_triangle(call *c, gpu_dtype t, int n)
{
    int cols = (int)c->f.b.cols;
    lapack.trtrs[t](c->f.is_lower ? "L" : "U", c->f.is_turned ? "T" : "N",
                    c->f.is_unit ? "U" : "N", &n, &cols, c->f.a.data, &n,
                    c->f.b.data, &n, &c->info, 1, 1, 1);
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

/* By divide and conquer; which fails sometimes where plain QR does not. */
static void factor_svd(call *c, gpu_dtype t, int m, int n)
{
    gpu_factoring *f = &c->f;
    int k = m < n ? m : n, ldu = rows_of(&f->b), ldvt = rows_of(&f->v);
    word job = !f->b.data ? "N" : f->b.cols == k && f->v.rows == k ? "S" : "A";
    int *room = c->pivots; /* 8 k */
    WITH_ROOM(lapack.gesdd[t](job, &m, &n, f->a.data, &m, f->values.data,
                              f->b.data, &ldu, f->v.data, &ldvt, work, &lwork,
                              room, &c->info, 1));
    if (c->info <= 0 || !copy_again(c))
        return;
    WITH_ROOM(lapack.gesvd[t](job, job, &m, &n, f->a.data, &m, f->values.data,
                              f->b.data, &ldu, f->v.data, &ldvt, work, &lwork,
                              &c->info, 1, 1));
}

static void factor_eigh(call *c, gpu_dtype t, int n)
{
    word job = c->f.wants_vectors ? "V" : "N";
    int liwork = c->f.wants_vectors ? 3 + 5 * n : 1;
    WITH_ROOM(lapack.syevd[t](job, "L", &n, c->f.a.data, &n, c->f.values.data,
                              work, &lwork, c->pivots, &liwork, &c->info, 1,
                              1));
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
    }
}

/* --- its memory ----------------------------------------------------------- */

enum { ALIGNMENT = 64, VIEWS = 4 };

/* The factoring's matrices, and what is read and written of them. */
static void list_views(gpu_factoring *f, gpu_view *view[VIEWS],
                       int is_read[VIEWS], int is_written[VIEWS])
{
    gpu_factor_kind kind = f->kind;
    int has_q = kind == GPU_FACTOR_Q || kind == GPU_FACTOR_APPLY_Q;
    int gives_b = has_q || kind == GPU_FACTOR_TRIANGLE;
    view[0] = &f->a;
    is_read[0] = 1;
    is_written[0] = kind == GPU_FACTOR_EIGH
                        ? f->wants_vectors
                        : !gives_b && kind != GPU_FACTOR_SVD;
    view[1] = &f->b;
    is_read[1] = gives_b && kind != GPU_FACTOR_Q;
    is_written[1] = 1;
    view[2] = &f->v;
    is_read[2] = 0;
    is_written[2] = 1;
    view[3] = &f->values;
    is_read[3] = has_q;
    is_written[3] = !has_q;
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

static gpu_status begin_call(call *c, gpu_factoring *of)
{
    gpu_view *view[VIEWS], *given[VIEWS];
    int is_read[VIEWS], is_written[VIEWS];
    pthread_condattr_t how;
    size_t at = 0;
    *c = (call){.f = *of, .of = of};
    list_views(of, given, is_read, is_written);
    list_views(&c->f, view, is_read, is_written);
    for (int i = 0; i < VIEWS; i++)
        c->bytes += aligned(given[i]->data ? gpu_cpu_view_bytes(given[i]) : 0);
    size_t numbers = c->bytes;
    c->bytes += whole_numbers(of) * sizeof *c->pivots;
    if (gpu_cpu_alloc(NULL, c->bytes, &c->memory) != GPU_OK)
        return GPU_MEMORY;
    for (int i = 0; i < VIEWS; i++) {
        if (!given[i]->data)
            continue;
        view[i]->data = (char *)c->memory + at;
        at += aligned(gpu_cpu_view_bytes(given[i]));
        if (is_read[i])
            copy_in(given[i], view[i]);
    }
    c->pivots = (int *)(void *)((char *)c->memory + numbers);
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
    int is_read[VIEWS], is_written[VIEWS];
    list_views(to, wanted, is_read, is_written);
    list_views(&own, view, is_read, is_written);
    for (int i = 0; i < VIEWS; i++)
        if (is_written[i])
            copy_in(view[i], wanted[i]);
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
    int is_of_b = f->kind == GPU_FACTOR_Q || f->kind == GPU_FACTOR_APPLY_Q ||
                  f->kind == GPU_FACTOR_TRIANGLE;
    return m * n * (is_of_b ? (double)f->b.cols : m < n ? m : n);
}

gpu_status gpu_cpu_factor(void *device, gpu_factoring *f)
{
    (void)device;
    gpu_status status = load();
    if (status != GPU_OK)
        return status;
    if (f->a.rows > INT_MAX || f->a.cols > INT_MAX || f->b.cols > INT_MAX)
        return gpu_cpu_host->fail(
            GPU_UNSUPPORTED, "factor: LAPACK takes sides up to %d", INT_MAX);
    int is_apart = steps_of(f) > WORTH_A_THREAD && gpu_cpu_blas.is_shared;
    int place = is_apart ? wait_for_place() : 0;
    if (place < 0)
        return gpu_cpu_stop(GPU_INTERRUPTED);
    call *c = malloc(sizeof *c);
    if (!c)
        return gpu_cpu_stop(GPU_MEMORY);
    status = begin_call(c, f);
    if (status != GPU_OK) {
        free(c);
        return gpu_cpu_stop(status);
    }
    if (is_apart && start_apart(c))
        return wait_or_leave(c, place);
    run(c);
    return end_call(c);
}
