/* Sparse matrices: making them, and S[…]. */
#ifndef LUMAT_SPARSE_MAKE_H
#define LUMAT_SPARSE_MAKE_H

#include "value.h"

void lumat_open_sparse_index(lua_State *L); /* S[…] */
void lumat_open_sparse_make(lua_State *L);  /* sparse(…) */

#endif
