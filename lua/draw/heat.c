/* heat, spy and blocks: matrices seen from afar. The device works out a number
 * for each block; only those cross the bus. */
#include "function.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "arguments.h"
#include "value.h"
#include "draw.h"
#include "picture.h"
#include "print.h"

/* --- drawing -------------------------------------------------------------- */
/* Heat maps and patterns of blocks. Pure. */

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

void lumat_draw_heat_lines(lumat_text *t, const lumat_style *s,
                           const lumat_frame *f, const double *values,
                           double low, double high)
{
    pen p = {t, s, low, high, ""};
    for (int line = 0; line < f->lines; line++) {
        draw_line(&p, f, values, line);
        lumat_put(t, "\n");
    }
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

/* set: f->rows x f->cols, in a frame with row and column numbers. */
static void draw_pattern(lumat_text *t, const lumat_style *s,
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

/* --- the functions -------------------------------------------------------- */

enum { FILE_SIDE = 512 }; /* blocks each way in a file */

static const char *const kind_names[] = {"mean", "largest", "min", "max", NULL};

/* blocks(A, rows, cols [, kind]) */
static int blocks(lua_State *L)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    int64_t rows = lumat_check_size(L, 2);
    if (m->ndim == 2 && lua_isnoneornil(L, 3))
        lumat_raise_argument(L, 3, "is missing: a matrix has columns, too");
    int64_t cols = lua_isnoneornil(L, 3) ? 1 : lumat_check_size(L, 3);
    int kind = luaL_checkoption(L, 4, "mean", kind_names);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_blocks(m, (gpu_block_kind)kind, rows, cols, out));
    lumat_account(L, out);
    return 1;
}

/* Has the charts draw the blocks into a file: as many as there are, up to
 * FILE_SIDE each way. */
static int write_blocks(lua_State *L, const lumat_subject *s, const char *kind,
                        gpu_block_kind of, const lumat_style *style)
{
    int64_t rows = s->m < FILE_SIDE ? s->m : FILE_SIDE;
    int64_t cols = s->n < FILE_SIDE ? s->n : FILE_SIDE;
    const double *values = lumat_push_blocks(L, s, of, rows, cols);
    double *list = lumat_new_numbers(L, rows * cols);
    memcpy(list, values, (size_t)(rows * cols) * sizeof *list);
    lua_newtable(L);
    lua_insert(L, -2);
    lua_setfield(L, -2, "values");
    lumat_set_count(L, "m", (uint64_t)s->m);
    lumat_set_count(L, "n", (uint64_t)s->n);
    lumat_set_count(L, "rows", (uint64_t)rows);
    lumat_set_count(L, "cols", (uint64_t)cols);
    lumat_push_headline(L, 1);
    lua_setfield(L, -2, "title");
    lumat_draw_chart(L, kind, 2, style);
    return 1;
}

/* --- heat ----------------------------------------------------------------- */

/* The range of colours: that of the blocks, unless the options say another. */
static void choose_range(lua_State *L, const lumat_frame *f,
                         const double *values, double *low, double *high)
{
    lumat_heat_range(f, values, low, high);
    *low = lumat_option_number(L, 2, "low", *low);
    *high = lumat_option_number(L, 2, "high", *high);
    if (*low > *high && isfinite(*low) && isfinite(*high))
        lumat_raise(L, "heat: %s to %s is no range",
                    lumat_push_brief_number(L, *low),
                    lumat_push_brief_number(L, *high));
}

/* In memory pushed onto the stack; the matrix is at 1. */
static void draw_heat(lua_State *L, lumat_text *t, const lumat_style *style,
                      const lumat_frame *f, const double *values, double low,
                      double high)
{
    lumat_new_text(L, t, lumat_heat_room(f));
    lumat_put_headline(L, 1, t);
    lumat_draw_heat(t, style, f, values, low, high);
}

/* heat(A [, options]) */
static int heat(lua_State *L)
{
    lumat_subject s;
    lumat_frame f;
    lumat_text t, plain;
    double low, high;
    lumat_style style = lumat_picture_style(L, 2);
    lua_settop(L, 2);
    lumat_check_subject(L, 1, &s);
    lumat_refuse_complex(L, 1, &s);
    if (lumat_wants_file(L, 2))
        return write_blocks(L, &s, "heat", GPU_BLOCK_MEAN, &style);
    lumat_frame_fit(&f, s.m, s.n, style.width - lumat_digits(s.m) - 2,
                    lumat_picture_lines(&style), lumat_heat_dots(&style), 1);
    double *values = lumat_push_blocks(L, &s, GPU_BLOCK_MEAN, f.rows, f.cols);
    choose_range(L, &f, values, &low, &high);
    draw_heat(L, &t, &style, &f, values, low, high);
    style.colour = 0;
    draw_heat(L, &plain, &style, &f, values, low, high);
    lua_newtable(L);
    lumat_set_number(L, "low", low);
    lumat_set_number(L, "high", high);
    lumat_set_count(L, "rows", (uint64_t)f.rows);
    lumat_set_count(L, "cols", (uint64_t)f.cols);
    lumat_show_as(L, &t, &plain);
    return 1;
}

/* --- spy ------------------------------------------------------------------ */

/* How many elements are not zero; of a sparse matrix, entries. */
static int64_t count_filled(lua_State *L, const lumat_subject *s)
{
    gpu_survey survey;
    if (s->sparse)
        return s->sparse->count;
    lumat_try(L, gpu_take_survey(&s->dense, &survey));
    return s->m * s->n - survey.zeros;
}

static void put_filled(lumat_text *t, const lumat_style *style,
                       const lumat_frame *f, const lumat_subject *s,
                       int64_t filled)
{
    char cell[64], piece[160], count[64];
    lumat_text c = {count, 0, sizeof count};
    lumat_flow flow = {t, style->width, 2, 4, 0};
    double share = 100 * (double)filled / ((double)s->m * (double)s->n);
    lumat_put(t, "\n");
    lumat_put_count(&c, filled);
    snprintf(piece, sizeof piece, "%s %s (%.3g %%)", count,
             s->sparse ? "entries" : "not zero", share);
    lumat_flow_add(&flow, piece);
    lumat_cell_text(f, cell, sizeof cell);
    snprintf(piece, sizeof piece, "a %s is %s elements",
             style->ascii ? "star" : "dot", cell);
    if (cell[0])
        lumat_flow_add(&flow, piece);
}

/* Pushes a byte for each block: is anything in it? */
static const unsigned char *push_pattern(lua_State *L, const lumat_subject *s,
                                         const lumat_frame *f)
{
    const double *values =
        lumat_push_blocks(L, s, GPU_BLOCK_LARGEST, f->rows, f->cols);
    size_t count = (size_t)f->rows * (size_t)f->cols;
    unsigned char *set = lua_newuserdatauv(L, count, 0);
    for (size_t k = 0; k < count; k++)
        set[k] = values[k] != 0;
    return set;
}

/* spy(A [, options]) */
static int spy(lua_State *L)
{
    enum { BORDER = 2 };
    lumat_subject s;
    lumat_frame f;
    lumat_text t;
    lumat_style style = lumat_picture_style(L, 2);
    lua_settop(L, 2);
    lumat_check_subject(L, 1, &s);
    if (!s.sparse)
        lumat_refuse_complex(L, 1, &s);
    if (lumat_wants_file(L, 2))
        return write_blocks(L, &s, "spy", GPU_BLOCK_LARGEST, &style);
    lumat_frame_fit(&f, s.m, s.n, style.width - lumat_digits(s.m) - 2 - BORDER,
                    lumat_picture_lines(&style) - BORDER,
                    style.ascii ? 1 : LUMAT_DOTS_Y,
                    style.ascii ? 1 : LUMAT_DOTS_X);
    const unsigned char *set = push_pattern(L, &s, &f);
    int64_t filled = count_filled(L, &s);
    lumat_new_text(L, &t, lumat_heat_room(&f));
    lumat_put_headline(L, 1, &t);
    draw_pattern(&t, &style, &f, set);
    put_filled(&t, &style, &f, &s, filled);
    lua_newtable(L);
    lumat_set_count(L, "filled", (uint64_t)filled);
    lumat_show_as(L, &t, NULL);
    return 1;
}

static const lumat_function functions[] = {
    {"heat", heat, 1,
     "A: matrix|sparse|table {width, height, low, high, dark, file}", "table",
     "A picture of A in colours or shades, of block means where A is larger "
     "than the screen; with file = \"p.png\", \".svg\" or \".pdf\", one in "
     "a file. Also :heat A.",
     "heat(mat{{1, 2}, {3, 4}}).high", "4", .group = "pictures watching"},
    {"spy", spy, 1, "A: matrix|sparse|table {width, height, dark, file}",
     "table",
     "A picture of where A is not zero, or where a sparse matrix has entries. "
     "Also :spy A.",
     "spy(eye(3)).filled", "3", .group = "pictures"},
    {"blocks", blocks, 1,
     "A: matrix, rows: size [, cols: size [, kind: "
     "\"mean\"|\"largest\"|\"min\"|\"max\"]]",
     "matrix",
     "A cut into so many blocks, as equal as can be, each made one number: its "
     "\"mean\", the \"largest\" |x|, its \"min\" or \"max\".",
     "blocks(mat{{1, 2, 3, 4}, {5, 6, 7, 8}}, 1, 2)", "{{3.5, 5.5}}",
     .group = "watching"},
    {0}};

void lumat_open_heat(lua_State *L)
{
    lumat_register(L, functions);
}
