/* Making matrices out of Lua values, for constructors and assignments. */
#ifndef LUMAT_MAKE_H
#define LUMAT_MAKE_H

#include "matrix.h"

/* Pushes a matrix (of nested tables) or a vector (of a plain one) made of the
 * table at index. Raises for ragged rows and what is no number. */
gpu_matrix *lumat_push_from_table(lua_State *L, int index, gpu_dtype dtype,
                                  gpu_device *device);

/* What a constructor is asked for: (m, n [, options]) or (n [, options]). */
typedef struct lumat_request {
    int ndim;
    int64_t rows, cols;
    gpu_dtype dtype;
    gpu_device *device;
    int options; /* stack index of the table, or of nothing */
} lumat_request;

/* Reads sizes and options from arg on; `allowed` names the options. */
lumat_request lumat_check_request(lua_State *L, int arg, const char *allowed);
/* Pushes the matrix asked for, its elements unspecified. */
gpu_matrix *lumat_push_requested(lua_State *L, const lumat_request *r);

/* A size argument: a whole number, not negative. */
int64_t lumat_check_size(lua_State *L, int arg);

/* Pushes a new matrix of m's type on m's device. */
gpu_matrix *lumat_push_like(lua_State *L, const gpu_matrix *m, int ndim,
                            int64_t rows, int64_t cols);

/* Pushes a userdata with m's elements, row-major, in m's own type. */
void *lumat_push_host_copy(lua_State *L, const gpu_matrix *m);

#endif
