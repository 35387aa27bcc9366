/* Drawing heat maps and patterns: numbers in, text out. */
#ifndef LUMAT_HEAT_DRAW_H
#define LUMAT_HEAT_DRAW_H

#include "picture.h"

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

/* set: f->rows x f->cols, in a frame with row and column numbers. */
void lumat_draw_pattern(lumat_text *t, const lumat_style *s,
                        const lumat_frame *f, const unsigned char *set);

#endif
