/* What is known of the user's variables and the devices, for the reports in
 * Lua: variables_report.lua, memory_report.lua. */
#include <fnmatch.h>
#include "scope.h"
#include "print.h"
#include "session.h"
#include "value.h"

/* variables(): the user's variables, values by name, and in a second table the
 * globals that the prompt's locals hide, which hold what they hold. */
static int list_variables(lua_State *L)
{
    lua_settop(L, 0);
    lumat_refresh_locals(L);
    lua_newtable(L);
    lua_newtable(L);
    lumat_variables v = lumat_begin_variables(L, LUMAT_WITH_HIDDEN);
    while (lumat_next_variable(&v)) {
        int is_hidden = lua_getfield(L, 1, v.name) != LUA_TNIL;
        lua_pop(L, 1);
        lua_setfield(L, is_hidden ? 2 : 1, v.name);
    }
    return 2;
}

/* How well a value stands for all of its storage: 0, in order; 1, turned or
 * with steps; 2, a part of it. */
static int rank_of(const gpu_matrix *m, int is_dense)
{
    if (is_dense && gpu_bytes(m) < gpu_storage_bytes(m))
        return 2;
    return !gpu_is_contiguous(m);
}

static void push_storage(lua_State *L, const gpu_matrix *m, int is_dense)
{
    /* of a transpose that was not read there is none yet: it shares nothing */
    lua_pushlightuserdata(L, m->storage ? (void *)m->storage : (void *)m);
    lua_pushinteger(L, (lua_Integer)gpu_storage_bytes(m));
    lua_pushinteger(L, (lua_Integer)gpu_kept_bytes(m));
    lua_pushinteger(L, rank_of(m, is_dense));
}

/* storages(value): of each storage that a matrix has, of a sparse one three, a
 * key that those have who share it, its bytes, the bytes that products keep
 * about it, and the rank of the matrix among those who share it; nothing for
 * other values, and for what was freed. */
static int get_storages(lua_State *L)
{
    const gpu_matrix *m = lumat_test_matrix(L, 1);
    const gpu_sparse *s = lumat_look_at_sparse(L, 1);
    lua_settop(L, 1);
    if (s && s->values.storage) {
        push_storage(L, &s->values, 0);
        push_storage(L, &s->columns, 0);
        push_storage(L, &s->starts, 0);
    } else if (m && m->storage) {
        push_storage(L, m, 1);
    }
    return lua_gettop(L) - 1;
}

/* facts(value): its type; of a matrix also its shape as text, its device
 * ("freed" once it was) and, dense, the bytes of its elements; sparse, nil and
 * how many entries it has. */
static int get_facts(lua_State *L)
{
    const gpu_matrix *m = lumat_test_matrix(L, 1);
    const gpu_sparse *s = lumat_look_at_sparse(L, 1);
    const gpu_matrix *part = s ? &s->values : m;
    lua_settop(L, 1);
    if (!part) {
        lua_pushstring(L, lumat_kind_of(L, 1));
        return 1;
    }
    lua_pushstring(L, gpu_dtype_name(part->dtype));
    lua_pushstring(L, s ? gpu_size_text(s->rows, s->cols) : gpu_shape_text(m));
    lua_pushstring(L, part->storage ? gpu_device_name(gpu_matrix_device(part))
                                    : "freed");
    if (!s) {
        lua_pushinteger(L, (lua_Integer)gpu_bytes(m));
        return 4;
    }
    lua_pushnil(L);
    lua_pushinteger(L, s->count);
    return 5;
}

/* same(A, B): of two that share a storage, has one the elements of the other?
 * nil unless both are dense. */
static int is_same(lua_State *L)
{
    const gpu_matrix *a = lumat_test_matrix(L, 1), *b = lumat_test_matrix(L, 2);
    if (!a || !b)
        return 0;
    lua_pushboolean(
        L, a->ndim == b->ndim && a->rows == b->rows && a->cols == b->cols &&
               a->row_stride == b->row_stride &&
               a->col_stride == b->col_stride && a->offset == b->offset);
    return 1;
}

/* headline(value): one line on it */
static int get_headline(lua_State *L)
{
    lumat_push_headline(L, 1);
    return 1;
}

/* fits(name, pattern): as names of files do */
static int fits(lua_State *L)
{
    lua_pushboolean(
        L, fnmatch(luaL_checkstring(L, 2), luaL_checkstring(L, 1), 0) == 0);
    return 1;
}

/* devices(): a list of the names of those that are open */
static int list_devices(lua_State *L)
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

void lumat_open_variables(lua_State *L)
{
    static const luaL_Reg own[] = {{"variables", list_variables},
                                   {"storages", get_storages},
                                   {"facts", get_facts},
                                   {"same", is_same},
                                   {"headline", get_headline},
                                   {"fits", fits},
                                   {"devices", list_devices},
                                   {"reset", reset_peaks},
                                   {NULL, NULL}};
    luaL_newlib(L, own);
    lumat_set_required(L, "variables");
}
