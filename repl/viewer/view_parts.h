/* What the files of the viewer share. */
#ifndef VIEW_PARTS_H
#define VIEW_PARTS_H

#include "full_screen.h"
#include "lumat.h"

enum { VIEW_GAP = 2 }; /* columns between cells */

typedef struct view {
    lua_State *L;
    lumat_window *window;
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

/* Brings the cursor onto the screen and draws everything. */
void view_draw(view *v);
/* Moves the cursor; a place that is not on the screen comes to its middle. */
void view_jump(view *v, int64_t row, int64_t col);
/* The part of the cursor's row that is on the screen. */
lumat_area view_row_part(const view *v);

/* --- view_keys.c ---------------------------------------------------------- */

/* What the keys do, on the whole screen, until a key that leaves. */
void view_show_keys(void);

/* --- view_colour.c -------------------------------------------------------- */

void view_open_colours(void);
int view_has_colours(void);
/* What a cell looks like. */
attr_t view_attribute(const view *v, const lumat_cell *cell);

/* --- view_find.c ---------------------------------------------------------- */

/* Each is run by a key, with an argument. */
void view_go_to(view *v, int unused);
void view_search(view *v, int unused);
void view_search_again(view *v, int backwards);
void view_find_extreme(view *v, int kind);
void view_toggle_heat(view *v, int unused);

#endif
