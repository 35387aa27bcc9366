/* The steps of sparse systems, for lua/std/lazy/sparse_systems.lua, which gives
 * right arguments: right sides and solutions are rows here; what is computed is
 * f64 or c128 and lies on the CPU. And those of lazy/sparse_matrices.lua. */
#include "arguments.h"
#include "complex_value.h"
#include "math_functions.h"
#include "op_list.h"
#include "value.h"

static const char FACTORS[] = "lumat.sparse_factors";

static int forget(lua_State *L)
{
    gpu_sparse_factors **f = luaL_checkudata(L, 1, FACTORS);
    gpu_sparse_factors_free(*f);
    *f = NULL;
    return 0;
}

/* factor(S, how): the factors of the transpose of S, and of them trouble, rank
 * and count as gpu_sparse_report has them */
static int factor(lua_State *L)
{
    static const char *const names[] = {"lu",   "chol",      "qr",
                                        "band", "band_chol", NULL};
    const gpu_sparse *s = lumat_check_sparse(L);
    int how = luaL_checkoption(L, 2, NULL, names);
    gpu_sparse_report told;
    gpu_sparse_factors **f =
        lua_newuserdatauv(L, sizeof(gpu_sparse_factors *), 0);
    *f = NULL;
    luaL_setmetatable(L, FACTORS);
    lumat_try(L, gpu_sparse_factor(s, (gpu_sparse_factoring)how, &told, f));
    lumat_account_bytes(L, gpu_sparse_factors_bytes(*f));
    lua_pushinteger(L, told.trouble);
    lua_pushinteger(L, told.rank);
    lua_pushinteger(L, told.count);
    return 4;
}

/* solve(F, turned, B): X, see gpu_sparse_solve */
static int solve(lua_State *L)
{
    gpu_sparse_factors **f = luaL_checkudata(L, 1, FACTORS);
    gpu_matrix *b = lumat_test_matrix(L, 3), *x = lumat_new_matrix(L);
    lumat_try(L, gpu_sparse_solve(*f, lua_toboolean(L, 2), b, x));
    lumat_account(L, x);
    return 1;
}

/* bands(S): how many diagonals below and above the main one have entries; in a
 * dry run nothing */
static int bands(lua_State *L)
{
    gpu_structure s;
    if (gpu_is_dry())
        return 0;
    lumat_try(L, gpu_sparse_bands(lumat_check_sparse(L), &s));
    lua_pushinteger(L, s.below);
    lua_pushinteger(L, s.above);
    return 2;
}

/* triangle(S, is_lower, turned, B): X, or nil and where the first zero on the
 * diagonal is */
static int triangle(lua_State *L)
{
    const gpu_sparse *s = lumat_check_sparse(L);
    int64_t zero;
    gpu_matrix *b = lumat_test_matrix(L, 4), *x = lumat_new_matrix(L);
    lumat_try(L, gpu_sparse_solve_triangle(s, lua_toboolean(L, 2),
                                           lua_toboolean(L, 3), b, x, &zero));
    if (zero > 0) {
        lua_pushnil(L);
        lua_pushinteger(L, zero);
        return 2;
    }
    lumat_account(L, x);
    return 1;
}

/* incomplete(S, is_chol): L and, of L U, U; or nil, the row that breaks down
 * and its pivot, nil: it has none. See gpu_sparse_incomplete_factors. */
static int incomplete(lua_State *L)
{
    const gpu_sparse *s = lumat_check_sparse(L);
    int is_chol = lua_toboolean(L, 2);
    gpu_sparse_breakdown told;
    gpu_sparse *lower = lumat_new_sparse(L);
    gpu_sparse *upper = is_chol ? NULL : lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_incomplete_factors(s, lower, upper, &told));
    if (told.row == 0) {
        lumat_account_sparse(L, lower);
        if (!is_chol)
            lumat_account_sparse(L, upper);
        return is_chol ? 1 : 2;
    }
    lua_pushnil(L);
    lua_pushinteger(L, told.row);
    if (told.is_missing)
        lua_pushnil(L);
    else if (told.pivot[1] == 0)
        lua_pushnumber(L, told.pivot[0]);
    else
        lumat_push_complex(L, (gpu_complex){told.pivot[0], told.pivot[1]});
    return 3;
}

/* diagonals(D, offsets, m, n, {dtype, device}): see gpu_sparse_from_diagonals
 */
static int diagonals(lua_State *L)
{
    const gpu_matrix *m = lumat_test_matrix(L, 1);
    int64_t *offsets =
        lua_newuserdatauv(L, ((size_t)m->cols + 1) * sizeof *offsets, 0);
    gpu_dtype dtype = lumat_option_dtype(L, 5, m->dtype);
    gpu_device *d = lumat_option_device(L, 5, gpu_matrix_device(m));
    for (int64_t k = 0; k < m->cols; k++) {
        lua_rawgeti(L, 2, (lua_Integer)k + 1);
        offsets[k] = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_from_diagonals(m, offsets, lua_tointeger(L, 3),
                                           lua_tointeger(L, 4), dtype, d, out));
    lumat_account_sparse(L, out);
    return 1;
}

/* Has a vector no zeros? Of complex ones it is not known: no. */
static int is_full(lua_State *L, const gpu_matrix *values)
{
    double all = 0;
    gpu_program p;
    if (gpu_is_complex(values) || gpu_size(values) == 0)
        return 0;
    gpu_program_start(&p, 1);
    int zero = gpu_program_constant(&p, 0);
    gpu_program_add(&p, GPU_OP_ne, 0, zero, 0);
    p.reduction = GPU_REDUCE_all;
    lumat_try(L, gpu_reduce_all("nonzeros", &p, &values, &all));
    return all != 0;
}

/* nonzeros(S): the values other than 0, a vector */
static int nonzeros(lua_State *L)
{
    const gpu_sparse *s = lumat_check_sparse(L);
    gpu_sparse *pruned = lumat_new_sparse(L);
    gpu_matrix *out = lumat_new_matrix(L);
    if (!is_full(L, &s->values)) {
        lumat_try(L, gpu_sparse_prune(s, 0, pruned));
        s = pruned;
    }
    lumat_try(L, gpu_clone(&s->values, s->values.dtype, NULL, out));
    lumat_account(L, out);
    return 1;
}

void lumat_open_sparse_steps(lua_State *L)
{
    static const luaL_Reg steps[] = {
        {"factor", factor},         {"solve", solve},
        {"bands", bands},           {"triangle", triangle},
        {"incomplete", incomplete}, {"diagonals", diagonals},
        {"nonzeros", nonzeros},     {NULL, NULL}};
    luaL_newmetatable(L, FACTORS);
    lua_pushcfunction(L, forget);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    luaL_newlib(L, steps);
    lumat_set_required(L, "sparse_steps");
}
