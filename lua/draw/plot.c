/* plot: lines of vectors, of a matrix's columns, or of a function. Of a line
 * with more points than the picture can tell apart, only the least and the
 * greatest of each column of dots cross the bus. lua/charts draws them. */
#include <math.h>
#include "arguments.h"
#include "function.h"
#include "draw.h"
#include "math_functions.h"
#include "picture.h"
#include "print.h"
#include "value.h"

enum { LUMAT_MOST_SERIES = 8 };

/* A line through points; NaN breaks it. x and y are numbers that Lua reads, at
 * these places of the stack. */
typedef struct lumat_series {
    const double *x, *y;
    int64_t count;
    int x_at, y_at;
} lumat_series;

/* --- what is drawn -------------------------------------------------------- */

enum { FILE_DOTS = 2000, SAMPLES_A_DOT = 2, MANY = 4 };

/* What is to be drawn, and on how many dots. */
typedef struct plan {
    lumat_series series[LUMAT_MOST_SERIES];
    int count;
    int64_t columns; /* the matrix has: more than can be drawn */
    int64_t dots;
} plan;

/* --- from matrices -------------------------------------------------------- */

/* 1 .. count, `each` times each. */
static double *push_places(lua_State *L, int64_t count, int64_t each,
                           int64_t length)
{
    double *x = lumat_new_numbers(L, count * each);
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
    double *y = lumat_new_numbers(L, gpu_size(v));
    lumat_try(L, gpu_download(wide, y));
    gpu_release(wide);
    return y;
}

/* The least and the greatest of each of `dots` parts, one after the other. */
static double *push_ends(lua_State *L, const gpu_matrix *v, int64_t dots)
{
    double *y = lumat_new_numbers(L, 2 * dots);
    double *part = lumat_new_numbers(L, dots);
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

/* The line of a vector; x_at: the place of its x, 0: over its places. */
static void add_vector(lua_State *L, plan *p, const gpu_matrix *v,
                       const double *x, int x_at)
{
    lumat_series *s = &p->series[p->count++];
    int64_t n = v->rows;
    int is_whole = x || n <= MANY * p->dots;
    s->y = is_whole ? push_all(L, v) : push_ends(L, v, p->dots);
    s->y_at = lua_gettop(L);
    s->count = is_whole ? n : 2 * p->dots;
    s->x = x          ? x
           : is_whole ? push_places(L, n, 1, n)
                      : push_places(L, p->dots, 2, n);
    s->x_at = x ? x_at : lua_gettop(L);
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
        lumat_raise_argument(L, arg, "has no elements");
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
                        const double *x, int x_at)
{
    gpu_matrix all = as_columns(m);
    p->columns = all.cols;
    for (int64_t j = 0; j < all.cols && j < LUMAT_MOST_SERIES; j++) {
        gpu_matrix *column = lumat_new_matrix(L);
        gpu_view_column(&all, j, column);
        add_vector(L, p, column, x, x_at);
    }
}

static void add_matrices(lua_State *L, plan *p, int count)
{
    const gpu_matrix *first = check_dense(L, 1);
    const double *x = NULL;
    int x_at = 0;
    if (count == 2) {
        const gpu_matrix *y = check_dense(L, 2);
        gpu_matrix line = as_columns(first), lines = as_columns(y);
        if (line.cols > 1)
            lumat_raise(L,
                        "plot: x has %I columns: it is a vector, one value "
                        "for each row of y",
                        (LUAI_UACINT)line.cols);
        if (line.rows != lines.rows)
            lumat_raise(L, "plot: x has %I elements, y has %I",
                        (LUAI_UACINT)line.rows, (LUAI_UACINT)lines.rows);
        line.ndim = 1;
        x = push_all(L, &line);
        x_at = lua_gettop(L);
        first = y;
    }
    add_columns(L, p, first, x, x_at);
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
    double a = lumat_check_number(L, 2), b = lumat_check_number(L, 3);
    int64_t count = SAMPLES_A_DOT * p->dots;
    double *x = lumat_new_numbers(L, count), *y = lumat_new_numbers(L, count);
    int y_at = lua_gettop(L);
    if (!(a < b) || !isfinite(b - a))
        lumat_raise(L, "plot: %s to %s is no range",
                    lumat_push_brief_number(L, a),
                    lumat_push_brief_number(L, b));
    for (int64_t k = 0; k < count; k++) {
        double share = (double)k / (double)(count - 1);
        x[k] = a * (1 - share) + b * share;
        y[k] = call_at(L, x[k]);
    }
    *s = (lumat_series){x, y, count, y_at - 1, y_at};
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
    *options = count + 1;
    lua_settop(L, count + 1);
    return count;
}

static void gather(lua_State *L, plan *p, int count)
{
    if (count == 3)
        add_function(L, p);
    else
        add_matrices(L, p, count);
}

static int has_point(const plan *p)
{
    for (int i = 0; i < p->count; i++)
        for (int64_t k = 0; k < p->series[i].count; k++)
            if (isfinite(p->series[i].x[k]) && isfinite(p->series[i].y[k]))
                return 1;
    return 0;
}

/* {columns = …, {x = …, y = …} …} */
static void push_series(lua_State *L, const plan *p)
{
    lua_createtable(L, p->count, 1);
    for (int i = 0; i < p->count; i++) {
        lua_createtable(L, 0, 2);
        lua_pushvalue(L, p->series[i].x_at);
        lua_setfield(L, -2, "x");
        lua_pushvalue(L, p->series[i].y_at);
        lua_setfield(L, -2, "y");
        lua_rawseti(L, -2, i + 1);
    }
    lumat_set_count(L, "columns", (uint64_t)p->columns);
}

/* plot(…) */
static int plot(lua_State *L)
{
    int options, count = take_arguments(L, &options);
    plan p = {.count = 0};
    lumat_style style = lumat_picture_style(L, options);
    int to_file = lumat_wants_file(L, options);
    p.dots = to_file ? FILE_DOTS : (int64_t)style.width * LUMAT_DOTS_X;
    gather(L, &p, count);
    if (!to_file && !has_point(&p))
        lumat_raise(L, "plot: there is no finite point to draw");
    push_series(L, &p);
    lumat_draw_chart(L, "plot", options, &style);
    return 1;
}

static const lumat_function functions[] = {
    {"plot", plot, 1,
     "y: matrix|table {width, height, low, high, file} or x: matrix|table, y: "
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
