/* Looking at all elements of a sparse matrix: at its entries as at a vector;
 * and at the zeros between them where these are what is looked for. */
#include "matrix.h"
#include "window_parts.h"

#include <math.h>

enum { STRIP = 4096 };

/* On the host; a limit is what the matrix can hold of it. */
static int passes(const lumat_window *w, const lumat_scan *s, double x)
{
    double limit = w->dtype == GPU_F32 ? (double)(float)s->limit : s->limit;
    return gpu_op_evaluate((gpu_op)s->test, x, limit, 0) != 0;
}

static int has_gaps(const gpu_sparse *s)
{
    return s->count < s->rows * s->cols;
}

/* Zeros are nearly everywhere and mostly without an entry: a strip of a row
 * at a time comes to the host. */
static int walk(lua_State *L, lumat_window *w, lumat_scan *s)
{
    double values[STRIP];
    uint8_t stored[STRIP];
    int64_t total = w->rows * w->cols;
    int64_t at = s->backwards ? total - 1 - s->at : s->at, count;
    gpu_slice row = {at / w->cols, 1, 1}, cols = {at % w->cols, 1, 1};
    count = s->backwards ? cols.first + 1 : w->cols - cols.first;
    count = count < STRIP ? count : STRIP;
    count = count < s->left ? count : s->left;
    cols.count = count;
    if (s->backwards)
        cols.first -= count - 1;
    lumat_try(L, gpu_sparse_block(w->sparse, row, cols, values, stored));
    for (int64_t k = 0; k < count; k++) {
        int64_t j = s->backwards ? count - 1 - k : k;
        if (!passes(w, s, values[j]))
            continue;
        s->row = row.first;
        s->col = cols.first + j;
        s->found = 1;
        return 0;
    }
    lumat_scan_advance(s, count, total);
    return s->left > 0;
}

/* From now on the scan walks, in search of a zero. */
static int look_for_zero(lumat_scan *s, int64_t total)
{
    *s = (lumat_scan){.kind = s->kind,
                      .test = GPU_OP_eq,
                      .walks = 1,
                      .piece = 1,
                      .left = total};
    return 1;
}

/* The entries have been seen; there may be zeros beside them. */
static int finish_sparse(lumat_window *w, lumat_scan *s)
{
    if (!has_gaps(w->sparse) || s->kind == LUMAT_FIND)
        return 0;
    if (s->kind == LUMAT_RANGE) {
        s->low = s->found ? fmin(s->low, 0) : 0;
        s->high = s->found ? fmax(s->high, 0) : 0;
        s->found = 1;
        return 0;
    }
    if (s->found && (s->kind == LUMAT_LARGEST ? s->high >= 0 : s->low <= 0))
        return 0;
    return look_for_zero(s, w->rows * w->cols);
}

/* Begins with the entry behind the place, or before it. */
static void begin_sparse(lua_State *L, lumat_window *w, lumat_scan *s)
{
    int64_t rank, count = w->sparse->count;
    s->walks = s->kind == LUMAT_FIND && passes(w, s, 0);
    if (s->walks || count == 0) {
        lumat_scan_begin(s, s->row * w->cols + s->col, w->rows * w->cols);
        s->left = s->walks ? s->left : 0;
        return;
    }
    lumat_try(
        L, gpu_sparse_rank(w->sparse, s->row, s->col + !s->backwards, &rank));
    lumat_scan_begin(s, s->backwards ? rank : rank - 1, count);
}

int lumat_scan_sparse(lua_State *L, lumat_window *w, lumat_scan *s)
{
    int64_t place;
    if (s->piece == 0)
        begin_sparse(L, w, s);
    if (s->walks)
        return walk(L, w, s);
    if (s->left == 0)
        return finish_sparse(w, s);
    place = lumat_scan_piece(L, &w->sparse->values, s);
    if (place >= 0) {
        double value;
        lumat_try(L, gpu_sparse_entries(w->sparse, place, 1, &s->row, &s->col,
                                        &value));
        s->found = 1;
    }
    if (s->kind == LUMAT_FIND && s->found)
        return 0;
    return s->left > 0 || finish_sparse(w, s);
}
