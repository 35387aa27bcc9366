/* Which programs become kernels, and the thread that makes them.
 *
 * A kernel is worth its compilation when the runs so far would have been
 * shorter with it by as much as it costs: whoever waits for that never loses
 * more than twice (the rule of the ski's rent). A compilation takes 0.2 s of
 * another core (measured: 0.17 to 0.3 s, and 0.13 s once to load the compiler),
 * which nobody waits for, so a second of it counts as a tenth of one. Looking
 * for one in the user's folder takes less than a millisecond.
 *
 * One thread at a time does both, and ends when it has had nothing to do for a
 * while.
 * What it works at, its queue and the states and images of kernels are under
 * the lock; all else belongs to the thread that runs programs. */
#include "jit.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Seconds that runs would have saved. */
static const double WORTH_LOOKING = 1e-3, WORTH_COMPILING = 20e-3;
enum { MOST_KERNELS = 512, MOST_WAITING = 16, BUCKETS = 256 };
enum { STACK = 1 << 20, LONGEST_PATH = 4096, LINGERS = 2 /* seconds */ };

typedef enum state {
    SEEN,    /* and nothing more */
    LOOKING, /* in the folder: in the queue, or at work */
    MISSING, /* from the folder */
    COMPILING,
    READY,
    FAILED
} state;

struct jit_kernel {
    jit_form form;
    int capability;
    jit_kernel *next; /* of the same bucket */
    double saved;     /* seconds, see above */
    uint64_t used;    /* number of the last run */
    state state;
    void *image;
    size_t bytes;
    void *loaded[JIT_DEVICES];
};

/* Of the thread that runs programs. */
static struct {
    int version; /* of the compiler; 0: not started */
    char compiler[LONGEST_PATH];
    void (*unload)(void *loaded, int device);
    jit_kernel *bucket[BUCKETS];
    int count;
    uint64_t runs;
} all;

/* Under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* a state */
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;
static struct {
    jit_kernel *waiting[MOST_WAITING]; /* the first came first */
    int count;
    int is_running; /* the thread */
} work;

/* --- the thread ------------------------------------------------------------
 */

static void *compile(jit_compiler *c, const jit_form *f, int capability,
                     size_t *bytes)
{
    char text[JIT_MOST_TEXT], why[1];
    text[jit_write_source(f, text)] = '\0';
    void *image = jit_compile(c, all.compiler, all.version, text, capability,
                              bytes, why, sizeof why);
    if (image)
        jit_keep(f, capability, all.version, image, *bytes, JIT_MOST_KEPT);
    return image;
}

/* Does what the kernel waits for, without the lock. */
static void make(jit_compiler *c, jit_kernel *k, int compiles)
{
    size_t bytes = 0;
    void *image = jit_recall(&k->form, k->capability, all.version, &bytes);
    if (!image && compiles)
        image = compile(c, &k->form, k->capability, &bytes);
    pthread_mutex_lock(&lock);
    k->image = image;
    k->bytes = bytes;
    k->state = image ? READY : compiles ? FAILED : MISSING;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* The next one that waits; NULL: there was none for a while. */
static jit_kernel *take_next(int *compiles)
{
    jit_kernel *k = NULL;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LINGERS;
    pthread_mutex_lock(&lock);
    while (work.count == 0)
        if (pthread_cond_timedwait(&asked, &lock, &end) != 0)
            break;
    if (work.count > 0) {
        k = work.waiting[0];
        *compiles = k->state == COMPILING;
        memmove(work.waiting, work.waiting + 1,
                (size_t)--work.count * sizeof *work.waiting);
    }
    work.is_running = k != NULL;
    pthread_mutex_unlock(&lock);
    return k;
}

static void *run(void *unused)
{
    jit_compiler c = {0};
    jit_kernel *k;
    int compiles;
    (void)unused;
    while ((k = take_next(&compiles)) != NULL)
        make(&c, k, compiles);
    jit_close_compiler(&c);
    return NULL;
}

/* No signal is its own: Ctrl-C is for the others. Under the lock. */
static int start_thread(void)
{
    pthread_t thread;
    pthread_attr_t how;
    sigset_t every, before;
    if (pthread_attr_init(&how) != 0)
        return 0;
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&how, STACK);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    int error = pthread_create(&thread, &how, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    return error == 0;
}

/* Under the lock. Where too much waits it is asked for another time. */
static void ask_for(jit_kernel *k, state what)
{
    if (work.count == MOST_WAITING)
        return;
    if (!work.is_running)
        work.is_running = start_thread();
    if (!work.is_running)
        return;
    k->state = what;
    work.waiting[work.count++] = k;
    pthread_cond_signal(&asked);
}

/* --- the kernels -----------------------------------------------------------
 */

void jit_start(const char *compiler, int version,
               void (*unload)(void *loaded, int device))
{
    if (all.version != 0)
        return;
    snprintf(all.compiler, sizeof all.compiler, "%s", compiler);
    all.version = version;
    all.unload = unload;
    jit_find_folder();
}

static int is_busy(jit_kernel *k)
{
    pthread_mutex_lock(&lock);
    int busy = k->state == LOOKING || k->state == COMPILING;
    pthread_mutex_unlock(&lock);
    return busy;
}

static void drop(jit_kernel **from)
{
    jit_kernel *k = *from;
    *from = k->next;
    for (int d = 0; d < JIT_DEVICES; d++)
        if (k->loaded[d])
            all.unload(k->loaded[d], d);
    free(k->image);
    free(k);
    all.count--;
}

/* The one that has not been used for longest, of those nobody works at. */
static void drop_oldest(void)
{
    jit_kernel **oldest = NULL;
    for (int b = 0; b < BUCKETS; b++)
        for (jit_kernel **k = &all.bucket[b]; *k; k = &(*k)->next)
            if ((!oldest || (*k)->used < (*oldest)->used) && !is_busy(*k))
                oldest = k;
    if (oldest)
        drop(oldest);
}

jit_kernel *jit_find(const jit_form *f, int capability)
{
    uint64_t hash = jit_hash(f, sizeof *f, 0);
    jit_kernel **bucket = &all.bucket[hash % BUCKETS], *k = *bucket;
    while (k &&
           (k->capability != capability || memcmp(&k->form, f, sizeof *f) != 0))
        k = k->next;
    if (!k) {
        if (all.count >= MOST_KERNELS)
            drop_oldest();
        k = calloc(1, sizeof *k);
        if (!k)
            return NULL;
        k->form = *f;
        k->capability = capability;
        k->next = *bucket;
        *bucket = k;
        all.count++;
    }
    k->used = ++all.runs;
    return k;
}

/* Under the lock. */
static void wait_for(jit_kernel *k)
{
    while (k->state != READY && k->state != FAILED) {
        if (k->state == SEEN || k->state == MISSING)
            ask_for(k, COMPILING);
        if (k->state == SEEN || k->state == MISSING)
            return;
        pthread_cond_wait(&changed, &lock);
    }
}

const void *jit_image(jit_kernel *k, double seconds, int waits)
{
    k->saved += seconds;
    pthread_mutex_lock(&lock);
    if (waits)
        wait_for(k);
    else if (k->state == SEEN && k->saved >= WORTH_LOOKING)
        ask_for(k, LOOKING);
    else if (k->state == MISSING && k->saved >= WORTH_COMPILING)
        ask_for(k, COMPILING);
    const void *image = k->state == READY ? k->image : NULL;
    pthread_mutex_unlock(&lock);
    return image;
}

void **jit_loaded(jit_kernel *k, int device)
{
    return &k->loaded[device];
}

void jit_forsake(jit_kernel *k)
{
    pthread_mutex_lock(&lock);
    k->state = FAILED;
    pthread_mutex_unlock(&lock);
}
