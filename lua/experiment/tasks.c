/* What is being done that may last and is no single operation: told by the
 * library in Lua, shown by whoever watches. */
#include "experiment.h"
#include "journal.h"

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

void lumat_add_tasks(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"task", task}, {"end_task", end_task}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
