/* How values are shown, and the few ways to have one shown. */
#ifndef LUMAT_STYLE_H
#define LUMAT_STYLE_H

#include "lua.h"

enum { LUMAT_ALL_COLOURS = 2 };

typedef struct lumat_style {
    int width, height; /* of the screen; 0: 80 columns, 24 rows */
    int colour;        /* 1: SGR colours; LUMAT_ALL_COLOURS: of 24 bits, too */
    int ascii;         /* 1: no … or ⋮ */
    int full;          /* 1: nothing is left out */
} lumat_style;

/* The style that print and tostring use, 80x24 without colour at first. */
void lumat_set_style(lua_State *L, const lumat_style *style);

/* Pushes the value at index as an echo shows it: a matrix in full, strings
 * quoted, tables a level deep. May wait for a device; may fail: then pushes
 * the message and returns 0. */
int lumat_push_shown(lua_State *L, int index, const lumat_style *style);

/* Pushes "f32 4096x4096  cuda:0  64.0 MiB", or a short form of any value. */
void lumat_push_headline(lua_State *L, int index);

#endif
