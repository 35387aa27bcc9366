/* Values as texts: with --safe none tells an address. */
#include "fence.h"
#include "visible.h"

#include "lauxlib.h"
#include "lualib.h"

/* Registry: object -> its number, weak keys; and how many there were. */
static const char numbers_key;
static lua_Integer last_number;

/* Pushes "table: 12": the number is the object's own. */
static void push_numbered(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    const char *kind = luaL_getmetafield(L, index, "__name") == LUA_TSTRING
                           ? lua_tostring(L, -1)
                           : luaL_typename(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &numbers_key);
    lua_pushvalue(L, index);
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushinteger(L, ++last_number);
        lua_pushvalue(L, index);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    lua_pushfstring(L, "%s: %I", kind, (LUAI_UACINT)lua_tointeger(L, -1));
}

/* Would Lua's tostring give the address? */
static int has_address(lua_State *L, int index)
{
    switch (lua_type(L, index)) {
    case LUA_TNIL:
    case LUA_TBOOLEAN:
    case LUA_TNUMBER:
    case LUA_TSTRING:
        return 0;
    default:
        if (luaL_getmetafield(L, index, "__tostring") == LUA_TNIL)
            return 1;
        lua_pop(L, 1);
        return 0;
    }
}

const char *lumat_tolstring(lua_State *L, int index, size_t *length)
{
    if (!lumat_is_safe() || !has_address(L, index))
        return luaL_tolstring(L, index, length);
    int top = lua_gettop(L);
    push_numbered(L, index);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return lua_tolstring(L, -1, length);
}

static int to_string(lua_State *L)
{
    luaL_checkany(L, 1);
    lumat_tolstring(L, 1, NULL);
    return 1;
}

/* Upvalue: Lua's print. */
static int print_numbered(lua_State *L)
{
    for (int i = 1; i <= lua_gettop(L); i++) {
        if (!has_address(L, i))
            continue;
        lumat_tolstring(L, i, NULL);
        lua_replace(L, i);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

static int file_to_string(lua_State *L)
{
    luaL_Stream *s = luaL_checkudata(L, 1, LUA_FILEHANDLE);
    lua_pushstring(L, s->closef ? "file" : "file (closed)");
    return 1;
}

void lumat_hide_addresses(lua_State *L)
{
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &numbers_key);
    lua_pushglobaltable(L);
    lua_pushcfunction(L, to_string);
    lua_setfield(L, -2, "tostring");
    lua_getfield(L, -1, "print");
    lua_pushcclosure(L, print_numbered, 1);
    lua_setfield(L, -2, "print");
    lua_pop(L, 1);
    luaL_getmetatable(L, LUA_FILEHANDLE);
    lua_pushcfunction(L, file_to_string);
    lua_setfield(L, -2, "__tostring");
    lua_pop(L, 1);
}
