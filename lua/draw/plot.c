/* plot: lines of vectors, of a matrix's columns, or of a function. Of a line
 * with more points than the picture can tell apart, only the least and the
 * greatest of each column of dots cross the bus. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "arguments.h"
#include "function.h"
#include "draw.h"
#include "math_functions.h"
#include "picture.h"
#include "print.h"
#include "value.h"

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

/* --- drawing lines over axes ---------------------------------------------- */
/* Pure. */

/* --- axes ----------------------------------------------------------------- */

enum { LEAST_LINES = 4, LINES_A_TICK = 4, COLUMNS_A_TICK = 12 };
enum { LEAST_COLUMNS = 4 };

/* The smallest of 1, 2, 5, 10, 20 … that is not below x > 0. */
static double nice_above(double x)
{
    static const double nice[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(x)));
    int i = 0;
    while (i < 3 && nice[i] * power < x * (1 - 1e-9))
        i++;
    return nice[i] * power;
}

/* A multiple of step, with no more digits than it takes. */
static const char *tick_text(double x, double step, char out[LUMAT_BRIEF])
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

/* The finite range of all series; 0 when there is no point to draw. */
static int plot_range(lumat_chart *c)
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
    double step = isfinite(span) ? nice_above(span / most) : 0;
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
        size_t n = strlen(tick_text(y, c->step, text));
        widest = n > widest ? n : widest;
    }
    return (int)widest + 1;
}

/* Fits the axes into width x lines characters: labels at the left fall on
 * round numbers, and unless is_fixed low and high are moved to such ones. */
static void fit_axes(lumat_chart *c, int width, int lines, int is_fixed)
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

static size_t plot_cells(const lumat_chart *c)
{
    return 2 * (size_t)c->lines * (size_t)c->columns;
}

static size_t plot_room(const lumat_chart *c)
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
            tick_text(y, c->step, out);
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
        int width = (int)strlen(tick_text(x, step, label));
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

static void draw_plot(lumat_text *t, const lumat_style *s, lumat_chart *c)
{
    memset(c->cells, 0, plot_cells(c));
    for (int i = 0; i < c->count; i++)
        draw_series(c, i);
    for (int line = 0; line < c->lines; line++)
        put_line(t, s, c, line);
    put_bottom(t, s, c);
    put_names(t, s, c);
}

/* --- what is drawn -------------------------------------------------------- */

enum { FILE_DOTS = 2000, SAMPLES_A_DOT = 2, MANY = 4 };

/* What is to be drawn, and on how many dots. */
typedef struct plan {
    lumat_series series[LUMAT_MOST_SERIES];
    int count;
    int64_t columns; /* the matrix has: more than can be drawn */
    int64_t dots;
} plan;

/* Memory that lives as long as the call: its userdata stays on the stack. */
static double *new_numbers(lua_State *L, int64_t count)
{
    luaL_checkstack(L, 4, "plot");
    return lua_newuserdatauv(L, (size_t)(count + 1) * sizeof(double), 0);
}

/* --- from matrices -------------------------------------------------------- */

/* 1 .. count, `each` times each. */
static double *push_places(lua_State *L, int64_t count, int64_t each,
                           int64_t length)
{
    double *x = new_numbers(L, count * each);
    double width = (double)length / (double)count;
    for (int64_t k = 0; k < count * each; k++)
        x[k] = (double)(k / each) * width + (width + 1) / 2;
    return x;
}

/* Every element of a vector, as f64. */
static double *push_all(lua_State *L, const gpu_matrix *v)
{
    gpu_matrix *wide = lumat_new_matrix(L);
    lumat_try(L, gpu_clone(v, GPU_F64, NULL, wide));
    double *y = new_numbers(L, gpu_size(v));
    lumat_try(L, gpu_download(wide, y));
    gpu_release(wide);
    return y;
}

/* The least and the greatest of each of `dots` parts, one after the other. */
static double *push_ends(lua_State *L, const gpu_matrix *v, int64_t dots)
{
    double *y = new_numbers(L, 2 * dots), *part = new_numbers(L, dots);
    for (int end = 0; end < 2; end++) {
        gpu_matrix *blocks = lumat_new_matrix(L);
        lumat_try(L, gpu_blocks(v, end ? GPU_BLOCK_MAX : GPU_BLOCK_MIN, dots, 1,
                                blocks));
        lumat_try(L, gpu_download(blocks, part));
        gpu_release(blocks);
        for (int64_t k = 0; k < dots; k++)
            y[2 * k + end] = part[k];
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return y;
}

/* The line of a vector; x NULL: over its places. */
static void add_vector(lua_State *L, plan *p, const gpu_matrix *v,
                       const double *x)
{
    lumat_series *s = &p->series[p->count++];
    int64_t n = v->rows;
    if (x || n <= MANY * p->dots) {
        s->y = push_all(L, v);
        s->x = x ? x : push_places(L, n, 1, n);
        s->count = n;
    } else {
        s->y = push_ends(L, v, p->dots);
        s->x = push_places(L, p->dots, 2, n);
        s->count = 2 * p->dots;
    }
}

/* A matrix, or the matrix of a table, which it replaces; not empty. */
static const gpu_matrix *check_dense(lua_State *L, int arg)
{
    gpu_device *cpu;
    if (lua_istable(L, arg)) {
        lumat_try(L, gpu_open("cpu", &cpu));
        lumat_push_from_table(L, arg, "plot", GPU_F64, cpu);
        lua_replace(L, arg);
    }
    const gpu_matrix *m = lumat_check_matrix(L, arg);
    if (gpu_size(m) == 0)
        luaL_argerror(L, arg, "the matrix has no elements");
    return m;
}

/* m's columns; those of a vector or of a row: itself. */
static gpu_matrix as_columns(const gpu_matrix *m)
{
    gpu_matrix c = *m;
    if (m->ndim == 1 || m->rows > 1)
        return c;
    c.rows = m->cols;
    c.cols = 1;
    c.row_stride = m->col_stride;
    c.col_stride = m->row_stride;
    return c;
}

static void add_columns(lua_State *L, plan *p, const gpu_matrix *m,
                        const double *x)
{
    gpu_matrix all = as_columns(m);
    p->columns = all.cols;
    for (int64_t j = 0; j < all.cols && j < LUMAT_MOST_SERIES; j++) {
        gpu_matrix *column = lumat_new_matrix(L);
        gpu_view_column(&all, j, column);
        add_vector(L, p, column, x);
    }
}

static void add_matrices(lua_State *L, plan *p, int count)
{
    const gpu_matrix *first = check_dense(L, 1);
    const double *x = NULL;
    if (count == 2) {
        const gpu_matrix *y = check_dense(L, 2);
        gpu_matrix line = as_columns(first), lines = as_columns(y);
        if (line.cols > 1)
            luaL_argerror(L, 1, "x is a vector, one value for each row of y");
        if (line.rows != lines.rows)
            lumat_raise(L, "plot: x has %I elements, y has %I",
                        (LUAI_UACINT)line.rows, (LUAI_UACINT)lines.rows);
        line.ndim = 1;
        x = push_all(L, &line);
        first = y;
    }
    add_columns(L, p, first, x);
}

/* --- from functions ------------------------------------------------------- */

static double call_at(lua_State *L, double x)
{
    lua_pushvalue(L, 1);
    lua_pushnumber(L, x);
    lua_call(L, 1, 1);
    if (lua_type(L, -1) != LUA_TNUMBER)
        lumat_raise(L, "plot: f(%s) gave a %s, expected a number",
                    lumat_push_brief_number(L, x), lumat_kind_of(L, -1));
    double y = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return y;
}

static void add_function(lua_State *L, plan *p)
{
    lumat_series *s = &p->series[p->count++];
    double a = luaL_checknumber(L, 2), b = luaL_checknumber(L, 3);
    int64_t count = SAMPLES_A_DOT * p->dots;
    double *x = new_numbers(L, count), *y = new_numbers(L, count);
    if (!(a < b) || !isfinite(b - a))
        lumat_raise(L, "plot: %s to %s is no range",
                    lumat_push_brief_number(L, a),
                    lumat_push_brief_number(L, b));
    for (int64_t k = 0; k < count; k++) {
        double share = (double)k / (double)(count - 1);
        x[k] = a * (1 - share) + b * share;
        y[k] = call_at(L, x[k]);
    }
    *s = (lumat_series){x, y, count};
    p->columns = 1;
}

/* --- the function --------------------------------------------------------- */

/* A file's name, or a table with names in it, as no table of numbers has. */
static int is_options(lua_State *L, int arg)
{
    if (!lua_istable(L, arg))
        return lua_type(L, arg) == LUA_TSTRING;
    lua_rawgeti(L, arg, 1);
    int is_list = !lua_isnil(L, -1);
    lua_pop(L, 1);
    return !is_list;
}

/* How many arguments come before the options, which move to `options`. */
static int take_arguments(lua_State *L, int *options)
{
    int count = lua_gettop(L);
    if (count > 1 && is_options(L, count))
        count--;
    if (count == 0)
        luaL_argerror(L, 1, "a matrix, a table or a function to draw expected");
    int needs = lua_isfunction(L, 1) ? 3 : 2;
    if (count > needs || (needs == 3 && count < 3))
        lumat_raise(L, "plot: takes a matrix, x and y, or a function and its "
                       "range: plot(f, a, b)");
    *options = count + 1;
    lua_settop(L, count + 1);
    return count;
}

static void gather(lua_State *L, plan *p, int count)
{
    if (lua_isfunction(L, 1))
        add_function(L, p);
    else
        add_matrices(L, p, count);
}

/* {{x = {…}, y = {…}}, …} */
static void push_series(lua_State *L, const plan *p)
{
    lua_createtable(L, p->count, 0);
    for (int i = 0; i < p->count; i++) {
        lua_createtable(L, 0, 2);
        lumat_push_numbers(L, p->series[i].x, p->series[i].count);
        lua_setfield(L, -2, "x");
        lumat_push_numbers(L, p->series[i].y, p->series[i].count);
        lua_setfield(L, -2, "y");
        lua_rawseti(L, -2, i + 1);
    }
}

static int write_file(lua_State *L, const plan *p)
{
    push_series(L, p);
    lua_pushliteral(L, "");
    lumat_write_picture(L, 2);
    return 1;
}

/* The axes: what the lines need, but for what the options say. */
static void fit(lua_State *L, lumat_chart *c, const plan *p, int options,
                const lumat_style *style)
{
    c->series = p->series;
    c->count = p->count;
    if (!plot_range(c))
        lumat_raise(L, "plot: there is no finite point to draw");
    double low = lumat_option_number(L, options, "low", c->low);
    double high = lumat_option_number(L, options, "high", c->high);
    int is_fixed = low != c->low || high != c->high;
    if (!(low <= high) || !isfinite(low) || !isfinite(high))
        lumat_raise(L, "plot: %s to %s is no range",
                    lumat_push_brief_number(L, low),
                    lumat_push_brief_number(L, high));
    c->low = low;
    c->high = high;
    fit_axes(c, style->width, lumat_picture_lines(style), is_fixed);
    c->cells = lua_newuserdatauv(L, plot_cells(c), 0);
}

/* In memory pushed onto the stack. */
static void draw(lua_State *L, lumat_text *t, const lumat_style *style,
                 lumat_chart *c, const plan *p)
{
    lumat_new_text(L, t, plot_room(c));
    draw_plot(t, style, c);
    if (p->columns > LUMAT_MOST_SERIES)
        lumat_putf(t, "\n  the first %d of %lld columns", LUMAT_MOST_SERIES,
                   (long long)p->columns);
}

/* plot(…) */
static int plot(lua_State *L)
{
    int options, count = take_arguments(L, &options);
    lumat_chart c = {.count = 0};
    lumat_text t, plain;
    plan p = {.count = 0};
    lumat_style style = lumat_picture_style(L, options);
    int to_file = lua_istable(L, options) && lua_getfield(L, options, "file");
    p.dots = to_file ? FILE_DOTS : (int64_t)style.width * LUMAT_DOTS_X;
    gather(L, &p, count);
    if (lumat_wants_file(L, options, "plot"))
        return write_file(L, &p);
    fit(L, &c, &p, options, &style);
    draw(L, &t, &style, &c, &p);
    style.colour = 0;
    draw(L, &plain, &style, &c, &p);
    lua_newtable(L);
    lua_pushnumber(L, c.low);
    lua_setfield(L, -2, "low");
    lua_pushnumber(L, c.high);
    lua_setfield(L, -2, "high");
    lumat_show_as(L, &t, &plain);
    return 1;
}

static const lumat_function functions[] = {
    {"plot", plot, 1,
     "y: matrix|table {width, height, low, high, file} or x: vector|table, y: "
     "matrix|table "
     "{width, height, low, high, file} or f: function, a: number, b: number "
     "{width, height, low, high, file}",
     "table",
     "A line through a vector's elements, one for each column of a matrix, or "
     "that of a function; low and high set the axis. With file = \"p.png\" or "
     "\"p.svg\", drawn by gnuplot. Also :plot y.",
     "plot(vec{1, 3, 2}).high >= 3", "true", .group = "pictures"},
    {0}};

void lumat_open_plot(lua_State *L)
{
    lumat_register(L, functions);
}
