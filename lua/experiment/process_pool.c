/* A crew: copies of the program that one process starts, waits for, and does
 * not leave behind. */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char crew_type[] = "lumat.crew";

enum { MOST_PROCESSES = 1024 };

typedef struct crew {
    int count;
    pid_t pids[MOST_PROCESSES];
} crew;

/* crew(): processes that end with it. */
static int new_crew(lua_State *L)
{
    crew *c = lua_newuserdatauv(L, sizeof *c, 0);
    c->count = 0;
    luaL_setmetatable(L, crew_type);
    return 1;
}

/* Pushes an array of the strings in the table at index, NULL behind them. */
static char **push_words(lua_State *L, int index)
{
    int n = (int)lua_rawlen(L, index);
    const char **words =
        lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *words, 0);
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, index, i + 1);
        words[i] = luaL_checkstring(L, -1); /* the table keeps it */
        lua_pop(L, 1);
    }
    words[n] = NULL;
    return (char **)words;
}

/* In the child. It is stopped as by Ctrl-C when its parent ends, in whatever
 * way, and not by the terminal's. */
static void become(const char *path, char **words, char **settings,
                   const char *log, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGINT);
    if (getppid() != parent)
        _exit(130);
    int in = open("/dev/null", O_RDONLY);
    int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (out < 0)
        out = open("/dev/null", O_WRONLY);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execve(path, words, settings);
    _exit(127);
}

static int is_set_by(char **settings, const char *entry)
{
    size_t n = strcspn(entry, "=") + 1;
    for (; *settings; settings++)
        if (strncmp(*settings, entry, n) == 0)
            return 1;
    return 0;
}

/* Pushes this process's environment with the settings ("NAME=value") in it:
 * made before the fork, after which memory must not be asked for. */
static char **push_environment(lua_State *L, char **settings)
{
    size_t n = 0, m = 0;
    while (environ[n])
        n++;
    while (settings[m])
        m++;
    char **all = lua_newuserdatauv(L, (n + m + 1) * sizeof *all, 0);
    char **end = all;
    for (size_t i = 0; i < n; i++)
        if (!is_set_by(settings, environ[i]))
            *end++ = environ[i];
    for (size_t i = 0; i <= m; i++)
        *end++ = settings[i];
    return all;
}

/* crew:start(path, words, settings, log): its pid. */
static int start(lua_State *L)
{
    crew *c = luaL_checkudata(L, 1, crew_type);
    const char *path = luaL_checkstring(L, 2), *log = luaL_checkstring(L, 5);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.safe");
    if (lua_toboolean(L, -1))
        return luaL_error(L, "--safe starts no processes");
    if (c->count == MOST_PROCESSES)
        return luaL_error(L, "at most %d processes", MOST_PROCESSES);
    char **words = push_words(L, 3), **settings = push_words(L, 4);
    settings = push_environment(L, settings);
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(path, words, settings, log, parent);
    if (pid < 0)
        return luaL_error(L, "no process could be started: %s",
                          strerror(errno));
    c->pids[c->count++] = pid;
    lua_pushinteger(L, pid);
    return 1;
}

static void remove_pid(crew *c, int i)
{
    c->pids[i] = c->pids[--c->count];
}

/* crew:ended(): pid, code and signal of one that has, or nothing. */
static int ended(lua_State *L)
{
    int status;
    crew *c = luaL_checkudata(L, 1, crew_type);
    for (int i = 0; i < c->count; i++) {
        pid_t pid = waitpid(c->pids[i], &status, WNOHANG);
        if (pid == 0 || (pid < 0 && errno == EINTR))
            continue;
        lua_pushinteger(L, c->pids[i]);
        lua_pushinteger(L, pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status)
                                                        : -1);
        lua_pushinteger(L,
                        pid > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        remove_pid(c, i);
        return 3;
    }
    return 0;
}

static int count_crew(lua_State *L)
{
    crew *c = luaL_checkudata(L, 1, crew_type);
    lua_pushinteger(L, c->count);
    return 1;
}

static void signal_all(const crew *c, int number)
{
    for (int i = 0; i < c->count; i++)
        kill(c->pids[i], number);
}

/* Waits for them, up to so many hundredths of a second. */
static void wait_for(crew *c, int times)
{
    const struct timespec little = {0, 10000000};
    for (; c->count > 0 && times > 0; times--) {
        for (int i = c->count - 1; i >= 0; i--)
            if (waitpid(c->pids[i], NULL, WNOHANG) != 0)
                remove_pid(c, i);
        if (c->count > 0)
            nanosleep(&little, NULL);
    }
}

/* They are asked to stop, as by Ctrl-C, then made to. */
static int end_crew(lua_State *L)
{
    crew *c = luaL_checkudata(L, 1, crew_type);
    signal_all(c, SIGINT);
    wait_for(c, 200);
    signal_all(c, SIGKILL);
    wait_for(c, 500);
    c->count = 0;
    return 0;
}

static const luaL_Reg methods[] = {{"start", start},      {"ended", ended},
                                   {"count", count_crew}, {"close", end_crew},
                                   {"__gc", end_crew},    {"__close", end_crew},
                                   {NULL, NULL}};

void lumat_add_crew(lua_State *L)
{
    luaL_newmetatable(L, crew_type);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_crew);
    lua_setfield(L, -2, "crew");
}
