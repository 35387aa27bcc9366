/* Linear algebra beyond the product: powers, systems, inverse, determinant. */
#include "complex_value.h"
#include "function.h"
#include "math_functions.h"
#include "print.h"
#include "value.h"

#include <math.h>
#include <string.h>

/* --- warnings ------------------------------------------------------------- */

/* What to ask for the condition with: NULL where nobody would hear of it. */
static gpu_condition *wanted(gpu_condition *condition)
{
    *condition = (gpu_condition){.rcond = 1};
    return lumat_warns() ? condition : NULL;
}

/* Warns of m's first element that is no finite number; 0: there is none. */
static int warn_if_odd(lua_State *L, const char *operation, const gpu_matrix *m)
{
    int64_t row, col;
    gpu_complex value;
    if (!lumat_find_odd(L, m, &row, &col))
        return 0;
    lumat_try(L, gpu_complex_get(m, row, col, &value));
    lumat_warn(L, operation, "A[{%lld, %lld}] is %s", (long long)row + 1,
               (long long)col + 1,
               isnan(value.re) || isnan(value.im) ? "NaN" : "Inf");
    return 1;
}

void lumat_warn_if_poor(lua_State *L, const char *operation,
                        const gpu_matrix *m, gpu_dtype type,
                        const gpu_condition *c)
{
    if (m && !(c->rcond > 0) && lumat_warns() && warn_if_odd(L, operation, m))
        return;
    int is_f64 = gpu_dtype_of_parts(type) == GPU_F64, digits = is_f64 ? 16 : 7;
    if (!c->is_poor)
        return;
    int lost = c->rcond > 0 ? (int)lround(-log10(c->rcond)) : digits;
    char text[64] = "all";
    if (lost < digits)
        snprintf(text, sizeof text, "about %d", lost);
    lumat_warn(L, operation,
               "the matrix is nearly singular or badly scaled (rcond %.1e)\n"
               "  %s of %s's %d digits may be lost; %s",
               c->rcond, text, is_f64 ? "f64" : "f32", digits,
               is_f64 ? "are there rows or columns that depend on each "
                        "other?\n"
                        "  A + s * eye(n) with a small s is a regular matrix"
               : type == GPU_C64 ? "A:c128() has 16"
                                 : "A:f64() has 16");
}

/* Raises that the matrix at index is singular, with what helps. */
static int raise_singular(lua_State *L, const char *helps)
{
    return lumat_raise(L, "%s; %s", gpu_message(), helps);
}

/* --- powers --------------------------------------------------------------- */

/* The matrix on top and the one at index become their product. */
static void replace_by_product(lua_State *L, int a, int b, int target)
{
    gpu_product how = {.alpha = 1};
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_matmul(lumat_test_matrix(L, a), lumat_test_matrix(L, b),
                            &how, out));
    lumat_account(L, out);
    lua_replace(L, target);
}

static void check_power(lua_State *L)
{
    gpu_matrix *m = lumat_test_matrix(L, 1);
    if (!m)
        lumat_raise(L, "x ^ A: a power is a number; expm(log(x) * A) is x to "
                       "the A, pow(x, A) element by element");
    if (lua_type(L, 2) != LUA_TNUMBER)
        lumat_raise(L,
                    "A ^ n: n must be a number, not %s; A:pow(p) is element "
                    "by element",
                    lumat_push_brief(L, 2));
    lumat_check_matrix(L, 1);
    if (m->ndim != 2 || m->rows != m->cols) {
        lumat_push_shape(L, m);
        lumat_raise(L,
                    "A ^ n: needs a square matrix, not %s; A:pow(n) is "
                    "element by element",
                    lua_tostring(L, -1));
    }
}

static void push_identity(lua_State *L, const gpu_matrix *m)
{
    gpu_matrix *out = lumat_new_matrix(L);
    gpu_dtype type = m->dtype == GPU_BOOL ? GPU_F32 : m->dtype;
    lumat_try(L,
              gpu_create(out, gpu_matrix_device(m), type, 2, m->rows, m->rows));
    lumat_account(L, out);
    gpu_matrix diagonal;
    lumat_try(L, gpu_fill(out, 0));
    gpu_view_diagonal(out, 0, &diagonal);
    gpu_status status = gpu_fill(&diagonal, 1);
    gpu_release(&diagonal);
    lumat_try(L, status);
}

/* Pushes the inverse of the matrix at index; messages say `inv`. */
static void push_inverse(lua_State *L, int index)
{
    gpu_matrix *out = lumat_new_matrix(L);
    gpu_condition condition;
    gpu_status status =
        gpu_inverse(lumat_test_matrix(L, index), out, wanted(&condition));
    if (status == GPU_SHAPE)
        lumat_raise_shape(L, index);
    if (status == GPU_SINGULAR) {
        const char *what = strchr(gpu_message(), ':');
        what = lua_pushstring(L, what ? what : ": the matrix is singular");
        gpu_fail(GPU_SINGULAR, "inv%s", what);
        raise_singular(L, "pinv(A) is its pseudo-inverse");
    }
    lumat_try(L, status);
    lumat_account(L, out);
    lumat_warn_if_poor(L, "inv", lumat_test_matrix(L, index), out->dtype,
                       &condition);
}

/* Of what is no whole number: see lua/std/lazy/matrix_functions.lua. */
static int broken_power(lua_State *L)
{
    lumat_push_required(L, "matrix_functions");
    lua_getfield(L, -1, "power");
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_call(L, 2, 1);
    return 1;
}

/* By squaring: base at 1, result at 3. */
static int matrix_power(lua_State *L)
{
    int is_whole;
    check_power(L);
    lua_Integer n = lua_tointegerx(L, 2, &is_whole);
    if (!is_whole)
        return broken_power(L);
    lua_settop(L, 2);
    lua_Unsigned left = n < 0 ? 0u - (lua_Unsigned)n : (lua_Unsigned)n;
    if (n < 0) {
        push_inverse(L, 1);
        lua_replace(L, 1);
    }
    push_identity(L, lumat_test_matrix(L, 1));
    for (int first = 1; left > 0; left >>= 1) {
        if (left & 1 && first) {
            gpu_matrix *copy = lumat_new_matrix(L);
            gpu_matrix *base = lumat_test_matrix(L, 1);
            lumat_try(
                L, gpu_clone(base, lumat_test_matrix(L, 3)->dtype, NULL, copy));
            lua_replace(L, 3);
            first = 0;
        } else if (left & 1) {
            replace_by_product(L, 3, 1, 3);
        }
        if (left > 1)
            replace_by_product(L, 1, 1, 1);
    }
    lua_settop(L, 3);
    return 1;
}

/* --- linear systems ------------------------------------------------------- */

/* By what A is, as lua/std/lazy/systems.lua sees to, or sparse_systems.lua. */
static int solve_by_kind(lua_State *L, const char *file)
{
    lumat_push_required(L, file);
    lua_getfield(L, -1, "solve");
    lua_replace(L, -2);
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* Sizes from which it pays to see what A is: on a GPU seeing takes longer than
 * solving a small system. */
enum { WORTH_A_LOOK = 64, WORTH_A_GPUS_LOOK = 512 };

/* Most matrices show by two corners that they have no structure, which is
 * sooner read than all of a GPU's matrix. */
static int may_have_structure(lua_State *L, const gpu_matrix *a)
{
    int is_cpu = gpu_device_is_cpu(gpu_matrix_device(a));
    gpu_complex above, below;
    if (a->ndim != 2 || a->rows < (is_cpu ? WORTH_A_LOOK : WORTH_A_GPUS_LOOK) ||
        gpu_is_dry())
        return 0;
    lumat_try(L, gpu_complex_get(a, 0, a->cols - 1, &above));
    lumat_try(L, gpu_complex_get(a, a->rows - 1, 0, &below));
    return (above.re == 0 && above.im == 0) ||
           (below.re == 0 && below.im == 0) ||
           (above.re == below.re && above.im == -below.im);
}

static int solve(lua_State *L)
{
    if (lumat_look_at_sparse(L, 1))
        return solve_by_kind(L, "sparse_systems");
    gpu_matrix *a = lumat_check_matrix(L, 1), *b = lumat_check_matrix(L, 2);
    int is_rectangular = a->ndim == 2 && a->rows != a->cols;
    if (a->rows == b->rows &&
        (lua_istable(L, 3) || is_rectangular || may_have_structure(L, a)))
        return solve_by_kind(L, "systems");
    if (is_rectangular) {
        gpu_fail(GPU_SHAPE, "solve: %s has %lld rows, the right side %s",
                 gpu_shape_text(a), (long long)a->rows, gpu_shape_text(b));
        return lumat_raise_shapes(L, 1, 2, LUMAT_FIT_ROWS);
    }
    gpu_matrix *out = lumat_new_matrix(L);
    gpu_condition condition;
    gpu_status status = gpu_solve(a, b, out, wanted(&condition));
    if (status == GPU_SHAPE && (a->ndim != 2 || a->rows != a->cols))
        return lumat_raise_shape(L, 1);
    if (status == GPU_SHAPE)
        return lumat_raise_shapes(L, 1, 2, LUMAT_FIT_ROWS);
    if (status == GPU_SINGULAR)
        return raise_singular(L, "lstsq(A, b) finds the shortest x of those "
                                 "that come nearest");
    lumat_try(L, status);
    lumat_account(L, out);
    lumat_warn_if_poor(L, "solve", a, out->dtype, &condition);
    return 1;
}

static int inverse(lua_State *L)
{
    lumat_check_matrix(L, 1);
    push_inverse(L, 1);
    return 1;
}

static int push_number(lua_State *L, const char *name,
                       gpu_status (*number)(const gpu_matrix *, double *))
{
    double value;
    gpu_status status = number(lumat_check_matrix(L, 1), &value);
    if (status == GPU_SHAPE)
        return lumat_raise_shape(L, 1);
    lumat_try(L, status);
    if (lumat_push_unread(L, name))
        return 1;
    lumat_note_scalar(lumat_check_matrix(L, 1)->dtype, value);
    lua_pushnumber(L, value);
    return 1;
}

static int complex_determinant(lua_State *L, const gpu_matrix *m)
{
    gpu_complex value;
    gpu_status status = gpu_complex_determinant(m, &value);
    if (status == GPU_SHAPE)
        return lumat_raise_shape(L, 1);
    lumat_try(L, status);
    if (!lumat_push_unread(L, "det"))
        lumat_push_complex(L, value);
    return 1;
}

static int determinant(lua_State *L)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    if (gpu_is_complex(m))
        return complex_determinant(L, m);
    return push_number(L, "det", gpu_determinant);
}

static int rcond(lua_State *L)
{
    return push_number(L, "rcond", gpu_rcond);
}

static const lumat_option solve_options[] = {
    {"kind",
     "\"auto\"|\"general\"|\"diagonal\"|\"lower\"|\"upper\"|\"banded\"|"
     "\"positive\"|\"symmetric\"|\"rectangular\"",
     "\"auto\"", "what A is, without a look"},
    {"info", "boolean", "false", "tells kind, rcond, backward error, method"},
    {"method", "\"direct\"", NULL,
     "\"direct\": no f32 factors for an f64 system"},
    {"batch", "integer", "1", "so many systems below each other"},
    {NULL, NULL, NULL, NULL}};

static const lumat_function functions[] = {
    {"solve", solve, 1,
     "A: matrix|sparse, B: matrix rows A {kind, info, method, batch}",
     "matrix, table with info",
     "The X with A X = B, by what A is seen to be: diagonal, triangular, "
     "banded, symmetric (complex: Hermitian) positive definite (Cholesky), or "
     "any other square one "
     "(LU with partial pivoting; small ones always); for a rectangular one the "
     "X that is nearest, as of lstsq(A, B). With batch=k there are k systems, "
     "the A and the B below each other; a GPU solves those of up to 128 rows "
     "(c128: 64) at once, larger ones one by one, and large general f64 "
     "systems "
     "by f32 factors, where A allows it, refining X until it is as good as a "
     "direct solution. With info also a table: kind, rcond, error (the "
     "backward error of X), and method and steps of a general one. A sparse "
     "system is solved on the CPU in f64, which one on a GPU is copied to: "
     "diagonal and triangular ones by substitution, banded ones by LAPACK, "
     "others by lu, chol or qr (CHOLMOD, UMFPACK, SPQR of SuiteSparse); of a "
     "rectangular one of less than full rank X is the shortest, as of "
     "lstsq(full(A), B), which is told.",
     "solve(mat{{2, 0}, {0, 4}}, vec{2, 8})", "{1, 2}", .group = "systems",
     .options = solve_options},
    {"inv", inverse, 1, "A: square", "matrix",
     "Inverse of a square matrix; also A ^ -1. To solve a system use solve(A, "
     "b): it is faster and more exact.",
     "inv(mat{{2, 0}, {0, 4}})", "{{0.5, 0}, {0, 0.25}}", .group = "systems"},
    {"det", determinant, 1, "A: square", "number",
     "Determinant of a square matrix, of a complex one a complex number.",
     "det(mat{{1, 2}, {3, 4}})", "-2", .group = "systems"},
    {"rcond", rcond, 1, "A: square", "number",
     "Reciprocal condition of a square matrix: about 1 where solve and inv are "
     "as exact as can be, 0 where A is singular. It is 1 / (|A| |inv(A)|) in "
     "the 1-norm, of which |inv(A)| is estimated. About -log10(rcond(A)) of "
     "the 7 digits of f32, or the 16 of f64, can be lost; where hardly one is "
     "left solve and inv warn.",
     "rcond(mat{{1, 0}, {0, 4}})", "0.25", .group = "systems"},
    {0}};

void lumat_open_linear(lua_State *L)
{
    luaL_getmetatable(L, "lumat.matrix");
    lua_pushcfunction(L, matrix_power);
    lua_setfield(L, -2, "__pow");
    lua_pop(L, 1);
    lumat_register(L, functions);
}
