/* The prompt: read, load, call, echo. */
#include "repl.h"

#include "commands.h"
#include "entry.h"
#include "history.h"
#include "interrupt.h"
#include "line.h"
#include "paths.h"
#include "report.h"
#include "screen.h"
#include "script.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CHANGES = 8, DROPPED = -1 };

/* --- echo ------------------------------------------------------------------
 */

/* Prints the result at index, under a number when it is one of several. */
static void print_result(repl_session *session, int index, int number)
{
    lua_State *L = session->L;
    int ok = lumat_push_shown(L, index, &session->style);
    if (!ok) {
        repl_report(L);
        return;
    }
    if (number > 0)
        printf("%d: ", number);
    fwrite(lua_tostring(L, -1), 1, lua_rawlen(L, -1), stdout);
    fputc('\n', stdout);
    lua_pop(L, 1);
}

static void print_results(repl_session *session, int first)
{
    int last = lua_gettop(session->L);
    if (!lua_checkstack(session->L, LUA_MINSTACK)) {
        repl_complain("too many results to print");
        return;
    }
    for (int i = first; i <= last && !repl_interrupted(); i++)
        print_result(session, i, last > first ? i - first + 1 : 0);
}

static void print_change(void *data, const char *name, const char *headline)
{
    int *count = data;
    if (++*count <= MOST_CHANGES)
        printf("%s = %s\n", name, headline);
}

static void print_changes(repl_session *session)
{
    int count = 0;
    lumat_each_change(session->L, print_change, &count);
    if (count > MOST_CHANGES)
        printf("%s %d more\n", session->style.ascii ? "..." : "…",
               count - MOST_CHANGES);
}

/* Results stay reachable as `ans`; showing them may be stopped, too. */
static void echo(repl_session *session, int first, int shown)
{
    lua_State *L = session->L;
    int has_results = lua_gettop(L) >= first;
    if (has_results && !lua_isnil(L, first))
        lumat_set_ans(L, first);
    if (!shown)
        return;
    repl_interrupts_stop(L);
    if (has_results)
        print_results(session, first);
    else
        print_changes(session);
    repl_interrupts_stop(NULL);
}

/* --- call ------------------------------------------------------------------
 */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int count_lines(const char *text)
{
    int lines = 1;
    while ((text = strchr(text, '\n')) != NULL)
        text++, lines++;
    return lines;
}

/* Calls the loaded entry on top of the stack, and takes it and what it left
 * away. */
static int run_loaded(repl_session *session, const char *text, int shown)
{
    lua_State *L = session->L;
    int first = lua_gettop(L);
    double start = now();
    int status = repl_call(L, 0);
    session->seconds = now() - start;
    if (status == LUA_OK)
        echo(session, first, shown);
    else
        repl_report_entry(L, count_lines(text));
    lua_settop(L, first - 1);
    return status == LUA_OK;
}

/* --- load ------------------------------------------------------------------
 */

/* Compiles an entry. A ';' at its end is taken away, so that an expression
 * stays one; '=' in front makes it one, as in Lua 5.2. */
static int load_text(lua_State *L, const char *text, int *shown)
{
    size_t length = strlen(text), silenced;
    int status;
    if (*repl_skip_blanks(text) == '=')
        text = lua_pushfstring(L, "return %s", repl_skip_blanks(text) + 1);
    else
        text = lua_pushlstring(L, text, length);
    length = lua_rawlen(L, -1);
    silenced = repl_silenced(text, length);
    *shown = silenced == 0;
    status = lumat_load(L, text, silenced > 0 ? silenced : length);
    lua_remove(L, -2);
    return status;
}

int repl_evaluate(repl_session *session, const char *text)
{
    lua_State *L = session->L;
    int shown, status = load_text(L, text, &shown);
    if (status == LUA_OK)
        return run_loaded(session, text, shown);
    if (status == LUMAT_INCOMPLETE) {
        lua_pushfstring(L, "unfinished '%s'", lua_tostring(L, -1));
        lua_remove(L, -2);
    }
    repl_report_entry(L, count_lines(text));
    return 0;
}

/* --- read ------------------------------------------------------------------
 */

static void set_prompt(repl_session *session)
{
    const char *device = lumat_unusual_device(session->L);
    if (device != NULL)
        snprintf(session->prompt, sizeof session->prompt, "lumat[%s]> ",
                 device);
    else
        strcpy(session->prompt, "lumat> ");
}

/* "for …> ", which ends where the first line's prompt does; "…> " when
 * nothing has a name. The character … takes three bytes and one column. */
static void continuation_prompt(const repl_session *session, const char *open,
                                char *prompt, size_t room)
{
    int ascii = session->style.ascii, named = open[0] != '\0';
    const char *sign = ascii ? "> " : named ? " …> " : "…> ";
    int columns = (int)strlen(open) + (int)strlen(sign) - (ascii ? 0 : 2);
    int blanks = (int)strlen(session->prompt) - columns;
    snprintf(prompt, room, "%*s%.40s%s", blanks > 0 ? blanks : 0, "", open,
             sign);
}

/* A pasted block ends with a newline more than a typed one. */
static void cut_newlines(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && strchr("\r\n", text[length - 1]) != NULL)
        text[--length] = '\0';
}

/* Puts a line behind the entry, and frees it. */
static void add_line(repl_session *session, char *line)
{
    size_t before = strlen(session->text), length = strlen(line);
    char *longer = realloc(session->text, before + length + 2);
    if (longer != NULL) {
        longer[before] = '\n';
        memcpy(longer + before + 1, line, length + 1);
        session->text = longer;
    }
    free(line);
}

/* Reads one more line of the entry. A dropped entry can be recalled in this
 * session. */
static repl_line_end read_more(repl_session *session, const char *open)
{
    char prompt[128], *line;
    repl_line_end end;
    continuation_prompt(session, open, prompt, sizeof prompt);
    line = repl_read_line(prompt, &end);
    if (line != NULL)
        add_line(session, line);
    if (end != REPL_LINE_READ)
        repl_remember(session->text);
    session->quit = end == REPL_LINE_END;
    return end;
}

/* Loads the entry, reading on until it is complete. Leaves the function or a
 * message on the stack, or nothing for a dropped entry. */
static int load_entry(repl_session *session, int *shown)
{
    lua_State *L = session->L;
    int status;
    while ((status = load_text(L, session->text, shown)) == LUMAT_INCOMPLETE) {
        repl_line_end end = read_more(session, lua_tostring(L, -1));
        lua_pop(L, 1);
        if (end != REPL_LINE_READ)
            return DROPPED;
    }
    return status;
}

static void run_lua(repl_session *session)
{
    int shown, status = load_entry(session, &shown);
    if (status == DROPPED)
        return;
    cut_newlines(session->text);
    repl_history_add(session->text);
    if (status == LUA_OK)
        run_loaded(session, session->text, shown);
    else
        repl_report_entry(session->L, count_lines(session->text));
}

static void run_entry(repl_session *session)
{
    const char *rest;
    repl_entry_kind kind = repl_entry_kind_of(session->text, &rest);
    if (kind == REPL_COMMAND || kind == REPL_HELP || kind == REPL_SEARCH)
        repl_history_add(session->text);
    if (kind == REPL_LUA)
        run_lua(session);
    else if (kind == REPL_COMMAND)
        repl_run_command(session, rest);
    else if (kind == REPL_HELP)
        repl_print_help(session, rest);
    else if (kind == REPL_SEARCH)
        repl_print_search(session, rest);
}

/* Reads the first line; the session ends with the input. */
static int read_first(repl_session *session)
{
    repl_line_end end;
    session->text = repl_read_line(session->prompt, &end);
    if (session->text == NULL) {
        session->quit = 1;
        return 0;
    }
    if (end == REPL_LINE_READ) {
        cut_newlines(session->text);
        return 1;
    }
    if (session->text[0] != '\0')
        repl_remember(session->text);
    return 0;
}

/* --- the loop --------------------------------------------------------------
 */

/* One entry, in protected mode: running out of memory ends it alone. */
static int step(lua_State *L)
{
    repl_session *session = lua_touserdata(L, 1);
    repl_prompt_style(&session->style);
    lumat_set_style(L, &session->style);
    set_prompt(session);
    if (read_first(session))
        run_entry(session);
    return 0;
}

void repl_loop(lua_State *L)
{
    repl_session session = {.L = L};
    repl_report_at_prompt();
    repl_keep_interrupts();
    repl_line_open(L);
    if (isatty(STDIN_FILENO))
        repl_history_open();
    while (!session.quit && !ferror(stdout)) {
        lua_pushcfunction(L, step);
        lua_pushlightuserdata(L, &session);
        if (lua_pcall(L, 1, 0, 0) != LUA_OK)
            repl_report(L);
        free(session.text);
        session.text = NULL;
        fflush(stdout);
    }
}

/* --- the init file ---------------------------------------------------------
 */

/* The file $LUMAT_INIT names has to be there; the one in its usual place may
 * be missing. */
static const char *init_path(char *path, size_t room)
{
    const char *named = getenv("LUMAT_INIT");
    if (named != NULL)
        return named[0] != '\0' ? named : NULL;
    if (!repl_user_path(path, room, "XDG_CONFIG_HOME", ".config", "init.lua"))
        return NULL;
    return access(path, F_OK) == 0 || errno != ENOENT ? path : NULL;
}

void repl_run_init(lua_State *L)
{
    char room[PATH_MAX];
    const char *path = init_path(room, sizeof room);
    int base = lua_gettop(L), status;
    if (path == NULL)
        return;
    status = repl_load_file(L, path);
    if (status == LUA_OK)
        repl_run(L, 0);
    else
        repl_load_failed(L, status);
    lua_settop(L, base);
}
