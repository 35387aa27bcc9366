/* Tables as text: how save writes matrices and frames. */
#include <math.h>
#include <string.h>
#include "arguments.h"
#include "cancellation.h"
#include "complex_value.h"
#include "table_files.h"

enum { BUFFER = 1 << 16, BLOCK_BYTES = 1 << 20, MOST_DATE = 128 };

/* What is being saved, and to where. */
typedef struct saving {
    lumat_target *target;
    char delimiter, decimal;
    int digits;
    int64_t cols;
    const char *missing; /* what stands for NaN */
    size_t missing_length;
    int header; /* stack index of the list of names; 0: none is written */
    int is_behind_first; /* the first line is written */
    size_t used;
    char *buffer; /* of BUFFER bytes */
} saving;

static void flush(lua_State *L, saving *s)
{
    lumat_put_bytes(L, s->target, s->buffer, s->used);
    s->used = 0;
}

static void put(lua_State *L, saving *s, const void *data, size_t n)
{
    if (n > BUFFER - s->used) {
        flush(L, s);
        if (n > BUFFER) {
            lumat_put_bytes(L, s->target, data, n);
            return;
        }
    }
    memcpy(s->buffer + s->used, data, n);
    s->used += n;
}

static void end_cell(lua_State *L, saving *s, int64_t col)
{
    int ends_line = col + 1 == s->cols;
    put(L, s, ends_line ? "\n" : &s->delimiter, 1);
    s->is_behind_first |= ends_line;
}

/* --- cells ---------------------------------------------------------------- */

static void put_text(lua_State *L, saving *s, const char *text, size_t length)
{
    int is_quoted =
        !s->is_behind_first &&
        lumat_csv_misleads(text, length, s->delimiter, s->cols == 1);
    if (!is_quoted && !lumat_csv_needs_quotes(text, length, s->delimiter)) {
        put(L, s, text, length);
        return;
    }
    put(L, s, "\"", 1);
    for (size_t i = 0; i < length; i++)
        put(L, s, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1);
    put(L, s, "\"", 1);
}

/* An empty line would be no row. */
static void put_missing(lua_State *L, saving *s)
{
    if (s->missing_length == 0 && (s->cols == 1 || s->delimiter == ' '))
        put(L, s, "\"\"", 2);
    else
        put_text(L, s, s->missing, s->missing_length);
}

static size_t print_number(const saving *s, gpu_dtype type, const void *host,
                           int64_t i, char out[LUMAT_NUMBER_ROOM])
{
    const float *singles = host;
    const double *doubles = host;
    const unsigned char *truths = host;
    size_t n = 1;
    if (type == GPU_BOOL)
        out[0] = truths[i] ? '1' : '0';
    else if (type == GPU_F32)
        n = lumat_print_f32(singles[i], s->digits, out);
    else
        n = lumat_print_f64(doubles[i], s->digits, out);
    char *point = s->decimal != '.' ? memchr(out, '.', n) : NULL;
    if (point != NULL)
        *point = s->decimal;
    return n;
}

static int is_missing(gpu_dtype type, const void *host, int64_t i)
{
    const float *singles = host;
    const double *doubles = host;
    return type == GPU_F32   ? isnan(singles[i])
           : type == GPU_F64 ? isnan(doubles[i])
                             : 0;
}

static void put_number(lua_State *L, saving *s, gpu_dtype type,
                       const void *host, int64_t i)
{
    char text[LUMAT_NUMBER_ROOM];
    if (is_missing(type, host, i)) {
        put_missing(L, s);
        return;
    }
    size_t n = print_number(s, type, host, i, text);
    put(L, s, text, n);
}

/* "1+2i" */
static void put_pair(lua_State *L, saving *s, gpu_dtype type, const void *host,
                     int64_t i)
{
    char text[LUMAT_NUMBER_ROOM];
    size_t n = 3;
    if (is_missing(type, host, 2 * i))
        memcpy(text, "nan", n);
    else
        n = print_number(s, type, host, 2 * i, text);
    put(L, s, text, n);
    n = 3;
    if (is_missing(type, host, 2 * i + 1))
        memcpy(text, "nan", n);
    else
        n = print_number(s, type, host, 2 * i + 1, text);
    if (*text != '-')
        put(L, s, "+", 1);
    put(L, s, text, n);
    put(L, s, "i", 1);
}

/* --- options -------------------------------------------------------------- */

/* Checks the option header: leaves the list of names, if one is written. */
static void read_header(lua_State *L, saving *s, int names)
{
    int type = lua_istable(L, 3) ? lua_getfield(L, 3, "header") : LUA_TNIL;
    s->header = names;
    if (type == LUA_TBOOLEAN && !lua_toboolean(L, -1))
        s->header = 0;
    else if (type == LUA_TBOOLEAN && names == 0)
        lumat_raise(L, "save: header: a matrix has no names: give a list of "
                       "them");
    if (type != LUA_TTABLE)
        return;
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    if (count != s->cols)
        lumat_raise(L, "save: header has %I names for %I columns",
                    (LUAI_UACINT)count, (LUAI_UACINT)s->cols);
    for (lua_Integer j = 1; j <= count; j++) {
        if (lua_rawgeti(L, -1, j) != LUA_TSTRING)
            lumat_raise(L, "save: header: name %I is a %s, not a string",
                        (LUAI_UACINT)j, lumat_kind_of(L, -1));
        lua_pop(L, 1);
    }
    s->header = lua_gettop(L);
}

static void read_options(lua_State *L, saving *s, const lumat_format *f)
{
    s->buffer = lua_newuserdatauv(L, BUFFER, 0);
    s->decimal = lumat_csv_option_char(L, 3, "decimal", lumat_csv_is_decimal,
                                       "\".\" or \",\"", '.');
    char usual = f->writes_delimiter;
    if (usual == ',' && s->decimal == ',')
        usual = ';'; /* as where decimals have commas */
    s->delimiter = lumat_csv_option_char(
        L, 3, "delimiter", lumat_csv_is_delimiter, LUMAT_CSV_DELIMITER, usual);
    if (s->delimiter == s->decimal)
        lumat_raise(L,
                    "save: \"%c\" cannot be the delimiter and the decimal mark",
                    s->decimal);
    if (!lua_istable(L, 3))
        return;
    if (lua_getfield(L, 3, "na") == LUA_TSTRING)
        s->missing = lua_tolstring(L, -1, &s->missing_length);
    s->digits = lumat_option_digits(L, 3);
}

static void put_names(lua_State *L, saving *s)
{
    for (int64_t j = 0; s->header != 0 && j < s->cols; j++) {
        size_t length;
        lua_rawgeti(L, s->header, (lua_Integer)j + 1);
        const char *name = lua_tolstring(L, -1, &length);
        if (length == 0 && s->cols == 1)
            put_missing(L, s);
        else
            put_text(L, s, name, length);
        end_cell(L, s, j);
        lua_pop(L, 1);
    }
}

/* --- matrices ------------------------------------------------------------- */

typedef struct matrix_saving {
    saving *s;
    const gpu_matrix *m;
} matrix_saving;

/* A block that starts in column `first`. */
static void put_block(lua_State *L, void *data, const void *host, int64_t first,
                      int64_t rows, int64_t cols)
{
    const matrix_saving *w = data;
    gpu_dtype part = gpu_dtype_of_parts(w->m->dtype);
    if (host == NULL)
        return;
    for (int64_t i = 0; i < rows * cols; i++) {
        if (gpu_is_complex(w->m))
            put_pair(L, w->s, part, host, i);
        else
            put_number(L, w->s, part, host, i);
        end_cell(L, w->s, first + i % cols);
    }
}

static void save_matrix(lua_State *L, const char *path, const lumat_format *f)
{
    saving s = {.missing = "nan", .missing_length = 3};
    matrix_saving w = {&s, lumat_check_matrix(L, 1)};
    s.cols = w.m->cols;
    read_options(L, &s, f);
    if (gpu_size(w.m) == 0)
        lumat_raise(L, "save: an empty matrix has no text; .npy keeps it");
    read_header(L, &s, 0);
    s.target = lumat_push_target(L, path, gpu_bytes(w.m));
    put_names(L, &s);
    lumat_each_block(L, w.m, put_block, &w);
    flush(L, &s);
    lumat_finish_target(L, s.target);
}

/* --- frames --------------------------------------------------------------- */

typedef struct saved_column {
    const gpu_matrix *m;
    void *host;        /* room for a block of its elements */
    const void *bytes; /* the block's */
    int labels;        /* stack index of the texts; 0: numbers */
    lua_Integer label_count;
    const char *format; /* of dates, or NULL */
} saved_column;

static void put_date(lua_State *L, saving *s, double seconds,
                     const char *format)
{
    char text[MOST_DATE];
    size_t n = lumat_csv_print_date(seconds, format, text, sizeof text);
    if (isnan(seconds))
        put_missing(L, s);
    else if (n == 0)
        lumat_raise(L,
                    "save: a date is %f seconds from 1970, which is not "
                    "within the years 0 to 9999",
                    seconds);
    else
        put_text(L, s, text, n);
}

static void put_label(lua_State *L, saving *s, const saved_column *c,
                      double code)
{
    size_t length;
    if (isnan(code)) {
        put_missing(L, s);
        return;
    }
    if (!(code >= 1 && code <= (double)c->label_count) ||
        lua_rawgeti(L, c->labels, (lua_Integer)code) != LUA_TSTRING)
        lumat_raise(L, "save: a text's code is %f, of %I labels", code,
                    (LUAI_UACINT)c->label_count);
    const char *text = lua_tolstring(L, -1, &length);
    if (length == 0)
        put(L, s, "\"\"", 2);
    else
        put_text(L, s, text, length);
    lua_pop(L, 1);
}

/* Describes the column of the list's element at index, which stays on the
 * stack. */
static saved_column take_column(lua_State *L, int index)
{
    saved_column c = {0};
    lua_getfield(L, index, "kind");
    const char *kind = lua_tostring(L, -1);
    int is_text = kind != NULL && strcmp(kind, "text") == 0;
    lua_getfield(L, index, is_text ? "codes" : "values");
    c.m = lumat_test_matrix(L, -1);
    if (c.m == NULL || c.m->storage == NULL || gpu_is_complex(c.m))
        lumat_raise(L, "save: a column of the frame is no vector of numbers");
    if (is_text) {
        lua_getfield(L, index, "labels");
        c.labels = lua_gettop(L);
        c.label_count = (lua_Integer)lua_rawlen(L, -1);
    }
    if (kind != NULL && strcmp(kind, "date") == 0) {
        lua_getfield(L, index, "format");
        c.format = lua_tostring(L, -1);
    }
    return c;
}

static void load_rows(lua_State *L, saved_column *columns, int64_t cols,
                      int64_t first, int64_t count)
{
    gpu_matrix *block = lumat_new_matrix(L);
    for (int64_t j = 0; j < cols; j++) {
        gpu_slice rows = {first, 1, count}, all = {0, 1, 1};
        saved_column *c = &columns[j];
        lumat_try(L, gpu_view_block(c->m, rows, all, block));
        lumat_try(L, gpu_look_at_bytes(block, c->host, &c->bytes));
        gpu_release(block);
    }
    lua_pop(L, 1);
}

static void put_rows(lua_State *L, saving *s, const saved_column *columns,
                     int64_t count)
{
    for (int64_t i = 0; i < count && !gpu_is_dry(); i++) {
        for (int64_t j = 0; j < s->cols; j++) {
            const saved_column *c = &columns[j];
            const double *doubles = c->bytes;
            if (c->labels != 0)
                put_label(L, s, c, doubles[i]);
            else if (c->format != NULL)
                put_date(L, s, doubles[i], c->format);
            else
                put_number(L, s, c->m->dtype, c->bytes, i);
            end_cell(L, s, j);
        }
    }
}

static void save_frame(lua_State *L, const char *path, const lumat_format *f)
{
    saving s = {.missing = ""};
    lumat_push_required(L, "frames");
    lua_getfield(L, -1, "columns");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    int list = lua_gettop(L);
    s.cols = (int64_t)lua_rawlen(L, list);
    if (s.cols == 0)
        lumat_raise(L, "save: the frame has no columns");
    read_options(L, &s, f);
    saved_column *columns =
        lua_newuserdatauv(L, (size_t)s.cols * sizeof *columns, 0);
    luaL_checkstack(L, 8 * (int)(s.cols < 100000 ? s.cols : 100000),
                    "save: too many columns");
    lua_createtable(L, (int)s.cols, 0);
    int names = lua_gettop(L);
    int64_t most = BLOCK_BYTES / (int64_t)sizeof(double) / s.cols + 1;
    size_t bytes = 0;
    for (int64_t j = 0; j < s.cols; j++) {
        lua_rawgeti(L, list, (lua_Integer)j + 1);
        int index = lua_gettop(L);
        lua_getfield(L, index, "name");
        lua_rawseti(L, names, (lua_Integer)j + 1);
        columns[j] = take_column(L, index);
        columns[j].host =
            lua_newuserdatauv(L, (size_t)most * sizeof(double), 0);
        bytes += gpu_bytes(columns[j].m);
    }
    read_header(L, &s, names);
    s.target = lumat_push_target(L, path, bytes);
    put_names(L, &s);
    int64_t rows = columns[0].m->rows;
    for (int64_t i = 0; i < rows; i += most) {
        int64_t count = rows - i < most ? rows - i : most;
        load_rows(L, columns, s.cols, i, count);
        put_rows(L, &s, columns, count);
        if (!lumat_input_goes_on(bytes / (size_t)rows * (size_t)count))
            lumat_poll(L, 0);
    }
    flush(L, &s);
    lumat_finish_target(L, s.target);
}

void lumat_save_csv(lua_State *L, const char *path, const lumat_format *f)
{
    if (lua_istable(L, 1))
        save_frame(L, path, f);
    else
        save_matrix(L, path, f);
}
