/* What is certain about a value that is there. All access is raw. */
#include "known_value.h"
#include "value.h"

static lumat_fact only(lumat_fact_kind kind)
{
    return (lumat_fact){.kind = kind};
}

/* --- values --------------------------------------------------------------- */

static lumat_fact fact_of_userdata(lua_State *L)
{
    lumat_fact fact = only(LUMAT_IS_VALUE);
    const gpu_matrix *m = lumat_test_matrix(L, -1);
    const gpu_sparse *s = lumat_test_sparse(L, -1);
    if (m) {
        fact.kind = LUMAT_IS_DENSE;
        fact.shape = *m;
        fact.device = gpu_matrix_device(m);
        if (!m->storage)
            fact.shape.ndim = 0;
    } else if (s) {
        fact.kind = LUMAT_IS_SPARSE;
        fact.shape.ndim = s->values.storage ? 2 : 0;
        fact.shape.rows = s->rows;
        fact.shape.cols = s->cols;
        fact.device = gpu_matrix_device(&s->values);
    }
    return fact;
}

lumat_fact lumat_fact_of(lua_State *L)
{
    switch (lua_type(L, -1)) {
    case LUA_TTABLE:
    case LUA_TFUNCTION:
        return only(LUMAT_IS_VALUE);
    case LUA_TUSERDATA:
        return fact_of_userdata(L);
    case LUA_TSTRING:
        return only(LUMAT_IS_STRING);
    case LUA_TNUMBER:
        return only(LUMAT_IS_NUMBER);
    default:
        return only(LUMAT_IS_UNKNOWN);
    }
}

int lumat_next_table(lua_State *L)
{
    if (!lua_getmetatable(L, -1)) {
        lua_pop(L, 1);
        return 0;
    }
    lua_pushliteral(L, "__index");
    lua_rawget(L, -2);
    lua_replace(L, -3);
    lua_pop(L, 1);
    if (lua_istable(L, -1))
        return 1;
    lua_pop(L, 1);
    return 0;
}

void lumat_replace_by_field(lua_State *L, const char *name, size_t length)
{
    for (int i = 0; i < LUMAT_LEVELS; i++) {
        if (lua_istable(L, -1)) {
            lua_pushlstring(L, name, length);
            if (lua_rawget(L, -2) != LUA_TNIL) {
                lua_remove(L, -2);
                return;
            }
            lua_pop(L, 1);
        }
        if (!lumat_next_table(L)) {
            lua_pushnil(L);
            return;
        }
    }
    lua_pop(L, 1);
    lua_pushnil(L);
}

const char *lumat_library_name(lua_State *L)
{
    const char *name = NULL;
    int function = lua_gettop(L);
    if (!lua_isfunction(L, function) && !lua_istable(L, function))
        return NULL;
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    for (lua_pushnil(L); lua_next(L, function + 1); lua_pop(L, 1))
        if (lua_rawequal(L, -1, function))
            name = lua_tostring(L, -2);
    if (!name && lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base")) {
        lua_pushliteral(L, "load"); /* there it is Lua's own as well */
        lua_rawget(L, -2);
        name = lua_rawequal(L, -1, function) ? "load" : NULL;
    }
    lua_settop(L, function);
    return name;
}
