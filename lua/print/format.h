/* What the files that print values share. */
#ifndef LUMAT_FORMAT_H
#define LUMAT_FORMAT_H

#include "gpu.h"
#include "sparse_matrix.h"
#include "style.h"
#include "lauxlib.h"
#include "lua.h"
#include "style.h"

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

/* Chooses the format for count values that lie stride apart: as many
 * significant digits as are set for the largest magnitude below 1e6, whole
 * numbers plain. */
void lumat_column_fit(lumat_column *c, const double *values, int64_t count,
                      int64_t stride);
/* The same with c->digits, and c->always_e, as they are. */
void lumat_column_fit_as(lumat_column *c, const double *values, int64_t count,
                         int64_t stride);

/* Writes x as a cell and returns its length; a zero brings the blanks that
 * put it above the units. Only an exact zero prints as 0 or -0. */
int lumat_column_cell(const lumat_column *c, double x, char out[LUMAT_CELL]);

/* --- the elements shown --------------------------------------------------- */

/* The first head and the last tail rows and columns of a matrix. */
typedef struct lumat_corner {
    int64_t head_rows, tail_rows, head_cols, tail_cols;
    double *values; /* (head + tail rows) x (head + tail columns) */
} lumat_corner;

enum { LUMAT_SHOWN_BYTES = 65536 }; /* the most that crosses the bus */

/* Fills c->values from the device and pushes the userdata that owns them. */
void lumat_fetch_corner(lua_State *L, const gpu_matrix *m, lumat_corner *c);

/* Turns count elements of type dtype at the start of data into doubles, in
 * place. */
void lumat_widen(double *data, gpu_dtype dtype, int64_t count);

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
/* That of print, complete. */
lumat_style lumat_style_now(lua_State *L);
/* The most lines of data an echo takes before it is cut. */
int64_t lumat_line_limit(const lumat_style *style);
/* How many first and last ones of more than `limit` lines are shown; together
 * not more than the limit. */
void lumat_line_edges(int64_t limit, int64_t *head, int64_t *tail);
int lumat_digits(int64_t n); /* decimal digits of n >= 0 */
/* Writes "64.0 MiB" into text and returns it. */
const char *lumat_bytes_text(size_t bytes, char *text, size_t size);

/* Adds ", 1 NaN, 2 Inf" without what is absent, after a lead. */
void lumat_add_specials(luaL_Buffer *b, const char *lead, int64_t nan,
                        int64_t inf);
/* Adds n with its digits in threes. */
void lumat_add_count(luaL_Buffer *b, int64_t n);
/* Adds a line that says what is hidden. */
void lumat_add_hidden(luaL_Buffer *b, const gpu_matrix *m,
                      const lumat_hidden *h);

enum lumat_paint { LUMAT_PLAIN, LUMAT_DIM };
/* Adds text, right-aligned to width; columns is how wide it looks. */
void lumat_add_padded(luaL_Buffer *b, const lumat_style *s, const char *text,
                      int columns, int64_t width, enum lumat_paint paint);
void lumat_add_number(luaL_Buffer *b, const lumat_style *s, int64_t n,
                      int64_t width);
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
/* Any value, as an echo shows it. */
void lumat_push_text(lua_State *L, int index, const lumat_style *style);
/* The metamethod __tostring of matrices of both kinds. */
int lumat_tostring(lua_State *L);
/* In a __tostring: is the text for tostring or string.format? It may go
 * anywhere then, also into a file, and has no colours; what is printed goes to
 * the screen. */
int lumat_is_for_later(lua_State *L);
/* A value that is no matrix: in full, or in at most about 40 columns. */
void lumat_push_value_text(lua_State *L, int index, const lumat_style *s);
void lumat_push_value_short(lua_State *L, int index);

/* "f32 5x5 sparse csr  cpu  nnz 4 (16 %)  56 B", and that with what fits the
 * screen: dots for a small matrix, triplets for a large one. */
void lumat_push_sparse_headline(lua_State *L, const gpu_sparse *s);
void lumat_push_sparse_text(lua_State *L, const gpu_sparse *s,
                            const lumat_style *style);

void lumat_open_format(lua_State *L);

#endif
