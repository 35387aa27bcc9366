/* Standard input while an entry runs, and what else may have the terminal read:
 * a program, or a file that is the terminal. */
#include "cancellation.h"
#include "session.h"

#include "lauxlib.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const lumat_typing *typing; /* NULL: nobody is told */
static luaL_Stream *handle;        /* io.stdin */

/* --- standard input ------------------------------------------------------- */

/* What asks for input is seen before it is waited for. */
static ssize_t read_on(void *cookie, char *text, size_t size)
{
    (void)cookie;
    fflush(stdout);
    return typing->read(text, size);
}

/* Lua's libraries read `stdin` or io.stdin. The stream stays to the end: it may
 * hold part of a line. */
void lumat_set_typing(const lumat_typing *ways)
{
    static const cookie_io_functions_t functions = {.read = read_on};
    FILE *stream = fopencookie(NULL, "r", functions);
    if (!stream)
        return;
    typing = ways;
    stdin = stream;
    if (handle)
        handle->f = stream;
}

/* --- programs ------------------------------------------------------------- */

/* Whether Ctrl-C came since the entry was read. */
static int is_stopped(void)
{
    return lumat_stopping || (typing && typing->is_interrupted());
}

/* Starts the shell with the command and with the signals that `mask` lets
 * through, while SIGINT is held back: one that has come by now may have come
 * before the shell was there to have it, too. Returns its process, or -1 with
 * errno. */
static pid_t start_shell(const char *command, const sigset_t *mask)
{
    extern char **environ;
    char *arguments[] = {"sh", "-c", (char *)command, NULL};
    posix_spawnattr_t attributes;
    sigset_t waiting;
    pid_t pid = -1;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, mask);
    int error =
        posix_spawn(&pid, "/bin/sh", NULL, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) {
        errno = error;
        return -1;
    }
    sigpending(&waiting);
    if (is_stopped() || sigismember(&waiting, SIGINT))
        kill(pid, SIGINT);
    return pid;
}

/* The status that the shell ends with, or -1 with errno. As system() does it,
 * the keys that stop something are the command's alone, but here a Ctrl-C that
 * comes while it is started is not lost. */
static int run_shell(const char *command)
{
    static const int held[] = {SIGINT, SIGQUIT};
    struct sigaction ignored = {.sa_handler = SIG_IGN}, old[2];
    sigset_t blocked, mask;
    int status = -1;
    sigemptyset(&ignored.sa_mask);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    for (int i = 0; i < 2; i++)
        sigaddset(&blocked, held[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &mask);
    if (is_stopped()) {
        pthread_sigmask(SIG_SETMASK, &mask, NULL);
        return W_EXITCODE(0, SIGINT);
    }
    pid_t pid = start_shell(command, &mask);
    for (int i = 0; i < 2; i++)
        sigaction(held[i], &ignored, &old[i]); /* and what waits is dropped */
    if (pid > 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    int error = errno;
    for (int i = 0; i < 2; i++)
        sigaction(held[i], &old[i], NULL);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    errno = error;
    return status;
}

/* --- functions of Lua ----------------------------------------------------- */

/* The function this one stands for, called in its place: errors name it. */
static int call_original(lua_State *L)
{
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/* Ctrl-C ended the program: its caller is to stop as well, or a loop of
 * programs could not be stopped. On top: "exit" or "signal", and the number. */
static int was_interrupted(lua_State *L)
{
    const char *how = lua_tostring(L, -2);
    lua_Integer number = lua_tointeger(L, -1);
    if (!how)
        return 0;
    return strcmp(how, "signal") == 0 ? number == SIGINT
                                      : number == 128 + SIGINT;
}

/* os.execute. What it raises was raised before anything was started. */
static int run_program(lua_State *L)
{
    const char *command = luaL_optstring(L, 1, NULL);
    if (!command)
        return call_original(L);
    if (typing)
        typing->lend();
    int count = luaL_execresult(L, run_shell(command));
    if (typing)
        typing->take_back();
    if (count == 3 && was_interrupted(L))
        lumat_interrupt(L);
    return count;
}

/* io.popen: the program has the terminal up to the end of the entry. */
static int open_program(lua_State *L)
{
    if (typing)
        typing->lend();
    return call_original(L);
}

static int is_read_from(FILE *file)
{
    int number = file ? fileno(file) : -1;
    int mode = number >= 0 ? fcntl(number, F_GETFL) : -1;
    return mode >= 0 && (mode & O_ACCMODE) != O_WRONLY && isatty(number);
}

/* io.open, io.input, io.lines, whose last result is the file: one that is a
 * terminal, as /dev/tty is, has it as a program has. */
static int open_file(lua_State *L)
{
    int count = call_original(L);
    luaL_Stream *s = luaL_testudata(L, -1, LUA_FILEHANDLE);
    if (typing && s && s->closef && is_read_from(s->f))
        typing->lend();
    return count;
}

/* How the program ended, pushed. */
static void push_end(lua_State *L, int status)
{
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (number == SIGINT || code == 128 + SIGINT)
        lua_pushliteral(L, "interrupted");
    else if (number != 0)
        lua_pushfstring(L, "ended by signal %d: %s", number, strsignal(number));
    else if (code != 0)
        lua_pushfstring(L, "exit %d", code);
    else
        lua_pushliteral(L, "");
}

/* What comes from a pipe is for lumat: the program reads nothing then. */
int lumat_run_shell(lua_State *L, const char *command)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.safe");
    int is_safe = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (is_safe) {
        lua_pushliteral(L, "!: --safe starts no programs");
        return 0;
    }
    if (!isatty(STDIN_FILENO))
        command = lua_pushfstring(L, "exec </dev/null\n%s", command);
    else
        command = lua_pushstring(L, command);
    fflush(stdout);
    if (typing)
        typing->lend();
    int status = run_shell(command), error = errno;
    if (typing)
        typing->take_back();
    lua_pop(L, 1);
    if (status == -1)
        lua_pushfstring(L, "!: no program can be started: %s", strerror(error));
    else
        push_end(L, status);
    return status != -1;
}

static const struct {
    const char *table, *name;
    lua_CFunction function;
} stand_ins[] = {{"os", "execute", run_program},
                 {"io", "popen", open_program},
                 {"io", "open", open_file},
                 {"io", "input", open_file},
                 {"io", "lines", open_file}};

void lumat_open_input(lua_State *L)
{
    for (size_t i = 0; i < sizeof stand_ins / sizeof *stand_ins; i++) {
        lua_getglobal(L, stand_ins[i].table);
        lua_getfield(L, -1, stand_ins[i].name);
        lua_pushcclosure(L, stand_ins[i].function, 1);
        lua_setfield(L, -2, stand_ins[i].name);
        lua_pop(L, 1);
    }
    lua_getglobal(L, "io");
    lua_getfield(L, -1, "stdin");
    handle = luaL_testudata(L, -1, LUA_FILEHANDLE);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &handle); /* stays as long as the state */
    lua_pop(L, 1);
}
