/* Products: the operator *, matmul, dot, and the list of kernels. */
#include "arguments.h"
#include "complex_functions.h"
#include "function.h"
#include "math_functions.h"
#include "op_list.h"
#include "print.h"
#include "value.h"

#include <limits.h>

/* --- dot ------------------------------------------------------------------ */

/* conjugates: the first vector, where it is complex. */
static int push_dot(lua_State *L, const char *kernel, int conjugates)
{
    gpu_complex value = {0, 0};
    const gpu_matrix *x = lumat_check_matrix(L, 1);
    const gpu_matrix *y = lumat_check_matrix(L, 2);
    int is_complex = gpu_is_complex(x) || gpu_is_complex(y);
    gpu_status status = is_complex
                            ? gpu_complex_dot(x, y, conjugates, kernel, &value)
                            : gpu_dot(x, y, kernel, &value.re);
    if (status == GPU_SHAPE) {
        lumat_refuse_kind(L, 1);
        lumat_refuse_kind(L, 2);
        return lumat_raise_shapes(L, 1, 2, LUMAT_FIT_LENGTHS);
    }
    lumat_try(L, status);
    if (lumat_push_unread(L, "dot"))
        return 1;
    lumat_note_scalar(gpu_dtype_of_parts(x->dtype), value.re);
    lumat_note_scalar(gpu_dtype_of_parts(x->dtype), value.im);
    if (is_complex)
        lumat_push_complex(L, value);
    else
        lua_pushnumber(L, value.re);
    return 1;
}

static const char *option_string(lua_State *L, int arg, const char *key)
{
    if (!lua_istable(L, arg) || lua_getfield(L, arg, key) == LUA_TNIL)
        return NULL;
    if (lua_type(L, -1) != LUA_TSTRING)
        lumat_raise(L, "%s: needs a name, not a %s", key, lumat_kind_of(L, -1));
    return lua_tostring(L, -1); /* the table keeps it alive */
}

static int dot(lua_State *L)
{
    lua_settop(L, 3);
    return push_dot(L, option_string(L, 3, "kernel"), 1);
}

/* dot(A, B) of matrices, which is their product elsewhere */
static void explain_dot(lua_State *L, const lumat_function *f, int count)
{
    for (int i = 1; i <= 2 && i <= count; i++) {
        const gpu_matrix *m = lumat_test_matrix(L, i);
        if (m && m->storage && m->ndim == 2)
            lumat_raise(L,
                        "%s: takes vectors: the product of matrices is A * "
                        "B, the sum of their elements' products sum(A %% B), "
                        "and v:flatten() of a row or column a vector",
                        f->name);
    }
}

/* --- matmul --------------------------------------------------------------- */

static int push_product(lua_State *L, const gpu_product *how, gpu_matrix *out,
                        gpu_team through)
{
    int created = !out;
    if (created)
        out = lumat_new_matrix(L);
    gpu_team before = gpu_compute_together(through);
    gpu_status status =
        gpu_matmul(lumat_test_matrix(L, 1), lumat_test_matrix(L, 2), how, out);
    gpu_compute_together(before);
    if (status == GPU_SHAPE)
        return lumat_raise_shapes(L, 1, 2, LUMAT_FIT_PRODUCT);
    lumat_try(L, status);
    if (created)
        lumat_account(L, out);
    return 1;
}

/* transA and transB: the operand is replaced by its transposed view. */
static void option_transpose(lua_State *L, int arg, const char *key,
                             int operand)
{
    int type = lua_getfield(L, arg, key);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        lumat_raise(L, "matmul: %s must be true or false, not %s", key,
                    lumat_push_brief(L, -1));
    if (lua_toboolean(L, -1)) {
        gpu_view_transposed(lumat_test_matrix(L, operand), lumat_new_matrix(L));
        lua_replace(L, operand);
    }
    lua_pop(L, 1);
}

/* 0 where there is none: the kernel's own. */
static int option_tile(lua_State *L, int arg)
{
    int exact, type = lua_getfield(L, arg, "tile");
    lua_Integer tile = lua_tointegerx(L, -1, &exact);
    if (type != LUA_TNIL &&
        (type != LUA_TNUMBER || !exact || tile < 1 || tile > INT_MAX))
        lumat_raise(L, "matmul: tile must be a positive whole number, not %s",
                    lumat_push_brief(L, -1));
    lua_pop(L, 1);
    return (int)tile;
}

static const lumat_option matmul_options[] = {
    {"tile", "count", "the kernel's own",
     "side of the blocks of a GPU's tiled kernel: 8, 16 or 32"},
    {"transA", "boolean", NULL, "true: A transposed"},
    {"transB", "boolean", NULL, "true: B transposed"},
    {"alpha", "number", "1", "factor of the product"},
    {"beta", "number", "0", "factor of what out holds before"},
    {"out", "matrix", NULL, "C: gets alpha A B + beta C"},
    {"precision", "\"f32\"|\"f64\"|\"tf32\"|\"bf16\"", NULL,
     "\"f32\", \"f64\": the operands' own; \"tf32\", \"bf16\": the first "
     "kernel that has it"},
    LUMAT_OPTION_THROUGH,
    {NULL, NULL, NULL, NULL}};

/* Of the options a sparse matrix takes the kernel. */
static int matmul_sparse(lua_State *L)
{
    for (const lumat_option *o = matmul_options; o->name; o++) {
        if (lua_istable(L, 3) && lua_getfield(L, 3, o->name) != LUA_TNIL)
            return lumat_raise(
                L,
                "matmul: %s goes with dense matrices: leave it "
                "out, or write full(%s)",
                o->name,
                lumat_name_of(L, lumat_look_at_sparse(L, 1) ? 1 : 2, "S"));
    }
    return lumat_matmul_sparse(L, option_string(L, 3, "kernel"));
}

static int matmul(lua_State *L)
{
    gpu_product how = {.alpha = 1};
    lua_settop(L, 3);
    if (lumat_has_sparse(L, 2))
        return matmul_sparse(L);
    lumat_check_matrix(L, 1);
    lumat_check_matrix(L, 2);
    if (!lua_istable(L, 3))
        return push_product(L, &how, NULL, (gpu_team){0});
    how.kernel = option_string(L, 3, "kernel");
    how.precision = option_string(L, 3, "precision");
    how.tile = option_tile(L, 3);
    how.alpha = lumat_option_number(L, 3, "alpha", 1);
    how.beta = lumat_option_number(L, 3, "beta", 0);
    option_transpose(L, 3, "transA", 1);
    option_transpose(L, 3, "transB", 2);
    gpu_matrix *out = lumat_option_out(L, 3);
    if (how.beta != 0 && !out)
        return lumat_raise(L,
                           "matmul: beta = %f needs out = C, the matrix it "
                           "scales",
                           how.beta);
    return push_product(L, &how, out,
                        lumat_option_through(L, 3, lumat_test_matrix(L, 1)));
}

/* --- the operator * ------------------------------------------------------- */

static int scale(lua_State *L, int matrix, int number)
{
    const gpu_matrix *m = lumat_check_matrix(L, matrix);
    if (!lumat_is_number(L, number))
        lumat_refuse_operand(L, number);
    gpu_program p;
    gpu_program_start(&p, 1);
    int factor = gpu_program_constant(&p, lua_tonumber(L, number));
    gpu_program_add(&p, GPU_OP_mul, 0, factor, 0);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_map("mul", &p, &m, out));
    lumat_account(L, out);
    lumat_pass_nan_on(L, matrix, -1);
    return 1;
}

static int multiply(lua_State *L)
{
    if (lumat_has_complex(L, 2))
        return lumat_push_complex_op(L, GPU_OP_mul, 2, NULL);
    gpu_matrix *a = lumat_test_matrix(L, 1), *b = lumat_test_matrix(L, 2);
    if (!b && lumat_call_right(L, "__mul"))
        return 1;
    if ((!a || !b) && lumat_look_at_sparse(L, a ? 2 : 1))
        return lumat_multiply_sparse(L);
    if (!a || !b)
        return a ? scale(L, 1, 2) : scale(L, 2, 1);
    if (a->ndim == 1 && b->ndim == 1)
        return push_dot(L, NULL, 0);
    lumat_check_matrix(L, 1);
    lumat_check_matrix(L, 2);
    gpu_product how = {.alpha = 1};
    return push_product(L, &how, NULL, (gpu_team){0});
}

/* --- the ladder ----------------------------------------------------------- */

static void push_field(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

/* An array of {operation, name, idea, needs, precision, available} and, by
 * their names, whether it does a type. */
static int kernel_list(lua_State *L)
{
    gpu_device *d;
    gpu_kernel_info k;
    if (lua_isnoneornil(L, 1))
        lumat_try(L, gpu_default(&d));
    else
        lumat_try(L, gpu_open(luaL_checkstring(L, 1), &d));
    int n = gpu_kernel_count(d);
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        gpu_kernel_describe(d, i, &k);
        lua_createtable(L, 0, 6 + GPU_ALL_DTYPES);
        push_field(L, "operation", k.operation);
        push_field(L, "name", k.name);
        push_field(L, "idea", k.idea);
        push_field(L, "needs", k.needs);
        push_field(L, "precision", k.precision);
        lua_pushboolean(L, k.available);
        lua_setfield(L, -2, "available");
        for (int t = 0; t < GPU_ALL_DTYPES; t++) {
            lua_pushboolean(L, k.dtypes >> t & 1);
            lua_setfield(L, -2, gpu_dtype_name((gpu_dtype)t));
        }
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* kernel_bound(operation, kernel, dtype, k [, device]) */
static int kernel_bound(lua_State *L)
{
    gpu_device *d;
    gpu_dtype dtype = GPU_F32;
    double gamma;
    const char *operation = luaL_checkstring(L, 1);
    const char *kernel = luaL_checkstring(L, 2);
    int64_t k = lumat_check_size(L, 4);
    if (lua_isnoneornil(L, 5))
        lumat_try(L, gpu_default(&d));
    else
        lumat_try(L, gpu_open(luaL_checkstring(L, 5), &d));
    gpu_dtype_find(luaL_checkstring(L, 3), &dtype);
    lumat_try(L, gpu_kernel_bound(d, operation, kernel, dtype, k, &gamma));
    lua_pushnumber(L, gamma);
    return 1;
}

/* kernel_choice(A, B) */
static int kernel_choice(lua_State *L)
{
    const char *name;
    const gpu_sparse *s = lumat_test_sparse(L, 1);
    if (s) {
        lumat_try(L,
                  gpu_sparse_kernel_choice(s, lumat_check_matrix(L, 2), &name));
        lua_pushstring(L, name); /* nil of NULL */
        return 1;
    }
    gpu_status status = gpu_kernel_choice(lumat_check_matrix(L, 1),
                                          lumat_check_matrix(L, 2), &name);
    if (status == GPU_SHAPE)
        return lumat_raise_shapes(L, 1, 2, LUMAT_FIT_PRODUCT);
    lumat_try(L, status);
    lua_pushstring(L, name);
    return 1;
}

static const lumat_function functions[] = {
    {"matmul", matmul, 1,
     "A: matrix|sparse, B: matrix|sparse product A {kernel, tile, transA, "
     "transB, alpha, "
     "beta, out, precision, device}",
     "matrix",
     "Matrix product alpha A B + beta C; also A * B. With alpha = 0, A and B "
     "are not read: the result is beta C.",
     "matmul(mat{{1, 2}, {3, 4}}, mat{{5, 6}, {7, 8}})", "{{19, 22}, {43, 50}}",
     .group = "products outer", .options = matmul_options},
    {"dot", dot, 1, "x: vector, y: vector lengths x {kernel}", "number",
     "Sum of the products of two vectors' elements; also x * y. Of complex "
     "vectors the first is conjugated, as in NumPy's vdot; x * y conjugates "
     "none.",
     "dot(vec{1, 2, 3}, vec{4, 5, 6})", "32", .group = "products outer",
     .on_mistake = explain_dot},
    {"kernel_list", kernel_list, 0, "[device: device]", "table",
     "The kernels of a device as a table; kernels() shows it.",
     "kernel_list(\"cpu\")[1].operation", "\"dot\"", .group = "kernels"},
    {"kernel_choice", kernel_choice, 1, "A: matrix|sparse, B: matrix product A",
     "string",
     "The kernel that auto takes for A * B, or for the dot of two vectors.",
     "kernel_choice(ones(2, 2):to(\"cpu\"), ones(2, 2):to(\"cpu\"))",
     "\"packed\"", .group = "kernels"},
    {"kernel_bound", kernel_bound, 0,
     "operation: operation, kernel: kernel, dtype: \"f32\"|\"f64\", k: size [, "
     "device: device]",
     "number",
     "gamma such that |result - exact| <= gamma |A||B| for inner dimension k.",
     "kernel_bound(\"matmul\", \"openblas\", \"f32\", 1, \"cpu\") < 1e-6",
     "true", .group = "kernels"},
    {0}};

void lumat_open_product(lua_State *L)
{
    luaL_getmetatable(L, "lumat.matrix");
    lua_pushcfunction(L, multiply);
    lua_setfield(L, -2, "__mul");
    lua_pop(L, 1);
    lumat_register(L, functions);
    lumat_open_linear(L);
    lumat_open_factor_steps(L);
    lumat_open_statistics_steps(L);
    lumat_open_progress_steps(L);
    lumat_open_fft_functions(L);
    lumat_open_moving_steps(L);
}
