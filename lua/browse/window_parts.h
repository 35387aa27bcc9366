/* A window from the inside, for the files of this room. */
#ifndef LUMAT_WINDOW_PARTS_H
#define LUMAT_WINDOW_PARTS_H

#include "browse.h"
#include "print.h"

/* A column of a frame, as far as it is here. */
typedef struct lumat_frame_part {
    char title[LUMAT_CELL_ROOM];
    int is_text, is_left; /* is_text: its cells are in texts and exacts */
    int width;            /* of title and texts */
    gpu_dtype dtype;
} lumat_frame_part;

typedef char lumat_cell_text[LUMAT_CELL_ROOM];

struct lumat_window {
    /* One of the two; none of a frame; both belong to a value the userdata
     * keeps. A vector is a matrix of one column here. */
    gpu_matrix *dense;
    gpu_sparse *sparse;
    int64_t rows, cols;
    gpu_dtype dtype;
    int digits, always_e;
    int is_vector, is_turned, is_frame;
    int is_distributed; /* its parts come through lua/pool */
    lumat_area here;    /* no rows: nothing yet */
    double *values;
    uint8_t *stored;       /* sparse only */
    lumat_column *columns; /* one for each column that is here */
    /* Of a frame: one for each column, and one for each cell. */
    lumat_frame_part *parts;
    lumat_cell_text *texts, *exacts;
};

/* Brings the area of the frame at index here, in one userdata that is pushed:
 * values, parts, texts and exacts of w. */
void lumat_fetch_frame(lua_State *L, lumat_window *w, int index,
                       const lumat_area *a);
/* "T.a[2] = 0.5" of one cell, "{a = 0.5}  -- T[2]" of several. */
void lumat_push_frame_cells(lua_State *L, const lumat_window *w,
                            const char *name, lumat_area area);

#endif
