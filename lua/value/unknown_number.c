/* Numbers that depend on elements which a dry run does not have. */
#include "value.h"

static const char kind[] = "lumat.unknown";

void lumat_push_unknown(lua_State *L, const char *from)
{
    lua_newuserdatauv(L, 0, 1);
    luaL_setmetatable(L, kind);
    lua_pushstring(L, from);
    lua_setiuservalue(L, -2, 1);
}

int lumat_push_unread(lua_State *L, const char *from)
{
    if (!gpu_is_dry())
        return 0;
    lumat_push_unknown(L, from);
    return 1;
}

int lumat_is_unknown(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TUSERDATA &&
           luaL_testudata(L, index, kind) != NULL;
}

int lumat_is_number(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TNUMBER || lumat_is_unknown(L, index);
}

/* Raises that what is done depends on the unknown number at index. */
static int raise_unknown(lua_State *L, int index)
{
    lua_getiuservalue(L, index, 1);
    return lumat_raise(
        L, "what is done depends on elements (%s): it has to be run",
        lua_tostring(L, -1));
}

void lumat_refuse_dry(lua_State *L, const char *name)
{
    if (gpu_is_dry())
        lumat_raise(L, "nothing is known of what %s costs", name);
}

/* --- arithmetic ----------------------------------------------------------- */

/* The place of the first unknown number among the arguments; 0: none. */
static int find_unknown(lua_State *L)
{
    for (int i = 1; i <= lua_gettop(L); i++)
        if (lumat_is_unknown(L, i))
            return i;
    return 0;
}

/* The event is upvalue 1: with a matrix, it is the matrix's. */
static int compute(lua_State *L)
{
    const char *event = lua_tostring(L, lua_upvalueindex(1));
    lua_settop(L, 2);
    for (int i = 1; i <= 2; i++) {
        int is_matrix = lumat_test_matrix(L, i) || lumat_look_at_sparse(L, i);
        if (!is_matrix || !luaL_getmetafield(L, i, event))
            continue;
        lua_insert(L, 1);
        lua_call(L, 2, 1);
        return 1;
    }
    lua_pushvalue(L, lumat_is_unknown(L, 1) ? 1 : 2);
    return 1;
}

static int compare(lua_State *L)
{
    return raise_unknown(L, find_unknown(L));
}

static int over_unknown(lua_State *L)
{
    int found = find_unknown(L);
    if (found) {
        lua_pushvalue(L, found);
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

void lumat_push_over_unknown(lua_State *L, int index)
{
    lua_pushvalue(L, index);
    lua_pushcclosure(L, over_unknown, 1);
}

lua_CFunction lumat_c_function(lua_State *L, int index)
{
    lua_CFunction f = lua_tocfunction(L, index);
    if (f != over_unknown)
        return f;
    lua_getupvalue(L, index, 1);
    f = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    return f;
}

static int as_text(lua_State *L)
{
    lua_pushliteral(L, "?");
    return 1;
}

static int concatenate(lua_State *L)
{
    for (int i = 1; i <= 2; i++)
        luaL_tolstring(L, i, NULL);
    lua_concat(L, 2);
    return 1;
}

void lumat_open_unknown(lua_State *L)
{
    static const char *const events[] = {"__add", "__sub", "__mul",  "__div",
                                         "__mod", "__pow", "__idiv", "__unm"};
    static const luaL_Reg others[] = {
        {"__lt", compare},       {"__le", compare},         {"__eq", compare},
        {"__tostring", as_text}, {"__concat", concatenate}, {NULL, NULL}};
    luaL_newmetatable(L, kind);
    luaL_setfuncs(L, others, 0);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        lua_pushstring(L, events[i]);
        lua_pushcclosure(L, compute, 1);
        lua_setfield(L, -2, events[i]);
    }
    lua_pushliteral(L, "number that depends on elements");
    lua_setfield(L, -2, "__name");
    lua_pushliteral(L, "number");
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
