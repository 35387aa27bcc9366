/* Partial results of reductions and how they join. */
#include <math.h>
#include "reduce.h"

int gpu_cpu_is_extreme(gpu_reduction kind)
{
    return kind != GPU_REDUCE_sum && kind != GPU_REDUCE_prod;
}

int gpu_cpu_wants_smallest(gpu_reduction kind)
{
    return kind == GPU_REDUCE_min || kind == GPU_REDUCE_argmin;
}

int gpu_cpu_wants_place(gpu_reduction kind)
{
    return kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax;
}

gpu_cpu_partial gpu_cpu_nothing(gpu_reduction kind)
{
    gpu_cpu_partial p = {0, 0, 0};
    if (kind == GPU_REDUCE_prod)
        p.value = 1;
    if (gpu_cpu_is_extreme(kind))
        p.place = -1;
    return p;
}

/* Knuth, The Art of Computer Programming 2, 4.2.2: the sum and its error. */
static void merge_sum(gpu_cpu_partial *into, double value, double rest)
{
    double s = into->value + value;
    double b = s - into->value;
    double error = (into->value - (s - b)) + (value - b);
    into->value = s;
    into->rest += isfinite(error) ? error + rest : 0;
}

int gpu_cpu_beats(gpu_reduction kind, const gpu_cpu_partial *a,
                  const gpu_cpu_partial *b)
{
    int a_nan = isnan(a->value), b_nan = isnan(b->value);
    if (b->place < 0 || a_nan != b_nan)
        return b->place < 0 || a_nan;
    if (a_nan || a->value == b->value)
        return a->place < b->place;
    return gpu_cpu_wants_smallest(kind) ? a->value < b->value
                                        : a->value > b->value;
}

void gpu_cpu_merge(gpu_reduction kind, gpu_cpu_partial *into,
                   const gpu_cpu_partial *p)
{
    if (kind == GPU_REDUCE_sum) {
        merge_sum(into, p->value, p->rest);
    } else if (kind == GPU_REDUCE_prod) {
        gpu_cpu_scaled s = {into->value, into->place + p->place};
        gpu_cpu_scale(&s, p->value);
        into->value = s.mantissa;
        into->place = s.exponent;
    } else if (p->place >= 0 && gpu_cpu_beats(kind, p, into)) {
        *into = *p;
    }
}

double gpu_cpu_finish(gpu_reduction kind, const gpu_cpu_partial *p)
{
    if (kind == GPU_REDUCE_sum)
        return p->value + p->rest;
    if (kind == GPU_REDUCE_prod)
        return gpu_cpu_unscale((gpu_cpu_scaled){p->value, p->place});
    return gpu_cpu_wants_place(kind) ? (double)p->place : p->value;
}

void gpu_cpu_store_lines(const gpu_view *out, int64_t first, int64_t n,
                         const double *value)
{
    gpu_view to = out->cols == 1 ? gpu_cpu_turned(*out) : *out;
    to = gpu_cpu_part(&to, 0, first, 1, n);
    gpu_view from = {(void *)(uintptr_t)value, GPU_F64, 1, n, n, 1};
    gpu_cpu_convert(&from, &to);
}
