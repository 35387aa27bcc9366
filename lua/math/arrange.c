/* Functions that put elements in other places: diagonals and triangles,
 * chosen rows and columns, running sums, sorting. */
#include "constructors.h"
#include "function.h"
#include "index.h"
#include "print.h"
#include "value.h"

#include <stdlib.h>

/* --- diagonals and triangles ---------------------------------------------- */

/* diag(v [, k]) puts v on the k-th diagonal; diag(A [, k]) is that diagonal,
 * as a view. */
static int diag(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    int64_t k = luaL_optinteger(L, 2, 0);
    luaL_argcheck(L, k > -(1ll << 31) && k < 1ll << 31, 2, "no such diagonal");
    if (m->ndim == 2) {
        gpu_view_diagonal(m, k, lumat_new_matrix(L));
        return 1;
    }
    int64_t n = m->rows + llabs(k);
    gpu_matrix *out = lumat_push_like(L, m, 2, n, n), *place;
    lumat_try(L, gpu_fill(out, 0));
    place = lumat_new_matrix(L);
    gpu_view_diagonal(out, k, place);
    lumat_try(L, gpu_copy(m, place));
    lua_pop(L, 1);
    return 1;
}

/* Keeps the elements with column - row <= k (lower) or >= k (upper). */
static int triangle(lua_State *L, gpu_op keeps)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    lua_Integer k = luaL_optinteger(L, 2, 0);
    luaL_argcheck(L, m->ndim == 2, 1, "needs a matrix, not a vector");
    gpu_matrix *out = lumat_push_like(L, m, 2, m->rows, m->cols);
    gpu_program p;
    gpu_program_start(&p, 1);
    int limit = gpu_program_constant(&p, (double)k);
    int zero = gpu_program_constant(&p, 0);
    int row = gpu_program_add(&p, GPU_OP_ROW, 0, 0, 0);
    int col = gpu_program_add(&p, GPU_OP_COL, 0, 0, 0);
    int gap = gpu_program_add(&p, GPU_OP_sub, col, row, 0);
    int kept = gpu_program_add(&p, keeps, gap, limit, 0);
    gpu_program_add(&p, GPU_OP_where, kept, 0, zero);
    lumat_try(L, gpu_map("tril", &p, &m, out));
    return 1;
}

static int tril(lua_State *L)
{
    return triangle(L, GPU_OP_le);
}

static int triu(lua_State *L)
{
    return triangle(L, GPU_OP_ge);
}

static int trace(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    luaL_argcheck(L, m->ndim == 2, 1, "needs a matrix, not a vector");
    gpu_matrix *diagonal = lumat_new_matrix(L);
    gpu_view_diagonal(m, 0, diagonal);
    gpu_program p;
    gpu_program_start(&p, 1);
    p.reduction = GPU_REDUCE_sum;
    const gpu_matrix *in[] = {diagonal};
    double sum;
    lumat_try(L, gpu_reduce_all("trace", &p, in, &sum));
    if (lumat_push_unread(L, "trace"))
        return 1;
    lumat_note_scalar(m->dtype, sum);
    lua_pushnumber(L, sum);
    return 1;
}

/* --- chosen rows and columns ---------------------------------------------- */

/* 0-based places, as a userdata that stays pushed, of a list: a vector or a
 * table of places, or a mask; NULL: all. */
static const int64_t *push_places(lua_State *L, const char *name, int arg,
                                  int64_t size, int64_t *count)
{
    lumat_side side = {name, "place", size, NULL};
    gpu_device *cpu;
    *count = size;
    if (lua_isnoneornil(L, arg))
        return NULL;
    if (lua_istable(L, arg)) {
        lumat_try(L, gpu_open("cpu", &cpu));
        lumat_push_from_table(L, arg, name, GPU_F64, cpu);
        lua_replace(L, arg);
    }
    luaL_argcheck(L, lumat_check_matrix(L, arg)->ndim == 1, arg,
                  "needs a vector of places");
    return lumat_push_places(L, &side, arg, count);
}

static int take(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    int64_t nrows, ncols;
    lua_settop(L, 3);
    const int64_t *rows = push_places(L, "take", 2, m->rows, &nrows);
    const int64_t *cols = push_places(L, "take", 3, m->cols, &ncols);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_gather(m, rows, nrows, cols, ncols, out));
    lumat_account(L, out);
    return 1;
}

static int put(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    gpu_matrix *from = lumat_check_matrix(L, 2);
    int64_t nrows, ncols;
    lua_settop(L, 4);
    const int64_t *rows = push_places(L, "put", 3, m->rows, &nrows);
    const int64_t *cols = push_places(L, "put", 4, m->cols, &ncols);
    lumat_try(L, gpu_scatter(from, rows, nrows, cols, ncols, m));
    lua_settop(L, 1);
    return 1;
}

/* --- order ---------------------------------------------------------------- */

/* The axis of (A [, axis] [, {axis=, …}]), 1 where there is none; *options is
 * where the table stands, or would. usage is for one that is given twice. */
static int check_axis_and_options(lua_State *L, const char *name,
                                  const char *usage, const gpu_matrix *m,
                                  int *options)
{
    *options = lua_istable(L, 2) ? 2 : 3;
    lua_settop(L, *options);
    int axis = lumat_option_axis(L, *options, m);
    if (axis > 0 && *options == 3 && !lua_isnil(L, 2))
        lumat_raise(L, "%s: the axis is given twice: write %s", name, usage);
    if (axis > 0)
        return axis;
    return *options == 2 ? 1 : lumat_check_axis(L, 2, m);
}

static int running(lua_State *L, const char *name, const char *usage,
                   gpu_scan_kind kind)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    int options;
    int axis = check_axis_and_options(L, name, usage, m, &options);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_scan(m, kind, axis, out));
    lumat_account(L, out);
    return 1;
}

static int cumsum(lua_State *L)
{
    return running(L, "cumsum", "cumsum(A, 2)", GPU_SCAN_SUM);
}

static int cumprod(lua_State *L)
{
    return running(L, "cumprod", "cumprod(A, 2)", GPU_SCAN_PROD);
}

static int is_set(lua_State *L, int options, const char *key)
{
    if (!lua_istable(L, options))
        return 0;
    lua_getfield(L, options, key);
    int set = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return set;
}

/* Values, places or both, as they are asked for: what is not costs nothing. */
static int sort(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    gpu_matrix *out = NULL, *order = NULL;
    int options, axis = check_axis_and_options(
                     L, "sort", "sort(A, 2, {descending=true})", m, &options);
    int descending = is_set(L, options, "descending");
    out = lumat_new_matrix(L);
    if (is_set(L, options, "places"))
        order = lumat_new_matrix(L);
    lumat_try(L, gpu_sort(m, axis, descending, out, order));
    lumat_account(L, out);
    if (!order)
        return 1;
    lumat_count_from_one(L, "sort", order, order);
    lumat_account(L, order);
    return 2;
}

static int argsort(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    int options,
        axis = check_axis_and_options(
            L, "argsort", "argsort(A, 2, {descending=true})", m, &options);
    int descending = is_set(L, options, "descending");
    gpu_matrix *order = lumat_new_matrix(L);
    lumat_try(L, gpu_sort(m, axis, descending, NULL, order));
    lumat_account(L, order);
    lumat_count_from_one(L, "argsort", order, order);
    return 1;
}

static const lumat_option sort_options[] = {
    {"places", "boolean", NULL,
     "true: a second result says where each element came from"},
    {NULL, NULL, NULL, NULL}};

static const lumat_function functions[] = {
    {"diag", diag, 1, "v: vector [, k: integer] or A: matrix [, k: integer]",
     "matrix",
     "A matrix with v on its k-th diagonal, or the k-th diagonal of A.",
     "diag(vec{1, 2})", "{{1, 0}, {0, 2}}", .group = "diagonals"},
    {"tril", tril, 1, "A: matrix [, k: integer]", "matrix",
     "The lower triangle, up to the k-th diagonal.", "tril(ones(2, 2))",
     "{{1, 0}, {1, 1}}", .group = "diagonals"},
    {"triu", triu, 1, "A: matrix [, k: integer]", "matrix",
     "The upper triangle, from the k-th diagonal.", "triu(ones(2, 2))",
     "{{1, 1}, {0, 1}}", .group = "diagonals"},
    {"trace", trace, 1, "A: square", "number", "Sum of the diagonal.",
     "trace(mat{{1, 2}, {3, 4}})", "5", .group = "norms"},
    {"take", take, 1, "A: matrix, rows: list [, columns: list]", "matrix",
     "The rows and columns at the places given (vectors, tables or masks; nil "
     "for all), as a copy: what A[{rows, columns}] gives of vectors.",
     "take(mat{{1, 2}, {3, 4}}, {2, 1}, {1})", "{{3}, {1}}", .group = "places"},
    {"put", put, 1, "A: matrix, B: matrix, rows: list [, columns: list]",
     "matrix",
     "Writes B into A at the places given, and returns A: "
     "A[{rows, columns}] = B.",
     "put(zeros(3), vec{7, 8}, {1, 3})", "{7, 0, 8}", .group = "places"},
    {"cumsum", cumsum, 1, "A: matrix [, axis: axis] or A: matrix, {axis}",
     "matrix", "Running sums down each column (axis 1) or along each row (2).",
     "cumsum(vec{1, 2, 3})", "{1, 3, 6}", .group = "running"},
    {"cumprod", cumprod, 1, "A: matrix [, axis: axis] or A: matrix, {axis}",
     "matrix",
     "Running products down each column (axis 1) or along each row (2).",
     "cumprod(vec{1, 2, 3})", "{1, 2, 6}", .group = "running"},
    {"sort", sort, 1, "A: matrix [, axis: axis] {axis, descending, places}",
     "matrix or matrix, matrix with places",
     "Sorted down each column (axis 1) or along each row (2); NaN last. With "
     "{places=true} there is a second result: where each element came from, as "
     "argsort gives it.",
     "sort(vec{3, 1, 2})", "{1, 2, 3}", .group = "places",
     .options = sort_options},
    {"argsort", argsort, 1, "A: matrix [, axis: axis] {axis, descending}",
     "matrix",
     "The places that sort A down each column (axis 1) or along each row (2): "
     "v:take(argsort(v)) is sort(v). Equal elements keep their order.",
     "argsort(vec{3, 1, 2})", "{2, 3, 1}", .group = "places"},
    {0}};

void lumat_open_arrange(lua_State *L)
{
    lumat_register(L, functions);
    lumat_open_repeat(L);
}
