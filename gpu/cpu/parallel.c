/* Spreading work over the cores, and stopping it.
 *
 * Threads of our own rather than OpenMP's: those wait for each other at the
 * end of every loop by spinning, which on a machine with other work costs
 * milliseconds. Here whoever is there takes the next range, a thread that
 * comes late finds nothing left, and idle ones sleep.
 *
 * Each sleeps by a bell of its own and rings those of a few others when it is
 * woken: had all one lock and one bell, 32 of them would take longer to come
 * through it than 16 MiB to be copied. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "cores.h"
#include "cpu.h"

enum {
    WORTH_A_WORKER = 16384,  /* elements that are worth one thread more */
    RANGES_A_THREAD = 4,     /* evens out threads that get less of a core */
    LASTING = 1 << 24,       /* elements from which progress is counted, */
    WORTH_WAITING = 1 << 28, /* and for which late threads are waited */
    RANGE = 1 << 22,         /* elements of a range then, about; */
    MOST_RANGES = 1024,      /* but there are no more than so many */
    MOST_THREADS = 256,
    RINGS = 4,  /* bells that each rings */
    SPINS = 500 /* looks for new work before sleeping: about 20 us */
};

/* Seconds that a thread is waited for before it counts as late, and as many
 * times as long as a range takes; and how many times that wait the others then
 * work without it. Work that lasts they share. */
static const double LATE = 1e-3, LATE_RANGES = 2, ALONE_AFTER = 20;

typedef struct job {
    int64_t count, ranges;
    gpu_cpu_work *work;
    void *context;
    int is_counted; /* progress */
    atomic_llong next;
    atomic_int worst;
} job;

/* In a cache line of its own. */
typedef struct bell {
    _Alignas(64) atomic_uint rung; /* for which job it was last */
    atomic_int is_asleep;          /* who waits for it */
} bell;

/* The job may be joined; below that, how many workers are inside. */
static const unsigned OPEN = 1u << 31;

static struct {
    pthread_mutex_t caller;  /* has the workers */
    atomic_uint door, jobs;  /* so many there were */
    atomic_int called;       /* workers, for this one, from the first on */
    job *current;            /* while the door is open or somebody inside */
    int threads;             /* 0: not started; else with the caller */
    int wanted;              /* threads, once they have been started */
    int limit;               /* 0: none; else what gpu_cpu_set_threads said */
    double alone_until;      /* by the clock: cores are wanted by others */
    bell bell[MOST_THREADS]; /* of each worker */
} pool = {.caller = PTHREAD_MUTEX_INITIALIZER};

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

/* Returns how many it has taken. */
static int64_t take_ranges(job *j)
{
    int64_t r, taken = 0;
    while ((r = atomic_fetch_add(&j->next, 1)) < j->ranges) {
        taken++;
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
    return taken;
}

static void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void sleep_on(atomic_uint *word, unsigned as_long_as)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, as_long_as, NULL, NULL, 0);
}

static void wake_one(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Returns when the word is another than `seen`, at once or after a sleep. */
static void wait_for_change(atomic_uint *word, unsigned seen,
                            atomic_int *is_asleep)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(word) != seen)
            return;
        pause_core();
    }
    if (is_asleep)
        atomic_store(is_asleep, 1);
    while (atomic_load(word) == seen)
        sleep_on(word, seen);
    if (is_asleep)
        atomic_store(is_asleep, 0);
}

/* The caller is number 0 of a tree, in which each rings those below it; worker
 * w is number w + 1. */
static void ring_below(int number)
{
    int first = RINGS * number + 1, called = atomic_load(&pool.called);
    for (int i = first; i < first + RINGS && i <= called; i++) {
        bell *b = &pool.bell[i - 1];
        atomic_store(&b->rung, atomic_load(&pool.jobs));
        if (atomic_load(&b->is_asleep))
            wake_one(&b->rung);
    }
}

/* The job, for one more; NULL: nobody may join it any more. */
static job *enter(void)
{
    unsigned door = atomic_load(&pool.door);
    while (door & OPEN)
        if (atomic_compare_exchange_weak(&pool.door, &door, door + 1))
            return pool.current;
    return NULL;
}

static void leave(void)
{
    if (atomic_fetch_sub(&pool.door, 1) == 1) /* and it is closed */
        wake_one(&pool.door);
}

static void *serve(void *context)
{
    bell *own = context;
    for (unsigned seen = 0;;) {
        wait_for_change(&own->rung, seen, &own->is_asleep);
        seen = atomic_load(&own->rung);
        ring_below((int)(own - pool.bell) + 1);
        job *j = enter();
        if (!j)
            continue;
        take_ranges(j);
        leave();
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
           pthread_create(&thread, NULL, serve, &pool.bell[pool.threads - 1]) ==
               0) {
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

/* Nobody may join any more; those who did are waited for. Where that is much
 * longer than the `range` seconds that one takes, one of them lost its core in
 * the midst of it: the next jobs that are not long themselves do without them,
 * for as many times as long. */
static void close_job(double range)
{
    unsigned door = atomic_fetch_and(&pool.door, ~OPEN) & ~OPEN;
    double start = door > 0 ? gpu_now() : 0;
    for (; door > 0; door = atomic_load(&pool.door))
        wait_for_change(&pool.door, door, NULL);
    if (start > 0) {
        double end = gpu_now();
        if (end - start > LATE + LATE_RANGES * range)
            pool.alone_until = end + ALONE_AFTER * (end - start);
    }
}

/* By the caller and so many workers; where another caller has those, alone. */
static void run_threads(job *j, int workers)
{
    if (pthread_mutex_trylock(&pool.caller) != 0) {
        take_ranges(j);
        return;
    }
    pool.current = j;
    atomic_store(&pool.called, workers);
    atomic_fetch_add(&pool.jobs, 1);
    atomic_store(&pool.door, OPEN);
    ring_below(0);
    double start = gpu_now();
    int64_t taken = take_ranges(j);
    close_job((gpu_now() - start) / (double)(taken > 0 ? taken : 1));
    pthread_mutex_unlock(&pool.caller);
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
    int workers = pool.threads - 1;
    if (elements / WORTH_A_WORKER < workers)
        workers = (int)(elements / WORTH_A_WORKER);
    if (threads > 1)
        run_threads(&j, workers);
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
    if (elements >= GPU_CPU_WORTH_THREADS &&
        (pool.threads == 0 || pool.threads < pool.wanted))
        start_threads();
    int threads = elements >= GPU_CPU_WORTH_THREADS ? gpu_cpu_threads() : 1;
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
    int workers = pool.threads - 1;
    if (count > 1 && gpu_cpu_threads() > 1)
        run_threads(&j, count - 1 < workers ? (int)count - 1 : workers);
    else
        take_ranges(&j);
}
