/* A matrix as text: all of it when it fits the screen, else its corners with
 * row and column numbers. */
#include <math.h>
#include "format.h"

enum { TAIL_COLS = 2, GAP = 2 };
enum { LEAST_COLUMN = GAP + 1, LEAST_COLS = 8 };

/* What is laid out: values and formats of the columns fetched, and how many
 * of these are shown. */
typedef struct layout {
    const gpu_matrix *m;
    const lumat_style *style;
    lumat_corner fetched, shown;
    lumat_column *columns;
    int cut;
    int64_t label; /* width of the row numbers, 0 when there are none */
} layout;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows to show, and columns that could fit if they were narrow, so that what
 * is fetched stays within the limit. */
static void plan_fetch(layout *l)
{
    lumat_corner *c = &l->fetched;
    int64_t rows = l->m->rows, cols = l->m->cols;
    int64_t budget = LUMAT_SHOWN_BYTES / (int64_t)gpu_dtype_size(l->m->dtype);
    int64_t limit = smaller(lumat_line_limit(l->style), budget / LEAST_COLS);
    *c = (lumat_corner){.head_rows = rows, .head_cols = cols};
    if (l->style->full)
        return;
    if (rows > limit)
        lumat_line_edges(limit, &c->head_rows, &c->tail_rows);
    int64_t room = smaller(l->style->width / LEAST_COLUMN + TAIL_COLS,
                           budget / (c->head_rows + c->tail_rows));
    room = room < LEAST_COLS ? LEAST_COLS : room;
    if (cols > room) {
        c->head_cols = room - TAIL_COLS;
        c->tail_cols = TAIL_COLS;
    }
}

static void fit_columns(lua_State *L, layout *l)
{
    int64_t rows = l->fetched.head_rows + l->fetched.tail_rows;
    int64_t cols = l->fetched.head_cols + l->fetched.tail_cols;
    l->columns = lua_newuserdatauv(L, sizeof(lumat_column) * (size_t)cols, 0);
    for (int64_t j = 0; j < cols; j++)
        lumat_column_fit(&l->columns[j], l->fetched.values + j, rows, cols);
}

/* The place in the fetched data of the matrix's column j. */
static int64_t fetched_col(const layout *l, int64_t j)
{
    const lumat_corner *c = &l->fetched;
    return j < c->head_cols ? j
                            : j - (l->m->cols - c->head_cols - c->tail_cols);
}

static int64_t column_width(const layout *l, int64_t j)
{
    int width = l->columns[fetched_col(l, j)].width;
    int number = l->label > 0 ? lumat_digits(j + 1) : 0;
    return number > width ? number : width;
}

static int64_t ellipsis_width(const layout *l)
{
    return l->style->ascii ? GAP + 3 : GAP + 1;
}

/* How many first columns fit beside `tail` last ones. */
static int64_t first_that_fit(const layout *l, int64_t tail)
{
    int64_t room = l->style->width - l->label, count = 0;
    int64_t most = smaller(l->fetched.head_cols, l->m->cols - tail);
    if (tail < l->m->cols)
        room -= ellipsis_width(l);
    for (int64_t j = l->m->cols - tail; j < l->m->cols; j++)
        room -= GAP + column_width(l, j);
    while (count < most) {
        room -= GAP + column_width(l, count);
        if (room < 0)
            break;
        count++;
    }
    return count;
}

static int all_columns_fit(const layout *l)
{
    int64_t room = l->style->width - l->label;
    if (l->fetched.tail_cols > 0)
        return 0;
    for (int64_t j = 0; j < l->m->cols && room >= 0; j++)
        room -= GAP + column_width(l, j);
    return room >= 0 || l->m->cols == 1;
}

/* All of them, with numbers where it is more than a screen. */
static void take_all_columns(layout *l)
{
    l->label = 0;
    if (l->m->rows > l->style->height || !all_columns_fit(l))
        l->label = GAP + lumat_digits(l->m->rows);
}

/* Fewer last columns when not even one first fits beside them; always one. */
static void choose_columns(layout *l)
{
    l->shown = l->fetched;
    if (l->style->full) {
        take_all_columns(l);
        return;
    }
    l->cut = l->fetched.tail_rows > 0;
    l->label = l->cut ? GAP + lumat_digits(l->m->rows) : 0;
    if (all_columns_fit(l))
        return;
    l->cut = 1;
    l->label = GAP + lumat_digits(l->m->rows);
    int64_t tail = smaller(TAIL_COLS, l->m->cols - 1), head;
    while ((head = first_that_fit(l, tail)) == 0 && tail > 0)
        tail--;
    l->shown.head_cols = head > 0 ? head : 1;
    l->shown.tail_cols = tail;
}

static int hides_columns(const layout *l)
{
    return l->shown.head_cols + l->shown.tail_cols < l->m->cols;
}

/* mark "" leaves the ellipsis's place blank. */
static void add_ellipsis(luaL_Buffer *b, const layout *l, const char *mark)
{
    int64_t width = ellipsis_width(l);
    if (!hides_columns(l))
        return;
    if (*mark == '\0')
        lumat_add_padded(b, l->style, "", 0, width, LUMAT_PLAIN);
    else if (l->style->ascii)
        lumat_add_padded(b, l->style, "...", 3, width, LUMAT_DIM);
    else
        lumat_add_padded(b, l->style, mark, 1, width, LUMAT_DIM);
}

/* Calls add for every shown column, with the ellipsis where some are left
 * out. row is what add gets; mark stands for the hidden columns. */
typedef void add_fn(luaL_Buffer *b, const layout *l, int64_t row, int64_t j);

static void add_line(luaL_Buffer *b, const layout *l, add_fn *add, int64_t row,
                     const char *mark)
{
    for (int64_t j = 0; j < l->shown.head_cols; j++)
        add(b, l, row, j);
    if (mark != NULL)
        add_ellipsis(b, l, mark);
    for (int64_t j = l->m->cols - l->shown.tail_cols; j < l->m->cols; j++)
        add(b, l, row, j);
}

static void add_element(luaL_Buffer *b, const layout *l, int64_t row, int64_t j)
{
    int64_t place = fetched_col(l, j);
    int64_t ld = l->fetched.head_cols + l->fetched.tail_cols;
    lumat_add_cell(b, l->style, &l->columns[place],
                   l->fetched.values[row * ld + place],
                   GAP + column_width(l, j));
}

static void add_column_number(luaL_Buffer *b, const layout *l, int64_t row,
                              int64_t j)
{
    (void)row;
    lumat_add_number(b, l->style, j + 1, GAP + column_width(l, j));
}

static void add_dots(luaL_Buffer *b, const layout *l, int64_t row, int64_t j)
{
    (void)row;
    lumat_add_padded(b, l->style, l->style->ascii ? ":" : "⋮", 1,
                     GAP + column_width(l, j), LUMAT_DIM);
}

static void add_column_numbers(luaL_Buffer *b, const layout *l)
{
    luaL_addchar(b, '\n');
    lumat_add_padded(b, l->style, "", 0, l->label, LUMAT_PLAIN);
    add_line(b, l, add_column_number, 0, l->shown.tail_cols > 0 ? "" : NULL);
}

static void add_hidden_rows(luaL_Buffer *b, const layout *l)
{
    luaL_addchar(b, '\n');
    lumat_add_padded(b, l->style, l->style->ascii ? ":" : "⋮", 1, l->label,
                     LUMAT_DIM);
    add_line(b, l, add_dots, 0, "⋱");
}

/* i counts the rows shown. */
static void add_row(luaL_Buffer *b, const layout *l, int64_t i)
{
    int64_t head = l->shown.head_rows;
    int64_t number = i < head ? i : l->m->rows - l->shown.tail_rows + i - head;
    luaL_addchar(b, '\n');
    if (l->label > 0)
        lumat_add_number(b, l->style, number + 1, l->label);
    add_line(b, l, add_element, i, "…");
}

static void count_specials(const layout *l, lumat_hidden *out)
{
    *out = (lumat_hidden){0};
    for (int64_t i = 0; i < gpu_size(l->m); i++) {
        out->nan += isnan(l->fetched.values[i]) != 0;
        out->inf += isinf(l->fetched.values[i]) != 0;
    }
}

static void add_rows(luaL_Buffer *b, const layout *l)
{
    if (l->label > 0)
        add_column_numbers(b, l);
    for (int64_t i = 0; i < l->shown.head_rows + l->shown.tail_rows; i++) {
        if (i == l->shown.head_rows)
            add_hidden_rows(b, l);
        add_row(b, l, i);
    }
}

void lumat_push_matrix_text(lua_State *L, const gpu_matrix *m,
                            const lumat_style *s)
{
    layout l = {.m = m, .style = s};
    lumat_hidden special;
    luaL_Buffer b;
    int top = lua_gettop(L);
    plan_fetch(&l);
    lumat_fetch_corner(L, m, &l.fetched);
    fit_columns(L, &l);
    choose_columns(&l);
    if (l.cut)
        lumat_count_hidden(L, m, &l.shown, &special);
    else
        count_specials(&l, &special);
    lumat_push_matrix_headline(L, m);
    luaL_buffinit(L, &b);
    luaL_addstring(&b, lua_tostring(L, top + 3));
    if (!l.cut)
        lumat_add_specials(&b, "   ", special.nan, special.inf);
    add_rows(&b, &l);
    if (l.cut)
        lumat_add_hidden(&b, m, &special);
    luaL_pushresult(&b);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}
