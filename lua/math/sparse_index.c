/* S.rows, S.T and the other properties of a sparse matrix; S(i, j); the rows
 * and columns that S[…] chooses. */
#include "cancellation.h"
#include "diagnose.h"
#include "index.h"
#include "print.h"
#include "sparse_make.h"
#include "value.h"

#include <string.h>

/* --- properties ----------------------------------------------------------- */

static void push_transposed(lua_State *L, const gpu_sparse *s)
{
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_transposed(s, out));
    lumat_account_sparse(L, out);
}

static void push_rows(lua_State *L, const gpu_sparse *s)
{
    lua_pushinteger(L, s->rows);
}

static void push_cols(lua_State *L, const gpu_sparse *s)
{
    lua_pushinteger(L, s->cols);
}

static void push_shape(lua_State *L, const gpu_sparse *s)
{
    lua_createtable(L, 2, 0);
    lua_pushinteger(L, s->rows);
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, s->cols);
    lua_rawseti(L, -2, 2);
}

static void push_dtype(lua_State *L, const gpu_sparse *s)
{
    lua_pushstring(L, gpu_dtype_name(s->values.dtype));
}

static void push_device(lua_State *L, const gpu_sparse *s)
{
    gpu_device *d = gpu_matrix_device(&s->values);
    lua_pushstring(L, d ? gpu_device_name(d) : "none");
}

static void push_nnz(lua_State *L, const gpu_sparse *s)
{
    lua_pushinteger(L, s->count);
}

static void push_ndim(lua_State *L, const gpu_sparse *s)
{
    (void)s;
    lua_pushinteger(L, 2);
}

static void push_bytes(lua_State *L, const gpu_sparse *s)
{
    lua_pushinteger(L, (lua_Integer)gpu_sparse_bytes(s));
}

static const struct property {
    const char *name;
    void (*push)(lua_State *L, const gpu_sparse *s);
} properties[] = {
    {"T", push_transposed}, {"rows", push_rows},   {"cols", push_cols},
    {"shape", push_shape},  {"dtype", push_dtype}, {"device", push_device},
    {"nnz", push_nnz},      {"ndim", push_ndim},   {"bytes", push_bytes},
};

#define PROPERTIES "T rows cols shape dtype device nnz ndim bytes"
const char lumat_sparse_property_names[] = PROPERTIES;
static const char names[] = PROPERTIES " full f32 f64 to free";

static int push_property(lua_State *L, const gpu_sparse *s, const char *name)
{
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (strcmp(name, properties[i].name) == 0) {
            properties[i].push(L, s);
            return 1;
        }
    return 0;
}

static int unknown_name(lua_State *L, const char *name)
{
    const char *near = strlen(name) <= 40 ? lumat_nearest(L, name, names) : "";
    if (near && *near)
        return lumat_raise(L, "a sparse matrix has no '%s': did you mean '%s'?",
                           name, near);
    const char *instead = lumat_push_instead(L, name);
    if (instead && strstr(instead, "mean A."))
        return lumat_raise(L, "a sparse matrix has no '%s': %s", name, instead);
    return lumat_raise(L,
                       "a sparse matrix has no %s: there are %s; full(S) is "
                       "dense",
                       lumat_push_brief(L, 2), names);
}

/* --- chosen rows and columns ---------------------------------------------- */

/* S[i], S[{i, {}}] and S[{{}, j}]: S(i, j) is there. */
static int no_vector(lua_State *L, int axis)
{
    const char *name = lumat_name_of(L, 1, "S");
    return lumat_raise(L,
                       "index: there are no sparse vectors: as a sparse matrix "
                       "the %s is %s[{%s}]",
                       axis == 1 ? "row" : "column", name,
                       axis == 1 ? "{i, i}, {}" : "{}, {j, j}");
}

/* Pushes the places of a range, or a nil: those of a list are pushed already;
 * NULL: all. */
static const int64_t *push_part(lua_State *L, const lumat_part *part,
                                int64_t size, int64_t *count)
{
    *count = part->listed;
    lua_pushnil(L);
    if (part->places)
        return part->places;
    *count = part->slice.count;
    if (part->slice.first == 0 && part->slice.step == 1 && *count == size)
        return NULL;
    int64_t *places = lua_newuserdatauv(L, (size_t)*count * sizeof *places, 0);
    for (int64_t k = 0; k < *count; k++) {
        lumat_poll(L, k);
        places[k] = part->slice.first + k * part->slice.step;
    }
    return places;
}

static int push_element(lua_State *L, const gpu_sparse *s, int64_t i, int64_t j)
{
    double value;
    lumat_try(L, gpu_sparse_get(s, i, j, &value));
    if (lumat_push_unread(L, "an element"))
        return 1;
    lumat_note_scalar(s->values.dtype, value);
    lua_pushnumber(L, value);
    return 1;
}

static int push_parts(lua_State *L, const gpu_sparse *s,
                      const lumat_part part[2])
{
    int64_t nrows, ncols;
    if (part[0].is_index && part[1].is_index)
        return push_element(L, s, part[0].slice.first, part[1].slice.first);
    if (part[0].is_index || part[1].is_index)
        return no_vector(L, part[0].is_index ? 1 : 2);
    const int64_t *rows = push_part(L, &part[0], s->rows, &nrows);
    const int64_t *cols = push_part(L, &part[1], s->cols, &ncols);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_gather(s, rows, nrows, cols, ncols, out));
    lumat_account_sparse(L, out);
    return 1;
}

/* The number, table, slice or matrix at 2; parts look at shapes alone. */
static int get_parts(lua_State *L, const gpu_sparse *s)
{
    gpu_matrix shape = {.ndim = 2, .rows = s->rows, .cols = s->cols};
    lumat_part part[2];
    if (!s->values.storage)
        return lumat_raise(L, "index: the sparse matrix has been freed");
    if (lua_type(L, 2) == LUA_TNUMBER)
        return no_vector(L, 1);
    if (lua_type(L, 2) == LUA_TTABLE)
        lumat_table_parts(L, &shape, 2, part);
    else if (lua_type(L, 2) == LUA_TSTRING)
        lumat_string_parts(L, &shape, 2, part);
    else if (lumat_test_matrix(L, 2))
        lumat_list_parts(L, &shape, 2, part);
    else
        return lumat_bad_key(L, 2);
    return push_parts(L, s, part);
}

static int get_index(lua_State *L)
{
    const gpu_sparse *s = lumat_check_sparse(L);
    if (lua_type(L, 2) != LUA_TSTRING || lumat_is_slice(lua_tostring(L, 2)))
        return get_parts(L, s);
    const char *name = lua_tostring(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    return push_property(L, s, name) ? 1 : unknown_name(L, name);
}

static int set_index(lua_State *L)
{
    return lumat_raise(L, "assignment: a sparse matrix stays as it was made: "
                          "make another with sparse(i, j, v), or write to "
                          "full(S)");
}

/* --- elements ------------------------------------------------------------- */

/* The 0-based index at arg, counted from the end when negative. */
static int64_t check_place(lua_State *L, int arg, const char *what,
                           int64_t size)
{
    int exact;
    lua_Integer i = lua_tointegerx(L, arg, &exact);
    if (!exact || lua_type(L, arg) != LUA_TNUMBER)
        lumat_raise(L, "index: must be a whole number, not %s",
                    lumat_push_brief(L, arg));
    int64_t place = i < 0 ? i + size : i - 1;
    if (i == 0 || place < 0 || place >= size)
        lumat_raise(L, "%s %I is outside 1..%I", what, (LUAI_UACINT)i,
                    (LUAI_UACINT)size);
    return place;
}

/* S(i, j) */
static int get_element(lua_State *L)
{
    lumat_refuse_called(L);
    const gpu_sparse *s = lumat_check_sparse(L);
    if (lua_gettop(L) != 3)
        return lumat_raise(L, "index: %d %s given, a sparse matrix has 2",
                           lua_gettop(L) - 1,
                           lua_gettop(L) == 2 ? "index" : "indices");
    int64_t i = check_place(L, 2, "row", s->rows);
    int64_t j = check_place(L, 3, "column", s->cols);
    return push_element(L, s, i, j);
}

static int get_length(lua_State *L)
{
    lua_pushinteger(L, lumat_check_sparse(L)->rows);
    return 1;
}

static const luaL_Reg metamethods[] = {{"__newindex", set_index},
                                       {"__call", get_element},
                                       {"__len", get_length},
                                       {NULL, NULL}};

void lumat_open_sparse_index(lua_State *L)
{
    luaL_getmetatable(L, LUMAT_SPARSE);
    lua_newtable(L);
    luaL_setfuncs(L, lumat_sparse_methods, 0);
    lua_pushcclosure(L, get_index, 1);
    lua_setfield(L, -2, "__index");
    luaL_setfuncs(L, metamethods, 0);
    lua_pop(L, 1);
}
