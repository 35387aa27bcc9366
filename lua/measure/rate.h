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
 * of flops is that of plain multiply-adds in dtype, whatever a kernel uses.
 * The first share above the peak has it measured again, unless something is
 * being timed in L (which may be NULL). */
gpu_status lumat_rate_on(lua_State *L, gpu_device *d, double flops,
                         double bytes, double seconds, gpu_dtype dtype,
                         lumat_rate *out);

/* "", or for a share that stays above the peak why. */
const char *lumat_above_peak(double share);
/* Adds above_peak(share) to what scripts do not see. */
void lumat_open_rate(lua_State *L);

/* rate(flops, bytes, seconds [, dtype [, device]]) */
int lumat_rate_call(lua_State *L);

#endif
