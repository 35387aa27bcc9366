/* How far the running operation is, for whoever watches from another thread:
 * a line at the terminal, say. The thread that runs it begins, counts and
 * ends; the others only look. Part of gpu.h. */
#ifndef GPU_PROGRESS_H
#define GPU_PROGRESS_H

#include <stdint.h>
#include <time.h>

typedef struct gpu_progress {
    char what[96];  /* "matmul 8000x8000x8000" */
    double seconds; /* since it began */
    double share;   /* done of what is to do; negative: unknown */
    double left; /* seconds to go, as far as can be told; negative: unknown */
} gpu_progress;

/* Seconds of a clock that never goes back: the one of all that is timed, also
 * in the backends' objects, which see no function of this program. */
static inline double gpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* From any thread. Returns 0 when nothing runs that may last. */
int gpu_look_at_progress(gpu_progress *out);

/* began and ended are called on the thread that runs the work, around what
 * may last. NULL: nobody watches. */
void gpu_watch_progress(void (*began)(void), void (*ended)(void));

/* Around work that may last, named as printf does. Work within work counts as
 * part of it: begin then returns 0, and end(0) does nothing. Nothing may raise
 * an error in between. */
int gpu_begin_work(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
void gpu_end_work(int began);
/* What the work that goes on is called from now on. */
void gpu_rename_work(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* The work's next stage has `total` units, of any kind, which the loops then
 * add up, from any thread. Returns 0, and they have to keep quiet, when an
 * outer stage is being counted already; a stage that returned 1 is to be
 * ended. */
int gpu_begin_stage(int64_t total);
void gpu_advance(int64_t units);
void gpu_end_stage(int began);

#endif
