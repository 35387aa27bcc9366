/* heat, spy and blocks: matrices seen from afar. The device works out a number
 * for each block; only those cross the bus. */
#include "heat_draw.h"
#include "records.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "print.h"
#include "shape_errors.h"
#include "constructors.h"
#include "matrix.h"

enum { FILE_SIDE = 512 }; /* blocks each way in a file */

static const char *const kind_names[] = {"mean", "largest", "min", "max", NULL};

/* blocks(A, rows, cols [, kind]) */
static int blocks(lua_State *L)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    int64_t rows = lumat_check_size(L, 2);
    int64_t cols =
        m->ndim == 1 ? luaL_optinteger(L, 3, 1) : lumat_check_size(L, 3);
    int kind = luaL_checkoption(L, 4, "mean", kind_names);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_blocks(m, (gpu_block_kind)kind, rows, cols, out));
    lumat_account(L, out);
    return 1;
}

/* Blocks of a picture in a file: as many as there are, up to FILE_SIDE. */
static void push_file_blocks(lua_State *L, const lumat_subject *s,
                             gpu_block_kind kind)
{
    int64_t rows = s->m < FILE_SIDE ? s->m : FILE_SIDE;
    int64_t cols = s->n < FILE_SIDE ? s->n : FILE_SIDE;
    const double *values = lumat_push_blocks(L, s, kind, rows, cols);
    lua_newtable(L);
    lumat_set_count(L, "m", (uint64_t)s->m);
    lumat_set_count(L, "n", (uint64_t)s->n);
    lumat_set_count(L, "rows", (uint64_t)rows);
    lumat_set_count(L, "cols", (uint64_t)cols);
    lumat_push_numbers(L, values, rows * cols);
    lua_setfield(L, -2, "values");
    lua_getfield(L, 2, "low");
    lua_setfield(L, -2, "low");
    lua_getfield(L, 2, "high");
    lua_setfield(L, -2, "high");
    lua_remove(L, -2);
}

static int write_blocks(lua_State *L, const lumat_subject *s,
                        gpu_block_kind kind)
{
    push_file_blocks(L, s, kind);
    lumat_push_headline(L, 1);
    lumat_write_picture(L, 2);
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
    lumat_style style = lumat_picture_style(L, 2, "width height low high file");
    lua_settop(L, 2);
    lumat_check_subject(L, 1, &s);
    if (lumat_wants_file(L, 2, "heat"))
        return write_blocks(L, &s, GPU_BLOCK_MEAN);
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
    lumat_style style = lumat_picture_style(L, 2, "width height file");
    lua_settop(L, 2);
    lumat_check_subject(L, 1, &s);
    if (lumat_wants_file(L, 2, "spy"))
        return write_blocks(L, &s, GPU_BLOCK_LARGEST);
    lumat_frame_fit(&f, s.m, s.n, style.width - lumat_digits(s.m) - 2 - BORDER,
                    lumat_picture_lines(&style) - BORDER,
                    style.ascii ? 1 : LUMAT_DOTS_Y,
                    style.ascii ? 1 : LUMAT_DOTS_X);
    const unsigned char *set = push_pattern(L, &s, &f);
    int64_t filled = count_filled(L, &s);
    lumat_new_text(L, &t, lumat_heat_room(&f));
    lumat_put_headline(L, 1, &t);
    lumat_draw_pattern(&t, &style, &f, set);
    put_filled(&t, &style, &f, &s, filled);
    lua_newtable(L);
    lumat_set_count(L, "filled", (uint64_t)filled);
    lumat_show_as(L, &t, NULL);
    return 1;
}

static const lumat_function functions[] = {
    {"heat", heat, 1, "heat(A [, {width=, height=, low=, high=, file=}])",
     "A picture of A in colours or shades, of block means where A is larger "
     "than the screen; with file = \"p.png\" or \"p.svg\", one drawn by "
     "gnuplot. Also :heat A.",
     "heat(mat{{1, 2}, {3, 4}}).high", "4"},
    {"spy", spy, 1, "spy(A [, {width=, height=, file=}])",
     "A picture of where A is not zero, or where a sparse matrix has entries. "
     "Also :spy A.",
     "spy(eye(3)).filled", "3"},
    {"blocks", blocks, 1, "blocks(A, rows, cols [, kind])",
     "A cut into so many blocks, as equal as can be, each made one number: "
     "its \"mean\", the \"largest\" |x|, its \"min\" or \"max\".",
     "blocks(mat{{1, 2, 3, 4}, {5, 6, 7, 8}}, 1, 2)", "{{3.5, 5.5}}"},
    {NULL, NULL, 0, NULL, NULL, NULL, NULL}};

void lumat_open_heat(lua_State *L)
{
    lumat_register(L, functions);
}
