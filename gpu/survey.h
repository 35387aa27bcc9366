/* Partial surveys: what is known of a part of a matrix, and how the knowledge
 * of two parts becomes one. For backends, on either side of the bus. */
#ifndef GPU_SURVEY_H
#define GPU_SURVEY_H

#include "backend.h"

#ifdef __CUDACC__
#define SURVEY_FUNCTION static __host__ __device__ inline
#else
#define SURVEY_FUNCTION static inline
#endif

/* Of no elements. In a partial survey min and max are 0 while min_at is -1,
 * so that nothing depends on infinities. */
SURVEY_FUNCTION gpu_survey gpu_survey_nothing(void)
{
    gpu_survey s = {0, 0, 0,  0,  0,  0,           0,           0, 0,
                    0, 0, -1, -1, -1, GPU_NO_BAND, GPU_NO_BAND, 0};
    return s;
}

/* Is an extreme at place better than the one there is? Of equals, the first
 * in row-major order. */
SURVEY_FUNCTION int gpu_survey_beats(double value, int64_t place, double best,
                                     int64_t best_place)
{
    if (best_place < 0 || place < 0)
        return place >= 0;
    return value < best || (value == best && place < best_place);
}

/* Means and squares of two parts joined. Source: Chan, Golub and LeVeque,
 * Updating formulae and a pairwise algorithm for computing sample variances,
 * 1979. */
SURVEY_FUNCTION void gpu_survey_join_moments(gpu_survey *into,
                                             const gpu_survey *part)
{
    double n = (double)into->finite, m = (double)part->finite;
    double apart = part->mean - into->mean;
    if (part->finite == 0)
        return;
    if (into->finite == 0)
        apart = 0, into->mean = part->mean;
    into->mean += apart * (m / (n + m));
    into->squares += part->squares + apart * apart * (n * (m / (n + m)));
    into->finite += part->finite;
}

SURVEY_FUNCTION void gpu_survey_join(gpu_survey *into, const gpu_survey *part)
{
    gpu_survey_join_moments(into, part);
    into->zeros += part->zeros;
    into->nan += part->nan;
    into->inf += part->inf;
    into->subnormal += part->subnormal;
    if (gpu_survey_beats(part->min, part->min_at, into->min, into->min_at))
        into->min = part->min, into->min_at = part->min_at;
    if (gpu_survey_beats(-part->max, part->max_at, -into->max, into->max_at))
        into->max = part->max, into->max_at = part->max_at;
    if (part->odd_at >= 0 && (into->odd_at < 0 || part->odd_at < into->odd_at))
        into->odd_at = part->odd_at;
    if (part->lower > into->lower)
        into->lower = part->lower;
    if (part->upper > into->upper)
        into->upper = part->upper;
    if (part->asymmetry > into->asymmetry)
        into->asymmetry = part->asymmetry;
}

/* Where element (row, col) of a view comes in the order of its places; that of
 * the view's transpose when it is turned. */
SURVEY_FUNCTION int64_t gpu_survey_place(const gpu_view *v, int turned,
                                         int64_t row, int64_t col)
{
    return turned ? col * v->rows + row : row * v->cols + col;
}

#endif
