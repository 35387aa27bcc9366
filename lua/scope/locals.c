/* Locals that survive their entry, as variables that closures share. */
#include "locals.h"

#include "lauxlib.h"
#include <string.h>

/* Keys in the registry: cells by name, which of them are constant, and what
 * the mirror showed last. */
static const char cells_key, constants_key, shadow_key;

static void push_table(lua_State *L, const char *key)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
}

static void push_mirror(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session");
}

/* --- cells ---------------------------------------------------------------- */

/* Makes a cell of the value on top. */
static void push_cell(lua_State *L)
{
    luaL_loadstring(L, "local value = ... return function() return value end");
    lua_insert(L, -2);
    lua_call(L, 1, 1);
}

static void set_constant(lua_State *L, const char *name, int is_constant)
{
    push_table(L, &constants_key);
    if (is_constant)
        lua_pushboolean(L, 1);
    else
        lua_pushnil(L);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

int lumat_keep_local(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 3);
    set_constant(L, name, lua_toboolean(L, 3));
    push_table(L, &cells_key);
    if (lua_getupvalue(L, 2, 1)) {
        lua_pushvalue(L, 2);
        lua_replace(L, -2);
    } else {
        lua_pushvalue(L, 2);
        lua_call(L, 0, 1);
        push_cell(L);
    }
    lua_setfield(L, 4, name);
    return 0;
}

int lumat_push_local(lua_State *L, const char *name, size_t length)
{
    push_table(L, &cells_key);
    lua_pushlstring(L, name, length);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    return !lua_isnil(L, -1);
}

int lumat_is_constant(lua_State *L, const char *name)
{
    push_table(L, &constants_key);
    int found = lua_getfield(L, -1, name) != LUA_TNIL;
    lua_pop(L, 2);
    return found;
}

/* --- the mirror ----------------------------------------------------------- */

/* Sets the local whose name is at `name` to the value on top; pops it. */
static void set_local(lua_State *L, int name)
{
    push_table(L, &cells_key);
    lua_pushvalue(L, name);
    if (lua_rawget(L, -2) == LUA_TFUNCTION) {
        lua_pushvalue(L, -3);
        lua_setupvalue(L, -2, 1);
    } else {
        lua_pushvalue(L, name);
        lua_pushvalue(L, -4);
        push_cell(L);
        lua_rawset(L, -4);
    }
    lua_pop(L, 3);
}

/* The values of the table at `from` that the one at `to` has otherwise: calls
 * each with the name and the value on top, which it pops. */
static void each_difference(lua_State *L, int from, int to,
                            void (*each)(lua_State *, int name))
{
    for (lua_pushnil(L); lua_next(L, from);) {
        int name = lua_gettop(L) - 1;
        lua_pushvalue(L, name);
        lua_rawget(L, to);
        int same = lua_rawequal(L, -1, -2);
        lua_pop(L, 1);
        if (same || lua_type(L, name) != LUA_TSTRING)
            lua_pop(L, 1);
        else
            each(L, name);
    }
}

/* Forgets the local with the name, unless it has only another value now. */
static void drop_if_gone(lua_State *L, int name)
{
    push_mirror(L);
    lua_pushvalue(L, name);
    int gone = lua_rawget(L, -2) == LUA_TNIL;
    lua_pop(L, 3);
    if (!gone)
        return;
    set_constant(L, lua_tostring(L, name), 0);
    push_table(L, &cells_key);
    lua_pushvalue(L, name);
    lua_pushnil(L);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

void lumat_adopt_locals(lua_State *L)
{
    push_mirror(L);
    push_table(L, &shadow_key);
    int top = lua_gettop(L);
    each_difference(L, top, top - 1, drop_if_gone);
    each_difference(L, top - 1, top, set_local);
    lua_settop(L, top - 2);
}

/* Empties the table on top, and pops it. */
static void empty(lua_State *L)
{
    for (lua_pushnil(L); lua_next(L, -2);) {
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        lua_pushnil(L);
        lua_rawset(L, -4);
    }
    lua_pop(L, 1);
}

void lumat_hide_locals(lua_State *L)
{
    lumat_adopt_locals(L);
    push_mirror(L);
    empty(L);
    push_table(L, &shadow_key);
    empty(L);
}

/* The mirror first: should memory run out between the two, the value is
 * taken for a new one, not for a local that was dropped. */
void lumat_refresh_locals(lua_State *L)
{
    lumat_adopt_locals(L);
    push_table(L, &cells_key);
    push_mirror(L);
    push_table(L, &shadow_key);
    int cells = lua_gettop(L) - 2, mirror = cells + 1, shadow = cells + 2;
    for (lua_pushnil(L); lua_next(L, cells); lua_pop(L, 2)) {
        lua_getupvalue(L, -1, 1);
        for (int table = mirror; table <= shadow; table++) {
            lua_pushvalue(L, -3);
            lua_pushvalue(L, -2);
            lua_rawset(L, table);
        }
    }
    lua_settop(L, cells - 1);
}

/* --- opening -------------------------------------------------------------- */

static void set_table(lua_State *L, const char *key)
{
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

void lumat_open_locals(lua_State *L)
{
    set_table(L, &cells_key);
    set_table(L, &constants_key);
    set_table(L, &shadow_key);
}
