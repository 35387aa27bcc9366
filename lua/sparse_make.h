/* What the files of sparse matrices share: sparse_matrix.c, sparse_make.c and
 * sparse_index.c. */
#ifndef LUMAT_SPARSE_MAKE_H
#define LUMAT_SPARSE_MAKE_H

#include "matrix.h"

/* Pushes an empty sparse matrix that the collector will release. */
gpu_sparse *lumat_new_sparse(lua_State *L);
/* After filling a new one: counts its bytes for the collector. */
void lumat_account_sparse(lua_State *L, const gpu_sparse *s);

/* The one at 1, which metamethods and methods begin with. */
gpu_sparse *lumat_check_sparse(lua_State *L);

extern const luaL_Reg lumat_sparse_methods[];
extern const char lumat_sparse_property_names[];

void lumat_open_sparse_index(lua_State *L); /* into the metatable on top */
void lumat_open_sparse_make(lua_State *L);  /* sparse(…) */

#endif
