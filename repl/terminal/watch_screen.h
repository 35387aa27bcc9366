/* The picture of what is watched, on the screen while an entry runs. */
#ifndef WATCH_SCREEN_H
#define WATCH_SCREEN_H

#include "lumat.h"

/* From now on, where there is a terminal that can. */
void repl_watch_at_prompt(void);

/* Around the call of an entry; end leaves the screen as it would be without. */
void repl_watch_start(lua_State *L);
void repl_watch_end(void);

#endif
