/* What operations tell of themselves: to the trace, the profile and whoever
 * wants to know what a function does. */
#include "cancellation.h"
#include "measure_parts.h"
#include "function.h"
#include "team.h"
#include "value.h"

#include <stdio.h>
#include <string.h>

static lumat_hear_fn *hearers[LUMAT_HEARERS];

static void tell(const gpu_event *e, void *data)
{
    (void)data;
    for (int i = 0; i < LUMAT_HEARERS; i++)
        if (hearers[i])
            hearers[i](e);
}

void lumat_hear(lumat_hearer who, lumat_hear_fn *f)
{
    int any = 0;
    gpu_settle_all(); /* what was written before, or meanwhile */
    hearers[who] = f;
    for (int i = 0; i < LUMAT_HEARERS; i++)
        any |= hearers[i] != NULL;
    gpu_set_trace(any ? tell : NULL, NULL);
}

/* --- what is said of one -------------------------------------------------- */

static int is_reduction(const gpu_event *e)
{
    return strcmp(e->kernel, "reduce") == 0;
}

/* A reduction's k is what became one element. */
static void reduced_size(const gpu_event *e, char *text, size_t size)
{
    long long m = e->m, n = e->n, k = e->k;
    if (m > 1)
        snprintf(text, size, "%lldx%lld to %lldx1", m, k, m);
    else if (n > 1)
        snprintf(text, size, "%lldx%lld to 1x%lld", k, n, n);
    else
        snprintf(text, size, "%lld to 1", k);
}

/* "512x256x128", "3x4 to 1x4", "3x4" */
const char *lumat_event_size(const gpu_event *e, char *text, size_t size)
{
    long long m = e->m, n = e->n, k = e->k;
    if (is_reduction(e))
        reduced_size(e, text, size);
    else if (k > 0)
        snprintf(text, size, "%lldx%lldx%lld", m, k, n);
    else
        snprintf(text, size, "%lldx%lld", m, n);
    return text;
}

/* The devices that computed it. */
static const char *event_devices(const gpu_event *e, char text[GPU_TEAM_TEXT])
{
    return gpu_team_text(e->team, text);
}

/* "47 TFLOP/s  71 % of f32 peak", or "". May measure the device's peak. A dot
 * is not a product here: bytes alone set its pace. Nor is the bus the device's
 * memory. */
static const char *event_rate(const gpu_event *e, char *text, size_t size)
{
    lumat_rate r;
    text[0] = '\0';
    if (!(e->seconds > 0))
        return text;
    if (strcmp(e->kernel, "bus") == 0) {
        snprintf(text, size, "%.4g GB/s", e->bytes / e->seconds / 1e9);
        return text;
    }
    double flops =
        e->k > 0 && e->m * e->n > 1 && !is_reduction(e) ? e->flops : 0;
    if (lumat_rate_on(lumat_running(), (gpu_device *)e->device, e->team->count,
                      flops, e->bytes, e->seconds, e->dtype, &r) != GPU_OK)
        return text;
    const char *above = lumat_above_peak(r.share);
    snprintf(text, size, "%.4g %s  %.0f %% of %s peak%s%s%s%s", r.value, r.unit,
             100 * r.share, r.peak, e->team->count > 1 ? "s" : "",
             *above ? "  (" : "", above, *above ? ")" : "");
    return text;
}

/* --- the trace ------------------------------------------------------------ */

static void print_failure(const gpu_event *e, const char *size)
{
    char devices[GPU_TEAM_TEXT];
    lumat_print_visible(stderr, "  %s  %s  %s  %s %s  failed: %s\n",
                        e->operation, e->kernel, size, gpu_dtype_name(e->dtype),
                        event_devices(e, devices), gpu_message());
}

static void print_event(const gpu_event *e)
{
    char size[80], rate[160], checked[32] = "", devices[GPU_TEAM_TEXT];
    fflush(stdout);
    lumat_event_size(e, size, sizeof size);
    if (e->status != GPU_OK) {
        print_failure(e, size);
        return;
    }
    if (e->checked >= 0)
        snprintf(checked, sizeof checked, "  ✓ %.2g", e->checked);
    lumat_print_visible(stderr, "  %s  %s  %s  %s %s  %.4g us  %s%s%s\n",
                        e->operation, e->kernel, size, gpu_dtype_name(e->dtype),
                        event_devices(e, devices), e->seconds * 1e6,
                        event_rate(e, rate, sizeof rate), checked,
                        e->fallback ? "  (on the CPU)" : "");
}

/* Because operations are waited for, it is the one that failed. */
static void print_errors(const gpu_event *e)
{
    if (e->status != GPU_OK || e->fallback)
        print_event(e);
}

/* tracing([on]): true, false or "errors" */
static int tracing(lua_State *L)
{
    lumat_hear_fn *f = lua_toboolean(L, 1) ? print_event : NULL;
    if (lua_type(L, 1) == LUA_TSTRING)
        f = print_errors;
    if (lua_gettop(L) > 0) {
        lumat_refuse_dry(L, "tracing");
        lumat_hear(LUMAT_TRACE, f);
    }
    f = hearers[LUMAT_TRACE];
    if (f == print_errors)
        lua_pushliteral(L, "errors");
    else
        lua_pushboolean(L, f != NULL);
    return 1;
}

/* checking([on]): products, partly, worst, on, kernel */
static int checking(lua_State *L)
{
    const gpu_checks *c = gpu_checked();
    if (lua_gettop(L) > 0) {
        lumat_refuse_dry(L, "checking");
        gpu_set_check(lua_toboolean(L, 1));
    }
    lua_pushinteger(L, (lua_Integer)c->products);
    lua_pushinteger(L, (lua_Integer)c->partly);
    lua_pushnumber(L, c->worst);
    lua_pushboolean(L, gpu_is_checking());
    lua_pushstring(L, c->worst_kernel);
    return 5;
}

/* --- for the library's own files ------------------------------------------ */

static struct {
    int count;
    gpu_event first;
    int devices; /* that did it */
} captured;

static void capture(const gpu_event *e)
{
    if (e->status == GPU_OK && strcmp(e->kernel, "bus") != 0 &&
        captured.count++ == 0) {
        captured.first = *e;
        captured.devices = e->team->count;
    }
}

static void set_text(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

static void push_captured(lua_State *L)
{
    const gpu_event *e = &captured.first;
    int product = e->k > 0 && e->m * e->n > 1 && !is_reduction(e);
    lua_createtable(L, 0, 7);
    lua_pushinteger(L, captured.devices);
    lua_setfield(L, -2, "devices");
    set_text(L, "operation", e->operation);
    set_text(L, "kernel", e->kernel);
    set_text(L, "dtype", gpu_dtype_name(e->dtype));
    set_text(L, "device", gpu_device_name(e->device));
    lumat_set_number(L, "flops", product ? e->flops : 0);
    lumat_set_number(L, "bytes", e->bytes);
}

/* captured(f): calls f(); what its operation was, when it was a single one. */
static int call_captured(lua_State *L)
{
    lua_settop(L, 1);
    captured.count = 0;
    lumat_hear(LUMAT_CAPTURE, capture);
    int before = gpu_execute_all(1), status = lua_pcall(L, 0, 0, 0);
    lumat_hear(LUMAT_CAPTURE, NULL);
    gpu_execute_all(before);
    if (status != LUA_OK)
        return lua_error(L);
    if (captured.count != 1)
        return 0;
    push_captured(L);
    return 1;
}

/* quietly(f): calls f() without trace, profile and checks. */
static int call_quietly(lua_State *L)
{
    lua_settop(L, 1);
    int before = gpu_pause_trace(1);
    int status = lua_pcall(L, 0, LUA_MULTRET, 0);
    gpu_pause_trace(before);
    return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

static const lumat_function functions[] = {
    {"tracing", tracing, 0, "[on: boolean|\"errors\"]", "boolean",
     "With true, every operation reports kernel, time and rate on standard "
     "error; with \"errors\", those that fail or that the CPU does for a GPU; "
     "with false, none. Gives what is set; also :trace.",
     "tracing(false)", "false", .group = "tracing"},
    {0}};

void lumat_open_trace(lua_State *L)
{
    static const luaL_Reg own[] = {{"captured", call_captured},
                                   {"quietly", call_quietly},
                                   {"checking", checking},
                                   {NULL, NULL}};
    lumat_register(L, functions);
    luaL_newlib(L, own);
    lumat_set_required(L, "trace");
}
