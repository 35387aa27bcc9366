/* Watching a matrix while an entry runs. */
#ifndef LUMAT_WATCH_H
#define LUMAT_WATCH_H

#include "lumat.h"
#include "matrix.h"

/* Is there anything to watch, and an entry running? Then lumat_try calls
 * lumat_watch_tick after every success. */
extern int lumat_watching;
void lumat_watch_tick(lua_State *L);

#endif
