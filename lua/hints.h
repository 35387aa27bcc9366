/* What a shape error adds to its message. */
#ifndef LUMAT_HINTS_H
#define LUMAT_HINTS_H

#include "matrix.h"

/* Pushes and returns the name of a local of the caller, a local of the
 * session, or a global that holds the very value at index; else otherwise. */
const char *lumat_name_of(lua_State *L, int index, const char *otherwise);

/* Raises gpu_message() followed by names and shapes of the two matrices and
 * what would fit. */
int lumat_raise_shapes(lua_State *L, int left, int right, int is_product);

#endif
