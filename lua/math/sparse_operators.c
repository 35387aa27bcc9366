/* Operations element by element of which an operand is sparse. Their results
 * are sparse where what is not stored stays 0; where it does not, the error
 * says what would become of it. */
#include "cancellation.h"
#include "complex_value.h"
#include "math_functions.h"
#include "op_list.h"
#include "value.h"

int lumat_has_sparse(lua_State *L, int count)
{
    for (int i = 1; i <= count; i++)
        if (lumat_test_sparse(L, i))
            return 1;
    return 0;
}

/* Calls the operation, with what is at `other` in the place of argument
 * `place`, and leaves its result. */
static void call(lua_State *L, gpu_op op, int count, int place, int other)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    lua_getfield(L, -1, gpu_op_name(op));
    for (int i = 1; i <= count; i++)
        lua_pushvalue(L, i == place ? other : i);
    lua_call(L, count, 1);
    lua_remove(L, -2);
}

static int is_zero(lua_State *L, int index)
{
    const gpu_complex *z = lumat_test_complex(L, index);
    if (z)
        return z->re == 0 && z->im == 0;
    if (lua_isboolean(L, index))
        return !lua_toboolean(L, index);
    return lua_tonumber(L, index) == 0;
}

/* Raises unless the operation gives 0 of what is not stored. */
static void check_keeps_zero(lua_State *L, gpu_op op, int count, int place)
{
    lua_pushinteger(L, 0);
    call(L, op, count, place, lua_gettop(L));
    if (!is_zero(L, -1)) {
        const char *given =
            lua_type(L, -1) == LUA_TNUMBER
                ? lumat_push_brief_number(L, lua_tonumber(L, -1))
                : lumat_tolstring(L, -1, NULL);
        lumat_raise(L,
                    "%s: of 0, which is not stored, it would give %s, so the "
                    "result is dense: write full(%s)",
                    gpu_op_name(op), given, lumat_name_of(L, place, "S"));
    }
    lua_pop(L, 2);
}

/* Pushes s with the values of the vector on top. */
static void push_with_values(lua_State *L, const gpu_sparse *s)
{
    const gpu_matrix *values = lumat_test_matrix(L, -1);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_with_values(s, values, out));
    lumat_account_sparse(L, out);
}

/* Of a mask on top: 1 where it is true, and nothing where it is not. */
static void push_truths(lua_State *L, const gpu_sparse *s)
{
    const gpu_matrix *mask = lumat_test_matrix(L, -1);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_where(s, mask, out));
    lumat_account_sparse(L, out);
}

/* A function of the entries' values, with numbers as other arguments. */
static int push_of_values(lua_State *L, gpu_op op, int count, int place)
{
    const gpu_sparse *s = lumat_test_sparse(L, place);
    check_keeps_zero(L, op, count, place);
    gpu_matrix *values = lumat_new_matrix(L);
    lumat_try(L, gpu_clone(&s->values, s->values.dtype, NULL, values));
    call(L, op, count, place, lua_gettop(L));
    if (lumat_test_matrix(L, -1)->dtype == GPU_BOOL)
        push_truths(L, s);
    else
        push_with_values(L, s);
    return 1;
}

/* Two sparse matrices. */
static int push_combined(lua_State *L, gpu_op op)
{
    const gpu_sparse *a = lumat_test_sparse(L, 1), *b = lumat_test_sparse(L, 2);
    gpu_sparse_op how = op == GPU_OP_add   ? GPU_SPARSE_ADD
                        : op == GPU_OP_sub ? GPU_SPARSE_SUB
                                           : GPU_SPARSE_MUL;
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_combine(gpu_op_name(op), how, a, b, out));
    lumat_account_sparse(L, out);
    return 1;
}

/* S % D: D's elements where S has entries. */
static int push_sampled(lua_State *L, int place)
{
    const gpu_sparse *s = lumat_test_sparse(L, place);
    const gpu_matrix *m = lumat_check_matrix(L, 3 - place);
    gpu_matrix *values = lumat_new_matrix(L);
    lumat_try(L, gpu_clone(&s->values, s->values.dtype, NULL, values));
    int at = lua_gettop(L);
    gpu_matrix *sampled = lumat_new_matrix(L);
    lumat_try(L, gpu_sparse_sample("mul", s, m, sampled));
    lua_pushvalue(L, at + 1);
    lua_replace(L, 3 - place);
    call(L, GPU_OP_mul, 2, place, at);
    push_with_values(L, s);
    return 1;
}

/* S + D and the like: the same of full(S). */
static int push_dense(lua_State *L, gpu_op op, int place)
{
    gpu_matrix *dense = lumat_new_matrix(L);
    lumat_try(L, gpu_sparse_to_dense(lumat_test_sparse(L, place), dense));
    lumat_account(L, dense);
    call(L, op, 2, place, lua_gettop(L));
    return 1;
}

static int refuse(lua_State *L, gpu_op op, int place)
{
    return lumat_raise(L,
                       "%s: of two sparse matrices, or one and a dense one, "
                       "there are +, - and %%; of others write full(%s)",
                       gpu_op_name(op), lumat_name_of(L, place, "S"));
}

int lumat_push_sparse_op(lua_State *L, gpu_op op, int count, int options)
{
    int sparse = 0, dense = 0, place = 0;
    if (options && !lua_isnoneornil(L, options))
        return lumat_raise(L,
                           "%s: options go with dense matrices: leave them "
                           "out, or write full(S)",
                           gpu_op_name(op));
    lua_settop(L, count);
    for (int i = 1; i <= count; i++) {
        if (lumat_test_sparse(L, i)) {
            place = i;
            sparse++;
        }
        dense += lumat_test_matrix(L, i) != NULL;
    }
    if (sparse == 1 && dense == 0)
        return push_of_values(L, op, count, place);
    int is_sum = op == GPU_OP_add || op == GPU_OP_sub;
    if (count != 2 || (!is_sum && op != GPU_OP_mul))
        return refuse(L, op, place);
    if (sparse == 2)
        return push_combined(L, op);
    return is_sum ? push_dense(L, op, place) : push_sampled(L, place);
}
