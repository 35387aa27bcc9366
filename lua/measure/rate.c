/* Rates and their share of the measured peak. */
#include "measure_parts.h"
#include "arguments.h"

#include <limits.h>
#include <string.h>

/* Complex numbers are computed with as pairs of one of the two. */
static int is_wide(gpu_dtype dtype)
{
    return dtype == GPU_F64 || dtype == GPU_C128;
}

/* One unit a device, so that the kernels of a race can be compared at a
 * glance. */
static lumat_rate flops_rate(double flops, gpu_dtype dtype, double peak)
{
    int tera = peak >= 1e12;
    return (lumat_rate){flops / (tera ? 1e12 : 1e9),
                        tera ? "TFLOP/s" : "GFLOP/s", flops / peak,
                        is_wide(dtype) ? "f64" : "f32"};
}

static lumat_rate rate_of(double flops, double bytes, double seconds,
                          gpu_dtype dtype, const gpu_peak *peak)
{
    double most = is_wide(dtype) ? peak->f64_flops : peak->f32_flops;
    flops /= seconds;
    bytes /= seconds;
    if (flops / most > bytes / peak->bytes)
        return flops_rate(flops, dtype, most);
    return (lumat_rate){bytes / 1e9, "GB/s", bytes / peak->bytes, "memory"};
}

/* --- shares above the peak -------------------------------------------------
 */

#define SLACK 1.005 /* the share from which a peak is doubted */
enum { MOST_DOUBTS = 64 };

/* The peaks that were measured again in vain: not once more. */
static struct {
    const gpu_device *device;
    const char *peak;
} settled[MOST_DOUBTS];
static int settled_count;

static int is_settled(const gpu_device *d, const char *peak)
{
    for (int i = 0; i < settled_count; i++)
        if (settled[i].device == d && strcmp(settled[i].peak, peak) == 0)
            return 1;
    return settled_count == MOST_DOUBTS;
}

static gpu_status rate_on(lua_State *L, gpu_device *d, double flops,
                          double bytes, double seconds, gpu_dtype dtype,
                          lumat_rate *out)
{
    gpu_peak peak;
    gpu_status status = gpu_device_peak(d, &peak);
    if (status != GPU_OK)
        return status;
    *out = rate_of(flops, bytes, seconds, dtype, &peak);
    if (out->share <= SLACK || is_settled(d, out->peak) ||
        (L && lumat_is_timing(L)))
        return GPU_OK;
    status = gpu_device_peak_again(d, &peak);
    if (status != GPU_OK)
        return status;
    const char *doubted = out->peak;
    *out = rate_of(flops, bytes, seconds, dtype, &peak);
    if (out->share > SLACK) {
        settled[settled_count].device = d;
        settled[settled_count++].peak = doubted;
    }
    return GPU_OK;
}

gpu_status lumat_rate_on(lua_State *L, gpu_device *d, int devices, double flops,
                         double bytes, double seconds, gpu_dtype dtype,
                         lumat_rate *out)
{
    gpu_status status =
        rate_on(L, d, flops / devices, bytes / devices, seconds, dtype, out);
    if (status == GPU_OK)
        out->value *= devices;
    return status;
}

const char *lumat_above_peak(double share)
{
    return share <= SLACK ? ""
                          : "in caches, by other units, or beside a peak "
                            "measured while busy";
}

static int above_peak(lua_State *L)
{
    lua_pushstring(L, lumat_above_peak(luaL_checknumber(L, 1)));
    return 1;
}

void lumat_open_rate(lua_State *L)
{
    lua_pushcfunction(L, above_peak);
    lumat_set_private(L, "above_peak");
}

int lumat_rate_call(lua_State *L)
{
    gpu_device *d;
    gpu_dtype dtype = GPU_F32;
    lumat_rate r;
    double flops = lumat_check_number(L, 1), bytes = lumat_check_number(L, 2);
    double seconds = lumat_check_number(L, 3);
    gpu_dtype_find(luaL_optstring(L, 4, "f32"), &dtype);
    if (lua_isnoneornil(L, 5))
        lumat_try(L, gpu_default(&d));
    else
        lumat_try(L, gpu_open(luaL_checkstring(L, 5), &d));
    lua_Integer devices = lumat_optional_integer(L, 6, 1);
    if (devices < 1 || devices > INT_MAX)
        lumat_refuse_kind(L, 6);
    lumat_try(
        L, lumat_rate_on(L, d, (int)devices, flops, bytes, seconds, dtype, &r));
    lua_pushnumber(L, r.value);
    lua_pushstring(L, r.unit);
    lua_pushnumber(L, r.share);
    lua_pushstring(L, r.peak);
    return 4;
}
