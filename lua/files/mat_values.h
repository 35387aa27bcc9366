/* What the readers of MATLAB's files share: arrays of either kind of file as
 * values. For mat_files.c and mat_hdf_files.c. */
#ifndef LUMAT_MAT_VALUES_H
#define LUMAT_MAT_VALUES_H

#include "arguments.h"
#include "complex_value.h"
#include "data_formats.h"
#include "formats.h"

/* Each pushes a value, or returns 0 after a warning that it is left out. dtype
 * is the one that was asked for, or GPU_ALL_DTYPES. */
int lumat_push_mat_array(lua_State *L, const lumat_input *in,
                         const lumat_mat_array *a, gpu_dtype dtype);
int lumat_push_mat_sparse(lua_State *L, const lumat_input *in,
                          const lumat_mat_array *a, gpu_dtype dtype);
int lumat_push_mat_text(lua_State *L, const lumat_mat_array *a);
/* Pushes host memory with count elements from `first` on as numbers. */
double *lumat_push_mat_numbers(lua_State *L, const lumat_input *in,
                               const lumat_elements *e, int64_t first,
                               int64_t count);

/* Version 7.3: sets the wanted values in the table at that index. */
void lumat_push_hdf_values(lua_State *L, lumat_input *in, const char *bytes,
                           size_t length, gpu_dtype dtype, int values);

#endif
