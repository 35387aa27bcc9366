/* Text through the user's pager. */
#include "pager.h"

#include "full_screen.h"
#include "terminal.h"

#include "lauxlib.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { NOT_FOUND = 127, PROMPT_LINES = 2 };

/* --- colours -------------------------------------------------------------- */

/* less shows them when told so, by itself or by $LESS; of others one cannot
 * know. */
static int takes_colours(const char *command)
{
    const char *options = getenv("LESS");
    const char *less = strstr(command, "less");
    if (less == NULL)
        return 0;
    return strpbrk(less, "rR") != NULL || options == NULL ||
           strpbrk(options, "rR") != NULL;
}

/* --- what fits ------------------------------------------------------------ */

static int fits_screen(const char *text)
{
    lumat_style style;
    int lines = 1, columns = 0;
    repl_prompt_style(&style);
    for (const char *p = text; *p != '\0'; p++) {
        while (lumat_skip_colour(p) != p)
            p = lumat_skip_colour(p);
        if (*p == '\0')
            break;
        columns = *p == '\n' ? 0 : columns + ((*p & 0xC0) != 0x80);
        lines += *p == '\n';
        if (columns > style.width || lines > style.height - PROMPT_LINES)
            return 0;
    }
    return 1;
}

/* --- the process ---------------------------------------------------------- */

/* Starts the command with its input at the end of a pipe; returns the other
 * end, or -1. It sees signals as it would without us. */
static int start(const char *command, pid_t *child)
{
    char *words[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t plain;
    int ends[2], failed;
    if (pipe(ends) != 0)
        return -1;
    sigemptyset(&plain);
    sigaddset(&plain, SIGINT);
    sigaddset(&plain, SIGPIPE);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &plain);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[0], STDIN_FILENO);
    posix_spawn_file_actions_addclose(&files, ends[0]);
    posix_spawn_file_actions_addclose(&files, ends[1]);
    failed = posix_spawn(child, "/bin/sh", &files, &attributes, words, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    close(ends[0]);
    if (!failed)
        return ends[1];
    close(ends[1]);
    return -1;
}

/* Returns 0 when there is no such command. */
static int run(const char *command, const char *text, size_t length)
{
    pid_t child;
    int status, file = start(command, &child);
    if (file < 0)
        return 0;
    /* a pager that has seen enough closes the pipe */
    if (lumat_write_fully(file, text, length, -1) == 0)
        lumat_write_fully(file, "\n", 1, -1);
    close(file);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return !WIFEXITED(status) || WEXITSTATUS(status) != NOT_FOUND;
}

/* Ctrl-C is the pager's meanwhile, a closed pipe is no reason to end, and a
 * pager that was killed leaves the terminal as it was before. */
static int run_guarded(lua_State *L, const char *command, const char *text,
                       size_t length)
{
    struct sigaction nothing = {.sa_handler = SIG_IGN}, interrupt, broken;
    repl_terminal terminal;
    int ran;
    sigemptyset(&nothing.sa_mask);
    repl_take_terminal(&terminal);
    sigaction(SIGINT, &nothing, &interrupt);
    sigaction(SIGPIPE, &nothing, &broken);
    ran = run(command, text, length);
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGPIPE, &broken, NULL);
    repl_return_terminal(L, &terminal);
    return ran;
}

/* Tells less to show colours, unless the user tells it something. */
static int run_pager(lua_State *L, const char *command, const char *text,
                     size_t length)
{
    int tells = getenv("LESS") == NULL, ran;
    if (tells)
        setenv("LESS", "R", 1);
    ran = run_guarded(L, command, text, length);
    if (tells)
        unsetenv("LESS");
    return ran;
}

/* --- functions of Lua ----------------------------------------------------- */

/* Prints it when there is nothing to turn, or nowhere; returns 1 then. */
static int print_plainly(const char *text, size_t length)
{
    if (repl_has_full_screen() && !fits_screen(text))
        return 0;
    lumat_write_visible(stdout, text, length, 1);
    putchar('\n');
    return 1;
}

int repl_page_safely(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    return print_plainly(text, length) ? 0 : repl_turn_pages(L);
}

int repl_page(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    const char *command = getenv("PAGER");
    if (command == NULL || command[0] == '\0')
        command = "less -RS";
    if (print_plainly(text, length))
        return 0;
    if (!takes_colours(command)) {
        char *copy = lua_newuserdatauv(L, length + 1, 0);
        text = strcpy(copy, text);
        length = lumat_strip_colours(copy);
    }
    return run_pager(L, command, text, length) ? 0 : repl_page_safely(L);
}
