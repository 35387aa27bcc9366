/* What sessions are saved with: matrices and texts as parts of an archive,
 * views described against their owner, the prompt's variables, and the records
 * that hold values. For lua/std/session_*.lua, as
 * package.loaded["lumat.parts"]. */
#include <math.h>
#include <string.h>
#include "complex_value.h"
#include "files_parts.h"
#include "lauxlib.h"
#include "scope.h"
#include "parse.h"
#include "value.h"

/* --- the records of a saved session --------------------------------------- */
/* Words between blanks, one record a line. There may be millions, so none
 * leaves anything behind but its value. session_save.lua writes these words. */

/* Where reading is in a record; `values` is the stack index of the matrices
 * and tables by number. */
typedef struct record {
    lua_State *L;
    const char *p, *end;
    int values;
} record;

typedef struct word {
    const char *start;
    size_t length;
} word;

/* Takes a word and the blank, the newline or the end behind it. */
static int take_word(record *r, word *w, char behind)
{
    w->start = r->p;
    while (r->p < r->end && *r->p != ' ' && *r->p != '\n')
        r->p++;
    w->length = (size_t)(r->p - w->start);
    if (w->length == 0 || (r->p == r->end && behind != '\n') ||
        (r->p < r->end && *r->p != behind))
        return 0;
    r->p += r->p < r->end;
    return 1;
}

/* --- words ---------------------------------------------------------------- */

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "\032" is a blank: three digits of a byte. */
static void push_unescaped(lua_State *L, const char *p, size_t length)
{
    luaL_Buffer b;
    const char *end = p + length, *stroke;
    luaL_buffinit(L, &b);
    while ((stroke = memchr(p, '\\', (size_t)(end - p))) != NULL) {
        luaL_addlstring(&b, p, (size_t)(stroke - p));
        p = stroke + 1;
        if (end - p >= 3 && is_digit(p[0]) && is_digit(p[1]) &&
            is_digit(p[2])) {
            int byte = (p[0] - '0') * 100 + (p[1] - '0') * 10 + p[2] - '0';
            luaL_addchar(&b, (char)(byte % 256));
            p += 3;
        } else {
            luaL_addchar(&b, '\\');
        }
    }
    luaL_addlstring(&b, p, (size_t)(end - p));
    luaL_pushresult(&b);
}

static int push_number(lua_State *L, const char *p, size_t length)
{
    char text[64];
    if (length >= sizeof text)
        return 0;
    memcpy(text, p, length);
    text[length] = '\0';
    return lua_stringtonumber(L, text) == length + 1;
}

static int push_integer(lua_State *L, const char *p, size_t length)
{
    int is_whole = 0;
    if (!push_number(L, p, length))
        return 0;
    lua_Integer i = lua_tointegerx(L, -1, &is_whole);
    lua_pop(L, 1);
    if (is_whole)
        lua_pushinteger(L, i);
    return is_whole;
}

static int push_double(lua_State *L, const char *p, size_t length)
{
    static const struct {
        const char *name;
        double value;
    } special[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        if (strlen(special[i].name) == length &&
            memcmp(special[i].name, p, length) == 0) {
            lua_pushnumber(L, (lua_Number)special[i].value);
            return 1;
        }
    }
    return push_number(L, p, length);
}

static int push_numbered(const record *r, const char *p, size_t length)
{
    if (!push_integer(r->L, p, length))
        return 0;
    lua_rawget(r->L, r->values);
    if (!lua_isnil(r->L, -1))
        return 1;
    lua_pop(r->L, 1);
    return 0;
}

static int is_word(const word *w, const char *text)
{
    return w->length == strlen(text) && memcmp(w->start, text, w->length) == 0;
}

/* "re,im", each as a double is. */
static int push_pair(lua_State *L, const char *p, size_t length)
{
    const char *comma = memchr(p, ',', length);
    if (comma == NULL || !push_double(L, p, (size_t)(comma - p)))
        return 0;
    size_t rest = length - (size_t)(comma - p) - 1;
    if (!push_double(L, comma + 1, rest)) {
        lua_pop(L, 1);
        return 0;
    }
    gpu_complex z = {lua_tonumber(L, -2), lua_tonumber(L, -1)};
    lua_pop(L, 2);
    lumat_push_complex(L, z);
    return 1;
}

/* Pushes the value a word stands for; 0, and nothing pushed, if for none. */
static int push_value(const record *r, const word *w)
{
    const char *rest = w->start + 1;
    size_t length = w->length - 1;
    if (is_word(w, "true") || is_word(w, "false")) {
        lua_pushboolean(r->L, *w->start == 't');
        return 1;
    }
    switch (*w->start) {
    case 's':
        push_unescaped(r->L, rest, length);
        return 1;
    case 'i':
        return push_integer(r->L, rest, length);
    case 'd':
        return push_double(r->L, rest, length);
    case 'c':
        return push_pair(r->L, rest, length);
    case 'v':
        return push_numbered(r, rest, length);
    default:
        return 0;
    }
}

/* --- records -------------------------------------------------------------- */

/* The record at place arg 2 of the text, behind its first word; values are
 * arg 3. */
static int begin(lua_State *L, record *r)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    lua_Integer at = luaL_checkinteger(L, 2);
    word kind;
    luaL_checktype(L, 3, LUA_TTABLE);
    luaL_argcheck(L, at >= 1 && (size_t)at <= length, 2, "is outside");
    *r = (record){L, text + at - 1, text + length, 3};
    return take_word(r, &kind, ' ') && kind.length == 1;
}

/* fill(text, place, values): "e table key value". The place of what follows,
 * or nothing when it is no such record. */
static int fill(lua_State *L)
{
    record r;
    word table, key, value;
    if (!begin(L, &r) || !take_word(&r, &table, ' ') ||
        !take_word(&r, &key, ' ') || !take_word(&r, &value, '\n') ||
        !push_numbered(&r, table.start, table.length) || !lua_istable(L, -1) ||
        !push_value(&r, &key))
        return 0;
    if (lua_type(L, -1) == LUA_TNUMBER && isnan(lua_tonumber(L, -1)))
        return 0;
    if (!push_value(&r, &value))
        return 0;
    lua_rawset(L, -3);
    lua_pushinteger(L, r.p - lua_tostring(L, 1) + 1);
    return 1;
}

/* name(text, place, values): "g name value". The place of what follows, the
 * name and the value; or nothing. */
static int name(lua_State *L)
{
    record r;
    word named, value;
    if (!begin(L, &r) || !take_word(&r, &named, ' ') ||
        !take_word(&r, &value, '\n'))
        return 0;
    lua_pushinteger(L, r.p - lua_tostring(L, 1) + 1);
    if (!push_value(&r, &named) || lua_type(L, -1) != LUA_TSTRING ||
        !push_value(&r, &value))
        return 0;
    return 3;
}

static const luaL_Reg record_functions[] = {
    {"fill", fill}, {"name", name}, {NULL, NULL}};

/* Adds to the module on top what reads the records of a saved session. */
static void add_session_records(lua_State *L)
{
    luaL_setfuncs(L, record_functions, 0);
}

/* --- archives ------------------------------------------------------------- */

enum { PIECE_BYTES = 1 << 22, ENTRIES = 1 << 16, MESSAGE = 256 };

static lumat_archive *check_archive(lua_State *L)
{
    return luaL_checkudata(L, 1, "lumat.archive");
}

/* --- opening and closing ------------------------------------------------- */

static int create(lua_State *L)
{
    lumat_archive_create(L, "save_session", luaL_checkstring(L, 1));
    return 1;
}

static int open(lua_State *L)
{
    lumat_archive_open(L, "load_session", luaL_checkstring(L, 1));
    return 1;
}

static int commit(lua_State *L)
{
    lumat_archive_commit(L, check_archive(L));
    return 0;
}

/* --- texts --------------------------------------------------------------- */

static int write_text(lua_State *L)
{
    size_t length;
    lumat_archive *a = check_archive(L);
    const char *text = luaL_checklstring(L, 3, &length);
    lumat_archive_begin(L, a, luaL_checkstring(L, 2));
    lumat_archive_write(L, a, text, length);
    lumat_archive_end(L, a);
    return 0;
}

static int read_text(lua_State *L)
{
    luaL_Buffer b;
    lumat_archive *a = check_archive(L);
    uint64_t length = lumat_archive_find_text(L, a, luaL_checkstring(L, 2));
    lumat_archive_read(L, a, luaL_buffinitsize(L, &b, length), length);
    luaL_pushresultsize(&b, length);
    lumat_archive_finish(L, a);
    return 1;
}

/* --- matrices ------------------------------------------------------------ */

/* Blocks of whole rows, or parts of one row, of at most PIECE_BYTES, in
 * row-major order. */
typedef struct piece {
    gpu_slice rows, cols;
    size_t bytes;
} piece;

static int next_piece(const gpu_matrix *m, piece *p)
{
    size_t size = gpu_dtype_size(m->dtype);
    int64_t most = PIECE_BYTES / (int64_t)size;
    int64_t row = p->rows.first, col = p->cols.first + p->cols.count;
    if (col >= m->cols || p->cols.count == 0)
        row += p->rows.count, col = 0;
    if (row >= m->rows || m->cols == 0)
        return 0;
    int64_t width = m->cols - col < most ? m->cols - col : most;
    int64_t height = width == m->cols ? most / width : 1;
    height = m->rows - row < height ? m->rows - row : height;
    p->rows = (gpu_slice){row, 1, height};
    p->cols = (gpu_slice){col, 1, width};
    p->bytes = size * (size_t)(width * height);
    return 1;
}

/* Room for any of its pieces. Most matrices are small, and many. */
static void *push_room(lua_State *L, const gpu_matrix *m)
{
    size_t all = gpu_bytes(m);
    return lua_newuserdatauv(L, all < PIECE_BYTES ? all : PIECE_BYTES, 0);
}

/* matrix(archive, part, A) */
static int write_matrix(lua_State *L)
{
    char header[LUMAT_NPY_HEADER];
    piece p = {.bytes = 0};
    lumat_archive *a = check_archive(L);
    gpu_matrix *m = lumat_check_matrix(L, 3);
    void *host = push_room(L, m);
    gpu_matrix *block = lumat_new_matrix(L);
    lumat_archive_begin(L, a, luaL_checkstring(L, 2));
    lumat_archive_write(
        L, a, header,
        lumat_npy_header(header, m->dtype, m->ndim, m->rows, m->cols));
    while (next_piece(m, &p)) {
        lumat_try(L, gpu_view_block(m, p.rows, p.cols, block));
        const void *bytes;
        lumat_try(L, gpu_look_at_bytes(block, host, &bytes));
        gpu_release(block); /* a view: m holds the bytes */
        lumat_archive_write(L, a, bytes, p.bytes);
    }
    lumat_archive_end(L, a);
    return 0;
}

/* The header at the start of a part of so many bytes: one that write_matrix
 * wrote, so the elements can be taken as they are. */
static void read_header(lua_State *L, lumat_archive *a, uint64_t length,
                        lumat_npy *n, gpu_dtype *dtype)
{
    char header[LUMAT_NPY_HEADER + 1] = "", message[MESSAGE] = "";
    enum { PREFIX = 10 };
    const unsigned char *bytes = (const unsigned char *)header;
    if (length < PREFIX)
        lumat_archive_fail(L, a, "has a matrix that is cut off");
    lumat_archive_read(L, a, header, PREFIX);
    size_t rest = bytes[8] | (size_t)bytes[9] << 8;
    if (rest > LUMAT_NPY_HEADER - PREFIX || length < PREFIX + rest)
        lumat_archive_fail(L, a, "has a matrix with a malformed header");
    lumat_archive_read(L, a, header + PREFIX, rest);
    if (!lumat_npy_open(n, header, length, message, sizeof message))
        lumat_archive_fail(L, a, "has a matrix that %s", message);
    *dtype = lumat_npy_dtype(n);
    if (n->fortran || n->ndim == 0 || n->ndim > 2 ||
        (n->kind != 'b' && !lumat_npy_is_plain(n, *dtype)))
        lumat_archive_fail(L, a, "has a matrix that no session holds");
}

/* Truth values are 0 or 1, whatever the file says. */
static void make_truths(unsigned char *truths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        truths[i] = truths[i] != 0;
}

/* matrix(archive, part, device) */
static int read_matrix(lua_State *L)
{
    lumat_npy n;
    gpu_dtype dtype;
    gpu_device *device;
    piece p = {.bytes = 0};
    lumat_archive *a = check_archive(L);
    lumat_try(L, gpu_open(luaL_checkstring(L, 3), &device));
    read_header(L, a, lumat_archive_find(L, a, luaL_checkstring(L, 2)), &n,
                &dtype);
    gpu_matrix *block = lumat_new_matrix(L), *m = lumat_new_matrix(L);
    lumat_try(L, gpu_create(m, device, dtype, n.ndim, n.rows, n.cols));
    lumat_account(L, m);
    void *host = push_room(L, m);
    lua_insert(L, -2); /* below the matrix, which is the result */
    while (next_piece(m, &p)) {
        lumat_archive_read(L, a, host, p.bytes);
        if (dtype == GPU_BOOL)
            make_truths(host, p.bytes);
        lumat_try(L, gpu_view_block(m, p.rows, p.cols, block));
        lumat_try(L, gpu_upload(block, host));
        gpu_release(block);
    }
    lumat_archive_finish(L, a);
    return 1;
}

/* --- sparse matrices: entries one after the other ------------------------ */

typedef struct entries {
    int64_t rows[ENTRIES], cols[ENTRIES];
    double values[2 * ENTRIES]; /* pairs, of complex ones */
} entries;

/* sparse(archive, part, S): each run of entries as rows, columns, values, which
 * of complex ones are pairs. */
static int write_sparse(lua_State *L)
{
    lumat_archive *a = check_archive(L);
    gpu_sparse *s = lumat_test_sparse(L, 3);
    entries *e = lua_newuserdatauv(L, sizeof *e, 0);
    size_t value = gpu_is_complex(&s->values) ? 16 : 8;
    lumat_archive_begin(L, a, luaL_checkstring(L, 2));
    for (int64_t i = 0; i < s->count; i += ENTRIES) {
        int64_t left = s->count - i, count = left < ENTRIES ? left : ENTRIES;
        lumat_try(L,
                  gpu_sparse_entries(s, i, count, e->rows, e->cols, e->values));
        lumat_archive_write(L, a, e->rows, (size_t)count * 8);
        lumat_archive_write(L, a, e->cols, (size_t)count * 8);
        lumat_archive_write(L, a, e->values, (size_t)count * value);
    }
    lumat_archive_end(L, a);
    return 0;
}

/* parts: numbers a value. */
static void read_entries(lua_State *L, lumat_archive *a, int64_t count,
                         int64_t *rows, int64_t *cols, int parts,
                         double *values)
{
    for (int64_t i = 0; i < count; i += ENTRIES) {
        int64_t left = count - i;
        size_t bytes = (size_t)(left < ENTRIES ? left : ENTRIES) * 8;
        lumat_archive_read(L, a, rows + i, bytes);
        lumat_archive_read(L, a, cols + i, bytes);
        lumat_archive_read(L, a, values + parts * i, (size_t)parts * bytes);
    }
}

/* A few entries can claim many rows, of which each takes its bytes: unless the
 * file is trusted, hardly more than for entries is made room for. */
static void check_rows(lua_State *L, const lumat_archive *a, lua_Integer rows,
                       uint64_t length)
{
    enum { ANYWAY = 1 << 26, EACH = 8 };
    if (rows > 0 && (uint64_t)rows > (ANYWAY + 4 * length) / EACH &&
        !lua_toboolean(L, 7))
        lumat_archive_fail(L, a,
                           "has a sparse matrix of %I rows and few "
                           "entries; load_session(path, names) loads "
                           "what you name, however large",
                           (LUAI_UACINT)rows);
}

/* sparse(archive, part, device, dtype, rows, cols, trusted) */
static int read_sparse(lua_State *L)
{
    gpu_device *device;
    gpu_dtype dtype;
    lumat_archive *a = check_archive(L);
    lumat_try(L, gpu_open(luaL_checkstring(L, 3), &device));
    luaL_argcheck(L, gpu_dtype_find(luaL_checkstring(L, 4), &dtype), 4,
                  "no such type");
    int parts = gpu_dtype_is_complex(dtype) ? 2 : 1;
    uint64_t each = 16 + 8 * (uint64_t)parts;
    uint64_t length = lumat_archive_find(L, a, luaL_checkstring(L, 2));
    if (length % each != 0 || length > PTRDIFF_MAX / 2)
        lumat_archive_fail(L, a, "has a sparse matrix that is cut off");
    check_rows(L, a, luaL_checkinteger(L, 5), length);
    int64_t count = (int64_t)(length / each);
    int64_t *rows = lua_newuserdatauv(L, (size_t)length + 1, 0);
    int64_t *cols = rows + count;
    double *values = (void *)(cols + count);
    read_entries(L, a, count, rows, cols, parts, values);
    lumat_archive_finish(L, a);
    gpu_triplets t = {.rows = luaL_checkinteger(L, 5),
                      .cols = luaL_checkinteger(L, 6),
                      .count = count,
                      .row = rows,
                      .col = cols,
                      .value = values,
                      .is_complex = parts == 2};
    gpu_sparse *s = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_create(s, device, dtype, &t));
    lumat_account_sparse(L, s);
    return 1;
}

/* --- views --------------------------------------------------------------- */

/* The lowest and highest offset of an element; m has elements. */
static void find_range(const gpu_matrix *m, int64_t *low, int64_t *high)
{
    int64_t down = (m->rows - 1) * m->row_stride;
    int64_t across = (m->cols - 1) * m->col_stride;
    *low = m->offset + (down < 0 ? down : 0) + (across < 0 ? across : 0);
    *high = m->offset + (down > 0 ? down : 0) + (across > 0 ? across : 0);
}

/* is_view(A, B): ndim, rows, cols, row and column stride, and the offset in
 * A's elements, when all of B lies in A's, which have no gaps; else nil. */
static int view_of(lua_State *L)
{
    int64_t low, high;
    gpu_matrix *a = lumat_check_matrix(L, 1), *b = lumat_check_matrix(L, 2);
    if (!gpu_shares_storage(a, b) || !gpu_is_contiguous(a) ||
        a->dtype != b->dtype || a->is_conjugated != b->is_conjugated ||
        gpu_size(b) == 0)
        return 0;
    find_range(b, &low, &high);
    if (low < a->offset || high >= a->offset + gpu_size(a))
        return 0;
    int64_t numbers[] = {b->ndim,       b->rows,       b->cols,
                         b->row_stride, b->col_stride, b->offset - a->offset};
    for (int i = 0; i < 6; i++)
        lua_pushinteger(L, numbers[i]);
    return 6;
}

/* storage_of(A): what stands for the storage of A, and of its views alike. */
static int storage_of(lua_State *L)
{
    lua_pushlightuserdata(L, lumat_check_matrix(L, 1)->storage);
    return 1;
}

/* The elements along what has a stride: all are, but for what is broadcast. */
static int64_t own_elements(const gpu_matrix *m)
{
    int64_t rows = m->row_stride != 0 ? m->rows : 1;
    int64_t cols = m->col_stride != 0 ? m->cols : 1, count;
    return __builtin_mul_overflow(rows, cols, &count) ? INT64_MAX : count;
}

/* Are the sizes and strides so small that nothing overflows? Only by strides
 * of zero is a view larger than what it is a view of. */
static int is_modest(const gpu_matrix *m, int64_t size)
{
    int64_t bytes;
    if (m->rows <= 0 || m->cols <= 0 || own_elements(m) > size ||
        __builtin_mul_overflow(m->rows, m->cols, &bytes) ||
        __builtin_mul_overflow(bytes, (int64_t)gpu_dtype_size(m->dtype),
                               &bytes))
        return 0;
    int64_t most = (int64_t)1 << 31;
    return (m->ndim == 1 || m->ndim == 2) && (m->ndim == 2 || m->cols == 1) &&
           m->rows <= most * 64 && m->cols <= most * 64 && m->offset >= 0 &&
           m->offset < size && m->row_stride > -size && m->row_stride < size &&
           m->col_stride > -size && m->col_stride < size;
}

/* view(A, ndim, …): the numbers view_of gives; nil when they leave A. */
static int view(lua_State *L)
{
    int64_t low, high;
    gpu_matrix *a = lumat_check_matrix(L, 1), b = *a;
    b.ndim = (int)luaL_checkinteger(L, 2);
    b.rows = luaL_checkinteger(L, 3);
    b.cols = luaL_checkinteger(L, 4);
    b.row_stride = luaL_checkinteger(L, 5);
    b.col_stride = luaL_checkinteger(L, 6);
    b.offset = luaL_checkinteger(L, 7);
    if (!gpu_is_contiguous(a) || !is_modest(&b, gpu_size(a)))
        return 0;
    /* both products fit: 2^37 times a stride below the size of a matrix that
     * is there */
    if (__builtin_mul_overflow(b.rows, b.row_stride, &low) ||
        __builtin_mul_overflow(b.cols, b.col_stride, &low))
        return 0;
    find_range(&b, &low, &high);
    if (low < 0 || high >= gpu_size(a))
        return 0;
    b.offset += a->offset;
    gpu_matrix *out = lumat_new_matrix(L);
    gpu_retain(a);
    *out = b;
    return 1;
}

/* --- what is there ------------------------------------------------------- */

/* "matrix", "sparse", or nil; whether it still holds anything, and all of it;
 * whether it is in the host's memory; whether it was lost with its device. */
static int kind(lua_State *L)
{
    gpu_matrix *m = lumat_test_matrix(L, 1);
    gpu_sparse *s = lumat_test_sparse(L, 1);
    if (m == NULL && s == NULL)
        return 0;
    if (s != NULL)
        m = &s->values;
    lua_pushstring(L, s != NULL ? "sparse" : "matrix");
    int is_there = m->storage != NULL && !gpu_is_lost(m);
    lua_pushboolean(L, is_there);
    lua_pushboolean(L, is_there && !gpu_is_incomplete(m));
    lua_pushboolean(L, is_there && gpu_device_is_cpu(gpu_matrix_device(m)));
    lua_pushboolean(L, gpu_is_lost(m));
    return 5;
}

/* The name under which the device can be opened, or the default one's. */
static int usable_device(lua_State *L)
{
    gpu_device *device;
    if (gpu_open(luaL_checkstring(L, 1), &device) != GPU_OK)
        lumat_try(L, gpu_default(&device));
    lua_pushstring(L, gpu_device_name(device));
    return 1;
}

/* locals(): the prompt's, by name; what is set there is set */
static int locals(lua_State *L)
{
    lumat_refresh_locals(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session");
    return 1;
}

/* variables(): the user's, a list of {"l" or "g", name, value} */
static int variables(lua_State *L)
{
    int count = 0;
    lua_settop(L, 0);
    lumat_refresh_locals(L);
    lua_newtable(L);
    lumat_variables v = lumat_begin_variables(L, LUMAT_WITH_HIDDEN);
    while (lumat_next_variable(&v)) {
        int name = lua_gettop(L) - 1;
        lua_createtable(L, 3, 0);
        lua_pushstring(L, v.is_local ? "l" : "g");
        lua_rawseti(L, -2, 1);
        lua_pushvalue(L, name);
        lua_rawseti(L, -2, 2);
        lua_pushvalue(L, name + 1);
        lua_rawseti(L, -2, 3);
        lua_rawseti(L, 1, ++count);
    }
    return 1;
}

static const luaL_Reg functions[] = {{"create", create},
                                     {"open", open},
                                     {"commit", commit},
                                     {"write_text", write_text},
                                     {"read_text", read_text},
                                     {"write_matrix", write_matrix},
                                     {"read_matrix", read_matrix},
                                     {"write_sparse", write_sparse},
                                     {"read_sparse", read_sparse},
                                     {"view_of", view_of},
                                     {"storage_of", storage_of},
                                     {"view", view},
                                     {"kind", kind},
                                     {"usable_device", usable_device},
                                     {"locals", locals},
                                     {"variables", variables},
                                     {NULL, NULL}};

void lumat_open_parts(lua_State *L)
{
    lumat_open_archive(L);
    luaL_newlib(L, functions);
    add_session_records(L);
    lumat_set_required(L, "parts");
}
