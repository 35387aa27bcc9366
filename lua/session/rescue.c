/* Saving the variables when the program cannot go on. It stands wherever a
 * signal found it, perhaps inside an allocation: so a copy of it, a process of
 * its own, does the saving. That may fail without harm, and a moment later it
 * may not. What is on a GPU no copy can read: that is left to the program. */
#include "cancellation.h"
#include "session.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds until a copy that can allocate says so, and for all of its
 * work: the second for each MiB that the program had. */
enum { FIRST = 200, WORK = 10000, WORK_A_MIB = 20 };

static lua_State *saver; /* a thread for this alone: others are in use */

/* rescue(whole, path...) of lua/std; pushes what it says, and whether all that
 * can be saved is. */
static int save(lua_State *L)
{
    const char *const *paths = lua_touserdata(L, 1);
    int is_whole = lua_toboolean(L, 2), n = 0;
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.private");
    lua_getfield(L, -1, "rescue");
    lua_pushboolean(L, is_whole);
    for (; paths[n]; n++)
        lua_pushstring(L, paths[n]);
    lua_call(L, n + 1, 2);
    return 2;
}

/* The collector must not see a heap that is half way through something. */
static lumat_rescued save_here(const char *const *paths, int is_whole,
                               char *said, size_t size)
{
    lua_State *L = saver;
    int collects = lua_gc(L, LUA_GCISRUNNING);
    lua_gc(L, LUA_GCSTOP);
    lumat_end_interrupt(L);
    lua_settop(L, 0);
    lua_pushcfunction(L, save);
    lua_pushlightuserdata(L, (void *)paths);
    lua_pushboolean(L, is_whole);
    int failed = lua_pcall(L, 2, 2, 0) != LUA_OK;
    int top = failed ? -1 : -2;
    snprintf(said, size, "%s",
             lua_isstring(L, top) ? lua_tostring(L, top) : "unknown error");
    if (collects == 1)
        lua_gc(L, LUA_GCRESTART);
    if (failed)
        return LUMAT_RESCUE_FAILED;
    return lua_toboolean(L, -1) ? LUMAT_RESCUED : LUMAT_RESCUED_IN_PART;
}

lumat_rescued lumat_rescue_here(const char *const *paths, char *said,
                                size_t size)
{
    return save_here(paths, 1, said, size);
}

/* --- the copy ------------------------------------------------------------- */

/* If it faults, it dies silently. */
static void be_silent(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        signal(faults[i], SIG_DFL);
}

/* Writes a byte as soon as it could allocate, then how it went and what was
 * said. No other thread came along to show progress. */
static void work(const char *const *paths, int file)
{
    char text[LUMAT_RESCUE_TEXT];
    be_silent();
    lumat_watch_progress(NULL, NULL);
    lua_gc(saver, LUA_GCSTOP);
    lua_newuserdatauv(saver, 4096, 0);
    if (write(file, "", 1) != 1)
        return;
    *text = (char)save_here(paths, 0, text + 1, sizeof text - 1);
    if (write(file, text, strlen(text)) < 0)
        return;
}

/* Reads until nothing more comes, or so many bytes. Returns how many came in
 * time. */
static size_t hear(int file, char *bytes, size_t most, double milliseconds)
{
    double end = gpu_now() + milliseconds * 1e-3;
    struct pollfd input = {.fd = file, .events = POLLIN};
    size_t length = 0;
    while (length < most && gpu_now() < end) {
        if (poll(&input, 1, (int)((end - gpu_now()) * 1e3) + 1) <= 0)
            continue;
        ssize_t n = read(file, bytes + length, most - length);
        if (n <= 0)
            break;
        length += (size_t)n;
    }
    return length;
}

static double work_time(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return WORK + WORK_A_MIB * ((double)usage.ru_maxrss / 1024);
}

/* Its first byte is of no use, the second says how it went. */
static lumat_rescued hear_copy(int file, char *said, size_t size)
{
    char result[2];
    if (hear(file, result, 1, FIRST) == 0 ||
        hear(file, result + 1, 1, work_time()) == 0)
        return LUMAT_RESCUE_LATER;
    said[hear(file, said, size - 1, FIRST)] = '\0';
    return (lumat_rescued)result[1];
}

lumat_rescued lumat_rescue(const char *const *paths, char *said, size_t size)
{
    lumat_rescued result = LUMAT_RESCUE_LATER;
    sigset_t all, old;
    int ends[2];
    *said = '\0';
    if (pipe(ends) != 0)
        return LUMAT_RESCUED_IN_PART;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pid_t copy = _Fork();
    if (copy == 0) {
        work(paths, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (copy > 0) {
        result = hear_copy(ends[0], said, size);
        kill(copy, SIGKILL);
        waitpid(copy, NULL, 0);
    }
    close(ends[0]);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return copy > 0 ? result : LUMAT_RESCUED_IN_PART;
}

void lumat_open_rescue(lua_State *L)
{
    saver = lua_newthread(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &saver);
}
