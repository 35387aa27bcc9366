/* The kinds of arguments, options and results that rows speak of. */
#include "function.h"
#include "value.h"

#include <math.h>
#include <string.h>

static int is_whole(lua_State *L, int index)
{
    int exact = 0;
    if (lua_type(L, index) == LUA_TNUMBER)
        lua_tointegerx(L, index, &exact);
    return exact;
}

static int is_any(lua_State *L, int index)
{
    (void)L, (void)index;
    return 1;
}

static int is_above_zero(lua_State *L, int index)
{
    double x = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : 0;
    return x > 0 && isfinite(x);
}

static int is_size(lua_State *L, int index)
{
    return is_whole(L, index) && lua_tointeger(L, index) >= 0;
}

static int is_count(lua_State *L, int index)
{
    return is_whole(L, index) && lua_tointeger(L, index) > 0;
}

static int is_axis(lua_State *L, int index)
{
    return is_whole(L, index) &&
           (lua_tointeger(L, index) == 1 || lua_tointeger(L, index) == 2);
}

static int is_dtype(lua_State *L, int index)
{
    gpu_dtype type;
    return lua_type(L, index) == LUA_TSTRING &&
           gpu_dtype_find(lua_tostring(L, index), &type);
}

static int is_dense(lua_State *L, int index)
{
    const gpu_matrix *m = lumat_test_matrix(L, index);
    return m && m->storage;
}

static int is_vector(lua_State *L, int index)
{
    return is_dense(L, index) && lumat_test_matrix(L, index)->ndim == 1;
}

static int is_sparse(lua_State *L, int index)
{
    return lumat_test_sparse(L, index) != NULL;
}

static int is_list(lua_State *L, int index)
{
    return lua_istable(L, index) || is_vector(L, index);
}

static int is_number(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TNUMBER;
}

static int is_string(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TSTRING;
}

/* Matrices can be called, but as A(i, j). */
static int is_callable(lua_State *L, int index)
{
    if (lua_isfunction(L, index) || lumat_test_matrix(L, index) ||
        lumat_test_sparse(L, index))
        return lua_isfunction(L, index);
    int found = luaL_getmetafield(L, index, "__call") != LUA_TNIL;
    lua_pop(L, found);
    return found;
}

static int is_table(lua_State *L, int index)
{
    return lua_istable(L, index);
}

static int is_boolean(lua_State *L, int index)
{
    return lua_isboolean(L, index);
}

static int is_nothing(lua_State *L, int index)
{
    return lua_isnoneornil(L, index);
}

/* Names that say more to completion than to a check share theirs. */
static const struct kind {
    const char *name;
    lumat_kind_test *is;
    const char *words;
} kinds[] = {
    {"value", is_any, "a value"},
    {"nothing", is_nothing, "nothing"},
    {"matrix", is_dense, "a matrix"},
    {"square", is_dense, "a square matrix"},
    {"vector", is_vector, "a vector"},
    {"sparse", is_sparse, "a sparse matrix"},
    {"number", is_number, "a number"},
    {"positive", is_above_zero, "a number above 0"},
    {"integer", is_whole, "a whole number"},
    {"size", is_size, "a size"},
    {"count", is_count, "a whole number above 0"},
    {"axis", is_axis, "1 (down each column) or 2 (along each row)"},
    {"boolean", is_boolean, "true or false"},
    {"function", is_callable, "a function"},
    {"table", is_table, "a table"},
    {"list", is_list, "a vector or a table"},
    {"string", is_string, "a string"},
    {"dtype", is_dtype, "\"f32\", \"f64\" or \"bool\""},
    {"device", is_string, "a device such as \"cpu\" or \"cuda:0\""},
    {"kernel", is_string, "a kernel's name"},
    {"operation", is_string, "\"dot\" or \"matmul\""},
    {"topic", is_string, "a name"},
    {"variable", is_string, "a variable's name"},
    {"path", is_string, "a file's name"},
    {"folder", is_string, "a folder's name"},
    {"data", is_string, "a file's name"},
    {"script", is_string, "a file's name"},
    {"session", is_string, "a file's name"},
    {"picture", is_string, "a file's name"},
};

static const struct kind *find_kind(lumat_piece name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (lumat_is_piece(name, kinds[i].name))
            return &kinds[i];
    return &kinds[0];
}

/* Of these an unknown number of a dry run may be one. */
static int is_numeric(const struct kind *k)
{
    return k->is == is_number || k->is == is_above_zero || k->is == is_whole ||
           k->is == is_size || k->is == is_count || k->is == is_axis;
}

static int is_one(lua_State *L, int index, lumat_piece kind)
{
    if (*kind.start != '"') {
        const struct kind *k = find_kind(kind);
        return k->is(L, index) || (is_numeric(k) && lumat_is_unknown(L, index));
    }
    lumat_piece word = {kind.start + 1, kind.length - 2};
    return is_string(L, index) && lumat_is_piece(word, lua_tostring(L, index));
}

lumat_kind_test *lumat_find_test(lumat_piece kind)
{
    int is_plain = *kind.start != '"' && !memchr(kind.start, '|', kind.length);
    return is_plain ? find_kind(kind)->is : NULL;
}

int lumat_is_kind(lua_State *L, int index, lumat_piece kind)
{
    lumat_piece one;
    index = lua_absindex(L, index);
    while (lumat_next_kind(&kind, &one))
        if (is_one(L, index, one))
            return 1;
    return 0;
}

const char *lumat_push_kind(lua_State *L, lumat_piece kind)
{
    lumat_piece one, rest = kind;
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int first = 1; lumat_next_kind(&rest, &one); first = 0) {
        luaL_addstring(&b, first ? "" : rest.length > 0 ? ", " : " or ");
        if (*one.start == '"')
            luaL_addlstring(&b, one.start, one.length);
        else
            luaL_addstring(&b, find_kind(one)->words);
    }
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}
