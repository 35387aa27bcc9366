/* Sparse matrices as Lua values: what the files that meet one need. */
#ifndef LUMAT_SPARSE_MATRIX_H
#define LUMAT_SPARSE_MATRIX_H

#include "matrix.h"

#define LUMAT_SPARSE "lumat.sparse" /* the metatable in the registry */

/* The sparse matrix at index, or NULL. */
gpu_sparse *lumat_test_sparse(lua_State *L, int index);

/* full(S): pushes the dense matrix of the sparse one at index. */
int lumat_push_dense(lua_State *L, int index);
/* The operator * when 1 or 2 is a sparse matrix. */
int lumat_multiply_sparse(lua_State *L);

/* Pushes an empty sparse matrix that the collector will release. */
gpu_sparse *lumat_new_sparse(lua_State *L);
/* After filling a new one: counts its bytes for the collector. */
void lumat_account_sparse(lua_State *L, const gpu_sparse *s);

/* The one at 1, which metamethods and methods begin with. */
gpu_sparse *lumat_check_sparse(lua_State *L);

extern const luaL_Reg lumat_sparse_methods[];
extern const char lumat_sparse_property_names[];

void lumat_open_sparse(lua_State *L);

#endif
