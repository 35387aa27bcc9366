/* What holds memory: the devices that are open, and variables by name. */
#include "memory_facts.h"
#include "locals.h"
#include "records.h"
#include "sparse_matrix.h"

#include <string.h>

/* devices(): a list of names */
static int push_devices(lua_State *L)
{
    gpu_device *const *devices;
    int n = gpu_device_count_opened(&devices);
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushstring(L, gpu_device_name(devices[i]));
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* reset(): every device's peak is what its matrices hold now */
static int reset_peaks(lua_State *L)
{
    gpu_device *const *devices;
    int n = gpu_device_count_opened(&devices);
    (void)L;
    for (int i = 0; i < n; i++)
        gpu_reset_peak(devices[i]);
    return 0;
}

static size_t storage_of_sparse(const gpu_sparse *s)
{
    return gpu_storage_bytes(&s->starts) + gpu_storage_bytes(&s->columns) +
           gpu_storage_bytes(&s->values);
}

/* Adds {name, bytes, device, matrix, storage} when the value on top is a
 * matrix that is there; storage tells which share one. */
static void add_variable(lua_State *L, int list, const char *name)
{
    const gpu_matrix *m = lumat_test_matrix(L, -1);
    const gpu_sparse *s = m ? NULL : lumat_test_sparse(L, -1);
    const gpu_matrix *held = s ? &s->values : m;
    if (!held || !held->storage)
        return;
    lua_createtable(L, 0, 5);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    lumat_set_count(L, "bytes",
                    s ? storage_of_sparse(s) : gpu_storage_bytes(m));
    lua_pushstring(L, gpu_device_name(gpu_matrix_device(held)));
    lua_setfield(L, -2, "device");
    lua_pushlightuserdata(L, held->storage);
    lua_setfield(L, -2, "storage");
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "matrix");
    lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
}

/* variables(): matrices among the prompt's locals and the globals */
static int push_variables(lua_State *L)
{
    lua_settop(L, 0);
    lumat_refresh_locals(L);
    lua_newtable(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session");
    lua_pushglobaltable(L);
    for (int table = 2; table <= 3; table++)
        for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
            if (lua_type(L, -2) == LUA_TSTRING)
                add_variable(L, 1, lua_tostring(L, -2));
    lua_settop(L, 1);
    return 1;
}

void lumat_open_held(lua_State *L)
{
    static const luaL_Reg own[] = {{"devices", push_devices},
                                   {"variables", push_variables},
                                   {"reset", reset_peaks},
                                   {NULL, NULL}};
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    luaL_newlib(L, own);
    lua_setfield(L, -2, "lumat.held");
    lua_pop(L, 1);
}
