/* plot: lines of vectors, of a matrix's columns, or of a function. Of a line
 * with more points than the picture can tell apart, only the least and the
 * greatest of each column of dots cross the bus. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "constructors.h"
#include "print.h"
#include "matrix.h"
#include "plot_draw.h"
#include "shape_errors.h"
#include "sparse_matrix.h"
#include "visible.h"

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
    if (!lumat_plot_range(c))
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
    lumat_plot_fit(c, style->width, lumat_picture_lines(style), is_fixed);
    c->cells = lua_newuserdatauv(L, lumat_plot_cells(c), 0);
}

/* In memory pushed onto the stack. */
static void draw(lua_State *L, lumat_text *t, const lumat_style *style,
                 lumat_chart *c, const plan *p)
{
    lumat_new_text(L, t, lumat_plot_room(c));
    lumat_draw_plot(t, style, c);
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
    lumat_style style =
        lumat_picture_style(L, options, "width height low high file");
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
     "plot(y [, {width=, height=, low=, high=, file=}])  also  plot(x, y)  "
     "plot(f, a, b)",
     "A line through a vector's elements, one for each column of a matrix, or "
     "that of a function; low and high set the axis. With file = \"p.png\" or "
     "\"p.svg\", drawn by gnuplot. Also :plot y.",
     "plot(vec{1, 3, 2}).high >= 3", "true"},
    {NULL, NULL, 0, NULL, NULL, NULL, NULL}};

void lumat_open_plot(lua_State *L)
{
    lumat_register(L, functions);
}
