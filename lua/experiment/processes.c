/* Processes: who this one is, which others are alive, its machine and its
 * terminal; and copies of the program that one process starts, waits for, and
 * does not leave behind. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "experiment_parts.h"
#include "value.h"

/* --- a pool of processes -------------------------------------------------- */

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
    int out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
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
    lumat_refuse_dry(L, "a process");
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

/* crew:ended(): pid, code and signal of one that has, and that signal's name;
 * or nothing. */
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
        lua_pushstring(L, strsignal((int)lua_tointeger(L, -1)));
        return 4;
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

static void add_pool(lua_State *L)
{
    luaL_newmetatable(L, crew_type);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_crew);
    lua_setfield(L, -2, "crew");
}

/* --- this process --------------------------------------------------------- */

enum { MOST_LINE = 1 << 20 };

/* --- who ------------------------------------------------------------------ */

/* The whole of a small file, with a zero behind it; its length, or -1. */
static ssize_t read_small(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t all = 0, n;
    while ((n = read(fd, out + all, size - 1 - (size_t)all)) > 0)
        all += n;
    close(fd);
    out[all] = '\0';
    return all;
}

/* When the process started, in the kernel's ticks; 0: there is none. */
static unsigned long long start_of(long pid)
{
    char path[64], text[1024];
    unsigned long long start = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (read_small(path, text, sizeof text) <= 0)
        return 0;
    const char *p = strrchr(text, ')'); /* names may have anything in them */
    for (int i = 2; p != NULL && i < 22; i++)
        p = strchr(p + 1, ' ');
    if (p != NULL)
        sscanf(p, "%llu", &start);
    return start;
}

/* Dead, but not waited for yet. */
static int is_zombie(long pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (read_small(path, text, sizeof text) <= 0)
        return 0;
    const char *p = strrchr(text, ')');
    return p && strlen(p) > 2 && p[2] == 'Z';
}

/* This boot of this machine, and the numbering of processes in it. */
static void name_machine(char *out, size_t size)
{
    char boot[64], space[64];
    if (read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot) < 8)
        gethostname(boot, sizeof boot);
    boot[sizeof boot - 1] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[n > 0 ? n : 0] = '\0';
    snprintf(out, size, "%.8s-%.*s", boot, (int)strspn(space + 5, "0123456789"),
             n > 5 ? space + 5 : "");
}

/* identity(): host, pid, start, machine. */
static int identity(lua_State *L)
{
    char host[256], machine[160];
    if (gethostname(host, sizeof host) != 0)
        strcpy(host, "unknown");
    host[sizeof host - 1] = '\0';
    name_machine(machine, sizeof machine);
    lua_pushstring(L, host);
    lua_pushinteger(L, getpid());
    lua_pushinteger(L, (lua_Integer)start_of(getpid()));
    lua_pushstring(L, machine);
    return 4;
}

/* unique(): a word that no other process on any machine has. */
static int unique(lua_State *L)
{
    char host[65] = "", word[160];
    unsigned long long random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = (unsigned long long)(gpu_now() * 1e9);
    gethostname(host, 41);
    host[40] = '\0';
    for (char *p = host; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
            *p = '_';
    snprintf(word, sizeof word, "%s-%d-%012llx", host, (int)getpid(),
             random & 0xffffffffffffu);
    lua_pushstring(L, word);
    return 1;
}

/* is_alive(machine, pid, start): nil when it is of another machine. */
static int is_alive(lua_State *L)
{
    char machine[160];
    long pid = (long)luaL_checkinteger(L, 2);
    lua_Integer start = luaL_checkinteger(L, 3);
    name_machine(machine, sizeof machine);
    if (strcmp(machine, luaL_checkstring(L, 1)) != 0)
        return 0;
    unsigned long long found = start_of(pid);
    int gone = (kill((pid_t)pid, 0) != 0 && errno == ESRCH) ||
               (found && start && found != (unsigned long long)start) ||
               is_zombie(pid);
    lua_pushboolean(L, !gone);
    return 1;
}

/* oom_kills(): how many processes this machine ended for want of memory. */
static int oom_kills(lua_State *L)
{
    static char text[65536];
    long long count = 0;
    const char *found = NULL;
    if (read_small("/proc/vmstat", text, sizeof text) > 0)
        found = strstr(text, "\noom_kill ");
    if (found)
        count = atoll(found + 10);
    lua_pushinteger(L, count);
    return 1;
}

/* command_line(): the program's path and the words it was started with. */
static int command_line(lua_State *L)
{
    char path[4096], *text = lua_newuserdatauv(L, MOST_LINE, 0);
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    ssize_t length = read_small("/proc/self/cmdline", text, MOST_LINE);
    if (n <= 0 || length <= 0)
        return 0;
    lua_pushlstring(L, path, (size_t)n);
    lua_newtable(L);
    const char *word = text;
    for (int i = 1; word < text + length; i++) {
        lua_pushstring(L, word);
        lua_rawseti(L, -2, i);
        word += strlen(word) + 1;
    }
    return 2;
}

/* cores(): processors this process may run on. */
static int cores(lua_State *L)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    lua_pushinteger(L, n);
    return 1;
}

/* --- time and terminal ---------------------------------------------------- */

/* sleep(seconds): shorter when a signal comes. */
static int sleep_some(lua_State *L)
{
    double s = luaL_checknumber(L, 1);
    if (!(s > 0))
        return 0;
    struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
    nanosleep(&t, NULL);
    return 0;
}

/* columns(): of the terminal that standard error is, or nil. */
static int columns(lua_State *L)
{
    struct winsize size;
    const char *term = getenv("TERM");
    if (!isatty(STDERR_FILENO) || !term || strcmp(term, "dumb") == 0)
        return 0;
    int good = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    lua_pushinteger(L, good ? size.ws_col : 80);
    return 1;
}

/* mute(): what is printed from now on goes nowhere. */
static int mute(lua_State *L)
{
    (void)L;
    fflush(stdout);
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    dup2(fd, STDOUT_FILENO);
    close(fd);
    return 0;
}

/* nearest(word, "list of words"): the one that may have been meant. */
static int nearest(lua_State *L)
{
    const char *word = luaL_checkstring(L, 1), *list = luaL_checkstring(L, 2);
    lua_pushstring(L, strlen(word) <= 40 ? lumat_nearest(L, word, list) : NULL);
    return 1;
}

static int is_safe(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.safe");
    return 1;
}

static const luaL_Reg functions[] = {
    {"identity", identity},   {"unique", unique},
    {"is_alive", is_alive},   {"command_line", command_line},
    {"sleep", sleep_some},    {"columns", columns},
    {"mute", mute},           {"nearest", nearest},
    {"is_safe", is_safe},     {"cores", cores},
    {"oom_kills", oom_kills}, {NULL, NULL}};

void lumat_add_processes(lua_State *L)
{
    add_pool(L);
    luaL_setfuncs(L, functions, 0);
}
