/* How far the running operation is. Only the thread that runs operations
 * writes, but for the count of units, which every thread adds to. */
#include "core.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct {
    pthread_mutex_t lock; /* for what, began, stage_began, total */
    int active;
    char what[96];
    double began, stage_began;
    int64_t total; /* 0: no stage */
    atomic_llong done;
    void (*on_begin)(void);
    void (*on_end)(void);
} work = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- looking -------------------------------------------------------------- */

void gpu_watch_progress(void (*began)(void), void (*ended)(void))
{
    work.on_begin = began;
    work.on_end = ended;
}

int gpu_look_at_progress(gpu_progress *out)
{
    double time = gpu_now();
    pthread_mutex_lock(&work.lock);
    int active = work.active;
    double staged = time - work.stage_began;
    double share = work.total > 0 ? (double)work.done / (double)work.total : -1;
    memcpy(out->what, work.what, sizeof out->what);
    out->seconds = time - work.began;
    pthread_mutex_unlock(&work.lock);
    out->share = share > 1 ? 1 : share;
    out->left = share > 0 ? staged * (1 - out->share) / out->share : -1;
    return active;
}

/* --- working -------------------------------------------------------------- */

int gpu_begin_work(const char *format, ...)
{
    va_list args;
    if (work.active || !work.on_begin)
        return 0;
    pthread_mutex_lock(&work.lock);
    va_start(args, format);
    vsnprintf(work.what, sizeof work.what, format, args);
    va_end(args);
    work.total = 0;
    work.began = gpu_now();
    work.active = 1;
    pthread_mutex_unlock(&work.lock);
    work.on_begin();
    return 1;
}

void gpu_rename_work(const char *format, ...)
{
    va_list args;
    pthread_mutex_lock(&work.lock);
    va_start(args, format);
    vsnprintf(work.what, sizeof work.what, format, args);
    va_end(args);
    pthread_mutex_unlock(&work.lock);
}

void gpu_end_work(int began)
{
    if (!began || !work.active)
        return;
    pthread_mutex_lock(&work.lock);
    work.active = 0;
    work.total = 0;
    pthread_mutex_unlock(&work.lock);
    if (work.on_end)
        work.on_end();
}

int gpu_begin_stage(int64_t total)
{
    if (!work.active || work.total > 0 || total <= 0)
        return 0;
    pthread_mutex_lock(&work.lock);
    work.done = 0;
    work.total = total;
    work.stage_began = gpu_now();
    pthread_mutex_unlock(&work.lock);
    return 1;
}

void gpu_advance(int64_t units)
{
    atomic_fetch_add_explicit(&work.done, units, memory_order_relaxed);
}

void gpu_end_stage(int began)
{
    if (!began)
        return;
    pthread_mutex_lock(&work.lock);
    work.total = 0;
    pthread_mutex_unlock(&work.lock);
}
