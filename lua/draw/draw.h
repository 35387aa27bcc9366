/* Matrices as pictures made of characters: heat maps, histograms, plots, and
 * what inspect tells of one. */
#ifndef LUMAT_DRAW_H
#define LUMAT_DRAW_H

#include "lua.h"
#include "print.h"

void lumat_open_heat(lua_State *L);      /* heat spy blocks */
void lumat_open_histogram(lua_State *L); /* hist */
void lumat_open_inspect(lua_State *L);   /* inspect */
void lumat_open_watch(lua_State *L);     /* watch */
void lumat_open_canvas(lua_State *L);    /* what lua/charts draws on */

/* --- watching a matrix while an entry runs -------------------------------- */

/* Between the two, draw gets a picture of what watch(A) named, about 8 times a
 * second, lines between newlines. start raises nothing. */
typedef void lumat_draw_fn(void *data, const char *picture);
void lumat_watch_start(lua_State *L, const lumat_style *style,
                       lumat_draw_fn *draw, void *data);
void lumat_watch_end(void);

#endif
