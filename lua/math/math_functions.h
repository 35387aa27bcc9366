/* The functions and operators on matrices, each a row beside its code: made
 * from values, indexed, computed, reduced, multiplied, solved, rearranged.
 *
 * Other rooms may make matrices as the functions here do, and open them. */
#ifndef LUMAT_MATH_FUNCTIONS_H
#define LUMAT_MATH_FUNCTIONS_H

#include "value.h"

/* Pushes a matrix (of nested tables, a row each) or a vector (of a plain one)
 * made of the table at index, of that type on that device. Raises "name: …" for
 * ragged rows and what is neither number nor boolean. */
gpu_matrix *lumat_push_from_table(lua_State *L, int index, const char *name,
                                  gpu_dtype dtype, gpu_device *device);

/* Pushes a new matrix of m's type on m's device, rows x cols (of a vector ndim
 * and cols are 1), its elements unspecified. */
gpu_matrix *lumat_push_like(lua_State *L, const gpu_matrix *m, int ndim,
                            int64_t rows, int64_t cols);

/* Pushes a userdata with m's elements, row-major, in m's own type (float,
 * double, or a byte of truth), and returns it. Waits for the device. */
void *lumat_push_host_copy(lua_State *L, const gpu_matrix *m);

/* Pushes element `at` of those of that type that data points to, a number or a
 * boolean; an unknown one where data is NULL, of a dry run. */
void lumat_push_value(lua_State *L, const void *data, gpu_dtype dtype,
                      int64_t at);

/* Where the first NaN or Inf of m stands, from 0 on; 0: there is none, or in a
 * dry run nobody knows. */
int lumat_find_odd(lua_State *L, const gpu_matrix *m, int64_t *row,
                   int64_t *col);

/* Warns where m, which was computed with in that type, has NaN or Inf, or is
 * poor: how many digits that costs, and what helps. m: NULL of a sparse one. */
void lumat_warn_if_poor(lua_State *L, const char *operation,
                        const gpu_matrix *m, gpu_dtype type,
                        const gpu_condition *c);

/* The seed and the call of what is drawn next: of the options at that place, or
 * the generator's, which goes on. Its kind and limits are for the caller. */
gpu_random lumat_next_random(lua_State *L, int options);
/* What seed(seed, call) would bring back. */
void lumat_random_state(uint64_t *seed, uint64_t *call);

/* "T rows cols …": the properties of dense and of sparse matrices, with a blank
 * or more between them. */
extern const char lumat_property_names[];
extern const char lumat_sparse_property_names[];

/* One file each, in this order: a group of the reference lists its functions
 * as they were opened. */
void lumat_open_make(lua_State *L);    /* mat zeros … range … rand … */
void lumat_open_index(lua_State *L);   /* A[…] A(…) #A */
void lumat_open_ops(lua_State *L);     /* ops.def, and the operators */
void lumat_open_product(lua_State *L); /* matmul dot kernels … */
void lumat_open_complex_functions(lua_State *L); /* complex c64 im … */
void lumat_open_shape(lua_State *L);   /* f64 to reshape eachrow … */
void lumat_open_map(lua_State *L);     /* map */
void lumat_open_arrange(lua_State *L); /* diag take cumsum sort hcat tile … */
void lumat_open_sparse_functions(lua_State *L); /* sparse(…), S[…] */
/* What ops.c and product.c open beside their own. */
void lumat_open_reductions(lua_State *L);
void lumat_open_linear(lua_State *L); /* A ^ n, solve inv det */
void lumat_open_factor_steps(lua_State *L);
void lumat_open_fft_functions(lua_State *L); /* fft ifft rfft … */
void lumat_open_statistics_steps(lua_State *L);
void lumat_open_data_steps(lua_State *L);
void lumat_open_progress_steps(lua_State *L);
void lumat_open_graph_steps(lua_State *L);
void lumat_open_sparse_steps(lua_State *L);
void lumat_open_moving_steps(lua_State *L);

/* The elements of matrices on a GPU that were read one by one are counted, by
 * line of a script: with 1000 of one matrix a note says so, once; with
 * --strict an error. LUMAT_COUNT_READS=cpu counts those on the CPU, too. */
void lumat_open_reads(lua_State *L, int is_strict);

/* Is one of the arguments 1 … count a sparse matrix? And the result of an
 * operation on them then, pushed; options: the index of its table or 0. */
int lumat_has_sparse(lua_State *L, int count);
int lumat_push_sparse_op(lua_State *L, gpu_op op, int count, int options);

/* Functions of which an argument is sparse, told apart by the dense ones of
 * their names: each reads the arguments and pushes its result. */
int lumat_push_sparse_diagonal(lua_State *L); /* diag(S [, k]), a vector */
int lumat_push_sparse_triangle(lua_State *L, int is_lower); /* tril triu */
int lumat_push_sparse_kron(lua_State *L);
/* hcat (axis 2) or vcat (1) of all arguments; the result is sparse. */
int lumat_push_sparse_joined(lua_State *L, const char *name, int axis);
int lumat_push_sparse_reshaped(lua_State *L);

#endif
