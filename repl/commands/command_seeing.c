/* Commands that look at matrices. What they show is no result: `ans`, which
 * they look at when nothing is named, stays. */
#include "command_list.h"
#include "terminal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void show(repl_session *session, const char *function,
                 const char *arguments)
{
    lua_State *L = session->L;
    lua_getglobal(L, "ans");
    repl_show_call(session, function, arguments);
    lua_setglobal(L, "ans");
}

/* ":heat": the last result. */
static void look(repl_session *session, const char *function, const char *rest)
{
    int has_ans;
    if (rest[0] != '\0') {
        show(session, function, rest);
        return;
    }
    has_ans = lua_getglobal(session->L, "ans") != LUA_TNIL;
    lua_pop(session->L, 1);
    if (has_ans) {
        show(session, function, "ans");
    } else {
        lua_pushfstring(session->L, ":%s: there is no result yet: :%s A",
                        function, function);
        repl_report(session->L);
    }
}

static int is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return 0;
    while (isalnum((unsigned char)*text) || *text == '_')
        text++;
    return *text == '\0';
}

/* The variable's own name, whatever other names the matrix has. */
void repl_run_inspect(repl_session *session, const char *rest)
{
    const char *text = rest;
    if (is_name(rest))
        text = lua_pushfstring(session->L, "%s, '%s'", rest, rest);
    else
        lua_pushnil(session->L);
    look(session, "inspect", text);
    lua_pop(session->L, 1);
}

void repl_run_heat(repl_session *session, const char *rest)
{
    look(session, "heat", rest);
}

void repl_run_spy(repl_session *session, const char *rest)
{
    look(session, "spy", rest);
}

void repl_run_plot(repl_session *session, const char *rest)
{
    look(session, "plot", rest);
}

/* Where the number of "A 20" begins, which no expression ends in; or NULL. */
static const char *find_bins(const char *text)
{
    const char *end = text + strlen(text), *number = end, *before;
    while (number > text && isdigit((unsigned char)number[-1]))
        number--;
    before = number;
    while (before > text && isblank((unsigned char)before[-1]))
        before--;
    if (number == end || before == number || before == text)
        return NULL;
    return isalnum((unsigned char)before[-1]) || strchr("_)]}", before[-1])
               ? number
               : NULL;
}

void repl_run_hist(repl_session *session, const char *rest)
{
    const char *bins = find_bins(rest), *text = rest;
    if (bins != NULL) {
        lua_pushlstring(session->L, rest, (size_t)(bins - rest));
        text = lua_pushfstring(session->L, "%s, %s",
                               lua_tostring(session->L, -1), bins);
        lua_remove(session->L, -2);
    } else {
        lua_pushnil(session->L);
    }
    look(session, "hist", text);
    lua_pop(session->L, 1);
}

/* --- watching ------------------------------------------------------------- */

static void print_watched(lua_State *L)
{
    const char *name = lua_tostring(L, -1);
    if (name == NULL)
        puts("nothing is watched");
    else
        lumat_print_visible(
            stdout,
            "%s is watched: a picture of it is drawn while an entry runs\n",
            name);
}

/* A name stands for the variable, whatever it holds; "off" ends it. */
void repl_run_watch(repl_session *session, const char *rest)
{
    lua_State *L = session->L;
    int shown, status, top = lua_gettop(L);
    const char *form = strcmp(rest, "off") == 0 ? "require 'lumat'.watch(false)"
                       : is_name(rest)          ? "require 'lumat'.watch('%s')"
                                                : "require 'lumat'.watch(%s)";
    status = repl_load_entry(L, lua_pushfstring(L, form, rest), &shown);
    if (status == LUA_OK)
        status = repl_call(L, 0);
    if (status == LUA_OK)
        print_watched(L);
    else if (status == LUMAT_INCOMPLETE)
        repl_complain(":watch takes a variable's name, or off");
    else
        repl_report_entry(L, 1);
    lua_settop(L, top);
}
