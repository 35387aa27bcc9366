/* Complex numbers: the userdata, and what it is equal to. */
#include "complex_value.h"
#include "value.h"

static const void *metatable_address;

void lumat_push_complex(lua_State *L, gpu_complex z)
{
    gpu_complex *made = lua_newuserdatauv(L, sizeof *made, 0);
    *made = z;
    luaL_setmetatable(L, LUMAT_COMPLEX);
}

const gpu_complex *lumat_test_complex(lua_State *L, int index)
{
    if (lua_type(L, index) != LUA_TUSERDATA ||
        lua_rawlen(L, index) != sizeof(gpu_complex) ||
        !lua_getmetatable(L, index))
        return NULL;
    int same = lua_topointer(L, -1) == metatable_address;
    lua_pop(L, 1);
    return same ? lua_touserdata(L, index) : NULL;
}

int lumat_take_complex(lua_State *L, int index, gpu_complex *out)
{
    const gpu_complex *z = lumat_test_complex(L, index);
    int type = lua_type(L, index);
    if (z)
        *out = *z;
    else if (type == LUA_TNUMBER)
        *out = (gpu_complex){lua_tonumber(L, index), 0};
    else if (type == LUA_TBOOLEAN)
        *out = (gpu_complex){lua_toboolean(L, index), 0};
    else if (lumat_is_unknown(L, index))
        *out = (gpu_complex){0, 0};
    else
        return 0;
    return 1;
}

static int equal(lua_State *L)
{
    const gpu_complex *x = lumat_test_complex(L, 1);
    const gpu_complex *y = lumat_test_complex(L, 2);
    lua_pushboolean(L, x && y && x->re == y->re && x->im == y->im);
    return 1;
}

static int refuse_order(lua_State *L)
{
    return lumat_raise(L, "complex numbers have no order: compare abs(x), "
                          "real(x) or imag(x)");
}

void lumat_open_complex(lua_State *L)
{
    static const luaL_Reg events[] = {{"__eq", equal},
                                      {"__lt", refuse_order},
                                      {"__le", refuse_order},
                                      {NULL, NULL}};
    luaL_newmetatable(L, LUMAT_COMPLEX);
    metatable_address = lua_topointer(L, -1);
    luaL_setfuncs(L, events, 0);
    lua_pushliteral(L, "complex number");
    lua_setfield(L, -2, "__name");
    lua_pushliteral(L, "complex number");
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
