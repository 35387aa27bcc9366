/* Brings the shown elements of a matrix from its device, and asks the device
 * about the others. */
#include <string.h>
#include "format.h"
#include "matrix.h"

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
    for (int64_t i = count - 1; i >= 0 && dtype == GPU_F32; i--) {
        memcpy(&single, bytes + i * (int64_t)sizeof single, sizeof single);
        data[i] = single;
    }
    for (int64_t i = count - 1; i >= 0 && dtype == GPU_BOOL; i--)
        data[i] = bytes[i];
}

void lumat_fetch_corner(lua_State *L, const gpu_matrix *m, lumat_corner *c)
{
    int64_t nrows = c->head_rows + c->tail_rows;
    int64_t ncols = c->head_cols + c->tail_cols;
    int whole = nrows == m->rows && ncols == m->cols;
    size_t bytes = sizeof(double) * (size_t)(nrows * ncols);
    c->values = lua_newuserdatauv(L, bytes, 0);
    if (whole) {
        lumat_try(L, gpu_download(m, c->values));
    } else {
        gpu_matrix *part = lumat_new_matrix(L);
        int64_t *rows = push_indices(L, m->rows, c->head_rows, c->tail_rows);
        int64_t *cols = push_indices(L, m->cols, c->head_cols, c->tail_cols);
        lumat_try(L, gpu_gather(m, rows, nrows, cols, ncols, part));
        lumat_try(L, gpu_download(part, c->values));
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
