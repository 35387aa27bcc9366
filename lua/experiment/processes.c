/* Processes: who this one is, which others are alive, its machine and its
 * terminal. */
#include "journal.h"
#include "matrix.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

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
    struct timespec t;
    char host[65] = "", word[160];
    unsigned long long random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        random = (unsigned long long)t.tv_sec * 1000000000u +
                 (unsigned long long)t.tv_nsec;
    }
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
    luaL_setfuncs(L, functions, 0);
}
