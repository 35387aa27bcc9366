/* Making matrices out of Lua values, for constructors and assignments. */
#ifndef LUMAT_CONSTRUCTORS_H
#define LUMAT_CONSTRUCTORS_H

#include "arguments.h"
#include "value.h"

/* Pushes a matrix (of nested tables) or a vector (of a plain one) made of the
 * table at index. Raises "name: …" for ragged rows and what is no number. */
gpu_matrix *lumat_push_from_table(lua_State *L, int index, const char *name,
                                  gpu_dtype dtype, gpu_device *device);

/* Pushes the matrix asked for, its elements unspecified. */
gpu_matrix *lumat_push_requested(lua_State *L, const lumat_request *r);

/* What seed(seed, call) would bring back. */
void lumat_random_state(uint64_t *seed, uint64_t *call);

/* Pushes a new matrix of m's type on m's device. */
gpu_matrix *lumat_push_like(lua_State *L, const gpu_matrix *m, int ndim,
                            int64_t rows, int64_t cols);

/* Pushes a userdata with m's elements, row-major, in m's own type. */
void *lumat_push_host_copy(lua_State *L, const gpu_matrix *m);

/* One file each. */
void lumat_open_make(lua_State *L);     /* constructors */
void lumat_open_generate(lua_State *L); /* range rand … */
void lumat_open_index(lua_State *L);    /* A[…] */
void lumat_open_ops(lua_State *L);      /* ops.def */
void lumat_open_product(lua_State *L);  /* matmul dot kernels verify */
void lumat_open_shape(lua_State *L);    /* f64 to reshape map … */
void lumat_open_arrange(lua_State *L);  /* diag take cumsum sort … */
/* What ops.c, arrange.c, shape.c and product.c open beside their own. */
void lumat_open_reductions(lua_State *L);
void lumat_open_repeat(lua_State *L); /* outer kron tile */
void lumat_open_join(lua_State *L);   /* hcat vcat A .. B */
void lumat_open_linear(lua_State *L); /* A ^ n, solve inv det */

#endif
