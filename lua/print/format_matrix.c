/* A matrix as text: all of it when it fits the screen, else its corners with
 * row and column numbers; a vector across, with the index of the first item of
 * each line when there are several. */
#include <math.h>
#include <string.h>
#include "print_parts.h"
#include "complex_numbers.h"
#include "op_list.h"
#include "value.h"

/* --- the elements shown --------------------------------------------------- */
/* Brought from the device, which is asked about the others. */

/* The indices of the first head and last tail of count, as a new userdata;
 * NULL, and nil pushed, when that is all of them. */
static int64_t *push_indices(lua_State *L, int64_t count, int64_t head,
                             int64_t tail)
{
    if (head + tail == count) {
        lua_pushnil(L);
        return NULL;
    }
    size_t bytes = sizeof(int64_t) * (size_t)(head + tail);
    int64_t *list = lua_newuserdatauv(L, bytes, 0);
    for (int64_t i = 0; i < head; i++)
        list[i] = i;
    for (int64_t i = 0; i < tail; i++)
        list[head + i] = count - tail + i;
    return list;
}

/* From the last one, as doubles are never smaller. */
void lumat_widen(double *data, gpu_dtype dtype, int64_t count)
{
    const unsigned char *bytes = (const void *)data;
    float single;
    if (gpu_dtype_is_complex(dtype))
        count *= 2;
    dtype = gpu_dtype_of_parts(dtype);
    for (int64_t i = count - 1; i >= 0 && dtype == GPU_F32; i--) {
        memcpy(&single, bytes + i * (int64_t)sizeof single, sizeof single);
        data[i] = single;
    }
    for (int64_t i = count - 1; i >= 0 && dtype == GPU_BOOL; i--)
        data[i] = bytes[i];
}

/* Doubles that an element is shown as. */
static int64_t numbers_of(const gpu_matrix *m)
{
    return gpu_is_complex(m) ? 2 : 1;
}

static void download(lua_State *L, const gpu_matrix *m, double *values)
{
    lumat_try(L, gpu_is_complex(m) ? gpu_complex_download(m, values)
                                   : gpu_download_unseen(m, values));
}

/* Fills c->values from the device and pushes the userdata that owns them. */
static void fetch_corner(lua_State *L, const gpu_matrix *m, lumat_corner *c)
{
    int64_t nrows = c->head_rows + c->tail_rows;
    int64_t ncols = c->head_cols + c->tail_cols;
    int whole = nrows == m->rows && ncols == m->cols;
    size_t bytes = sizeof(double) * (size_t)(nrows * ncols * numbers_of(m));
    c->values = lua_newuserdatauv(L, bytes, 0);
    if (whole) {
        download(L, m, c->values);
    } else {
        gpu_matrix *part = lumat_new_matrix(L);
        int64_t *rows = push_indices(L, m->rows, c->head_rows, c->tail_rows);
        int64_t *cols = push_indices(L, m->cols, c->head_cols, c->tail_cols);
        lumat_try(L, gpu_gather(m, rows, nrows, cols, ncols, part));
        download(L, part, c->values);
        gpu_release(part);
        lua_pop(L, 3);
    }
    lumat_widen(c->values, m->dtype, nrows * ncols);
}

/* One number for a block: its elements tested, then reduced. */
static double ask(lua_State *L, const gpu_matrix *m, gpu_op test,
                  gpu_reduction reduction)
{
    gpu_program p;
    double result = 0;
    gpu_program_start(&p, 1);
    gpu_program_add(&p, test, 0, 0, 0);
    p.reduction = (uint8_t)reduction;
    lumat_try(L, gpu_reduce_all("print", &p, &m, &result));
    return result;
}

/* Adds what a block of m hides; the blocks come in row-major order of their
 * first elements that matter. */
static void count_block(lua_State *L, const gpu_matrix *m, gpu_slice rows,
                        gpu_slice cols, lumat_hidden *out)
{
    if (rows.count == 0 || cols.count == 0)
        return;
    int64_t size = rows.count * cols.count;
    out->count += size;
    if (m->dtype == GPU_BOOL)
        return;
    gpu_matrix *block = lumat_new_matrix(L), once;
    lumat_try(L, gpu_view_block(m, rows, cols, block));
    int64_t times = gpu_without_repeats(block, &once), asked = size / times;
    int64_t finite = (int64_t)ask(L, &once, GPU_OP_isfinite, GPU_REDUCE_sum);
    if (finite < asked) {
        int64_t nan = (int64_t)ask(L, &once, GPU_OP_isnan, GPU_REDUCE_sum);
        out->nan += nan * times;
        out->inf += (asked - finite - nan) * times;
    }
    if (finite < asked && out->row < 0) {
        double at = ask(L, &once, GPU_OP_isfinite, GPU_REDUCE_argmin);
        out->row = rows.first + (int64_t)at / once.cols;
        out->col = cols.first + (int64_t)at % once.cols;
    }
    gpu_release(block);
    lua_pop(L, 1);
}

void lumat_count_hidden(lua_State *L, const gpu_matrix *m,
                        const lumat_corner *c, lumat_hidden *out)
{
    gpu_slice top = {0, 1, c->head_rows};
    gpu_slice bottom = {m->rows - c->tail_rows, 1, c->tail_rows};
    gpu_slice between = {c->head_rows, 1, bottom.first - c->head_rows};
    gpu_slice all = {0, 1, m->cols};
    gpu_slice inner = {c->head_cols, 1, m->cols - c->head_cols - c->tail_cols};
    *out = (lumat_hidden){.row = -1, .col = -1};
    count_block(L, m, top, inner, out);
    count_block(L, m, between, all, out);
    count_block(L, m, bottom, inner, out);
}

/* --- vectors -------------------------------------------------------------- */

enum { GAP = 2, LEAST_COLUMN = GAP + 1 }; /* blanks before a number */

typedef struct lines {
    const gpu_matrix *m;
    const lumat_style *style;
    lumat_corner fetched;
    lumat_pair_column column;
    int64_t label, per_line, count; /* count: of lines */
    int64_t head, tail;             /* lines shown of a cut one */
    int cut;
} lines;

/* Elements that may cross the bus. */
static int64_t budget(const lines *l)
{
    return LUMAT_SHOWN_BYTES / (int64_t)gpu_dtype_size(l->m->dtype);
}

/* As many as fit when every item has one digit. */
static int64_t most_per_line(const lines *l)
{
    int64_t items = l->style->width / LEAST_COLUMN + 1;
    int64_t most = budget(l) / (l->head + l->tail);
    return items < most ? items : most;
}

/* All of a vector that could fit the screen, else what its first and last
 * lines could hold. */
static void plan_items(lines *l)
{
    int64_t size = l->m->rows;
    int64_t per_line = most_per_line(l);
    l->fetched = (lumat_corner){.head_rows = size, .head_cols = 1};
    if (l->style->full)
        return;
    if (size > budget(l) || size / per_line > lumat_line_limit(l->style)) {
        l->fetched.head_rows = l->head * per_line;
        l->fetched.tail_rows = l->tail * per_line;
    }
}

static void lay_out(lines *l)
{
    int64_t fetched = l->fetched.head_rows + l->fetched.tail_rows;
    int64_t size = l->m->rows;
    lumat_pair_fit(&l->column, l->fetched.values, gpu_is_complex(l->m), fetched,
                   numbers_of(l->m));
    int64_t width = l->style->width, item = GAP + l->column.width;
    l->label = item * size > width ? GAP + lumat_digits(size) : 0;
    l->per_line = (width - l->label) / item;
    if (l->per_line > most_per_line(l))
        l->per_line = most_per_line(l);
    if (l->per_line < 1)
        l->per_line = 1;
    l->count = (size + l->per_line - 1) / l->per_line;
    l->cut = l->count > lumat_line_limit(l->style) || l->fetched.tail_rows > 0;
}

static const double *item_at(const lines *l, int64_t i)
{
    const lumat_corner *c = &l->fetched;
    int64_t hidden = l->m->rows - c->head_rows - c->tail_rows;
    return &c->values[(i < c->head_rows ? i : i - hidden) * numbers_of(l->m)];
}

/* Counts an element that is NaN, or else infinite, in one of its parts. */
static void count_special(const gpu_matrix *m, const double *x,
                          lumat_hidden *out)
{
    int is_nan = isnan(x[0]), is_inf = isinf(x[0]);
    if (gpu_is_complex(m)) {
        is_nan = is_nan || isnan(x[1]);
        is_inf = is_inf || isinf(x[1]);
    }
    out->nan += is_nan != 0;
    out->inf += !is_nan && is_inf;
}

static void add_items(luaL_Buffer *b, const lines *l, int64_t line)
{
    int64_t first = line * l->per_line, end = first + l->per_line;
    luaL_addchar(b, '\n');
    if (l->label > 0)
        lumat_add_number(b, l->style, first + 1, l->label);
    for (int64_t i = first; i < end && i < l->m->rows; i++)
        lumat_add_pair(b, l->style, &l->column, item_at(l, i),
                       GAP + l->column.width);
}

static void count_item_specials(const lines *l, lumat_hidden *out)
{
    *out = (lumat_hidden){0};
    for (int64_t i = 0; i < l->m->rows; i++)
        count_special(l->m, item_at(l, i), out);
}

static void add_lines(luaL_Buffer *b, const lines *l)
{
    for (int64_t i = 0; i < l->count; i++) {
        if (l->cut && i == l->head) {
            luaL_addchar(b, '\n');
            lumat_add_padded(b, l->style, l->style->ascii ? ":" : "⋮", 1,
                             l->label, LUMAT_DIM);
            i = l->count - l->tail;
        }
        add_items(b, l, i);
    }
}

/* What the lines of a cut vector show. */
static lumat_corner part_shown(const lines *l)
{
    int64_t last = (l->m->rows - 1) % l->per_line + 1;
    return (lumat_corner){.head_rows = l->head * l->per_line,
                          .tail_rows = (l->tail - 1) * l->per_line + last,
                          .head_cols = 1};
}

void lumat_push_vector_text(lua_State *L, const gpu_matrix *m,
                            const lumat_style *s)
{
    lines l = {.m = m, .style = s};
    lumat_line_edges(lumat_line_limit(s), &l.head, &l.tail);
    lumat_hidden special;
    luaL_Buffer b;
    int top = lua_gettop(L);
    plan_items(&l);
    fetch_corner(L, m, &l.fetched);
    lay_out(&l);
    lumat_corner shown = part_shown(&l);
    if (l.cut)
        lumat_count_hidden(L, m, &shown, &special);
    else
        count_item_specials(&l, &special);
    lumat_push_matrix_headline(L, m);
    luaL_buffinit(L, &b);
    luaL_addstring(&b, lua_tostring(L, top + 2));
    if (!l.cut)
        lumat_add_specials(&b, "   ", special.nan, special.inf);
    add_lines(&b, &l);
    if (l.cut)
        lumat_add_hidden(&b, m, &special);
    luaL_pushresult(&b);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

/* --- matrices ------------------------------------------------------------- */

enum { TAIL_COLS = 2, LEAST_COLS = 8 };

/* What is laid out: values and formats of the columns fetched, and how many
 * of these are shown. */
typedef struct layout {
    const gpu_matrix *m;
    const lumat_style *style;
    lumat_corner fetched, shown;
    lumat_pair_column *columns;
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
    int64_t n = numbers_of(l->m);
    size_t bytes = sizeof *l->columns * (size_t)cols;
    l->columns = lua_newuserdatauv(L, bytes, 0);
    for (int64_t j = 0; j < cols; j++)
        lumat_pair_fit(&l->columns[j], l->fetched.values + n * j,
                       gpu_is_complex(l->m), rows, n * cols);
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
    lumat_add_pair(b, l->style, &l->columns[place],
                   &l->fetched.values[(row * ld + place) * numbers_of(l->m)],
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
    for (int64_t i = 0; i < gpu_size(l->m); i++)
        count_special(l->m, &l->fetched.values[i * numbers_of(l->m)], out);
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
    fetch_corner(L, m, &l.fetched);
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
