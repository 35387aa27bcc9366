/* Loading, calling and echoing one entry. */
#include "entry.h"

#include "terminal.h"

#include "lauxlib.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void repl_take_style(repl_session *session)
{
    repl_prompt_style(&session->style);
    lumat_set_style(session->L, &session->style);
}

enum { MOST_CHANGES = 8 };

/* --- echo --------------------------------------------------------------- */

/* Prints the text on top, under a number when it is one of several; pops it. */
static void print_top(lua_State *L, int number)
{
    if (number > 0)
        printf("%d: ", number);
    lumat_write_visible(stdout, lua_tostring(L, -1), lua_rawlen(L, -1), 1);
    fputc('\n', stdout);
    lua_pop(L, 1);
}

/* Past standard output, whose text goes into a transcript, too. */
static int print_picture(repl_session *session, int index)
{
    lua_State *L = session->L;
    if (!lumat_push_picture(L, index, &session->screen, &session->style))
        return 0;
    size_t length = lua_rawlen(L, -1);
    fflush(stdout);
    lumat_write_fully(STDOUT_FILENO, lua_tostring(L, -1), length, -1);
    lumat_transcribe_echo("[a picture]\n");
    lua_pop(L, 1);
    return 1;
}

static void print_result(repl_session *session, int index, int number)
{
    lua_State *L = session->L;
    if (session->screen.shows && print_picture(session, index))
        return;
    if (lumat_push_shown(L, index, &session->style))
        print_top(L, number);
    else
        repl_report(L);
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

static void print_named(const char *name, const char *headline)
{
    lumat_write_visible(stdout, name, strlen(name), 0);
    fputs(" = ", stdout);
    lumat_write_visible(stdout, headline, strlen(headline), 1);
    fputc('\n', stdout);
}

static void print_change(void *data, const char *name, const char *headline)
{
    int *count = data;
    if (++*count <= MOST_CHANGES)
        print_named(name, headline);
}

static void print_changes(repl_session *session)
{
    int count = 0;
    lumat_each_change(session->L, print_change, &count);
    if (count > MOST_CHANGES)
        printf("%s %d more\n", session->style.ascii ? "..." : "…",
               count - MOST_CHANGES);
}

/* A file is no result: io.write("x") gives it for more to be written to. */
static int is_file(lua_State *L, int first)
{
    return lua_gettop(L) == first &&
           luaL_testudata(L, first, LUA_FILEHANDLE) != NULL;
}

/* Results stay reachable as `ans`, but for io.stdout. */
static void keep_ans(repl_session *session, int first)
{
    lua_State *L = session->L;
    if (!lua_isnoneornil(L, first) && !session->keeps_ans &&
        !lumat_is_own_output(L, first))
        lumat_set_ans(L, first);
}

/* Showing results may be stopped, too. A file that was asked for by name is
 * shown. */
static void echo(repl_session *session, int first, const char *text, int shown)
{
    lua_State *L = session->L;
    int has_call = strpbrk(text, "({\"'") != NULL;
    keep_ans(session, first);
    if (!shown)
        return;
    repl_take_style(session);
    repl_interrupts_stop(L);
    if (lua_gettop(L) >= first && !(has_call && is_file(L, first)))
        print_results(session, first);
    else
        print_changes(session);
    repl_interrupts_stop(NULL);
}

static repl_session *echoing; /* the one whose entry runs */
static double echo_seconds;   /* that its echoes took */

/* What cannot be shown ends the entry, as what cannot be computed does. */
static void echo_statement(lua_State *L, int shown)
{
    double start = lumat_now();
    int count = lua_gettop(L);
    keep_ans(echoing, 1);
    if (!shown || is_file(L, 1))
        return;
    repl_end_output();
    repl_take_style(echoing);
    luaL_checkstack(L, LUA_MINSTACK, "too many results to print");
    for (int i = 1; i <= count; i++) {
        if (echoing->screen.shows && print_picture(echoing, i))
            continue;
        if (!lumat_push_shown(L, i, &echoing->style))
            lua_error(L);
        print_top(L, count > 1 ? i : 0);
    }
    echo_seconds += lumat_now() - start;
}

static void print_note(void *data, const char *name, const char *note)
{
    (void)data, (void)name;
    repl_note(note);
}

/* --- call --------------------------------------------------------------- */

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
    lumat_begin_entry(L, NULL, text);
    if (session->is_timed)
        lumat_start_watch(L);
    lumat_set_echo(echo_statement);
    echoing = session;
    echo_seconds = 0;
    double start = lumat_now();
    int status = repl_call(L, 0);
    session->seconds = lumat_now() - start - echo_seconds;
    repl_end_output();
    if (status == LUA_OK) {
        echo(session, first, text, shown);
        lumat_each_unset(L, 0, print_note, NULL);
    } else {
        lua_pushvalue(L, -1);
        repl_report_entry(L, count_lines(text));
        lumat_each_unset(L, lua_gettop(L), print_note, NULL);
    }
    lumat_each_remark(L, print_note, NULL);
    lua_settop(L, first - 1);
    lumat_end_entry(L, status == LUA_OK, session->seconds);
    return status == LUA_OK;
}

int repl_call_command(repl_session *session, int nargs)
{
    lua_State *L = session->L;
    int first = lua_gettop(L) - nargs;
    lumat_begin_entry(L, NULL, NULL);
    double start = lumat_now();
    int status = repl_call(L, nargs);
    double seconds = lumat_now() - start;
    repl_end_output();
    if (status == LUA_OK) {
        repl_take_style(session);
        repl_interrupts_stop(L);
        print_results(session, first);
        repl_interrupts_stop(NULL);
    } else {
        repl_report_entry(L, 1);
    }
    lua_settop(L, first - 1);
    lumat_end_entry(L, status == LUA_OK, seconds);
    return status == LUA_OK;
}

/* --- load --------------------------------------------------------------- */

int repl_load_entry(lua_State *L, const char *text, int *shown)
{
    int status;
    if (*repl_skip_blanks(text) == '=')
        text = lua_pushfstring(L, "return %s", repl_skip_blanks(text) + 1);
    else
        text = lua_pushstring(L, text);
    status = lumat_load(L, text, lua_rawlen(L, -1), shown);
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
