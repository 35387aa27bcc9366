/* Printing: the header line, and the doors through which values are shown. */
#include <math.h>
#include <stdio.h>
#include "complex_value.h"
#include "print_parts.h"
#include "value.h"

static const char STYLE_KEY; /* its address is the key in the registry */

void lumat_push_matrix_headline(lua_State *L, const gpu_matrix *m)
{
    if (m->storage == NULL) {
        lua_pushliteral(L, "freed matrix");
        return;
    }
    const char *device = gpu_device_name(gpu_matrix_device(m));
    lua_pushfstring(L, "%s ", gpu_dtype_name(m->dtype));
    lumat_push_shape(L, m);
    if (gpu_is_lost(m))
        lua_pushfstring(L, "  %s  lost", device);
    else if (gpu_size(m) == 0)
        lua_pushliteral(L, "  (empty)");
    else
        lua_pushfstring(L, "  %s  %s%s", device, gpu_bytes_text(gpu_bytes(m)),
                        gpu_is_incomplete(m) ? "  incomplete" : "");
    lua_concat(L, 3);
}

/* What printing itself computes is kept out of the trace. */
static void push_matrix(lua_State *L, const gpu_matrix *m, const lumat_style *s)
{
    gpu_pause_trace(1);
    if (m->storage == NULL || gpu_is_lost(m) || gpu_size(m) == 0)
        lumat_push_matrix_headline(L, m);
    else if (m->ndim == 1)
        lumat_push_vector_text(L, m, s);
    else
        lumat_push_matrix_text(L, m, s);
    gpu_pause_trace(0);
}

static void push_sparse(lua_State *L, const gpu_sparse *s,
                        const lumat_style *style)
{
    gpu_pause_trace(1);
    lumat_push_sparse_text(L, s, style);
    gpu_pause_trace(0);
}

void lumat_push_text(lua_State *L, int index, const lumat_style *style)
{
    const gpu_matrix *m = lumat_test_matrix(L, index);
    const gpu_sparse *s = lumat_test_sparse(L, index);
    if (m != NULL)
        push_matrix(L, m, style);
    else if (s != NULL)
        push_sparse(L, s, style);
    else
        lumat_push_value_text(L, index, style);
}

/* Both are called protected, with the value at 1. */
static int show(lua_State *L)
{
    lumat_style style = lumat_style_of(lua_touserdata(L, 2));
    lumat_has_shown_nan();
    lumat_push_text(L, 1, &style);
    if (lumat_has_shown_nan() ||
        (lua_type(L, 1) == LUA_TNUMBER && isnan(lua_tonumber(L, 1))))
        lumat_explain_nan(L, 1);
    return 1;
}

static int show_headline(lua_State *L)
{
    const gpu_matrix *m = lumat_test_matrix(L, 1);
    const gpu_sparse *s = lumat_look_at_sparse(L, 1);
    if (m != NULL)
        lumat_push_matrix_headline(L, m);
    else if (s != NULL)
        lumat_push_sparse_headline(L, s);
    else
        lumat_push_value_short(L, 1);
    return 1;
}

/* Makes the error value on the top a string, without raising. */
static void push_message(lua_State *L)
{
    if (lua_type(L, -1) == LUA_TSTRING)
        return;
    lua_pushfstring(L, "(the error is a %s)", lumat_kind_of(L, -1));
    lua_replace(L, -2);
}

int lumat_push_shown(lua_State *L, int index, const lumat_style *style)
{
    index = lua_absindex(L, index);
    lua_pushcfunction(L, show);
    lua_pushvalue(L, index);
    lua_pushlightuserdata(L, (void *)(uintptr_t)style);
    if (lua_pcall(L, 2, 1, 0) == LUA_OK)
        return 1;
    push_message(L);
    return 0;
}

void lumat_push_headline(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    lua_pushcfunction(L, show_headline);
    lua_pushvalue(L, index);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK)
        push_message(L);
}

void lumat_set_style(lua_State *L, const lumat_style *style)
{
    lumat_style *kept = lua_newuserdatauv(L, sizeof *kept, 0);
    *kept = *style;
    lua_rawsetp(L, LUA_REGISTRYINDEX, &STYLE_KEY);
}

lumat_style lumat_style_now(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &STYLE_KEY);
    lumat_style style = lumat_style_of(lua_touserdata(L, -1));
    lua_pop(L, 1);
    return style;
}

static lua_CFunction makers[2]; /* tostring, string.format */

int lumat_is_for_later(lua_State *L)
{
    lua_Debug caller;
    if (!lua_getstack(L, 1, &caller))
        return 0;
    lua_getinfo(L, "f", &caller);
    lua_CFunction function = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    return function && (function == makers[0] || function == makers[1]);
}

/* The metamethod __tostring of matrices of both kinds. */
static int matrix_tostring(lua_State *L)
{
    const gpu_matrix *m = lumat_test_matrix(L, 1);
    const gpu_sparse *s = lumat_test_sparse(L, 1);
    if (m == NULL && s == NULL)
        return luaL_typeerror(L, 1, "matrix");
    lua_settop(L, 1);
    lumat_style style = lumat_style_now(L);
    if (lumat_is_for_later(L))
        style.colour = 0;
    if (s != NULL)
        push_sparse(L, s, &style);
    else
        push_matrix(L, m, &style);
    return 1;
}

static int complex_tostring(lua_State *L)
{
    const gpu_complex *z = lumat_test_complex(L, 1);
    if (z == NULL)
        return luaL_typeerror(L, 1, "complex number");
    lumat_push_complex_text(L, *z, 0);
    return 1;
}

void lumat_open_format(lua_State *L)
{
    lumat_style plain = {0};
    lumat_set_style(L, &plain);
    luaL_getmetatable(L, LUMAT_COMPLEX);
    lua_pushcfunction(L, complex_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pop(L, 1);
    for (int i = 0; i < 2; i++) {
        luaL_getmetatable(L, i ? LUMAT_SPARSE : "lumat.matrix");
        lua_pushcfunction(L, matrix_tostring);
        lua_setfield(L, -2, "__tostring");
    }
    lua_getglobal(L, "tostring");
    makers[0] = lua_tocfunction(L, -1);
    lua_getglobal(L, "string");
    lua_getfield(L, -1, "format");
    makers[1] = lua_tocfunction(L, -1);
    lua_pop(L, 5);
}
