/* What operations cost: the trace, the profile, the stopwatch, and rates beside
 * what the device reaches. */
#ifndef LUMAT_MEASURE_H
#define LUMAT_MEASURE_H

#include "value.h"

/* --- the stopwatch -------------------------------------------------------- */
/* How long something took, by the clock and by the GPUs' own events, and what
 * it did meanwhile. There is one stopwatch; starting it again is no error. */

/* Starts a stopwatch that the next lumat_call stops; then pushes "2.9 ms" of
 * the time given and what else there is to say of the call. */
void lumat_start_watch(lua_State *L);
void lumat_push_watch(lua_State *L, double seconds);

/* Stops it if it runs, before anything waits for the devices. */
void lumat_stop_watch(void);

/* timed(f [, device]): seconds f took on the device, then its results. */
int lumat_timed_call(lua_State *L);

void lumat_open_stopwatch(lua_State *L);

/* --- the trace ------------------------------------------------------------ */

void lumat_open_trace(lua_State *L);

/* --- rates, the profile, costs -------------------------------------------- */

/* rate(flops, bytes, seconds [, dtype [, device]]) */
int lumat_rate_call(lua_State *L);
/* Adds above_peak(share) to what scripts do not see. */
void lumat_open_rate(lua_State *L);

void lumat_open_profile(lua_State *L);
/* The module lumat.faults, where the environment has LUMAT_FAULT. */
void lumat_open_faults(lua_State *L);
/* Calls that compute nothing, for cost.lua. */
void lumat_open_dry_run(lua_State *L);

#endif
