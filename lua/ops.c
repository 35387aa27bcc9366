/* ops.def as Lua functions, methods and operators: one closure a row. */
#include "sparse_matrix.h"
#include "hints.h"
#include "make.h"
#include "matrix.h"

#include <math.h>
#include <string.h>

typedef struct row {
    const char *name, *help, *example, *result;
    int arity, test;
} row;

#define OP(name, arity, expression, vector, help, example, result) \
    {#name, help, example, result, arity, 0},
#define TEST(name, arity, expression, vector, help, example, result) \
    {#name, help, example, result, arity, 1},
#define REDUCTION(name, primitive, help, example, result)
static const row ops[] = {
#include "ops.def"
};

#define OP(name, arity, expression, vector, help, example, result)
#define TEST(name, arity, expression, vector, help, example, result)
#define REDUCTION(name, primitive, help, example, result) \
    {#name, help, example, result, 1, 0},
static const row reductions[] = {
    {0},
#include "ops.def"
};

/* --- elementwise ---------------------------------------------------------- */

typedef struct operands {
    int count; /* matrices among the arguments */
    int argument[3];
    const gpu_matrix *matrix[3];
} operands;

static double check_scalar(lua_State *L, int arg)
{
    if (lua_isboolean(L, arg))
        return lua_toboolean(L, arg);
    if (lumat_test_sparse(L, arg))
        lumat_check_matrix(L, arg); /* raises: full(S) is dense */
    if (lua_type(L, arg) != LUA_TNUMBER)
        luaL_typeerror(L, arg, "matrix or number");
    return lua_tonumber(L, arg);
}

/* Splits arguments 1 … arity into matrices (inputs) and numbers (constants)
 * and makes the program of one instruction. */
static void make_program(lua_State *L, gpu_op op, int arity, gpu_program *p,
                         operands *o)
{
    int value[3] = {0, 0, 0};
    o->count = 0;
    for (int i = 0; i < arity; i++) {
        gpu_matrix *m = lumat_test_matrix(L, i + 1);
        value[i] = -1;
        if (!m)
            continue;
        o->argument[o->count] = i + 1;
        o->matrix[o->count] = m;
        value[i] = o->count++;
    }
    gpu_program_start(p, o->count);
    for (int i = 0; i < arity; i++)
        if (value[i] < 0)
            value[i] = gpu_program_constant(p, check_scalar(L, i + 1));
    gpu_program_add(p, op, value[0], value[1], value[2]);
}

static int push_number(lua_State *L, gpu_op op, const gpu_program *p)
{
    const double *c = p->constant;
    int n = p->constants;
    double x = gpu_op_evaluate(op, c[0], n > 1 ? c[1] : 0, n > 2 ? c[2] : 0);
    if (gpu_op_is_test(op))
        lua_pushboolean(L, x != 0);
    else
        lua_pushnumber(L, x);
    return 1;
}

/* {out=C} after the operands. */
static gpu_matrix *output_option(lua_State *L, int arg)
{
    if (lua_isnoneornil(L, arg))
        return NULL;
    lumat_check_options(L, arg, "out");
    return lumat_option_out(L, arg);
}

/* Names the first operand and the one that does not go with it. */
static int raise_mismatch(lua_State *L, const operands *o)
{
    const gpu_matrix *a = o->matrix[0], *b = o->matrix[1];
    int same = a->ndim == b->ndim && a->rows == b->rows && a->cols == b->cols;
    int other = o->count == 3 && same ? 2 : 1;
    return lumat_raise_shapes(L, o->argument[0], o->argument[other], 0);
}

static int run(lua_State *L, gpu_op op, const gpu_program *p, operands *o,
               gpu_matrix *out)
{
    int created = !out;
    if (created)
        out = lumat_new_matrix(L);
    gpu_status status = gpu_map(gpu_op_name(op), p, o->matrix, out);
    if (status == GPU_SHAPE && o->count >= 2 && created)
        return raise_mismatch(L, o);
    lumat_try(L, status);
    if (created)
        lumat_account(L, out);
    return 1;
}

static int elementwise(lua_State *L)
{
    gpu_op op = (gpu_op)lua_tointeger(L, lua_upvalueindex(1));
    int arity = gpu_op_arity(op);
    gpu_program p;
    operands o;
    luaL_checkany(L, arity);
    make_program(L, op, arity, &p, &o);
    if (o.count == 0)
        return push_number(L, op, &p);
    return run(L, op, &p, &o, output_option(L, arity + 1));
}

/* A:add_(B): the result replaces A's elements. */
static int in_place(lua_State *L)
{
    gpu_op op = (gpu_op)lua_tointeger(L, lua_upvalueindex(1));
    gpu_matrix *m = lumat_check_matrix(L, 1);
    gpu_program p;
    operands o;
    luaL_checkany(L, gpu_op_arity(op));
    make_program(L, op, gpu_op_arity(op), &p, &o);
    run(L, op, &p, &o, m);
    lua_settop(L, 1);
    return 1;
}

/* Operators pass a second operand even where there is one (__unm, __bnot). */
static int operator(lua_State *L)
{
    gpu_op op = (gpu_op)lua_tointeger(L, lua_upvalueindex(1));
    gpu_program p;
    operands o;
    make_program(L, op, gpu_op_arity(op), &p, &o);
    return o.count ? run(L, op, &p, &o, NULL) : push_number(L, op, &p);
}

/* A % B is the product element by element, A % 3 and 3 % A the remainder. */
static int percent(lua_State *L)
{
    gpu_program p;
    operands o;
    int both = lumat_test_matrix(L, 1) && lumat_test_matrix(L, 2);
    gpu_op op = both ? GPU_OP_mul : GPU_OP_mod;
    make_program(L, op, 2, &p, &o);
    return o.count ? run(L, op, &p, &o, NULL) : push_number(L, op, &p);
}

/* --- reductions ----------------------------------------------------------- */

static int push_reduced(lua_State *L, int kind, double value)
{
    if (kind == GPU_REDUCE_any || kind == GPU_REDUCE_all)
        lua_pushboolean(L, value != 0);
    else if (kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax)
        lua_pushinteger(L, (lua_Integer)value + 1);
    else
        lua_pushnumber(L, value);
    return 1;
}

/* Place of an extreme element of a matrix: row, column. */
static int push_place(lua_State *L, const gpu_matrix *m, double value)
{
    int64_t at = (int64_t)value;
    if (m->ndim == 1)
        return push_reduced(L, GPU_REDUCE_argmax, value);
    lua_pushinteger(L, at / m->cols + 1);
    lua_pushinteger(L, at % m->cols + 1);
    return 2;
}

static int reduce_number(lua_State *L, int kind)
{
    double x = lua_isboolean(L, 1) ? lua_toboolean(L, 1) : lua_tonumber(L, 1);
    switch (kind) {
    case GPU_REDUCE_any:
    case GPU_REDUCE_all:
        return push_reduced(L, kind, x != 0);
    case GPU_REDUCE_norm:
        return push_reduced(L, kind, fabs(x));
    case GPU_REDUCE_argmin:
    case GPU_REDUCE_argmax:
        return push_reduced(L, kind, 0);
    case GPU_REDUCE_var:
    case GPU_REDUCE_std:
        return push_reduced(L, kind, NAN);
    default:
        return push_reduced(L, kind, x);
    }
}

static int reduction(lua_State *L)
{
    int kind = (int)lua_tointeger(L, lua_upvalueindex(1));
    int is_place = kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax;
    if (lua_type(L, 1) == LUA_TNUMBER || lua_isboolean(L, 1))
        return reduce_number(L, kind);
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    gpu_program p;
    gpu_program_start(&p, 1);
    p.reduction = (uint8_t)kind;
    if (lua_isnoneornil(L, 2)) {
        double value;
        lumat_try(L, gpu_reduce_all(reductions[kind].name, &p, &m, &value));
        lumat_note_scalar(m->dtype, value);
        return is_place ? push_place(L, m, value)
                        : push_reduced(L, kind, value);
    }
    lua_Integer axis = luaL_checkinteger(L, 2);
    luaL_argcheck(L, axis == 1 || axis == 2, 2,
                  "an axis is 1 (down each column) or 2 (along each row)");
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_reduce(reductions[kind].name, &p, &m, (int)axis, out));
    lumat_account(L, out);
    if (is_place)
        lumat_count_from_one(L, "argmax", out, out);
    return 1;
}

/* --- whole-matrix questions ----------------------------------------------- */

static int matrices_equal(lua_State *L, const gpu_matrix *a,
                          const gpu_matrix *b)
{
    if (a->ndim != b->ndim || a->rows != b->rows || a->cols != b->cols)
        return 0;
    gpu_program p;
    gpu_program_start(&p, 2);
    gpu_program_add(&p, GPU_OP_ne, 0, 1, 0);
    p.reduction = GPU_REDUCE_any;
    const gpu_matrix *in[] = {a, b};
    double differs;
    lumat_try(L, gpu_reduce_all("==", &p, in, &differs));
    return differs == 0;
}

static int equal(lua_State *L)
{
    gpu_matrix *a = lumat_test_matrix(L, 1), *b = lumat_test_matrix(L, 2);
    int same = a && b && a->storage && b->storage && matrices_equal(L, a, b);
    lua_pushboolean(L, same);
    return 1;
}

/* A < B and A <= B, and > and >=, which Lua turns round. */
static int no_order(lua_State *L)
{
    int strict = lua_toboolean(L, lua_upvalueindex(1));
    int left = lumat_test_matrix(L, 1) != NULL;
    int number = lua_type(L, left ? 2 : 1) == LUA_TNUMBER;
    const char *other = number ? luaL_tolstring(L, left ? 2 : 1, NULL) : "B";
    const char *method = left ? (strict ? "lt" : "le") : strict ? "gt" : "ge";
    const char *turned = strict ? "gt" : "ge", *sign = strict ? "<" : "<=";
    if (number)
        return lumat_raise(L,
                           "a comparison of a matrix with %s gives a single "
                           "true or false in Lua: write A:%s(%s) for a mask",
                           other, method, other);
    return lumat_raise(L,
                       "A %s B gives a single true or false in Lua: write "
                       "A:%s(B) for a mask (or A:%s(B) for %s)",
                       sign, method, turned, strict ? ">" : ">=");
}

/* --- opening -------------------------------------------------------------- */

static const char *usage_of(lua_State *L, const row *r, int is_reduction)
{
    static const char *const operand[] = {
        "", "(A [, {out=}])", "(A, B [, {out=}])", "(A, B, C [, {out=}])"};
    if (is_reduction)
        return lua_pushfstring(L, "%s(A [, axis])", r->name);
    return lua_pushfstring(L, "%s%s", r->name, operand[r->arity]);
}

static void add_in_place(lua_State *L, const row *r, int op)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.methods");
    const char *name = lua_pushfstring(L, "%s_", r->name);
    lua_pushinteger(L, op);
    lua_pushcclosure(L, in_place, 1);
    lua_setfield(L, -3, name);
    lua_pop(L, 2);
}

/* lumat_register with a closure instead of a plain function. */
static void add_row(lua_State *L, const row *r, lua_CFunction f, int value,
                    int is_reduction)
{
    const char *usage = usage_of(L, r, is_reduction);
    lumat_function list[] = {
        {r->name, f, 1, usage, r->help, r->example, r->result},
        {NULL, NULL, 0, NULL, NULL, NULL, NULL}};
    lumat_register(L, list);
    static const char *const tables[] = {"lumat.functions", "lumat.methods"};
    for (int t = 0; t < 2; t++) {
        lua_getfield(L, LUA_REGISTRYINDEX, tables[t]);
        lua_pushinteger(L, value);
        lua_pushcclosure(L, f, 1);
        lua_setfield(L, -2, r->name);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void add_operators(lua_State *L)
{
    static const struct {
        const char *event;
        int op;
    } operators[] = {
        {"__add", GPU_OP_add},   {"__sub", GPU_OP_sub},
        {"__div", GPU_OP_div},   {"__idiv", GPU_OP_idiv},
        {"__unm", GPU_OP_neg},   {"__band", GPU_OP_land},
        {"__bor", GPU_OP_lor},   {"__bxor", GPU_OP_lxor},
        {"__bnot", GPU_OP_lnot},
    };
    luaL_getmetatable(L, "lumat.matrix");
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        lua_pushinteger(L, operators[i].op);
        lua_pushcclosure(L, operator, 1);
        lua_setfield(L, -2, operators[i].event);
    }
    lua_pushcfunction(L, percent);
    lua_setfield(L, -2, "__mod");
    lua_pushcfunction(L, equal);
    lua_setfield(L, -2, "__eq");
    lua_pushboolean(L, 1);
    lua_pushcclosure(L, no_order, 1);
    lua_setfield(L, -2, "__lt");
    lua_pushboolean(L, 0);
    lua_pushcclosure(L, no_order, 1);
    lua_setfield(L, -2, "__le");
    lua_pop(L, 1);
}

void lumat_open_ops(lua_State *L)
{
    for (int op = 0; op < (int)(sizeof ops / sizeof *ops); op++) {
        add_row(L, &ops[op], elementwise, op, 0);
        if (!ops[op].test)
            add_in_place(L, &ops[op], op);
    }
    for (int kind = 1; kind < GPU_REDUCTIONS; kind++)
        add_row(L, &reductions[kind], reduction, kind, 1);
    add_operators(L);
}
