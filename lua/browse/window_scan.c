/* Looking at all elements of a matrix for the viewer: the next one that passes
 * a test, the extremes, the range. Reductions over pieces find them on the
 * device; between pieces the viewer looks at the keyboard. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include "parse.h"
#include "op_list.h"
#include "value.h"
#include "window_parts.h"

/* Elements in the first piece; seconds that are too few and too many. */
enum { FIRST_PIECE = 1 << 18 };
static const double SHORT = 0.02, LONG = 0.08;

/* --- tests ---------------------------------------------------------------- */

static const struct test {
    const char *sign;
    gpu_op op;
} tests[] = {{">=", GPU_OP_ge}, {"<=", GPU_OP_le}, {"==", GPU_OP_eq},
             {"~=", GPU_OP_ne}, {"!=", GPU_OP_ne}, {">", GPU_OP_gt},
             {"<", GPU_OP_lt},  {"=", GPU_OP_eq},  {"", GPU_OP_eq}};

static const struct word {
    const char *name;
    double value;
} words[] = {{"inf", INFINITY},
             {"+inf", INFINITY},
             {"-inf", -INFINITY},
             {"true", 1},
             {"false", 0}};

static int parse_limit(const char *text, double *out)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        *out = words[i].value;
        if (strcasecmp(text, words[i].name) == 0)
            return 1;
    }
    return length > 0 && lumat_parse_f64(text, length, out) == length;
}

int lumat_scan_parse(const char *text, lumat_scan *s)
{
    const struct test *t = tests;
    if (strcasecmp(text, "nan") == 0 || strcasecmp(text, "inf") == 0) {
        s->test = tolower(text[0]) == 'n' ? GPU_OP_isnan : GPU_OP_isinf;
        return 1;
    }
    while (strncmp(text, t->sign, strlen(t->sign)) != 0)
        t++;
    text += strlen(t->sign);
    s->test = t->op;
    return parse_limit(text + strspn(text, " "), &s->limit);
}

/* --- questions to the device ---------------------------------------------- */

static double reduce(lua_State *L, const gpu_matrix *m, gpu_program *p,
                     gpu_reduction kind)
{
    double result = 0;
    p->reduction = (uint8_t)kind;
    lumat_try(L, gpu_reduce_all("view", p, &m, &result));
    return result;
}

/* A reduction of `op(x, limit)` over the elements. */
static double ask(lua_State *L, const gpu_matrix *m, int op, double limit,
                  gpu_reduction kind)
{
    gpu_program p;
    gpu_program_start(&p, 1);
    int constant = gpu_program_constant(&p, limit);
    gpu_program_add(&p, (gpu_op)op, 0, constant, 0);
    return reduce(L, m, &p, kind);
}

/* The extreme of the elements for which `unless` does not hold. */
static double extreme(lua_State *L, const gpu_matrix *m, gpu_op unless,
                      int smallest)
{
    gpu_program p;
    gpu_program_start(&p, 1);
    int other = gpu_program_constant(&p, smallest ? INFINITY : -INFINITY);
    int left_out = gpu_program_add(&p, unless, 0, 0, 0);
    if (unless == GPU_OP_isfinite)
        gpu_program_add(&p, GPU_OP_where, left_out, 0, other);
    else
        gpu_program_add(&p, GPU_OP_where, left_out, other, 0);
    return reduce(L, m, &p, smallest ? GPU_REDUCE_min : GPU_REDUCE_max);
}

/* The first element of the piece that passes, in row-major order, or -1. */
static int64_t find_in(lua_State *L, const gpu_matrix *m, int op, double limit)
{
    if (ask(L, m, op, limit, GPU_REDUCE_any) == 0)
        return -1;
    return (int64_t)ask(L, m, op, limit, GPU_REDUCE_argmax);
}

/* --- pieces --------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What comes next: some whole rows, or a part of one. */
static lumat_area next_area(const gpu_matrix *m, const lumat_scan *s)
{
    int64_t most = least(s->piece, s->left), cols = m->cols;
    lumat_area a = {s->at / cols, s->at % cols, 1, cols};
    if (a.col == 0 && most >= cols)
        a.rows = least(m->rows - a.row, most / cols);
    else
        a.cols = least(cols - a.col, most);
    return a;
}

/* Pushes the part of m as a view. */
static gpu_matrix *push_part(lua_State *L, const gpu_matrix *m,
                             const lumat_area *a)
{
    gpu_slice rows = {a->row, 1, a->rows}, cols = {a->col, 1, a->cols};
    gpu_matrix *view = lumat_new_matrix(L);
    lumat_try(L, gpu_view_block(m, rows, cols, view));
    return view;
}

/* Pushes m, or m with its last element first. */
static gpu_matrix *push_direction(lua_State *L, const gpu_matrix *m,
                                  int backwards)
{
    gpu_slice rows = {backwards ? m->rows - 1 : 0, backwards ? -1 : 1, m->rows};
    gpu_slice cols = {backwards ? m->cols - 1 : 0, backwards ? -1 : 1, m->cols};
    gpu_matrix *view = lumat_new_matrix(L);
    lumat_try(L, gpu_view_block(m, rows, cols, view));
    return view;
}

/* Moves on by so many elements; behind the last one comes the first. */
static void advance(lumat_scan *s, int64_t count, int64_t total)
{
    s->left -= count;
    s->at += count;
    s->share = 1 - (double)s->left / (double)total;
    if (s->at == total && s->left > 0) {
        s->at = 0;
        s->wrapped = 1;
    }
}

/* Adds a piece to the range. */
static void add_range(lua_State *L, const gpu_matrix *m, lumat_scan *s)
{
    double low = extreme(L, m, GPU_OP_isfinite, 1);
    double high = extreme(L, m, GPU_OP_isfinite, 0);
    if (low <= high) {
        s->low = s->found ? fmin(s->low, low) : low;
        s->high = s->found ? fmax(s->high, high) : high;
        s->found = 1;
    }
}

/* The place of the piece's extreme when it goes beyond the one known so far,
 * or -1. */
static int64_t beat(lua_State *L, const gpu_matrix *m, lumat_scan *s)
{
    int smallest = s->kind == LUMAT_SMALLEST;
    double x = extreme(L, m, GPU_OP_isnan, smallest);
    if (s->found && (smallest ? x >= s->low : x <= s->high))
        return -1;
    int64_t place = find_in(L, m, GPU_OP_eq, x);
    if (place >= 0) {
        s->low = s->high = x;
        s->found = 1;
    }
    return place;
}

/* What the scan asks of one piece: a place in it, or -1. */
static int64_t examine(lua_State *L, const gpu_matrix *m, lumat_scan *s)
{
    if (s->kind == LUMAT_FIND)
        return find_in(L, m, s->test, s->limit);
    if (s->kind != LUMAT_RANGE)
        return beat(L, m, s);
    add_range(L, m, s);
    return -1;
}

/* Examines a piece of m. Returns the place found or -1. */
static int64_t scan_piece(lua_State *L, const gpu_matrix *m, lumat_scan *s)
{
    int64_t total = gpu_size(m), place;
    const gpu_matrix *turned = push_direction(L, m, s->backwards);
    lumat_area a = next_area(turned, s);
    double start = gpu_now();
    place = examine(L, push_part(L, turned, &a), s);
    lua_pop(L, 2);
    double seconds = gpu_now() - start;
    s->piece = seconds < SHORT  ? s->piece * 2
               : seconds > LONG ? s->piece / 2 + 1
                                : s->piece;
    if (place >= 0) {
        place = s->at + place / a.cols * m->cols + place % a.cols;
        place = s->backwards ? total - 1 - place : place;
    }
    if (place < 0 || s->kind != LUMAT_FIND)
        advance(s, a.rows * a.cols, total);
    return place;
}

/* --- dense ---------------------------------------------------------------- */

/* Begins behind an element of so many, in row-major order, or at the first. */
static void begin_scan(lumat_scan *s, int64_t behind, int64_t total)
{
    s->piece = FIRST_PIECE;
    s->left = total;
    s->at = s->kind != LUMAT_FIND ? 0
            : s->backwards        ? total - behind
                                  : behind + 1;
    if (s->at == total) {
        s->at = 0;
        s->wrapped = 1;
    }
}

static int step_dense(lua_State *L, const gpu_matrix *m, lumat_scan *s)
{
    if (s->piece == 0)
        begin_scan(s, s->row * m->cols + s->col, gpu_size(m));
    int64_t place = scan_piece(L, m, s);
    if (place >= 0) {
        s->row = place / m->cols;
        s->col = place % m->cols;
    }
    s->found |= place >= 0;
    return s->left > 0 && !(s->kind == LUMAT_FIND && s->found);
}

/* --- sparse --------------------------------------------------------------- */
/* At the entries as at a vector; and at the zeros between them where these are
 * what is looked for. */

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
    advance(s, count, total);
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
        begin_scan(s, s->row * w->cols + s->col, w->rows * w->cols);
        s->left = s->walks ? s->left : 0;
        return;
    }
    lumat_try(
        L, gpu_sparse_rank(w->sparse, s->row, s->col + !s->backwards, &rank));
    begin_scan(s, s->backwards ? rank : rank - 1, count);
}

static int step_sparse(lua_State *L, lumat_window *w, lumat_scan *s)
{
    int64_t place;
    if (s->piece == 0)
        begin_sparse(L, w, s);
    if (s->walks)
        return walk(L, w, s);
    if (s->left == 0)
        return finish_sparse(w, s);
    place = scan_piece(L, &w->sparse->values, s);
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

int lumat_scan_step(lua_State *L, lumat_window *w, lumat_scan *s)
{
    gpu_pause_trace(1);
    int more = w->dense ? step_dense(L, w->dense, s) : step_sparse(L, w, s);
    gpu_pause_trace(0);
    return more;
}
