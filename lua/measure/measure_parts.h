/* What the files of this room share, and nobody else sees. */
#ifndef LUMAT_MEASURE_PARTS_H
#define LUMAT_MEASURE_PARTS_H

#include "measure.h"

/* --- who hears of operations ---------------------------------------------- */

typedef enum lumat_hearer {
    LUMAT_TRACE,   /* prints */
    LUMAT_PROFILE, /* adds up */
    LUMAT_CAPTURE, /* looks at one function's operations */
    LUMAT_HEARERS
} lumat_hearer;

/* From now on f hears of every operation; NULL: no more. f must not raise. */
typedef void lumat_hear_fn(const gpu_event *e);
void lumat_hear(lumat_hearer who, lumat_hear_fn *f);

/* Writes "512x256x128", or for a reduction "512x256 to 512x1"; returns text. */
const char *lumat_event_size(const gpu_event *e, char *text, size_t size);

/* As lua_call, but all that the function computes is worked out when it comes
 * back, used or not. */
void lumat_call_executed(lua_State *L, int nargs, int nresults);

/* --- rates ---------------------------------------------------------------- */
/* How fast work was, beside what the device reaches: the one place from which
 * the trace, race and the benchmarks have their numbers. */

typedef struct lumat_rate {
    double value;     /* in units a second */
    const char *unit; /* "TFLOP/s", "GFLOP/s" or "GB/s" */
    double share;     /* of the measured peak; tensor cores may exceed 1 */
    const char *peak; /* whose: "f32", "f64" or "memory" */
} lumat_rate;

/* Of work that so many devices like d did together. By flops or by bytes,
 * whichever uses the larger share of its peak, or of all their peaks. The peak
 * of flops is that of plain multiply-adds in dtype, whatever a kernel uses.
 * The first share above the peak has it measured again, unless something is
 * being timed in L (which may be NULL). */
gpu_status lumat_rate_on(lua_State *L, gpu_device *d, int devices, double flops,
                         double bytes, double seconds, gpu_dtype dtype,
                         lumat_rate *out);

/* "", or for a share that stays above the peak why. */
const char *lumat_above_peak(double share);

/* Is something being timed, by it or by timed? */
int lumat_is_timing(lua_State *L);

#endif
