/* The state as a person asks for it: variables, devices, memory. */
#include "library.h"
#include "locals.h"
#include "lumat.h"
#include "sparse_matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- who ------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the user's names in the table on top to `all`; pops it. */
static void gather_names(lua_State *L, int all, int base)
{
    int table = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING ||
            strcmp(lua_tostring(L, -2), "arg") == 0)
            continue;
        lua_pushvalue(L, -2);
        lua_rawget(L, base);
        if (!lua_rawequal(L, -1, -2)) {
            lua_pushvalue(L, -3);
            lua_pushvalue(L, -3);
            lua_rawset(L, all);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static const char *bytes_text(double bytes, char *text, size_t size)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    for (; bytes >= 1024 && u < 4; u++)
        bytes /= 1024;
    snprintf(text, size, u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
    return text;
}

/* Another of the names that holds the same storage, for the note. */
static void push_sharer(lua_State *L, int all, const gpu_matrix *m,
                        const char *own)
{
    lua_pushliteral(L, "");
    for (lua_pushnil(L); lua_next(L, all); lua_pop(L, 1)) {
        gpu_matrix *other = lumat_test_matrix(L, -1);
        const char *name = lua_tostring(L, -2);
        if (!other || other == m || !gpu_shares_storage(m, other) ||
            strcmp(name, own) == 0 || strcmp(name, "ans") == 0)
            continue;
        lua_pushfstring(L, "shares %s", name);
        lua_replace(L, -4);
        lua_pop(L, 2);
        return;
    }
}

static void push_matrix_line(lua_State *L, int all, const char *name,
                             const gpu_matrix *m)
{
    char line[256], bytes[32];
    lumat_push_shape(L, m);
    push_sharer(L, all, m, name);
    snprintf(line, sizeof line, "%-12s %-7s %-14s %-8s %10s  %s", name,
             gpu_dtype_name(m->dtype), lua_tostring(L, -2),
             m->storage ? gpu_device_name(gpu_matrix_device(m)) : "freed",
             bytes_text((double)gpu_bytes(m), bytes, sizeof bytes),
             lua_tostring(L, -1));
    lua_pop(L, 2);
    size_t n = strlen(line);
    while (n > 0 && line[n - 1] == ' ')
        n--;
    lua_pushlstring(L, line, n);
}

static void push_sparse_line(lua_State *L, const char *name,
                             const gpu_sparse *s)
{
    char line[256], shape[64], bytes[32];
    gpu_device *d = gpu_matrix_device(&s->values);
    snprintf(shape, sizeof shape, "%lldx%lld", (long long)s->rows,
             (long long)s->cols);
    snprintf(line, sizeof line, "%-12s %-7s %-14s %-8s %10s  sparse, nnz %lld",
             name, gpu_dtype_name(s->values.dtype), shape,
             d ? gpu_device_name(d) : "freed",
             bytes_text((double)gpu_sparse_bytes(s), bytes, sizeof bytes),
             (long long)s->count);
    lua_pushstring(L, line);
}

static void push_line(lua_State *L, int all, const char *name)
{
    lua_getfield(L, all, name);
    gpu_matrix *m = lumat_test_matrix(L, -1);
    gpu_sparse *s = lumat_test_sparse(L, -1);
    if (m) {
        push_matrix_line(L, all, name, m);
    } else if (s) {
        push_sparse_line(L, name, s);
    } else {
        char line[160];
        lumat_push_headline(L, -1);
        snprintf(line, sizeof line, "%-12s %-7s %.120s", name,
                 luaL_typename(L, -2), lua_tostring(L, -1));
        lua_pop(L, 1);
        lua_pushstring(L, line);
    }
    lua_remove(L, -2);
}

static void push_lines(lua_State *L, int all)
{
    int n = 0;
    for (lua_pushnil(L); lua_next(L, all); lua_pop(L, 1))
        n++;
    const char **names = lua_newuserdatauv(L, (size_t)n * sizeof *names, 0);
    n = 0;
    for (lua_pushnil(L); lua_next(L, all); lua_pop(L, 1))
        names[n++] = lua_tostring(L, -2);
    if (n > 0)
        qsort(names, (size_t)n, sizeof *names, by_name);
    lua_pushstring(L,
                   n ? "name         type    shape          where         "
                       "bytes"
                     : "no variables yet: A = mat{{1, 2}, {3, 4}} makes one");
    for (int i = 0; i < n; i++) {
        lua_pushliteral(L, "\n");
        push_line(L, all, names[i]);
        lua_concat(L, 3);
    }
}

static void push_devices_line(lua_State *L)
{
    gpu_device *const *devices;
    int n = gpu_device_count_opened(&devices);
    lua_pushliteral(L, "");
    for (int i = 0; i < n; i++) {
        gpu_memory memory;
        char live[32], free[32], total[32];
        if (gpu_device_memory(devices[i], &memory) != GPU_OK)
            continue;
        lua_pushfstring(L, "\n%s: matrices hold %s, %s free of %s",
                        gpu_device_name(devices[i]),
                        bytes_text((double)memory.live, live, sizeof live),
                        bytes_text((double)memory.free, free, sizeof free),
                        bytes_text((double)memory.total, total, sizeof total));
        lua_concat(L, 2);
    }
}

void lumat_push_who(lua_State *L)
{
    int top = lua_gettop(L);
    lumat_refresh_locals(L);
    lua_newtable(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base");
    lua_pushglobaltable(L);
    gather_names(L, top + 1, top + 2);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session");
    gather_names(L, top + 1, top + 2);
    push_lines(L, top + 1);
    push_devices_line(L);
    lua_concat(L, 2);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

/* --- devices -------------------------------------------------------------- */

static void push_peak(lua_State *L, gpu_device *d)
{
    gpu_peak peak;
    char line[128];
    if (gpu_device_peak(d, &peak) != GPU_OK) {
        lua_pushliteral(L, "");
        return;
    }
    snprintf(line, sizeof line,
             "\nmeasured peaks: f32 %.4g TFLOP/s, f64 %.4g TFLOP/s, memory "
             "%.4g GB/s",
             peak.f32_flops / 1e12, peak.f64_flops / 1e12, peak.bytes / 1e9);
    lua_pushstring(L, line);
}

int lumat_push_device(lua_State *L, const char *name)
{
    gpu_device *d;
    gpu_status status = name && *name ? gpu_open(name, &d) : gpu_default(&d);
    if (status == GPU_OK && name && *name)
        status = gpu_set_default(name);
    if (status != GPU_OK) {
        lua_pushstring(L, gpu_message());
        return 0;
    }
    lua_pushfstring(L, "%s  %s", gpu_device_name(d), gpu_device_description(d));
    if (!name || !*name) {
        push_peak(L, d);
        push_devices_line(L);
        lua_concat(L, 3);
    }
    return 1;
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
