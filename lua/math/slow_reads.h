/* What is told of scripts that read matrices one element at a time. */
#ifndef LUMAT_SLOW_READS_H
#define LUMAT_SLOW_READS_H

#include "gpu.h"
#include "lua.h"

/* The elements of matrices on a GPU that were read one by one are counted, by
 * line of a script: with 1000 of one matrix a note says so, once; with
 * --strict an error. LUMAT_COUNT_READS=cpu counts those on the CPU, too. */
void lumat_open_reads(lua_State *L, int is_strict);
void lumat_count_read(lua_State *L, const gpu_matrix *m);

#endif
