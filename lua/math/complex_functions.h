/* Complex operands of the operations of ops.def and of products, for the files
 * of this room alone. */
#ifndef LUMAT_COMPLEX_FUNCTIONS_H
#define LUMAT_COMPLEX_FUNCTIONS_H

#include "complex_value.h"

/* Is there a complex number among the arguments 1 … count? Matrices are none:
 * complex ones take the way of all. */
int lumat_has_complex(lua_State *L, int count);
/* Or a complex matrix? */
int lumat_is_any_complex(lua_State *L, int count);
/* Pushes op of the arguments 1 … count, matrices and numbers of which one is
 * complex: into out, where it is not NULL, as gpu_map would; else a new matrix,
 * or a number. Returns 1. */
int lumat_push_complex_op(lua_State *L, gpu_op op, int count, gpu_matrix *out);

#endif
