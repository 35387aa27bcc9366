/* Spreading work over the cores, and stopping it.
 *
 * Threads of our own rather than OpenMP's: those wait for each other at the
 * end of every loop by spinning, which on a machine with other work costs
 * milliseconds. Here whoever is there takes the next range, a thread that
 * comes late finds nothing left, and idle ones sleep. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "cores.h"
#include "cpu.h"

enum {
    WORTH_THREADS = 65536,   /* elements: waking threads costs about 10 us */
    RANGES_A_THREAD = 4,     /* evens out threads that get less of a core */
    LASTING = 1 << 24,       /* elements from which progress is counted, */
    WORTH_WAITING = 1 << 28, /* and for which late threads are waited */
    RANGE = 1 << 22,         /* elements of a range then, about; */
    MOST_RANGES = 1024,      /* but there are no more than so many */
    MOST_THREADS = 256,
    SPINS = 500 /* looks for new work before sleeping: about 20 us */
};

/* Seconds that a thread is waited for before it counts as late, and how many
 * times that the others then work without it; work that lasts they share. */
static const double LATE = 1e-3, ALONE_AFTER = 20;

typedef struct job {
    int64_t count, ranges;
    gpu_cpu_work *work;
    void *context;
    int is_counted; /* progress */
    atomic_llong next;
    atomic_int worst;
} job;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    atomic_uint generation; /* of the job */
    job *current;           /* NULL: none that may still be joined */
    int inside;             /* workers that joined it */
    int threads;            /* 0: not started; else with the caller */
    int wanted;             /* threads, once they have been started */
    int limit;              /* 0: none; else what gpu_cpu_set_threads said */
    double alone_until;     /* by the clock: cores are wanted by others */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

int gpu_cpu_interrupted(void)
{
    return *gpu_cpu_host->interrupted;
}

gpu_status gpu_cpu_stop(gpu_status status)
{
    if (status == GPU_INTERRUPTED)
        return gpu_cpu_host->fail(status, "interrupted");
    if (status == GPU_MEMORY)
        return gpu_cpu_host->fail(status, "out of memory for scratch space");
    return status;
}

int gpu_cpu_begin_stage(int64_t total)
{
    return gpu_cpu_host->begin_stage && gpu_cpu_host->begin_stage(total);
}

void gpu_cpu_advance(int64_t units)
{
    if (gpu_cpu_host->advance)
        gpu_cpu_host->advance(units);
}

void gpu_cpu_end_stage(int began)
{
    if (began)
        gpu_cpu_host->end_stage(began);
}

/* --- the pool ------------------------------------------------------------- */

static void take_ranges(job *j)
{
    int64_t r;
    while ((r = atomic_fetch_add(&j->next, 1)) < j->ranges) {
        int64_t first = (int64_t)((__int128)j->count * r / j->ranges);
        int64_t last = (int64_t)((__int128)j->count * (r + 1) / j->ranges);
        if (first == last || j->worst != GPU_OK)
            continue;
        gpu_status status = j->work(j->context, first, last);
        if (status != GPU_OK)
            j->worst = (int)status;
        if (j->is_counted)
            gpu_cpu_advance(last - first);
    }
}

static void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Returns with the lock held and a generation other than `seen`. */
static void wait_for_job(unsigned seen)
{
    for (int i = 0; i < SPINS && atomic_load(&pool.generation) == seen; i++)
        pause_core();
    pthread_mutex_lock(&pool.lock);
    while (atomic_load(&pool.generation) == seen)
        pthread_cond_wait(&pool.wake, &pool.lock);
}

static void *serve(void *unused)
{
    (void)unused;
    for (unsigned seen = 0;;) {
        wait_for_job(seen);
        seen = atomic_load(&pool.generation);
        job *j = pool.current;
        pool.inside += j != NULL;
        pthread_mutex_unlock(&pool.lock);
        if (!j)
            continue;
        take_ranges(j);
        pthread_mutex_lock(&pool.lock);
        if (--pool.inside == 0)
            pthread_cond_signal(&pool.done);
        pthread_mutex_unlock(&pool.lock);
    }
    return NULL;
}

static int wanted_threads(void)
{
    cpu_set_t set;
    const char *text = getenv("OMP_NUM_THREADS");
    int n = text ? atoi(text) : 0;
    if (n <= 0)
        n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < MOST_THREADS ? n : MOST_THREADS;
}

/* Workers leave signals to the main thread. Those that the system refuses now
 * are asked for again with the next work. */
static void start_threads(void)
{
    sigset_t all, old;
    pthread_t thread;
    if (pool.threads == 0) {
        pool.wanted = wanted_threads();
        pool.threads = 1;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (pool.threads < pool.wanted &&
           pthread_create(&thread, NULL, serve, NULL) == 0) {
        pthread_detach(thread);
        pool.threads++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int gpu_cpu_threads(void)
{
    if (pool.limit)
        return pool.limit;
    return pool.threads ? pool.threads : wanted_threads();
}

void gpu_cpu_set_threads(int n)
{
    pool.limit = n;
}

/* Nobody may join any more; those who did are waited for. Where that is long,
 * one of them lost its core in the midst of a range: the next jobs that are not
 * long themselves do without them, for as many times as long. */
static void close_job(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.current = NULL;
    double start = pool.inside > 0 ? gpu_now() : 0;
    while (pool.inside > 0)
        pthread_cond_wait(&pool.done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    if (start > 0) {
        double end = gpu_now();
        if (end - start > LATE)
            pool.alone_until = end + ALONE_AFTER * (end - start);
    }
}

static void run_threads(job *j)
{
    pthread_mutex_lock(&pool.lock);
    pool.current = j;
    atomic_fetch_add(&pool.generation, 1);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    take_ranges(j);
    close_job();
}

static int64_t count_ranges(int threads, int64_t elements)
{
    int64_t few = (int64_t)threads * RANGES_A_THREAD, many = elements / RANGE;
    many = many < MOST_RANGES ? many : MOST_RANGES;
    return many > few ? many : few;
}

static gpu_status run_ranges(int threads, int64_t count, int64_t elements,
                             gpu_cpu_work *work, void *context)
{
    job j = {.count = count,
             .ranges = count_ranges(threads, elements),
             .work = work,
             .context = context,
             .worst = GPU_OK};
    if (elements >= LASTING)
        j.is_counted = gpu_cpu_begin_stage(count);
    if (threads > 1)
        run_threads(&j);
    else
        take_ranges(&j);
    gpu_cpu_end_stage(j.is_counted);
    return (gpu_status)j.worst;
}

gpu_status gpu_cpu_parallel(int64_t count, int64_t elements, gpu_cpu_work *work,
                            void *context)
{
    if (count <= 0)
        return GPU_OK;
    if (elements > WORTH_THREADS &&
        (pool.threads == 0 || pool.threads < pool.wanted))
        start_threads();
    int threads = elements > WORTH_THREADS ? gpu_cpu_threads() : 1;
    if (threads > 1 && pool.alone_until > 0 && elements < WORTH_WAITING &&
        !pool.limit) {
        if (gpu_now() < pool.alone_until)
            threads = 1;
        else
            pool.alone_until = 0;
    }
    gpu_status status;
    if (count == 1 || (threads == 1 && elements < LASTING))
        status = work(context, 0, count);
    else
        status = run_ranges(threads, count, elements, work, context);
    return status == GPU_OK ? GPU_OK : gpu_cpu_stop(status);
}

/* --- work that is no arithmetic ------------------------------------------- */

typedef struct core_work {
    gpu_core_work *work;
    void *context;
} core_work;

static gpu_status run_pieces(void *context, int64_t first, int64_t last)
{
    const core_work *w = context;
    for (int64_t i = first; i < last; i++)
        w->work(w->context, i);
    return GPU_OK;
}

void gpu_on_cores(int64_t count, gpu_core_work *work, void *context)
{
    core_work w = {work, context};
    job j = {.count = count,
             .ranges = count,
             .work = run_pieces,
             .context = &w,
             .worst = GPU_OK};
    if (count > 1 && (pool.threads == 0 || pool.threads < pool.wanted))
        start_threads();
    if (count > 1 && gpu_cpu_threads() > 1)
        run_threads(&j);
    else
        take_ranges(&j);
}
