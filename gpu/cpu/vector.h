/* The innermost loops, compiled once for each instruction set: every file
 * vector_*.c is the same text (vector_body.h) under another target, and the
 * best table the processor can run is taken when the backend starts. Floating
 * point is the same in all of them but for SLEEF's own last bits: lanes are
 * counted in elements, not in registers, and nothing is contracted to FMA. */
#ifndef GPU_CPU_VECTOR_H
#define GPU_CPU_VECTOR_H

#include "backend.h"

/* r may be x, y or z, not a shifted part of one. */
typedef void gpu_cpu_loop(void *r, const void *x, const void *y, const void *z,
                          size_t n);

/* log(exp(x) + exp(y)), right even where it is almost 0; both above -745, the
 * larger in -2 .. 0. */
double gpu_cpu_logaddexp(double x, double y);

typedef struct gpu_cpu_vector {
    const char *name;
    gpu_cpu_loop *map[2][GPU_OPS]; /* by compute type; NULL for row, col */
    void (*convert[GPU_DTYPES][GPU_DTYPES])(void *to, const void *from,
                                            size_t n); /* [from][to] */
    /* n >= 1. Sums and products in f64; the extremes are NaN if any is. */
    double (*sum[2])(const void *x, size_t n);
    double (*prod[2])(const void *x, size_t n);
    double (*smallest[2])(const void *x, size_t n);
    double (*largest[2])(const void *x, size_t n);
    /* The same for many columns at once: r[j] takes column j of x. */
    void (*sum_rows[2])(double *r, const void *x, size_t rows, size_t cols);
    void (*smallest_rows[2])(double *r, const void *x, size_t rows,
                             size_t cols);
    void (*largest_rows[2])(double *r, const void *x, size_t rows, size_t cols);
    double (*dot[2])(const void *x, const void *y, size_t n);
    /* Philox4x32-10: the words of blocks first .. first + n - 1. */
    void (*philox)(uint32_t (*to)[4], uint64_t first, size_t n, uint64_t call,
                   uint64_t seed);
    /* Uniforms a in (0, 1] and b in [0, 1) become two normals each. */
    void (*normal)(double *a, double *b, size_t n);
} gpu_cpu_vector;

extern const gpu_cpu_vector gpu_cpu_vector_base, gpu_cpu_vector_avx2,
    gpu_cpu_vector_avx512;

/* The table in use. */
extern const gpu_cpu_vector *gpu_cpu_vectors;

#endif
