/* What the files of the CPU backend share; only they and tests include it.
 *
 * A view is borrowed: nothing here frees what it points to, or keeps it after
 * a call. Its elements are f32, f64 or bool, its steps count elements and may
 * be zero or negative.
 *
 * Helpers that run on worker threads return a status and leave the message to
 * gpu_cpu_parallel or gpu_cpu_stop, which run on the caller's thread. */
#ifndef GPU_CPU_H
#define GPU_CPU_H

#include "backend.h"

/* What gpu/ lends us: how to fail, and the flag of an interrupt. Set before
 * any other function is called, for good. */
extern const gpu_host *gpu_cpu_host;

/* Has the user asked to stop? Any thread may ask, as often as it likes. */
int gpu_cpu_interrupted(void);
/* The progress of work that lasts; gpu_cpu_parallel counts its own. A stage
 * is begun and ended on the caller's thread, and advances where begin gave 1;
 * see progress.h. */
int gpu_cpu_begin_stage(int64_t total);
void gpu_cpu_advance(int64_t units);
void gpu_cpu_end_stage(int began);
/* Sets the message of a status that a helper returned, and returns the status;
 * GPU_OK passes. On the caller's thread. */
gpu_status gpu_cpu_stop(gpu_status status);

size_t gpu_cpu_size(gpu_dtype t); /* bytes of an element */
/* Bytes this process may still take, and may have at all: the least of the
 * machine's, its control group's and its own limits. */
void gpu_cpu_memory_limits(size_t *available, size_t *total);

/* Of fewer elements waking a thread, about 10 us, is not worth it. */
enum { GPU_CPU_WORTH_THREADS = 65537 };

/* Cuts 0 .. count - 1 into ranges and calls work for each, on all cores when
 * there are so many elements that it pays. work decides its results by its
 * position alone, so that they do not depend on the cut; it may run on several
 * threads at once and polls gpu_cpu_interrupted where it lasts. Returns after
 * all of it, with the worst status, whose message is set. */
typedef gpu_status gpu_cpu_work(void *context, int64_t first, int64_t last);
gpu_status gpu_cpu_parallel(int64_t count, int64_t elements, gpu_cpu_work *work,
                            void *context);
int gpu_cpu_threads(void); /* how many work at once */
/* Cuts work as for n threads from now on; 0: as many as there are. */
void gpu_cpu_set_threads(int n);

/* --- views: move.c -------------------------------------------------------- */

gpu_view gpu_cpu_turned(gpu_view v); /* transposed */
/* The block of rows x cols whose first element is v's (row, col). */
gpu_view gpu_cpu_part(const gpu_view *v, int64_t row, int64_t col, int64_t rows,
                      int64_t cols);
/* One row when its elements lie at one step, else the same view. */
gpu_view gpu_cpu_flat(gpu_view v);
/* to = from, of one shape, converted as the types say (bool: not 0). Reads its
 * operand by rows or columns and asks nobody whether to stop: meant for pieces
 * that fit a cache. gpu_cpu_copy is for whole matrices. */
void gpu_cpu_convert(const gpu_view *from, const gpu_view *to);
/* Elements first .. first + n - 1 in row-major order, to and from a buffer
 * of n elements of type t without gaps. */
void gpu_cpu_load(const gpu_view *v, int64_t first, int64_t n, gpu_dtype t,
                  void *buffer);
void gpu_cpu_store(const gpu_view *v, int64_t first, int64_t n, gpu_dtype t,
                   const void *buffer);
/* Converted to v's type. */
void gpu_cpu_store_one(const gpu_view *v, int64_t row, int64_t col,
                       double value);

/* --- products of many factors that must not overflow on the way ----------- */

typedef struct gpu_cpu_scaled { /* mantissa * 2^exponent */
    double mantissa;
    int64_t exponent;
} gpu_cpu_scaled;
/* product *= factor; {1, 0} is where to begin. Zeros, infinities and NaN stay
 * what they are. */
void gpu_cpu_scale(gpu_cpu_scaled *product, double factor);
double gpu_cpu_unscale(gpu_cpu_scaled product); /* as a number */

/* --- what many need ------------------------------------------------------- */

/* Of a loop that is put together anew where an argument is known. */
#define INLINE static inline __attribute__((always_inline))

static inline int64_t gpu_cpu_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How many pieces of a size cover count. */
static inline int64_t gpu_cpu_pieces(int64_t count, int64_t size)
{
    return (count + size - 1) / size;
}

/* The bytes of its elements without gaps. */
size_t gpu_cpu_view_bytes(const gpu_view *v);
/* to = from, of one shape, converted; on all cores, can be stopped. */
gpu_status gpu_cpu_copy(const gpu_view *from, const gpu_view *to);
/* v becomes one of its shape without gaps in new memory, *room, which the
 * caller frees with gpu_cpu_free(NULL, *room, gpu_cpu_view_bytes(v)), also
 * where a copy failed; a copy if its elements are to be read. GPU_MEMORY
 * without a message: then there is no *room. */
gpu_status gpu_cpu_make_dense(gpu_view *v, int read, void **room);

/* --- the entries of the table ---------------------------------------------
 * What they promise stands in backend.h, under the same names. `device` may be
 * NULL: there is one. All of them wait. Freed blocks are kept for the next
 * ones; gpu_cpu_free takes the bytes that were asked for. */

gpu_status gpu_cpu_alloc(void *device, size_t bytes, void **data);
gpu_status gpu_cpu_clear(void *device, void *data, size_t bytes);
void gpu_cpu_free(void *device, void *data, size_t bytes);
void gpu_cpu_trim(void *device);
/* Before the first of these. */
void gpu_cpu_set_up_memory(void);
gpu_status gpu_cpu_copy_bytes(void *device, void *to, const void *from,
                              size_t n);
gpu_status gpu_cpu_bring(void *device, gpu_lane lane, const gpu_view *from,
                         const gpu_view *to);
gpu_status gpu_cpu_fetch(void *device, gpu_lane lane, const gpu_view *from,
                         const gpu_view *to);
gpu_status gpu_cpu_map(void *device, const gpu_program *p, const gpu_view *in,
                       const gpu_view *out);
gpu_status gpu_cpu_reduce(void *device, const gpu_program *p,
                          const gpu_view *in, int axis, const gpu_view *out);
gpu_status gpu_cpu_gather(void *device, const gpu_view *from,
                          const int64_t *rows, const int64_t *cols,
                          const gpu_view *to);
gpu_status gpu_cpu_scatter(void *device, const gpu_view *from,
                           const int64_t *rows, const int64_t *cols,
                           const gpu_view *to);
gpu_status gpu_cpu_pick(void *device, const gpu_picking *p);
gpu_status gpu_cpu_compress(void *device, const gpu_view *from,
                            const gpu_view *mask, const gpu_view *to);
gpu_status gpu_cpu_expand(void *device, const gpu_view *from,
                          const gpu_view *mask, const gpu_view *to);
/* Products of c64 and c128, too. */
gpu_status gpu_cpu_scan(void *device, gpu_scan_kind kind, int axis,
                        const gpu_view *from, const gpu_view *to);
gpu_status gpu_cpu_sort(void *device, int axis, int descending,
                        const gpu_view *from, const gpu_view *to,
                        const gpu_view *order);
gpu_status gpu_cpu_first(void *device, int axis, int descending,
                         const gpu_view *from, const gpu_view *to,
                         const gpu_view *order);
/* Of rows that are numbers alone: the first of each, as many as `to` has
 * columns. GPU_UNSUPPORTED: another way is faster, or there are fewer. */
gpu_status gpu_cpu_first_numbers(int descending, const gpu_view *from,
                                 const gpu_view *to);
gpu_status gpu_cpu_select(void *device, int axis, int spreads_nan,
                          const gpu_view *from, const int64_t *places,
                          int64_t count, const gpu_view *to);
gpu_status gpu_cpu_search(void *device, const gpu_view *sorted,
                          const gpu_view *values, int is_after,
                          const gpu_view *to);
gpu_status gpu_cpu_runs(void *device, const gpu_view *sorted, gpu_runs *r);
gpu_status gpu_cpu_group(void *device, const gpu_grouping *g);
gpu_status gpu_cpu_fold(void *device, const gpu_folding *f);
gpu_status gpu_cpu_windows(void *device, const gpu_windows *w);
gpu_status gpu_cpu_variates(void *device, const gpu_variates *v,
                            const gpu_view *to);
gpu_status gpu_cpu_random(void *device, const gpu_random *r,
                          const gpu_view *to);
gpu_status gpu_cpu_survey(void *device, const gpu_view *v, double scale,
                          gpu_survey *out);
gpu_status gpu_cpu_bins(void *device, const gpu_view *v, const gpu_bins *how,
                        int64_t *counts);
gpu_status gpu_cpu_blocks(void *device, gpu_block_kind kind, const gpu_view *v,
                          const gpu_view *to);
int gpu_cpu_kernels(const gpu_kernel *const **list);
const gpu_kernel *gpu_cpu_choose_matmul(void *device, const gpu_gemm *p);
const gpu_kernel *gpu_cpu_choose_dot(void *device, const gpu_view *x,
                                     const gpu_view *y);
gpu_status gpu_cpu_sparse_places(void *device, const gpu_view *from,
                                 int32_t *to, int64_t *largest, int64_t *wrong);
gpu_status gpu_cpu_sparse_build(void *device, const gpu_triplet_lists *t,
                                int32_t *starts, int32_t *columns, void *values,
                                int64_t *count);
gpu_status gpu_cpu_sparse_transpose(void *device, const gpu_csr *s,
                                    int32_t *starts, int32_t *columns,
                                    void *values);
gpu_status gpu_cpu_sparse_from_dense(void *device, const gpu_view *m,
                                     int32_t *starts, int32_t *columns,
                                     void *values, int64_t *count);
gpu_status gpu_cpu_sparse_keep(void *device, const gpu_csr *s,
                               const gpu_sparse_choice *choice, int32_t *starts,
                               int32_t *columns, void *values, int64_t *count);
gpu_status gpu_cpu_sparse_diagonals(void *device, const gpu_diagonals *d,
                                    int32_t *starts, int32_t *columns,
                                    void *values, int64_t *count);
gpu_status gpu_cpu_sparse_list(void *device, const gpu_csr *s, double *rows,
                               double *cols);
gpu_status gpu_cpu_sparse_to_dense(void *device, const gpu_csr *s, void *to);
gpu_status gpu_cpu_sparse_product(void *device, const gpu_sparse_call *p);
gpu_status gpu_cpu_sparse_turned_product(void *device,
                                         const gpu_sparse_call *p);
gpu_status gpu_cpu_sparse_combine(void *device, gpu_sparse_op op,
                                  const gpu_csr *a, const gpu_csr *b,
                                  gpu_csr_result *out);
gpu_status gpu_cpu_sparse_sample(void *device, const gpu_csr *s,
                                 const gpu_view *m, void *out);
gpu_status gpu_cpu_sparse_reduce(void *device, const gpu_sparse_folding *how,
                                 const gpu_csr *s, double *out);
gpu_status gpu_cpu_sparse_lookup(void *device, const gpu_csr *s,
                                 const gpu_csr *places, void *out);
gpu_status gpu_cpu_sparse_along(void *device, const gpu_csr *s,
                                const gpu_sparse_path *path, void *out);
gpu_status gpu_cpu_sparse_gather(void *device, const gpu_csr *s,
                                 const gpu_sparse_picking *how,
                                 gpu_csr_result *out);
gpu_status gpu_cpu_sparse_arrange(void *device, const gpu_sparse_arranging *how,
                                  gpu_csr_result *out);
gpu_status gpu_cpu_sparse_factor(void *device, gpu_sparse_factoring how,
                                 const gpu_csr *s, gpu_sparse_report *told,
                                 void **out);
gpu_status gpu_cpu_sparse_solve(void *device, void *made, const gpu_csr *s,
                                int turned, const void *b, void *x,
                                int64_t count);
void gpu_cpu_sparse_forget(void *device, void *made);
/* What sparse_factor makes within a band, in csr_band.c. x, count lines, is b
 * before. */
typedef struct gpu_cpu_band gpu_cpu_band;
gpu_status gpu_cpu_band_factor(const gpu_csr *s, int is_positive,
                               gpu_sparse_report *told, gpu_cpu_band **out);
gpu_status gpu_cpu_band_solve(const gpu_cpu_band *f, int turned, void *x,
                              int64_t count);
void gpu_cpu_band_free(gpu_cpu_band *f);
gpu_status gpu_cpu_sparse_incomplete(void *device, const gpu_incomplete *of,
                                     gpu_sparse_breakdown *told);
gpu_status gpu_cpu_solve(void *device, const gpu_view *a, const gpu_view *b,
                         gpu_inverse_size *inverse);
gpu_status gpu_cpu_determinant(void *device, const gpu_view *a, double *out);
gpu_status gpu_cpu_inverse_norm(void *device, const gpu_view *a,
                                gpu_inverse_size *inverse);
gpu_status gpu_cpu_factor(void *device, gpu_factoring *f);
gpu_status gpu_cpu_complex_map(void *device, const gpu_complex_call *call);
gpu_status gpu_cpu_fft(void *device, const gpu_fft_call *c);
/* For tests: lines of so many complex elements are cut to be transformed; 0: as
 * it is without. */
void gpu_cpu_set_long_lines(int64_t from);
/* For tests: after so many partitions numbers are sorted another way; 0: as it
 * is without. */
void gpu_cpu_set_sort_depth(int partitions);
gpu_status gpu_cpu_convolve(void *device, const gpu_convolution *call);
/* c -= a b, on all cores. */
gpu_status gpu_cpu_subtract_product(gpu_view a, gpu_view b, gpu_view c);
/* A product of a matrix with its own transpose that is worth it, by products of
 * its parts; GPU_UNSUPPORTED: it is none. */
gpu_status gpu_cpu_gram(void *device, const gpu_gemm *g,
                        gpu_status (*matmul)(void *device, const gpu_gemm *p));
/* The lower or upper triangle of a square block, with ones on its diagonal or
 * with what is there; and x, of contiguous rows, which becomes the solution of
 * block x = x. */
typedef struct gpu_cpu_triangle {
    int is_lower, is_unit;
    gpu_view block;
} gpu_cpu_triangle;
gpu_status gpu_cpu_solve_triangle(const gpu_cpu_triangle *t, gpu_view x);

/* Factorings without LAPACK. */
/* GPU_FACTOR_LOOK */
gpu_status gpu_cpu_look(gpu_factoring *f);
/* GPU_FACTOR_CHOLESKY of a large matrix; factor_block does that of a small one,
 * and returns which minor is not positive, or 0. */
gpu_status gpu_cpu_cholesky(gpu_factoring *f,
                            int64_t (*factor_block)(const gpu_view *a));
/* LU and CHOLESKY of a large complex matrix, by the library's routines for its
 * type, as Fortran has them, which several threads may call at once. */
typedef struct gpu_cpu_complex_blas {
    void (*getrf)(const int *m, const int *n, void *a, const int *lda,
                  int *pivots, int *info);
    void (*potrf)(const char *lower, const int *n, void *a, const int *lda,
                  int *info, size_t);
    void (*trsm)(const char *side, const char *lower, const char *trans,
                 const char *unit, const int *m, const int *n,
                 const void *alpha, const void *a, const int *lda, void *b,
                 const int *ldb, size_t, size_t, size_t, size_t);
    void (*gemm)(const char *trans_a, const char *trans_b, const int *m,
                 const int *n, const int *k, const void *alpha, const void *a,
                 const int *lda, const void *b, const int *ldb,
                 const void *beta, void *c, const int *ldc, size_t, size_t);
} gpu_cpu_complex_blas;
gpu_status gpu_cpu_complex_blocks(gpu_factoring *f,
                                  const gpu_cpu_complex_blas *blas);
/* LU and TRIANGLE of complex matrices: is it one of these? And then slowly. */
int gpu_cpu_is_complex_lu(const gpu_factoring *f);
gpu_status gpu_cpu_complex_lu(gpu_factoring *f);
/* GPU_FACTOR_BATCH */
gpu_status gpu_cpu_solve_batch(gpu_factoring *f);

/* The rungs: in kernels.c, packed.c and openblas.c; the first two for dots in
 * dot.c. */
#define KERNEL(symbol) extern const gpu_kernel symbol;
#include "cpu_kernels.def"
#undef KERNEL

/* Higham's gamma_k = k u / (1 - k u), for the unit roundoff of t. */
double gpu_cpu_gamma(gpu_dtype t, double k);
/* A product's bound whose sums are of the operands' type. */
double gpu_cpu_product_bound(gpu_dtype t, int64_t k);

#endif
