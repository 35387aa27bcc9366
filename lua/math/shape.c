/* Functions that change shape, order, type or place rather than values, and
 * those that visit the parts of a matrix. */
#include "arguments.h"
#include "cancellation.h"
#include "complex_value.h"
#include "function.h"
#include "index.h"
#include "math_functions.h"
#include "print.h"
#include "value.h"

#include <string.h>

gpu_matrix *lumat_push_like(lua_State *L, const gpu_matrix *m, int ndim,
                            int64_t rows, int64_t cols)
{
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(
        L, gpu_create(out, gpu_matrix_device(m), m->dtype, ndim, rows, cols));
    lumat_account(L, out);
    return out;
}

/* --- type and place ------------------------------------------------------- */

static int convert(lua_State *L, gpu_dtype dtype)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    lua_settop(L, 1);
    if (m->dtype == dtype)
        return 1;
    if (gpu_is_complex(m) && (dtype == GPU_F32 || dtype == GPU_F64))
        lumat_try(L, gpu_fail_complex(lumat_running_row(L)->name));
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_convert(m, dtype, out));
    lumat_account(L, out);
    return 1;
}

static int to_f32(lua_State *L)
{
    return convert(L, GPU_F32);
}

static int to_f64(lua_State *L)
{
    return convert(L, GPU_F64);
}

static int to_bool(lua_State *L)
{
    return convert(L, GPU_BOOL);
}

static int to_device(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    gpu_device *d;
    lumat_try(L, gpu_open(luaL_checkstring(L, 2), &d));
    lua_settop(L, 1);
    if (gpu_matrix_device(m) == d)
        return 1;
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_clone(m, m->dtype, d, out));
    lumat_account(L, out);
    return 1;
}

static int clone(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1), *out = lumat_new_matrix(L);
    lumat_try(L, gpu_clone(m, m->dtype, NULL, out));
    lumat_account(L, out);
    return 1;
}

static int free_now(lua_State *L)
{
    if (!lumat_look_at_sparse(L, 1) && !lumat_test_matrix(L, 1))
        lumat_check_matrix(L, 1); /* raises */
    lumat_free_value(L, 1);
    return 0;
}

/* --- Lua tables ----------------------------------------------------------- */

void lumat_push_value(lua_State *L, const void *data, gpu_dtype dtype,
                      int64_t at)
{
    if (!data)
        lumat_push_unknown(L, "an element");
    else if (dtype == GPU_F32)
        lua_pushnumber(L, ((const float *)data)[at]);
    else if (dtype == GPU_F64)
        lua_pushnumber(L, ((const double *)data)[at]);
    else if (dtype == GPU_C64)
        lumat_push_complex(L, (gpu_complex){((const float *)data)[2 * at],
                                            ((const float *)data)[2 * at + 1]});
    else if (dtype == GPU_C128)
        lumat_push_complex(L, ((const gpu_complex *)data)[at]);
    else
        lua_pushboolean(L, ((const uint8_t *)data)[at]);
}

void *lumat_push_host_copy(lua_State *L, const gpu_matrix *m)
{
    void *data = lua_newuserdatauv(L, gpu_bytes(m), 0);
    lumat_try(L, gpu_is_complex(m) ? gpu_complex_download(m, data)
                                   : gpu_download(m, data));
    return data;
}

/* The first elements, which are those that an echo of the table shows. */
static void note_first(const float *data, int64_t count)
{
    enum { MOST = 256 };
    for (int64_t i = count < MOST ? count : MOST; i > 0; i--)
        lumat_note_scalar(GPU_F32, data[i - 1]);
}

static int to_table(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    const void *data = NULL;
    if (gpu_is_dry())
        lumat_try(L, gpu_download_unseen(m, NULL));
    else
        data = lumat_push_host_copy(L, m);
    if (data && m->dtype == GPU_F32)
        note_first(data, gpu_size(m));
    lua_newtable(L);
    for (int64_t i = 0; i < m->rows; i++) {
        lumat_poll(L, i);
        if (m->ndim == 1) {
            lumat_push_value(L, data, m->dtype, i);
        } else {
            lua_newtable(L);
            for (int64_t j = 0; j < m->cols; j++) {
                lumat_poll(L, i * m->cols + j);
                lumat_push_value(L, data, m->dtype, i * m->cols + j);
                lua_rawseti(L, -2, j + 1);
            }
        }
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* --- shape ---------------------------------------------------------------- */

static int reshape(lua_State *L)
{
    if (lumat_has_sparse(L, 1))
        return lumat_push_sparse_reshaped(L);
    gpu_matrix *m = lumat_check_matrix(L, 1);
    int ndim = lua_gettop(L) < 3 ? 1 : 2;
    int64_t rows = lumat_check_size(L, 2);
    int64_t cols = ndim == 2 ? lumat_check_size(L, 3) : 1;
    lumat_try(L, gpu_reshape(m, ndim, rows, cols, lumat_new_matrix(L)));
    return 1;
}

static int as_shape(lua_State *L, int ndim, int64_t rows, int64_t cols)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    lumat_try(L, gpu_reshape(m, ndim, rows, cols, lumat_new_matrix(L)));
    return 1;
}

/* What to write in place of v:row(1) and of A:row(). */
static int raise_line(lua_State *L, const char *name, const char *what)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    const char *own = lumat_name_of(L, 1, m->ndim == 1 ? "v" : "A");
    if (m->ndim == 1)
        return lumat_raise(L,
                           "%s: %s is a vector: %s[i] is an element, %s:%s() "
                           "all of them as a %s",
                           name, own, own, own, name, what);
    return lumat_raise(L,
                       "%s: of a matrix, write which one: %s:%s(1) is the "
                       "first %s; all elements in one are %s:flatten():%s()",
                       name, own, name, what, own, name);
}

/* A:row(i) or A:col(i), the part of axis 1 or 2; v:row() and v:col(). */
static int line_of(lua_State *L, int axis)
{
    const char *name = axis == 1 ? "row" : "col";
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    int given = lumat_arguments(L) > 1;
    if (given == (m->ndim == 1))
        return raise_line(L, name, axis == 1 ? "row" : "column");
    if (m->ndim == 1)
        return as_shape(L, 2, axis == 1 ? 1 : m->rows, axis == 1 ? m->rows : 1);
    gpu_slice rows = {0, 1, m->rows}, cols = {0, 1, m->cols};
    gpu_slice one = {lumat_check_place(L, m, 2, axis), 1, 1};
    lumat_try(L, gpu_view_block(m, axis == 1 ? one : rows,
                                axis == 1 ? cols : one, lumat_new_matrix(L)));
    return 1;
}

static void explain_mistake(lua_State *L, const lumat_function *f, int count)
{
    if (count > 2)
        lumat_raise(
            L, "%s: %d arguments are too many: write A:%s, or A[{i, j}]",
            f->name, count, strcmp(f->name, "row") == 0 ? "row(i)" : "col(j)");
}

static int row(lua_State *L)
{
    return line_of(L, 1);
}

static int col(lua_State *L)
{
    return line_of(L, 2);
}

static int flatten(lua_State *L)
{
    return as_shape(L, 1, gpu_size(lumat_check_matrix(L, 1)), 1);
}

static int transposed(lua_State *L)
{
    gpu_view_transposed(lumat_check_matrix(L, 1), lumat_new_matrix(L));
    return 1;
}

/* A view with the rows (axis 1) or columns (axis 2) in reverse. */
static int flip(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    int axis = lumat_check_axis(L, 2, m);
    gpu_slice rows = {0, 1, m->rows}, cols = {0, 1, m->cols};
    gpu_slice *turned = axis == 1 ? &rows : &cols;
    if (turned->count > 0)
        *turned = (gpu_slice){turned->count - 1, -1, turned->count};
    lumat_try(L, gpu_view_block(m, rows, cols, lumat_new_matrix(L)));
    return 1;
}

/* --- rows, columns and elements in a loop --------------------------------- */

static int next_row(lua_State *L)
{
    gpu_matrix *m = lumat_check_indexed(L, "eachrow");
    lua_Integer i = luaL_optinteger(L, 2, 0);
    if (i < 0 || i >= m->rows)
        return 0;
    lua_pushinteger(L, i + 1);
    if (m->ndim == 1)
        return 1 + lumat_push_element(L, m, i, 0);
    gpu_view_row(m, i, lumat_new_matrix(L));
    return 2;
}

static int next_column(lua_State *L)
{
    gpu_matrix *m = lumat_check_indexed(L, "eachcol");
    lua_Integer j = luaL_optinteger(L, 2, 0);
    if (j < 0 || j >= m->cols)
        return 0;
    lua_pushinteger(L, j + 1);
    gpu_view_column(m, j, lumat_new_matrix(L));
    return 2;
}

static int each_row(lua_State *L)
{
    lumat_check_matrix(L, 1);
    lua_pushcfunction(L, next_row);
    lua_pushvalue(L, 1);
    lua_pushinteger(L, 0);
    return 3;
}

static int each_column(lua_State *L)
{
    lumat_check_matrix(L, 1);
    lua_pushcfunction(L, next_column);
    lua_pushvalue(L, 1);
    lua_pushinteger(L, 0);
    return 3;
}

/* --- the functions -------------------------------------------------------- */

static const lumat_function functions[] = {
    {"f32", to_f32, 1, "A: matrix", "same",
     "A in single precision; A itself if it is.",
     "f32(vec({1}, {dtype=\"f64\"})).dtype", "\"f32\"", .group = "converting"},
    {"f64", to_f64, 1, "A: matrix", "same",
     "A in double precision; A itself if it is.", "f64(vec{1}).dtype",
     "\"f64\"", .group = "converting"},
    {"bool", to_bool, 1, "A: matrix", "matrix",
     "A as a mask: true where not zero.", "bool(vec{0, 2})", "{false, true}",
     .group = "converting"},
    {"to", to_device, 1, "A: matrix, device: device", "same",
     "A on a device, \"cpu\" or \"cuda:N\"; A itself if it is there.",
     "to(vec{1}, \"cpu\").device", "\"cpu\"", .group = "converting devices"},
    {"clone", clone, 1, "A: matrix", "same", "A copy with its own elements.",
     "(function() local a = vec{1} local b = a:clone() b[1] = 5 return a[1] "
     "end)()",
     "1", .group = "converting"},
    {"free", free_now, 1, "A: matrix|sparse|freed", "nothing",
     "Gives A's memory back at once; A cannot be used afterwards.",
     "(function() local a = vec{1} a:free() return pcall(sum, a) end)()",
     "false", .group = "converting", .usage = "A:free()"},
    {"totable", to_table, 1, "A: matrix", "table",
     "A plain Lua table; of a matrix, a table of rows.",
     "totable(mat{{1, 2}, {3, 4}})[2][1]", "3", .group = "converting"},
    {"eachrow", each_row, 1, "A: matrix", "function, value, value",
     "Visits the rows in order, as views; of a vector, the elements.",
     "(function() local s = 0 for i, r in mat{{1, 2}, {3, 4}}:eachrow() do s = "
     "s + i * r:sum() end return s end)()",
     "17", .group = "iterating", .usage = "for i, row in A:eachrow() do … end"},
    {"eachcol", each_column, 1, "A: matrix", "function, value, value",
     "Visits the columns in order, as views.",
     "(function() local s = 0 for j, c in mat{{1, 2}, {3, 4}}:eachcol() do s = "
     "s + j * c:sum() end return s end)()",
     "16", .group = "iterating",
     .usage = "for j, column in A:eachcol() do … end"},
    {"reshape", reshape, 1,
     "A: matrix|sparse, m: size, n: size or A: matrix, n: size", "same",
     "The same elements, row by row, in another shape; a view if possible, but "
     "of a sparse matrix a new one.",
     "reshape(range(1, 4), 2, 2)", "{{1, 2}, {3, 4}}", .group = "shape lines"},
    {"row", row, 1, "A: matrix, i: integer or v: vector", "matrix",
     "Row i of a matrix as a 1xn view, negative from the end; or a vector as a "
     "1xn matrix. A[i] is the row as a vector.",
     "row(mat{{1, 2}, {3, 4}}, -1)", "{{3, 4}}", .group = "lines",
     .on_mistake = explain_mistake},
    {"col", col, 1, "A: matrix, j: integer or v: vector", "matrix",
     "Column j of a matrix as an mx1 view, negative from the end; or a vector "
     "as an nx1 matrix.",
     "col(mat{{1, 2}, {3, 4}}, 1)", "{{1}, {3}}", .group = "lines",
     .on_mistake = explain_mistake},
    {"flatten", flatten, 1, "A: matrix", "matrix", "All elements as a vector.",
     "flatten(mat{{1, 2}, {3, 4}})", "{1, 2, 3, 4}", .group = "shape"},
    {"t", transposed, 1, "A: matrix", "matrix",
     "The transposed view; also A.T.", "t(mat{{1, 2}, {3, 4}})",
     "{{1, 3}, {2, 4}}", .group = "shape"},
    {"flip", flip, 1, "A: matrix [, axis: axis]", "matrix",
     "A view with rows (axis 1) or columns (axis 2) in reverse.",
     "flip(vec{1, 2, 3})", "{3, 2, 1}", .group = "places"},
    {0}};

void lumat_open_shape(lua_State *L)
{
    luaL_getmetatable(L, "lumat.matrix");
    lua_pushcfunction(L, each_row);
    lua_setfield(L, -2, "__pairs");
    lua_pop(L, 1);
    lumat_register(L, functions);
    lumat_open_map(L);
}
