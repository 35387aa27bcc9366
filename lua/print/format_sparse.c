/* A sparse matrix as text: a small one with dots where nothing is, a large
 * one as a list of places and values. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "print_parts.h"
#include "value.h"

enum { HEAD_LINES = 4, GAP = 2, ITEM_GAP = 3, LEAST_COLUMN = GAP + 1 };
enum { LEAST_ITEM = ITEM_GAP + 8 }; /* "[1, 1] 1" */
enum { MOST_ENTRIES = LUMAT_SHOWN_BYTES / 16 };

void lumat_push_sparse_headline(lua_State *L, const gpu_sparse *s)
{
    char text[160];
    double size = (double)s->rows * (double)s->cols;
    gpu_device *d = gpu_matrix_device(&s->values);
    luaL_Buffer b;
    if (d == NULL) {
        lua_pushliteral(L, "freed sparse matrix");
        return;
    }
    luaL_buffinit(L, &b);
    snprintf(text, sizeof text, "%s %s sparse csr  %s",
             gpu_dtype_name(s->values.dtype), gpu_size_text(s->rows, s->cols),
             gpu_device_name(d));
    luaL_addstring(&b, text);
    if (gpu_is_lost(&s->values)) {
        luaL_addstring(&b, "  lost");
        luaL_pushresult(&b);
        return;
    }
    luaL_addstring(&b, "  nnz ");
    lumat_add_count(&b, s->count);
    if (size > 0) {
        snprintf(text, sizeof text, " (%.3g %%)",
                 100 * (double)s->count / size);
        luaL_addstring(&b, text);
    }
    luaL_addstring(&b, "  ");
    luaL_addstring(&b, gpu_bytes_text(gpu_sparse_bytes(s)));
    luaL_pushresult(&b);
}

/* What is laid out: the first `count` entries. */
typedef struct entries {
    const gpu_sparse *s;
    const lumat_style *style;
    int64_t count;
    int64_t *rows, *cols;
    int parts;      /* numbers a value: 2 of complex ones */
    double *values; /* parts x count */
} entries;

static void fetch(lua_State *L, entries *e)
{
    size_t n = (size_t)e->count;
    e->rows = lua_newuserdatauv(L, n * sizeof *e->rows, 0);
    e->cols = lua_newuserdatauv(L, n * sizeof *e->cols, 0);
    e->parts = gpu_is_complex(&e->s->values) ? 2 : 1;
    e->values =
        lua_newuserdatauv(L, n * (size_t)e->parts * sizeof *e->values, 0);
    lumat_try(
        L, gpu_sparse_entries(e->s, 0, e->count, e->rows, e->cols, e->values));
}

static void add_specials(luaL_Buffer *b, const entries *e)
{
    int64_t nan = 0, inf = 0;
    for (int64_t k = 0; k < e->count; k++) {
        const double *x = e->values + k * e->parts;
        int is_nan = isnan(x[0]) || isnan(x[e->parts - 1]);
        nan += is_nan;
        inf += !is_nan && (isinf(x[0]) || isinf(x[e->parts - 1]));
    }
    lumat_add_specials(b, "   ", nan, inf);
}

/* --- dots ----------------------------------------------------------------- */

/* Could all columns fit the screen if they were narrow? */
static int may_be_pattern(const gpu_sparse *s, const lumat_style *style)
{
    lumat_style usual = *style;
    usual.full = 0;
    return s->rows <= lumat_line_limit(&usual) &&
           s->cols <= style->width / LEAST_COLUMN && s->count <= MOST_ENTRIES;
}

static lumat_pair_column fit_column(const entries *e, int64_t j,
                                    double *scratch)
{
    lumat_pair_column c;
    int64_t n = 0;
    for (int64_t k = 0; k < e->count; k++)
        if (e->cols[k] == j)
            memcpy(scratch + e->parts * n++, e->values + e->parts * k,
                   (size_t)e->parts * sizeof *scratch);
    lumat_pair_fit(&c, scratch, e->parts == 2, n, e->parts);
    c.width = c.width > 0 ? c.width : 1;
    return c;
}

/* Pushes the columns' formats; 0 when they are too wide together. */
static int push_columns(lua_State *L, const entries *e, lumat_pair_column **out)
{
    int64_t cols = e->s->cols, room = e->style->width;
    *out = lua_newuserdatauv(L, (size_t)cols * sizeof **out, 0);
    double *scratch = lua_newuserdatauv(
        L, (size_t)(e->parts * e->count) * sizeof *scratch, 0);
    for (int64_t j = 0; j < cols; j++) {
        (*out)[j] = fit_column(e, j, scratch);
        room -= GAP + (*out)[j].width;
    }
    lua_pop(L, 1);
    return room >= 0;
}

/* Above the units of the column's numbers, as a zero would be; of complex ones
 * at the right. */
static void add_dot(luaL_Buffer *b, const lumat_style *s,
                    const lumat_pair_column *c)
{
    int decimals = c->is_complex ? 0 : c->re.decimals;
    int behind = decimals > 0 ? decimals + 1 : 0;
    lumat_add_padded(b, s, s->ascii ? "." : "·", 1, GAP + c->width - behind,
                     LUMAT_DIM);
    while (behind-- > 0)
        luaL_addchar(b, ' ');
}

static void add_pattern(luaL_Buffer *b, const entries *e,
                        const lumat_pair_column *columns)
{
    int64_t k = 0;
    for (int64_t i = 0; i < e->s->rows; i++) {
        luaL_addchar(b, '\n');
        for (int64_t j = 0; j < e->s->cols; j++) {
            if (k < e->count && e->rows[k] == i && e->cols[k] == j)
                lumat_add_pair(b, e->style, &columns[j],
                               e->values + e->parts * k++,
                               GAP + columns[j].width);
            else
                add_dot(b, e->style, &columns[j]);
        }
    }
}

/* --- triplets ------------------------------------------------------------- */

/* Where the next item goes. */
typedef struct cursor {
    int64_t column, line;
} cursor;

/* Moves past an item of that width; 1 when it begins a line. */
static int advance(cursor *c, int64_t width, const lumat_style *s)
{
    int wraps = c->line == 0 || c->column + ITEM_GAP + width > s->width;
    c->column = (wraps ? GAP : c->column + ITEM_GAP) + width;
    c->line += wraps;
    return wraps;
}

enum { ITEM = 48 + LUMAT_PAIR };

static int item_text(const entries *e, const lumat_pair_column *c, int64_t k,
                     char text[ITEM])
{
    char value[LUMAT_PAIR];
    lumat_pair_text(c, e->values + e->parts * k, value);
    return snprintf(text, ITEM, "[%lld, %lld] %s", (long long)e->rows[k] + 1,
                    (long long)e->cols[k] + 1, value);
}

/* How many entries fit so many lines. */
static int64_t count_that_fit(const entries *e, const lumat_pair_column *c,
                              int64_t lines)
{
    char text[ITEM];
    cursor at = {0, 0};
    for (int64_t k = 0; k < e->count; k++) {
        advance(&at, item_text(e, c, k, text), e->style);
        if (at.line > lines)
            return k;
    }
    return e->count;
}

static void add_items(luaL_Buffer *b, const entries *e,
                      const lumat_pair_column *c, int64_t shown,
                      const char *last, int64_t last_width)
{
    char text[ITEM];
    cursor at = {0, 0};
    for (int64_t k = 0; k < shown; k++) {
        int width = item_text(e, c, k, text);
        luaL_addstring(b, advance(&at, width, e->style) ? "\n  " : "   ");
        luaL_addstring(b, text);
    }
    if (last_width == 0)
        return;
    luaL_addstring(b, advance(&at, last_width, e->style) ? "\n  " : "   ");
    luaL_addstring(b, last);
}

/* Pushes "… 4 999 997 more, 1 NaN", or "" when all are shown. */
static const char *push_more(lua_State *L, const entries *e, int64_t shown,
                             int64_t *width)
{
    lumat_hidden special;
    lumat_corner c = {.head_rows = shown, .head_cols = 1};
    luaL_Buffer b;
    *width = 0;
    if (shown == e->s->count)
        return lua_pushliteral(L, "");
    lumat_count_hidden(L, &e->s->values, &c, &special);
    luaL_buffinit(L, &b);
    luaL_addstring(&b, e->style->ascii ? "... " : "… ");
    lumat_add_count(&b, special.count);
    luaL_addstring(&b, " more");
    lumat_add_specials(&b, ", ", special.nan, special.inf);
    luaL_pushresult(&b);
    const char *text = lua_tostring(L, -1);
    *width = (int64_t)strlen(text) - (e->style->ascii ? 0 : 2);
    return text;
}

/* As many entries as so many lines could hold. */
static int64_t most_entries(const entries *e, int64_t lines)
{
    int64_t most = lines * (e->style->width / LEAST_ITEM + 1);
    return most < MOST_ENTRIES || e->style->full ? most : MOST_ENTRIES;
}

static void push_triplets(lua_State *L, entries *e)
{
    int64_t limit = lumat_line_limit(e->style), shown, width;
    lumat_pair_column c;
    luaL_Buffer b;
    int top = lua_gettop(L), cut = e->s->count > most_entries(e, limit);
    e->count = cut ? most_entries(e, HEAD_LINES) : e->s->count;
    fetch(L, e);
    lumat_pair_fit(&c, e->values, e->parts == 2, e->count, e->parts);
    shown = cut ? 0 : count_that_fit(e, &c, limit);
    if (shown < e->s->count)
        shown = count_that_fit(e, &c, HEAD_LINES);
    const char *more = push_more(L, e, shown, &width);
    lumat_push_sparse_headline(L, e->s);
    luaL_buffinit(L, &b);
    luaL_addstring(&b, lua_tostring(L, top + 5));
    if (width == 0)
        add_specials(&b, e);
    add_items(&b, e, &c, shown, more, width);
    luaL_pushresult(&b);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

/* Pushes the text, or nothing when the columns are too wide. */
static int push_pattern(lua_State *L, entries *e)
{
    lumat_pair_column *columns;
    luaL_Buffer b;
    int top = lua_gettop(L);
    e->count = e->s->count;
    fetch(L, e);
    if (!push_columns(L, e, &columns)) {
        lua_settop(L, top);
        return 0;
    }
    lumat_push_sparse_headline(L, e->s);
    luaL_buffinit(L, &b);
    luaL_addstring(&b, lua_tostring(L, top + 5));
    add_specials(&b, e);
    add_pattern(&b, e, columns);
    luaL_pushresult(&b);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return 1;
}

void lumat_push_sparse_text(lua_State *L, const gpu_sparse *s,
                            const lumat_style *style)
{
    entries e = {.s = s, .style = style};
    int has_text = s->values.storage != NULL && !gpu_is_lost(&s->values) &&
                   s->rows > 0 && s->cols > 0;
    if (!has_text)
        lumat_push_sparse_headline(L, s);
    else if (!may_be_pattern(s, style) || !push_pattern(L, &e))
        push_triplets(L, &e);
}
