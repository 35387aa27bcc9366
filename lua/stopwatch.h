/* How long something took, by the clock and by the GPUs' own events, and what
 * it did meanwhile. There is one stopwatch; starting it again is no error. */
#ifndef LUMAT_STOPWATCH_H
#define LUMAT_STOPWATCH_H

#include "lua.h"

/* Stops it if it runs, before anything waits for the devices. */
void lumat_stop_watch(void);

void lumat_open_stopwatch(lua_State *L);

#endif
