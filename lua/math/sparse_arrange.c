/* What puts the elements of sparse matrices in other places: diagonals and
 * triangles, joining, Kronecker products, other shapes. Called by the dense
 * functions of their names. */
#include "arguments.h"
#include "complex_value.h"
#include "math_functions.h"
#include "value.h"

/* The sparse matrix at arg; raises when it was freed. */
static const gpu_sparse *check_there(lua_State *L, int arg)
{
    const gpu_sparse *s = lumat_test_sparse(L, arg);
    if (!s->values.storage)
        lumat_raise_argument(L, arg, "is a sparse matrix that has been freed");
    return s;
}

/* --- diagonals and triangles -----------------------------------------------
 */

/* Which diagonal is meant, by the argument at 2. */
static int64_t check_diagonal(lua_State *L)
{
    int64_t k = lumat_optional_integer(L, 2, 0);
    if (k <= -(1ll << 31) || k >= 1ll << 31)
        lumat_raise_argument(L, 2, "is %I: there is no such diagonal",
                             (LUAI_UACINT)k);
    return k;
}

int lumat_push_sparse_diagonal(lua_State *L)
{
    const gpu_sparse *s = check_there(L, 1);
    int64_t k = check_diagonal(L);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_sparse_diagonal("diag", s, k, out));
    lumat_account(L, out);
    return 1;
}

int lumat_push_sparse_triangle(lua_State *L, int is_lower)
{
    const gpu_sparse *s = check_there(L, 1);
    int64_t k = lumat_optional_integer(L, 2, 0);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, is_lower ? gpu_sparse_band("tril", s, INT64_MIN, k, out)
                          : gpu_sparse_band("triu", s, k, INT64_MAX, out));
    lumat_account_sparse(L, out);
    return 1;
}

/* --- with others -----------------------------------------------------------
 */

/* The argument becomes sparse where it is dense, a vector as a row or, for
 * hcat, a column. */
static const gpu_sparse *make_sparse(lua_State *L, int arg, int is_column)
{
    if (lumat_test_sparse(L, arg))
        return check_there(L, arg);
    const gpu_matrix *m = lumat_check_matrix(L, arg);
    gpu_matrix *two = lumat_new_matrix(L);
    lumat_try(L, gpu_reshape(m, 2, m->ndim == 2 || is_column ? m->rows : 1,
                             m->ndim == 2 ? m->cols
                             : is_column  ? 1
                                          : m->rows,
                             two));
    gpu_sparse *s = lumat_new_sparse(L);
    gpu_dtype type = m->dtype == GPU_BOOL ? GPU_F32 : m->dtype;
    lumat_try(L, gpu_sparse_from_dense(two, type, NULL, s));
    lumat_account_sparse(L, s);
    lua_replace(L, arg);
    lua_pop(L, 1);
    return s;
}

int lumat_push_sparse_kron(lua_State *L)
{
    for (int i = 1; i <= 2; i++)
        if (!lumat_test_sparse(L, i))
            lumat_check_two_axes(L, i);
    const gpu_sparse *a = make_sparse(L, 1, 0), *b = make_sparse(L, 2, 0);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_kron(a, b, out));
    lumat_account_sparse(L, out);
    return 1;
}

/* How long the argument is across what is joined: a vector is a row for vcat
 * and a column for hcat. */
static int64_t size_across(lua_State *L, int arg, int axis)
{
    if (lumat_test_sparse(L, arg)) {
        const gpu_sparse *s = check_there(L, arg);
        return axis == 1 ? s->cols : s->rows;
    }
    const gpu_matrix *m = lumat_check_matrix(L, arg);
    return axis == 2 || m->ndim == 1 ? m->rows : m->cols;
}

static const char *shape_text(lua_State *L, int arg)
{
    const gpu_sparse *s = lumat_test_sparse(L, arg);
    return s ? gpu_size_text(s->rows, s->cols)
             : gpu_shape_text(lumat_check_matrix(L, arg));
}

static void check_sizes(lua_State *L, const char *name, int axis, int count)
{
    int64_t wanted = size_across(L, 1, axis);
    for (int i = 2; i <= count; i++) {
        int64_t size = size_across(L, i, axis);
        if (size != wanted)
            lumat_raise(L,
                        "%s: numbers of %s differ (%I and %I): %s is %s, %s "
                        "is %s",
                        name, axis == 2 ? "rows" : "columns",
                        (LUAI_UACINT)wanted, (LUAI_UACINT)size,
                        lumat_name_of(L, 1, "the first"), shape_text(L, 1),
                        lumat_name_of(L, i, "the other"), shape_text(L, i));
    }
}

int lumat_push_sparse_joined(lua_State *L, const char *name, int axis)
{
    int count = lua_gettop(L);
    check_sizes(L, name, axis, count);
    const gpu_sparse **parts =
        lua_newuserdatauv(L, (size_t)count * sizeof *parts, 0);
    for (int i = 1; i <= count; i++)
        parts[i - 1] = make_sparse(L, i, axis == 2);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_join(name, axis, parts, count, out));
    lumat_account_sparse(L, out);
    return 1;
}

/* --- other shapes ----------------------------------------------------------
 */

int lumat_push_sparse_reshaped(lua_State *L)
{
    const gpu_sparse *s = check_there(L, 1);
    if (lumat_arguments(L) < 3)
        lumat_raise_argument(L, 3,
                             "is missing: there are no sparse vectors; of n "
                             "elements there are n, 1 and 1, n");
    int64_t rows = lumat_check_size(L, 2), cols = lumat_check_size(L, 3);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_reshape(s, rows, cols, out));
    lumat_account_sparse(L, out);
    return 1;
}
