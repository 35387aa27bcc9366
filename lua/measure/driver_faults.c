/* lumat.faults: what lets calls of the GPU's driver fail, for tests. It is
 * there where the environment has LUMAT_FAULT. */
#include "measure.h"

#include "lauxlib.h"

#include <stdlib.h>

/* arm(fault): see gpu_arm_fault */
static int arm(lua_State *L)
{
    lumat_try(L, gpu_arm_fault(luaL_checkstring(L, 1)));
    return 0;
}

/* injected(): how many faults there were since one was armed */
static int injected(lua_State *L)
{
    lua_pushinteger(L, gpu_injected_faults());
    return 1;
}

/* calls(): how many calls of each name there were since then */
static int calls(lua_State *L)
{
    const gpu_fault_site *site = NULL;
    lua_newtable(L);
    while (gpu_next_fault_site(&site)) {
        lua_getfield(L, -1, site->name);
        lua_pushinteger(L, lua_tointeger(L, -1) + site->calls);
        lua_setfield(L, -3, site->name);
        lua_pop(L, 1);
    }
    return 1;
}

static int open_faults(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"arm", arm}, {"injected", injected}, {"calls", calls}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}

void lumat_open_faults(lua_State *L)
{
    if (!gpu_has_faults())
        return;
    if (gpu_arm_fault(getenv("LUMAT_FAULT")) != GPU_OK)
        luaL_error(L, "LUMAT_FAULT: %s", gpu_message());
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, open_faults);
    lua_setfield(L, -2, "lumat.faults");
    lua_pop(L, 1);
}
