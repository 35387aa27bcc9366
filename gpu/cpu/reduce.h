/* What the files of the reductions share: partial results and how they join.
 * The order of joining is fixed by the shape alone. */
#ifndef GPU_CPU_REDUCE_H
#define GPU_CPU_REDUCE_H

#include "plan.h"

typedef struct gpu_cpu_partial {
    double value;  /* the sum, the extreme, the mantissa of a product */
    double rest;   /* what rounding took from the sum */
    int64_t place; /* of the extreme, -1 for none; a product's exponent */
} gpu_cpu_partial;

int gpu_cpu_is_extreme(gpu_reduction kind);
int gpu_cpu_wants_smallest(gpu_reduction kind);
int gpu_cpu_wants_place(gpu_reduction kind);

gpu_cpu_partial gpu_cpu_nothing(gpu_reduction kind);
int gpu_cpu_beats(gpu_reduction kind, const gpu_cpu_partial *a,
                  const gpu_cpu_partial *b);
void gpu_cpu_merge(gpu_reduction kind, gpu_cpu_partial *into,
                   const gpu_cpu_partial *p);
double gpu_cpu_finish(gpu_reduction kind, const gpu_cpu_partial *p);

/* Stores the final values of lines first .. first + n - 1 of a result that is
 * a row or a column. */
void gpu_cpu_store_lines(const gpu_view *out, int64_t first, int64_t n,
                         const double *value);

/* Sums and extremes down the columns of a grid whose rows run along memory.
 * axis 1 or 2. */
gpu_status gpu_cpu_reduce_down(const gpu_program *p, const gpu_view *in,
                               int axis, const gpu_view *out);

#endif
