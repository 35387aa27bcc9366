/* Watching a matrix while an entry runs. */
#ifndef LUMAT_WATCH_H
#define LUMAT_WATCH_H

#include "print.h"

/* Between the two, draw gets a picture of what watch(A) named, about 8 times a
 * second, lines between newlines. start raises nothing. */
typedef void lumat_draw_fn(void *data, const char *picture);
void lumat_watch_start(lua_State *L, const lumat_style *style,
                       lumat_draw_fn *draw, void *data);
void lumat_watch_end(void);

#endif
