/* Matrices side by side and one above the other; the operator .. */
#include "constructors.h"
#include "function.h"
#include "value.h"

static gpu_dtype wider(gpu_dtype a, gpu_dtype b)
{
    if (a == b)
        return a;
    return a == GPU_F64 || b == GPU_F64 ? GPU_F64 : GPU_F32;
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
    luaL_checkany(L, 1);
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
    return join_all(L, &j);
}

static int vcat(lua_State *L)
{
    join j = {.name = "vcat", .across = 0};
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

/* A .. B joins side by side; with a string it is text. */
static int concat(lua_State *L)
{
    if (lumat_test_matrix(L, 1) && lumat_test_matrix(L, 2))
        return hcat(L);
    int other = lumat_test_matrix(L, 1) ? 2 : 1;
    int type = lua_type(L, other);
    if (type == LUA_TNUMBER)
        return raise_number(L, other);
    if (type != LUA_TSTRING)
        return lumat_raise(L, "..: cannot join a matrix and a %s",
                           lumat_kind_of(L, other));
    push_text(L, 1);
    push_text(L, 2);
    lua_concat(L, 2);
    return 1;
}

static const lumat_function functions[] = {
    {"hcat", hcat, 1, "A: matrix, B: matrix beside A, …", "matrix",
     "Side by side; also A .. B. Vectors join end to end, or as columns beside "
     "matrices.",
     "hcat(mat{{1}, {2}}, mat{{3}, {4}})", "{{1, 3}, {2, 4}}",
     .group = "joining"},
    {"vcat", vcat, 1, "A: matrix, B: matrix columns A, …", "matrix",
     "One above the other; vectors are rows.", "vcat(vec{1, 2}, vec{3, 4})",
     "{{1, 2}, {3, 4}}", .group = "joining"},
    {0}};

void lumat_open_join(lua_State *L)
{
    luaL_getmetatable(L, "lumat.matrix");
    lua_pushcfunction(L, concat);
    lua_setfield(L, -2, "__concat");
    lua_pop(L, 1);
    lumat_register(L, functions);
}
