/* What the files that print values share, and nobody else sees. */
#ifndef LUMAT_PRINT_PARTS_H
#define LUMAT_PRINT_PARTS_H

#include "complex_numbers.h"
#include "print.h"

/* lumat_column_fit_as with as many significant digits as are set for the
 * largest magnitude below 1e6, whole numbers plain. */
void lumat_column_fit(lumat_column *c, const double *values, int64_t count,
                      int64_t stride);

/* The format of a column of complex numbers, or of real ones, of which im
 * remains empty. */
typedef struct lumat_pair_column {
    lumat_column re, im; /* im: of the sizes of imaginary parts */
    int is_complex;
    int width; /* of the widest cell */
} lumat_pair_column;

/* For count values, pairs where they are complex, that lie stride values
 * apart. */
void lumat_pair_fit(lumat_pair_column *c, const double *values, int is_complex,
                    int64_t count, int64_t stride);
/* Adds the value, or pair, at x: "1 + 2i", with the signs of a column one above
 * the other. */
void lumat_add_pair(luaL_Buffer *b, const lumat_style *s,
                    const lumat_pair_column *c, const double *x, int64_t width);
/* The same without blanks around it; returns its length. */
enum { LUMAT_PAIR = 2 * LUMAT_CELL };
int lumat_pair_text(const lumat_pair_column *c, const double *x,
                    char out[LUMAT_PAIR]);

/* --- the elements shown --------------------------------------------------- */

/* The first head and the last tail rows and columns of a matrix. */
typedef struct lumat_corner {
    int64_t head_rows, tail_rows, head_cols, tail_cols;
    /* (head + tail rows) x (head + tail columns); of complex ones pairs */
    double *values;
} lumat_corner;

/* What is left out of what is shown. */
typedef struct lumat_hidden {
    int64_t count, nan, inf;
    int64_t row, col; /* 0-based place of the first NaN or Inf, or -1 */
} lumat_hidden;

/* Looks, on the device, at what the corners leave out. */
void lumat_count_hidden(lua_State *L, const gpu_matrix *m,
                        const lumat_corner *c, lumat_hidden *out);

/* --- text ----------------------------------------------------------------- */

/* A style without zeros. */
lumat_style lumat_style_of(const lumat_style *style);
/* How many first and last ones of more than `limit` lines are shown; together
 * not more than the limit. */
void lumat_line_edges(int64_t limit, int64_t *head, int64_t *tail);
/* Has a NaN been counted since this was last asked? */
int lumat_has_shown_nan(void);
/* Adds ", 1 NaN, 2 Inf" without what is absent, after a lead. */
void lumat_add_specials(luaL_Buffer *b, const char *lead, int64_t nan,
                        int64_t inf);
/* Adds a line that says what is hidden. */
void lumat_add_hidden(luaL_Buffer *b, const gpu_matrix *m,
                      const lumat_hidden *h);
/* Adds x as a cell of c, right-aligned to width, in its colour. */
void lumat_add_cell(luaL_Buffer *b, const lumat_style *s, const lumat_column *c,
                    double x, int64_t width);

/* Each pushes one string, and may raise. The matrix is not released, lost or
 * empty in the first two. */
void lumat_push_matrix_text(lua_State *L, const gpu_matrix *m,
                            const lumat_style *s);
void lumat_push_vector_text(lua_State *L, const gpu_matrix *m,
                            const lumat_style *s);
void lumat_push_matrix_headline(lua_State *L, const gpu_matrix *m);
/* "1 + 2i", with 14 digits, or with the fewest from 14 on that read back. */
void lumat_push_complex_text(lua_State *L, gpu_complex z, int reads_back);
/* An object of the library's with a metamethod __text(value, style), which
 * gives its text: pushes that and returns 1; else 0. The style is a table:
 * width, limit (lines of data), head and tail (those shown where there are
 * more), ascii, colour, full. Such an object has a __headline(value) as well,
 * one line, and lumat.cells' tostring as its __tostring. */
int lumat_push_own_text(lua_State *L, int index, const lumat_style *style);
/* A value that is no matrix: in full, or in at most about 40 columns. */
void lumat_push_value_text(lua_State *L, int index, const lumat_style *s);
void lumat_push_value_short(lua_State *L, int index);

/* "f32 5x5 sparse csr  cpu  nnz 4 (16 %)  56 B", and that with what fits the
 * screen: dots for a small matrix, triplets for a large one. */
void lumat_push_sparse_headline(lua_State *L, const gpu_sparse *s);
void lumat_push_sparse_text(lua_State *L, const gpu_sparse *s,
                            const lumat_style *style);

#endif
