/* The progress of what Lua does step by step, for lua/std/lazy: shown at the
 * prompt like that of a single operation that lasts. Nothing of the user's may
 * run in between, as it might print. */
#include "math_functions.h"
#include "value.h"

static const char WORK[] = "lumat.work";

enum { UNITS = 1000 }; /* of which all work has so many */

typedef struct work {
    int began, counted;
    int64_t done;
} work;

static int end_work(lua_State *L)
{
    work *w = luaL_checkudata(L, 1, WORK);
    gpu_end_stage(w->counted);
    gpu_end_work(w->began);
    *w = (work){0};
    return 0;
}

/* begin(what): a value to be closed, which ends it; where nobody watches, or it
 * is part of other work, nothing is told */
static int begin(lua_State *L)
{
    const char *what = luaL_checkstring(L, 1);
    work *w = lua_newuserdatauv(L, sizeof *w, 0);
    *w = (work){0};
    luaL_setmetatable(L, WORK);
    w->began = gpu_begin_work("%s", what);
    if (w->began)
        w->counted = gpu_begin_stage(UNITS);
    return 1;
}

/* tell(work, text, share): what it is called from now on, and which share of it
 * is done; false: nobody is told */
static int tell(lua_State *L)
{
    work *w = luaL_checkudata(L, 1, WORK);
    lua_Number share = luaL_checknumber(L, 3);
    if (w->began && share >= 0 && share <= 1) {
        int64_t done = (int64_t)(share * UNITS);
        gpu_rename_work("%s", luaL_checkstring(L, 2));
        gpu_advance(done - w->done);
        w->done = done;
    }
    lua_pushboolean(L, w->began);
    return 1;
}

void lumat_open_progress_steps(lua_State *L)
{
    static const luaL_Reg steps[] = {
        {"begin", begin}, {"tell", tell}, {NULL, NULL}};
    luaL_newmetatable(L, WORK);
    lua_pushcfunction(L, end_work);
    lua_setfield(L, -2, "__close");
    lua_pushcfunction(L, end_work);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    luaL_newlib(L, steps);
    lumat_set_required(L, "progress_steps");
}
