/* What experiments need of the machine, as one module, "lumat.journal"; what
 * is being done that may last; and what is left to do once Ctrl-C has stopped
 * a call. */
#include "experiment_parts.h"
#include "cancellation.h"
#include "value.h"

/* --- tasks ---------------------------------------------------------------- */
/* What is being done that may last and is no single operation: told by the
 * library in Lua, shown by whoever watches. */

static void (*watcher)(const char *what, double seconds);

void lumat_watch_tasks(void (*changed)(const char *what, double seconds))
{
    watcher = changed;
}

/* task(what, seconds): a line of text, and for how long that has been going on.
 * Whether somebody watches. */
static int task(lua_State *L)
{
    const char *what = luaL_checkstring(L, 1);
    double seconds = luaL_checknumber(L, 2);
    if (watcher)
        watcher(what, seconds);
    lua_pushboolean(L, watcher != NULL);
    return 1;
}

/* end_task(…): as a __close it runs when Ctrl-C stops all Lua, too. */
static int end_task(lua_State *L)
{
    (void)L;
    if (watcher)
        watcher(NULL, 0);
    return 0;
}

static void add_tasks(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"task", task}, {"end_task", end_task}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}

/* --- on Ctrl-C ------------------------------------------------------------ */
/* All Lua stands still then, but for this. */

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

static void add_when_stopped(lua_State *L)
{
    luaL_newmetatable(L, rest_type);
    lua_pushcfunction(L, do_rest);
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
    lua_pushcfunction(L, when_stopped);
    lua_setfield(L, -2, "when_stopped");
}

/* --- the module ----------------------------------------------------------- */

void lumat_open_journal(lua_State *L)
{
    lua_newtable(L);
    lumat_add_records(L);
    lumat_add_folders(L);
    lumat_add_json(L);
    lumat_add_claims(L);
    lumat_add_processes(L);
    add_tasks(L);
    add_when_stopped(L);
    lua_pushliteral(L, LUMAT_VERSION);
    lua_setfield(L, -2, "version");
    lumat_set_required(L, "journal");
}

void lumat_start_no_processes(lua_State *L)
{
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "lumat.safe");
}
