/* By what pivots of complex matrices are chosen, as LAPACK does it: |re| +
 * |im|. */
#ifndef GPU_CPU_PIVOT_SIZE_H
#define GPU_CPU_PIVOT_SIZE_H

#include <complex.h>
#include <math.h>

static inline float pivot_size_c64(float complex z)
{
    return fabsf(crealf(z)) + fabsf(cimagf(z));
}

static inline double pivot_size_c128(double complex z)
{
    return fabs(creal(z)) + fabs(cimag(z));
}

#endif
