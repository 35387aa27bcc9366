/* Sparse matrices: making them; S.rows, S.T and the other properties; S(i, j)
 * and the rows and columns that S[…] chooses. */
#include "arguments.h"
#include "cancellation.h"
#include "diagnose.h"
#include "function.h"
#include "index.h"
#include "math_functions.h"
#include "print.h"
#include "value.h"

#include <math.h>
#include <string.h>

/* --- sparse(i, j, v, m, n) and sparse(A) ---------------------------------- */

/* An argument that is a number for all entries, or one for each. */
typedef struct list {
    const char *name;
    int is_number;
    int64_t count;
    double *values; /* of one element when it is a number */
} list;

/* Reads the argument; its values are in a userdata that stays pushed. */
static list read_list(lua_State *L, int arg, const char *name)
{
    list l = {.name = name, .count = 1};
    gpu_device *cpu;
    if (lua_type(L, arg) == LUA_TNUMBER) {
        l.is_number = 1;
        l.values = lua_newuserdatauv(L, sizeof *l.values, 0);
        *l.values = lua_tonumber(L, arg);
        return l;
    }
    if (lua_istable(L, arg)) {
        lumat_try(L, gpu_open("cpu", &cpu));
        lumat_push_from_table(L, arg, "sparse", GPU_F64, cpu);
    } else {
        const gpu_matrix *m = lumat_check_vector(L, arg);
        lumat_try(L, gpu_clone(m, GPU_F64, NULL, lumat_new_matrix(L)));
    }
    gpu_matrix *wide = lumat_test_matrix(L, -1);
    if (wide->ndim == 2)
        lumat_raise_argument(L, arg, "is a table of tables, expected a list");
    l.count = wide->rows;
    l.values = lumat_push_host_copy(L, wide);
    gpu_release(wide);
    lua_remove(L, -2);
    return l;
}

/* How many entries there are: as many as the lists have elements. */
static int64_t count_entries(lua_State *L, const list *l)
{
    const list *longest = NULL;
    for (int k = 0; k < 3; k++) {
        if (l[k].is_number)
            continue;
        if (longest && longest->count != l[k].count)
            lumat_raise(L,
                        "sparse: lengths differ (%s has %I elements, %s has "
                        "%I)",
                        longest->name, (LUAI_UACINT)longest->count, l[k].name,
                        (LUAI_UACINT)l[k].count);
        longest = &l[k];
    }
    return longest ? longest->count : 1;
}

static int64_t check_entry(lua_State *L, const list *l, int64_t k, double x)
{
    if (x == floor(x) && x >= 1 && x < 0x1p53)
        return (int64_t)x - 1;
    if (x == floor(x) && fabs(x) < 0x1p53)
        lumat_raise(L, "sparse: %s of entry %I is %I: indices start at 1",
                    l->name, (LUAI_UACINT)k + 1, (LUAI_UACINT)x);
    lua_pushnumber(L, x);
    lumat_raise(L, "sparse: %s of entry %I must be a whole number, not %s",
                l->name, (LUAI_UACINT)k + 1, lumat_push_brief(L, -1));
    return 0;
}

/* Pushes n numbers for a list that is one number, else nothing: its own
 * values, one for each entry, will do. */
static double *spread(lua_State *L, const list *l, int64_t n)
{
    if (!l->is_number)
        return l->values;
    double *values = lua_newuserdatauv(L, (size_t)n * sizeof *values, 0);
    for (int64_t k = 0; k < n; k++)
        values[k] = *l->values;
    return values;
}

/* The list as 0-based places, in the memory of its values; size becomes what
 * holds them all, when it is not known (-1). */
static const int64_t *push_places(lua_State *L, const list *l, int64_t n,
                                  int64_t *size)
{
    double *values = spread(L, l, n);
    int64_t *places = (void *)values, largest = 0;
    for (int64_t k = 0; k < n; k++) {
        lumat_poll(L, k);
        places[k] = check_entry(L, l, k, values[k]);
        largest = places[k] >= largest ? places[k] + 1 : largest;
    }
    *size = *size < 0 ? largest : *size;
    return places;
}

static gpu_dtype option_dtype(lua_State *L, int arg, const gpu_matrix *like)
{
    int natural = like && like->dtype != GPU_BOOL;
    gpu_dtype type = lumat_option_dtype(
        L, arg, natural ? like->dtype : lumat_default_dtype(L));
    if (type == GPU_BOOL)
        lumat_raise(L, "dtype: a sparse matrix is f32 or f64, not bool");
    return type;
}

/* Values that are a matrix decide type and device, where no option does. */
static int from_triplets(lua_State *L)
{
    const gpu_matrix *v = lumat_test_matrix(L, 3);
    int options = lua_istable(L, 4) || lua_gettop(L) < 4 ? 4 : 6;
    gpu_triplets t = {.rows = -1, .cols = -1};
    lua_settop(L, options);
    if (options == 6 && !(lua_isnil(L, 4) && lua_isnil(L, 5))) {
        if (lua_isnil(L, 4))
            lumat_raise_argument(L, 4, "is missing: n does not go without it");
        t.rows = lumat_check_size(L, 4);
        if (lua_isnil(L, 5))
            lumat_raise_argument(L, 5, "is missing: m does not go without it");
        t.cols = lumat_check_size(L, 5);
    }
    list l[3];
    l[0] = read_list(L, 1, "i");
    l[1] = read_list(L, 2, "j");
    l[2] = read_list(L, 3, "v");
    gpu_dtype dtype = option_dtype(L, options, v);
    gpu_device *d =
        lumat_option_device(L, options, v ? gpu_matrix_device(v) : NULL);
    t.count = count_entries(L, l);
    t.row = push_places(L, &l[0], t.count, &t.rows);
    t.col = push_places(L, &l[1], t.count, &t.cols);
    t.value = spread(L, &l[2], t.count);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_create(out, d, dtype, &t));
    lumat_account_sparse(L, out);
    return 1;
}

static int from_dense(lua_State *L)
{
    const gpu_matrix *m = lumat_check_two_axes(L, 1);
    lua_settop(L, 2);
    gpu_dtype dtype = option_dtype(L, 2, m);
    gpu_device *d = lumat_option_device(L, 2, NULL);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_from_dense(m, dtype, d, out));
    lumat_account_sparse(L, out);
    return 1;
}

static int make_sparse(lua_State *L)
{
    int count = lua_gettop(L);
    if (count <= 1 ||
        (count == 2 && lua_istable(L, 2) && lumat_test_matrix(L, 1)))
        return from_dense(L);
    return from_triplets(L);
}

static void explain_mistake(lua_State *L, const lumat_function *f, int count)
{
    (void)count;
    if (lumat_test_sparse(L, 1))
        lumat_raise(L, "%s: it is sparse already", f->name);
}

static const lumat_function functions[] = {
    {"sparse", make_sparse, 1,
     "i: list|number, j: list|number, v: list|number [, m: size, n: size] "
     "{dtype, device} or A: matrix {dtype, device}",
     "sparse",
     "A sparse matrix (compressed rows): v[k] at (i[k], j[k]), those at one "
     "place added up, m and n the largest indices if absent; or the non-zeros "
     "of A. i, j, v: vectors, tables or one number for all. There are S * D, S "
     "* x, 2 * S, S.T, S(i, j), S.nnz, S:full(), S:f64(), S:to(device).",
     "sparse({1, 2}, {3, 1}, {5, 7}) * vec{1, 2, 3}", "{15, 7}",
     .group = "sparse", .on_mistake = explain_mistake},
    {0}};

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

/* What the methods are held against; they have functions of their names for
 * dense matrices, with rows that are told of. */
static lumat_function methods[] = {
    {"full", .takes = "S: sparse", .usage = "S:full()"},
    {"f32", .takes = "S: sparse", .usage = "S:f32()"},
    {"f64", .takes = "S: sparse", .usage = "S:f64()"},
    {"to", .takes = "S: sparse, device: device", .usage = "S:to(device)"},
    {"free", .takes = "S: sparse|freed", .usage = "S:free()"},
    {0}};

static void set_method(lua_State *L, const luaL_Reg *method)
{
    lumat_function *f = methods;
    while (strcmp(f->name, method->name) != 0)
        f++;
    f->call = method->func;
    f->gives = "same";
    lumat_push_checked(L, f);
    lumat_push_method(L);
    lua_setfield(L, -3, f->name);
    lua_pop(L, 1);
}

void lumat_open_sparse_functions(lua_State *L)
{
    luaL_getmetatable(L, LUMAT_SPARSE);
    lua_newtable(L);
    for (const luaL_Reg *method = lumat_sparse_methods; method->name; method++)
        set_method(L, method);
    lua_pushcclosure(L, get_index, 1);
    lua_setfield(L, -2, "__index");
    luaL_setfuncs(L, metamethods, 0);
    lua_pop(L, 1);
    lumat_register(L, functions);
}
