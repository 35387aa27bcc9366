/* Keys of A[…] as places, for the files of this room alone: reading (index.c),
 * writing (assign.c), sparse matrices, and take and put, which have lists of
 * places as well. Indices of Lua begin with 1 and count from the end where they
 * are negative; a place is 0-based and inside. */
#ifndef LUMAT_INDEX_H
#define LUMAT_INDEX_H

#include "math_functions.h"
#include "parse.h"

/* --- one key -------------------------------------------------------------- */

/* The matrix at 1 that is indexed; raises "name: …" when it has been freed. */
gpu_matrix *lumat_check_indexed(lua_State *L, const char *name);
/* Of m these look at the shape alone: that of a sparse matrix at 1 does.
 * The place of the index at arg along axis 1 or 2; raises outside. */
int64_t lumat_check_place(lua_State *L, const gpu_matrix *m, int arg, int axis);
/* A[{…}] and A["…"]: the parts, of rows and of columns, named by the table or
 * string at key. Of a table with lists the places stay pushed: out must be used
 * before they are popped. */
void lumat_table_parts(lua_State *L, const gpu_matrix *m, int key,
                       lumat_part out[2]);
void lumat_string_parts(lua_State *L, const gpu_matrix *m, int key,
                        lumat_part out[2]);
/* Is the table at key the place of one element, its numbers counted from the
 * start? Then place gets them, from 0; lumat_table_parts takes all others. */
int lumat_names_element(lua_State *L, const gpu_matrix *m, int key,
                        lua_Integer place[2]);
/* Could the string be a slice, rather than a name? */
int lumat_is_slice(const char *key);
/* Raise: no such name, no such kind of key. */
int lumat_unknown_name(lua_State *L, const char *name);
int lumat_bad_key(lua_State *L, int key);

/* --- lists of places ------------------------------------------------------ */

/* One side of what is indexed by a list, for places and messages. */
typedef struct lumat_side {
    const char *name;     /* the operation */
    const char *what;     /* one of size: "row", "column", "element", "place" */
    int64_t size;         /* how many there are */
    const gpu_matrix *of; /* at 1, named where a place is outside; or NULL */
} lumat_side;

/* Pushes a userdata of the places that the matrix at list names, and returns
 * it; *count gets how many: those of a vector, negative ones from the end, or
 * where a mask as long as the side is true. They are read on the host. Raises
 * for other places, masks and shapes. */
const int64_t *lumat_push_places(lua_State *L, const lumat_side *side, int list,
                                 int64_t *count);
/* Does the matrix choose elements of m, and not places along its first side? */
int lumat_is_element_mask(const gpu_matrix *m, const gpu_matrix *mask);
/* The part of m's first side that the matrix at key lists, and all columns;
 * pushes a userdata that must stay while out is used. */
void lumat_list_parts(lua_State *L, const gpu_matrix *m, int key,
                      lumat_part out[2]);

/* --- what parts are of a matrix ------------------------------------------- */

/* Is this the place of one element? */
int lumat_is_element(const gpu_matrix *m, const lumat_part part[2]);
/* Pushes the element, a number or a boolean; returns 1. */
int lumat_push_element(lua_State *L, const gpu_matrix *m, int64_t i, int64_t j);
/* Pushes the view; single indices drop their dimension, and of a side with a
 * list all is in it. */
void lumat_push_block(lua_State *L, const gpu_matrix *m,
                      const lumat_part part[2]);
/* The lists of parts as sides of the block that lumat_push_block makes. They
 * stay the userdata's of lumat_push_places. */
typedef struct lumat_lists {
    const int64_t *rows, *cols; /* NULL: all */
    int64_t nrows, ncols;
} lumat_lists;
lumat_lists lumat_lists_of(const gpu_matrix *m, const lumat_part part[2]);

/* --- writing -------------------------------------------------------------- */

int lumat_is_property(const char *name); /* of a dense matrix */
int lumat_newindex(lua_State *L);        /* __newindex */

#endif
