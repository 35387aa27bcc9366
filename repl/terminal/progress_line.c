/* The line that says how far an operation is, drawn by a thread which sleeps
 * while there is none. It is written behind the cursor, which stays where it
 * is: what stands before it is never touched, and erasing to the end of the
 * line takes it back. A task has the whole line, which whoever tells of it
 * fills at other times. */
#include "terminal.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const double FIRST = 1, NEXT = 0.2; /* seconds until it is drawn */

#define SAVE "\0337"
#define RESTORE "\0338"
#define CLIP                                                        \
    "\033[?7l" /* what does not fit must not go on in the next line \
                */
#define WRAP "\033[?7h"
#define ERASE "\033[K"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int has_thread, is_idle, is_paused;
    int runs; /* an operation that may last */
    double began;
    char task[240]; /* empty: none */
    double task_began;
    char drawn[320]; /* empty: nothing */
    double drew;     /* when */
} line = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- what it says ------------------------------------------------------- */

static void time_text(char *text, size_t size, double seconds)
{
    long s = lround(ceil(seconds));
    if (s < 60)
        snprintf(text, size, "%ld s", s);
    else if (s < 3600)
        snprintf(text, size, "%ld min %ld s", s / 60, s % 60);
    else
        snprintf(text, size, "%ld h %ld min", s / 3600, s % 3600 / 60);
}

/* "  43 %  2 s left", or the time it has taken so far. */
static void amount_text(char *text, size_t size, const lumat_progress *p)
{
    char time[40];
    if (p->share < 0 || p->left < 0) {
        time_text(time, sizeof time, floor(p->seconds));
        snprintf(text, size, "  %s", time);
        return;
    }
    time_text(time, sizeof time, p->left);
    snprintf(text, size, "  %d %%  %s left", (int)(100 * p->share), time);
}

static int screen_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

/* Bytes of the first so many characters of text. */
static int bytes_of(const char *text, int characters)
{
    int bytes = 0;
    while (text[bytes] != '\0' && characters > 0) {
        do
            bytes++;
        while ((text[bytes] & 0xC0) == 0x80);
        characters--;
    }
    return bytes;
}

/* On a narrow screen the sizes go first, then the end of the name. */
static void line_text(char *text, size_t size, const lumat_progress *p)
{
    char amount[80];
    amount_text(amount, sizeof amount, p);
    int room = screen_width() - 1 - (int)strlen(amount);
    int length = (int)strlen(p->what);
    if (length > room)
        length = (int)strcspn(p->what, " ");
    if (length > room)
        length = room > 0 ? room : 0;
    snprintf(text, size, "%.*s%s", length, p->what, amount);
}

/* --- drawing ------------------------------------------------------------ */

static void put(const char *text)
{
    size_t length = strlen(text);
    ssize_t written = write(STDERR_FILENO, text, length);
    (void)written; /* a terminal that is gone is not missed */
}

/* A job in the background keeps quiet. */
static int is_foreground(void)
{
    pid_t group = tcgetpgrp(STDERR_FILENO);
    return group < 0 || group == getpgrp();
}

/* What is told of the task, for how long, and the operation that is part of it
 * if there is room. */
static void task_text(char *text, size_t size, const lumat_progress *operation)
{
    char time[40], part[160] = "";
    int room = screen_width() - 1, n;
    time_text(time, sizeof time, floor(lumat_now() - line.task_began));
    n = room - (int)strlen(time) - 2;
    n = bytes_of(line.task, n > 0 ? n : 0);
    n = snprintf(text, size, "%.*s  %s", n, line.task, time);
    if (operation != NULL) {
        amount_text(time, sizeof time, operation);
        snprintf(part, sizeof part, "  %s%s", operation->what, time);
    }
    if (n >= 0 && n + (int)strlen(part) <= room)
        snprintf(text + n, size - (size_t)n, "%s", part);
}

/* Puts into text what there is to say. Returns whether it is of a task. */
static int say(char *text, size_t size)
{
    lumat_progress p;
    double time = lumat_now();
    int operates =
        line.runs && time >= line.began + FIRST && lumat_look_at_progress(&p);
    text[0] = '\0';
    if (line.task[0] != '\0' && time >= line.task_began + FIRST) {
        task_text(text, size, operates ? &p : NULL);
        return 1;
    }
    if (operates)
        line_text(text, size, &p);
    return 0;
}

/* Behind a task's line the cursor stays, as behind whatever is printed. */
static void draw(void)
{
    char text[sizeof line.drawn], all[sizeof text + 40];
    int of_task;
    line.drew = lumat_now();
    if (line.is_paused || !is_foreground())
        return;
    of_task = say(text, sizeof text);
    if (text[0] == '\0' || strcmp(text, line.drawn) == 0)
        return;
    strcpy(line.drawn, text);
    snprintf(all, sizeof all,
             of_task ? "\r" CLIP "%s" ERASE WRAP
                     : SAVE CLIP "%s" ERASE WRAP RESTORE,
             text);
    put(all);
}

static void erase(void)
{
    if (line.drawn[0] != '\0')
        put(line.task[0] != '\0' ? "\r" ERASE : ERASE);
    line.drawn[0] = '\0';
}

/* --- the thread --------------------------------------------------------- */

static void wait_until(double time)
{
    struct timespec t = {(time_t)time, (long)(fmod(time, 1) * 1e9)};
    pthread_cond_timedwait(&line.wake, &line.lock, &t);
}

/* When there will be something to draw: never, for nothing. */
static double next_time(void)
{
    double next = INFINITY;
    if (line.runs)
        next = line.began + FIRST;
    if (line.task[0] != '\0')
        next = fmin(next, line.task_began + FIRST);
    return fmax(next, line.drew + NEXT);
}

static void *watch(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&line.lock);
    for (;;) {
        double next = next_time();
        line.is_idle = isinf(next);
        if (line.is_idle)
            pthread_cond_wait(&line.wake, &line.lock);
        else if (lumat_now() < next)
            wait_until(next);
        else
            draw();
    }
    return NULL;
}

/* Signals are for the main thread. */
static void start_thread(void)
{
    sigset_t all, old;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    line.has_thread = pthread_create(&thread, NULL, watch, NULL) == 0;
    if (line.has_thread)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Operations follow each other quickly: the thread, once awake, finds the
 * next one by itself, and is not woken for each. */
static void wake(void)
{
    if (!line.has_thread)
        start_thread();
    else if (line.is_idle)
        pthread_cond_signal(&line.wake);
}

static void on_begin(void)
{
    pthread_mutex_lock(&line.lock);
    line.runs = 1;
    line.began = lumat_now();
    wake();
    pthread_mutex_unlock(&line.lock);
}

/* A task goes on. */
static void on_end(void)
{
    pthread_mutex_lock(&line.lock);
    line.runs = 0;
    if (line.task[0] == '\0')
        erase();
    pthread_mutex_unlock(&line.lock);
}

/* Its line has just been written by somebody else, or is about to be. */
static void on_task(const char *what, double seconds)
{
    pthread_mutex_lock(&line.lock);
    line.task[0] = line.drawn[0] = '\0';
    if (what != NULL) {
        snprintf(line.task, sizeof line.task, "%s", what);
        line.task_began = lumat_now() - seconds;
        wake();
    }
    pthread_mutex_unlock(&line.lock);
}

void repl_pause_progress(int paused)
{
    pthread_mutex_lock(&line.lock);
    erase();
    line.is_paused = paused;
    pthread_mutex_unlock(&line.lock);
}

/* --- where -------------------------------------------------------------- */

/* Behind a pipe somebody else may write to the same screen. */
static int is_piped(void)
{
    struct stat output;
    return fstat(STDOUT_FILENO, &output) == 0 && S_ISFIFO(output.st_mode);
}

void repl_show_progress(void)
{
    const char *term = getenv("TERM");
    pthread_condattr_t attributes;
    if (!isatty(STDERR_FILENO) || is_piped() || term == NULL ||
        term[0] == '\0' || strcmp(term, "dumb") == 0)
        return;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&line.wake, &attributes);
    pthread_condattr_destroy(&attributes);
    lumat_watch_progress(on_begin, on_end);
    lumat_watch_tasks(on_task);
}
