/* The help: lua/manual, loaded when it is first asked for, and what the
 * terminal tells it of its commands and options. */
#include "print.h"
#include "function.h"
#include "lumat.h"
#include "open.h"
#include "value.h"
#include "scope.h"

#include <ctype.h>
#include <string.h>

/* --- loading -------------------------------------------------------------- */

/* Pushes {{name, form, help}, …}; a heading has its name alone. */
static void push_rows(lua_State *L, const lumat_row *rows)
{
    lua_newtable(L);
    for (int i = 0; rows && rows[i].name; i++) {
        lua_createtable(L, 3, 0);
        lua_pushstring(L, rows[i].name);
        lua_rawseti(L, -2, 1);
        lua_pushstring(L, rows[i].form);
        lua_rawseti(L, -2, 2);
        lua_pushstring(L, rows[i].help);
        lua_rawseti(L, -2, 3);
        lua_rawseti(L, -2, i + 1);
    }
}

static void set_registered(lua_State *L, const char *key, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, name);
    lua_setfield(L, -2, key);
}

/* Runs a file of lua/manual with the table on top, in the globals as they
 * were at the start: whatever the user does to his, help is there. */
static void run_file(lua_State *L, const lumat_std *file)
{
    lua_pushfstring(L, "=%s", file->name);
    if (luaL_loadbufferx(L, file->text, file->length, lua_tostring(L, -1), "t"))
        lua_error(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base");
    lua_setupvalue(L, -2, 1);
    lua_pushvalue(L, -3);
    lua_call(L, 1, 0);
    lua_pop(L, 1);
}

static int is_in(const char *text, lumat_piece part)
{
    return text && memmem(text, strlen(text), part.start, part.length) != NULL;
}

/* Are all that stand in quotes among the kinds in what is said anyway? */
static int names_values(const lumat_option *option)
{
    lumat_piece rest = {option->kind, strlen(option->kind)}, one;
    while (lumat_next_kind(&rest, &one))
        if (*one.start == '"' && !is_in(option->help, one) &&
            !is_in(option->otherwise, one))
            return 0;
    return 1;
}

/* Pushes what the option does, and the values there are when it does not say.
 */
static void push_meaning(lua_State *L, const lumat_option *option)
{
    lumat_piece rest = {option->kind, strlen(option->kind)}, one;
    const char *before = "; one of ";
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, option->help);
    while (!names_values(option) && lumat_next_kind(&rest, &one)) {
        luaL_addstring(&b, before);
        luaL_addlstring(&b, one.start, one.length);
        before = ", ";
    }
    luaL_pushresult(&b);
}

/* Adds {name, what it does and what is taken else, is_common=} to the list on
 * top. */
static void add_option(void *data, const lumat_option *option)
{
    lua_State *L = data;
    lua_createtable(L, 2, 1);
    lua_pushstring(L, option->name);
    lua_rawseti(L, -2, 1);
    const char *otherwise = option->otherwise;
    push_meaning(L, option);
    if (otherwise) {
        int is_word = isalpha((unsigned char)*otherwise);
        lua_pushfstring(L, is_word ? "%s; else %s" : "%s (%s)",
                        lua_tostring(L, -1), otherwise);
        lua_remove(L, -2);
    }
    lua_rawseti(L, -2, 2);
    lua_pushboolean(L, lumat_is_common(option));
    lua_setfield(L, -2, "is_common");
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* options_of(name): a list of them, or nil. */
static int options_of(lua_State *L)
{
    const lumat_function *f = lumat_find_row(L, luaL_checkstring(L, 1));
    lua_newtable(L);
    if (f)
        lumat_each_option(f, add_option, L);
    if (lua_rawlen(L, -1) == 0)
        lua_pushnil(L);
    return 1;
}

/* distance(a, b): the edits between two words */
static int distance(lua_State *L)
{
    size_t n, m;
    const char *a = luaL_checklstring(L, 1, &n);
    const char *b = luaL_checklstring(L, 2, &m);
    lua_pushinteger(L, lumat_distance(a, n, b, m));
    return 1;
}

static void push_manual(lua_State *L)
{
    if (lua_getfield(L, LUA_REGISTRYINDEX, "lumat.manual") == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    push_rows(L, lumat_command_rows());
    lua_setfield(L, -2, "commands");
    push_rows(L, lumat_option_rows());
    lua_setfield(L, -2, "options");
    lua_pushliteral(L, LUMAT_VERSION);
    lua_setfield(L, -2, "version");
    lua_pushcfunction(L, options_of);
    lua_setfield(L, -2, "options_of");
    lua_pushcfunction(L, distance);
    lua_setfield(L, -2, "distance");
    set_registered(L, "help", "lumat.help");
    set_registered(L, "methods", "lumat.methods");
    for (const lumat_std *file = lumat_std_files; file->name; file++)
        if (file->when == LUMAT_FOR_HELP)
            run_file(L, file);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, "lumat.manual");
}

/* --- asking --------------------------------------------------------------- */

static void push_style(lua_State *L)
{
    lumat_style style = lumat_style_now(L);
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, style.width);
    lua_setfield(L, -2, "width");
    lua_pushinteger(L, style.height);
    lua_setfield(L, -2, "height");
    lua_pushboolean(L, style.ascii);
    lua_setfield(L, -2, "ascii");
}

/* Called protected: (function, what, value) -> text, found. */
static int ask(lua_State *L)
{
    push_manual(L);
    lua_getfield(L, -1, lua_tostring(L, 1));
    lua_pushvalue(L, 2);
    push_style(L);
    lua_pushvalue(L, 3);
    lua_call(L, 3, 2);
    return 2;
}

/* Pushes the text that a function of the manual gives; whether it is what was
 * asked for. */
static int push_answer(lua_State *L, const char *function, const char *what,
                       int value)
{
    lua_pushcfunction(L, ask);
    lua_pushstring(L, function);
    lua_pushstring(L, what);
    if (value)
        lua_pushvalue(L, value);
    else
        lua_pushnil(L);
    if (lua_pcall(L, 3, 2, 0) != LUA_OK)
        return 0;
    int found = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return found;
}

/* For lumat_push_instead: (word) -> text, or nothing. */
static int instead(lua_State *L)
{
    return push_answer(L, "instead", luaL_checkstring(L, 1), 0);
}

/* Pushes one line on a variable of the user's, or nil. */
static void push_variable(lua_State *L, const char *name)
{
    int top = lua_gettop(L);
    lumat_push_variable(L, name, strlen(name));
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base");
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    if (lua_isnil(L, -3) || lua_rawequal(L, -1, -3))
        lua_pushnil(L);
    else
        lumat_push_headline(L, -3);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

int lumat_push_help(lua_State *L, const char *topic)
{
    push_variable(L, topic ? topic : "");
    int found = push_answer(L, "explain", topic ? topic : "", lua_gettop(L));
    lua_remove(L, -2);
    return found;
}

void lumat_push_search(lua_State *L, const char *word)
{
    push_answer(L, "search", word, 0);
}

int lumat_push_manual(lua_State *L, const char *form)
{
    return push_answer(L, "whole", form, 0);
}

void lumat_open_help(lua_State *L)
{
    lua_pushcfunction(L, instead);
    lua_setfield(L, LUA_REGISTRYINDEX, "lumat.instead");
}
