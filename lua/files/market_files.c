/* Matrix Market's files: sparse matrices from entries with places, dense ones
 * from all elements, and both back. */
#include "arguments.h"
#include "cancellation.h"
#include "complex_numbers.h"
#include "data_formats.h"
#include "formats.h"

#include <math.h>
#include <string.h>

enum { ENTRIES = 1 << 15 }; /* read at a time */

/* Most bytes of what is made of a file of so many: what claims much and has
 * little is refused, unless its size is said. */
static size_t most_bytes(const lumat_mtx *m)
{
    enum { ANYWAY = 1 << 26, TIMES = 16 };
    return ANYWAY + TIMES * m->length;
}

/* --- reading -------------------------------------------------------------- */

typedef struct reader {
    lumat_mtx m;
    lumat_mtx_place place;
    lumat_mtx_entry *entries;
    const lumat_input *in;
    gpu_dtype asked, dtype;
} reader;

static int refuse(lua_State *L, const reader *r, const char *message)
{
    return lumat_raise(L, "load: %s:%s", r->in->path, message);
}

/* Reads the next entries; how many, 0 behind the last one. */
static int64_t read_entries(lua_State *L, reader *r)
{
    char message[LUMAT_MESSAGE] = "";
    int64_t count = lumat_mtx_read(&r->m, &r->place, ENTRIES, r->entries,
                                   message, sizeof message);
    lumat_poll(L, 0);
    if (count < 0)
        refuse(L, r, message);
    return count;
}

/* Numbers of integers are exact: f32 as far as it holds them, else f64; those
 * that f64 would round have to be asked for. */
static void look_at_integers(lua_State *L, reader *r, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double x = r->entries[i].re;
        if (!(fabs(x) < 0x1p53))
            lumat_raise(L,
                        "load: %s:%I: %f and the lines around it are beyond "
                        "2^53, where f64 rounds integers; give "
                        "{dtype=\"f64\"} to accept that",
                        r->in->path, (LUAI_UACINT)r->place.line, x);
        if (r->dtype == GPU_F32 && (double)(float)x != x)
            r->dtype = GPU_F64;
    }
}

/* The element that mirrors e in a symmetric matrix. */
static lumat_mtx_entry mirrored(const lumat_mtx *m, const lumat_mtx_entry *e)
{
    int turns = m->symmetry == LUMAT_MTX_SKEW;
    return (lumat_mtx_entry){.row = e->col,
                             .col = e->row,
                             .re = turns ? -e->re : e->re,
                             .im = m->symmetry == LUMAT_MTX_SYMMETRIC ? e->im
                                                                      : -e->im};
}

static int is_mirrored(const lumat_mtx *m, const lumat_mtx_entry *e)
{
    return m->symmetry != LUMAT_MTX_GENERAL && e->row != e->col;
}

static int push_sparse(lua_State *L, reader *r)
{
    const lumat_mtx *m = &r->m;
    size_t times = m->symmetry == LUMAT_MTX_GENERAL ? 1 : 2;
    size_t most = times * (size_t)m->count + 1;
    int64_t *rows = lua_newuserdatauv(L, most * sizeof *rows, 0);
    int64_t *cols = lua_newuserdatauv(L, most * sizeof *cols, 0);
    size_t parts = m->is_complex ? 2 : 1, n = 0;
    double *values = lua_newuserdatauv(L, parts * most * sizeof *values, 0);
    int64_t done = 0, count;
    while ((count = read_entries(L, r)) > 0) {
        if (m->is_integer && r->asked == GPU_ALL_DTYPES)
            look_at_integers(L, r, count);
        for (int64_t i = 0; i < count; i++) {
            lumat_mtx_entry e = r->entries[i];
            for (int turn = 0; turn <= is_mirrored(m, &r->entries[i]); turn++) {
                rows[done] = e.row;
                cols[done] = e.col;
                done++;
                values[n++] = e.re;
                if (m->is_complex)
                    values[n++] = e.im;
                e = mirrored(m, &e);
            }
        }
    }
    gpu_triplets t = {m->rows, m->cols, done,         rows,
                      cols,    values,  m->is_complex};
    gpu_device *device = lumat_option_device(L, 2, NULL);
    gpu_sparse *s = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_create(s, device, r->dtype, &t));
    lumat_account_sparse(L, s);
    return 1;
}

static void add_element(const lumat_mtx *m, double *host,
                        const lumat_mtx_entry *e)
{
    int64_t at = e->col * m->rows + e->row;
    if (m->is_complex) {
        host[2 * at] += e->re;
        host[2 * at + 1] += e->im;
    } else {
        host[at] += e->re;
    }
}

/* Elements in host memory, column after column, as a matrix. */
static int push_columns(lua_State *L, const reader *r, const double *host)
{
    const lumat_mtx *m = &r->m;
    lumat_npy n = {.ndim = 2, .rows = m->cols, .cols = m->rows, .pages = 1};
    lumat_npy_set_type(&n, m->is_complex ? "=c16" : "=f8");
    if (m->is_vector) {
        n.ndim = 1;
        n.rows = m->rows;
        n.cols = 1;
    }
    lumat_source s = {.left = (uint64_t)m->rows * (uint64_t)m->cols *
                              (uint64_t)n.bytes,
                      .in = r->in,
                      .memory = (const char *)host};
    lumat_push_elements(L, &s, &n, r->dtype);
    if (!m->is_vector)
        lumat_turn_result(L, lumat_test_matrix(L, -1));
    return 1;
}

static int push_dense(lua_State *L, reader *r)
{
    const lumat_mtx *m = &r->m;
    size_t each = sizeof(double) * (m->is_complex ? 2 : 1), bytes;
    int64_t count;
    if (__builtin_mul_overflow((size_t)m->rows, (size_t)m->cols, &bytes) ||
        __builtin_mul_overflow(bytes, each, &bytes) || bytes > most_bytes(m))
        return lumat_raise(L,
                           "load: '%s' has %I entries of a matrix of "
                           "%Ix%I, of which only a dense one can be made, and "
                           "that would be too large",
                           r->in->path, (LUAI_UACINT)m->count,
                           (LUAI_UACINT)m->rows, (LUAI_UACINT)m->cols);
    double *host = lua_newuserdatauv(L, bytes + 1, 0);
    memset(host, 0, bytes);
    while ((count = read_entries(L, r)) > 0) {
        if (m->is_integer && r->asked == GPU_ALL_DTYPES)
            look_at_integers(L, r, count);
        for (int64_t i = 0; i < count; i++) {
            add_element(m, host, &r->entries[i]);
            if (is_mirrored(m, &r->entries[i])) {
                lumat_mtx_entry e = mirrored(m, &r->entries[i]);
                add_element(m, host, &e);
            }
        }
    }
    return push_columns(L, r, host);
}

/* A few entries can claim many rows, of which each takes its bytes. */
static void check_rows(lua_State *L, const reader *r)
{
    enum { EACH = 4 };
    if ((uint64_t)r->m.rows > most_bytes(&r->m) / EACH)
        lumat_raise(L,
                    "load: '%s' claims a sparse matrix of %I rows, too many "
                    "for its %I entries",
                    r->in->path, (LUAI_UACINT)r->m.rows,
                    (LUAI_UACINT)r->m.count);
}

int lumat_load_market(lua_State *L, lumat_input *in, const lumat_format *f)
{
    char message[LUMAT_MESSAGE] = "";
    reader r = {.in = in, .asked = lumat_option_dtype(L, 2, GPU_ALL_DTYPES)};
    (void)f;
    r.m.text = lumat_push_input_text(L, in, &r.m.length);
    r.m.goes_on = lumat_input_goes_on;
    if (!lumat_mtx_open(&r.m, message, sizeof message))
        return refuse(L, &r, message);
    lumat_begin_input(in, r.m.length);
    r.place.at = r.m.data;
    r.place.line = r.m.line;
    r.dtype = r.asked != GPU_ALL_DTYPES ? r.asked : lumat_default_dtype(L);
    if (r.m.is_complex && r.asked == GPU_ALL_DTYPES)
        r.dtype = gpu_dtype_made_complex(r.dtype);
    r.entries = lua_newuserdatauv(L, ENTRIES * sizeof *r.entries, 0);
    if (r.m.is_array || r.m.is_vector || r.dtype == GPU_BOOL)
        return push_dense(L, &r);
    if (r.m.is_complex && !gpu_dtype_is_complex(r.dtype))
        return lumat_raise(
            L, "load: '%s' has complex numbers, which do not fit %s", in->path,
            gpu_dtype_name(r.dtype));
    check_rows(L, &r);
    return push_sparse(L, &r);
}

/* --- writing -------------------------------------------------------------- */

typedef struct writer {
    lumat_target *target;
    gpu_dtype part; /* f32, f64, bool */
    int is_complex, digits;
} writer;

static size_t print_number(const writer *w, double x, char *out)
{
    if (w->part == GPU_BOOL) {
        *out = x != 0 ? '1' : '0';
        return 1;
    }
    if (isnan(x)) {
        memcpy(out, "nan", 3);
        return 3;
    }
    return w->part == GPU_F32 ? lumat_print_f32((float)x, w->digits, out)
                              : lumat_print_f64(x, w->digits, out);
}

static double number_at(const writer *w, const void *bytes, int64_t i)
{
    const float *singles = bytes;
    const double *doubles = bytes;
    const unsigned char *truths = bytes;
    return w->part == GPU_BOOL  ? truths[i]
           : w->part == GPU_F32 ? (double)singles[i]
                                : doubles[i];
}

static void put_elements(lua_State *L, void *data, const void *bytes,
                         int64_t first, int64_t rows, int64_t cols)
{
    const writer *w = data;
    char text[2 * LUMAT_NUMBER_ROOM + 2];
    (void)first;
    if (bytes == NULL)
        return;
    for (int64_t i = 0; i < rows * cols; i++) {
        size_t n = print_number(
            w, number_at(w, bytes, w->is_complex ? 2 * i : i), text);
        if (w->is_complex) {
            text[n++] = ' ';
            n += print_number(w, number_at(w, bytes, 2 * i + 1), text + n);
        }
        text[n++] = '\n';
        lumat_put_bytes(L, w->target, text, n);
    }
}

static void put_head(lua_State *L, const writer *w, const char *format,
                     int64_t rows, int64_t cols, int64_t count)
{
    char text[160];
    const char *field = w->is_complex         ? "complex"
                        : w->part == GPU_BOOL ? "integer"
                                              : "real";
    int n = snprintf(text, sizeof text,
                     "%%%%MatrixMarket matrix %s %s general\n%lld %lld", format,
                     field, (long long)rows, (long long)cols);
    if (count >= 0)
        n += snprintf(text + n, sizeof text - (size_t)n, " %lld",
                      (long long)count);
    text[n++] = '\n';
    lumat_put_bytes(L, w->target, text, (size_t)n);
}

static void put_sparse(lua_State *L, const writer *w, const gpu_sparse *s)
{
    char text[4 * LUMAT_NUMBER_ROOM];
    int64_t *rows = lua_newuserdatauv(L, ENTRIES * sizeof *rows, 0);
    int64_t *cols = lua_newuserdatauv(L, ENTRIES * sizeof *cols, 0);
    double *values = lua_newuserdatauv(L, 2 * ENTRIES * sizeof *values, 0);
    int each = w->is_complex ? 2 : 1;
    put_head(L, w, "coordinate", s->rows, s->cols, s->count);
    for (int64_t i = 0; i < s->count && !gpu_is_dry(); i += ENTRIES) {
        int64_t left = s->count - i, count = left < ENTRIES ? left : ENTRIES;
        lumat_try(L, gpu_sparse_entries(s, i, count, rows, cols, values));
        for (int64_t k = 0; k < count; k++) {
            size_t n = (size_t)snprintf(text, sizeof text, "%lld %lld ",
                                        (long long)rows[k] + 1,
                                        (long long)cols[k] + 1);
            n += print_number(w, values[each * k], text + n);
            if (w->is_complex) {
                text[n++] = ' ';
                n += print_number(w, values[2 * k + 1], text + n);
            }
            text[n++] = '\n';
            lumat_put_bytes(L, w->target, text, n);
        }
        lumat_poll(L, 0);
    }
}

void lumat_save_market(lua_State *L, const char *path, const lumat_format *f)
{
    const gpu_sparse *s = lumat_test_sparse(L, 1);
    const gpu_matrix *m = s != NULL ? &s->values : lumat_check_matrix(L, 1);
    writer w = {.part = gpu_dtype_of_parts(m->dtype),
                .is_complex = gpu_is_complex(m),
                .digits = lumat_option_digits(L, 3)};
    (void)f;
    w.target = lumat_push_target(L, path, gpu_bytes(m));
    if (s != NULL) {
        put_sparse(L, &w, s);
    } else {
        gpu_matrix *turned = lumat_new_matrix(L);
        gpu_view_transposed(m, turned);
        put_head(L, &w, "array", m->rows, m->cols, -1);
        lumat_each_block(L, m->ndim == 1 ? m : turned, put_elements, &w);
    }
    lumat_finish_target(L, w.target);
}
