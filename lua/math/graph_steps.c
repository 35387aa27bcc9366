/* The searches of lua/std/lazy/graph.lua, of a square sparse matrix; nodes
 * count from 1, and vectors are f64 on its device.
 *
 *   degrees(S)  how many edges leave each
 *   components(S, is_strong)  numbers, count
 *   walk(S, from)   depths, previous
 *   paths(S, from)  distances, previous, and a node on a circle of negative
 *       length or nil; see gpu_graph_paths. */
#include "math_functions.h"
#include "value.h"

static int degrees(lua_State *L)
{
    const gpu_sparse *s = lumat_check_sparse(L);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_graph_degrees(s, out));
    lumat_account(L, out);
    return 1;
}

static int components(lua_State *L)
{
    const gpu_sparse *s = lumat_check_sparse(L);
    int64_t count;
    gpu_matrix *numbers = lumat_new_matrix(L);
    lumat_try(L, gpu_graph_components(s, lua_toboolean(L, 2), numbers, &count));
    lumat_account(L, numbers);
    lua_pushinteger(L, count);
    return 2;
}

/* Pushes vectors that are to get what a search from the node at 2 finds. */
static int64_t push_ways(lua_State *L, gpu_matrix **distances,
                         gpu_matrix **previous)
{
    int64_t from = luaL_checkinteger(L, 2) - 1;
    *distances = lumat_new_matrix(L);
    *previous = lumat_new_matrix(L);
    return from;
}

static int walk(lua_State *L)
{
    const gpu_sparse *s = lumat_check_sparse(L);
    gpu_matrix *depths, *previous;
    int64_t from = push_ways(L, &depths, &previous);
    lumat_try(L, gpu_graph_walk(s, from, depths, previous));
    lumat_account(L, depths);
    lumat_account(L, previous);
    return 2;
}

static int paths(lua_State *L)
{
    const gpu_sparse *s = lumat_check_sparse(L);
    gpu_matrix *distances, *previous;
    int64_t trouble, from = push_ways(L, &distances, &previous);
    lumat_try(L, gpu_graph_paths(s, from, distances, previous, &trouble));
    lumat_account(L, distances);
    lumat_account(L, previous);
    if (trouble == 0)
        return 2;
    lua_pushinteger(L, trouble);
    return 3;
}

void lumat_open_graph_steps(lua_State *L)
{
    static const luaL_Reg steps[] = {{"degrees", degrees},
                                     {"components", components},
                                     {"walk", walk},
                                     {"paths", paths},
                                     {NULL, NULL}};
    luaL_newlib(L, steps);
    lumat_set_required(L, "graph_steps");
}
