/* A vector as text: across, with the index of the first item of each line
 * when there are several. */
#include <math.h>
#include "format.h"

enum { GAP = 2, LEAST_COLUMN = GAP + 1 };

typedef struct lines {
    const gpu_matrix *m;
    const lumat_style *style;
    lumat_corner fetched;
    lumat_column column;
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
static void plan_fetch(lines *l)
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
    lumat_column_fit(&l->column, l->fetched.values, fetched, 1);
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

static double item_at(const lines *l, int64_t i)
{
    const lumat_corner *c = &l->fetched;
    return c->values[i < c->head_rows
                         ? i
                         : i - (l->m->rows - c->head_rows - c->tail_rows)];
}

static void add_items(luaL_Buffer *b, const lines *l, int64_t line)
{
    int64_t first = line * l->per_line, end = first + l->per_line;
    luaL_addchar(b, '\n');
    if (l->label > 0)
        lumat_add_number(b, l->style, first + 1, l->label);
    for (int64_t i = first; i < end && i < l->m->rows; i++)
        lumat_add_cell(b, l->style, &l->column, item_at(l, i),
                       GAP + l->column.width);
}

static void count_specials(const lines *l, lumat_hidden *out)
{
    *out = (lumat_hidden){0};
    for (int64_t i = 0; i < l->m->rows; i++) {
        out->nan += isnan(item_at(l, i)) != 0;
        out->inf += isinf(item_at(l, i)) != 0;
    }
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
static lumat_corner shown_part(const lines *l)
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
    plan_fetch(&l);
    lumat_fetch_corner(L, m, &l.fetched);
    lay_out(&l);
    lumat_corner shown = shown_part(&l);
    if (l.cut)
        lumat_count_hidden(L, m, &shown, &special);
    else
        count_specials(&l, &special);
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
