/* Products kept as mantissa and exponent, so that they overflow only if their
 * final value does. */
#include <math.h>
#include "cpu.h"

void gpu_cpu_scale(gpu_cpu_scaled *product, double factor)
{
    int exponent;
    product->mantissa = frexp(product->mantissa * factor, &exponent);
    if (product->mantissa == 0 || !isfinite(product->mantissa))
        exponent = 0;
    product->exponent += exponent;
}

double gpu_cpu_unscale(gpu_cpu_scaled product)
{
    int64_t e = product.exponent;
    e = e > 5000 ? 5000 : e < -5000 ? -5000 : e;
    return ldexp(product.mantissa, (int)e);
}
