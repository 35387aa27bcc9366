/* How long something took, by the clock and by the GPUs' own events, and what
 * it did meanwhile. There is one stopwatch; starting it again is no error. */
#ifndef LUMAT_STOPWATCH_H
#define LUMAT_STOPWATCH_H

#include "lua.h"

/* Starts a stopwatch that the next lumat_call stops; then pushes "2.9 ms" of
 * the time given and what else there is to say of the call. */
void lumat_start_watch(lua_State *L);
void lumat_push_watch(lua_State *L, double seconds);

/* Stops it if it runs, before anything waits for the devices. */
void lumat_stop_watch(void);

/* timed(f [, device]): seconds f took on the device, then its results. */
int lumat_timed_call(lua_State *L);

/* Is something being timed, by it or by timed? */
int lumat_is_timing(lua_State *L);

void lumat_open_stopwatch(lua_State *L);

/* Whether operations are told of as they run: :trace. */
void lumat_set_trace(lua_State *L, int on);

#endif
