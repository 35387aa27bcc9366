/* The walk over the user's variables. */
#include "value.h"

#include "lauxlib.h"

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
