/* What the files of the viewer and the pager share; for viewer/ alone. */
#ifndef VIEW_PARTS_H
#define VIEW_PARTS_H

#include "full_screen.h"
#include "lumat.h"

/* The viewer while it is open. Rows and columns count from 0. */
typedef struct view {
    lua_State *L;
    lumat_window *window;        /* of Lua's; it lives as long as the view */
    const char *name, *headline; /* stack place headline_at keeps the latter */
    int headline_at;
    int64_t rows, cols; /* of the matrix, as it is shown */
    int64_t row, col;   /* of the cursor */
    int64_t top, left;  /* of the first cell on the screen */
    int64_t seen;       /* columns on the screen */
    int height, label;  /* rows of cells; columns of row numbers */
    int digits, always_e, turned, ascii;
    int heat, knows_range;
    double low, high; /* what the heat colours go over */
    lumat_scan search;
    char sought[64];   /* the text of the search */
    char message[160]; /* in the last line until the next key */
    int notes, noted;  /* stack place of a table, its length */
} view;

/* --- view_draw.c ---------------------------------------------------------- */

/* Once the screen is open. */
void view_open_colours(void);
int view_has_colours(void);

/* Brings the cursor onto the screen and draws everything. */
void view_draw(view *v);
/* Moves the cursor; a place that is not on the screen comes to its middle. */
void view_jump(view *v, int64_t row, int64_t col);
/* The part of the cursor's row that is on the screen. */
lumat_area view_row_part(const view *v);

/* --- pager.c -------------------------------------------------------------- */

/* Lines of text of which the screen shows a part. */
typedef struct view_pages {
    const char *const *lines; /* without colours; the caller's */
    int count, widest;        /* columns that the longest one takes */
    int top, left;            /* what the screen begins with */
} view_pages;

/* Draws them and waits for a key, which may show another part. Returns 0 for
 * one that leaves. */
int view_turn(view_pages *p);

#endif
