/* Loading, calling and echoing one entry. */
#include "echo.h"

#include "entry.h"
#include "interrupt.h"
#include "report.h"
#include "rows.h"
#include "screen.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MOST_CHANGES = 8 };

/* --- echo --------------------------------------------------------------- */

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

/* What io.write("x") gives, for more to be written to, is no result. Without a
 * call it was asked for by name. */
static void drop_output(lua_State *L, int first, const char *text)
{
    int has_call = strpbrk(text, "({\"'") != NULL;
    if (has_call && lua_gettop(L) == first && lumat_is_own_output(L, first))
        lua_settop(L, first - 1);
}

/* Results stay reachable as `ans`; showing them may be stopped, too. */
static void echo(repl_session *session, int first, int shown)
{
    lua_State *L = session->L;
    int has_results = lua_gettop(L) >= first;
    if (has_results && !lua_isnil(L, first) && !session->keeps_ans)
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

static void print_note(void *data, const char *name, const char *note)
{
    (void)data, (void)name;
    repl_note(note);
}

/* --- call --------------------------------------------------------------- */

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

int repl_call_loaded(repl_session *session, const char *text, int shown)
{
    lua_State *L = session->L;
    int first = lua_gettop(L);
    lumat_begin_entry(L, NULL, session->is_command ? NULL : text);
    if (session->is_timed)
        lumat_start_watch(L);
    double start = now();
    int status = repl_call(L, 0);
    session->seconds = now() - start;
    repl_end_output();
    if (status == LUA_OK) {
        drop_output(L, first, text);
        echo(session, first, shown);
        lumat_each_unset(L, 0, print_note, NULL);
    } else {
        lua_pushvalue(L, -1);
        repl_report_entry(L, count_lines(text));
        lumat_each_unset(L, lua_gettop(L), print_note, NULL);
    }
    lua_settop(L, first - 1);
    lumat_end_entry(L, status == LUA_OK, session->seconds);
    return status == LUA_OK;
}

/* --- load --------------------------------------------------------------- */

int repl_load_entry(lua_State *L, const char *text, int *shown)
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
    status = repl_load_rows(L, text, silenced > 0 ? silenced : length);
    lua_remove(L, -2);
    return status;
}

void repl_report_unloaded(lua_State *L, const char *text)
{
    repl_report_entry(L, count_lines(text));
}

int repl_evaluate(repl_session *session, const char *text)
{
    lua_State *L = session->L;
    int shown, status = repl_load_entry(L, text, &shown);
    if (status == LUA_OK)
        return repl_call_loaded(session, text, shown);
    if (status == LUMAT_INCOMPLETE) {
        lua_pushfstring(L, "unfinished '%s'", lua_tostring(L, -1));
        lua_remove(L, -2);
    }
    repl_report_unloaded(L, text);
    return 0;
}
