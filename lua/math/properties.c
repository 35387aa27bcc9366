/* A.rows, A.T and the other properties of a matrix. */
#include "index.h"

#include <string.h>

static int get_rows(lua_State *L, const gpu_matrix *m)
{
    lua_pushinteger(L, m->rows);
    return 1;
}

static int get_cols(lua_State *L, const gpu_matrix *m)
{
    lua_pushinteger(L, m->cols);
    return 1;
}

static int get_size(lua_State *L, const gpu_matrix *m)
{
    lua_pushinteger(L, gpu_size(m));
    return 1;
}

static int get_ndim(lua_State *L, const gpu_matrix *m)
{
    lua_pushinteger(L, m->ndim);
    return 1;
}

static int get_bytes(lua_State *L, const gpu_matrix *m)
{
    lua_pushinteger(L, (lua_Integer)gpu_bytes(m));
    return 1;
}

static int get_shape(lua_State *L, const gpu_matrix *m)
{
    lua_createtable(L, m->ndim, 0);
    lua_pushinteger(L, m->rows);
    lua_rawseti(L, -2, 1);
    if (m->ndim == 2) {
        lua_pushinteger(L, m->cols);
        lua_rawseti(L, -2, 2);
    }
    return 1;
}

static int get_dtype(lua_State *L, const gpu_matrix *m)
{
    lua_pushstring(L, gpu_dtype_name(m->dtype));
    return 1;
}

static int get_device(lua_State *L, const gpu_matrix *m)
{
    gpu_device *d = gpu_matrix_device(m);
    lua_pushstring(L, d ? gpu_device_name(d) : "none");
    return 1;
}

static int get_transposed(lua_State *L, const gpu_matrix *m)
{
    gpu_view_transposed(m, lumat_new_matrix(L));
    return 1;
}

static const struct property {
    const char *name;
    int (*get)(lua_State *L, const gpu_matrix *m);
} properties[] = {
    {"T", get_transposed}, {"rows", get_rows},   {"cols", get_cols},
    {"shape", get_shape},  {"dtype", get_dtype}, {"device", get_device},
    {"size", get_size},    {"ndim", get_ndim},   {"bytes", get_bytes},
};

const char lumat_property_names[] =
    "T rows cols shape dtype device size ndim bytes";

static const struct property *find(const char *name)
{
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (strcmp(name, properties[i].name) == 0)
            return &properties[i];
    return NULL;
}

int lumat_is_property(const char *name)
{
    return find(name) != NULL;
}

int lumat_push_property(lua_State *L, const gpu_matrix *m, const char *name)
{
    const struct property *p = find(name);
    return p ? p->get(L, m) : 0;
}
