/* What messages call a value: a matrix is no "userdata", in those of Lua's own
 * library neither. */
#include "registry.h"
#include "visible.h"

#include "lualib.h"
#include <string.h>

/* By the name in its metatable, as Lua's own messages do, but for those that
 * say nothing to a user. */
const char *lumat_kind_of(lua_State *L, int index)
{
    if (!lua_isuserdata(L, index))
        return luaL_typename(L, index);
    const char *name = "value of a library";
    if (luaL_getmetafield(L, index, "__name") != LUA_TNIL) {
        if (lua_type(L, -1) == LUA_TSTRING)
            name = lua_tostring(L, -1); /* the metatable keeps it */
        lua_pop(L, 1);
    }
    return strcmp(name, LUA_FILEHANDLE) == 0 ? "file" : name;
}

/* --- Lua's own messages ------------------------------------------------- */

static const char *const events[] = {"__add", "__sub",  "__mul", "__mod",
                                     "__pow", "__idiv", "__div", "__unm"};

/* Arithmetic of a string and a value that has none. Upvalues: Lua's own for
 * strings, and the event. */
static int compute_with_string(lua_State *L)
{
    const char *event = lua_tostring(L, lua_upvalueindex(2));
    for (int i = 1; i <= 2; i++)
        if (lua_isuserdata(L, i) && !luaL_getmetafield(L, i, event))
            return luaL_error(L, "attempt to %s a '%s' with a '%s'", event + 2,
                              lumat_kind_of(L, 1), lumat_kind_of(L, 2));
    lua_settop(L, 2);
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

void lumat_open_kinds(lua_State *L)
{
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        lua_getfield(L, -1, events[i]);
        lua_pushstring(L, events[i]);
        lua_pushcclosure(L, compute_with_string, 2);
        lua_setfield(L, -2, events[i]);
    }
    lua_pop(L, 2);
}
