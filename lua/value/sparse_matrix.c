/* Sparse matrices as Lua values: the userdata, its properties and methods,
 * and the operators there are. sparse.c of gpu/ does the arranging. */
#include "value.h"

#include <string.h>

/* --- the userdata --------------------------------------------------------- */

gpu_sparse *lumat_new_sparse(lua_State *L)
{
    gpu_sparse *s = lua_newuserdatauv(L, sizeof *s, 0);
    *s = (gpu_sparse){.values = {.storage = NULL}};
    luaL_setmetatable(L, LUMAT_SPARSE);
    return s;
}

gpu_sparse *lumat_test_sparse(lua_State *L, int index)
{
    return luaL_testudata(L, index, LUMAT_SPARSE);
}

gpu_sparse *lumat_check_sparse(lua_State *L)
{
    gpu_sparse *s = lumat_test_sparse(L, 1);
    if (!s) {
        lumat_before_refusing(L, 1);
        luaL_typeerror(L, 1, "sparse matrix");
    }
    return s;
}

static gpu_sparse *check_alive(lua_State *L)
{
    gpu_sparse *s = lumat_check_sparse(L);
    if (!s->values.storage) {
        lumat_before_refusing(L, 1);
        luaL_argerror(L, 1, "the sparse matrix has been freed");
    }
    return s;
}

void lumat_account_sparse(lua_State *L, const gpu_sparse *s)
{
    lumat_account(L, &s->starts);
    lumat_account(L, &s->columns);
    lumat_account(L, &s->values);
}

static int release(lua_State *L)
{
    gpu_sparse_release(lumat_check_sparse(L));
    return 0;
}

/* --- conversions ---------------------------------------------------------- */

int lumat_push_dense(lua_State *L, int index)
{
    const gpu_sparse *s = lumat_test_sparse(L, index);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_sparse_to_dense(s, out));
    lumat_account(L, out);
    return 1;
}

static int to_dense(lua_State *L)
{
    check_alive(L);
    return lumat_push_dense(L, 1);
}

/* Pushes itself when it is already so. */
static int push_clone(lua_State *L, gpu_dtype dtype, gpu_device *d)
{
    const gpu_sparse *s = lumat_test_sparse(L, 1);
    lua_settop(L, 1);
    if (s->values.dtype == dtype && gpu_matrix_device(&s->values) == d)
        return 1;
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_clone(s, dtype, d, out));
    lumat_account_sparse(L, out);
    return 1;
}

static int to_f32(lua_State *L)
{
    const gpu_sparse *s = check_alive(L);
    return push_clone(L, GPU_F32, gpu_matrix_device(&s->values));
}

static int to_f64(lua_State *L)
{
    const gpu_sparse *s = check_alive(L);
    return push_clone(L, GPU_F64, gpu_matrix_device(&s->values));
}

static int to_device(lua_State *L)
{
    const gpu_sparse *s = check_alive(L);
    gpu_device *d;
    lumat_try(L, gpu_open(luaL_checkstring(L, 2), &d));
    return push_clone(L, s->values.dtype, d);
}

/* S:free() and the end of its scope; a dry run leaves what exists as it is. */
static int give_up(lua_State *L)
{
    if (lumat_test_sparse(L, 1))
        lumat_free_value(L, 1);
    else
        lumat_before_refusing(L, 1);
    return 0;
}

const luaL_Reg lumat_sparse_methods[] = {{"full", to_dense}, {"f32", to_f32},
                                         {"f64", to_f64},    {"to", to_device},
                                         {"free", give_up},  {NULL, NULL}};

/* S == S2 */
static int are_equal(lua_State *L)
{
    const gpu_sparse *a = lumat_test_sparse(L, 1), *b = lumat_test_sparse(L, 2);
    int equal = 0;
    if (a && b && a->values.storage && b->values.storage)
        lumat_try(L, gpu_sparse_equal(a, b, &equal));
    lua_pushboolean(L, equal);
    return 1;
}

/* --- products ------------------------------------------------------------- */

/* The message and which transposes would fit. */
static int raise_shapes(lua_State *L, const gpu_sparse *s, const gpu_matrix *m)
{
    const char *message = lua_pushstring(L, gpu_message());
    const char *left = lumat_name_of(L, 1, "left");
    const char *right = lumat_name_of(L, 2, "right");
    const char *hint = "";
    lumat_push_shape(L, m);
    const char *shape = lua_tostring(L, -1);
    if (m->rows == s->rows)
        hint = lua_pushfstring(L, "      %s.T * %s would fit", left, right);
    else if (m->ndim == 2 && m->cols == s->cols)
        hint = lua_pushfstring(L, "      %s * %s.T would fit", left, right);
    return lumat_raise(L, "%s\n  %s is %Ix%I, %s is %s%s", message, left,
                       (LUAI_UACINT)s->rows, (LUAI_UACINT)s->cols, right, shape,
                       hint);
}

static int push_product(lua_State *L, const gpu_sparse *s, const gpu_matrix *m)
{
    gpu_matrix *out = lumat_new_matrix(L);
    gpu_status status = gpu_sparse_multiply(s, m, out);
    if (status == GPU_SHAPE)
        return raise_shapes(L, s, m);
    lumat_try(L, status);
    lumat_account(L, out);
    return 1;
}

static int push_scaled(lua_State *L, const gpu_sparse *s, double factor)
{
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_scaled(s, factor, out));
    lumat_account(L, &out->values);
    return 1;
}

static int negate(lua_State *L)
{
    return push_scaled(L, lumat_check_sparse(L), -1);
}

/* A sparse matrix on the right of another matrix: what to write instead. */
static int no_product(lua_State *L)
{
    const gpu_matrix *m = lumat_test_matrix(L, 1);
    const char *left = lumat_name_of(L, 1, m ? "D" : "S");
    const char *right = lumat_name_of(L, 2, "S");
    if (!m)
        return lumat_raise(L,
                           "sparse: %s * %s, both sparse, is not there yet: "
                           "%s * full(%s) is the dense product",
                           left, right, left, right);
    if (m->ndim == 1)
        return lumat_raise(L,
                           "sparse: %s * %s is not there yet: write %s.T * %s",
                           left, right, right, left);
    return lumat_raise(L,
                       "sparse: %s * %s is not there yet: write "
                       "(%s.T * %s.T).T",
                       left, right, right, left);
}

int lumat_multiply_sparse(lua_State *L)
{
    const gpu_sparse *a = lumat_test_sparse(L, 1), *b = lumat_test_sparse(L, 2);
    const gpu_matrix *m = lumat_test_matrix(L, a ? 2 : 1);
    int other = a ? 2 : 1;
    if (lumat_is_number(L, other))
        return push_scaled(L, a ? a : b, lua_tonumber(L, other));
    if (a && m)
        return push_product(L, a, m);
    if ((a && b) || m)
        return no_product(L);
    return lumat_refuse_operand(L, other);
}

/* --- what there is not ---------------------------------------------------- */

static const char *operand_name(lua_State *L, int index)
{
    if (lua_isuserdata(L, index))
        return lumat_name_of(L, index, lumat_test_sparse(L, index) ? "S" : "D");
    return lumat_push_brief(L, index);
}

/* An operator without a meaning here; the upvalue is its sign. */
static int not_there(lua_State *L)
{
    const char *sign = lua_tostring(L, lua_upvalueindex(1));
    const char *left = operand_name(L, 1), *right = operand_name(L, 2);
    return lumat_raise(L,
                       "sparse: %s %s %s is not there yet: there are S * D, "
                       "S * x, 2 * S and S.T; full(S) is dense",
                       left, sign, right);
}

static const char *const missing[][2] = {
    {"__add", "+"},  {"__sub", "-"},   {"__div", "/"},  {"__mod", "%"},
    {"__pow", "^"},  {"__idiv", "//"}, {"__band", "&"}, {"__bor", "|"},
    {"__bxor", "~"}, {"__lt", "<"},    {"__le", "<="},  {"__concat", ".."},
};

/* --- opening -------------------------------------------------------------- */

static const luaL_Reg metamethods[] = {
    {"__gc", release},   {"__close", give_up},
    {"__eq", are_equal}, {"__mul", lumat_multiply_sparse},
    {"__unm", negate},   {NULL, NULL}};

void lumat_open_sparse(lua_State *L)
{
    luaL_newmetatable(L, LUMAT_SPARSE);
    luaL_setfuncs(L, metamethods, 0);
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        lua_pushstring(L, missing[i][1]);
        lua_pushcclosure(L, not_there, 1);
        lua_setfield(L, -2, missing[i][0]);
    }
    lua_pushliteral(L, "sparse matrix");
    lua_setfield(L, -2, "__name");
    lua_pushliteral(L, "sparse matrix");
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
