/* a, b = f(…) where the library's f gives fewer results than there are names:
 * Lua sets the rest to nil without a word. By the rows of functions. */
#include "function.h"
#include "known_value.h"
#include "parse.h"
#include "remarks.h"

#include <string.h>

/* --- the statement ----------------------------------------------------------
 */

/* May a statement begin behind token i? */
static int ends_statement(const lumat_tokens *t, int i)
{
    int kind = lumat_kind_at(t, i);
    return i < 0 || kind == LUMAT_NAME || kind == LUMAT_NUMBER ||
           kind == LUMAT_STRING || kind == LUMAT_KEYWORD || kind == ')' ||
           kind == ']' || kind == '}' || kind == ';';
}

/* The names in front of the = at token `sign`, all of them plain; 0 when there
 * are others, or no =, or they stand in a table. */
static int count_names(const lumat_tokens *t, int sign)
{
    int count = 0, i = sign - 1;
    if (!lumat_at(t, sign, "="))
        return 0;
    for (; lumat_kind_at(t, i) == LUMAT_NAME; i -= 2) {
        count++;
        if (lumat_kind_at(t, i - 1) != ',')
            return ends_statement(t, i - 1) ? count : 0;
    }
    return 0;
}

/* Does an expression go on behind token i? */
static int goes_on(const lumat_tokens *t, int i)
{
    int kind = lumat_kind_at(t, i);
    return kind == ',' || kind == '.' || kind == ':' || kind == '(' ||
           kind == '[' || kind == '{' || kind == LUMAT_STRING ||
           lumat_is_binary(t, i) || lumat_at(t, i, "and") ||
           lumat_at(t, i, "or");
}

int lumat_find_assigned_call(const lumat_tokens *t, int i,
                             lumat_assigned_call *call)
{
    *call = (lumat_assigned_call){.name = i, .open = i + 1};
    call->is_method = lumat_kind_at(t, i - 1) == ':';
    if (lumat_kind_at(t, i) != LUMAT_NAME || lumat_kind_at(t, i + 1) != '(' ||
        t->list[i + 1].match < 0)
        return 0;
    call->first = call->is_method ? lumat_chain_start(t, i - 1) : i;
    call->sign = call->first - 1;
    call->names = count_names(t, call->sign);
    return call->names > 1 && !goes_on(t, t->list[i + 1].match + 1);
}

/* --- its results ------------------------------------------------------------
 */

/* Is the option in the arguments, or may it be in a variable at their end? */
static int has_option(const lumat_tokens *t, int open, int close,
                      lumat_piece option)
{
    for (int i = open + 1; i < close; i++) {
        const lumat_token *n = &t->list[i];
        if (n->kind == LUMAT_NAME && n->end - n->start == option.length &&
            memcmp(t->text + n->start, option.start, option.length) == 0)
            return 1;
    }
    return lumat_kind_at(t, close - 1) == LUMAT_NAME &&
           lumat_kind_at(t, close - 2) == ',';
}

/* How many results there are, where it is certain: not when options that would
 * give more may come in a variable. */
static int count_results(const lumat_tokens *t, const lumat_function *f,
                         const lumat_assigned_call *call)
{
    lumat_piece with = {"", 0};
    int plain = lumat_count_results(f, &with);
    int close = t->list[call->open].match, most = lumat_most_results(f);
    if (most == plain || with.length == 0)
        return most;
    if (lumat_find_option(f, with.start, with.length))
        return has_option(t, call->open, close, with) ? most : plain;
    int given = lumat_count_arguments(t, call->open, close) + call->is_method;
    return given >= lumat_place_of(f, with) ? most : plain;
}

/* "one result; with {places=…} it gives 2" */
static void push_results(lua_State *L, const lumat_function *f, int results)
{
    lumat_piece with = {"", 0};
    int plain = lumat_count_results(f, &with), most = lumat_most_results(f);
    if (results == 0)
        lua_pushliteral(L, "no result");
    else if (results == 1)
        lua_pushliteral(L, "one result");
    else
        lua_pushfstring(L, "%d results", results);
    if (results != plain || most <= plain || with.length == 0)
        return;
    const char *name = lua_pushlstring(L, with.start, with.length);
    int is_option = lumat_find_option(f, with.start, with.length) != NULL;
    lua_pushfstring(
        L, is_option ? "; with {%s=true} it gives %d" : "; with %s it gives %d",
        name, most);
    lua_remove(L, -2);
    lua_concat(L, 2);
}

int lumat_push_fewer_results(lua_State *L, const lumat_tokens *t,
                             const lumat_function *f,
                             const lumat_assigned_call *call)
{
    int results = count_results(t, f, call);
    if (results >= call->names)
        return 0;
    push_results(L, f, results);
    lua_pushfstring(L, "%s gives %s", f->name, lua_tostring(L, -1));
    lua_remove(L, -2);
    return 1;
}

/* --- before anything runs ---------------------------------------------------
 */

/* May the text set the name, or name a parameter or local so? */
static int may_set(const lumat_tokens *t, const lumat_token *name)
{
    size_t length = name->end - name->start;
    for (int i = 0; i < t->count; i++) {
        const lumat_token *n = &t->list[i];
        if (n->kind != LUMAT_NAME || n->end - n->start != length ||
            memcmp(t->text + n->start, t->text + name->start, length) != 0)
            continue;
        int before = lumat_kind_at(t, i - 1);
        if (before != '.' && before != ':' && lumat_kind_at(t, i + 1) != '(')
            return 1;
        if (lumat_at(t, i - 1, "function"))
            return 1;
    }
    return 0;
}

/* The library's function of the name, if that is what it stands for. */
static const lumat_function *function_of(lua_State *L, const lumat_tokens *t,
                                         const lumat_assigned_call *call)
{
    const lumat_token *name = &t->list[call->name];
    if (call->is_method || may_set(t, name))
        return NULL;
    lumat_push_variable(L, t->text + name->start, name->end - name->start);
    const char *found = lumat_library_name(L);
    lua_pop(L, 1);
    return found ? lumat_find_row(L, found) : NULL;
}

int lumat_push_missing_result(lua_State *L, const lumat_tokens *t)
{
    int top = lua_gettop(L);
    lumat_assigned_call call;
    for (int i = 0; i < t->count; i++) {
        if (!lumat_find_assigned_call(t, i, &call))
            continue;
        const lumat_function *f = function_of(L, t, &call);
        if (!f || !lumat_push_fewer_results(L, t, f, &call))
            continue;
        lua_pushfstring(L, "%d names are set, but %s", call.names,
                        lua_tostring(L, -1));
        lua_replace(L, top + 1);
        lua_settop(L, top + 1);
        return t->list[i].line;
    }
    lua_settop(L, top);
    return 0;
}
