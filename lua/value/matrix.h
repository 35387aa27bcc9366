/* What the files of lua/ share: matrices as userdata, the bridge from gpu/'s
 * status to Lua's errors, and how library functions are listed.
 *
 * A Lua error is a longjmp. So an output's userdata is pushed first, empty,
 * and then filled: whatever raises later, the collector frees it. */
#ifndef LUMAT_MATRIX_H
#define LUMAT_MATRIX_H

#include "gpu.h"
#include "lauxlib.h"
#include "lua.h"

/* Pushes an empty matrix (storage NULL) that the collector will release. */
gpu_matrix *lumat_new_matrix(lua_State *L);
/* The matrix at index: NULL when it is none; an error naming the argument. */
gpu_matrix *lumat_test_matrix(lua_State *L, int index);
gpu_matrix *lumat_check_matrix(lua_State *L, int arg);
/* After filling a new matrix: counts its bytes for the collector. */
void lumat_account(lua_State *L, const gpu_matrix *m);

/* What lumat_try calls after every success; NULL: nothing. */
extern void (*lumat_after_success)(lua_State *L);
/* Raises gpu_message() with the script's place, unless status is GPU_OK. */
void lumat_try(lua_State *L, gpu_status status);
/* Raises "place: message"; the message must not end in a full stop. */
int lumat_raise(lua_State *L, const char *format, ...);

/* The same elements, those of a vector as a row. Holds no reference. */
gpu_matrix lumat_as_rows(const gpu_matrix *m);
/* "3x4", "vector 5" */
void lumat_push_shape(lua_State *L, const gpu_matrix *m);

gpu_dtype lumat_default_dtype(lua_State *L);

/* Notes what an operation on a matrix of the type gives to Lua: an f32 is
 * echoed as one during the entry. What is noted is told again by its value
 * alone. */
void lumat_note_scalar(gpu_dtype dtype, double value);
int lumat_is_single(double value);
void lumat_forget_scalars(void);

/* The name of list (space separated) nearest to word, or NULL. */
const char *lumat_nearest(lua_State *L, const char *word, const char *list);

void lumat_open_matrix(lua_State *L); /* the metatable, properties */

#endif
