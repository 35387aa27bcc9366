/* Functions about the machine and the program: clocks, devices, counters,
 * help, defaults. */
#include "arguments.h"
#include "lumat.h"
#include "open.h"

#include <string.h>

static int get_clock(lua_State *L)
{
    lumat_try(L, gpu_settle_all()); /* before the time is taken */
    lua_pushnumber(L, gpu_now());
    return 1;
}

static int sync_all(lua_State *L)
{
    lumat_try(L, gpu_settle_all());
    lumat_try(L, gpu_sync_all());
    return 0;
}

static gpu_device *check_device(lua_State *L, int arg)
{
    gpu_device *d;
    if (lua_isnoneornil(L, arg))
        lumat_try(L, gpu_default(&d));
    else
        lumat_try(L, gpu_open(luaL_checkstring(L, arg), &d));
    return d;
}

/* device([name]): the default device, after setting it. */
static int device(lua_State *L)
{
    gpu_device *d;
    if (!lua_isnoneornil(L, 1)) {
        lumat_try(L, gpu_open(luaL_checkstring(L, 1), &d));
        lumat_try(L, gpu_set_default(lua_tostring(L, 1)));
    }
    lumat_try(L, gpu_default(&d));
    lua_pushstring(L, gpu_device_name(d));
    lua_pushstring(L, gpu_device_description(d));
    return 2;
}

static int memory(lua_State *L)
{
    gpu_memory m;
    gpu_device *d = check_device(L, 1);
    lumat_try(L, gpu_device_memory(d, &m));
    lua_newtable(L);
    lumat_set_count(L, "live", m.live);
    lumat_set_count(L, "peak", m.peak);
    lumat_set_count(L, "kept", m.kept);
    lumat_set_count(L, "factors",
                    gpu_device_is_cpu(d) ? gpu_sparse_all_factors_bytes() : 0);
    lumat_set_count(L, "free", m.free);
    lumat_set_count(L, "total", m.total);
    lumat_set_count(L, "unused", m.unused);
    return 1;
}

static int peak(lua_State *L)
{
    gpu_peak p;
    gpu_device *d = check_device(L, 1);
    lumat_try(L, lua_toboolean(L, 2) ? gpu_device_peak_again(d, &p)
                                     : gpu_device_peak(d, &p));
    lua_newtable(L);
    lumat_set_number(L, "f32_flops", p.f32_flops);
    lumat_set_number(L, "f64_flops", p.f64_flops);
    lumat_set_number(L, "bytes", p.bytes);
    return 1;
}

static int stats(lua_State *L)
{
    const gpu_counters *c = gpu_counts();
    lua_newtable(L);
    lumat_set_count(L, "operations", c->operations);
    lumat_set_count(L, "allocations", c->allocations);
    lumat_set_count(L, "allocated", c->allocated);
    lumat_set_count(L, "uploaded", c->uploaded);
    lumat_set_count(L, "downloaded", c->downloaded);
    lumat_set_count(L, "fallbacks", c->fallbacks);
    lumat_set_count(L, "compiled", c->compiled);
    return 1;
}

static int default_dtype(lua_State *L)
{
    gpu_dtype type = lumat_default_dtype(L);
    if (!lua_isnoneornil(L, 1))
        gpu_dtype_find(luaL_checkstring(L, 1), &type);
    lumat_set_default_dtype(type);
    lua_pushstring(L, gpu_dtype_name(type));
    return 1;
}

static int print_text(lua_State *L)
{
    size_t n;
    const char *text = lua_tolstring(L, -1, &n);
    lumat_write_visible(stdout, text, n, 1);
    fputc('\n', stdout);
    return 0;
}

/* Puts the name of the library's function at 1 in its place. */
static void name_function(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base");
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || !lua_rawequal(L, -1, 1))
            continue;
        lua_pop(L, 1);
        lua_replace(L, 1);
        break;
    }
    lua_settop(L, 1);
}

static int help(lua_State *L)
{
    lua_settop(L, 1);
    if (!lua_isnil(L, 1) && !lua_isstring(L, 1))
        name_function(L);
    if (!lua_isnil(L, 1) && !lua_isstring(L, 1))
        lumat_raise_argument(L, 1, "is none of the library's functions");
    lumat_push_help(L, lua_tostring(L, 1));
    return print_text(L);
}

static int forget(lua_State *L)
{
    lumat_try(L, gpu_settle_readers(lumat_check_matrix(L, 1)));
    gpu_forget(lumat_check_matrix(L, 1));
    lua_settop(L, 1);
    return 1;
}

/* keep_limit(bytes [, device]) */
static int keep_limit(lua_State *L)
{
    lua_Number bytes = lumat_check_number(L, 1);
    if (!(bytes >= 0 && bytes < 0x1p63))
        lumat_raise_argument(L, 1, "is %s, which is no number of bytes",
                             lumat_push_brief(L, 1));
    gpu_set_keep_limit(check_device(L, 2), (size_t)bytes);
    return 0;
}

static const lumat_function functions[] = {
    {"forget", forget, 1, "A: matrix", "matrix",
     "Drops what products keep about A to be faster the next time, and gives A "
     "back. A write to A does the same.",
     "forget(mat{{1, 2}})", "{{1, 2}}", .group = "keeping"},
    {"keep_limit", keep_limit, 0, "bytes: number [, device: device]", "nothing",
     "How many bytes products may keep about their operands; a quarter of the "
     "device's memory unless set.",
     "select('#', keep_limit(2 ^ 30, \"cpu\"))", "0", .group = "keeping"},
    {"clock", get_clock, 0, "", "number",
     "Seconds of a clock that never jumps.", "clock() <= clock()", "true",
     .group = "timing"},
    {"sync", sync_all, 0, "", "nothing",
     "Waits until all devices have done what they were given.",
     "select('#', sync())", "0", .group = "timing"},
    {"device", device, 0, "[name: device]", "string, string",
     "The device new matrices live on; with a name, chooses it. Second result: "
     "a description.",
     "device(\"cpu\")", "\"cpu\"", .group = "devices"},
    {"memory", memory, 0, "[device: device]", "table",
     "Bytes on a device: live and peak of our matrices, kept about operands by "
     "products, about what factors of sparse matrices take beside them, free "
     "and "
     "total; unused is the part of free that waits for the next allocation.",
     "memory().live >= 0", "true", .group = "devices"},
    {"peak", peak, 0, "[device: device [, again: boolean]]", "table",
     "Measured peaks per second: f32_flops, f64_flops, bytes. They are "
     "measured once; again = true measures them anew, which counts where it is "
     "more: what else ran may have slowed the first.",
     "peak(\"cpu\").bytes > 1e8", "true", .group = "devices rates"},
    {"rate", lumat_rate_call, 0,
     "flops: number, bytes: number, seconds: positive [, dtype: "
     "\"f32\"|\"f64\"|\"c64\"|\"c128\" [, device: device [, devices: count]]]",
     "number, string, number, string",
     "Work done in so many seconds beside the measured peak, by flops or by "
     "bytes, whichever comes nearer: value, unit, share, and whose peak, of so "
     "many devices like that one together. A share above 1 has the peak "
     "measured again, once, unless something is being timed; what stays above "
     "lies in caches, uses other units, or what else ran slowed both "
     "measurements.",
     "select(2, rate(0, 1e9, 1, \"f32\", \"cpu\"))", "\"GB/s\"",
     .group = "rates"},
    {"stats", stats, 0, "", "table",
     "Counts since the start: operations, allocations, bytes allocated, "
     "uploaded and downloaded, fallbacks to the CPU, programs that ran on "
     "kernels compiled for them.",
     "stats().operations >= 0", "true", .group = "tracing"},
    {"timed", lumat_timed_call, 0, "f: function [, device: device]",
     "number, …", "Seconds that f's work took on the device, then f's results.",
     "select(2, timed(function() return 7 end))", "7", .group = "timing"},
    {"default_dtype", default_dtype, 0, "[name: \"f32\"|\"f64\"]", "string",
     "The element type of new matrices; with \"f32\" or \"f64\", sets it.",
     "default_dtype()", "\"f32\"", .group = "settings"},
    {"help", help, 0, "[name: topic|function]", "nothing",
     "Prints the help on a name; also ?name.", "type(help)", "\"function\"",
     .group = "asking"},
    {0}};

void lumat_open_system(lua_State *L)
{
    lumat_register(L, functions);
}

/* --- for the terminal ----------------------------------------------------- */

void lumat_set_trial(const char *program)
{
    gpu_set_trial(program);
}

int lumat_is_trial(const char *word)
{
    return strcmp(word, GPU_TRIAL) == 0;
}

int lumat_try_libraries(void)
{
    return gpu_try_libraries();
}

int lumat_require_device(lua_State *L)
{
    gpu_device *d;
    if (gpu_default(&d) == GPU_OK)
        return 1;
    lua_pushstring(L, gpu_message());
    return 0;
}

void lumat_prepare_device(void)
{
    gpu_prepare();
}

void lumat_on_fallback(lumat_warning_fn *tell)
{
    gpu_on_fallback(tell);
}

const char *lumat_unusual_device(lua_State *L)
{
    (void)L;
    const char *name = gpu_default_name();
    return strcmp(name, "auto") == 0 ? NULL : name;
}
