/* Drawing lines over axes: numbers in, text out. */
#ifndef LUMAT_PLOT_DRAW_H
#define LUMAT_PLOT_DRAW_H

#include "picture.h"

enum { LUMAT_MOST_SERIES = 8 };

typedef struct lumat_series { /* a line through points; NaN breaks it */
    const double *x, *y;
    int64_t count;
} lumat_series;

typedef struct lumat_chart {
    const lumat_series *series;
    int count;                     /* of series */
    double left, right, low, high; /* of the axes */
    double step;                   /* between the labels at the left */
    int lines, columns;            /* for the lines drawn, in characters */
    int gutter;                    /* columns for the labels at the left */
    unsigned char *cells;          /* two bytes for each character */
} lumat_chart;

/* The finite range of all series; 0 when there is no point to draw. */
int lumat_plot_range(lumat_chart *c);
/* Fits the axes into width x lines characters: labels at the left fall on
 * round numbers, and unless is_fixed low and high are moved to such ones. */
void lumat_plot_fit(lumat_chart *c, int width, int lines, int is_fixed);
size_t lumat_plot_cells(const lumat_chart *c); /* bytes of cells */
size_t lumat_plot_room(const lumat_chart *c);  /* bytes of text */
void lumat_draw_plot(lumat_text *t, const lumat_style *s, lumat_chart *c);

/* The smallest of 1, 2, 5, 10, 20 … that is not below x > 0. */
double lumat_nice_above(double x);
/* A multiple of step, with no more digits than it takes. */
const char *lumat_tick(double x, double step, char out[LUMAT_BRIEF]);

#endif
