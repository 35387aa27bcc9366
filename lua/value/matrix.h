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

/* A function of the library. method: A:name(…) works too. */
typedef struct lumat_function {
    const char *name;
    lua_CFunction call;
    int method;
    const char *usage; /* "linspace(first, last, count [, options])" */
    const char *help;  /* one or two sentences */
    const char *example, *result; /* Lua expressions; as in ops.def */
} lumat_function;
/* Adds the rows up to one without a name: to the library's table, the methods
 * and the help. */
void lumat_register(lua_State *L, const lumat_function *list);
/* Adds one function, as a closure with this upvalue. */
void lumat_register_with(lua_State *L, const lumat_function *f, int upvalue);

/* The options table at arg, or none. Unknown keys raise, with a suggestion
 * from allowed (space separated). */
void lumat_check_options(lua_State *L, int arg, const char *allowed);
gpu_dtype lumat_option_dtype(lua_State *L, int arg, gpu_dtype otherwise);
gpu_device *lumat_option_device(lua_State *L, int arg, gpu_device *otherwise);
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
