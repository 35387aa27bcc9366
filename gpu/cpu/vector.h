/* The innermost loops, compiled once for each instruction set: every file
 * vector_*.c is the same text (vector_body.h) under another target, and the
 * best table the processor can run is taken when the backend starts. Floating
 * point is the same in all of them, as lanes are counted in elements, not in
 * registers; but for the last bits of SLEEF's functions and of those of
 * vector_functions_body.h, and for products of matrices, which round once a
 * step where the processor multiplies and adds at once.
 *
 * Loops run on the thread that calls them, ask nobody whether to stop, and fail
 * never: they are for pieces that fit a cache. Arrays may begin anywhere. What
 * comes in pairs, [2], is for f32 and for f64. */
#ifndef GPU_CPU_VECTOR_H
#define GPU_CPU_VECTOR_H

#include "backend.h"

/* r may be x, y or z, not a shifted part of one. */
typedef void gpu_cpu_loop(void *r, const void *x, const void *y, const void *z,
                          size_t n);

/* log(exp(x) + exp(y)) for f64 (evaluate.c), right even where it is almost 0;
 * both above -745, the larger in -2 .. 0. */
double gpu_cpu_logaddexp(double x, double y);

/* A piece of c = alpha a b + beta c, with one rounding a step where the
 * processor multiplies and adds at once. c's elements lie side by side in its
 * rows; with a beta of 0 they are not read. Steps count elements. */
typedef struct gpu_cpu_product {
    int64_t rows, cols, k;
    const void *a; /* rows x k */
    int64_t a_row, a_col;
    const void *b; /* k x cols, the elements of a row side by side */
    int64_t b_row;
    void *c; /* rows x cols */
    int64_t c_row;
    double alpha, beta;
} gpu_cpu_product;
enum { GPU_CPU_CORNER = 16, GPU_CPU_SPLIT = 1024, GPU_CPU_BEHIND = 64 };
typedef void gpu_cpu_multiply(const gpu_cpu_product *t);

typedef struct gpu_cpu_vector {
    const char *name; /* "AVX2" */
    /* By compute type, then by gpu_op; NULL for row and col. */
    gpu_cpu_loop *const *map[2];
    /* Of a TEST the loop whose results are bytes of 0 and 1, for an r that is
     * none of x, y, z; NULL for other operations. */
    gpu_cpu_loop *const *truth[2];
    void (*convert[GPU_DTYPES][GPU_DTYPES])(void *to, const void *from,
                                            size_t n); /* [from][to] */
    /* n >= 1. Sums and products in f64; the extremes are NaN if any is. */
    double (*sum[2])(const void *x, size_t n);
    double (*prod[2])(const void *x, size_t n);
    double (*smallest[2])(const void *x, size_t n);
    double (*largest[2])(const void *x, size_t n);
    /* The same of what is not NaN; of nothing infinity, or less than all. */
    double (*smallest_number[2])(const void *x, size_t n);
    double (*largest_number[2])(const void *x, size_t n);
    /* The sums of the distances from `origin` and of their squares; n >= 1. */
    void (*moments[2])(const void *x, size_t n, double origin, double *sum,
                       double *squares);
    /* The same for many columns at once: r[j] takes column j of x, from one
     * row of which to the next it is `step` elements. Extremes are of x's own
     * type. */
    void (*sum_rows[2])(double *r, const void *x, int64_t step, size_t rows,
                        size_t cols);
    void (*squares_rows[2])(double *r, const void *x, int64_t step, size_t rows,
                            size_t cols);
    void (*moments_rows[2])(const double *origin, double *sum, double *squares,
                            const void *x, int64_t step, size_t rows,
                            size_t cols);
    void (*smallest_rows[2])(void *r, const void *x, int64_t step, size_t rows,
                             size_t cols);
    void (*largest_rows[2])(void *r, const void *x, int64_t step, size_t rows,
                            size_t cols);
    void (*smallest_number_rows[2])(void *r, const void *x, int64_t step,
                                    size_t rows, size_t cols);
    void (*largest_number_rows[2])(void *r, const void *x, int64_t step,
                                   size_t rows, size_t cols);
    /* so_far, of n, takes x element by element, and r what it is then; r may be
     * x. */
    void (*scan_row[2])(double *so_far, void *r, const void *x, size_t n,
                        gpu_scan_kind kind);
    /* Extremes of rows with their places, integers as wide as x's elements: the
     * row, of those from `row` on. Of equal ones the first; NaN before all. */
    void (*smallest_places[2])(void *r, void *place, const void *x,
                               int64_t step, size_t row, size_t rows,
                               size_t cols);
    void (*largest_places[2])(void *r, void *place, const void *x, int64_t step,
                              size_t row, size_t rows, size_t cols);
    /* The first place of the value, or of NaN when it is NaN; n: nowhere. */
    size_t (*find[2])(const void *x, double value, size_t n);
    /* That of the extreme of n >= 1 elements, in one pass, for lines that are
     * too short for two; NaN before all. */
    size_t (*smallest_place[2])(const void *x, size_t n, double *extreme);
    size_t (*largest_place[2])(const void *x, size_t n, double *extreme);
    /* How many bytes of 0 and 1 are 1. */
    size_t (*count)(const uint8_t *x, size_t n);
    /* Rows of elements that lie side by side become columns: element (i, j) of
     * `from` goes to j * to_step + i. The two do not overlap. */
    void (*turn[2])(void *to, int64_t to_step, const void *from,
                    int64_t from_step, int64_t rows, int64_t cols);
    double (*dot[2])(const void *x, const void *y, size_t n);
    /* The place of the largest |x|, the first of several; NaN is none, but
     * where it comes first. n >= 1 */
    size_t (*farthest[2])(const void *x, size_t n);
    /* Up to tile_rows x tile_cols. What lies behind b's columns, up to
     * tile_cols of them or half as many, is read and leads nowhere. Every
     * element is the sum of its k products in order, so that how a matrix is
     * cut into tiles does not show; k is cut by the caller. */
    int tile_rows, tile_cols[2];
    gpu_cpu_multiply *tile[2];
    /* Any number of rows, cols 1. Of the first the elements of a's rows lie
     * side by side (a_col 1), and each is summed in lanes. Of the second those
     * of its columns (a_row 1), which are added one after the other. Neither
     * minds how the rows are cut, if at multiples of tile_cols. */
    gpu_cpu_multiply *rows_by_vector[2], *columns_by_vector[2];
    /* x -= factor y; x /= by */
    void (*subtract_row[2])(void *x, const void *y, double factor, size_t n);
    void (*divide_row[2])(void *x, double by, size_t n);
    /* x, rows x n, becomes the solution of x u = x, where u is n x n, n at
     * most GPU_CPU_CORNER, of which only what is above its diagonal is read:
     * there are ones on it, and nothing below. */
    void (*solve_rows[2])(void *x, int64_t x_row, int64_t rows, const void *u,
                          int64_t u_row, int64_t n);
    /* n numbers in order, none of them NaN; zeros of both signs are alike.
     * NULL: there is none that is faster than passes by digits. */
    void (*sort[2])(void *x, size_t n);
    /* The same are parted about one of them, with the bits of pivot_bits set:
     * those up to it come first, or those below it where none is above. How
     * many they are; 0 where all are alike. n: GPU_CPU_SPLIT at least. NULL:
     * as sort. */
    size_t (*split[2])(void *x, size_t n, uint64_t pivot_bits);
    /* Of n elements those whose byte of 0 and 1 is 1; returns how many. What is
     * behind them in `to` is written to, up to GPU_CPU_BEHIND bytes. NULL: one
     * by one is as fast. */
    size_t (*pack[2])(void *to, const void *x, const uint8_t *truth, size_t n);
    /* The same of first, first + 1, … in the place of x. */
    size_t (*pack_places)(double *to, const uint8_t *truth, size_t n,
                          double first);
    /* Philox4x32-10: the words of blocks first .. first + n - 1. */
    void (*philox)(uint32_t (*to)[4], uint64_t first, size_t n, uint64_t call,
                   uint64_t seed);
    /* Uniforms a in (0, 1] and b in [0, 1) become two normals each. */
    void (*normal)(double *a, double *b, size_t n);
} gpu_cpu_vector;

extern const gpu_cpu_vector gpu_cpu_vector_base, gpu_cpu_vector_avx2,
    gpu_cpu_vector_avx512;

/* What tables for AVX2 and AVX-512 share, in vector_sort.c. */
void gpu_cpu_sort_numbers_f32(void *x, size_t n);
void gpu_cpu_sort_numbers_f64(void *x, size_t n);
size_t gpu_cpu_split_numbers_f32(void *x, size_t n, uint64_t pivot_bits);
size_t gpu_cpu_split_numbers_f64(void *x, size_t n, uint64_t pivot_bits);
size_t gpu_cpu_pack_f32(void *to, const void *x, const uint8_t *truth,
                        size_t n);
size_t gpu_cpu_pack_f64(void *to, const void *x, const uint8_t *truth,
                        size_t n);
size_t gpu_cpu_pack_places(double *to, const uint8_t *truth, size_t n,
                           double first);

/* The table in use. */
extern const gpu_cpu_vector *gpu_cpu_vectors;

/* A function that is compiled for the vectors of several processors, of which
 * the program takes the best; the results are the same. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define VECTORS __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define VECTORS
#endif

#endif
