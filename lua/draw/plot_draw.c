/* Drawing lines over axes. Pure. */
#include "plot_draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- axes ----------------------------------------------------------------- */

enum { LEAST_LINES = 4, LINES_A_TICK = 4, COLUMNS_A_TICK = 12 };
enum { LEAST_COLUMNS = 4 };

double lumat_nice_above(double x)
{
    static const double nice[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(x)));
    int i = 0;
    while (i < 3 && nice[i] * power < x * (1 - 1e-9))
        i++;
    return nice[i] * power;
}

const char *lumat_tick(double x, double step, char out[LUMAT_BRIEF])
{
    enum { MOST_DECIMALS = 6, MOST_DIGITS = 7 };
    double most = fmax(fabs(x), step);
    int above = (int)floor(log10(most) + 1e-9) + 1; /* digits before the dot */
    int decimals = -(int)floor(log10(step) + 1e-9);
    if (fabs(x) < step * 1e-6)
        x = 0;
    if (above <= MOST_DIGITS && decimals <= MOST_DECIMALS)
        snprintf(out, LUMAT_BRIEF, "%.*f", decimals > 0 ? decimals : 0, x);
    else
        lumat_brief(x, above + decimals > 16 ? 17 : above + decimals + 1, out);
    return out;
}

int lumat_plot_range(lumat_chart *c)
{
    c->left = c->low = INFINITY;
    c->right = c->high = -INFINITY;
    for (int i = 0; i < c->count; i++)
        for (int64_t k = 0; k < c->series[i].count; k++) {
            double x = c->series[i].x[k], y = c->series[i].y[k];
            if (!isfinite(x) || !isfinite(y))
                continue;
            c->left = fmin(c->left, x);
            c->right = fmax(c->right, x);
            c->low = fmin(c->low, y);
            c->high = fmax(c->high, y);
        }
    return c->left <= c->right;
}

/* A range of some width around one that has none. */
static void widen(double *low, double *high)
{
    double apart = fabs(*low) * 0.5;
    if (*low < *high)
        return;
    apart = apart > 0 && isfinite(apart) ? apart : 1;
    *low -= apart;
    *high += apart;
}

/* Distance of labels; 0 where the range has no room for round numbers. */
static double tick_step(double low, double high, int most)
{
    double span = high - low;
    double step = isfinite(span) ? lumat_nice_above(span / most) : 0;
    return step > fmax(fabs(low), fabs(high)) * 1e-14 && isnormal(step) ? step
                                                                        : 0;
}

static int gutter_for(const lumat_chart *c)
{
    char text[LUMAT_BRIEF];
    size_t widest = 1;
    if (c->step == 0)
        return 10;
    for (double y = ceil(c->low / c->step - 1e-9) * c->step;
         y <= c->high + c->step * 1e-9; y += c->step) {
        size_t n = strlen(lumat_tick(y, c->step, text));
        widest = n > widest ? n : widest;
    }
    return (int)widest + 1;
}

void lumat_plot_fit(lumat_chart *c, int width, int lines, int is_fixed)
{
    widen(&c->left, &c->right);
    widen(&c->low, &c->high);
    c->lines = lines > LEAST_LINES ? lines : LEAST_LINES;
    c->step = tick_step(c->low, c->high, c->lines / LINES_A_TICK + 1);
    if (c->step > 0 && !is_fixed) {
        c->low = floor(c->low / c->step + 1e-9) * c->step;
        c->high = ceil(c->high / c->step - 1e-9) * c->step;
    }
    c->gutter = gutter_for(c);
    c->columns = width - c->gutter - 2;
    c->columns = c->columns > LEAST_COLUMNS ? c->columns : LEAST_COLUMNS;
}

size_t lumat_plot_cells(const lumat_chart *c)
{
    return 2 * (size_t)c->lines * (size_t)c->columns;
}

size_t lumat_plot_room(const lumat_chart *c)
{
    enum { CHARACTER = 24, LINE = 128, REST = 4096 };
    return (size_t)(c->lines + 2) * ((size_t)c->columns * CHARACTER + LINE) +
           REST;
}

/* --- dots ----------------------------------------------------------------- */

/* A character's cell: its dots, and the number of the series drawn last plus
 * one. */
static void set_dot(lumat_chart *c, int x, int y, int series)
{
    unsigned char *cell =
        &c->cells[2 * (y / LUMAT_DOTS_Y * c->columns + x / LUMAT_DOTS_X)];
    cell[0] |= (unsigned char)(1u << (LUMAT_DOTS_Y * (x % LUMAT_DOTS_X) +
                                      y % LUMAT_DOTS_Y));
    cell[1] = (unsigned char)(series + 1);
}

typedef struct spot { /* in dots from the top left, not rounded */
    double x, y;
} spot;

static spot spot_of(const lumat_chart *c, double x, double y)
{
    double wide = c->columns * LUMAT_DOTS_X - 1;
    double high = c->lines * LUMAT_DOTS_Y - 1;
    /* halves, as the differences may overflow */
    double across = (x / 2 - c->left / 2) / (c->right / 2 - c->left / 2);
    double up = (y / 2 - c->low / 2) / (c->high / 2 - c->low / 2);
    return (spot){across * wide, (1 - up) * high};
}

/* Cuts the part t .. of a line off that lies on the wrong side of an edge:
 * p t <= q. Source: Liang and Barsky, A new concept and method for line
 * clipping, 1984. */
static int clip(double p, double q, double *from, double *to)
{
    if (p == 0)
        return q >= 0;
    double t = q / p;
    if (p < 0 && t > *from)
        *from = t;
    if (p > 0 && t < *to)
        *to = t;
    return *from <= *to;
}

static void draw_line(lumat_chart *c, spot a, spot b, int series)
{
    double wide = c->columns * LUMAT_DOTS_X - 1;
    double high = c->lines * LUMAT_DOTS_Y - 1;
    double dx = b.x - a.x, dy = b.y - a.y, from = 0, to = 1;
    if (!clip(-dx, a.x + 0.5, &from, &to) ||
        !clip(dx, wide + 0.49 - a.x, &from, &to) ||
        !clip(-dy, a.y + 0.5, &from, &to) ||
        !clip(dy, high + 0.49 - a.y, &from, &to))
        return;
    double length = fmax(fabs(dx), fabs(dy)) * (to - from);
    int steps = (int)ceil(length);
    for (int i = 0; i <= steps; i++) {
        double t = steps > 0 ? from + (to - from) * i / steps : from;
        double x = fmin(fmax(round(a.x + t * dx), 0), wide);
        double y = fmin(fmax(round(a.y + t * dy), 0), high);
        set_dot(c, (int)x, (int)y, series);
    }
}

static void draw_series(lumat_chart *c, int number)
{
    const lumat_series *s = &c->series[number];
    int is_connected = 0;
    spot before = {0, 0};
    for (int64_t k = 0; k < s->count; k++) {
        int is_there = isfinite(s->x[k]) && isfinite(s->y[k]);
        spot here = is_there ? spot_of(c, s->x[k], s->y[k]) : before;
        if (is_there)
            draw_line(c, is_connected ? before : here, here, number);
        before = here;
        is_connected = is_there;
    }
}

/* --- text ----------------------------------------------------------------- */

static const unsigned char colours[LUMAT_MOST_SERIES] = {39,  208, 35, 197,
                                                         141, 178, 45, 245};
static const char marks[] = "*+ox#%@&";

static void put_cell(lumat_text *t, const lumat_style *s, const lumat_chart *c,
                     const unsigned char *cell)
{
    if (cell[0] == 0) {
        lumat_put(t, " ");
        return;
    }
    if (s->colour)
        lumat_putf(t, "\033[38;5;%dm", colours[cell[1] - 1]);
    if (s->ascii || (!s->colour && c->count > 1))
        lumat_putf(t, "%c", marks[cell[1] - 1]);
    else
        lumat_put_braille(t, cell[0]);
    if (s->colour)
        lumat_put(t, lumat_plain);
}

/* The label of a line: a round number that lies on it, or blanks. */
static int find_tick(const lumat_chart *c, int line, char out[LUMAT_BRIEF])
{
    if (c->step == 0) {
        lumat_brief(line == 0 ? c->high : c->low, 4, out);
        return line == 0 || line == c->lines - 1;
    }
    for (double y = ceil(c->low / c->step - 1e-9) * c->step;
         y <= c->high + c->step * 1e-9; y += c->step) {
        int at = (int)round(spot_of(c, c->left, y).y) / LUMAT_DOTS_Y;
        if (at == line) {
            lumat_tick(y, c->step, out);
            return 1;
        }
    }
    return 0;
}

static void put_line(lumat_text *t, const lumat_style *s, const lumat_chart *c,
                     int line)
{
    char label[LUMAT_BRIEF] = "", edge[64];
    int is_tick = find_tick(c, line, label);
    const char *side = is_tick ? s->ascii ? "+" : "┤" : s->ascii ? "|" : "│";
    snprintf(edge, sizeof edge, "%*s %s", c->gutter, is_tick ? label : "",
             side);
    lumat_put_dim(t, s, edge);
    for (int x = 0; x < c->columns; x++)
        put_cell(t, s, c, &c->cells[2 * (line * c->columns + x)]);
    lumat_put(t, "\n");
}

/* The axis below with its labels, which must not touch each other. */
static void put_bottom(lumat_text *t, const lumat_style *s,
                       const lumat_chart *c)
{
    char label[LUMAT_BRIEF], axis[8192], numbers[8192];
    lumat_text a = {axis, 0, sizeof axis}, n = {numbers, 0, sizeof numbers};
    double step = tick_step(c->left, c->right, c->columns / COLUMNS_A_TICK + 1);
    double x = step > 0 ? ceil(c->left / step - 1e-9) * step : INFINITY;
    axis[0] = numbers[0] = '\0';
    for (int i = 0, used = 0; i < c->columns; i++) {
        int at = x <= c->right + step * 1e-9
                     ? (int)round(spot_of(c, x, c->low).x) / LUMAT_DOTS_X
                     : -1;
        lumat_put(&a, i == at ? s->ascii ? "+" : "┬" : s->ascii ? "-" : "─");
        if (i != at)
            continue;
        int width = (int)strlen(lumat_tick(x, step, label));
        int from = i - width / 2 > 0 ? i - width / 2 : 0;
        from = from + width > c->columns ? c->columns - width : from;
        if (from >= used + (used > 0)) {
            lumat_put_times(&n, " ", from - used);
            lumat_put(&n, label);
            used = from + width;
        }
        x += step;
    }
    lumat_put_times(t, " ", c->gutter + 1);
    lumat_put_dim(t, s, s->ascii ? "+" : "└");
    lumat_put_dim(t, s, axis);
    lumat_put(t, "\n");
    lumat_put_times(t, " ", c->gutter + 2);
    lumat_put_dim(t, s, numbers);
}

/* Which series is which. */
static void put_names(lumat_text *t, const lumat_style *s, const lumat_chart *c)
{
    char piece[96];
    lumat_flow flow = {t, s->width, c->gutter + 2, 3, 0};
    for (int i = 0; c->count > 1 && i < c->count; i++) {
        if (i == 0)
            lumat_put(t, "\n");
        if (s->colour)
            snprintf(piece, sizeof piece, "\033[38;5;%dm%s%s column %d",
                     colours[i], s->ascii ? "*" : "⠒⠒", lumat_plain, i + 1);
        else
            snprintf(piece, sizeof piece, "%c column %d", marks[i], i + 1);
        lumat_flow_add(&flow, piece);
    }
}

void lumat_draw_plot(lumat_text *t, const lumat_style *s, lumat_chart *c)
{
    memset(c->cells, 0, lumat_plot_cells(c));
    for (int i = 0; i < c->count; i++)
        draw_series(c, i);
    for (int line = 0; line < c->lines; line++)
        put_line(t, s, c, line);
    put_bottom(t, s, c);
    put_names(t, s, c);
}
