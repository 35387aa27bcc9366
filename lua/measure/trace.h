/* Who hears of operations, and where a script issued them. */
#ifndef LUMAT_TRACE_H
#define LUMAT_TRACE_H

#include "matrix.h"

typedef enum lumat_hearer {
    LUMAT_TRACE,   /* prints */
    LUMAT_PROFILE, /* adds up */
    LUMAT_CAPTURE, /* looks at one function's operations */
    LUMAT_HEARERS
} lumat_hearer;

/* From now on f hears of every operation; NULL: no more. f must not raise. */
typedef void lumat_hear_fn(const gpu_event *e);
void lumat_hear(lumat_hearer who, lumat_hear_fn *f);

/* "512x256x128", "3x4 to 1x4", "3x4" */
const char *lumat_event_size(const gpu_event *e, char *text, size_t size);
/* "47 TFLOP/s  71 % of f32 peak", or "". May measure the device's peak. */
const char *lumat_event_rate(const gpu_event *e, char *text, size_t size);

void lumat_open_trace(lua_State *L);

#endif
