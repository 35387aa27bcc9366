/* Pictures made of characters: text, colours, sizes and axes; and as Lua
 * values: what they are made of, their options, files. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "arguments.h"
#include "complex_numbers.h"
#include "parse.h"
#include "draw.h"
#include "picture.h"
#include "math_functions.h"
#include "print.h"
#include "value.h"

const char lumat_plain[] = "\033[0m";

/* --- text ----------------------------------------------------------------- */

void lumat_put(lumat_text *t, const char *s)
{
    size_t n = strlen(s);
    if (n >= t->room - t->length)
        return;
    memcpy(t->at + t->length, s, n + 1);
    t->length += n;
}

void lumat_putf(lumat_text *t, const char *format, ...)
{
    char piece[512];
    va_list args;
    va_start(args, format);
    vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    lumat_put(t, piece);
}

void lumat_put_times(lumat_text *t, const char *s, int64_t times)
{
    while (times-- > 0)
        lumat_put(t, s);
}

void lumat_put_count(lumat_text *t, int64_t n)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n);
    for (int i = 0; i < length; i++)
        lumat_putf(t, i > 0 && (length - i) % 3 == 0 ? " %c" : "%c", digits[i]);
}

void lumat_put_dim(lumat_text *t, const lumat_style *s, const char *text)
{
    lumat_putf(t, s->colour ? "\033[2m%s\033[0m" : "%s", text);
}

int lumat_columns(const char *text)
{
    int columns = 0;
    for (const char *p = text; *p;) {
        const char *behind = lumat_skip_colour(p);
        columns += behind == p && (*p & 0xC0) != 0x80;
        p = behind == p ? p + 1 : behind;
    }
    return columns;
}

void lumat_flow_add(lumat_flow *f, const char *piece)
{
    int columns = lumat_columns(piece);
    if (f->column > 0 && f->column + f->gap + columns > f->width) {
        lumat_put(f->text, "\n");
        f->column = 0;
    }
    int blanks = f->column > 0 ? f->gap : f->margin;
    lumat_put_times(f->text, " ", blanks);
    lumat_put(f->text, piece);
    f->column += blanks + columns;
}

const char *lumat_brief(double x, int digits, char out[LUMAT_BRIEF])
{
    const char *special = lumat_special(x);
    if (special)
        return strcpy(out, special);
    snprintf(out, LUMAT_BRIEF, "%.*g", digits, x == 0 ? 0 : x);
    return out;
}

/* --- colours -------------------------------------------------------------- */

/* Source: viridis, by Smith and van der Walt, 2015. */
static const lumat_rgb one_sided[LUMAT_STOPS] = {
    {68, 1, 84},    {71, 44, 122},  {59, 81, 139},
    {44, 113, 142}, {33, 144, 141}, {39, 173, 129},
    {92, 200, 99},  {170, 220, 50}, {253, 231, 37},
};
/* Source: Moreland, Diverging color maps for scientific visualization, 2009. */
static const lumat_rgb two_sided[LUMAT_STOPS] = {
    {59, 76, 192},   {98, 130, 234},  {141, 176, 254},
    {184, 208, 249}, {221, 221, 221}, {245, 196, 173},
    {244, 154, 123}, {222, 96, 77},   {180, 4, 38},
};

static unsigned char between(unsigned char a, unsigned char b, double share)
{
    return (unsigned char)lround(a + (b - a) * share);
}

static lumat_rgb mix(const lumat_rgb *stops, double share)
{
    double at = fmin(fmax(share, 0), 1) * (LUMAT_STOPS - 1);
    int i = at < LUMAT_STOPS - 1 ? (int)at : LUMAT_STOPS - 2;
    const lumat_rgb *a = &stops[i], *b = a + 1;
    return (lumat_rgb){between(a->red, b->red, at - i),
                       between(a->green, b->green, at - i),
                       between(a->blue, b->blue, at - i)};
}

lumat_rgb lumat_heat_colour(double value, double low, double high)
{
    if (low < 0 && high > 0) {
        double most = fmax(-low, high);
        return mix(two_sided, 0.5 + value / most / 2);
    }
    /* halves, as high - low may overflow */
    double span = high / 2 - low / 2;
    return mix(one_sided, span > 0 ? (value / 2 - low / 2) / span : 0.5);
}

/* The nearest of the 6 levels of a channel in the 256 colours. */
static int level(int value)
{
    return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40;
}

void lumat_put_colour(lumat_text *t, const lumat_style *s, lumat_rgb c,
                      int is_behind)
{
    int way = is_behind ? 48 : 38;
    if (s->colour >= LUMAT_ALL_COLOURS)
        lumat_putf(t, "\033[%d;2;%d;%d;%dm", way, c.red, c.green, c.blue);
    else
        lumat_putf(t, "\033[%d;5;%dm", way,
                   16 + 36 * level(c.red) + 6 * level(c.green) + level(c.blue));
}

/* --- sizes ---------------------------------------------------------------- */

enum { MOST_ZOOM = 4, LEAST_COLS = 8, LEAST_ROWS = 4 };
enum { LEAST_LINES = 3, MOST_LINES = 40, OTHER_LINES = 3 };

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int lumat_picture_lines(const lumat_style *s)
{
    int64_t lines = lumat_line_limit(s) - OTHER_LINES;
    return (int)at_least(at_most(lines, MOST_LINES), LEAST_LINES);
}

static int zoom_for(int64_t blocks, int64_t dots)
{
    return (int)at_least(at_most(dots / blocks, MOST_ZOOM), 1);
}

void lumat_frame_fit(lumat_frame *f, int64_t m, int64_t n, int width, int lines,
                     int dots_y, int dots_x)
{
    /* a character is about twice as high as wide */
    double tall = 2.0 * dots_x / dots_y;
    int64_t most_cols = (int64_t)width * dots_x;
    int64_t most_rows = (int64_t)lines * dots_y;
    double scale = fmax((double)n / (double)most_cols,
                        (double)m / ((double)most_rows * tall));
    int64_t cols = n, rows = m;
    f->zoom_x = f->zoom_y = 1;
    if (n > most_cols || m > most_rows) {
        cols = (int64_t)ceil((double)n / scale);
        rows = (int64_t)ceil((double)m / (scale * tall));
        cols = at_least(cols, at_most(n, LEAST_COLS));
        rows = at_least(rows, at_most(m, LEAST_ROWS));
        f->zoom_x = cols >= n ? zoom_for(n, most_cols) : 1;
        f->zoom_y = rows >= m ? zoom_for(m, most_rows) : 1;
    } else {
        int zoom =
            (int)at_most(zoom_for(n, most_cols),
                         zoom_for(m, (int64_t)((double)most_rows * tall)));
        f->zoom_x = zoom;
        f->zoom_y = (int)at_least((int64_t)(zoom / tall), 1);
    }
    f->m = m;
    f->n = n;
    f->dots_y = dots_y;
    f->dots_x = dots_x;
    f->cols = (int)at_most(at_most(cols, n), most_cols);
    f->rows = (int)at_most(at_most(rows, m), most_rows);
    f->lines = (f->rows * f->zoom_y + dots_y - 1) / dots_y;
    f->columns = (f->cols * f->zoom_x + dots_x - 1) / dots_x;
    f->gutter = lumat_digits(m) + 1;
}

void lumat_cell_text(const lumat_frame *f, char *out, size_t room)
{
    int64_t down = (f->m + f->rows - 1) / f->rows;
    int64_t across = (f->n + f->cols - 1) / f->cols;
    out[0] = '\0';
    if (down > 1 || across > 1)
        snprintf(out, room, "%s%lldx%lld",
                 f->m % f->rows || f->n % f->cols ? "up to " : "",
                 (long long)down, (long long)across);
}

/* The row, from 0, of those drawn that a line begins with. */
static int64_t row_at(const lumat_frame *f, int line)
{
    return (int64_t)line * f->dots_y / f->zoom_y;
}

/* Every fifth line has its row's number, and the last one. Where a row takes
 * several lines, each has it at its first. */
void lumat_put_row_number(lumat_text *t, const lumat_style *s,
                          const lumat_frame *f, int line)
{
    enum { EVERY = 5 };
    char number[32];
    int64_t row = row_at(f, line) * f->m / f->rows + 1;
    int is_tall = f->rows == f->m && f->zoom_y >= 2 * f->dots_y;
    int is_last = !is_tall && line == f->lines - 1 && f->m > 1;
    int is_shown = line % EVERY == 0 && line + EVERY / 2 < f->lines;
    if (is_tall || f->m == 1)
        is_shown = line == 0 || row_at(f, line) != row_at(f, line - 1);
    if (is_last && line > 0)
        row = f->m;
    if (is_last || is_shown)
        snprintf(number, sizeof number, "%*lld ", f->gutter - 1,
                 (long long)row);
    else
        snprintf(number, sizeof number, "%*s", f->gutter, "");
    lumat_put_dim(t, s, number);
}

void lumat_put_column_numbers(lumat_text *t, const lumat_style *s,
                              const lumat_frame *f, int margin)
{
    char last[32], line[64];
    snprintf(last, sizeof last, "%lld", (long long)f->n);
    int room = f->columns - 1;
    lumat_put_times(t, " ", f->gutter + margin);
    if (f->n == 1 || room < (int)strlen(last) + 1) {
        lumat_put_dim(t, s, f->n == 1 ? "1" : "");
        if (f->n > 1) {
            snprintf(line, sizeof line, "1 %s %s", s->ascii ? ".." : "…", last);
            lumat_put_dim(t, s, line);
        }
        return;
    }
    lumat_put_dim(t, s, "1");
    lumat_put_times(t, " ", room - (int)strlen(last));
    lumat_put_dim(t, s, last);
}

/* --- distributions -------------------------------------------------------- */

enum { HEIGHTS = 8 };
static const char *const columns_up[HEIGHTS] = {"▁", "▂", "▃", "▄",
                                                "▅", "▆", "▇", "█"};
static const char *const bars[HEIGHTS] = {"▏", "▎", "▍", "▌",
                                          "▋", "▊", "▉", "█"};
static const char ascii_heights[HEIGHTS + 1] = "_.:-=+*#";

void lumat_put_distribution(lumat_text *t, const lumat_style *s,
                            const int64_t *counts, int n)
{
    int64_t most = 1;
    for (int i = 0; i < n; i++)
        most = at_least(most, counts[i]);
    for (int i = 0; i < n; i++) {
        int height = (int)((double)counts[i] / (double)most * (HEIGHTS - 1));
        if (counts[i] == 0)
            lumat_put(t, " ");
        else if (s->ascii)
            lumat_putf(t, "%c", ascii_heights[height]);
        else
            lumat_put(t, columns_up[height]);
    }
}

void lumat_put_bar(lumat_text *t, const lumat_style *s, double share,
                   int columns)
{
    int eighths = (int)lround(share * columns * HEIGHTS);
    if (share > 0 && eighths == 0)
        eighths = 1;
    if (s->ascii) {
        lumat_put_times(t, "#", (eighths + HEIGHTS - 1) / HEIGHTS);
        return;
    }
    lumat_put_times(t, bars[HEIGHTS - 1], eighths / HEIGHTS);
    if (eighths % HEIGHTS)
        lumat_put(t, bars[eighths % HEIGHTS - 1]);
}

/* --- braille -------------------------------------------------------------- */

void lumat_put_braille(lumat_text *t, unsigned dots)
{
    /* Unicode numbers them column by column, but for the lowest two. */
    static const unsigned char bits[] = {0x01, 0x02, 0x04, 0x40,
                                         0x08, 0x10, 0x20, 0x80};
    unsigned code = 0;
    for (int i = 0; i < 8; i++)
        code |= dots >> i & 1 ? bits[i] : 0;
    char text[] = {(char)0xE2, (char)(0xA0 | code >> 6),
                   (char)(0x80 | (code & 63)), '\0'};
    lumat_put(t, code ? text : " ");
}

/* --- pictures as values --------------------------------------------------- */

static const char METATABLE[] = "lumat.picture";

/* --- text ----------------------------------------------------------------- */

void lumat_new_text(lua_State *L, lumat_text *t, size_t room)
{
    *t = (lumat_text){lua_newuserdatauv(L, room, 0), 0, room};
    t->at[0] = '\0';
}

static int text_of(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushstring(L, lumat_is_for_later(L) ? "text" : "coloured");
    lua_rawget(L, 1);
    return 1;
}

/* The table on top of the stack shows itself as its fields. */
static void show_picture(lua_State *L)
{
    if (luaL_newmetatable(L, METATABLE)) {
        lua_pushcfunction(L, text_of);
        lua_setfield(L, -2, "__tostring");
        lua_pushliteral(L, "picture");
        lua_setfield(L, -2, "__name");
    }
    lua_setmetatable(L, -2);
}

void lumat_show_as(lua_State *L, const lumat_text *t, const lumat_text *plain)
{
    lua_pushlstring(L, t->at, t->length);
    lua_setfield(L, -2, "coloured");
    if (!plain)
        lumat_strip_colours(t->at);
    lua_pushstring(L, plain ? plain->at : t->at);
    lua_setfield(L, -2, "text");
    show_picture(L);
}

void lumat_put_headline(lua_State *L, int index, lumat_text *t)
{
    lumat_push_headline(L, index);
    lumat_put(t, lua_tostring(L, -1));
    lumat_put(t, "\n");
    lua_pop(L, 1);
}

/* --- what it is made of --------------------------------------------------- */

static void take_table(lua_State *L, int arg)
{
    gpu_device *cpu;
    lumat_try(L, gpu_open("cpu", &cpu));
    lumat_push_from_table(L, arg, "the table", GPU_F64, cpu);
    lua_replace(L, arg);
}

/* By the name that an object gives in place of its metatable, how it is drawn.
 */
static const char *const undrawn[][2] = {
    {"distributed matrix",
     "is a distributed matrix, which is drawn as D:gather()"},
    {"frame", "is a frame: draw one of its columns, T.v, or all that are "
              "numbers, T:matrix()"},
    {"date column", "is a column of dates: draw its seconds, "
                    "plot(T.date.seconds, T.v, {xdates = true})"},
    {"text column", "is a column of text, which no chart has as numbers; as "
                    "names of places: {names = T.s:totable()}"}};

const char *lumat_why_undrawn(lua_State *L, int arg)
{
    const char *why = NULL;
    if (!lua_istable(L, arg) || !luaL_getmetafield(L, arg, "__metatable"))
        return NULL;
    for (size_t i = 0; i < sizeof undrawn / sizeof *undrawn; i++)
        if (lua_type(L, -1) == LUA_TSTRING &&
            strcmp(lua_tostring(L, -1), undrawn[i][0]) == 0)
            why = undrawn[i][1];
    lua_pop(L, 1);
    return why;
}

void lumat_check_subject(lua_State *L, int arg, lumat_subject *out)
{
    const char *why = lumat_why_undrawn(L, arg);
    if (why)
        lumat_raise_argument(L, arg, "%s", why);
    *out = (lumat_subject){.sparse = NULL};
    if (lua_istable(L, arg))
        take_table(L, arg);
    const gpu_sparse *s = lumat_test_sparse(L, arg);
    if (s) {
        if (!s->values.storage)
            lumat_check_matrix(L, arg); /* raises */
        out->sparse = s;
        out->m = s->rows;
        out->n = s->cols;
    } else {
        out->dense = lumat_as_rows(lumat_check_matrix(L, arg));
        out->m = out->dense.rows;
        out->n = out->dense.cols;
    }
    if (out->m == 0 || out->n == 0)
        lumat_raise_argument(L, arg, "has no elements");
}

void lumat_refuse_complex(lua_State *L, int arg, const lumat_subject *s)
{
    if (gpu_is_complex(s->sparse ? &s->sparse->values : &s->dense))
        lumat_raise_argument(L, arg,
                             "is complex: draw real(A), abs(A) or angle(A)");
}

double *lumat_push_blocks(lua_State *L, const lumat_subject *s,
                          gpu_block_kind kind, int64_t rows, int64_t cols)
{
    size_t count = (size_t)(rows * cols);
    double *values = lua_newuserdatauv(L, count * sizeof *values, 0);
    if (s->sparse) {
        int64_t *counts = lua_newuserdatauv(L, count * sizeof *counts, 0);
        lumat_try(L,
                  gpu_sparse_blocks(s->sparse, rows, cols, counts,
                                    kind == GPU_BLOCK_LARGEST ? NULL : values));
        for (size_t k = 0; kind == GPU_BLOCK_LARGEST && k < count; k++)
            values[k] = (double)counts[k];
        lua_pop(L, 1);
        return values;
    }
    gpu_matrix *blocks = lumat_new_matrix(L);
    lumat_try(L, gpu_blocks(&s->dense, kind, rows, cols, blocks));
    lumat_try(L, gpu_download(blocks, values));
    gpu_release(blocks);
    lua_pop(L, 1);
    return values;
}

/* --- options -------------------------------------------------------------- */

static int option_size(lua_State *L, int arg, const char *key, int least,
                       int otherwise)
{
    enum { MOST = 10000 };
    double size = lumat_option_number(L, arg, key, otherwise);
    if (!(size >= least && size <= MOST))
        lumat_raise(L, "%s: needs %d to %d characters, not %s", key, least,
                    MOST, lumat_push_brief_number(L, size));
    return (int)size;
}

lumat_style lumat_picture_style(lua_State *L, int arg)
{
    /* of a screen, around a picture */
    enum { LEAST_WIDTH = 10, LEAST_HEIGHT = 4, LINES_AROUND = 9 };
    lumat_style s = lumat_style_now(L);
    if (s.width < LEAST_WIDTH)
        s.width = LEAST_WIDTH;
    s.width = option_size(L, arg, "width", LEAST_WIDTH, s.width);
    if (lumat_option_number(L, arg, "height", -1) != -1)
        s.height = LINES_AROUND +
                   option_size(L, arg, "height", LEAST_HEIGHT, s.height);
    return s;
}

/* --- charts --------------------------------------------------------------- */

int lumat_wants_file(lua_State *L, int arg)
{
    if (!lua_istable(L, arg))
        return 0;
    int is_asked = lua_getfield(L, arg, "file") != LUA_TNIL;
    lua_pop(L, 1);
    return is_asked;
}

static void push_style(lua_State *L, const lumat_style *s)
{
    lua_createtable(L, 0, 4);
    lua_pushinteger(L, s->width);
    lua_setfield(L, -2, "width");
    lua_pushinteger(L, lumat_picture_lines(s));
    lua_setfield(L, -2, "height");
    lua_pushboolean(L, s->ascii);
    lua_setfield(L, -2, "ascii");
    lua_pushboolean(L, s->colour);
    lua_setfield(L, -2, "colour");
}

/* draw(value, screen) */
static int draw_on_screen(lua_State *L)
{
    lumat_push_required(L, "screen_pictures");
    lua_getfield(L, -1, "draw");
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_call(L, 2, 1);
    return 1;
}

static void push_screen(lua_State *L, const lumat_screen *s,
                        const lumat_style *style)
{
    static const char *const ways[] = {"none", "kitty", "iterm", "sixels"};
    push_style(L, style);
    lua_pushinteger(L, style->height > 0 ? style->height : 24);
    lua_setfield(L, -2, "height");
    lua_pushstring(L, ways[s->shows]);
    lua_setfield(L, -2, "shows");
    lua_pushinteger(L, s->cell_width);
    lua_setfield(L, -2, "cell_width");
    lua_pushinteger(L, s->cell_height);
    lua_setfield(L, -2, "cell_height");
    lua_pushboolean(L, s->is_dark);
    lua_setfield(L, -2, "dark");
}

int lumat_push_picture(lua_State *L, int index, const lumat_screen *screen,
                       const lumat_style *style)
{
    int top = lua_gettop(L);
    index = lua_absindex(L, index);
    if (screen->shows == LUMAT_SHOWS_NONE || !lua_istable(L, index))
        return 0;
    lua_pushcfunction(L, draw_on_screen);
    lua_pushvalue(L, index);
    push_screen(L, screen, style);
    if (lua_pcall(L, 2, 1, 0) == LUA_OK && lua_type(L, -1) == LUA_TSTRING)
        return 1;
    lua_settop(L, top);
    return 0;
}

int lumat_chart_tostring(lua_State *L)
{
    int is_for_later = lumat_is_for_later(L);
    lumat_style style = lumat_style_now(L);
    lua_settop(L, 1);
    if (luaL_getmetafield(L, 1, "__draw") == LUA_TNIL)
        return luaL_typeerror(L, 1, "chart");
    lua_pushvalue(L, 1);
    lua_pushboolean(L, is_for_later);
    push_style(L, &style);
    lua_call(L, 3, 1);
    return 1;
}

/* Errors come without a place, which is that of whoever called us. */
void lumat_draw_chart(lua_State *L, const char *kind, int arg,
                      const lumat_style *style)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.draw");
    lua_pushstring(L, kind);
    lua_rotate(L, -3, 2);
    if (lua_istable(L, arg))
        lua_pushvalue(L, arg);
    else
        lua_newtable(L);
    push_style(L, style);
    if (lua_pcall(L, 4, 1, 0) != LUA_OK)
        lumat_raise(L, "%s", lua_tostring(L, -1));
    int is_text = lua_getfield(L, -1, "coloured") == LUA_TSTRING;
    lua_pop(L, 1);
    if (is_text)
        show_picture(L);
}
