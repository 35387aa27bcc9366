/* Products kept as mantissa and exponent, so that they overflow only if their
 * final value does. */
#include <math.h>
#include "cpu.h"

/* The factor loses its exponent first: a small one times the mantissa would be
 * rounded. */
void gpu_cpu_scale(gpu_cpu_scaled *product, double factor)
{
    int exponent, more;
    double mantissa = frexp(factor, &more);
    product->mantissa = frexp(product->mantissa * mantissa, &exponent);
    if (product->mantissa == 0 || !isfinite(product->mantissa))
        exponent = more = 0;
    product->exponent += exponent + more;
}

double gpu_cpu_unscale(gpu_cpu_scaled product)
{
    int64_t e = product.exponent;
    e = e > 5000 ? 5000 : e < -5000 ? -5000 : e;
    return ldexp(product.mantissa, (int)e);
}
