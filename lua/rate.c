/* Rates and their share of the measured peak. */
#include "rate.h"
#include "make.h"

/* One unit a device, so that the kernels of a race can be compared at a
 * glance. */
static lumat_rate flops_rate(double flops, gpu_dtype dtype, double peak)
{
    int tera = peak >= 1e12;
    return (lumat_rate){flops / (tera ? 1e12 : 1e9),
                        tera ? "TFLOP/s" : "GFLOP/s", flops / peak,
                        dtype == GPU_F64 ? "f64" : "f32"};
}

lumat_rate lumat_rate_of(double flops, double bytes, double seconds,
                         gpu_dtype dtype, const gpu_peak *peak)
{
    double most = dtype == GPU_F64 ? peak->f64_flops : peak->f32_flops;
    flops /= seconds;
    bytes /= seconds;
    if (flops / most > bytes / peak->bytes)
        return flops_rate(flops, dtype, most);
    return (lumat_rate){bytes / 1e9, "GB/s", bytes / peak->bytes, "memory"};
}

int lumat_rate_call(lua_State *L)
{
    gpu_device *d;
    gpu_dtype dtype;
    gpu_peak peak;
    double flops = luaL_checknumber(L, 1), bytes = luaL_checknumber(L, 2);
    double seconds = luaL_checknumber(L, 3);
    luaL_argcheck(L, seconds > 0, 3, "must be above 0");
    luaL_argcheck(L, gpu_dtype_find(luaL_optstring(L, 4, "f32"), &dtype), 4,
                  "is f32 or f64");
    if (lua_isnoneornil(L, 5))
        lumat_try(L, gpu_default(&d));
    else
        lumat_try(L, gpu_open(luaL_checkstring(L, 5), &d));
    lumat_try(L, gpu_device_peak(d, &peak));
    lumat_rate r = lumat_rate_of(flops, bytes, seconds, dtype, &peak);
    lua_pushnumber(L, r.value);
    lua_pushstring(L, r.unit);
    lua_pushnumber(L, r.share);
    lua_pushstring(L, r.peak);
    return 4;
}
