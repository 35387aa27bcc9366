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
 * start? Then place gets them, from 0, and the numbers stay pushed;
 * lumat_table_parts takes all others. */
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
/* A list may stay where it lies, if that is m's device and, on a CPU, it is
 * long: then this pushes the places that it has as a matrix, which is the list
 * itself or, of a mask, a new one. NULL, and nothing is pushed: it may not. */
const gpu_matrix *lumat_push_list(lua_State *L, const gpu_matrix *m, int list,
                                  int64_t size);
/* Raises for the place that is none, of a list that gpu_take or gpu_put did not
 * want. */
void lumat_refuse_list(lua_State *L, const lumat_side *side,
                       const gpu_matrix *list);
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
 * stay the userdata's of lumat_push_places and lumat_push_list. Of a side both
 * are NULL where it is all. */
typedef struct lumat_lists {
    const int64_t *rows, *cols;
    int64_t nrows, ncols;
    const gpu_matrix *row_list, *col_list;
} lumat_lists;
lumat_lists lumat_lists_of(const gpu_matrix *m, const lumat_part part[2]);
/* out becomes what they list of m, whose device has row_list and col_list.
 * GPU_RANGE: one of these holds what is no place. */
gpu_status lumat_gather_lists(const gpu_matrix *m, const lumat_lists *from,
                              gpu_matrix *out);
/* The same the other way; they are all on the device, or none is. name: of what
 * asks for it, in messages. */
gpu_status lumat_scatter_lists(const char *name, const gpu_matrix *from,
                               const lumat_lists *to, gpu_matrix *m);
/* Raises where the status is not GPU_OK: for the place that is none among those
 * of m's parts, if there is one. */
void lumat_refuse_parts(lua_State *L, gpu_status status, const gpu_matrix *m,
                        const lumat_part part[2]);
/* Of parts that are to be written: lists that do not stay become places, which
 * are pushed, if there are any. */
void lumat_fetch_lists(lua_State *L, const gpu_matrix *m, lumat_part part[2]);
/* Is a list that can stay worth staying where it says what is written? What
 * finds repeated places goes over the side as well. */
int lumat_is_worth_staying(const gpu_matrix *m, int64_t listed, int64_t size);

/* --- writing -------------------------------------------------------------- */

int lumat_is_property(const char *name); /* of a dense matrix */
int lumat_newindex(lua_State *L);        /* __newindex */

#endif
