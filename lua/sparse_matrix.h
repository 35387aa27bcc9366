/* Sparse matrices as Lua values: what the files that meet one need. */
#ifndef LUMAT_SPARSE_MATRIX_H
#define LUMAT_SPARSE_MATRIX_H

#include "lumat.h"
#include "matrix.h"

/* The sparse matrix at index, or NULL. */
gpu_sparse *lumat_test_sparse(lua_State *L, int index);

/* full(S): pushes the dense matrix of the sparse one at index. */
int lumat_push_dense(lua_State *L, int index);
/* The operator * when 1 or 2 is a sparse matrix. */
int lumat_multiply_sparse(lua_State *L);

/* "f32 5x5 sparse csr  cpu  nnz 4 (16 %)  56 B", and that with what fits the
 * screen: dots for a small matrix, triplets for a large one. */
void lumat_push_sparse_headline(lua_State *L, const gpu_sparse *s);
void lumat_push_sparse_text(lua_State *L, const gpu_sparse *s,
                            const lumat_style *style);

void lumat_open_sparse(lua_State *L);

#endif
