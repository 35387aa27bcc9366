/* Raw bytes, of which the options say what they are: a type and a shape. */
#include "arguments.h"
#include "formats.h"

#include <string.h>

/* Types as they are named here, and in NumPy's. */
static const char *const types[][2] = {
    {"f16", "f2"}, {"f32", "f4"}, {"f64", "f8"},   {"i8", "i1"},  {"i16", "i2"},
    {"i32", "i4"}, {"i64", "i8"}, {"u8", "u1"},    {"u16", "u2"}, {"u32", "u4"},
    {"u64", "u8"}, {"c64", "c8"}, {"c128", "c16"}, {"bool", "b1"}};

static void set_type(lua_State *L, lumat_npy *n)
{
    int is_swapped = 0, top = lua_gettop(L);
    if (lua_getfield(L, 2, "byteorder") == LUA_TSTRING)
        is_swapped = strcmp(lua_tostring(L, -1), "big") == 0;
    if (lua_getfield(L, 2, "dtype") == LUA_TNIL)
        lumat_raise(L, "load: raw bytes need their type: {shape=, "
                       "dtype=\"f32\"}");
    const char *name = lua_tostring(L, -1);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i][0], name) == 0) {
            lua_pushfstring(L, "%c%s", is_swapped ? '>' : '<', types[i][1]);
            lumat_npy_set_type(n, lua_tostring(L, -1));
        }
    lua_settop(L, top);
}

/* {n} is a vector, {m, n} a matrix, {k, m, n} a list of k matrices. */
static void set_shape(lua_State *L, const lumat_input *in, lumat_npy *n)
{
    int64_t sizes[3] = {1, 1, 1};
    int top = lua_gettop(L);
    if (!lua_istable(L, 2) || lua_getfield(L, 2, "shape") != LUA_TTABLE)
        lumat_raise(L,
                    "load: '%s' is raw bytes, which need their shape and type: "
                    "{shape={rows, cols}, dtype=\"f32\"}",
                    in->path);
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    if (count < 1 || count > 3)
        lumat_raise(L,
                    "load: shape has %I sizes; one is a vector's, two are a "
                    "matrix's, three a list's of matrices",
                    (LUAI_UACINT)count);
    for (lua_Integer i = 1; i <= count; i++) {
        int is_whole;
        lua_rawgeti(L, -1, i);
        sizes[i - 1] = lua_tointegerx(L, -1, &is_whole);
        if (!is_whole || sizes[i - 1] < 0)
            lumat_raise(L, "load: shape: %s is no size",
                        lumat_push_brief(L, -1));
        lua_pop(L, 1);
    }
    lua_settop(L, top);
    n->ndim = (int)count;
    n->pages = count == 3 ? sizes[0] : 1;
    n->rows = sizes[count == 3];
    n->cols = count == 1 ? 1 : sizes[count - 1];
}

static int64_t option_offset(lua_State *L)
{
    lua_Integer offset = 0;
    if (lua_getfield(L, 2, "offset") != LUA_TNIL)
        offset = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return offset;
}

static int is_by_columns(lua_State *L)
{
    int is = lua_getfield(L, 2, "order") == LUA_TSTRING &&
             strcmp(lua_tostring(L, -1), "F") == 0;
    lua_pop(L, 1);
    return is;
}

int lumat_load_raw(lua_State *L, lumat_input *in, const lumat_format *f)
{
    lumat_npy n = {0};
    uint64_t bytes;
    int64_t first, last;
    (void)f;
    set_shape(L, in, &n);
    set_type(L, &n);
    n.fortran = is_by_columns(L);
    uint64_t offset = (uint64_t)option_offset(L);
    lumat_source s = {.in = in, .at = (size_t)offset, .left = in->size};
    if (in->is_packed) {
        size_t length;
        s.memory = lumat_push_input_text(L, in, &length);
        s.left = length;
    }
    uint64_t all = s.left;
    if (!lumat_npy_bytes(&n, &bytes) || offset > all || bytes > all - offset)
        return lumat_refuse_input(
            L, in,
            "has %llu bytes, too few for that shape and type from byte "
            "%llu on",
            (unsigned long long)all, (unsigned long long)offset);
    if (bytes < all - offset && offset > 0)
        lumat_warn(L, "load", "%llu bytes behind the elements are not read",
                   (unsigned long long)(all - offset - bytes));
    else if (bytes < all - offset)
        return lumat_refuse_input(
            L, in,
            "has %llu bytes from byte %llu on, and that shape and type "
            "take %llu",
            (unsigned long long)(all - offset), (unsigned long long)offset,
            (unsigned long long)bytes);
    s.left = bytes;
    lumat_option_range(L, &first, &last);
    if (first > 1 || last < INT64_MAX)
        lumat_choose_rows(L, &s, &n, first, last);
    lumat_begin_input(in, (size_t)s.left);
    lumat_push_elements(L, &s, &n, GPU_ALL_DTYPES);
    return 1;
}

void lumat_save_raw(lua_State *L, const char *path, const lumat_format *f)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    lumat_npy_writer w = {.element = gpu_dtype_size(m->dtype)};
    (void)f;
    gpu_matrix *turned = lumat_new_matrix(L);
    gpu_view_transposed(m, turned);
    int is_turned = m->ndim == 2 && lua_istable(L, 3) &&
                    lua_getfield(L, 3, "order") == LUA_TSTRING &&
                    strcmp(lua_tostring(L, -1), "F") == 0;
    w.target = lumat_push_target(L, path, gpu_bytes(m));
    lumat_each_block(L, is_turned ? turned : m, lumat_put_elements, &w);
    lumat_finish_target(L, w.target);
}
