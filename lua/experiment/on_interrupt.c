/* What is left to do once Ctrl-C has stopped a call: all Lua stands still then,
 * but for this. */
#include "gpu.h"
#include "journal.h"
#include "running.h"

static const char rest_type[] = "lumat.when_stopped";

/* when_stopped(f): a value to be closed, which calls f where the block ends by
 * Ctrl-C. Another Ctrl-C stops f as well. */
static int when_stopped(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_newuserdatauv(L, 0, 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, rest_type);
    return 1;
}

/* The error that ends the block is told by whoever stopped it; one of f's is
 * not. */
static int do_rest(lua_State *L)
{
    if (!gpu_is_interrupted())
        return 0;
    lumat_end_interrupt(L);
    lua_getiuservalue(L, 1, 1);
    lua_pcall(L, 0, 0, 0);
    lumat_interrupt(L);
    return 0;
}

void lumat_add_when_stopped(lua_State *L)
{
    luaL_newmetatable(L, rest_type);
    lua_pushcfunction(L, do_rest);
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
    lua_pushcfunction(L, when_stopped);
    lua_setfield(L, -2, "when_stopped");
}
