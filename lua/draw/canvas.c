/* What text charts are drawn on, and the passes over numbers that drawing
 * takes: `require "lumat.canvas"`, for lua/charts. A canvas is characters of 2
 * x 4 dots, each with the ink (a series' number) drawn there last, and marks
 * over them. Where things lie on it is the chart's business: it says how far
 * the axes reach. */
#include <math.h>
#include <string.h>
#include "draw.h"
#include "picture.h"
#include "value.h"
#include "lauxlib.h"

enum { MOST_SIDE = 10000, DOTS_Y = LUMAT_DOTS_Y, DOTS_X = LUMAT_DOTS_X };

typedef struct cell {
    unsigned char dots; /* bit 4 * x + y of its 2 x 4 */
    unsigned char ink;  /* 0: none */
    unsigned char mark; /* over the dots; 0: none */
} cell;

typedef struct canvas {
    int columns, lines; /* of characters */
    cell cells[];
} canvas;

static const int64_t MOST_NUMBERS = (int64_t)1 << 40;

static const char CANVAS[] = "lumat.canvas", NUMBERS[] = "lumat.numbers";

/* --- numbers -------------------------------------------------------------- */
/* What C hands to the charts: as a list of Lua's, a quarter of its memory. */

typedef struct numbers {
    int64_t count;
    double at[];
} numbers;

static int count_numbers(lua_State *L)
{
    const numbers *n = luaL_checkudata(L, 1, NUMBERS);
    lua_pushinteger(L, n->count);
    return 1;
}

static int get_number(lua_State *L)
{
    const numbers *n = luaL_checkudata(L, 1, NUMBERS);
    lua_Integer i = lua_tointeger(L, 2);
    if (i < 1 || i > n->count)
        return 0;
    lua_pushnumber(L, n->at[i - 1]);
    return 1;
}

double *lumat_new_numbers(lua_State *L, int64_t count)
{
    luaL_checkstack(L, 4, "a chart");
    if (count < 0 || count > MOST_NUMBERS)
        luaL_error(L, "a chart has room for %I numbers, not %I",
                   (LUAI_UACINT)MOST_NUMBERS, (LUAI_UACINT)count);
    numbers *n = lua_newuserdatauv(
        L, sizeof *n + (size_t)(count + 1) * sizeof(double), 0);
    n->count = count;
    if (luaL_newmetatable(L, NUMBERS)) {
        lua_pushcfunction(L, count_numbers);
        lua_setfield(L, -2, "__len");
        lua_pushcfunction(L, get_number);
        lua_setfield(L, -2, "__index");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
    }
    lua_setmetatable(L, -2);
    return n->at;
}

const double *lumat_check_numbers(lua_State *L, int index, int64_t *count)
{
    const numbers *n = luaL_testudata(L, index, NUMBERS);
    if (!n) {
        luaL_checktype(L, index, LUA_TTABLE);
        *count = luaL_len(L, index);
        double *list = lumat_new_numbers(L, *count);
        for (int64_t i = 0; i < *count; i++) {
            int is_number = lua_geti(L, index, i + 1) == LUA_TNUMBER;
            list[i] = is_number ? lua_tonumber(L, -1) : NAN;
            lua_pop(L, 1);
        }
        lua_replace(L, index);
        return list;
    }
    *count = n->count;
    return n->at;
}

/* numbers(A): the elements of a matrix, row by row, as f64. */
static int numbers_of(lua_State *L)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    gpu_matrix *wide = lumat_new_matrix(L);
    lumat_try(L, gpu_clone(m, GPU_F64, NULL, wide));
    double *at = lumat_new_numbers(L, gpu_size(wide));
    lumat_try(L, gpu_download(wide, at));
    gpu_release(wide);
    return 1;
}

/* why_undrawn(x): what to draw in its place, or nil */
static int why_undrawn(lua_State *L)
{
    lua_pushstring(L, lumat_why_undrawn(L, 1));
    return 1;
}

/* survey(A): how many elements are NaN and how many infinite, and the least and
 * the greatest of the others, in one pass. */
static int survey(lua_State *L)
{
    gpu_survey s;
    lumat_try(L, gpu_take_survey(lumat_check_matrix(L, 1), &s));
    lua_pushinteger(L, s.nan);
    lua_pushinteger(L, s.inf);
    lua_pushnumber(L, s.finite > 0 ? s.min : NAN);
    lua_pushnumber(L, s.finite > 0 ? s.max : NAN);
    return 4;
}

/* Adds x, y to the ranges low[i] .. high[i] if both have a place. */
static void widen(double *low, double *high, const double *at,
                  const int *is_log, int sides)
{
    for (int i = 0; i < sides; i++)
        if (!isfinite(at[i]) || (is_log[i] && at[i] <= 0))
            return;
    for (int i = 0; i < sides; i++) {
        low[i] = fmin(low[i], at[i]);
        high[i] = fmax(high[i], at[i]);
    }
}

/* spread(xs [, ys [, x is log, y is log]]): the least and the greatest x, then
 * y, of the points that have a place; nothing where none has. */
static int spread(lua_State *L)
{
    int64_t count, other;
    lua_settop(L, 4);
    int sides = lua_isnil(L, 2) ? 1 : 2;
    int is_log[] = {lua_toboolean(L, 3), lua_toboolean(L, 4)};
    double low[] = {INFINITY, INFINITY}, high[] = {-INFINITY, -INFINITY};
    const double *x = lumat_check_numbers(L, 1, &count);
    const double *y = sides == 2 ? lumat_check_numbers(L, 2, &other) : x;
    count = sides == 2 && other < count ? other : count;
    for (int64_t i = 0; i < count; i++) {
        double at[] = {x[i], y[i]};
        widen(low, high, at, is_log, sides);
    }
    if (low[0] > high[0])
        return 0;
    for (int i = 0; i < sides; i++) {
        lua_pushnumber(L, low[i]);
        lua_pushnumber(L, high[i]);
    }
    return 2 * sides;
}

/* --- dots ----------------------------------------------------------------- */

typedef struct spot { /* in dots from the top left, not rounded */
    double x, y;
} spot;

static double width_of(const canvas *c)
{
    return c->columns * DOTS_X - 1;
}

static double height_of(const canvas *c)
{
    return c->lines * DOTS_Y - 1;
}

static cell *cell_at(canvas *c, int x, int y)
{
    return &c->cells[y / DOTS_Y * c->columns + x / DOTS_X];
}

static void set_dot(canvas *c, int x, int y, int ink)
{
    cell *here = cell_at(c, x, y);
    here->dots |= (unsigned char)(1u << (DOTS_Y * (x % DOTS_X) + y % DOTS_Y));
    here->ink = (unsigned char)ink;
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

static void draw_line(canvas *c, spot a, spot b, int ink)
{
    double wide = width_of(c), high = height_of(c);
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
        set_dot(c, (int)x, (int)y, ink);
    }
}

/* --- from Lua ------------------------------------------------------------- */

static canvas *check_canvas(lua_State *L)
{
    return luaL_checkudata(L, 1, CANVAS);
}

static int check_ink(lua_State *L, int arg)
{
    return (int)(luaL_optinteger(L, arg, 0) & 0xFF);
}

/* A spot from shares of the canvas, upwards. */
static spot check_spot(lua_State *L, const canvas *c, int arg)
{
    double x = luaL_checknumber(L, arg), y = luaL_checknumber(L, arg + 1);
    return (spot){x * width_of(c), (1 - y) * height_of(c)};
}

/* new(columns, lines) */
static int new_canvas(lua_State *L)
{
    lua_Integer columns = luaL_checkinteger(L, 1);
    lua_Integer lines = luaL_checkinteger(L, 2);
    luaL_argcheck(L, columns >= 1 && columns <= MOST_SIDE, 1, "no width");
    luaL_argcheck(L, lines >= 1 && lines <= MOST_SIDE, 2, "no height");
    size_t bytes = sizeof(canvas) + (size_t)(columns * lines) * sizeof(cell);
    canvas *c = lua_newuserdatauv(L, bytes, 0);
    memset(c, 0, bytes);
    c->columns = (int)columns;
    c->lines = (int)lines;
    luaL_setmetatable(L, CANVAS);
    return 1;
}

/* c:line(x1, y1, x2, y2, ink), in shares of the canvas */
static int line(lua_State *L)
{
    canvas *c = check_canvas(L);
    spot a = check_spot(L, c, 2), b = check_spot(L, c, 4);
    if (isfinite(a.x + a.y + b.x + b.y))
        draw_line(c, a, b, check_ink(L, 6));
    return 0;
}

/* c:fill(x1, y1, x2, y2, ink): every dot of a rectangle. */
static int fill(lua_State *L)
{
    canvas *c = check_canvas(L);
    spot a = check_spot(L, c, 2), b = check_spot(L, c, 4);
    int ink = check_ink(L, 6);
    double left = fmax(round(fmin(a.x, b.x)), 0);
    double right = fmin(round(fmax(a.x, b.x)), width_of(c));
    double top = fmax(round(fmin(a.y, b.y)), 0);
    double bottom = fmin(round(fmax(a.y, b.y)), height_of(c));
    for (double y = top; y <= bottom; y++)
        for (double x = left; x <= right; x++)
            set_dot(c, (int)x, (int)y, ink);
    return 0;
}

/* c:mark(x, y, mark, ink [, only_free]): mark is a number of the list that
 * c:row gets. */
static int mark(lua_State *L)
{
    canvas *c = check_canvas(L);
    spot s = check_spot(L, c, 2);
    double x = round(s.x), y = round(s.y);
    if (!(x >= 0 && x <= width_of(c) && y >= 0 && y <= height_of(c)))
        return 0;
    cell *here = cell_at(c, (int)x, (int)y);
    if (here->mark && lua_toboolean(L, 6))
        return 0;
    here->mark = (unsigned char)(luaL_checkinteger(L, 4) & 0xFF);
    here->ink = (unsigned char)check_ink(L, 5);
    return 0;
}

/* --- series --------------------------------------------------------------- */

typedef struct axis { /* {low=, high=, is_log=} */
    double low, high;
    int is_log;
} axis;

static axis check_axis(lua_State *L, int arg)
{
    axis a;
    luaL_checktype(L, arg, LUA_TTABLE);
    lua_getfield(L, arg, "low");
    lua_getfield(L, arg, "high");
    lua_getfield(L, arg, "is_log");
    a.low = luaL_checknumber(L, -3);
    a.high = luaL_checknumber(L, -2);
    a.is_log = lua_toboolean(L, -1);
    lua_pop(L, 3);
    if (a.is_log) {
        a.low = log(a.low);
        a.high = log(a.high);
    }
    return a;
}

/* Halves, as the differences may overflow. */
static double share_of(const axis *a, double x)
{
    x = a->is_log ? log(x) : x;
    return (x / 2 - a->low / 2) / (a->high / 2 - a->low / 2);
}

/* c:series(xs, ys, x axis, y axis, ink, joined): points, or the line through
 * them, which what is no finite number breaks. */
static int series(lua_State *L)
{
    canvas *c = check_canvas(L);
    int64_t count, other;
    const double *x = lumat_check_numbers(L, 2, &count);
    const double *y = lumat_check_numbers(L, 3, &other);
    axis across = check_axis(L, 4), up = check_axis(L, 5);
    int ink = check_ink(L, 6), is_joined = lua_toboolean(L, 7);
    double wide = width_of(c), high = height_of(c);
    int is_connected = 0;
    spot before = {0, 0};
    count = count < other ? count : other;
    for (int64_t k = 0; k < count; k++) {
        spot here = {share_of(&across, x[k]) * wide,
                     (1 - share_of(&up, y[k])) * high};
        int is_there = isfinite(here.x) && isfinite(here.y);
        if (is_there)
            draw_line(c, is_connected ? before : here, here, ink);
        before = here;
        is_connected = is_there && is_joined;
    }
    return 0;
}

/* --- text ----------------------------------------------------------------- */

/* The string at t[i], or otherwise; it lives as long as the table. */
static const char *text_at(lua_State *L, int t, int i, const char *otherwise)
{
    if (!lua_istable(L, t))
        return otherwise;
    lua_rawgeti(L, t, i);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1);
    return text ? text : otherwise;
}

static void add_dots(luaL_Buffer *b, unsigned dots)
{
    char text[8];
    lumat_text t = {text, 0, sizeof text};
    text[0] = '\0';
    lumat_put_braille(&t, dots);
    luaL_addstring(b, text);
}

/* c:row(line, marks, inks, chars): its text, without blanks at the end. inks:
 * the SGR codes of each ink, nil without colours; chars: what stands for the
 * dots of an ink, nil for dots; marks and inks are lists, [0] of chars is that
 * of no ink. */
static int row(lua_State *L)
{
    const canvas *c = check_canvas(L);
    lua_Integer number = luaL_checkinteger(L, 2);
    luaL_argcheck(L, number >= 1 && number <= c->lines, 2, "no such line");
    const cell *at = &c->cells[(number - 1) * c->columns];
    int blanks = 0, pen = 0;
    luaL_Buffer b;
    lua_settop(L, 5);
    luaL_buffinit(L, &b);
    for (int i = 0; i < c->columns; i++) {
        const cell *here = &at[i];
        if (!here->dots && !here->mark) {
            blanks++;
            continue;
        }
        for (; blanks > 0; blanks--)
            luaL_addchar(&b, ' ');
        const char *code = text_at(L, 4, here->ink, "");
        const char *dots = text_at(L, 5, here->ink, NULL);
        const char *over = text_at(L, 3, here->mark, "?");
        if (lua_istable(L, 4) && here->ink != pen) {
            luaL_addstring(&b, "\033[");
            luaL_addstring(&b, *code ? code : "0");
            luaL_addchar(&b, 'm');
            pen = here->ink;
        }
        if (here->mark)
            luaL_addstring(&b, over);
        else if (dots)
            luaL_addstring(&b, dots);
        else
            add_dots(&b, here->dots);
    }
    if (pen)
        luaL_addstring(&b, lumat_plain);
    luaL_pushresult(&b);
    return 1;
}

/* --- images --------------------------------------------------------------- */

/* image(values, rows, cols, low, high, columns, lines, colour, ascii): lines of
 * characters in colours or shades, stretched to the size; row 1 is at the
 * top. */
static int image(lua_State *L)
{
    int64_t count, rows = luaL_checkinteger(L, 2),
                   cols = luaL_checkinteger(L, 3);
    const double *values = lumat_check_numbers(L, 1, &count);
    double low = luaL_checknumber(L, 4), high = luaL_checknumber(L, 5);
    lua_Integer columns = luaL_checkinteger(L, 6),
                lines = luaL_checkinteger(L, 7);
    lumat_style style = lumat_style_now(L);
    if (!lua_toboolean(L, 8))
        style.colour = 0;
    else if (!style.colour)
        style.colour = 1;
    style.ascii = lua_toboolean(L, 9);
    luaL_argcheck(L, rows > 0 && cols > 0 && rows <= count / cols, 1,
                  "too few numbers");
    luaL_argcheck(L, columns >= 1 && columns <= MOST_SIDE, 6, "no width");
    luaL_argcheck(L, lines >= 1 && lines <= MOST_SIDE, 7, "no height");
    lumat_frame f = {.dots_x = 1, .zoom_x = 1, .zoom_y = 1};
    f.dots_y = lumat_heat_dots(&style);
    f.m = f.rows = (int)lines * f.dots_y;
    f.n = f.cols = f.columns = (int)columns;
    f.lines = (int)lines;
    double *seen = lumat_new_numbers(L, (int64_t)f.rows * f.cols);
    for (int64_t i = 0; i < f.rows; i++)
        for (int64_t j = 0; j < f.cols; j++)
            seen[i * f.cols + j] =
                values[i * rows / f.rows * cols + j * cols / f.cols];
    lumat_text t;
    lumat_new_text(L, &t, lumat_heat_room(&f));
    lumat_draw_heat_lines(&t, &style, &f, seen, low, high);
    lua_pushlstring(L, t.at, t.length);
    return 1;
}

/* palette(is_two_sided): the colours of images, {r, g, b} each, evenly from the
 * least value to the greatest. */
static int palette(lua_State *L)
{
    int is_two_sided = lua_toboolean(L, 1);
    lua_createtable(L, LUMAT_STOPS, 0);
    for (int i = 0; i < LUMAT_STOPS; i++) {
        double share = (double)i / (LUMAT_STOPS - 1);
        lumat_rgb c = is_two_sided ? lumat_heat_colour(2 * share - 1, -1, 1)
                                   : lumat_heat_colour(share, 0, 1);
        lua_createtable(L, 3, 0);
        const unsigned char parts[] = {c.red, c.green, c.blue};
        for (int k = 0; k < 3; k++) {
            lua_pushinteger(L, parts[k]);
            lua_rawseti(L, -2, k + 1);
        }
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static const luaL_Reg functions[] = {{"new", new_canvas},
                                     {"numbers", numbers_of},
                                     {"survey", survey},
                                     {"why_undrawn", why_undrawn},
                                     {"spread", spread},
                                     {"image", image},
                                     {"palette", palette},
                                     {"raster", lumat_new_raster},
                                     {"deflate", lumat_deflate},
                                     {"tostring", lumat_chart_tostring},
                                     {NULL, NULL}};
static const luaL_Reg methods[] = {{"line", line}, {"fill", fill},
                                   {"mark", mark}, {"series", series},
                                   {"row", row},   {NULL, NULL}};

static int open_canvas(lua_State *L)
{
    if (luaL_newmetatable(L, CANVAS)) {
        luaL_newlib(L, methods);
        lua_setfield(L, -2, "__index");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
    }
    lumat_open_raster(L);
    luaL_newlib(L, functions);
    return 1;
}

void lumat_open_canvas(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, open_canvas);
    lua_setfield(L, -2, "lumat.canvas");
    lua_pop(L, 1);
}
