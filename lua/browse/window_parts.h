/* What window.c, its cells and its scans share: a window from the inside. */
#ifndef LUMAT_WINDOW_PARTS_H
#define LUMAT_WINDOW_PARTS_H

#include "print.h"
#include "window.h"

struct lumat_window {
    /* One of the two; both belong to a value the userdata keeps. A vector is
     * a matrix of one column here. */
    gpu_matrix *dense;
    gpu_sparse *sparse;
    int64_t rows, cols;
    gpu_dtype dtype;
    int digits, always_e;
    int is_vector, is_turned;
    lumat_area here; /* no rows: nothing yet */
    double *values;
    uint8_t *stored;       /* sparse only */
    lumat_column *columns; /* one for each column that is here */
};

/* Pushes and returns the formats of the area's columns; while it overlaps the
 * part that is here, none of these gets narrower. */
lumat_column *lumat_push_columns(lua_State *L, const lumat_window *w,
                                 const lumat_area *a);

/* --- window_scan.c
 * --------------------------------------------------------------- */

/* Begins behind an element of so many, in row-major order, or at the first. */
void lumat_scan_begin(lumat_scan *s, int64_t behind, int64_t total);
/* Moves on by so many elements; behind the last one comes the first. */
void lumat_scan_advance(lumat_scan *s, int64_t count, int64_t total);
/* Examines a piece of m. Returns the place found or -1. */
int64_t lumat_scan_piece(lua_State *L, const gpu_matrix *m, lumat_scan *s);

/* window_scan_sparse.c: lumat_scan_step for a sparse matrix. */
int lumat_scan_sparse(lua_State *L, lumat_window *w, lumat_scan *s);

#endif
