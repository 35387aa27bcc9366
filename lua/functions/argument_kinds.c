/* The kinds of arguments, options and results that rows speak of. */
#include "complex_value.h"
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

static int is_false(lua_State *L, int index)
{
    return !lua_toboolean(L, index);
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
    const gpu_sparse *s = lumat_look_at_sparse(L, index);
    return s && s->values.storage;
}

/* Of what is no function. Matrices can be called, but as A(i, j). */
static int is_callable(lua_State *L, int index)
{
    if (lumat_test_matrix(L, index) || lumat_look_at_sparse(L, index))
        return 0;
    int found = luaL_getmetafield(L, index, "__call") != LUA_TNIL;
    lua_pop(L, found);
    return found;
}

static int is_complex(lua_State *L, int index)
{
    return lumat_test_complex(L, index) != NULL;
}

/* Of the tables, by the name that their metatable gives them. */
static int is_named(lua_State *L, int index, const char *name)
{
    int top = lua_gettop(L);
    int found = luaL_getmetafield(L, index, "__name") == LUA_TSTRING &&
                strcmp(lua_tostring(L, -1), name) == 0;
    lua_settop(L, top);
    return found;
}

int lumat_is_frame(lua_State *L, int index)
{
    return is_named(L, index, "frame");
}

static int is_chart(lua_State *L, int index)
{
    return is_named(L, index, "chart");
}

int lumat_is_distributed(lua_State *L, int index)
{
    return is_named(L, index, "distributed matrix");
}

static int is_freed(lua_State *L, int index)
{
    const gpu_matrix *m = lumat_test_matrix(L, index);
    const gpu_sparse *s = m ? NULL : lumat_look_at_sparse(L, index);
    return m ? !m->storage : s && !s->values.storage;
}

#define BIT(type) (1u << (type))
enum {
    NONE = 0,
    NIL = BIT(LUA_TNIL),
    NUMBER = BIT(LUA_TNUMBER),
    BOOLEAN = BIT(LUA_TBOOLEAN),
    STRING = BIT(LUA_TSTRING),
    TABLE = BIT(LUA_TTABLE),
    FUNCTION = BIT(LUA_TFUNCTION),
    OBJECT = BIT(LUA_TUSERDATA),
    EVERY = BIT(LUA_NUMTYPES) - 1
};

enum {
    NUMERIC = 1, /* an unknown number of a dry run may be one */
    GUARDED = 2  /* functions in C tell those of `some` apart */
};

/* all: bits of the Lua types whose values all are of the kind; some: of those
 * with values that are it where `is` says so. Names that say more to completion
 * than to a check share theirs. */
static const struct kind {
    const char *name;
    unsigned all, some;
    lumat_kind_test *is;
    int flags;
    const char *words;
} kinds[] = {
    {"value", EVERY, NONE, NULL, 0, "a value"},
    {"nothing", NIL, NONE, NULL, 0, "nothing"},
    {"matrix", NONE, OBJECT, is_dense, GUARDED, "a matrix"},
    {"square", NONE, OBJECT, is_dense, GUARDED, "a square matrix"},
    {"vector", NONE, OBJECT, is_vector, GUARDED, "a vector"},
    {"sparse", NONE, OBJECT, is_sparse, GUARDED, "a sparse matrix"},
    {"freed", NONE, OBJECT, is_freed, GUARDED, "a freed one"},
    {"number", NUMBER, NONE, NULL, NUMERIC, "a number"},
    {"scalar", NUMBER, OBJECT, is_complex, NUMERIC, "a number"},
    {"complex", NONE, OBJECT, is_complex, 0, "a complex number"},
    {"positive", NONE, NUMBER, is_above_zero, NUMERIC, "a number above 0"},
    {"integer", NONE, NUMBER, is_whole, NUMERIC | GUARDED, "a whole number"},
    {"size", NONE, NUMBER, is_size, NUMERIC | GUARDED,
     "a whole number from 0 on"},
    {"count", NONE, NUMBER, is_count, NUMERIC, "a whole number above 0"},
    {"axis", NONE, NUMBER, is_axis, NUMERIC | GUARDED,
     "1 (down each column) or 2 (along each row)"},
    {"false", NONE, BOOLEAN, is_false, 0, "false"},
    {"boolean", BOOLEAN, NONE, NULL, 0, "true or false"},
    {"function", FUNCTION, TABLE | OBJECT, is_callable, 0, "a function"},
    {"table", TABLE, NONE, NULL, 0, "a table"},
    {"frame", NONE, TABLE, lumat_is_frame, 0, "a frame"},
    {"distributed", NONE, TABLE, lumat_is_distributed, 0,
     "a distributed matrix"},
    {"column", STRING, NONE, NULL, 0, "a column's name"},
    {"columns", STRING | TABLE, NONE, NULL, 0,
     "a column's name or a list of names"},
    {"chart", NONE, TABLE, is_chart, 0, "a chart"},
    {"factors", TABLE, NONE, NULL, 0, "a factorisation"},
    {"list", TABLE, OBJECT, is_vector, 0, "a vector or a table"},
    {"string", STRING, NONE, NULL, 0, "a string"},
    {"dtype", NONE, STRING, is_dtype, 0,
     "\"f32\", \"f64\", \"bool\", \"c64\" or \"c128\""},
    {"device", STRING, NONE, NULL, 0, "a device such as \"cpu\" or \"cuda:0\""},
    {"devices", TABLE, NONE, NULL, 0, "a list of GPUs' names"},
    {"kernel", STRING, NONE, NULL, 0, "a kernel's name"},
    {"operation", STRING, NONE, NULL, 0, "\"dot\" or \"matmul\""},
    {"topic", STRING, NONE, NULL, 0, "a name"},
    {"variable", STRING, NONE, NULL, 0, "a variable's name"},
    {"path", STRING, NONE, NULL, 0, "a file's name"},
    {"folder", STRING, NONE, NULL, 0, "a folder's name"},
    {"data", STRING, NONE, NULL, 0, "a file's name"},
    {"script", STRING, NONE, NULL, 0, "a file's name"},
    {"session", STRING, NONE, NULL, 0, "a file's name"},
    {"picture", STRING, NONE, NULL, 0, "a file's name"},
};

static const struct kind *find_kind(lumat_piece name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (lumat_is_piece(name, kinds[i].name))
            return &kinds[i];
    return &kinds[0];
}

static void add_test(lumat_kind *kind, lumat_kind_test *is)
{
    lumat_kind_test **at = kind->tests;
    while (*at && *at != is)
        at++;
    *at = is;
}

lumat_kind lumat_read_kind(lumat_piece text)
{
    lumat_kind kind = {.text = text};
    lumat_piece one;
    while (lumat_next_kind(&text, &one)) {
        if (*one.start == '"') {
            kind.has_words = 1;
            kind.some |= STRING;
            continue;
        }
        const struct kind *k = find_kind(one);
        kind.all |= k->all;
        kind.some |= k->some | (k->flags & NUMERIC ? OBJECT : NONE);
        kind.quick |= k->all | (k->flags & GUARDED ? k->some : NONE);
        if (k->is)
            add_test(&kind, k->is);
        if (k->flags & NUMERIC)
            add_test(&kind, lumat_is_unknown);
    }
    return kind;
}

static int is_word(lumat_piece kind, const char *text)
{
    lumat_piece one;
    while (lumat_next_kind(&kind, &one))
        if (*one.start == '"' &&
            lumat_is_piece((lumat_piece){one.start + 1, one.length - 2}, text))
            return 1;
    return 0;
}

int lumat_is_kind(lua_State *L, int index, const lumat_kind *kind)
{
    int type = lua_type(L, index);
    if (type < 0 || !(kind->some >> type & 1))
        return type >= 0 && kind->all >> type & 1;
    if (kind->all >> type & 1)
        return 1;
    for (lumat_kind_test *const *is = kind->tests; *is; is++)
        if ((*is)(L, index))
            return 1;
    return kind->has_words && type == LUA_TSTRING &&
           is_word(kind->text, lua_tostring(L, index));
}

const char *lumat_push_kind(lua_State *L, lumat_piece kind)
{
    lumat_piece one, rest = kind;
    const char *last = " or ";
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int first = 1; lumat_next_kind(&rest, &one); first = 0) {
        luaL_addstring(&b, first ? "" : rest.length > 0 ? ", " : last);
        if (*one.start == '"') {
            luaL_addlstring(&b, one.start, one.length);
            continue;
        }
        const char *words = find_kind(one)->words;
        luaL_addstring(&b, words);
        if (strstr(words, " or "))
            last = ", or ";
    }
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}
