/* Claims: names in a folder that one process at a time can have, on any file
 * system. A worker writes a file about itself, once; a claim is a hard link to
 * it, which link(2) makes for one of many, and the file's time, touched by a
 * thread, is the heartbeat of all its claims. A worker that faults leaves a
 * word about it in the file, so that whoever takes its claims over knows. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "experiment_parts.h"
#include "fence.h"
#include "gpu.h"

/* --- last words ----------------------------------------------------------- */
/* A worker that faults, or calls exit, says so in its file. */

/* The file of the worker whose process this is, and whether it holds a claim:
 * what it holds is to blame if this ends. */
static int last_fd = -1;
static volatile sig_atomic_t holding;

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { FAULTS = sizeof faults / sizeof *faults };
static struct sigaction former[FAULTS];
static char other_stack[65536];
static void (*clean_up)(void);

static void leave_note(const char *word)
{
    if (holding && last_fd >= 0 && write(last_fd, word, strlen(word)) < 0)
        return; /* nothing else can be done */
}

void lumat_at_fault(void (*function)(void))
{
    clean_up = function;
}

/* Once; then what the signal does otherwise, also one that was sent. */
static void on_fault(int number)
{
    int saved = errno;
    char word[] = "died signal 00\n";
    word[12] = (char)('0' + number / 10);
    word[13] = (char)('0' + number % 10);
    leave_note(word);
    if (clean_up)
        clean_up();
    errno = saved;
    raise(number);
}

static void on_exit_called(void)
{
    leave_note("died exit\n");
}

static void watch_faults(void)
{
    static int registered;
    struct sigaction action = {.sa_handler = on_fault,
                               .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigemptyset(&action.sa_mask);
    sigaltstack(&stack, NULL);
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i], &action, &former[i]);
    if (!registered)
        atexit(on_exit_called);
    registered = 1;
}

static void unwatch_faults(void)
{
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i], &former[i], NULL);
}

/* The file of a worker takes the word of what ends this process, while it is to
 * blame for that. */
static void begin_note(int fd)
{
    if (last_fd >= 0)
        return;
    last_fd = fd;
    watch_faults();
}

static void blame(int fd, int yes)
{
    if (fd == last_fd)
        holding = yes;
}

static void end_note(int fd)
{
    if (fd != last_fd)
        return;
    unwatch_faults();
    holding = 0;
    last_fd = -1;
}

/* --- leases --------------------------------------------------------------- */

static const char worker_type[] = "lumat.worker";

enum { NAME = 96, MOST_TEXT = 4096, BEATS_A_LEASE = 6 };

typedef struct worker {
    int fd, has_thread, stop;
    ino_t inode;
    double beat, deadline; /* seconds; of the monotonic clock, 0: none */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char folder[PATH_MAX], path[PATH_MAX];
    char held[NAME + 1]; /* the claim it has, or "" */
} worker;

/* --- the heartbeat -------------------------------------------------------- */

/* A point that takes too long cannot be stopped otherwise: its process ends,
 * and says why. */
static void check_deadline(const worker *w)
{
    if (w->deadline <= 0 || gpu_now() < w->deadline)
        return;
    leave_note("died timeout\n");
    kill(getpid(), SIGKILL);
}

static void *beat(void *data)
{
    worker *w = data;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        double until = gpu_now() + w->beat;
        if (w->deadline > 0 && w->deadline < until)
            until = w->deadline;
        struct timespec t = {(time_t)until,
                             (long)((until - (double)(time_t)until) * 1e9)};
        pthread_cond_timedwait(&w->changed, &w->lock, &t);
        futimens(w->fd, NULL);
        check_deadline(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Signals are the program's own thread's. */
static int start_beating(worker *w)
{
    sigset_t all, before;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&w->thread, NULL, beat, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    w->has_thread = !error;
    return error;
}

static void stop_beating(worker *w)
{
    if (!w->has_thread)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = 1;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    w->has_thread = 0;
}

/* --- a worker ------------------------------------------------------------- */

/* "0123456789abcdef.1": a key, and how many had the claim before. */
static const char *check_name(lua_State *L, int arg)
{
    const char *name = luaL_checkstring(L, arg);
    size_t key = strspn(name, "0123456789abcdef");
    size_t number = strspn(name + key + 1, "0123456789");
    luaL_argcheck(L,
                  key == 16 && name[key] == '.' && number > 0 &&
                      strlen(name) == key + 1 + number && strlen(name) <= NAME,
                  arg, "is no claim's name");
    return name;
}

static const char *check_worker_name(lua_State *L, int arg)
{
    const char *name = luaL_checkstring(L, arg);
    luaL_argcheck(L,
                  strncmp(name, "w-", 2) == 0 && !strchr(name, '/') &&
                      strlen(name) <= NAME,
                  arg, "is no worker's name");
    return name;
}

static int fill(worker *w, const char *text)
{
    struct stat info;
    size_t length = strlen(text);
    int flags = O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC;
    w->fd = lumat_open_path(w->path, flags, 0666);
    if (w->fd < 0)
        return errno;
    ssize_t n = write(w->fd, text, length);
    if (n < 0 || (size_t)n < length)
        return n < 0 ? errno : ENOSPC;
    if (fstat(w->fd, &info) != 0)
        return errno;
    w->inode = info.st_ino;
    return start_beating(w);
}

static int close_worker(lua_State *L);

/* join(folder, name, text, lease): a worker, whose file is folder/name. */
static int join(lua_State *L)
{
    const char *folder = luaL_checkstring(L, 1);
    const char *name = check_worker_name(L, 2);
    const char *text = luaL_checkstring(L, 3);
    double lease = luaL_checknumber(L, 4);
    luaL_argcheck(L, strlen(folder) < PATH_MAX - NAME - 2, 1, "is too long");
    worker *w = lua_newuserdatauv(L, sizeof *w, 0);
    memset(w, 0, sizeof *w);
    w->fd = -1;
    w->beat = lease / BEATS_A_LEASE;
    luaL_setmetatable(L, worker_type);
    snprintf(w->folder, sizeof w->folder, "%s", folder);
    snprintf(w->path, sizeof w->path, "%.*s/%s", PATH_MAX - NAME - 2, folder,
             name);
    int error = fill(w, text);
    if (error) {
        close_worker(L);
        return luaL_error(L, "claims: %s: %s", w->path,
                          lumat_error_text(error));
    }
    begin_note(w->fd);
    return 1;
}

static worker *check_worker(lua_State *L)
{
    worker *w = luaL_checkudata(L, 1, worker_type);
    luaL_argcheck(L, w->fd >= 0, 1, "is closed");
    return w;
}

static void claim_path(const worker *w, const char *name, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%.*s/%s", PATH_MAX - NAME - 2, w->folder, name);
}

/* Is folder/name a link to this worker's file? */
static int is_mine(const worker *w, const char *name)
{
    struct stat info;
    char path[PATH_MAX];
    claim_path(w, name, path);
    int fd = lumat_open_fresh(path);
    int mine = fd >= 0 && fstat(fd, &info) == 0 && info.st_ino == w->inode;
    if (fd >= 0)
        close(fd);
    return mine;
}

/* What link says may be wrong over NFS, where an answer can be lost. Returns an
 * error's number. */
static int take_name(worker *w, const char *name)
{
    char path[PATH_MAX];
    claim_path(w, name, path);
    int error = link(w->path, path) != 0 ? errno : 0;
    if (error && !is_mine(w, name))
        return error;
    snprintf(w->held, sizeof w->held, "%s", name);
    blame(w->fd, 1);
    return 0;
}

/* worker:take(name): true; false when somebody has it; nil and why not. */
static int take(lua_State *L)
{
    worker *w = check_worker(L);
    int error = take_name(w, check_name(L, 2));
    if (error && error != EEXIST) {
        lua_pushnil(L);
        lua_pushstring(L, lumat_error_text(error));
        return 2;
    }
    lua_pushboolean(L, !error);
    return 1;
}

static void drop_name(worker *w, const char *name)
{
    char path[PATH_MAX];
    claim_path(w, name, path);
    if (strcmp(name, w->held) == 0) {
        blame(w->fd, 0);
        if (is_mine(w, name))
            unlink(path);
        w->held[0] = '\0';
        return;
    }
    unlink(path);
}

/* worker:drop(name): its own claim, or one it has taken over. */
static int drop(lua_State *L)
{
    worker *w = check_worker(L);
    drop_name(w, check_name(L, 2));
    return 0;
}

/* The claim of the same key with that number. */
static void numbered(const worker *w, long number, char out[NAME + 1])
{
    int key = (int)strcspn(w->held, ".");
    snprintf(out, NAME + 1, "%.*s.%ld", key, w->held, number);
}

static long held_number(const worker *w)
{
    return strtol(w->held + strcspn(w->held, ".") + 1, NULL, 10);
}

/* Takes the claim that is held away, after the lower numbers of its key. */
static void release_held(worker *w)
{
    char name[NAME + 1];
    long most = held_number(w);
    for (long n = 1; n <= most; n++) {
        numbered(w, n, name);
        drop_name(w, name);
    }
}

/* worker:release(): the claim that was taken last is no more. */
static int release(lua_State *L)
{
    worker *w = check_worker(L);
    if (w->held[0])
        release_held(w);
    return 0;
}

/* A unit that was stopped in its midst: no Lua runs that would let go of it. It
 * is still this worker's if the next number can be had; see claiming.lua. */
static void let_go(worker *w)
{
    char own[NAME + 1], next[NAME + 1];
    numbered(w, held_number(w), own);
    numbered(w, held_number(w) + 1, next);
    if (take_name(w, next) != 0)
        return;
    if (is_mine(w, own))
        release_held(w);
    else
        drop_name(w, next);
}

/* worker:has(name): is the claim still its own? */
static int has(lua_State *L)
{
    worker *w = check_worker(L);
    lua_pushboolean(L, is_mine(w, check_name(L, 2)));
    return 1;
}

/* worker:limit(seconds): the process ends when the work at hand takes longer;
 * without seconds there is no limit. */
static int limit(lua_State *L)
{
    worker *w = check_worker(L);
    double seconds = luaL_optnumber(L, 2, 0);
    if (!(seconds > 0) && w->deadline <= 0)
        return 0; /* the thread only reads it */
    pthread_mutex_lock(&w->lock);
    w->deadline = seconds > 0 ? gpu_now() + seconds : 0;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

static int close_worker(lua_State *L)
{
    worker *w = luaL_checkudata(L, -1, worker_type);
    if (w->fd < 0)
        return 0;
    if (w->held[0])
        let_go(w);
    stop_beating(w);
    unlink(w->path);
    end_note(w->fd);
    close(w->fd);
    w->fd = -1;
    return 0;
}

static int end_worker(lua_State *L)
{
    lua_settop(L, 1);
    return close_worker(L);
}

/* --- those of others ------------------------------------------------------ */

/* look(path): what a worker's file or a claim says, the file's number, its
 * time of the last heartbeat; nil when there is none. */
static int look(lua_State *L)
{
    struct stat info;
    char text[MOST_TEXT], stamp[64];
    int fd = lumat_open_fresh(luaL_checkstring(L, 1));
    if (fd < 0)
        return 0;
    ssize_t n = lumat_read_fully(fd, text, sizeof text, 0);
    int failed = n < 0 || fstat(fd, &info) != 0;
    close(fd);
    if (failed)
        return 0;
    snprintf(stamp, sizeof stamp, "%lld.%09ld", (long long)info.st_mtim.tv_sec,
             (long)info.st_mtim.tv_nsec);
    lua_pushlstring(L, text, (size_t)n);
    lua_pushinteger(L, (lua_Integer)info.st_ino);
    lua_pushstring(L, stamp);
    return 3;
}

/* forget(folder, name): takes the file or the claim of a worker that is gone
 * away. */
static int forget(lua_State *L)
{
    const char *folder = luaL_checkstring(L, 1);
    const char *name = luaL_checkstring(L, 2);
    name = name[0] == 'w' ? check_worker_name(L, 2) : check_name(L, 2);
    lumat_unlink_path(lua_pushfstring(L, "%s/%s", folder, name));
    return 0;
}

static const luaL_Reg functions[] = {
    {"join", join}, {"look", look}, {"forget", forget}, {NULL, NULL}};

static const luaL_Reg methods[] = {
    {"take", take},       {"drop", drop},          {"has", has},
    {"release", release}, {"limit", limit},        {"close", end_worker},
    {"__gc", end_worker}, {"__close", end_worker}, {NULL, NULL}};

void lumat_add_claims(lua_State *L)
{
    luaL_newmetatable(L, worker_type);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
