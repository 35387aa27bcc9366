/* --strict: globals that were never set are no nil. */
#include "strict.h"
#include "parse.h"
#include "nearest_name.h"
#include "visible.h"

#include "lauxlib.h"
#include <stdio.h>
#include <string.h>

static const char meta_key; /* registry: the metatable of the globals */

/* Who reads or sets the global: 0 for C, which may look. */
static int find_caller(lua_State *L, lua_Debug *caller)
{
    return lua_getstack(L, 1, caller) && lua_getinfo(L, "Sl", caller) &&
           caller->currentline > 0;
}

static int is_entry(const lua_Debug *caller)
{
    return strcmp(caller->source, "=" LUMAT_CHUNK) == 0;
}

/* Upvalue: the names that were set. */
static int read_unset(lua_State *L)
{
    lua_Debug caller;
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL ||
        lua_type(L, 2) != LUA_TSTRING || !find_caller(L, &caller)) {
        lua_pushnil(L);
        return 1;
    }
    lumat_push_undefined(L, lua_tostring(L, 2), is_entry(&caller));
    return luaL_error(L, "%s", lua_tostring(L, -1));
}

/* At the prompt and at a file's top level this is how globals are made. */
static int is_slip(lua_State *L, lua_Debug *caller)
{
    return lua_type(L, 2) == LUA_TSTRING && find_caller(L, caller) &&
           strcmp(caller->what, "main") != 0 && !is_entry(caller);
}

static int set_new(lua_State *L)
{
    lua_Debug caller;
    lua_settop(L, 3);
    lua_pushvalue(L, 2);
    int is_new = lua_rawget(L, lua_upvalueindex(1)) == LUA_TNIL;
    lua_settop(L, 3);
    if (is_new && is_slip(L, &caller)) {
        const char *name = lua_tostring(L, 2);
        fflush(stdout);
        lumat_print_visible(
            stderr,
            "note: %s:%d: a function sets the new global '%s'; 'local %s' "
            "would keep it to itself\n",
            caller.short_src, caller.currentline, name, name);
    }
    lua_pushvalue(L, 2);
    lua_pushboolean(L, 1);
    lua_rawset(L, lua_upvalueindex(1));
    lua_rawset(L, 1);
    return 0;
}

void lumat_make_strict(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"__index", read_unset}, {"__newindex", set_new}, {NULL, NULL}};
    lua_pushglobaltable(L);
    lua_createtable(L, 0, 2);
    lua_newtable(L);
    luaL_setfuncs(L, methods, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &meta_key);
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

int lumat_is_strict(lua_State *L, int index)
{
    if (!lua_getmetatable(L, index))
        return 0;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
    int same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same;
}
