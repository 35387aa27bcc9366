/* Drawing heat maps and patterns of blocks. Pure. */
#include "heat_draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- heat maps ------------------------------------------------------------ */

/* From low to high, without colours. */
static const char *const shades[] = {" ", "░", "▒", "▓", "█"};
static const char ascii_shades[] = " .:-=+*#%@";
enum { SHADES = 5, ASCII_SHADES = 10, SCALE_COLUMNS = 10 };

/* Which way a picture is made: two values a character, one above the other in
 * colours; one in the colour behind a blank; or shades. */
typedef enum way { HALVES, BLANKS, SHADED, ASCII_SHADED } way;

static way way_of(const lumat_style *s)
{
    if (s->colour)
        return s->ascii ? BLANKS : HALVES;
    return s->ascii ? ASCII_SHADED : SHADED;
}

int lumat_heat_dots(const lumat_style *s)
{
    return way_of(s) == HALVES ? 2 : 1;
}

/* What is set on the terminal, to set it only when it changes. */
typedef struct pen {
    lumat_text *text;
    const lumat_style *style;
    double low, high;
    char set[80];
} pen;

static void pen_colours(pen *p, const double *above, const double *behind)
{
    char codes[80];
    lumat_text t = {codes, 0, sizeof codes};
    codes[0] = '\0';
    if (above)
        lumat_put_colour(&t, p->style,
                         lumat_heat_colour(*above, p->low, p->high), 0);
    if (behind)
        lumat_put_colour(&t, p->style,
                         lumat_heat_colour(*behind, p->low, p->high), 1);
    if (strcmp(codes, p->set) == 0)
        return;
    /* what is not set anew must not stay */
    lumat_put(p->text, p->set[0] && (!above || !behind) ? lumat_plain : "");
    lumat_put(p->text, codes);
    strcpy(p->set, codes);
}

static void pen_end(pen *p)
{
    if (p->set[0])
        lumat_put(p->text, lumat_plain);
    p->set[0] = '\0';
}

/* NaN and Inf, whatever the way. */
static void put_odd(pen *p)
{
    pen_end(p);
    lumat_put(p->text, p->style->colour ? "\033[1;37;41m!\033[0m" : "!");
}

static void put_shade(pen *p, double value)
{
    double span = p->high / 2 - p->low / 2;
    double share = span > 0 ? (value / 2 - p->low / 2) / span : 0.5;
    int most = way_of(p->style) == SHADED ? SHADES : ASCII_SHADES;
    int i = (int)(fmin(fmax(share, 0), 1) * most);
    i = i < most ? i : most - 1;
    if (most == SHADES)
        lumat_put(p->text, shades[i]);
    else
        lumat_putf(p->text, "%c", ascii_shades[i]);
}

/* lower is NULL in a last line of one half. Without colours: their mean. */
static void put_halves(pen *p, const double *upper, const double *lower)
{
    if (!isfinite(*upper) || (lower && !isfinite(*lower))) {
        put_odd(p);
        return;
    }
    if (!p->style->colour) {
        put_shade(p, lower ? *upper / 2 + *lower / 2 : *upper);
        return;
    }
    pen_colours(p, upper, lower);
    lumat_put(p->text, "▀");
}

static void put_one(pen *p, const double *value)
{
    if (!isfinite(*value)) {
        put_odd(p);
    } else if (p->style->colour) {
        pen_colours(p, NULL, value);
        lumat_put(p->text, " ");
    } else {
        put_shade(p, *value);
    }
}

static void draw_line(pen *p, const lumat_frame *f, const double *values,
                      int line)
{
    int upper = line * f->dots_y / f->zoom_y;
    int lower = (line * f->dots_y + 1) / f->zoom_y;
    for (int x = 0; x < f->columns; x++) {
        int col = x / f->zoom_x;
        const double *a = &values[upper * f->cols + col];
        const double *b =
            lower < f->rows ? &values[lower * f->cols + col] : NULL;
        if (f->dots_y == 2)
            put_halves(p, a, b);
        else
            put_one(p, a);
    }
    pen_end(p);
}

/* The range, from low to high. */
static void put_scale(pen *p)
{
    for (int i = 0; i < SCALE_COLUMNS; i++) {
        double share = (double)i / (SCALE_COLUMNS - 1);
        double value = p->low + (p->high - p->low) * share;
        if (isinf(p->high - p->low))
            value = p->low * (1 - share) + p->high * share;
        put_one(p, &value);
    }
    pen_end(p);
}

static int count_odd(const lumat_frame *f, const double *values)
{
    int odd = 0;
    for (int k = 0; k < f->rows * f->cols; k++)
        odd += !isfinite(values[k]);
    return odd;
}

static void put_legend(pen *p, const lumat_frame *f, const double *values)
{
    char low[LUMAT_BRIEF], high[LUMAT_BRIEF], cell[64], piece[512];
    lumat_flow flow = {p->text, p->style->width, 2, 4, 0};
    lumat_text t = {piece, 0, sizeof piece};
    pen scale = {&t, p->style, p->low, p->high, ""};
    int odd = count_odd(f, values), is_all = odd == f->rows * f->cols;
    if (!is_all) {
        lumat_putf(&t, "%s ", lumat_brief(p->low, 5, low));
        put_scale(&scale);
        lumat_putf(&t, " %s", lumat_brief(p->high, 5, high));
        lumat_flow_add(&flow, piece);
    }
    lumat_cell_text(f, cell, sizeof cell);
    snprintf(piece, sizeof piece, "means of %s elements", cell);
    if (cell[0])
        lumat_flow_add(&flow, piece);
    snprintf(piece, sizeof piece, "! NaN or Inf in %d %s", odd,
             cell[0]   ? odd > 1 ? "blocks" : "block"
             : odd > 1 ? "elements"
                       : "element");
    if (odd)
        lumat_flow_add(&flow, piece);
}

void lumat_heat_range(const lumat_frame *f, const double *values, double *low,
                      double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (int k = 0; k < f->rows * f->cols; k++) {
        if (!isfinite(values[k]))
            continue;
        *low = fmin(*low, values[k]);
        *high = fmax(*high, values[k]);
    }
}

size_t lumat_heat_room(const lumat_frame *f)
{
    enum { CHARACTER = 48, LINE = 96, LEGEND = 2048 };
    return (size_t)f->lines * ((size_t)f->columns * CHARACTER + LINE) + LEGEND;
}

void lumat_draw_heat(lumat_text *t, const lumat_style *s, const lumat_frame *f,
                     const double *values, double low, double high)
{
    pen p = {t, s, low, high, ""};
    for (int line = 0; line < f->lines; line++) {
        lumat_put_row_number(t, s, f, line);
        draw_line(&p, f, values, line);
        lumat_put(t, "\n");
    }
    lumat_put_column_numbers(t, s, f, 0);
    lumat_put(t, "\n");
    put_legend(&p, f, values);
}

/* --- patterns ------------------------------------------------------------- */

static int is_set(const lumat_frame *f, const unsigned char *set, int y, int x)
{
    int row = y / f->zoom_y, col = x / f->zoom_x;
    return row < f->rows && col < f->cols && set[row * f->cols + col];
}

static void put_dots(lumat_text *t, const lumat_style *s, const lumat_frame *f,
                     const unsigned char *set, int line, int column)
{
    unsigned dots = 0;
    for (int x = 0; x < f->dots_x; x++)
        for (int y = 0; y < f->dots_y; y++)
            if (is_set(f, set, line * f->dots_y + y, column * f->dots_x + x))
                dots |= 1u << (LUMAT_DOTS_Y * x + y);
    if (s->ascii)
        lumat_put(t, dots ? "*" : " ");
    else
        lumat_put_braille(t, dots);
}

static void put_border(lumat_text *t, const lumat_style *s,
                       const lumat_frame *f, const char *left,
                       const char *right)
{
    lumat_put_times(t, " ", f->gutter);
    lumat_put(t, s->ascii ? "+" : left);
    lumat_put_times(t, s->ascii ? "-" : "─", f->columns);
    lumat_put(t, s->ascii ? "+" : right);
    lumat_put(t, "\n");
}

void lumat_draw_pattern(lumat_text *t, const lumat_style *s,
                        const lumat_frame *f, const unsigned char *set)
{
    const char *side = s->ascii ? "|" : "│";
    put_border(t, s, f, "┌", "┐");
    for (int line = 0; line < f->lines; line++) {
        lumat_put_row_number(t, s, f, line);
        lumat_put(t, side);
        for (int x = 0; x < f->columns; x++)
            put_dots(t, s, f, set, line, x);
        lumat_put(t, side);
        lumat_put(t, "\n");
    }
    put_border(t, s, f, "└", "┘");
    lumat_put_column_numbers(t, s, f, 1);
}
