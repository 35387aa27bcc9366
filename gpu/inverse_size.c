/* How large the inverse of a factored matrix is. Source for the 1-norm: Higham,
 * Accuracy and Stability of Numerical Algorithms, 2nd edition, 15.3, which is
 * what LAPACK's gecon does. Source for what a random vector tells: Kenney and
 * Laub, Small-sample statistical condition estimates, 1994. */
#include "inverse_size.h"

#include <math.h>
#include <string.h>

enum { MOST_STEPS = 5, POWER_STEPS = 2 };

/* A norm so many times below the limit is no danger: by one random vector it
 * is found too small by such a factor once in 1,500 times, by a power more
 * never in practice. */
static const double SURE_BY_ONE = 1000, SURE_BY_TWO = 10;

typedef struct estimate {
    int64_t n;
    double *x, *signs; /* n */
    double start;      /* every x is taken times this */
    gpu_invert *inverse;
    void *context;
} estimate;

/* x becomes start A^-1 x, or turned, start A^-T x. */
static gpu_status invert(const estimate *e, int turned)
{
    return e->inverse(e->context, e->x, e->start, turned);
}

/* NaN where either is. */
static double larger(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

static double norm_1(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += fabs(x[i]);
    return sum;
}

static double norm_2(const double *x, int64_t n)
{
    double largest = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fabs(x[i]) > largest ? fabs(x[i]) : largest;
    for (int64_t i = 0; i < n && largest > 0; i++)
        sum += x[i] / largest * (x[i] / largest);
    return largest * sqrt(sum);
}

static int64_t place_of_largest(const double *x, int64_t n)
{
    int64_t place = 0;
    for (int64_t i = 1; i < n; i++)
        place = fabs(x[i]) > fabs(x[place]) ? i : place;
    return place;
}

static void set_unit(double *x, int64_t n, int64_t place)
{
    memset(x, 0, (size_t)n * sizeof *x);
    x[place] = 1;
}

/* x becomes its signs. Returns whether they are others than the last. */
static int take_signs(const estimate *e)
{
    int differ = 0;
    for (int64_t i = 0; i < e->n; i++) {
        e->x[i] = e->x[i] >= 0 ? 1 : -1;
        differ |= e->x[i] != e->signs[i];
        e->signs[i] = e->x[i];
    }
    return differ;
}

/* Climbs from x, whose image is in e, to a column of A^-1 whose norm is a local
 * maximum. */
static gpu_status climb(const estimate *e, double *norm, int64_t *column)
{
    int64_t n = e->n;
    gpu_status status = GPU_OK;
    for (int k = 0; k < MOST_STEPS && take_signs(e); k++) {
        status = invert(e, 1);
        int64_t next = place_of_largest(e->x, n);
        if (status != GPU_OK || next == *column)
            return status;
        *column = next;
        set_unit(e->x, n, next);
        status = invert(e, 0);
        double found = norm_1(e->x, n);
        if (status != GPU_OK || found <= *norm)
            return status;
        *norm = found;
    }
    return status;
}

/* start |A^-1| in the 1-norm, and a column that shows it. */
static gpu_status estimate_1(const estimate *e, double *norm, int64_t *column)
{
    int64_t n = e->n;
    for (int64_t i = 0; i < n; i++)
        e->x[i] = 1;
    gpu_status status = invert(e, 0);
    *norm = norm_1(e->x, n) / (double)n;
    *column = -1;
    if (n == 1 || status != GPU_OK || !isfinite(*norm))
        return status;
    status = climb(e, norm, column);
    /* a vector that no pattern of signs in A^-1 cancels */
    for (int64_t i = 0; i < n; i++)
        e->x[i] = (i % 2 ? -1 : 1) * (1 + (double)i / (double)(n - 1));
    if (status == GPU_OK)
        status = invert(e, 0);
    double other = 2 * norm_1(e->x, n) / (3 * (double)n);
    *norm = larger(other, *norm);
    return status;
}

/* By a power of A^-1 A^-T more: x of length 1 becomes A^-1 x, or turned, A^-T
 * x, and norm its length; then x has length 1 again. */
static gpu_status raise(const estimate *e, int turned, double *norm)
{
    int64_t n = e->n;
    gpu_status status = invert(e, turned);
    *norm = norm_2(e->x, n);
    for (int64_t i = 0; i<n && * norm> 0; i++)
        e->x[i] /= *norm;
    return status;
}

/* Numbers in -1 .. 1 without any pattern. Source: Steele, Lea and Flood, Fast
 * splittable pseudorandom number generators, 2014. */
static void set_random(double *x, int64_t n)
{
    uint64_t state = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t z = state += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        x[i] = (double)(int64_t)(z ^ (z >> 31)) * 0x1p-63;
    }
}

/* Is the 2-norm surely below the limit? Then norm is about right. */
static gpu_status look(const estimate *e, double limit, double *norm,
                       int *is_sure)
{
    int64_t n = e->n;
    double per_unit = sqrt((double)n / 3); /* about the length of x */
    set_random(e->x, n);
    gpu_status status = raise(e, 1, norm);
    *norm *= sqrt((double)n) / per_unit;
    *is_sure = *norm * SURE_BY_ONE < limit;
    if (status != GPU_OK || *is_sure)
        return status;
    status = raise(e, 0, norm);
    *is_sure = *norm * SURE_BY_TWO < limit;
    return status;
}

/* The 2-norm from a column that is large. */
static gpu_status estimate_2(const estimate *e, int64_t column, double *norm)
{
    gpu_status status = GPU_OK;
    set_unit(e->x, e->n, column < 0 ? 0 : column);
    *norm = 1;
    for (int k = 0; k <= 2 * POWER_STEPS && status == GPU_OK; k++)
        if (*norm > 0 && isfinite(*norm))
            status = raise(e, k % 2, norm);
    return status;
}

gpu_status gpu_measure_inverse(int64_t n, double *room, gpu_invert *inverse,
                               void *context, gpu_inverse_size *out)
{
    estimate e = {n, room, room + n, out->start, inverse, context};
    int64_t column;
    int is_sure = 0;
    gpu_status status = GPU_OK;
    memset(room, 0, 2 * (size_t)n * sizeof *room);
    out->norm_1 = out->norm_2 = 0;
    if (out->limit > 0)
        status = look(&e, out->limit, &out->norm_2, &is_sure);
    if (is_sure || status != GPU_OK)
        return status;
    status = estimate_1(&e, &out->norm_1, &column);
    if (status == GPU_OK)
        status = estimate_2(&e, column, &out->norm_2);
    return status;
}
