/* What error messages say of operands: names, shapes, what would fit. */
#ifndef LUMAT_SHAPE_ERRORS_H
#define LUMAT_SHAPE_ERRORS_H

#include "matrix.h"

/* Pushes and returns the name of a local of the caller, a local of the
 * session, or a global that holds the very value at index; else otherwise. */
const char *lumat_name_of(lua_State *L, int index, const char *otherwise);

/* Pushes and returns how a message names the value at index: a number or a
 * short string as written, anything else by its kind. */
const char *lumat_push_brief(lua_State *L, int index);
const char *lumat_push_brief_number(lua_State *L, double x);

/* What two operands have to agree in. */
typedef enum lumat_fit {
    LUMAT_FIT_ELEMENTS, /* one shape, or broadcast */
    LUMAT_FIT_PRODUCT,  /* inner sizes */
    LUMAT_FIT_ROWS,
    LUMAT_FIT_COLUMNS,
    LUMAT_FIT_LENGTHS /* of two vectors */
} lumat_fit;

int lumat_fits(const gpu_matrix *left, const gpu_matrix *right, lumat_fit fit);

/* Raises gpu_message() followed by names and shapes of the two matrices and
 * what would fit; the message alone when they agree and so are not to blame. */
int lumat_raise_shapes(lua_State *L, int left, int right, lumat_fit fit);

/* Raises gpu_message() followed by name and shape of the matrix at index. */
int lumat_raise_shape(lua_State *L, int index);

#endif
