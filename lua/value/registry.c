/* Lua's registry: the library's tables, the part written in Lua that fills
 * them, fields of tables, what the terminal told of its commands, and which
 * variables are the user's. */
#include "value.h"

#include "lualib.h"
#include <string.h>

static const char *const tables[] = {"lumat.functions", "lumat.methods",
                                     "lumat.help", "lumat.session",
                                     "lumat.sparse_methods"};

void lumat_open_library(lua_State *L)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        lua_newtable(L);
        lua_setfield(L, LUA_REGISTRYINDEX, tables[i]);
    }
}

/* --- the part written in Lua ---------------------------------------------- */

/* Calls a file with the library, the methods, the help and what scripts must
 * not have. */
static void run_file(lua_State *L, const lumat_std *s)
{
    lua_pushfstring(L, "=%s", s->name);
    if (luaL_loadbufferx(L, s->text, s->length, lua_tostring(L, -1), "t"))
        lua_error(L);
    lua_remove(L, -2);
    if (s->when == LUMAT_WHEN_REQUIRED) {
        /* Whatever the user did to his globals, those of the start serve. */
        lua_getfield(L, LUA_REGISTRYINDEX, "lumat.environment");
        lua_setupvalue(L, -2, 1);
    }
    for (int i = 0; i < 3; i++)
        lua_getfield(L, LUA_REGISTRYINDEX, tables[i]);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.private");
    lua_call(L, 4, 1);
}

/* Upvalue: a file. */
static int run_required(lua_State *L)
{
    run_file(L, lua_touserdata(L, lua_upvalueindex(1)));
    return 1;
}

/* What few sessions use costs nothing before: require "lumat.NAME". */
static void set_required(lua_State *L, const lumat_std *s)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushfstring(L, "lumat.%s", s->name);
    lua_pushlightuserdata(L, (void *)s);
    lua_pushcclosure(L, run_required, 1);
    lua_settable(L, -3);
    lua_pop(L, 1);
}

/* private.files: the names of all of them, for errors that hide them. */
static void name_files(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.private");
    lua_newtable(L);
    for (const lumat_std *s = lumat_std_files; s->name; s++) {
        lua_pushboolean(L, 1);
        lua_setfield(L, -2, s->name);
    }
    lua_setfield(L, -2, "files");
    lua_pop(L, 1);
}

/* Each file adds to what it is called with. What is run at the start is
 * required, too: so those that others need come first. */
void lumat_open_std(lua_State *L)
{
    const lumat_std *s;
    name_files(L);
    for (s = lumat_std_files; s->name; s++)
        if (s->when != LUMAT_FOR_HELP)
            set_required(L, s);
    for (s = lumat_std_files; s->name; s++) {
        if (s->when != LUMAT_AT_START)
            continue;
        lua_getglobal(L, "require");
        lua_pushfstring(L, "lumat.%s", s->name);
        lua_call(L, 1, 0);
    }
}

/* "name name name" of a table's keys, for suggestions. */
static void push_names(lua_State *L, const char *table)
{
    luaL_Buffer b;
    lua_getfield(L, LUA_REGISTRYINDEX, table);
    int t = lua_gettop(L);
    lua_newtable(L);
    int i = 0;
    for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_rawseti(L, t + 1, ++i);
    }
    luaL_buffinit(L, &b);
    for (int k = 1; k <= i; k++) {
        lua_rawgeti(L, t + 1, k);
        luaL_addvalue(&b);
        luaL_addchar(&b, ' ');
    }
    luaL_pushresult(&b);
    lua_replace(L, t);
    lua_settop(L, t);
}

static int is_load(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TSTRING &&
           strcmp(lua_tostring(L, index), "load") == 0;
}

/* The library's names become globals, but for `load`, which joins Lua's own;
 * every name there now is lumat's. */
void lumat_close_library(lua_State *L)
{
    push_names(L, "lumat.methods");
    lua_setfield(L, LUA_REGISTRYINDEX, "lumat.method_names");
    push_names(L, "lumat.sparse_methods");
    lua_setfield(L, LUA_REGISTRYINDEX, "lumat.sparse_method_names");
    lua_pushglobaltable(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (is_load(L, -2))
            continue;
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_settable(L, -6);
    }
    lua_pop(L, 2);
}

/* Pushes a copy of the table at index. */
static void push_copy(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, index);) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
}

void lumat_copy_globals(lua_State *L, const char *name)
{
    lua_pushglobaltable(L);
    push_copy(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, name);
    lua_pop(L, 1);
}

void lumat_copy_libraries(lua_State *L, const char *name)
{
    static const char *const libraries[] = {"string", "table", "math",
                                            "utf8",   "os",    "coroutine"};
    lua_getfield(L, LUA_REGISTRYINDEX, name);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        lua_getfield(L, -1, libraries[i]);
        push_copy(L, -1);
        lua_setfield(L, -3, libraries[i]);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void lumat_push_required(lua_State *L, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.environment");
    lua_getfield(L, -1, "require");
    lua_replace(L, -2);
    lua_pushfstring(L, "lumat.%s", name);
    lua_call(L, 1, 1);
}

/* --- fields --------------------------------------------------------------- */

void lumat_set_number(lua_State *L, const char *key, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

void lumat_set_truth(lua_State *L, const char *key, int is_so)
{
    lua_pushboolean(L, is_so);
    lua_setfield(L, -2, key);
}

void lumat_set_required(lua_State *L, const char *name)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushfstring(L, "lumat.%s", name);
    lua_rotate(L, -3, -1);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

void lumat_set_private(lua_State *L, const char *name)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, "lumat.private");
    lua_insert(L, -2);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

void lumat_open_closing(lua_State *L, const char *name, lua_CFunction close)
{
    luaL_newmetatable(L, name);
    lua_pushcfunction(L, close);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__gc");
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
}

void lumat_set_count(lua_State *L, const char *key, uint64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

/* --- the commands and options that the terminal told of ------------------- */

static const lumat_row *command_rows, *option_rows;

void lumat_describe(const lumat_row *commands, const lumat_row *options)
{
    command_rows = commands;
    option_rows = options;
}

const lumat_row *lumat_command_rows(void)
{
    return command_rows;
}

const lumat_row *lumat_option_rows(void)
{
    return option_rows;
}

/* Headings have no form. */
int lumat_is_command(const char *name, size_t length)
{
    for (const lumat_row *row = command_rows; row && row->name; row++)
        if (row->form && strlen(row->name) == length &&
            memcmp(row->name, name, length) == 0)
            return 1;
    return 0;
}

/* The manual knows those words; help.c sets the function that asks it. */
const char *lumat_push_instead(lua_State *L, const char *word)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.instead");
    lua_pushstring(L, word);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_isstring(L, -1))
        return lua_tostring(L, -1);
    lua_pop(L, 1);
    lua_pushnil(L);
    return NULL;
}

/* --- the user's variables ------------------------------------------------- */

/* Where its tables and its key are on the stack, from the first on. */
enum { BASE, LOCALS, GLOBALS, NAME, VALUE };

lumat_variables lumat_begin_variables(lua_State *L, int options)
{
    lumat_variables v = {
        .L = L, .options = options, .tables = lua_gettop(L) + 1, .at = LOCALS};
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base");
    if (lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session") != LUA_TTABLE) {
        lua_pop(L, 1); /* debug.getregistry() is everybody's */
        lua_newtable(L);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    lua_pushnil(L);
    v.has_locals = lua_next(L, v.tables + LOCALS);
    lua_settop(L, v.tables + GLOBALS);
    lua_pushnil(L);
    return v;
}

/* The value that the table has by the name at hand, which is pushed. */
static int push_of(const lumat_variables *v, int table)
{
    lua_pushvalue(v->L, v->tables + NAME);
    return lua_rawget(v->L, v->tables + table);
}

int lumat_is_library_variable(const lumat_variables *v)
{
    lua_State *L = v->L;
    if (v->is_local || !lua_istable(L, v->tables + BASE)) /* being opened */
        return 0;
    push_of(v, BASE);
    int same = lua_rawequal(L, -1, v->tables + VALUE);
    lua_pop(L, 1);
    return same;
}

static int is_hidden(const lumat_variables *v)
{
    if (v->is_local || !v->has_locals)
        return 0;
    int hidden = push_of(v, LOCALS) != LUA_TNIL;
    lua_pop(v->L, 1);
    return hidden;
}

static int is_wanted(lumat_variables *v)
{
    if (lua_type(v->L, v->tables + NAME) != LUA_TSTRING)
        return 0;
    v->name = lua_tostring(v->L, v->tables + NAME);
    v->is_local = v->at == LOCALS;
    return (v->options & LUMAT_WITH_LIBRARY || !lumat_is_library_variable(v)) &&
           (v->options & LUMAT_WITH_HIDDEN || !is_hidden(v));
}

int lumat_next_variable(lumat_variables *v)
{
    for (; v->at <= GLOBALS; v->at++) {
        lua_settop(v->L, v->tables + NAME);
        while (lua_next(v->L, v->tables + v->at)) {
            if (is_wanted(v))
                return 1;
            lua_settop(v->L, v->tables + NAME);
        }
        lua_pushnil(v->L);
    }
    lua_settop(v->L, v->tables - 1);
    return 0;
}
