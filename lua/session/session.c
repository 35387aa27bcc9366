/* What a prompt needs: compiling entries whose locals survive, calling them
 * so that they can be stopped, and telling what they changed. */
#include "session.h"
#include "cancellation.h"
#include "parse.h"
#include "diagnose.h"
#include "scope.h"
#include "completion.h"
#include "measure.h"
#include "print.h"
#include "value.h"

#include "lualib.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Registry: values before the last entry; where its error came from. */
static const char before_key, traceback_key;

/* The function that lumat_load gave last. */
static const void *entry;

/* --- compiling ------------------------------------------------------------ */

static int is_incomplete(lua_State *L, int status)
{
    return status == LUA_ERRSYNTAX &&
           lumat_find_said(lua_tostring(L, -1), LUMAT_LUA_UNFINISHED);
}

static int compile(lua_State *L, const char *text, size_t length)
{
    return luaL_loadbufferx(L, text, length, "=" LUMAT_CHUNK, "t");
}

/* Does the message on top tell of a limit that parts of the text may keep? */
static int is_over_limit(lua_State *L)
{
    const char *message = lua_tostring(L, -1);
    return lumat_find_said(message, LUMAT_LUA_MANY_LOCALS) ||
           lumat_find_said(message, LUMAT_LUA_MANY_REGISTERS);
}

/* Replaces the message on top: Lua takes the expression for the beginning of
 * an assignment, which nobody goes on with in the next row. */
static void refuse_expression(lua_State *L, const lumat_tokens *t, int first)
{
    const char *word = lumat_push_token(L, t, first);
    lua_pushfstring(L,
                    LUMAT_CHUNK ":%d: syntax error near '%s'\n  a ; or a new "
                                "row belongs before %s, or an operator",
                    t->list[first].line, word, word);
    lua_replace(L, -3);
    lua_pop(L, 1);
}

/* With --strict names that are sure to become nil are an error; replaces the
 * function on top by what is wrong. */
static int refuse_missing_results(lua_State *L, const lumat_tokens *t)
{
    int function = lua_gettop(L);
    int line = lumat_is_strict(L) ? lumat_push_missing_result(L, t) : 0;
    if (line == 0)
        return LUA_OK;
    if (memchr(t->text, '\n', t->length))
        lua_pushfstring(L, "line %d: %s", line, lua_tostring(L, -1));
    lua_replace(L, function);
    lua_settop(L, function);
    return LUA_ERRRUN;
}

int lumat_check_script(lua_State *L, const char *name, const char *text,
                       size_t length)
{
    int function = lua_gettop(L), line;
    if (!lumat_is_strict(L))
        return LUA_OK;
    line = lumat_push_missing_result(L, lumat_push_tokens(L, text, length));
    if (line > 0) {
        lua_pushfstring(L, "%s:%d: %s", name, line, lua_tostring(L, -1));
        lua_replace(L, function);
    }
    lua_settop(L, function);
    return line > 0 ? LUA_ERRSYNTAX : LUA_OK;
}

/* Puts the tokens of the code at the index in its place: those of the entry at
 * the index before it, when that is compiled as it stands. */
static const lumat_tokens *cut_code(lua_State *L, int index)
{
    const lumat_tokens *text = lua_touserdata(L, index - 1);
    size_t length;
    const char *code = lua_tolstring(L, index, &length);
    if (length == text->length && memcmp(code, text->text, length) == 0)
        lua_pushvalue(L, index - 1);
    else
        lumat_push_tokens(L, code, length);
    lua_replace(L, index);
    return lua_touserdata(L, index);
}

/* The code is at the index, the tokens of the entry it was made of before it:
 * pushes its function, which may run it in parts, and puts its tokens at the
 * index; or pushes a message. */
static int compile_code(lua_State *L, int index)
{
    size_t length;
    const char *code = lua_tolstring(L, index, &length);
    int status = compile(L, code, length), parted = LUMAT_ONE_PART;
    if (status != LUA_OK && !is_over_limit(L))
        return status;
    const lumat_tokens *t = cut_code(L, index);
    if (status != LUA_OK)
        parted = lumat_load_parts(L, t);
    return parted == LUMAT_ONE_PART ? status : parted;
}

/* Makes the function on top, compiled from the code, which was made of the
 * entry's text, one of the session, unless names in it have no value: then a
 * message is on top. */
static int prepare(lua_State *L, const lumat_tokens *code,
                   const lumat_tokens *text)
{
    int status = lumat_check_names(L, code);
    if (status == LUA_OK)
        status = refuse_missing_results(L, text);
    if (status == LUA_OK)
        lumat_find_unset(L, code);
    if (status == LUA_OK)
        lumat_find_misread(L, text->text, text->length);
    if (status == LUA_OK && !lua_iscfunction(L, -1))
        status = lumat_join_locals(L, code);
    if (status == LUA_ERRSYNTAX)
        lumat_explain_syntax(L, text->text, text->length);
    entry = status == LUA_OK ? lua_topointer(L, -1) : NULL;
    return status;
}

int lumat_load(lua_State *L, const char *text, size_t length, int *shown)
{
    int top = lua_gettop(L), status;
    luaL_checkstack(L, 2 * LUA_MINSTACK, NULL);
    lumat_adopt_locals(L);
    const lumat_tokens *t = lumat_push_tokens(L, text, length);
    lumat_echoes echoes = lumat_push_echoing(L, top + 1);
    *shown = echoes.shown;
    status = compile_code(L, top + 2);
    if (status == LUA_OK) {
        lumat_note_silenced(L, t);
        lumat_find_remarks(L, top + 1);
        status = prepare(L, lua_touserdata(L, top + 2), t);
    } else if (!is_incomplete(L, status) || t->open == LUMAT_OPEN_IN_LINE) {
        lumat_explain_syntax(L, text, length);
        lumat_explain_rows(L);
    } else if (echoes.refused >= 0) {
        refuse_expression(L, t, echoes.refused);
    } else {
        lumat_push_open_construct(L, t);
        status = LUMAT_INCOMPLETE;
    }
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return status;
}

/* --- what changed --------------------------------------------------------- */

/* Pushes the variables by name; the prompt's locals hide globals. */
static int push_variables(lua_State *L)
{
    lua_newtable(L);
    int all = lua_gettop(L);
    lumat_variables v = lumat_begin_variables(L, LUMAT_WITH_LIBRARY);
    while (lumat_next_variable(&v)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, all);
    }
    return all;
}

/* Weakly: what an entry lets go must not be kept alive by this. */
static void remember_variables(lua_State *L)
{
    push_variables(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &before_key);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int is_nan(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TNUMBER && isnan(lua_tonumber(L, index));
}

static int is_shown(lua_State *L, int before)
{
    if (lua_type(L, -2) != LUA_TSTRING || lua_isfunction(L, -1))
        return 0;
    const char *name = lua_tostring(L, -2);
    if (strcmp(name, "ans") == 0 || strcmp(name, "_ENV") == 0 ||
        lumat_is_silenced(L, name))
        return 0;
    lua_pushvalue(L, -2);
    lua_rawget(L, before);
    int same = lua_rawequal(L, -1, -2) || (is_nan(L, -1) && is_nan(L, -2));
    lua_pop(L, 1);
    return !same;
}

void lumat_each_change(lua_State *L, lumat_name_fn *each, void *data)
{
    int top = lua_gettop(L), all = push_variables(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &before_key) != LUA_TTABLE) {
        lua_settop(L, top);
        return;
    }
    lua_newtable(L);
    int changed = all + 2, n = 0;
    for (lua_pushnil(L); lua_next(L, all); lua_pop(L, 1)) {
        if (!is_shown(L, all + 1))
            continue;
        lua_pushvalue(L, -2);
        lua_rawseti(L, changed, ++n);
    }
    const char **names = lua_newuserdatauv(L, (size_t)n * sizeof *names, 0);
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, changed, i + 1);
        names[i] = lua_tostring(L, -1); /* the table keeps it alive */
        lua_pop(L, 1);
    }
    if (n > 0)
        qsort(names, (size_t)n, sizeof *names, by_name);
    for (int i = 0; i < n; i++) {
        lua_getfield(L, all, names[i]);
        lumat_push_headline(L, -1);
        each(data, names[i], lua_tostring(L, -1));
        lua_pop(L, 2);
    }
    lua_settop(L, top);
}

/* --- calling -------------------------------------------------------------- */

/* A message handler: leaves the error value as it is. */
static int keep_traceback(lua_State *L)
{
    lumat_push_traceback(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &traceback_key);
    lua_settop(L, 1);
    return 1;
}

const char *lumat_push_last_traceback(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &traceback_key);
    return lua_tostring(L, -1);
}

/* Errors of work issued earlier appear under the line that caused it. */
static int settle_recent(lua_State *L)
{
    lumat_try(L, gpu_settle_recent());
    return 0;
}

static int wait_for_devices(lua_State *L)
{
    lumat_try(L, gpu_sync_all());
    return 0;
}

/* What ends a call that went well, whose results stand from an index on: they
 * stay, or its error takes their place. */
static int end_call(lua_State *L, int status, lua_CFunction end, int results)
{
    if (status != LUA_OK)
        return status;
    lua_pushcfunction(L, end);
    status = lua_pcall(L, 0, 0, 0);
    if (status == LUA_OK)
        return status;
    lua_insert(L, results);
    lua_settop(L, results);
    return status;
}

int lumat_call(lua_State *L, int nargs)
{
    int function = lua_gettop(L) - nargs;
    int is_entry = entry && lua_topointer(L, function) == entry;
    lumat_begin_stoppable(L);
    if (is_entry)
        remember_variables(L);
    lumat_hide_locals(L);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &traceback_key);
    lua_pushcfunction(L, keep_traceback);
    lua_insert(L, function);
    int status = lua_pcall(L, nargs, LUA_MULTRET, function);
    status = end_call(L, status, settle_recent, function + 1);
    if (status != LUA_OK)
        gpu_leave_waiting();
    lumat_end_stoppable(L);
    lumat_stop_watch();
    lua_remove(L, function);
    status = lumat_explain_stopped(L, status);
    if (status == LUA_ERRRUN)
        lumat_explain_error(L, is_entry);
    if (status == LUA_ERRRUN && is_entry)
        lumat_explain_rows(L);
    status = end_call(L, status, wait_for_devices, function);
    if (lua_checkstack(L, LUA_MINSTACK))
        lumat_refresh_locals(L);
    gpu_clear_interrupt();
    return status;
}

void lumat_set_ans(lua_State *L, int index)
{
    lua_pushvalue(L, index);
    lua_setglobal(L, "ans");
}

/* --- opening -------------------------------------------------------------- */

void lumat_open_session(lua_State *L)
{
    lumat_open_stopping(L);
    lumat_open_locals(L);
}

/* --- exit codes ----------------------------------------------------------- */

/* Is it the message of gpu/'s last failure, which was noted with its status? */
static int is_last_failure(lua_State *L, const char *text)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.message");
    const char *message = lua_tostring(L, -1);
    int same = message && *message && strstr(text, message);
    lua_pop(L, 1);
    return same;
}

int lumat_exit_code(lua_State *L, int index)
{
    const char *text = lua_tostring(L, index);
    if (!text)
        return 1;
    if (lumat_was_stopped())
        return 130;
    const char *rest = lumat_behind_said(text, LUMAT_LUA_NO_MEMORY);
    if (rest && !*rest)
        return 4;
    if (!is_last_failure(L, text))
        return 1;
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.status");
    int status = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return status == GPU_MEMORY        ? 4
           : status == GPU_DEVICE      ? 3
           : status == GPU_LOST        ? 3
           : status == GPU_INTERRUPTED ? 130
                                       : 1;
}
