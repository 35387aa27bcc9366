/* Making matrices out of Lua values, for constructors and assignments. */
#ifndef LUMAT_MAKE_H
#define LUMAT_MAKE_H

#include "matrix.h"

/* Pushes a matrix (of nested tables) or a vector (of a plain one) made of the
 * table at index. Raises for ragged rows and what is no number. */
gpu_matrix *lumat_push_from_table(lua_State *L, int index, gpu_dtype dtype,
                                  gpu_device *device);

/* A size argument: a whole number, not negative. */
int64_t lumat_check_size(lua_State *L, int arg);

#endif
