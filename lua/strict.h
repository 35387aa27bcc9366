/* What is told of scripts that would be right but for a slip, or slow without
 * need; with --strict most of it is an error. */
#ifndef LUMAT_STRICT_H
#define LUMAT_STRICT_H

#include "gpu.h"
#include "lua.h"

/* From now on reading a global that was never set is an error, and a function
 * that sets a new one is told. For --strict. */
void lumat_make_strict(lua_State *L);
/* Is the table on top's metatable the one that does so? */
int lumat_is_strict(lua_State *L, int index);

/* The elements of matrices on a GPU that were read one by one are counted, by
 * line of a script: with 1000 of one matrix a note says so, once; with
 * --strict an error. LUMAT_COUNT_READS=cpu counts those on the CPU, too. */
void lumat_open_reads(lua_State *L, int is_strict);
void lumat_count_read(lua_State *L, const gpu_matrix *m);

#endif
