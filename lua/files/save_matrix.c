/* save: a matrix to a file, a block at a time, so that a large one on a device
 * needs little host memory. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include "cancellation.h"
#include "parse.h"
#include "fence.h"
#include "load_save.h"
#include "matrix.h"
#include "replace_file.h"
#include "visible.h"

enum { BLOCK_BYTES = 1 << 20 };

static const char *const METATABLE = "lumat.atomic";

/* What is being saved, and to where. */
typedef struct open_file {
    lumat_atomic file; /* first: what is closed */
    int began;         /* the progress */
} open_file;

typedef struct saving {
    const gpu_matrix *m;
    const char *path;
    lumat_atomic *file;
    lumat_file_kind kind;
    char delimiter;
    int digits;
} saving;

static int collect_atomic(lua_State *L)
{
    open_file *f = luaL_checkudata(L, 1, METATABLE);
    lumat_end_file(f->began);
    f->began = 0;
    lumat_atomic_abort(&f->file);
    return 0;
}

static open_file *push_open_file(lua_State *L)
{
    open_file *f = lua_newuserdatauv(L, sizeof *f, 0);
    f->file.fd = -1;
    f->began = 0;
    luaL_setmetatable(L, METATABLE);
    return f;
}

lumat_atomic *lumat_push_atomic(lua_State *L)
{
    return &push_open_file(L)->file;
}

void lumat_open_atomic(lua_State *L)
{
    luaL_newmetatable(L, METATABLE);
    lua_pushcfunction(L, collect_atomic);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__gc");
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
}

/* Raises unless error is 0. */
static void check(lua_State *L, const saving *s, int error)
{
    if (error == 0)
        return;
    const char *what = error == EISDIR   ? "it is a directory"
                       : error == EINVAL ? "it is not a regular file"
                                         : lumat_error_text(error);
    lumat_raise(L, "save: cannot write '%s': %s", s->path, what);
}

static void put(lua_State *L, const saving *s, const void *data, size_t n)
{
    check(L, s, lumat_atomic_write(s->file, data, n));
}

/* --- text ---------------------------------------------------------------- */

static size_t print_element(const saving *s, const void *host, int64_t i,
                            char out[LUMAT_NUMBER_ROOM])
{
    const float *singles = host;
    const double *doubles = host;
    const unsigned char *truths = host;
    if (s->m->dtype == GPU_BOOL) {
        out[0] = truths[i] ? '1' : '0';
        return 1;
    }
    double x = s->m->dtype == GPU_F32 ? singles[i] : doubles[i];
    if (isnan(x)) {
        memcpy(out, "nan", 3);
        return 3;
    }
    return s->m->dtype == GPU_F32 ? lumat_print_f32(singles[i], s->digits, out)
                                  : lumat_print_f64(x, s->digits, out);
}

/* Writes a block that starts in column `first`. */
static void put_text(lua_State *L, const saving *s, const void *host,
                     int64_t first, int64_t rows, int64_t cols)
{
    char text[LUMAT_NUMBER_ROOM + 1];
    for (int64_t i = 0; i < rows * cols; i++) {
        size_t n = print_element(s, host, i, text);
        int ends = first + i % cols + 1 == s->m->cols;
        text[n++] = ends ? '\n' : s->delimiter;
        put(L, s, text, n);
    }
}

static void put_name(lua_State *L, const saving *s, const char *name,
                     size_t length)
{
    if (!lumat_csv_needs_quotes(name, length, s->delimiter)) {
        put(L, s, name, length);
        return;
    }
    put(L, s, "\"", 1);
    for (size_t i = 0; i < length; i++)
        put(L, s, name[i] == '"' ? "\"\"" : name + i, name[i] == '"' ? 2 : 1);
    put(L, s, "\"", 1);
}

/* Checks the option header before anything is written. */
static int has_names(lua_State *L, const gpu_matrix *m)
{
    if (!lua_istable(L, 3) || lua_getfield(L, 3, "header") == LUA_TNIL)
        return 0;
    luaL_argcheck(L, lua_istable(L, -1), 3, "header: needs a table of names");
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    if (count != m->cols)
        lumat_raise(L, "save: header has %I names for %I columns",
                    (LUAI_UACINT)count, (LUAI_UACINT)m->cols);
    for (lua_Integer j = 1; j <= count; j++) {
        if (lua_rawgeti(L, -1, j) != LUA_TSTRING)
            lumat_raise(L, "save: header: name %I is a %s, not a string",
                        (LUAI_UACINT)j, lumat_kind_of(L, -1));
        lua_pop(L, 1);
    }
    return 1;
}

static void put_names(lua_State *L, const saving *s)
{
    lua_getfield(L, 3, "header");
    for (lua_Integer j = 1; j <= s->m->cols; j++) {
        size_t length;
        char after = j == s->m->cols ? '\n' : s->delimiter;
        lua_rawgeti(L, -1, j);
        const char *name = lua_tolstring(L, -1, &length);
        put_name(L, s, name, length);
        put(L, s, &after, 1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* --- blocks -------------------------------------------------------------- */

static void put_block(lua_State *L, const saving *s, void *host,
                      gpu_matrix *block, gpu_slice rows, gpu_slice cols)
{
    lumat_try(L, gpu_view_block(s->m, rows, cols, block));
    lumat_try(L, gpu_download(block, host));
    gpu_release(block);
    if (s->kind == LUMAT_FILE_NPY)
        put(L, s, host,
            gpu_dtype_size(s->m->dtype) * (size_t)(rows.count * cols.count));
    else
        put_text(L, s, host, cols.first, rows.count, cols.count);
    if (!lumat_file_goes_on(gpu_dtype_size(s->m->dtype) *
                            (size_t)(rows.count * cols.count)))
        lumat_poll(L, 0);
}

/* Elements in row-major order: several rows at a time, or parts of one. */
static void put_elements(lua_State *L, const saving *s)
{
    int64_t rows = s->m->rows, cols = s->m->cols;
    int64_t most = BLOCK_BYTES / (int64_t)gpu_dtype_size(s->m->dtype);
    if (rows == 0 || cols == 0)
        return;
    int64_t width = cols < most ? cols : most;
    int64_t height = most / width < rows ? most / width : rows;
    void *host = lua_newuserdatauv(
        L, gpu_dtype_size(s->m->dtype) * (size_t)(width * height), 0);
    gpu_matrix *block = lumat_new_matrix(L);
    for (int64_t i = 0; i < rows; i += height) {
        gpu_slice r = {i, 1, rows - i < height ? rows - i : height};
        for (int64_t j = 0; j < cols; j += width) {
            gpu_slice c = {j, 1, cols - j < width ? cols - j : width};
            put_block(L, s, host, block, r, c);
        }
    }
}

/* --- save ---------------------------------------------------------------- */

static void check_text_options(lua_State *L, saving *s)
{
    lumat_check_options(L, 3, "header delimiter digits");
    s->delimiter = lumat_option_delimiter(L, 3, s->delimiter);
    if (gpu_size(s->m) == 0)
        lumat_raise(L, "save: an empty matrix has no text; .npy keeps it");
    if (!lua_istable(L, 3) || lua_getfield(L, 3, "digits") == LUA_TNIL)
        return;
    int is_integer;
    lua_Integer digits = lua_tointegerx(L, -1, &is_integer);
    if (!is_integer || digits < 1 || digits > LUMAT_MOST_DIGITS)
        lumat_raise(L, "digits: needs a whole number from 1 to %d",
                    LUMAT_MOST_DIGITS);
    s->digits = (int)digits;
}

static void open_target(lua_State *L, saving *s)
{
    open_file *f = push_open_file(L);
    s->file = &f->file;
    lua_toclose(L, -1);
    check(L, s, lumat_atomic_open(s->file, s->path));
    f->began = lumat_begin_file("save", s->path, gpu_bytes(s->m));
}

/* Whatever raises, the unfinished file is a value to be closed, and goes. */
int lumat_file_save(lua_State *L)
{
    char header[LUMAT_NPY_HEADER];
    saving s = {.m = lumat_check_matrix(L, 1)};
    int named = 0;
    s.path = lumat_check_path(L, 2, "save", &s.kind, &s.delimiter);
    lua_settop(L, 3);
    if (s.kind == LUMAT_FILE_NPY) {
        if (!lua_isnil(L, 3))
            return lumat_raise(L, "save: a .npy file takes no options");
    } else {
        check_text_options(L, &s);
        named = has_names(L, s.m);
    }
    open_target(L, &s);
    if (s.kind == LUMAT_FILE_NPY)
        put(L, &s, header,
            lumat_npy_header(header, s.m->dtype, s.m->ndim, s.m->rows,
                             s.m->cols));
    else if (named)
        put_names(L, &s);
    put_elements(L, &s);
    check(L, &s, lumat_atomic_commit(s.file));
    return 0;
}
