/* Keys of A[…] as places, shared by reading (index.c) and writing
 * (assign.c); the properties. */
#ifndef LUMAT_INDEX_H
#define LUMAT_INDEX_H

#include "matrix.h"
#include "slice.h"

/* The matrix at 1 that is indexed; raises "name: …" when it has been freed. */
gpu_matrix *lumat_check_indexed(lua_State *L, const char *name);
/* The 0-based place of the index at arg along axis 1 or 2; raises outside. */
int64_t lumat_check_place(lua_State *L, const gpu_matrix *m, int arg, int axis);
/* A[{…}] and A["…"]: the parts named by the table or string at key. */
void lumat_table_parts(lua_State *L, const gpu_matrix *m, int key,
                       lumat_part out[2]);
void lumat_string_parts(lua_State *L, const gpu_matrix *m, int key,
                        lumat_part out[2]);
/* Could the string be a slice, rather than a name? */
int lumat_is_slice(const char *key);

/* Is this the place of one element? */
int lumat_is_element(const gpu_matrix *m, const lumat_part part[2]);
/* Pushes the element, a number or a boolean; returns 1. */
int lumat_push_element(lua_State *L, const gpu_matrix *m, int64_t i, int64_t j);
/* Pushes the view; single indices drop their dimension. */
void lumat_push_block(lua_State *L, const gpu_matrix *m,
                      const lumat_part part[2]);

/* Pushes the property and returns 1, or returns 0. */
int lumat_push_property(lua_State *L, const gpu_matrix *m, const char *name);
int lumat_is_property(const char *name);
extern const char lumat_property_names[];

/* Raise: no such name, no such kind of key. */
int lumat_unknown_name(lua_State *L, const char *name);
int lumat_bad_key(lua_State *L, int key);

int lumat_newindex(lua_State *L);    /* __newindex */
void lumat_open_visit(lua_State *L); /* eachrow eachcol pairs */

#endif
