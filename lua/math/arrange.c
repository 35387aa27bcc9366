/* Functions that put elements in other places: diagonals and triangles,
 * chosen rows and columns, running sums, sorting, joining, repeating. */
#include "complex_value.h"
#include "arguments.h"
#include "function.h"
#include "index.h"
#include "math_functions.h"
#include "op_list.h"
#include "print.h"
#include "value.h"

#include <stdlib.h>

/* --- diagonals and triangles ---------------------------------------------- */

/* diag(v [, k]) puts v on the k-th diagonal; diag(A [, k]) is that diagonal,
 * as a view. */
static int diag(lua_State *L)
{
    if (lumat_has_sparse(L, 1))
        return lumat_push_sparse_diagonal(L);
    gpu_matrix *m = lumat_check_matrix(L, 1);
    int64_t k = lumat_optional_integer(L, 2, 0);
    if (k <= -(1ll << 31) || k >= 1ll << 31)
        lumat_raise_argument(L, 2, "is %I: there is no such diagonal",
                             (LUAI_UACINT)k);
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
    if (lumat_has_sparse(L, 1))
        return lumat_push_sparse_triangle(L, keeps == GPU_OP_le);
    const gpu_matrix *m = lumat_check_two_axes(L, 1);
    lua_Integer k = lumat_optional_integer(L, 2, 0);
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
    gpu_matrix *m;
    if (lumat_has_sparse(L, 1)) {
        lumat_push_sparse_diagonal(L);
        m = lumat_check_matrix(L, 2);
    } else {
        m = lumat_check_two_axes(L, 1);
        gpu_view_diagonal(m, 0, lumat_new_matrix(L));
    }
    const gpu_matrix *diagonal = lumat_check_matrix(L, 2);
    gpu_program p;
    gpu_program_start(&p, 1);
    p.reduction = GPU_REDUCE_sum;
    const gpu_matrix *in[] = {diagonal};
    double sum;
    if (gpu_is_complex(m)) {
        gpu_complex total;
        lumat_try(L, gpu_complex_reduce_all("trace", GPU_REDUCE_sum, diagonal,
                                            &total));
        if (!lumat_push_unread(L, "trace"))
            lumat_push_complex(L, total);
        return 1;
    }
    lumat_try(L, gpu_reduce_all("trace", &p, in, &sum));
    if (lumat_push_unread(L, "trace"))
        return 1;
    lumat_note_scalar(m->dtype, sum);
    lua_pushnumber(L, sum);
    return 1;
}

/* --- chosen rows and columns ---------------------------------------------- */

/* The vector of places, or mask, at arg, which a table becomes; 0: all. */
static int check_list(lua_State *L, const char *name, int arg)
{
    gpu_device *cpu;
    if (lua_isnoneornil(L, arg))
        return 0;
    if (lua_istable(L, arg)) {
        lumat_try(L, gpu_open("cpu", &cpu));
        lumat_push_from_table(L, arg, name, GPU_F64, cpu);
        lua_replace(L, arg);
    }
    lumat_check_vector(L, arg);
    return 1;
}

/* The lists at arg and arg + 1 as what was pushed for them has them; those
 * that stay do where all of them do, or each may. */
static lumat_lists push_lists(lua_State *L, const char *name,
                              const gpu_matrix *m, int arg, int is_written)
{
    lumat_side rows = {name, "place", m->rows, NULL};
    lumat_side cols = {name, "place", m->cols, NULL};
    int has_rows = check_list(L, name, arg);
    int has_cols = check_list(L, name, arg + 1);
    lumat_lists l = {.nrows = m->rows, .ncols = m->cols};
    if (has_rows)
        l.row_list = lumat_push_list(L, m, arg, m->rows);
    if (has_cols)
        l.col_list = lumat_push_list(L, m, arg + 1, m->cols);
    int stay =
        !is_written ||
        ((l.row_list || !has_rows) && (l.col_list || !has_cols) &&
         (!l.row_list ||
          lumat_is_worth_staying(m, l.row_list->rows, m->rows)) &&
         (!l.col_list || lumat_is_worth_staying(m, l.col_list->rows, m->cols)));
    if (!stay)
        l.row_list = l.col_list = NULL;
    if (has_rows && !l.row_list)
        l.rows = lumat_push_places(L, &rows, arg, &l.nrows);
    if (has_cols && !l.col_list)
        l.cols = lumat_push_places(L, &cols, arg + 1, &l.ncols);
    return l;
}

/* Raises where the status is not GPU_OK. */
static void check_moved(lua_State *L, const char *name, gpu_status status,
                        const gpu_matrix *m, const lumat_lists *l)
{
    lumat_side rows = {name, "place", m->rows, NULL};
    lumat_side cols = {name, "place", m->cols, NULL};
    if (status == GPU_RANGE) {
        lumat_refuse_list(L, &rows, l->row_list);
        lumat_refuse_list(L, &cols, l->col_list);
    }
    lumat_try(L, status);
}

static int take(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    lua_settop(L, 3);
    lumat_lists from = push_lists(L, "take", m, 2, 0);
    gpu_matrix *out = lumat_new_matrix(L);
    check_moved(L, "take", lumat_gather_lists(m, &from, out), m, &from);
    lumat_account(L, out);
    return 1;
}

static int put(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    gpu_matrix *from = lumat_check_matrix(L, 2);
    lua_settop(L, 4);
    lumat_lists to = push_lists(L, "put", m, 3, 1);
    check_moved(L, "put", lumat_scatter_lists("put", from, &to, m), m, &to);
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

static int cummax(lua_State *L)
{
    return running(L, "cummax", "cummax(A, 2)", GPU_SCAN_MAX);
}

static int cummin(lua_State *L)
{
    return running(L, "cummin", "cummin(A, 2)", GPU_SCAN_MIN);
}

static int running_truth(lua_State *L, const char *name, const char *usage,
                         int is_all)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    int options;
    int axis = check_axis_and_options(L, name, usage, m, &options);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_scan_truth(m, is_all, axis, out));
    lumat_account(L, out);
    return 1;
}

static int cumany(lua_State *L)
{
    return running_truth(L, "cumany", "cumany(A, 2)", 0);
}

static int cumall(lua_State *L)
{
    return running_truth(L, "cumall", "cumall(A, 2)", 1);
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
    if (gpu_is_complex(m))
        lumat_try(L, gpu_fail_complex("argsort"));
    gpu_matrix *order = lumat_new_matrix(L);
    lumat_try(L, gpu_sort(m, axis, descending, NULL, order));
    lumat_account(L, order);
    lumat_count_from_one(L, "argsort", order, order);
    return 1;
}

/* --- side by side and one above the other; the operator .. ---------------- */

static gpu_dtype wider(gpu_dtype a, gpu_dtype b)
{
    return a == b ? a : gpu_dtype_wider(a, b);
}

/* Sums of the sizes along the joined axis; a vector is a row for vcat and a
 * column for hcat, and all vectors join end to end in hcat. */
typedef struct join {
    const char *name;
    int across, count, all_vectors;
    int64_t rows, cols;
    gpu_dtype dtype;
} join;

static gpu_matrix piece_of(const gpu_matrix *m, const join *j)
{
    gpu_matrix piece = *m;
    if (m->ndim == 2 || j->all_vectors)
        return piece;
    piece.ndim = 2;
    if (!j->across) {
        piece.rows = 1;
        piece.cols = m->rows;
        piece.col_stride = m->row_stride;
        piece.row_stride = piece.cols * piece.col_stride;
    }
    return piece;
}

/* Argument i has `size` rows (hcat) or columns, those before it `wanted`. */
static void check_join(lua_State *L, const join *j, int i, int64_t size,
                       int64_t wanted)
{
    if (size == wanted)
        return;
    gpu_fail(GPU_SHAPE, "%s: numbers of %s differ (%lld and %lld)", j->name,
             j->across ? "rows" : "columns", (long long)wanted,
             (long long)size);
    lumat_raise_shapes(L, 1, i, j->across ? LUMAT_FIT_ROWS : LUMAT_FIT_COLUMNS);
}

static void plan_join(lua_State *L, join *j)
{
    j->count = lua_gettop(L);
    j->all_vectors = j->across;
    for (int i = 1; i <= j->count; i++)
        if (lumat_check_matrix(L, i)->ndim == 2)
            j->all_vectors = 0;
    for (int i = 1; i <= j->count; i++) {
        gpu_matrix *m = lumat_check_matrix(L, i);
        gpu_matrix p = piece_of(m, j);
        j->dtype = i == 1 ? m->dtype : wider(j->dtype, m->dtype);
        if (i == 1) {
            j->rows = p.rows;
            j->cols = p.cols;
        } else if (j->all_vectors || !j->across) {
            check_join(L, j, i, p.cols, j->cols);
            j->rows += p.rows;
        } else {
            check_join(L, j, i, p.rows, j->rows);
            j->cols += p.cols;
        }
    }
}

static int join_all(lua_State *L, join *j)
{
    plan_join(L, j);
    gpu_matrix *first = lumat_check_matrix(L, 1), *out = lumat_new_matrix(L);
    lumat_try(L, gpu_create(out, gpu_matrix_device(first), j->dtype,
                            j->all_vectors ? 1 : 2, j->rows, j->cols));
    lumat_account(L, out);
    int down = j->all_vectors || !j->across;
    int64_t at = 0;
    for (int i = 1; i <= j->count; i++) {
        gpu_matrix p = piece_of(lumat_check_matrix(L, i), j), block;
        gpu_slice all_rows = {0, 1, j->rows}, all_cols = {0, 1, j->cols};
        gpu_slice part = {at, 1, down ? p.rows : p.cols};
        lumat_try(L, gpu_view_block(out, down ? part : all_rows,
                                    down ? all_cols : part, &block));
        gpu_status status = gpu_copy(&p, &block);
        gpu_release(&block);
        lumat_try(L, status);
        at += part.count;
    }
    return 1;
}

static int hcat(lua_State *L)
{
    join j = {.name = "hcat", .across = 1};
    if (lumat_has_sparse(L, lua_gettop(L)))
        return lumat_push_sparse_joined(L, j.name, 2);
    return join_all(L, &j);
}

/* Of frames, which are the library's in Lua. */
static int vcat_frames(lua_State *L)
{
    lumat_push_required(L, "frames");
    lua_getfield(L, -1, "vcat");
    lua_insert(L, 1);
    lua_pop(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

static int vcat(lua_State *L)
{
    if (lua_istable(L, 1))
        return vcat_frames(L);
    join j = {.name = "vcat", .across = 0};
    if (lumat_has_sparse(L, lua_gettop(L)))
        return lumat_push_sparse_joined(L, j.name, 1);
    return join_all(L, &j);
}

static void push_text(lua_State *L, int index)
{
    if (!lumat_test_matrix(L, index)) {
        lumat_tolstring(L, index, NULL);
        return;
    }
    gpu_matrix *m = lumat_test_matrix(L, index);
    lua_pushfstring(L, "%s ", gpu_dtype_name(m->dtype));
    lumat_push_shape(L, m);
    lua_concat(L, 2);
}

/* A .. 1: text, or a column of ones? */
static int raise_number(lua_State *L, int other)
{
    const gpu_matrix *m = lumat_check_matrix(L, 3 - other);
    const char *name = lumat_name_of(L, 3 - other, m->ndim == 1 ? "v" : "A");
    const char *number = lumat_push_brief(L, other);
    const char *rows = lua_pushfstring(L, "%I", (LUAI_UACINT)m->rows);
    const char *column =
        m->ndim == 1 ? lua_pushfstring(L, "%s * ones(1)", number)
                     : lua_pushfstring(L, "%s * ones(%s, 1)", number, rows);
    const char *write = other == 2
                            ? lua_pushfstring(L, "hcat(%s, %s)", name, column)
                            : lua_pushfstring(L, "hcat(%s, %s)", column, name);
    return lumat_raise(L,
                       "..: cannot join a matrix and the number %s: %s puts it "
                       "beside %s; for text write it in quotes",
                       number, write, name);
}

static int join_texts(lua_State *L)
{
    push_text(L, 1);
    push_text(L, 2);
    lua_concat(L, 2);
    return 1;
}

/* A .. B joins side by side; with a string it is text. */
static int concat(lua_State *L)
{
    if (lumat_has_sparse(L, 2) ||
        (lumat_test_matrix(L, 1) && lumat_test_matrix(L, 2)))
        return hcat(L);
    int other = lumat_test_matrix(L, 1) ? 2 : 1;
    int type = lua_type(L, other);
    if (type == LUA_TNUMBER)
        return raise_number(L, other);
    if (type != LUA_TSTRING)
        return lumat_raise(L, "..: cannot join a matrix and a %s",
                           lumat_kind_of(L, other));
    return join_texts(L);
}

/* z .. x: text, as with numbers. */
static int concat_complex(lua_State *L)
{
    for (int i = 1; i <= 2; i++)
        if (lua_type(L, i) != LUA_TSTRING && lua_type(L, i) != LUA_TNUMBER &&
            !lumat_test_complex(L, i))
            return lumat_raise(L, "..: cannot join a complex number and a %s",
                               lumat_kind_of(L, i));
    return join_texts(L);
}

/* --- many times: outer, tile, kron ---------------------------------------- */

static int outer(lua_State *L)
{
    gpu_matrix *x = lumat_check_matrix(L, 1), *y = lumat_check_matrix(L, 2);
    gpu_matrix *row = lumat_new_matrix(L), *column = lumat_new_matrix(L);
    lumat_try(L, gpu_reshape(x, 2, gpu_size(x), 1, column));
    lumat_try(L, gpu_reshape(y, 2, 1, gpu_size(y), row));
    gpu_program p;
    gpu_program_start(&p, 2);
    gpu_program_add(&p, GPU_OP_mul, 0, 1, 0);
    const gpu_matrix *in[] = {column, row};
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_map("outer", &p, in, out));
    lumat_account(L, out);
    return 1;
}

/* size * times, a size of the result. */
static int64_t multiplied(lua_State *L, const char *name, int64_t size,
                          int64_t times)
{
    int64_t product;
    if (__builtin_mul_overflow(size, times, &product))
        lumat_raise(L, "%s: out of memory: %I times %I are too many", name,
                    (LUAI_UACINT)size, (LUAI_UACINT)times);
    return product;
}

/* Copies within out: what the slices `from` choose to what `to` do. */
static gpu_status copy_block(gpu_matrix *out, const gpu_slice from[2],
                             const gpu_slice to[2])
{
    gpu_matrix source = {.storage = NULL}, target = {.storage = NULL};
    gpu_status status = gpu_view_block(out, from[0], from[1], &source);
    if (status == GPU_OK)
        status = gpu_view_block(out, to[0], to[1], &target);
    if (status == GPU_OK)
        status = gpu_copy(&source, &target);
    gpu_release(&source);
    gpu_release(&target);
    return status;
}

/* The first `done` places along an axis (0 or 1) fill the rest, twice as many
 * at each copy; `other` is the extent along the other axis. */
static void repeat(lua_State *L, gpu_matrix *out, int axis, int64_t done,
                   int64_t other)
{
    int64_t size = axis == 0 ? out->rows : out->cols;
    gpu_slice from[2], to[2];
    for (from[!axis] = to[!axis] = (gpu_slice){0, 1, other}; done < size;
         done += from[axis].count) {
        int64_t count = done < size - done ? done : size - done;
        from[axis] = (gpu_slice){0, 1, count};
        to[axis] = (gpu_slice){done, 1, count};
        lumat_try(L, copy_block(out, from, to));
    }
}

static int tile(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1), *first;
    int64_t down = lumat_check_size(L, 2);
    if (m->ndim == 2 && lua_isnoneornil(L, 3))
        lumat_raise_argument(L, 3, "is missing: a matrix has columns, too");
    if (m->ndim == 1 && !lua_isnoneornil(L, 3))
        lumat_raise_argument(L, 3,
                             "is of a matrix, and A a vector: v:row() and "
                             "v:col() are matrices");
    int64_t across = m->ndim == 2 ? lumat_check_size(L, 3) : 1;
    int64_t rows = multiplied(L, "tile", m->rows, down);
    int64_t cols = multiplied(L, "tile", m->cols, across);
    gpu_matrix *out = lumat_push_like(L, m, m->ndim, rows, cols);
    if (gpu_size(out) == 0)
        return 1;
    first = lumat_new_matrix(L);
    lumat_try(L, gpu_view_block(out, (gpu_slice){0, 1, m->rows},
                                (gpu_slice){0, 1, m->cols}, first));
    lumat_try(L, gpu_copy(m, first));
    lua_pop(L, 1);
    repeat(L, out, 0, m->rows, m->cols);
    repeat(L, out, 1, m->cols, out->rows);
    return 1;
}

/* One axis of a Kronecker product of sizes a and b: the parts of A, B and the
 * result that belong to one step. The shorter operand gives a single place a
 * step, the longer one all of its own. */
typedef struct kron_part {
    gpu_slice a, b, out;
} kron_part;

static kron_part kron_step(int64_t a, int64_t b, int64_t i)
{
    if (a <= b)
        return (kron_part){{i, 1, 1}, {0, 1, b}, {i * b, 1, b}};
    return (kron_part){{0, 1, a}, {i, 1, 1}, {i, b, a}};
}

/* A part of a times a part of b, broadcast against each other. The views
 * pushed are popped. */
static void kron_block(lua_State *L, const gpu_matrix *const ab[2],
                       kron_part rows, kron_part cols, gpu_matrix *out)
{
    gpu_matrix *x = lumat_new_matrix(L), *y = lumat_new_matrix(L);
    gpu_matrix *block = lumat_new_matrix(L);
    lumat_try(L, gpu_view_block(ab[0], rows.a, cols.a, x));
    lumat_try(L, gpu_view_block(ab[1], rows.b, cols.b, y));
    lumat_try(L, gpu_view_block(out, rows.out, cols.out, block));
    gpu_program p;
    gpu_program_start(&p, 2);
    gpu_program_add(&p, GPU_OP_mul, 0, 1, 0);
    const gpu_matrix *in[] = {x, y};
    lumat_try(L, gpu_map("kron", &p, in, block));
    gpu_release(x);
    gpu_release(y);
    gpu_release(block);
    lua_pop(L, 3);
}

/* Pushes m with each element so many times side by side. */
static gpu_matrix *push_stretched(lua_State *L, const gpu_matrix *m,
                                  int64_t times)
{
    gpu_matrix *wide = lumat_new_matrix(L), *column = lumat_new_matrix(L);
    gpu_matrix *many = lumat_push_like(L, m, 2, gpu_size(m), times);
    gpu_program p;
    gpu_program_start(&p, 1);
    lumat_try(L, gpu_reshape(m, 2, gpu_size(m), 1, column));
    lumat_try(L, gpu_map_over("kron", &p, (const gpu_matrix **)&column, many));
    lumat_try(L, gpu_reshape(many, 2, m->rows, m->cols * times, wide));
    gpu_release(column);
    gpu_release(many);
    lua_pop(L, 2);
    return wide;
}

/* Pushes m so many times side by side. */
static gpu_matrix *push_repeated(lua_State *L, const gpu_matrix *m,
                                 int64_t times)
{
    gpu_matrix *out = lumat_push_like(L, m, 2, m->rows, m->cols * times);
    gpu_matrix *first = lumat_new_matrix(L);
    lumat_try(L, gpu_view_block(out, (gpu_slice){0, 1, m->rows},
                                (gpu_slice){0, 1, m->cols}, first));
    lumat_try(L, gpu_copy(m, first));
    gpu_release(first);
    lua_pop(L, 1);
    repeat(L, out, 1, m->cols, out->rows);
    return out;
}

/* Whole rows of the result at a time, from operands as wide as these. */
static void kron_by_rows(lua_State *L, const gpu_matrix *a, const gpu_matrix *b,
                         gpu_matrix *out)
{
    const gpu_matrix *wide[] = {push_stretched(L, a, b->cols),
                                push_repeated(L, b, a->cols)};
    gpu_slice all = {0, 1, out->cols};
    int64_t down = a->rows < b->rows ? a->rows : b->rows;
    for (int64_t i = 0; i < down; i++)
        kron_block(L, wide, kron_step(a->rows, b->rows, i),
                   (kron_part){all, all, all}, out);
    lua_pop(L, 2);
}

/* A block at a time, the longer operand by an element of the other, or by one
 * of its rows where that has more columns. */
static void kron_by_blocks(lua_State *L, const gpu_matrix *a,
                           const gpu_matrix *b, gpu_matrix *out)
{
    const gpu_matrix *ab[] = {a, b};
    int64_t down = a->rows < b->rows ? a->rows : b->rows;
    int64_t across = a->cols < b->cols ? a->cols : b->cols;
    for (int64_t i = 0; i < down; i++)
        for (int64_t j = 0; j < across; j++)
            kron_block(L, ab, kron_step(a->rows, b->rows, i),
                       kron_step(a->cols, b->cols, j), out);
}

/* Has the vectors at 1 and 2 as columns in their place. */
static void make_columns(lua_State *L)
{
    for (int i = 1; i <= 2; i++) {
        const gpu_matrix *v = lumat_check_matrix(L, i);
        lumat_try(L, gpu_reshape(v, 2, v->rows, 1, lumat_new_matrix(L)));
        lua_replace(L, i);
    }
}

static int is_vector(lua_State *L, int index)
{
    const gpu_matrix *m = lumat_test_matrix(L, index);
    return m && m->storage && m->ndim == 1;
}

static int kron(lua_State *L)
{
    enum { LARGE = 1 << 16 }; /* elements of a block that is worth a step */
    if (lumat_has_sparse(L, 2))
        return lumat_push_sparse_kron(L);
    if (is_vector(L, 1) && is_vector(L, 2)) {
        make_columns(L);
        kron(L);
        const gpu_matrix *column = lumat_test_matrix(L, -1);
        lumat_try(L,
                  gpu_reshape(column, 1, column->rows, 1, lumat_new_matrix(L)));
        return 1;
    }
    gpu_matrix *a = lumat_check_two_axes(L, 1), *b = lumat_check_two_axes(L, 2);
    int64_t rows = multiplied(L, "kron", a->rows, b->rows);
    int64_t cols = multiplied(L, "kron", a->cols, b->cols);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L,
              gpu_create(out, gpu_matrix_device(a),
                         gpu_dtype_wider(a->dtype, b->dtype), 2, rows, cols));
    lumat_account(L, out);
    if (gpu_size(out) == 0)
        return 1;
    int64_t block = (a->rows > b->rows ? a->rows : b->rows) *
                    (a->cols > b->cols ? a->cols : b->cols);
    int64_t across = a->cols < b->cols ? a->cols : b->cols;
    if (block < LARGE && across > 1)
        kron_by_rows(L, a, b, out);
    else
        kron_by_blocks(L, a, b, out);
    return 1;
}

/* --- the functions -------------------------------------------------------- */

static const lumat_option sort_options[] = {
    {"places", "boolean", NULL,
     "true: a second result says where each element came from"},
    {NULL, NULL, NULL, NULL}};

static const lumat_function functions[] = {
    {"diag", diag, 1,
     "v: vector [, k: integer] or A: matrix|sparse [, k: integer]", "matrix",
     "A matrix with v on its k-th diagonal, or the k-th diagonal of A. A "
     "diagonal matrix that is sparse is spdiags(v, 0, n, n); without it S % "
     "v:col() scales the rows of a sparse matrix, S % v:row() its columns.",
     "diag(vec{1, 2})", "{{1, 0}, {0, 2}}", .group = "diagonals"},
    {"tril", tril, 1, "A: matrix|sparse [, k: integer]", "same",
     "The lower triangle, up to the k-th diagonal.", "tril(ones(2, 2))",
     "{{1, 0}, {1, 1}}", .group = "diagonals"},
    {"triu", triu, 1, "A: matrix|sparse [, k: integer]", "same",
     "The upper triangle, from the k-th diagonal.", "triu(ones(2, 2))",
     "{{1, 1}, {0, 1}}", .group = "diagonals"},
    {"trace", trace, 1, "A: square|sparse", "number", "Sum of the diagonal.",
     "trace(mat{{1, 2}, {3, 4}})", "5", .group = "norms"},
    {"take", take, 1, "A: matrix [, rows: list [, columns: list]]", "matrix",
     "The rows and columns at the places given (vectors, tables or masks; nil "
     "for all), as a copy: what A[{rows, columns}] gives of vectors.",
     "take(mat{{1, 2}, {3, 4}}, {2, 1}, {1})", "{{3}, {1}}", .group = "places"},
    {"put", put, 1, "A: matrix, B: matrix [, rows: list [, columns: list]]",
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
    {"cummax", cummax, 1, "A: matrix [, axis: axis] or A: matrix, {axis}",
     "matrix",
     "The largest so far, down each column (axis 1) or along each row (2); "
     "from a NaN on NaN.",
     "cummax(vec{1, 3, 2})", "{1, 3, 3}", .group = "running"},
    {"cummin", cummin, 1, "A: matrix [, axis: axis] or A: matrix, {axis}",
     "matrix",
     "The smallest so far, down each column (axis 1) or along each row (2); "
     "from a NaN on NaN.",
     "cummin(vec{3, 1, 2})", "{3, 1, 1}", .group = "running"},
    {"cumany", cumany, 1, "A: matrix [, axis: axis] or A: matrix, {axis}",
     "matrix",
     "Was any element so far not zero? A mask, down each column (axis 1) or "
     "along each row (2).",
     "cumany(vec{0, 2, 0})", "{false, true, true}", .group = "running"},
    {"cumall", cumall, 1, "A: matrix [, axis: axis] or A: matrix, {axis}",
     "matrix",
     "Were all elements so far not zero? A mask, down each column (axis 1) or "
     "along each row (2).",
     "cumall(vec{1, 0, 2})", "{true, false, false}", .group = "running"},
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
    {"hcat", hcat, 1, "A: matrix|sparse [, B: matrix|sparse beside A, …]",
     "same",
     "Side by side; also A .. B. Vectors join end to end, or as columns beside "
     "matrices. With a sparse matrix among them the result is sparse.",
     "hcat(mat{{1}, {2}}, mat{{3}, {4}})", "{{1, 3}, {2, 4}}",
     .group = "joining"},
    {"vcat", vcat, 1,
     "A: matrix|sparse [, B: matrix|sparse columns A, …] or T: frame [, U: "
     "frame, …]",
     "same",
     "One above the other; vectors are rows. Frames have the same columns. "
     "With "
     "a sparse matrix among them the result is sparse.",
     "vcat(vec{1, 2}, vec{3, 4})", "{{1, 2}, {3, 4}}", .group = "joining"},
    {"outer", outer, 1, "x: matrix, y: matrix", "matrix",
     "Every x[i] times every y[j].", "outer(vec{1, 2}, vec{3, 4})",
     "{{3, 4}, {6, 8}}", .group = "outer"},
    {"kron", kron, 1, "A: matrix|sparse, B: matrix|sparse", "same",
     "Kronecker product: B scaled by every element of A; of two vectors a "
     "vector. Of a sparse matrix and any other it is sparse.",
     "kron(mat{{1, 2}}, mat{{1}, {10}})", "{{1, 2}, {10, 20}}",
     .group = "outer"},
    {"tile", tile, 1, "A: matrix, m: size [, n: size]", "matrix",
     "A repeated m times down, n across; a vector m times, end to end.",
     "tile(vec{1, 2}, 2)", "{1, 2, 1, 2}", .group = "joining"},
    {0}};

void lumat_open_arrange(lua_State *L)
{
    luaL_getmetatable(L, "lumat.matrix");
    lua_pushcfunction(L, concat);
    lua_setfield(L, -2, "__concat");
    lua_pop(L, 1);
    luaL_getmetatable(L, LUMAT_COMPLEX);
    lua_pushcfunction(L, concat_complex);
    lua_setfield(L, -2, "__concat");
    lua_pop(L, 1);
    lumat_register(L, functions);
    lumat_open_data_steps(L);
}
