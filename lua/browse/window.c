/* A matrix with a part of it at hand, for the viewer: fetching parts, writing
 * their cells. */
#include "matrix.h"
#include "settings.h"
#include "slice.h"
#include "sparse_matrix.h"
#include "window_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Takes the matrix on top, and pops it. */
static void look_at(lua_State *L, lumat_window *w)
{
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
    *w = (lumat_window){.digits = lumat_print_limits()->digits};
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

static void fetch(lua_State *L, lumat_window *w, const lumat_area *a)
{
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
    w->columns = lumat_push_columns(L, w, &area);
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
