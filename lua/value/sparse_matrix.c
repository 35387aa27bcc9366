/* Sparse matrices as Lua values: the userdata, its properties and methods,
 * and the operators there are. sparse.c of gpu/ does the arranging. */
#include "complex_value.h"
#include "op_list.h"
#include "value.h"

#include <string.h>

/* --- the userdata --------------------------------------------------------- */

/* What a userdata holds. A transpose that nobody has read yet has the matrix
 * that it is of, whose arrays it shares, and of its own no starts and columns;
 * its values are the other one's, so that type and device can be told. */
typedef struct sparse_value {
    gpu_sparse s;
    gpu_sparse of;  /* without storage: s is all there */
    gpu_sparse dry; /* what s is to a dry run, where it has made that */
    int products;   /* that were formed without s's arrays */
} sparse_value;

gpu_sparse *lumat_new_sparse(lua_State *L)
{
    sparse_value *v = lua_newuserdatauv(L, sizeof *v, 1);
    *v = (sparse_value){.products = 0};
    luaL_setmetatable(L, LUMAT_SPARSE);
    return &v->s;
}

static void release_value(sparse_value *v)
{
    gpu_sparse_release(&v->s);
    gpu_sparse_release(&v->of);
    gpu_sparse_release(&v->dry);
}

void lumat_account_sparse(lua_State *L, const gpu_sparse *s)
{
    lumat_account(L, &s->starts);
    lumat_account(L, &s->columns);
    lumat_account(L, &s->values);
}

/* What a transpose is of, to be released: where there is no room a collection
 * may run a finaliser that reads the transpose meanwhile. */
static gpu_status hold_other(const sparse_value *v, gpu_sparse *held)
{
    return gpu_sparse_clone(&v->of, v->of.values.dtype, NULL, held);
}

/* The transpose with its arrays, which are made. A dry run leaves everything as
 * it is, and has one of its own. */
static gpu_sparse *settle(lua_State *L, sparse_value *v)
{
    gpu_sparse held, made;
    gpu_sparse *to = gpu_is_dry() ? &v->dry : &v->s;
    if (to->starts.storage)
        return to;
    lumat_try(L, hold_other(v, &held));
    gpu_status status = gpu_sparse_transposed(&held, &made);
    gpu_sparse_release(&held);
    lumat_try(L, status);
    if (gpu_is_dry())
        gpu_sparse_release(&v->dry);
    else
        release_value(v);
    *to = made;
    lumat_account_sparse(L, to);
    return to;
}

static sparse_value *value_at(lua_State *L, int index)
{
    return luaL_testudata(L, index, LUMAT_SPARSE);
}

const gpu_sparse *lumat_look_at_sparse(lua_State *L, int index)
{
    sparse_value *v = value_at(L, index);
    return v ? &v->s : NULL;
}

gpu_sparse *lumat_test_sparse(lua_State *L, int index)
{
    sparse_value *v = value_at(L, index);
    if (v && v->of.values.storage)
        return settle(L, v);
    return v ? &v->s : NULL;
}

static void refuse_other(lua_State *L)
{
    lumat_before_refusing(L, 1);
    luaL_typeerror(L, 1, "sparse matrix");
}

gpu_sparse *lumat_check_sparse(lua_State *L)
{
    gpu_sparse *s = lumat_test_sparse(L, 1);
    if (!s)
        refuse_other(L);
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

void lumat_release_sparse(lua_State *L, int index)
{
    release_value(value_at(L, index));
}

static int release(lua_State *L)
{
    if (!value_at(L, 1))
        refuse_other(L);
    lumat_release_sparse(L, 1);
    return 0;
}

/* --- the transpose ----------------------------------------------------------
 * What is not made again: S holds its transpose, which knows S as long as S is
 * held elsewhere (in a table with weak values), so that S.T.T is S. Its arrays
 * are made when they are read. */

/* Pushes the other one of the matrix at index and returns 1, or nothing. */
static int push_kept(lua_State *L, int index)
{
    if (lua_getiuservalue(L, index, 1) == LUA_TTABLE) {
        lua_rawgeti(L, -1, 1);
        lua_remove(L, -2);
    }
    const gpu_sparse *other = lumat_look_at_sparse(L, -1);
    if (other && other->values.storage && !gpu_is_lost(&other->values))
        return 1;
    lua_pop(L, 1);
    return 0;
}

void lumat_drop_transpose(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    if (push_kept(L, index)) {
        lua_pushnil(L);
        lua_setiuservalue(L, -2, 1);
        lua_pop(L, 1);
    }
    lua_pushnil(L);
    lua_setiuservalue(L, index, 1);
}

/* Of the matrix at index and its transpose on top. */
static void keep_transpose(lua_State *L, int index)
{
    lua_createtable(L, 1, 0);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, index);
    lua_rawseti(L, -2, 1);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, index, 1);
}

/* out looks like the transpose of s: its sizes, and the values in their order.
 */
static void share_look(const gpu_sparse *s, gpu_sparse *out)
{
    gpu_retain(&s->values);
    *out = (gpu_sparse){.starts = s->starts,
                        .columns = s->columns,
                        .values = s->values,
                        .rows = s->cols,
                        .cols = s->rows,
                        .count = s->count};
    out->starts.storage = out->columns.storage = NULL;
    out->starts.rows = out->rows + 1;
}

void lumat_push_transpose(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    if (push_kept(L, index))
        return;
    sparse_value *v = value_at(L, index);
    gpu_sparse *out = lumat_new_sparse(L);
    if (v->of.values.storage) {
        lumat_try(L, gpu_sparse_clone(&v->of, v->of.values.dtype, NULL, out));
    } else {
        sparse_value *turned = value_at(L, -1);
        lumat_try(
            L, gpu_sparse_clone(&v->s, v->s.values.dtype, NULL, &turned->of));
        share_look(&v->s, out);
    }
    if (!gpu_is_dry())
        keep_transpose(L, index);
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

static int to_c64(lua_State *L)
{
    const gpu_sparse *s = check_alive(L);
    return push_clone(L, GPU_C64, gpu_matrix_device(&s->values));
}

static int to_c128(lua_State *L)
{
    const gpu_sparse *s = check_alive(L);
    return push_clone(L, GPU_C128, gpu_matrix_device(&s->values));
}

static int to_device(lua_State *L)
{
    const gpu_sparse *s = check_alive(L);
    gpu_device *d;
    lumat_try(L, gpu_open(luaL_checkstring(L, 2), &d));
    return push_clone(L, s->values.dtype, d);
}

/* S:clone(): what it is now; the arrays, which nobody writes to, are shared. */
static int clone(lua_State *L)
{
    const gpu_sparse *s = check_alive(L);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_clone(s, s->values.dtype, NULL, out));
    return 1;
}

/* S:free() and the end of its scope; a dry run leaves what exists as it is. */
static int give_up(lua_State *L)
{
    if (!value_at(L, 1)) {
        lumat_before_refusing(L, 1);
        return 0;
    }
    if (!gpu_is_dry())
        lumat_drop_transpose(L, 1);
    lumat_free_value(L, 1);
    return 0;
}

const luaL_Reg lumat_sparse_methods[] = {
    {"full", to_dense}, {"f32", to_f32},   {"f64", to_f64},
    {"c64", to_c64},    {"c128", to_c128}, {"to", to_device},
    {"clone", clone},   {"free", give_up}, {NULL, NULL}};

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

/* out = S m for the matrix at index. A transpose whose arrays are not there is
 * multiplied by what it is of, which takes about twice as long: after some
 * products its arrays are worth their making. Bits are the same. */
static gpu_status multiply_at(lua_State *L, int index, const gpu_matrix *m,
                              const char *kernel, gpu_matrix *out)
{
    enum { WORTH_ARRAYS = 16 };
    sparse_value *v = value_at(L, index);
    gpu_status status = GPU_UNSUPPORTED;
    if (v->of.values.storage && !kernel && v->products < WORTH_ARRAYS) {
        gpu_sparse held;
        lumat_try(L, hold_other(v, &held));
        status = gpu_sparse_multiply_turned(&held, m, out);
        gpu_sparse_release(&held);
        v->products += status == GPU_OK && !gpu_is_dry();
    }
    return status == GPU_UNSUPPORTED
               ? gpu_sparse_multiply(lumat_test_sparse(L, index), m, kernel,
                                     out)
               : status;
}

/* Of the matrix at 1. */
static int push_product(lua_State *L, const gpu_matrix *m, const char *kernel)
{
    gpu_matrix *out = lumat_new_matrix(L);
    gpu_status status = multiply_at(L, 1, m, kernel, out);
    if (status == GPU_SHAPE)
        return raise_shapes(L, lumat_look_at_sparse(L, 1), m);
    lumat_try(L, status);
    lumat_account(L, out);
    return 1;
}

/* The values times a number, whose type they take as those of a dense matrix
 * do. */
static gpu_status multiply_values(const gpu_sparse *s, gpu_operand factor,
                                  gpu_matrix *out)
{
    gpu_program p;
    const gpu_matrix *in[] = {&s->values};
    gpu_operand both[2] = {{.matrix = &s->values}, factor};
    if (factor.is_complex || gpu_is_complex(&s->values))
        return gpu_complex_map("mul", GPU_OP_mul, both, out);
    gpu_program_start(&p, 1);
    int by = gpu_program_constant(&p, factor.value.re);
    gpu_program_add(&p, GPU_OP_mul, 0, by, 0);
    return gpu_map("mul", &p, in, out);
}

static int push_scaled(lua_State *L, const gpu_sparse *s, gpu_operand factor)
{
    gpu_matrix *values = lumat_new_matrix(L);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, multiply_values(s, factor, values));
    lumat_try(L, gpu_sparse_with_values(s, values, out));
    gpu_release(values);
    lumat_account(L, &out->values);
    lua_remove(L, -2);
    return 1;
}

static int negate(lua_State *L)
{
    return push_scaled(L, lumat_check_sparse(L),
                       (gpu_operand){.value = {-1, 0}});
}

/* S * R, both sparse. */
static int push_sparse_product(lua_State *L, const gpu_sparse *a,
                               const gpu_sparse *b)
{
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_combine("matmul", GPU_SPARSE_PRODUCT, a, b, out));
    lumat_account_sparse(L, out);
    return 1;
}

/* D * S = (S.T * D.T).T; of a vector D its row. */
static int push_left_product(lua_State *L, const gpu_matrix *m)
{
    const gpu_sparse *s = lumat_look_at_sparse(L, 2);
    int fits = m->ndim == 1 ? (int)(m->rows == s->rows) : m->cols == s->rows;
    if (!fits)
        return lumat_raise(L,
                           "matmul: inner dimensions differ (%I and %I): %s is "
                           "%s, %s is %s",
                           (LUAI_UACINT)(m->ndim == 1 ? m->rows : m->cols),
                           (LUAI_UACINT)s->rows, lumat_name_of(L, 1, "D"),
                           gpu_shape_text(m), lumat_name_of(L, 2, "S"),
                           gpu_size_text(s->rows, s->cols));
    lua_getfield(L, 2, "T");
    int t = lua_gettop(L);
    gpu_matrix *turned = lumat_new_matrix(L), *out = lumat_new_matrix(L);
    if (m->ndim == 1) {
        lumat_try(L, multiply_at(L, t, m, NULL, out));
    } else {
        gpu_matrix *product = lumat_new_matrix(L);
        gpu_view_transposed(m, turned);
        lumat_try(L, multiply_at(L, t, turned, NULL, product));
        gpu_view_transposed(product, out);
        gpu_release(product);
        lua_pop(L, 1);
    }
    lumat_account(L, out);
    return 1;
}

int lumat_matmul_sparse(lua_State *L, const char *kernel)
{
    const gpu_sparse *s = lumat_look_at_sparse(L, 1);
    const gpu_matrix *m = lumat_test_matrix(L, 2);
    if (!kernel)
        return lumat_multiply_sparse(L);
    if (!s || !m)
        return lumat_raise(L,
                           "matmul: kernels are of a sparse matrix times a "
                           "dense one: leave kernel = \"%s\" out",
                           kernel);
    return push_product(L, m, kernel);
}

int lumat_multiply_sparse(lua_State *L)
{
    const gpu_matrix *m;
    int left = lumat_look_at_sparse(L, 1) != NULL;
    int both = left && lumat_look_at_sparse(L, 2);
    int other = left ? 2 : 1;
    gpu_operand factor = {.is_complex = lumat_test_complex(L, other) != NULL};
    if ((factor.is_complex || lumat_is_number(L, other)) &&
        lumat_take_complex(L, other, &factor.value))
        return push_scaled(L, lumat_test_sparse(L, 3 - other), factor);
    if (both)
        return push_sparse_product(L, lumat_test_sparse(L, 1),
                                   lumat_test_sparse(L, 2));
    m = lumat_test_matrix(L, other);
    if (m)
        return left ? push_product(L, m, NULL) : push_left_product(L, m);
    return lumat_refuse_operand(L, other);
}

/* --- what there is not ---------------------------------------------------- */

static const char *operand_name(lua_State *L, int index)
{
    if (lua_isuserdata(L, index))
        return lumat_name_of(L, index,
                             lumat_look_at_sparse(L, index) ? "S" : "D");
    return lumat_push_brief(L, index);
}

/* An operator without a meaning for sparse matrices; the upvalue is its sign.
 */
static int not_there(lua_State *L)
{
    const char *sign = lua_tostring(L, lua_upvalueindex(1));
    const char *left = operand_name(L, 1), *right = operand_name(L, 2);
    return lumat_raise(L,
                       "sparse: %s %s %s has no meaning: comparisons are "
                       "S:gt(x), S:ne(x) and the like",
                       left, sign, right);
}

static const char *const missing[][2] = {{"__lt", "<"}, {"__le", "<="}};

/* S .. R joins side by side, one of the two being sparse. */
static int join(lua_State *L)
{
    for (int i = 1; i <= 2; i++)
        if (!lumat_look_at_sparse(L, i) && !lumat_test_matrix(L, i))
            return lumat_raise(L,
                               "..: cannot join a sparse matrix and a %s; for "
                               "text write tostring(%s)",
                               lumat_kind_of(L, i),
                               lumat_name_of(L, 3 - i, "S"));
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    lua_getfield(L, -1, "hcat");
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_call(L, 2, 1);
    return 1;
}

/* S ^ n */
static int raise_to(lua_State *L)
{
    const gpu_sparse *s = lumat_test_sparse(L, 1);
    int exact;
    lua_Integer n = lua_tointegerx(L, 2, &exact);
    if (!s || !exact || n < 0 || s->rows != s->cols)
        return lumat_raise(L,
                           "pow: %s ^ %s: a square sparse matrix goes to the "
                           "power of a whole number, 0 or more; S:pow(x) is of "
                           "its elements, solve(S, b) instead of S ^ -1",
                           operand_name(L, 1), operand_name(L, 2));
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_power(s, n, out));
    lumat_account_sparse(L, out);
    return 1;
}

/* --- opening -------------------------------------------------------------- */

static const luaL_Reg metamethods[] = {
    {"__gc", release},   {"__close", give_up},
    {"__eq", are_equal}, {"__mul", lumat_multiply_sparse},
    {"__unm", negate},   {"__pow", raise_to},
    {"__concat", join},  {NULL, NULL}};

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
