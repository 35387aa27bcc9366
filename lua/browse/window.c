/* A matrix with a part of it at hand, for the viewer: fetching parts, and
 * their cells, as numbers, as text and as the Lua that stands for them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "function.h"
#include "parse.h"
#include "settings.h"
#include "value.h"
#include "window_parts.h"

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
    if (w->is_frame && w->parts[j].is_text)
        c->width = w->parts[j].width;
    else if (w->stored)
        lumat_column_fit_as(c, scratch, pack_column(w, a, j, scratch), 1);
    else
        lumat_column_fit_as(c, w->values + j, a->rows, a->cols);
    if (w->is_frame && c->width < w->parts[j].width)
        c->width = w->parts[j].width;
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

/* Pushes and returns the formats of the area's columns; while it overlaps the
 * part that is here, none of these gets narrower. */
static lumat_column *push_columns(lua_State *L, const lumat_window *w,
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

static void write_exact(gpu_dtype dtype, double x, char *out)
{
    size_t n;
    if (dtype == GPU_BOOL)
        strcpy(out, x != 0 ? "true" : "false");
    else if (lumat_special(x))
        strcpy(out, lumat_special(x));
    else {
        n = dtype == GPU_F32 ? lumat_print_f32((float)x, 0, out)
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
    out->is_left = w->is_frame && w->parts[j].is_left;
    if (w->is_frame && w->parts[j].is_text) {
        strcpy(out->text, w->texts[at]);
        strcpy(out->exact, w->exacts[at]);
        return;
    }
    if (out->is_stored)
        lumat_column_cell(&w->columns[j], out->value, out->text);
    else
        write_point(&w->columns[j], out->text);
    write_exact(w->is_frame ? w->parts[j].dtype : w->dtype, out->value,
                out->exact);
}

const char *lumat_window_title(const lumat_window *w, int64_t col)
{
    return w->is_frame ? w->parts[col - w->here.col].title : NULL;
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
    if (w->is_frame) {
        lumat_push_frame_cells(L, w, name, area);
        return;
    }
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

/* --- windows -------------------------------------------------------------- */

/* What the userdata keeps alive, by number of its user value. */
enum { MATRIX = 1, TURNED, VALUES, STORED, COLUMNS, KEPT = COLUMNS };

/* --- opening -------------------------------------------------------------- */

/* A window is found again on the stack by its address, which is the
 * userdata's. */
static int index_of(lua_State *L, const lumat_window *w)
{
    int index = lua_gettop(L);
    while (index > 0 && lua_touserdata(L, index) != w)
        index--;
    return index > 0 ? index : luaL_error(L, "the window is not on the stack");
}

/* Makes the window keep the value on top, and pops it. */
static void keep(lua_State *L, const lumat_window *w, int slot)
{
    lua_setiuservalue(L, index_of(L, w), slot);
}

static void forget_part(lumat_window *w)
{
    w->here = (lumat_area){0, 0, 0, 0};
}

static int64_t size_of(lua_State *L, const char *field)
{
    lua_getfield(L, -1, field);
    int64_t size = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return size;
}

/* The same of the frame on top. */
static void look_at_frame(lua_State *L, lumat_window *w)
{
    w->is_frame = 1;
    w->rows = size_of(L, "rows");
    w->cols = size_of(L, "cols");
    w->dtype = GPU_F64;
    keep(L, w, MATRIX);
    forget_part(w);
}

/* And of the distributed matrix on top. */
static void look_at_distributed(lua_State *L, lumat_window *w)
{
    w->is_distributed = 1;
    w->rows = size_of(L, "rows");
    w->cols = size_of(L, "cols");
    lua_getfield(L, -1, "dtype");
    if (!gpu_dtype_find(lua_tostring(L, -1), &w->dtype))
        w->dtype = GPU_F64;
    lua_pop(L, 1);
    keep(L, w, MATRIX);
    forget_part(w);
}

/* Takes the matrix on top, and pops it. */
static void look_at(lua_State *L, lumat_window *w)
{
    if (lumat_is_distributed(L, -1)) {
        look_at_distributed(L, w);
        return;
    }
    w->dense = lumat_test_matrix(L, -1);
    w->sparse = lumat_test_sparse(L, -1);
    w->rows = w->dense ? w->dense->rows : w->sparse->rows;
    w->cols = w->dense ? w->dense->cols : w->sparse->cols;
    w->dtype = w->dense ? w->dense->dtype : w->sparse->values.dtype;
    keep(L, w, MATRIX);
    forget_part(w);
}

lumat_window *lumat_push_window(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    lumat_window *w = lua_newuserdatauv(L, sizeof *w, KEPT);
    const gpu_matrix *m = lumat_test_matrix(L, index);
    *w = (lumat_window){.digits = lumat_settings_now()->digits};
    if (lumat_is_frame(L, index)) {
        lua_pushvalue(L, index);
        look_at_frame(L, w);
        return w;
    }
    if (m) {
        gpu_matrix *view = lumat_new_matrix(L);
        gpu_retain(m);
        *view = *m;
        view->ndim = 2;
        w->is_vector = m->ndim == 1;
    } else {
        lua_pushvalue(L, index);
    }
    look_at(L, w);
    return w;
}

/* Of a dense matrix a view; a sparse one has to be arranged anew. */
static void push_transposed(lua_State *L, const lumat_window *w)
{
    if (w->is_distributed) {
        lua_getiuservalue(L, index_of(L, w), MATRIX);
        lua_getfield(L, -1, "T");
        lua_remove(L, -2);
        return;
    }
    if (w->dense) {
        gpu_view_transposed(w->dense, lumat_new_matrix(L));
        return;
    }
    gpu_sparse *out = lumat_new_sparse(L);
    gpu_pause_trace(1);
    lumat_try(L, gpu_sparse_transposed(w->sparse, out));
    gpu_pause_trace(0);
    lumat_account_sparse(L, out);
}

/* The other one stays, for the way back. */
void lumat_window_transpose(lua_State *L, lumat_window *w)
{
    int index = index_of(L, w);
    lua_getiuservalue(L, index, MATRIX);
    if (lua_getiuservalue(L, index, TURNED) == LUA_TNIL) {
        lua_pop(L, 1);
        push_transposed(L, w);
    }
    look_at(L, w);
    keep(L, w, TURNED);
    w->is_turned = !w->is_turned;
}

int lumat_window_is_frame(const lumat_window *w)
{
    return w->is_frame;
}

int lumat_window_is_distributed(const lumat_window *w)
{
    return w->is_distributed;
}

void lumat_window_format(lumat_window *w, int digits, int always_e)
{
    w->digits = digits;
    w->always_e = always_e;
    forget_part(w);
}

int lumat_window_digits(const lumat_window *w)
{
    return w->digits;
}

lumat_area lumat_window_size(const lumat_window *w)
{
    return (lumat_area){0, 0, w->rows, w->cols};
}

void lumat_push_window_headline(lua_State *L, const lumat_window *w)
{
    lua_getiuservalue(L, index_of(L, w), MATRIX);
    if (w->is_vector)
        w->dense->ndim = w->is_turned ? 2 : 1;
    lumat_push_headline(L, -1);
    if (w->dense)
        w->dense->ndim = 2;
    lua_remove(L, -2);
}

/* --- fetching ------------------------------------------------------------- */

static int contains(const lumat_area *a, const lumat_area *b)
{
    return a->rows > 0 && b->row >= a->row && b->col >= a->col &&
           b->row + b->rows <= a->row + a->rows &&
           b->col + b->cols <= a->col + a->cols;
}

/* first .. first + count with a margin on both sides, within 0 .. size. */
static void widen(int64_t *first, int64_t *count, int64_t margin, int64_t size)
{
    int64_t low = *first > margin ? *first - margin : 0;
    int64_t high = *first + *count + margin;
    high = high < size ? high : size;
    *first = low;
    *count = high - low;
}

/* As much around the area as may cross the bus at once: a screen above and
 * below, then half a one to the sides. */
static lumat_area with_margin(const lumat_window *w, lumat_area a)
{
    int64_t most = LUMAT_SHOWN_BYTES / (int64_t)gpu_dtype_size(w->dtype);
    int64_t rows = most / a.cols - a.rows, cols;
    rows = rows < 2 * a.rows ? rows : 2 * a.rows;
    if (rows > 0)
        widen(&a.row, &a.rows, rows / 2, w->rows);
    cols = most / a.rows - a.cols;
    cols = cols < a.cols ? cols : a.cols;
    if (cols > 0)
        widen(&a.col, &a.cols, cols / 2, w->cols);
    return a;
}

static gpu_status fetch_dense(const gpu_matrix *m, const lumat_area *a,
                              double *values)
{
    gpu_matrix view;
    gpu_slice rows = {a->row, 1, a->rows}, cols = {a->col, 1, a->cols};
    gpu_status status = gpu_view_block(m, rows, cols, &view);
    if (status != GPU_OK)
        return status;
    status = gpu_download(&view, values);
    gpu_release(&view);
    if (status == GPU_OK)
        lumat_widen(values, m->dtype, a->rows * a->cols);
    return status;
}

/* Pushes the values of the area of a distributed matrix: nothing else of it
 * comes here. */
static double *push_distributed(lua_State *L, const lumat_window *w,
                                const lumat_area *a)
{
    const lua_Integer numbers[] = {a->row + 1, a->col + 1, a->rows, a->cols};
    size_t size = (size_t)(a->rows * a->cols);
    int index = index_of(L, w);
    double *values = lua_newuserdatauv(L, 2 * size * sizeof *values, 0);
    lumat_push_required(L, "distributed_parts");
    lua_getfield(L, -1, "window");
    lua_remove(L, -2);
    lua_getiuservalue(L, index, MATRIX);
    for (int i = 0; i < 4; i++)
        lua_pushinteger(L, numbers[i]);
    lua_call(L, 5, 1);
    const gpu_matrix *m = lumat_check_matrix(L, -1);
    lumat_try(L, gpu_download(m, values));
    lumat_widen(values, m->dtype, a->rows * a->cols);
    lua_pop(L, 1);
    return values;
}

static void fetch(lua_State *L, lumat_window *w, const lumat_area *a)
{
    if (w->is_distributed) {
        w->values = push_distributed(L, w, a);
        keep(L, w, VALUES);
        return;
    }
    if (w->is_frame) {
        int index = index_of(L, w);
        lua_getiuservalue(L, index, MATRIX);
        gpu_pause_trace(1);
        lumat_fetch_frame(L, w, lua_gettop(L), a);
        gpu_pause_trace(0);
        keep(L, w, VALUES);
        lua_pop(L, 1);
        return;
    }
    size_t size = (size_t)(a->rows * a->cols);
    gpu_slice rows = {a->row, 1, a->rows}, cols = {a->col, 1, a->cols};
    double *values = lua_newuserdatauv(L, size * sizeof *values, 0);
    uint8_t *stored = lua_newuserdatauv(L, w->sparse ? size : 1, 0);
    gpu_pause_trace(1);
    if (w->dense)
        lumat_try(L, fetch_dense(w->dense, a, values));
    else
        lumat_try(L, gpu_sparse_block(w->sparse, rows, cols, values, stored));
    gpu_pause_trace(0);
    w->values = values;
    w->stored = w->sparse ? stored : NULL;
    keep(L, w, STORED);
    keep(L, w, VALUES);
}

void lumat_window_need(lua_State *L, lumat_window *w, lumat_area area)
{
    if (contains(&w->here, &area))
        return;
    area = with_margin(w, area);
    fetch(L, w, &area);
    w->columns = push_columns(L, w, &area);
    keep(L, w, COLUMNS);
    w->here = area;
}

/* --- places --------------------------------------------------------------- */

int lumat_window_place(const lumat_window *w, const char *text,
                       int64_t place[2], char *error, size_t size)
{
    lumat_part part[2] = {{.slice = {0, 1, 1}}, {.slice = {0, 1, 1}}};
    size_t length = strlen(text);
    int across = w->rows == 1 && !strchr(text, ',');
    int ok = lumat_slice_parse(text, length, across ? 1 : 2,
                               across ? w->cols : w->rows, w->cols, part, error,
                               size);
    if (across) {
        part[1] = part[0];
        part[0].is_index = 0;
    }
    for (int axis = 0; ok && axis < 2; axis++)
        if (part[axis].is_index)
            place[axis] = part[axis].slice.first;
    return ok;
}
