/* What the files of inspect share: a report in the making. */
#ifndef LUMAT_INSPECT_H
#define LUMAT_INSPECT_H

#include "matrix.h"
#include "picture.h"

typedef struct lumat_report {
    lua_State *L;
    lumat_text *text;
    lumat_style style;
    lumat_flow flow;
} lumat_report;

enum { LUMAT_NARROW = 40 }; /* a screen with no room for headings */

/* Pieces that follow go on a line of their own. */
void lumat_report_line(lumat_report *r);
void lumat_report_add(lumat_report *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void lumat_report_number(lumat_report *r, const char *name, double x);
void lumat_report_count(lumat_report *r, const char *name, int64_t n);

/* inspect_layout.c: name and headline; how it lies in its storage; variables
 * that share it; what made it. Each leaves the stack as it was. */
void lumat_report_name(lumat_report *r, int index, const char *name);
void lumat_report_layout(lumat_report *r, const gpu_matrix *m);
void lumat_report_aliases(lumat_report *r, const gpu_matrix *m,
                          const char *own);
void lumat_report_origin(lumat_report *r, int index);

/* A line of bars for how the elements are distributed. */
void lumat_report_distribution(lumat_report *r, const gpu_matrix *m,
                               const gpu_survey *s);
/* "diagonal", "upper triangular" … */
void lumat_band_text(int64_t rows, int64_t cols, int64_t lower, int64_t upper,
                     char *out, size_t room);

/* Pushes a table with the survey's numbers; the others add to it. */
void lumat_push_survey(lua_State *L, const gpu_survey *s);
void lumat_set_band(lua_State *L, int64_t lower, int64_t upper);

/* inspect_sparse.c: the report on the sparse matrix at 1; pushes its table. */
void lumat_inspect_sparse(lumat_report *r, const gpu_sparse *s,
                          const char *name);

#endif
