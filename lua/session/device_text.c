/* The state as a person asks for it: devices, memory. */
#include "print.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

/* --- devices -------------------------------------------------------------- */

static void push_devices_line(lua_State *L)
{
    gpu_device *const *devices;
    int n = gpu_device_count_opened(&devices);
    lua_pushliteral(L, "");
    for (int i = 0; i < n; i++) {
        gpu_memory memory;
        if (gpu_device_memory(devices[i], &memory) != GPU_OK)
            continue;
        lua_pushfstring(
            L, "\n%s: matrices hold %s, %s free of %s",
            gpu_device_name(devices[i]), gpu_bytes_text(memory.live),
            gpu_bytes_text(memory.free), gpu_bytes_text(memory.total));
        lua_concat(L, 2);
    }
}

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
