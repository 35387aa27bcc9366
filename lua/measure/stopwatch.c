/* How long something took: by the clock and by the GPUs' own events. */
#include "measure_parts.h"
#include "function.h"
#include "print.h"
#include "value.h"

#include <stdio.h>
#include <time.h>

enum { MOST_DEVICES = 17 };

typedef struct lap {
    gpu_device *device;
    gpu_timer timer;
    double seconds; /* below 0: not known */
} lap;

static struct {
    int runs, count;
    lap laps[MOST_DEVICES]; /* of the GPUs that were open at the start */
    gpu_counters before, did;
} watch;

void lumat_start_watch(lua_State *L)
{
    gpu_device *const *devices;
    int n = gpu_device_count_opened(&devices);
    (void)L;
    watch.count = 0;
    for (int i = 0; i < n && watch.count < MOST_DEVICES; i++) {
        lap *l = &watch.laps[watch.count];
        l->device = devices[i];
        l->seconds = -1;
        if (!gpu_device_is_cpu(l->device) &&
            gpu_timer_start(l->device, &l->timer) == GPU_OK)
            watch.count++;
    }
    watch.before = *gpu_counts();
    watch.runs = 1;
}

void lumat_stop_watch(void)
{
    const gpu_counters *now = gpu_counts();
    if (!watch.runs)
        return;
    watch.runs = 0;
    watch.did.operations = now->operations - watch.before.operations;
    watch.did.allocated = now->allocated - watch.before.allocated;
    for (int i = 0; i < watch.count; i++) {
        lap *l = &watch.laps[i];
        if (gpu_timer_stop(l->device, &l->timer, &l->seconds) != GPU_OK)
            l->seconds = -1;
    }
}

static int end_executing(lua_State *L)
{
    gpu_execute_all(*(int *)lua_touserdata(L, 1));
    return 0;
}

/* Whatever ends it: an error has its own way out. */
void lumat_call_executed(lua_State *L, int nargs, int nresults)
{
    int function = lua_gettop(L) - nargs;
    int *before = lua_newuserdatauv(L, sizeof *before, 0);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, end_executing);
    lua_setfield(L, -2, "__close");
    lua_setmetatable(L, -2);
    lua_insert(L, function);
    lua_toclose(L, function);
    *before = gpu_execute_all(1);
    lua_call(L, nargs, nresults);
    gpu_status status = gpu_settle_all();
    lua_closeslot(L, function);
    lua_remove(L, function);
    lumat_try(L, status);
}

/* --- a function by its device --------------------------------------------- */

int lumat_timed_call(lua_State *L)
{
    gpu_device *d;
    gpu_timer timer;
    double seconds;
    if (lua_isnoneornil(L, 2))
        lumat_try(L, gpu_default(&d));
    else
        lumat_try(L, gpu_open(luaL_checkstring(L, 2), &d));
    lua_settop(L, 1);
    lumat_try(L, gpu_settle_all());
    lumat_try(L, gpu_sync(d));
    lumat_try(L, gpu_timer_start(d, &timer));
    lumat_call_executed(L, 0, LUA_MULTRET);
    lumat_try(L, gpu_timer_stop(d, &timer, &seconds));
    lua_pushnumber(L, seconds);
    lua_insert(L, 1);
    return lua_gettop(L);
}

int lumat_is_timing(lua_State *L)
{
    lua_Debug call;
    int found = watch.runs;
    for (int level = 0; !found && lua_getstack(L, level, &call); level++) {
        lua_getinfo(L, "f", &call);
        const lumat_function *f = lumat_row_of(L, -1);
        found = f && f->call == lumat_timed_call;
        lua_pop(L, 1);
    }
    return found;
}

/* --- as text -------------------------------------------------------------- */

/* Devices that did nothing took next to no time, but who knows: all are
 * named, as all were waited for. */
static void add_laps(lua_State *L)
{
    for (int i = 0; i < watch.count; i++) {
        const lap *l = &watch.laps[i];
        if (l->seconds < 0 || watch.did.operations == 0)
            continue;
        lua_pushfstring(L, "  %s waited for, %s by its events",
                        gpu_device_name(l->device),
                        lumat_seconds_text(l->seconds, 3));
        lua_concat(L, 2);
    }
}

static void add_work(lua_State *L)
{
    unsigned long long operations = watch.did.operations;
    if (operations > 0) {
        lua_pushfstring(L, "  %I operation%s", (LUAI_UACINT)operations,
                        operations == 1 ? "" : "s");
        lua_concat(L, 2);
    }
    if (watch.did.allocated == 0)
        return;
    lua_pushfstring(L, "  %s allocated", gpu_bytes_text(watch.did.allocated));
    lua_concat(L, 2);
}

void lumat_push_watch(lua_State *L, double seconds)
{
    lua_pushstring(L, lumat_seconds_text(seconds, 3));
    add_laps(L);
    add_work(L);
}

/* --- for the library's own files ------------------------------------------ */

/* watch(f): {seconds, gpu, operations, allocated} of a call, and its text. */
static int watch_call(lua_State *L)
{
    lua_settop(L, 1);
    lumat_try(L, gpu_settle_all());
    lumat_try(L, gpu_sync_all());
    lumat_start_watch(L);
    double start = gpu_now();
    lumat_call_executed(L, 0, 0);
    lumat_stop_watch();
    lumat_try(L, gpu_sync_all());
    double seconds = gpu_now() - start, gpu = 0;
    for (int i = 0; i < watch.count; i++)
        gpu = watch.laps[i].seconds > gpu ? watch.laps[i].seconds : gpu;
    lua_createtable(L, 0, 4);
    lumat_set_number(L, "seconds", seconds);
    if (watch.count > 0)
        lumat_set_number(L, "gpu", gpu);
    lumat_set_count(L, "operations", watch.did.operations);
    lumat_set_count(L, "allocated", watch.did.allocated);
    lumat_push_watch(L, seconds);
    return 2;
}

void lumat_open_stopwatch(lua_State *L)
{
    lua_pushcfunction(L, watch_call);
    lumat_set_required(L, "watch");
}
