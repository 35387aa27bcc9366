/* Looking into a matrix part by part: what the full-screen viewer needs of the
 * language. Places count from 0 here; a vector is a column. What gets a
 * lua_State may raise. */
#ifndef LUMAT_BROWSE_H
#define LUMAT_BROWSE_H

#include <stddef.h>
#include <stdint.h>
#include "lua.h"

/* --- what is at hand ------------------------------------------------------ */

/* A matrix, dense, sparse or distributed, or a frame, with a part of it in host
 * memory. */
typedef struct lumat_window lumat_window;

typedef struct lumat_area {
    int64_t row, col, rows, cols;
} lumat_area;

/* Pushes a window on the matrix or frame at index. */
lumat_window *lumat_push_window(lua_State *L, int index);
/* A frame is not transposed, nor looked at as a whole. */
int lumat_window_is_frame(const lumat_window *w);
/* Nor is a distributed matrix looked at as a whole. */
int lumat_window_is_distributed(const lumat_window *w);
void lumat_window_transpose(lua_State *L, lumat_window *w);
/* Cells are written with so many significant digits, or always as 1.5e+00. */
void lumat_window_format(lumat_window *w, int digits, int always_e);
int lumat_window_digits(const lumat_window *w); /* as they are set, at first */

/* All of the matrix, as it is shown, and its headline, which is pushed. */
lumat_area lumat_window_size(const lumat_window *w);
void lumat_push_window_headline(lua_State *L, const lumat_window *w);

/* Brings the area here, and some of what is around it, unless it is here.
 * Nothing else crosses the bus. */
void lumat_window_need(lua_State *L, lumat_window *w, lumat_area area);

enum { LUMAT_CELL_ROOM = 96 };

typedef struct lumat_cell {
    char text[LUMAT_CELL_ROOM];  /* as it stands at the right of its column */
    char exact[LUMAT_CELL_ROOM]; /* all digits that its type has */
    double value;  /* of text and dates 1, NaN where they are missing */
    int is_left;   /* text stands at the left */
    int is_stored; /* 0: a sparse matrix has no entry here; text is "." */
} lumat_cell;

/* Of what is here. */
void lumat_window_cell(const lumat_window *w, int64_t row, int64_t col,
                       lumat_cell *out);
int lumat_window_width(const lumat_window *w, int64_t col);
/* The name of a column that is here, of a frame; else NULL. */
const char *lumat_window_title(const lumat_window *w, int64_t col);

/* Pushes Lua that names a cell or a part of a row of what is here, by the
 * matrix's name, with its values: "A[{2, 1}] = 0.5". */
void lumat_push_cells(lua_State *L, const lumat_window *w, const char *name,
                      lumat_area area);

/* Reads "12, end" or "3" as a place; a part that is missing stays as it was.
 * Returns 1, or 0 with a message in error. */
int lumat_window_place(const lumat_window *w, const char *text,
                       int64_t place[2], char *error, size_t size);

/* --- looking at everything ------------------------------------------------ */

typedef enum lumat_scan_kind {
    LUMAT_FIND, /* the first place behind a given one that passes a test */
    LUMAT_LARGEST,
    LUMAT_SMALLEST,
    LUMAT_RANGE /* of the finite elements */
} lumat_scan_kind;

/* A look at all elements, in pieces, by reductions on the device. */
typedef struct lumat_scan {
    lumat_scan_kind kind;
    int test, backwards; /* of LUMAT_FIND; test is lumat_scan_parse's */
    double limit;
    int64_t row, col; /* where to begin, then the place found */
    int found, wrapped;
    double low, high; /* what LUMAT_RANGE found; low > high: nothing */
    double share;     /* of the work, done */
    /* lumat_scan_step's own: all zero before the first. */
    int64_t at, left, piece;
    int walks;
} lumat_scan;

/* Reads "nan", "-inf", "0", ">3.5" … into s, 0 when it is none of them. */
int lumat_scan_parse(const char *text, lumat_scan *s);

/* Does one piece, some hundredths of a second long. Returns 1 while there is
 * more to do. */
int lumat_scan_step(lua_State *L, lumat_window *w, lumat_scan *s);

#endif
