/* lumat.unit_text, for the library's own files: bytes, seconds and operations
 * in the unit that suits them, for people. */
#include "print_parts.h"

#include "lauxlib.h"
#include <stdlib.h>

const char *lumat_seconds_text(double seconds, int digits)
{
    static const gpu_units units = {1000, {"us", "ms", "s"}};
    return gpu_amount_text(seconds * 1e6, &units, digits);
}

/* The number of digits, as of gpu_amount_text, of the form at 2: "%.3g" or
 * "%.1f". */
static int check_form(lua_State *L)
{
    size_t length;
    const char *form = luaL_checklstring(L, 2, &length);
    int digits = length == 4 ? form[2] - '0' : 0;
    luaL_argcheck(L, digits > 0 && digits < 10, 2, "like %.3g");
    return form[3] == 'f' ? -digits : digits;
}

/* Each takes a number and a form. */
static int push_amount(lua_State *L, double scale, const gpu_units *units)
{
    double x = luaL_checknumber(L, 1) * scale;
    lua_pushstring(L, gpu_amount_text(x, units, check_form(L)));
    return 1;
}

static int bytes(lua_State *L)
{
    return push_amount(L, 1, &gpu_byte_units);
}

static int flops(lua_State *L)
{
    static const gpu_units units = {
        1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"}};
    return push_amount(L, 1, &units);
}

static int seconds(lua_State *L)
{
    double x = luaL_checknumber(L, 1);
    lua_pushstring(L, lumat_seconds_text(x, check_form(L)));
    return 1;
}

/* The same of times that may be shorter than a microsecond. */
static int short_seconds(lua_State *L)
{
    static const gpu_units units = {1000, {"ns", "us", "ms", "s"}};
    return push_amount(L, 1e9, &units);
}

void lumat_open_unit_text(lua_State *L)
{
    static const luaL_Reg own[] = {{"bytes", bytes},
                                   {"flops", flops},
                                   {"seconds", seconds},
                                   {"short_seconds", short_seconds},
                                   {NULL, NULL}};
    luaL_newlib(L, own);
    lumat_set_required(L, "unit_text");
}
