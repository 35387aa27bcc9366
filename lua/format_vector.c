/* A vector as text: across, with the index of the first item of each line
 * when there are several. */
#include "format.h"

enum { GAP = 2, HEAD_LINES = 4, TAIL_LINES = 2, LEAST_COLUMN = GAP + 1 };

typedef struct lines {
    const gpu_matrix *m;
    const lumat_style *style;
    lumat_corner fetched;
    lumat_column column;
    int64_t label, per_line, count; /* count: of lines */
} lines;

/* All of a vector that could fit the screen, else what its first and last
 * lines could hold. */
static void plan_fetch(lines *l)
{
    int64_t size = l->m->rows;
    int64_t budget = LUMAT_SHOWN_BYTES / (int64_t)gpu_dtype_size(l->m->dtype);
    int64_t per_line = l->style->width / LEAST_COLUMN + 1;
    int64_t most = budget / (HEAD_LINES + TAIL_LINES);
    per_line = per_line < most ? per_line : most;
    l->fetched = (lumat_corner){.head_rows = size, .head_cols = 1};
    if (size > budget || size / per_line > lumat_line_limit(l->style)) {
        l->fetched.head_rows = HEAD_LINES * per_line;
        l->fetched.tail_rows = TAIL_LINES * per_line;
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
    int64_t most = LUMAT_SHOWN_BYTES / (HEAD_LINES + TAIL_LINES) /
                   (int64_t)gpu_dtype_size(l->m->dtype);
    if (l->fetched.tail_rows > 0 && l->per_line > most)
        l->per_line = most;
    if (l->per_line < 1)
        l->per_line = 1;
    l->count = (size + l->per_line - 1) / l->per_line;
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
        double x = item_at(l, i);
        out->nan += x != x;
        out->inf += x == x && x - x != 0;
    }
}

static void add_cut_lines(luaL_Buffer *b, const lines *l)
{
    for (int64_t i = 0; i < HEAD_LINES; i++)
        add_items(b, l, i);
    luaL_addchar(b, '\n');
    lumat_add_padded(b, l->style, l->style->ascii ? ":" : "⋮", 1, l->label,
                     LUMAT_DIM);
    for (int64_t i = l->count - TAIL_LINES; i < l->count; i++)
        add_items(b, l, i);
}

/* The corner that the cut lines show. */
static lumat_corner shown_part(const lines *l)
{
    int64_t last = (l->m->rows - 1) % l->per_line + 1;
    return (lumat_corner){.head_rows = HEAD_LINES * l->per_line,
                          .tail_rows = (TAIL_LINES - 1) * l->per_line + last,
                          .head_cols = 1};
}

void lumat_push_vector_text(lua_State *L, const gpu_matrix *m,
                            const lumat_style *s)
{
    lines l = {.m = m, .style = s};
    lumat_hidden special;
    luaL_Buffer b;
    int top = lua_gettop(L);
    plan_fetch(&l);
    lumat_fetch_corner(L, m, &l.fetched);
    lay_out(&l);
    int cut = l.count > lumat_line_limit(s) || l.fetched.tail_rows > 0;
    lumat_corner shown = shown_part(&l);
    if (cut)
        lumat_count_hidden(L, m, &shown, &special);
    else
        count_specials(&l, &special);
    lumat_push_matrix_headline(L, m);
    luaL_buffinit(L, &b);
    lua_pushvalue(L, top + 2);
    luaL_addvalue(&b);
    if (!cut)
        lumat_add_specials(&b, "   ", special.nan, special.inf);
    for (int64_t i = 0; i < l.count && !cut; i++)
        add_items(&b, &l, i);
    if (cut) {
        add_cut_lines(&b, &l);
        lumat_add_hidden(&b, m, &special);
    }
    luaL_pushresult(&b);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}
