/* The cells of what a window has at hand: their formats, their text, and the
 * Lua that stands for them. */
#include "parse.h"
#include "window_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- formats -------------------------------------------------------------- */

/* The entries of a sparse column, as a dense one in scratch. */
static int64_t pack_column(const lumat_window *w, const lumat_area *a,
                           int64_t j, double *scratch)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->rows; i++)
        if (w->stored[i * a->cols + j])
            scratch[n++] = w->values[i * a->cols + j];
    return n;
}

static void fit_column(const lumat_window *w, const lumat_area *a, int64_t j,
                       lumat_column *c, double *scratch)
{
    *c = (lumat_column){.digits = w->digits, .always_e = w->always_e};
    if (w->stored)
        lumat_column_fit_as(c, scratch, pack_column(w, a, j, scratch), 1);
    else
        lumat_column_fit_as(c, w->values + j, a->rows, a->cols);
    c->width = c->width > 0 ? c->width : 1;
}

/* While one scrolls, a column does not get narrower. */
static void keep_width(const lumat_window *w, const lumat_area *a, int64_t j,
                       lumat_column *c)
{
    const lumat_area *old = &w->here;
    int64_t before = a->col + j - old->col;
    int overlaps = a->row < old->row + old->rows && old->row < a->row + a->rows;
    if (overlaps && before >= 0 && before < old->cols &&
        w->columns[before].width > c->width)
        c->width = w->columns[before].width;
}

lumat_column *lumat_push_columns(lua_State *L, const lumat_window *w,
                                 const lumat_area *a)
{
    lumat_column *columns =
        lua_newuserdatauv(L, (size_t)a->cols * sizeof *columns, 0);
    double *scratch =
        lua_newuserdatauv(L, (size_t)a->rows * sizeof *scratch, 0);
    for (int64_t j = 0; j < a->cols; j++) {
        fit_column(w, a, j, &columns[j], scratch);
        keep_width(w, a, j, &columns[j]);
    }
    lua_pop(L, 1);
    return columns;
}

/* --- cells ---------------------------------------------------------------- */

static void write_exact(const lumat_window *w, double x, char *out)
{
    size_t n;
    if (w->dtype == GPU_BOOL)
        strcpy(out, x != 0 ? "true" : "false");
    else if (lumat_special(x))
        strcpy(out, lumat_special(x));
    else {
        n = w->dtype == GPU_F32 ? lumat_print_f32((float)x, 0, out)
                                : lumat_print_f64(x, 0, out);
        out[n] = '\0';
    }
}

/* The point that stands for no entry, above the units. */
static void write_point(const lumat_column *c, char *out)
{
    int behind = c->decimals > 0 ? c->decimals + 1 : 0;
    snprintf(out, LUMAT_CELL, ".%*s", behind, "");
}

void lumat_window_cell(const lumat_window *w, int64_t row, int64_t col,
                       lumat_cell *out)
{
    int64_t j = col - w->here.col;
    int64_t at = (row - w->here.row) * w->here.cols + j;
    out->value = w->values[at];
    out->is_stored = w->stored ? w->stored[at] : 1;
    if (out->is_stored)
        lumat_column_cell(&w->columns[j], out->value, out->text);
    else
        write_point(&w->columns[j], out->text);
    write_exact(w, out->value, out->exact);
}

int lumat_window_width(const lumat_window *w, int64_t col)
{
    int width = w->columns[col - w->here.col].width;
    int number = lumat_digits(col + 1);
    return number > width ? number : width;
}

/* --- as Lua --------------------------------------------------------------- */

/* "A.T[{2, 1}]", "A["2, 1:4"]", "v[5]", "v["5:8"]". */
static void add_place(luaL_Buffer *b, const lumat_window *w, const char *name,
                      const lumat_area *a)
{
    char text[128];
    long long row = a->row + 1, col = a->col + 1, last = a->col + a->cols;
    luaL_addstring(b, name);
    if (w->is_turned && !w->is_vector)
        luaL_addstring(b, ".T");
    if (w->is_vector && a->cols == 1)
        snprintf(text, sizeof text, "[%lld]", w->is_turned ? col : row);
    else if (w->is_vector)
        snprintf(text, sizeof text, "[\"%lld:%lld\"]", col, last);
    else if (a->cols == 1)
        snprintf(text, sizeof text, "[{%lld, %lld}]", row, col);
    else
        snprintf(text, sizeof text, "[\"%lld, %lld:%lld\"]", row, col, last);
    luaL_addstring(b, text);
}

/* What Lua reads as the value. */
static const char *as_lua(const lumat_cell *cell)
{
    if (isnan(cell->value))
        return "0/0";
    if (isinf(cell->value))
        return cell->value < 0 ? "-1/0" : "1/0";
    return cell->exact;
}

static void add_values(luaL_Buffer *b, const lumat_window *w,
                       const lumat_area *a)
{
    lumat_cell cell;
    if (a->cols > 1)
        luaL_addchar(b, '{');
    for (int64_t j = a->col; j < a->col + a->cols; j++) {
        lumat_window_cell(w, a->row, j, &cell);
        luaL_addstring(b, j > a->col ? ", " : "");
        luaL_addstring(b, as_lua(&cell));
    }
    if (a->cols > 1)
        luaL_addchar(b, '}');
}

/* A sparse matrix cannot be assigned to: its values come first there. */
void lumat_push_cells(lua_State *L, const lumat_window *w, const char *name,
                      lumat_area area)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    if (w->sparse) {
        add_values(&b, w, &area);
        luaL_addstring(&b, "  -- ");
        add_place(&b, w, name, &area);
    } else {
        add_place(&b, w, name, &area);
        luaL_addstring(&b, " = ");
        add_values(&b, w, &area);
    }
    luaL_pushresult(&b);
}
