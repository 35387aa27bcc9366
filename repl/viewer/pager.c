/* Text that may be more than a screen: through the user's pager, or by the one
 * that is always there, lines of text on the whole screen. */
#include "viewer.h"

#include "terminal.h"
#include "view_parts.h"

#include "lauxlib.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the lines ------------------------------------------------------------ */

/* Pushes the text cut into lines, in place, and their array. */
static void push_lines(lua_State *L, char *text, view_pages *p)
{
    const char **lines;
    int columns;
    p->count = 1;
    for (const char *s = text; (s = strchr(s, '\n')) != NULL; s++)
        p->count++;
    lines = lua_newuserdatauv(L, (size_t)p->count * sizeof *lines, 0);
    p->lines = lines;
    for (int i = 0; i < p->count; i++) {
        lines[i] = text;
        text += strcspn(text, "\n");
        *text++ = '\0';
        columns = repl_columns(lines[i]);
        p->widest = columns > p->widest ? columns : p->widest;
    }
}

/* Behind the first so many characters. */
static const char *skip_columns(const char *text, int columns)
{
    for (; columns > 0 && *text != '\0'; columns--)
        for (text++; (*text & 0xC0) == 0x80;)
            text++;
    return text;
}

/* --- turning pages -----------------------------------------------------------
 */

static int clamp(int x, int most)
{
    return x > most ? (most > 0 ? most : 0) : x < 0 ? 0 : x;
}

/* As much as there is room for. */
static void draw_place(const view_pages *p, int last)
{
    static const char *const forms[] = {"lines %d to %d of %d; q leaves",
                                        "%d-%d/%d; q leaves", "q leaves"};
    char text[80];
    size_t i = 0, forms_count = sizeof forms / sizeof forms[0];
    do
        snprintf(text, sizeof text, forms[i], p->top + 1, last, p->count);
    while (repl_columns(text) > COLS && ++i < forms_count);
    attrset(A_REVERSE);
    repl_put(LINES - 1, 0, COLS, text);
    attrset(A_NORMAL);
}

static void draw(view_pages *p)
{
    int height = LINES - 1, last;
    p->top = clamp(p->top, p->count - height);
    p->left = clamp(p->left, p->widest - COLS);
    erase();
    for (int i = 0; i < height && p->top + i < p->count; i++)
        repl_put(i, 0, COLS, skip_columns(p->lines[p->top + i], p->left));
    last = p->top + height < p->count ? p->top + height : p->count;
    draw_place(p, last);
}

static void move_by(view_pages *p, int lines, int columns)
{
    p->top += lines;
    p->left += columns;
}

/* Returns 0 for a key that leaves. */
static int act(view_pages *p, int key)
{
    int page = LINES - 1, half = COLS / 2;
    switch (key) {
    case KEY_UP:
    case 'k':
        move_by(p, -1, 0);
        break;
    case KEY_DOWN:
    case 'j':
    case '\r':
        move_by(p, 1, 0);
        break;
    case KEY_PPAGE:
    case 'b':
        move_by(p, -page, 0);
        break;
    case KEY_NPAGE:
    case ' ':
        move_by(p, page, 0);
        break;
    case KEY_LEFT:
    case 'h':
        move_by(p, 0, -half);
        break;
    case KEY_RIGHT:
    case 'l':
        move_by(p, 0, half);
        break;
    case KEY_HOME:
    case 'g':
        p->top = p->left = 0;
        break;
    case KEY_END:
    case 'G':
        p->top = p->count;
        break;
    case 'q':
    case REPL_KEY_ESCAPE:
    case REPL_KEY_INTERRUPT:
    case REPL_KEY_LEAVE:
        return 0;
    }
    return 1;
}

int view_turn(view_pages *p)
{
    draw(p);
    return act(p, repl_get_key());
}

/* Called protected, with the text. */
static int turn(lua_State *L)
{
    view_pages p = {.lines = NULL};
    size_t length;
    const char *text = lua_tolstring(L, 1, &length);
    char *copy = memcpy(lua_newuserdatauv(L, length + 1, 0), text, length + 1);
    lumat_strip_colours(copy);
    push_lines(L, copy, &p);
    while (view_turn(&p))
        continue;
    return 0;
}

/* On the whole screen, without colours. */
static int turn_pages(lua_State *L)
{
    lua_pushcfunction(L, turn);
    lua_pushvalue(L, 1);
    return repl_with_full_screen(L, 1) == LUA_OK ? 0 : lua_error(L);
}

extern char **environ;

enum { NOT_FOUND = 127, PROMPT_LINES = 2 };

/* --- the user's pager ----------------------------------------------------- */

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
    return print_plainly(text, length) ? 0 : turn_pages(L);
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
