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

/* --- charts as pictures --------------------------------------------------- */

/* What a terminal said that it shows, and its cells in pixels. */
typedef struct lumat_screen {
    enum {
        LUMAT_SHOWS_NONE,
        LUMAT_SHOWS_KITTY,
        LUMAT_SHOWS_ITERM,
        LUMAT_SHOWS_SIXELS
    } shows;
    int cell_width, cell_height;
    int is_dark; /* its ground */
} lumat_screen;

/* Pushes what shows the chart at index as a picture, and returns 1; of what is
 * none, or cannot be drawn, it returns 0 and pushes nothing. */
int lumat_push_picture(lua_State *L, int index, const lumat_screen *screen,
                       const lumat_style *style);

/* --- watching a matrix while an entry runs -------------------------------- */

/* Between the two, draw gets a picture of what watch(A) named, about 8 times a
 * second, lines between newlines. start raises nothing. */
typedef void lumat_draw_fn(void *data, const char *picture);
void lumat_watch_start(lua_State *L, const lumat_style *style,
                       lumat_draw_fn *draw, void *data);
void lumat_watch_end(void);

#endif
