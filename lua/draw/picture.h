/* Pictures made of characters: what the files that draw share, and nobody else
 * sees. Drawing is pure: numbers in, text out, the screen's size and abilities
 * in a style. */
#ifndef LUMAT_PICTURE_H
#define LUMAT_PICTURE_H

#include "gpu.h"
#include "lua.h"
#include "print.h"

/* --- text ----------------------------------------------------------------- */

/* Text in memory that someone else owns. What does not fit is left out. */
typedef struct lumat_text {
    char *at; /* always ends in '\0' */
    size_t length, room;
} lumat_text;

void lumat_put(lumat_text *t, const char *s);
void lumat_putf(lumat_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void lumat_put_times(lumat_text *t, const char *s, int64_t times);
/* n with its digits in threes: "16 777 216" */
void lumat_put_count(lumat_text *t, int64_t n);
/* Dim, where the style has colours. */
void lumat_put_dim(lumat_text *t, const lumat_style *s, const char *text);
/* How many columns text takes: characters, without colours. */
int lumat_columns(const char *text);

/* Pieces of text one behind another, `gap` blanks between them, on a new line
 * where one would not fit; lines begin with `margin` blanks. */
typedef struct lumat_flow {
    lumat_text *text;
    int width, margin, gap;
    int column; /* 0: nothing yet */
} lumat_flow;
void lumat_flow_add(lumat_flow *f, const char *piece);

/* x to about `digits` digits, as short as it gets: "-5.4112" "1.2e-05" "0". */
enum { LUMAT_BRIEF = 32 };
const char *lumat_brief(double x, int digits, char out[LUMAT_BRIEF]);

/* --- colours -------------------------------------------------------------- */

typedef struct lumat_rgb {
    unsigned char red, green, blue;
} lumat_rgb;

/* The colours of images, for text, files and charts alike. */
enum { LUMAT_STOPS = 9 };

/* The colour of a value of low .. high: one scale from dark to light, or, when
 * there are values on both sides of 0, blue below and red above it. */
lumat_rgb lumat_heat_colour(double value, double low, double high);
/* Sets the colour of what follows, or what is behind it: in 256 colours, or in
 * all when the style has them. */
void lumat_put_colour(lumat_text *t, const lumat_style *s, lumat_rgb c,
                      int is_behind);
extern const char lumat_plain[]; /* ends all colours */

/* --- sizes ---------------------------------------------------------------- */

/* A matrix on the screen: cut into rows x cols blocks, each drawn zoom_y x
 * zoom_x dots large, of which a character holds dots_y x dots_x. */
typedef struct lumat_frame {
    int64_t m, n; /* of the matrix */
    int rows, cols, zoom_y, zoom_x, dots_y, dots_x;
    int lines, columns; /* of characters */
    int gutter;         /* columns for row numbers */
} lumat_frame;

/* As large as fits `width` x `lines` characters without distortion, where dots
 * are `tall` times as high as wide; small ones are magnified. */
void lumat_frame_fit(lumat_frame *f, int64_t m, int64_t n, int width, int lines,
                     int dots_y, int dots_x);
/* The lines a picture may take of a screen, and the width. */
int lumat_picture_lines(const lumat_style *s);

/* The number of the matrix's row that stands beside a line, in the gutter, or
 * blanks. */
void lumat_put_row_number(lumat_text *t, const lumat_style *s,
                          const lumat_frame *f, int line);
/* The line of column numbers below, `margin` characters from the gutter. */
void lumat_put_column_numbers(lumat_text *t, const lumat_style *s,
                              const lumat_frame *f, int margin);
/* "each cell 64x32 elements", or nothing when it is one. */
void lumat_cell_text(const lumat_frame *f, char *out, size_t room);

/* --- distributions -------------------------------------------------------- */

/* A character for each of n counts, as high as it is many. */
void lumat_put_distribution(lumat_text *t, const lumat_style *s,
                            const int64_t *counts, int n);
/* A bar for a share of 0 .. 1 of so many columns. */
void lumat_put_bar(lumat_text *t, const lumat_style *s, double share,
                   int columns);

/* --- braille -------------------------------------------------------------- */

enum { LUMAT_DOTS_Y = 4, LUMAT_DOTS_X = 2 };
/* Adds the character with the dots of bits 1 << (4 * x + y). */
void lumat_put_braille(lumat_text *t, unsigned dots);

/* --- pictures as values --------------------------------------------------- */

/* Memory for text, in a userdata pushed onto the stack. */
void lumat_new_text(lua_State *L, lumat_text *t, size_t room);
/* Makes the table on top of the stack one that shows itself as the text, and
 * where it may go into a file as the one without colours. NULL: colours mean
 * nothing in it, and are left out there. */
void lumat_show_as(lua_State *L, const lumat_text *t, const lumat_text *plain);

/* What a picture is made of: a dense matrix, a vector being a row, or a sparse
 * one. Borrowed from the argument. */
typedef struct lumat_subject {
    gpu_matrix dense; /* storage NULL: it is sparse */
    const gpu_sparse *sparse;
    int64_t m, n;
} lumat_subject;
/* Why the object is not drawn as it is; NULL where it may be. */
const char *lumat_why_undrawn(lua_State *L, int arg);
/* Raises for what is no matrix, freed or empty. A plain table of numbers
 * becomes a matrix in its place. */
void lumat_check_subject(lua_State *L, int arg, lumat_subject *out);
/* Raises what is drawn in the place of complex numbers, where the subject at
 * arg has them. */
void lumat_refuse_complex(lua_State *L, int arg, const lumat_subject *s);
/* "f32 4x4  cpu  64 B" and a newline */
void lumat_put_headline(lua_State *L, int index, lumat_text *t);

/* Pushes a userdata with one number for each block of the frame. */
double *lumat_push_blocks(lua_State *L, const lumat_subject *s,
                          gpu_block_kind kind, int64_t rows, int64_t cols);

/* The current style with width and height from the options at
 * arg. */
lumat_style lumat_picture_style(lua_State *L, int arg);

/* Do the options at arg have {file = name}? */
int lumat_wants_file(lua_State *L, int arg);
/* Has lua/charts draw what the table on top of the stack has for `kind` (see
 * lua/charts/matrix_charts.lua), as text of the style or into the file that
 * the options at arg name. What shows it takes the table's place. */
void lumat_draw_chart(lua_State *L, const char *kind, int arg,
                      const lumat_style *style);
/* Pushes numbers that Lua reads as a list, and returns where they go (one more
 * fits). They live as long as the value on the stack. */
double *lumat_new_numbers(lua_State *L, int64_t count);

/* The __tostring of charts: what their metatable's __draw(chart, is_for_later,
 * style) gives. */
int lumat_chart_tostring(lua_State *L);

/* --- pixels: raster.c ----------------------------------------------------- */

/* The numbers at index, or those of a list, which they replace; what is no
 * number there is NaN. */
const double *lumat_check_numbers(lua_State *L, int index, int64_t *count);
/* Before the first of them is made. */
void lumat_open_raster(lua_State *L);
/* raster(width, height, colour): a picture of that colour, "#rrggbb". */
int lumat_new_raster(lua_State *L);
/* deflate(text): compressed, with the head and the end that zlib gives it. */
int lumat_deflate(lua_State *L);

/* --- heat maps: numbers in, text out ----------------------------------------
 */

/* Values above each other in a character of a heat map. */
int lumat_heat_dots(const lumat_style *s);
/* The range of the finite values; low > high when there is none. */
void lumat_heat_range(const lumat_frame *f, const double *values, double *low,
                      double *high);
/* Bytes that a picture may take. */
size_t lumat_heat_room(const lumat_frame *f);
/* values: f->rows x f->cols. The last line is the legend, without a newline;
 * on a narrow screen it takes several. */
void lumat_draw_heat(lumat_text *t, const lumat_style *s, const lumat_frame *f,
                     const double *values, double low, double high);
/* Its characters alone, a newline behind each line. */
void lumat_draw_heat_lines(lumat_text *t, const lumat_style *s,
                           const lumat_frame *f, const double *values,
                           double low, double high);

#endif
