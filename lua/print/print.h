/* Values as text: numbers, matrices, tables, and the style they are shown in.
 * A matrix is a few lines whatever its size: only what is shown crosses the
 * bus. */
#ifndef LUMAT_PRINT_H
#define LUMAT_PRINT_H

#include "gpu.h"
#include "lauxlib.h"
#include "lua.h"
#include "value.h"

/* --- how values are shown ------------------------------------------------- */

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

/* Notes what an operation on a matrix of the type gives to Lua: an f32 is
 * echoed as one during the entry. What is noted is told again by its value
 * alone. */
void lumat_note_scalar(gpu_dtype dtype, double value);
void lumat_forget_scalars(void); /* the entry is over */

/* --- one column of numbers: pure ------------------------------------------ */

enum { LUMAT_CELL = 48 }; /* room for any cell's text */

typedef struct lumat_column {
    int digits;    /* significant, of the largest cell below 1e6 */
    int always_e;  /* no cell in plain notation */
    int integers;  /* every finite cell is a whole number */
    int decimals;  /* of cells in plain notation */
    int exponents; /* decimals of cells in e-notation */
    int width;     /* of the widest cell */
} lumat_column;

/* Chooses the format for count values that lie stride apart, with c->digits
 * and c->always_e as they are. */
void lumat_column_fit_as(lumat_column *c, const double *values, int64_t count,
                         int64_t stride);

/* Writes x as a cell and returns its length; a zero brings the blanks that
 * put it above the units. Only an exact zero prints as 0 or -0. */
int lumat_column_cell(const lumat_column *c, double x, char out[LUMAT_CELL]);

enum { LUMAT_SHOWN_BYTES = 65536 }; /* the most that crosses the bus */

/* Turns count elements of type dtype at the start of data into doubles, in
 * place. */
void lumat_widen(double *data, gpu_dtype dtype, int64_t count);

/* --- text ----------------------------------------------------------------- */

/* That of print, complete. */
lumat_style lumat_style_now(lua_State *L);
/* The most lines of data an echo takes before it is cut. */
int64_t lumat_line_limit(const lumat_style *style);
int lumat_digits(int64_t n); /* decimal digits of n >= 0 */

/* Adds n with its digits in threes. */
void lumat_add_count(luaL_Buffer *b, int64_t n);

enum lumat_paint { LUMAT_PLAIN, LUMAT_DIM };
/* Adds text, right-aligned to width; columns is how wide it looks. */
void lumat_add_padded(luaL_Buffer *b, const lumat_style *s, const char *text,
                      int columns, int64_t width, enum lumat_paint paint);
void lumat_add_number(luaL_Buffer *b, const lumat_style *s, int64_t n,
                      int64_t width);

/* The columns that the text takes on a screen. */
int lumat_text_columns(const char *text, size_t length);

/* Any value, as an echo shows it. */
void lumat_push_text(lua_State *L, int index, const lumat_style *style);
/* In a __tostring: is the text for tostring or string.format? It may go
 * anywhere then, also into a file, and has no colours; what is printed goes to
 * the screen. */
int lumat_is_for_later(lua_State *L);

/* "1.50 ms", with so many digits at most, as of gpu_amount_text. */
const char *lumat_seconds_text(double seconds, int digits);

/* The modules lumat.unit_text and lumat.cells. */
void lumat_open_unit_text(lua_State *L);
void lumat_open_cells(lua_State *L);
/* Gives matrices of both kinds their __tostring. */
void lumat_open_format(lua_State *L);

#endif
