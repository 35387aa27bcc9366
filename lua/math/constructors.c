/* Constructors: matrices from Lua tables, constants and functions. */
#include "constructors.h"
#include "cancellation.h"
#include "function.h"
#include "value.h"

#include <math.h>
#include <string.h>

gpu_matrix *lumat_push_requested(lua_State *L, const lumat_request *r)
{
    gpu_matrix *m = lumat_new_matrix(L);
    lumat_try(L, gpu_create(m, r->device, r->dtype, r->ndim, r->rows, r->cols));
    lumat_account(L, m);
    return m;
}

/* --- from tables ---------------------------------------------------------- */

static double check_element(lua_State *L, const char *name, lua_Integer i,
                            lua_Integer j)
{
    int type = lua_type(L, -1);
    double value = 0;
    if (type == LUA_TNUMBER)
        value = lua_tonumber(L, -1);
    else if (type == LUA_TBOOLEAN)
        value = lua_toboolean(L, -1);
    else if (lumat_is_unknown(L, -1))
        value = 0;
    else if (j > 0)
        lumat_raise(L, "%s: element {%I, %I} is a %s, not a number", name,
                    (LUAI_UACINT)i, (LUAI_UACINT)j, lumat_kind_of(L, -1));
    else
        lumat_raise(L, "%s: element %I is a %s, not a number", name,
                    (LUAI_UACINT)i, lumat_kind_of(L, -1));
    lua_pop(L, 1);
    return value;
}

static void put(void *data, gpu_dtype dtype, int64_t at, double value)
{
    if (dtype == GPU_F64)
        ((double *)data)[at] = value;
    else if (dtype == GPU_F32)
        ((float *)data)[at] = (float)value;
    else
        ((uint8_t *)data)[at] = value != 0;
}

/* Row-major elements of the table, in memory the collector owns. */
static void *push_elements(lua_State *L, int table, lumat_request *r)
{
    size_t bytes = (size_t)(r->rows * r->cols) * gpu_dtype_size(r->dtype);
    void *data = lua_newuserdatauv(L, bytes, 0);
    for (int64_t i = 0; i < r->rows; i++) {
        lumat_poll(L, i);
        lua_rawgeti(L, table, i + 1);
        if (r->ndim == 1) {
            put(data, r->dtype, i, check_element(L, r->name, i + 1, 0));
            continue;
        }
        if (!lua_istable(L, -1))
            lumat_raise(L, "%s: row %I is a %s, not a table", r->name,
                        (LUAI_UACINT)i + 1, lumat_kind_of(L, -1));
        if ((int64_t)lua_rawlen(L, -1) != r->cols)
            lumat_raise(L,
                        "%s: ragged rows: row 1 has %I elements, row %I has %I",
                        r->name, (LUAI_UACINT)r->cols, (LUAI_UACINT)i + 1,
                        (LUAI_UACINT)lua_rawlen(L, -1));
        for (int64_t j = 0; j < r->cols; j++) {
            lumat_poll(L, j);
            lua_rawgeti(L, -1, j + 1);
            put(data, r->dtype, i * r->cols + j,
                check_element(L, r->name, i + 1, j + 1));
        }
        lua_pop(L, 1);
    }
    return data;
}

/* Is the first element of the (nested) table a boolean? */
static int starts_with_boolean(lua_State *L, int table, int nested)
{
    int top = lua_gettop(L);
    lua_rawgeti(L, table, 1);
    if (nested && lua_istable(L, -1))
        lua_rawgeti(L, -1, 1);
    int is_boolean = lua_isboolean(L, -1);
    lua_settop(L, top);
    return is_boolean;
}

static void measure_table(lua_State *L, int table, lumat_request *r)
{
    r->rows = (int64_t)lua_rawlen(L, table);
    r->cols = 1;
    lua_rawgeti(L, table, 1);
    r->ndim = lua_istable(L, -1) ? 2 : 1;
    if (r->ndim == 2)
        r->cols = (int64_t)lua_rawlen(L, -1);
    lua_pop(L, 1);
}

static gpu_matrix *from_request(lua_State *L, int table, lumat_request *r)
{
    gpu_matrix *m = lumat_push_requested(L, r);
    const void *data = push_elements(L, table, r);
    lumat_try(L, gpu_upload(m, data));
    lua_pop(L, 1);
    return m;
}

gpu_matrix *lumat_push_from_table(lua_State *L, int index, const char *name,
                                  gpu_dtype dtype, gpu_device *device)
{
    lumat_request r = {.name = name, .dtype = dtype, .device = device};
    index = lua_absindex(L, index);
    measure_table(L, index, &r);
    return from_request(L, index, &r);
}

static int from_table(lua_State *L, int ndim)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lumat_request r = {.name = ndim == 2 ? "mat" : "vec",
                       .device = lumat_option_device(L, 2, NULL)};
    measure_table(L, 1, &r);
    if (ndim == 1 && r.ndim == 2)
        lumat_raise(L, "vec: element 1 is a table; matrices are made with "
                       "mat{{1, 2}, {3, 4}}");
    if (ndim == 2 && r.ndim == 1 && r.rows > 0)
        lumat_raise(L,
                    "mat: row 1 is a %s; write mat{{1, 2}, {3, 4}}, or "
                    "vec{1, 2} for a vector",
                    (lua_rawgeti(L, 1, 1), lumat_kind_of(L, -1)));
    if (ndim == 2 && r.rows == 0)
        r.cols = 0;
    r.ndim = ndim;
    gpu_dtype natural = starts_with_boolean(L, 1, ndim == 2)
                            ? GPU_BOOL
                            : lumat_default_dtype(L);
    r.dtype = lumat_option_dtype(L, 2, natural);
    from_request(L, 1, &r);
    return 1;
}

static int make_mat(lua_State *L)
{
    return from_table(L, 2);
}

static int make_vec(lua_State *L)
{
    return from_table(L, 1);
}

/* --- constants ------------------------------------------------------------ */

static int filled(lua_State *L, double value, const lumat_request *r)
{
    lumat_try(L, gpu_fill(lumat_push_requested(L, r), value));
    return 1;
}

static int make_zeros(lua_State *L)
{
    lumat_request r = lumat_check_request(L, 1);
    return filled(L, 0, &r);
}

static int make_ones(lua_State *L)
{
    lumat_request r = lumat_check_request(L, 1);
    return filled(L, 1, &r);
}

/* full(n, x) or full(m, n, x); full(S) is a sparse matrix made dense */
static int make_full(lua_State *L)
{
    if (lumat_test_sparse(L, 1))
        return lumat_push_dense(L, 1);
    int at = lua_gettop(L) >= 3 && !lua_istable(L, 3) ? 3 : 2;
    if (!lua_isboolean(L, at) && !lumat_is_unknown(L, at))
        luaL_checknumber(L, at);
    double value =
        lua_isboolean(L, at) ? lua_toboolean(L, at) : lua_tonumber(L, at);
    lua_remove(L, at);
    lumat_request r = lumat_check_request(L, 1);
    return filled(L, value, &r);
}

/* Ones where column - row = k. */
static int make_eye(lua_State *L)
{
    lumat_request r = lumat_check_request(L, 1);
    if (r.ndim == 1)
        r.cols = r.rows;
    r.ndim = 2;
    gpu_matrix *m = lumat_push_requested(L, &r);
    gpu_program p;
    gpu_program_start(&p, 0);
    int row = gpu_program_add(&p, GPU_OP_ROW, 0, 0, 0);
    int col = gpu_program_add(&p, GPU_OP_COL, 0, 0, 0);
    gpu_program_add(&p, GPU_OP_eq, row, col, 0);
    lumat_try(L, gpu_map("eye", &p, NULL, m));
    return 1;
}

/* --- from a function ------------------------------------------------------ */

static int make_fromfn(lua_State *L)
{
    int matrix = lua_type(L, 2) == LUA_TNUMBER;
    int function = matrix ? 3 : 2;
    luaL_checktype(L, function, LUA_TFUNCTION);
    if (lua_isnil(L, function + 1))
        lua_settop(L, function); /* no options */
    lua_pushvalue(L, function);
    lua_remove(L, function);
    lua_insert(L, 1); /* f, sizes, options */
    lumat_request r = lumat_check_request(L, 2);
    gpu_matrix *m = lumat_push_requested(L, &r);
    if (gpu_is_dry()) { /* what Lua takes is not counted, so f is not called */
        lumat_try(L, gpu_upload(m, NULL));
        return 1;
    }
    size_t bytes = (size_t)(r.rows * r.cols) * gpu_dtype_size(r.dtype);
    void *data = lua_newuserdatauv(L, bytes, 0);
    for (int64_t i = 0; i < r.rows; i++) {
        for (int64_t j = 0; j < r.cols; j++) {
            lua_pushvalue(L, 1);
            lua_pushinteger(L, i + 1);
            if (matrix)
                lua_pushinteger(L, j + 1);
            lua_call(L, matrix ? 2 : 1, 1);
            lumat_check_whole(L, "fromfn", r.dtype);
            put(data, r.dtype, i * r.cols + j,
                check_element(L, "fromfn", i + 1, matrix ? j + 1 : 0));
        }
    }
    lumat_try(L, gpu_upload(m, data));
    lua_pop(L, 1);
    return 1;
}

static const lumat_function functions[] = {
    {"mat", make_mat, 0, "elements: table {dtype, device}", "matrix",
     "A matrix from nested tables, row by row.", "mat{{1, 2}, {3, 4}}",
     "{{1, 2}, {3, 4}}", .group = "making",
     .usage = "mat{{1, 2}, {3, 4}} or mat(table [, {dtype=, device=}])"},
    {"vec", make_vec, 0, "elements: table {dtype, device}", "matrix",
     "A vector from a table.", "vec{1, 2, 3}", "{1, 2, 3}", .group = "making",
     .usage = "vec{1, 2, 3} or vec(table [, {dtype=, device=}])"},
    {"zeros", make_zeros, 0,
     "m: size, n: size {dtype, device} or n: size {dtype, device}", "matrix",
     "A matrix (or vector) of zeros.", "zeros(2, 3)", "{{0, 0, 0}, {0, 0, 0}}",
     .group = "constants"},
    {"ones", make_ones, 0,
     "m: size, n: size {dtype, device} or n: size {dtype, device}", "matrix",
     "A matrix (or vector) of ones.", "ones(2)", "{1, 1}",
     .group = "constants"},
    {"full", make_full, 0,
     "m: size, n: size, x: number|boolean {dtype, device} or n: size, x: "
     "number|boolean {dtype, device} or S: sparse",
     "matrix",
     "A matrix (or vector) with every element x; or the sparse matrix S made "
     "dense.",
     "full(2, 2, 7)", "{{7, 7}, {7, 7}}", .group = "constants sparse"},
    {"eye", make_eye, 0,
     "n: size {dtype, device} or m: size, n: size {dtype, device}", "matrix",
     "Ones on the diagonal, zeros elsewhere.", "eye(2)", "{{1, 0}, {0, 1}}",
     .group = "constants"},
    {"fromfn", make_fromfn, 0,
     "m: size, n: size, f: function {dtype, device} or n: size, f: function "
     "{dtype, device}",
     "matrix", "Calls f(i, j) (or f(i)) for each place.",
     "fromfn(2, 2, function(i, j) return 10 * i + j end)",
     "{{11, 12}, {21, 22}}", .group = "making mapping"},
    {0}};

void lumat_open_make(lua_State *L)
{
    lumat_register(L, functions);
}
