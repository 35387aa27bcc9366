/* A:eachrow() and A:eachcol(): rows, columns and elements in a loop. */
#include "index.h"
#include "function.h"

static int next_row(lua_State *L)
{
    gpu_matrix *m = lumat_check_indexed(L, "eachrow");
    lua_Integer i = luaL_optinteger(L, 2, 0);
    if (i < 0 || i >= m->rows)
        return 0;
    lua_pushinteger(L, i + 1);
    if (m->ndim == 1)
        return 1 + lumat_push_element(L, m, i, 0);
    gpu_view_row(m, i, lumat_new_matrix(L));
    return 2;
}

static int next_column(lua_State *L)
{
    gpu_matrix *m = lumat_check_indexed(L, "eachcol");
    lua_Integer j = luaL_optinteger(L, 2, 0);
    if (j < 0 || j >= m->cols)
        return 0;
    lua_pushinteger(L, j + 1);
    gpu_view_column(m, j, lumat_new_matrix(L));
    return 2;
}

static int each_row(lua_State *L)
{
    lumat_check_matrix(L, 1);
    lua_pushcfunction(L, next_row);
    lua_pushvalue(L, 1);
    lua_pushinteger(L, 0);
    return 3;
}

static int each_column(lua_State *L)
{
    lumat_check_matrix(L, 1);
    lua_pushcfunction(L, next_column);
    lua_pushvalue(L, 1);
    lua_pushinteger(L, 0);
    return 3;
}

static const lumat_function functions[] = {
    {"eachrow", each_row, 1, "A: matrix", "function, value, value",
     "Visits the rows in order, as views; of a vector, the elements.",
     "(function() local s = 0 for i, r in mat{{1, 2}, {3, 4}}:eachrow() do s = "
     "s + i * r:sum() end return s end)()",
     "17", .group = "iterating", .usage = "for i, row in A:eachrow() do … end"},
    {"eachcol", each_column, 1, "A: matrix", "function, value, value",
     "Visits the columns in order, as views.",
     "(function() local s = 0 for j, c in mat{{1, 2}, {3, 4}}:eachcol() do s = "
     "s + j * c:sum() end return s end)()",
     "16", .group = "iterating",
     .usage = "for j, column in A:eachcol() do … end"},
    {0}};

void lumat_open_visit(lua_State *L)
{
    luaL_getmetatable(L, "lumat.matrix");
    lua_pushcfunction(L, each_row);
    lua_setfield(L, -2, "__pairs");
    lua_pop(L, 1);
    lumat_register(L, functions);
}
