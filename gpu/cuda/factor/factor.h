/* Factorisations on the GPU: the rungs, and the entries of the backend's table
 * that they are behind (backend.h).
 *
 *   cusolver.cu     the peer, for all kinds: loads liblumat-cuda-solver.so
 *   lu_split16.cu   our own LU: pivot_columns.h
 *   lu_complex.cu   our own LU of c64: pivot_complex.h
 *   chol_split16.cu our own Cholesky: definite_block.h; of c64 chol_complex.cu
 *   qr_split16.cu   our own QR: reflect_columns.h, join_columns.h; of c64
 *                   reflect_complex.h
 *   padded.cu       what these work on, products, triangles: block_solve.h
 *   refine.cu       f64 systems by f32 factors: vector_solve.h
 *   batch.cu        many small systems at once: pivot_numbers.h
 *   systems.cu      LU by either, as gpu/ wants it: factors that come back, or
 *                   solve, determinant, inverse_norm */
#ifndef GPU_CUDA_FACTOR_H
#define GPU_CUDA_FACTOR_H

#include "kernel.h"

/* The entries. */
const gpu_kernel *gpu_cuda_choose_factor(void *device, const gpu_factoring *f);
gpu_status gpu_cuda_factor(void *device, gpu_factoring *f);
gpu_status gpu_cuda_solve(void *device, const gpu_view *a, const gpu_view *b,
                          gpu_inverse_size *inverse);
gpu_status gpu_cuda_determinant(void *device, const gpu_view *a, double *out);
gpu_status gpu_cuda_inverse_norm(void *device, const gpu_view *a,
                                 gpu_inverse_size *inverse);

/* Before the device's stream and memory go. */
void gpu_cuda_solver_close(cuda_device *d);

/* --- between the files ---------------------------------------------------- */

/* Of all kinds that are no rungs of the list. */
extern const gpu_kernel gpu_cuda_factor_cusolver;

/* GPU_FACTOR_BATCH, of squares whose rows registers hold. */
extern const gpu_kernel gpu_cuda_batch;
bool gpu_cuda_can_batch(const gpu_view *a);

/* Can our own LU do a? And then: order, of the device, gets the rows' (see
 * cuda_lu). Ahead: the next panel is factored while the rest is updated, where
 * the driver allows it. Where the factors are not all finite, or pivots so
 * small that digits are lost, a is as it was. Waits. */
bool gpu_cuda_can_own_lu(const cuda_device *d, const gpu_view *a);
gpu_status gpu_cuda_own_lu(cuda_device *d, const gpu_view *a, int is_ahead,
                           int *order, int *is_fine);
/* Of such a side it is faster. */
bool gpu_cuda_is_for_ahead(int64_t n);

/* The same of c64. */
bool gpu_cuda_can_complex_lu(const cuda_device *d, const gpu_view *a);
gpu_status gpu_cuda_complex_lu(cuda_device *d, const gpu_view *a, int is_ahead,
                               int *order, int *is_fine);

/* a x = b, f64 and row by row without gaps, by f32 factors: b becomes x, a
 * stays. GPU_UNSUPPORTED, or GPU_MEMORY, where it comes to nothing: then b is
 * as it was. */
bool gpu_cuda_can_refine(const cuda_device *d, const gpu_view *a,
                         const gpu_view *b);
gpu_status gpu_cuda_solve_by_refinement(cuda_device *d, const gpu_view *a,
                                        const gpu_view *b,
                                        gpu_inverse_size *inverse);

/* Can our own QR do a? */
bool gpu_cuda_can_own_qr(const cuda_device *d, const gpu_view *a);

/* Can our own Cholesky do a, which is square? */
bool gpu_cuda_can_own_cholesky(const cuda_device *d, const gpu_view *a);

/* cuSOLVER's: a, column by column, becomes L and U; b the x of a x = b or
 * a^T x = b. */
gpu_status gpu_cuda_getrf(cuda_device *d, const gpu_view *a, int64_t *pivots);
gpu_status gpu_cuda_getrs(cuda_device *d, const gpu_view *a,
                          const int64_t *pivots, int turned, const gpu_view *b);
/* LU by f's rung. */
gpu_status gpu_cuda_factor_lu(cuda_device *d, gpu_factoring *f);

/* Is liblumat-cuda-solver.so there? */
bool gpu_cuda_has_solver(void);

/* An LU that stays on the device: a, column by column, has been factored. One
 * of the two tells of its rows, on the device: the exchanges, one after the
 * other, from 1; or the order they are in, from 0. */
typedef struct cuda_lu {
    gpu_view a; /* L and U */
    int64_t *pivots;
    int *order;
    int64_t zero; /* the first pivot that is, from 1; or 0 */
} cuda_lu;

/* By the rung; to be ended where it succeeds. */
gpu_status gpu_cuda_begin_lu(cuda_device *d, const gpu_kernel *rung,
                             const gpu_view *a, cuda_lu *lu);
/* The order of the rows: L U is the rows places[0 .. rows - 1]. */
gpu_status gpu_cuda_read_places(cuda_device *d, const cuda_lu *lu,
                                int64_t *places);
void gpu_cuda_end_lu(cuda_device *d, cuda_lu *lu);
/* b, column by column, becomes the x of a x = b, or a^T x = b. */
gpu_status gpu_cuda_solve_lu(cuda_device *d, const cuda_lu *lu, int turned,
                             const gpu_view *b);
/* b becomes the x of a triangle a x = b; how: as GPU_FACTOR_TRIANGLE has it. */
gpu_status gpu_cuda_solve_triangle(cuda_device *d, const gpu_factoring *how,
                                   const gpu_view *a, const gpu_view *b);

/* Where a's diagonal has its first zero, from 1; or 0. Waits. GPU_UNSUPPORTED
 * where it has numbers that the CPU should divide by: subnormal ones and the
 * largest, or complex ones whose squares might be such. */
gpu_status gpu_cuda_look_at_diagonal(cuda_device *d, const char *name,
                                     const gpu_view *a, int64_t *zero);
/* The bytes of v's elements, without gaps. */
size_t gpu_cuda_view_bytes(const gpu_view *v);
/* Memory of the device to work in, to be freed by gpu_cuda_free. */
gpu_status gpu_cuda_take_room(cuda_device *d, size_t bytes, void **data);
/* to = from, of one shape and type, on the device. */
gpu_status gpu_cuda_copy_view(cuda_device *d, const gpu_view *from,
                              const gpu_view *to);

#endif
