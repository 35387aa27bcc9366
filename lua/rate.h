/* How fast work was, beside what the device reaches: the one place from which
 * the trace, race and the benchmarks have their numbers. */
#ifndef LUMAT_RATE_H
#define LUMAT_RATE_H

#include "matrix.h"

typedef struct lumat_rate {
    double value;     /* in units a second */
    const char *unit; /* "TFLOP/s", "GFLOP/s" or "GB/s" */
    double share;     /* of the measured peak; tensor cores may exceed 1 */
    const char *peak; /* whose: "f32", "f64" or "memory" */
} lumat_rate;

/* By flops or by bytes, whichever uses the larger share of its peak. The peak
 * of flops is that of plain multiply-adds in dtype, whatever a kernel uses. */
lumat_rate lumat_rate_of(double flops, double bytes, double seconds,
                         gpu_dtype dtype, const gpu_peak *peak);

/* rate(flops, bytes, seconds [, dtype [, device]]) */
int lumat_rate_call(lua_State *L);

#endif
