/* What is known of operations without running them, and how a function is led
 * to compute with shapes: for cost.lua alone, as it looks inside. */
#include "measure.h"
#include "lauxlib.h"

#include <string.h>

/* --- the operations ------------------------------------------------------- */

typedef struct row {
    const char *name;
    int arity, test;
} row;

static const row ops[] = {
#define OP(name, arity, expression, vector, help, example, result) \
    {#name, arity, 0},
#define TEST(name, arity, expression, vector, help, example, result) \
    {#name, arity, 1},
#define REDUCTION(name, primitive, help, example, result)
#include "ops.def"
};

static const char *const reductions[] = {
#define OP(name, arity, expression, vector, help, example, result)
#define TEST(name, arity, expression, vector, help, example, result)
#define REDUCTION(name, primitive, help, example, result) #name,
#include "ops.def"
};

/* name -> {arity, is it a test} */
static void push_ops(lua_State *L)
{
    lua_newtable(L);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        lua_createtable(L, 0, 2);
        lua_pushinteger(L, ops[i].arity);
        lua_setfield(L, -2, "arity");
        lua_pushboolean(L, ops[i].test);
        lua_setfield(L, -2, "test");
        lua_setfield(L, -2, ops[i].name);
    }
}

static void push_reductions(lua_State *L)
{
    int n = (int)(sizeof reductions / sizeof *reductions);
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushstring(L, reductions[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

/* kernel_for(operation, dtype, m, n, k, device): the one auto takes */
static int kernel_for(lua_State *L)
{
    gpu_device *d;
    gpu_dtype type = GPU_F32;
    gpu_dtype_find(luaL_checkstring(L, 2), &type);
    lumat_try(L, gpu_open(luaL_checkstring(L, 6), &d));
    lua_pushstring(L, gpu_kernel_for(d, luaL_checkstring(L, 1), type,
                                     luaL_checkinteger(L, 3),
                                     luaL_checkinteger(L, 4),
                                     luaL_checkinteger(L, 5)));
    return 1;
}

/* phantom(ndim, rows, cols): a matrix of that shape that has one element, in
 * all places: its views show what views would be like. */
static int push_phantom(lua_State *L)
{
    gpu_device *d;
    gpu_matrix *m = lumat_new_matrix(L);
    lumat_try(L, gpu_open("cpu", &d));
    lumat_try(L, gpu_create(m, d, GPU_F32, 2, 1, 1));
    m->ndim = (int)luaL_checkinteger(L, 1);
    m->rows = luaL_checkinteger(L, 2);
    m->cols = luaL_checkinteger(L, 3);
    m->row_stride = m->col_stride = 0;
    return 1;
}

/* --- inside of functions -------------------------------------------------- */

/* upvalue(f, i): name, value and a token that shared ones have in common */
static int get_upvalue(lua_State *L)
{
    int i = (int)luaL_checkinteger(L, 2);
    luaL_checktype(L, 1, LUA_TFUNCTION);
    const char *name = lua_getupvalue(L, 1, i);
    if (!name)
        return 0;
    lua_pushstring(L, name);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, lua_upvalueid(L, 1, i));
    return 3;
}

/* set_upvalue(f, i, value) */
static int set_upvalue(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 3);
    lua_setupvalue(L, 1, (int)luaL_checkinteger(L, 2));
    return 0;
}

static int is_c_function(lua_State *L)
{
    lua_pushboolean(L, lua_iscfunction(L, 1));
    return 1;
}

void lumat_open_cost(lua_State *L)
{
    static const luaL_Reg own[] = {
        {"kernel_for", kernel_for}, {"phantom", push_phantom},
        {"upvalue", get_upvalue},   {"set_upvalue", set_upvalue},
        {"is_c", is_c_function},    {NULL, NULL}};
    luaL_getsubtable(L, LUA_REGISTRYINDEX, "lumat.private");
    luaL_setfuncs(L, own, 0);
    push_ops(L);
    lua_setfield(L, -2, "ops");
    push_reductions(L);
    lua_setfield(L, -2, "reductions");
    lua_pop(L, 1);
}
