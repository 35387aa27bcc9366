/* .npz files: archives of arrays in NumPy's format, a table of names here; and
 * the sparse matrices that SciPy keeps in them. */
#include "arguments.h"
#include "cancellation.h"
#include "complex_value.h"
#include "formats.h"

#include <math.h>
#include <string.h>

/* --- reading -------------------------------------------------------------- */

/* Pushes an array's name without its ending, or nothing and returns 0. */
static int push_name(lua_State *L, const char *part)
{
    enum { ENDING = 4 };
    size_t length = strlen(part);
    if (!lumat_has_ending(part, ".npy", ENDING))
        return 0;
    lua_pushlstring(L, part, length - ENDING);
    return 1;
}

static lumat_source find_part(lua_State *L, lumat_archive *a,
                              const lumat_input *in, const char *part)
{
    lumat_source s = {.in = in, .archive = a, .part = part};
    s.left = lumat_archive_find(L, a, part);
    return s;
}

/* A number, a truth value or a string in the place of an array without a
 * dimension. */
static void make_single(lua_State *L, const lumat_npy *n)
{
    const gpu_matrix *m = lumat_test_matrix(L, -1);
    gpu_complex z = {0, 0};
    if (m == NULL)
        return;
    if (gpu_is_complex(m)) {
        lumat_try(L, gpu_complex_get(m, 0, 0, &z));
        lumat_push_complex(L, z);
    } else {
        lumat_try(L, gpu_get(m, 0, 0, &z.re));
        if (n->kind == 'b')
            lua_pushboolean(L, z.re != 0);
        else if (n->kind != 'f' && fabs(z.re) <= 0x1p53)
            lua_pushinteger(L, (lua_Integer)z.re);
        else
            lua_pushnumber(L, z.re);
    }
    lua_replace(L, -2);
}

/* Pushes the part's value; 0 and a warning where it is of no kind that can be
 * read. */
static int push_part(lua_State *L, lumat_archive *a, const lumat_input *in,
                     const char *part, gpu_dtype dtype)
{
    char message[LUMAT_MESSAGE] = "";
    lumat_npy n;
    lumat_source s = find_part(L, a, in, part);
    if (!lumat_try_npy_header(L, &s, &n, message)) {
        if (!n.is_refused)
            lumat_refuse_source(L, &s, "%s", message);
        lumat_warn(L, "load", "left out '%s', which %s", part, message);
        return 0;
    }
    if (n.kind == 'c' && (dtype == GPU_F32 || dtype == GPU_F64))
        dtype = gpu_dtype_made_complex(dtype); /* it is meant for all parts */
    lumat_push_elements(L, &s, &n, dtype);
    lumat_archive_finish(L, a);
    if (n.ndim == 0)
        make_single(L, &n);
    return 1;
}

/* --- SciPy's sparse matrices ---------------------------------------------- */

/* Is there a part of that name in the list at index? */
static int has_part(lua_State *L, int names, const char *part)
{
    int found = 0;
    for (lua_Integer i = 1; !found && lua_rawgeti(L, names, i) != LUA_TNIL; i++)
        found = strcmp(lua_tostring(L, -1), part) == 0, lua_pop(L, 1);
    return found;
}

/* Pushes the numbers of a part in host memory, pairs where its type, which
 * dtype gets, is complex; dtype NULL: that is refused. */
static double *push_numbers(lua_State *L, lumat_archive *a,
                            const lumat_input *in, const char *part,
                            int64_t *count, gpu_dtype *dtype)
{
    char message[LUMAT_MESSAGE] = "";
    lumat_npy n;
    lumat_source s = find_part(L, a, in, part);
    if (!lumat_try_npy_header(L, &s, &n, message))
        lumat_refuse_source(L, &s, "%s", message);
    if (n.ndim > 1 || n.kind == 'S' || n.kind == 'U')
        lumat_refuse_source(L, &s, "is no vector of numbers");
    *count = n.rows;
    int is_complex = dtype != NULL && gpu_dtype_is_complex(lumat_npy_dtype(&n));
    if (dtype != NULL)
        *dtype = lumat_npy_dtype(&n);
    size_t parts = is_complex ? 2 : 1;
    double *numbers =
        lua_newuserdatauv(L, parts * (size_t)n.rows * sizeof *numbers + 1, 0);
    char *raw = lumat_push_room(L, n.rows, (size_t)n.bytes);
    for (int64_t i = 0; i < n.rows; i += LUMAT_PIECE) {
        int64_t left = n.rows - i;
        int64_t most = left < LUMAT_PIECE ? left : LUMAT_PIECE;
        lumat_take_bytes(L, &s, raw, (size_t)(most * n.bytes));
        if (!lumat_npy_read(&n, raw, i, most, is_complex ? GPU_C128 : GPU_F64,
                            numbers + (int64_t)parts * i, 0, message,
                            sizeof message))
            lumat_refuse_source(L, &s, "%s", message);
    }
    lua_pop(L, 1);
    lumat_archive_finish(L, a);
    return numbers;
}

/* Whole numbers from 0 to `most`, in place. */
static int64_t *check_places(lua_State *L, lumat_archive *a, const char *part,
                             double *numbers, int64_t count, int64_t most)
{
    int64_t *places = (int64_t *)(void *)numbers;
    for (int64_t i = 0; i < count; i++) {
        double x;
        memcpy(&x, &numbers[i], sizeof x);
        if (!(x >= 0 && x <= (double)most) || x != (double)(int64_t)x)
            lumat_archive_fail(L, a,
                               "has a part '%s' whose element %I is no "
                               "place from 0 to %I",
                               part, (LUAI_UACINT)(i + 1), (LUAI_UACINT)most);
        places[i] = (int64_t)x;
    }
    return places;
}

/* A few entries can claim many rows, of which each takes its bytes. */
static void check_rows(lua_State *L, lumat_archive *a, const lumat_input *in,
                       int64_t rows)
{
    enum { ANYWAY = 1 << 23, EACH = 4 };
    if (rows > ANYWAY && (uint64_t)rows / EACH > in->size)
        lumat_archive_fail(L, a,
                           "claims a sparse matrix of %I rows, too many "
                           "for its %I bytes",
                           (LUAI_UACINT)rows, (LUAI_UACINT)in->size);
}

/* The places along the axis that is compressed, from where each one starts. */
static int64_t *push_unpacked(lua_State *L, lumat_archive *a, double *numbers,
                              int64_t starts, int64_t lines, int64_t count)
{
    if (starts != lines + 1)
        lumat_archive_fail(L, a, "has %I starts of %I lines",
                           (LUAI_UACINT)starts, (LUAI_UACINT)lines);
    const int64_t *start =
        check_places(L, a, "indptr.npy", numbers, starts, count);
    int64_t *out = lua_newuserdatauv(L, (size_t)count * sizeof *out + 1, 0);
    for (int64_t i = 0; i < lines; i++) {
        if (start[i] > start[i + 1] || (i == 0 && start[0] != 0))
            lumat_archive_fail(L, a,
                               "has starts that fall, in 'indptr.npy' at %I",
                               (LUAI_UACINT)(i + 1));
        for (int64_t k = start[i]; k < start[i + 1]; k++)
            out[k] = i;
    }
    if (start[lines] != count)
        lumat_archive_fail(L, a, "has %I entries and starts of %I",
                           (LUAI_UACINT)count, (LUAI_UACINT)start[lines]);
    return out;
}

/* What SciPy's save_npz wrote: compressed rows or columns, or triplets. */
static void push_sparse(lua_State *L, lumat_archive *a, const lumat_input *in,
                        gpu_dtype dtype)
{
    gpu_triplets t = {0};
    int64_t count, sizes, starts;
    gpu_dtype type;
    push_part(L, a, in, "format.npy", GPU_ALL_DTYPES);
    const char *format = lua_tostring(L, -1);
    int is_rows = format != NULL && strcmp(format, "csr") == 0;
    int is_columns = format != NULL && strcmp(format, "csc") == 0;
    if (!is_rows && !is_columns &&
        (format == NULL || strcmp(format, "coo") != 0))
        lumat_archive_fail(L, a,
                           "holds a sparse matrix as '%s'; csr, csc and "
                           "coo are read: in SciPy S.tocsr() is one",
                           format != NULL ? format : "?");
    double *numbers = push_numbers(L, a, in, "shape.npy", &sizes, NULL);
    if (sizes != 2)
        lumat_archive_fail(L, a, "holds a sparse array of %I dimensions",
                           (LUAI_UACINT)sizes);
    const int64_t *shape =
        check_places(L, a, "shape.npy", numbers, sizes, INT32_MAX - 1);
    t.rows = shape[0];
    t.cols = shape[1];
    check_rows(L, a, in, t.rows);
    t.value = push_numbers(L, a, in, "data.npy", &t.count, &type);
    t.is_complex = gpu_dtype_is_complex(type);
    if (type == GPU_BOOL)
        type = GPU_F32;
    const char *across = is_rows || is_columns ? "indices.npy" : "col.npy";
    numbers = push_numbers(L, a, in, across, &count, NULL);
    int64_t most = (is_columns ? t.rows : t.cols) - 1;
    t.col = check_places(L, a, across, numbers, count, most);
    const char *down = is_rows || is_columns ? "indptr.npy" : "row.npy";
    numbers = push_numbers(L, a, in, down, &starts, NULL);
    if (count != t.count || (down[0] == 'r' && starts != t.count))
        lumat_archive_fail(L, a, "has %I values at %I places",
                           (LUAI_UACINT)t.count, (LUAI_UACINT)count);
    t.row = down[0] == 'r'
                ? check_places(L, a, down, numbers, starts, t.rows - 1)
                : push_unpacked(L, a, numbers, starts,
                                is_columns ? t.cols : t.rows, count);
    if (is_columns) {
        const int64_t *other = t.row;
        t.row = t.col;
        t.col = other;
    }
    gpu_device *device = lumat_option_device(L, 2, NULL);
    gpu_sparse *s = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_create(s, device,
                                   dtype == GPU_ALL_DTYPES ? type : dtype, &t));
    lumat_account_sparse(L, s);
}

int lumat_load_npz(lua_State *L, lumat_input *in, const lumat_format *f)
{
    gpu_dtype dtype = lumat_option_dtype(L, 2, GPU_ALL_DTYPES);
    lumat_archive *a = lumat_archive_open(L, "load", in->path);
    lua_toclose(L, -1);
    lumat_archive_names(L, a);
    int names = lua_gettop(L), arrays = 0;
    (void)f;
    if (has_part(L, names, "format.npy") && has_part(L, names, "shape.npy") &&
        has_part(L, names, "data.npy") && lumat_wants(L, "data")) {
        push_sparse(L, a, in, dtype);
        return 1;
    }
    lua_newtable(L);
    int values = lua_gettop(L);
    for (lua_Integer i = 1; lua_rawgeti(L, names, i) != LUA_TNIL; i++) {
        const char *part = lua_tostring(L, -1);
        if (push_name(L, part)) {
            arrays++;
            if (lumat_wants(L, lua_tostring(L, -1)) &&
                push_part(L, a, in, part, dtype))
                lua_rawset(L, values);
        }
        lua_settop(L, values);
    }
    lua_settop(L, values);
    if (arrays == 0)
        lumat_archive_fail(L, a, "holds no arrays");
    lumat_check_wanted(L, in, values);
    return 1;
}

/* --- writing -------------------------------------------------------------- */

static void begin_part(lua_State *L, lumat_archive *a, const char *name,
                       int packs)
{
    lua_pushfstring(L, "%s.npy", name);
    if (packs)
        lumat_archive_begin_packed(L, a, lua_tostring(L, -1));
    else
        lumat_archive_begin(L, a, lua_tostring(L, -1));
    lua_pop(L, 1);
}

static void write_raw(lua_State *L, lumat_archive *a, const char *type,
                      int ndim, int64_t size, const void *bytes, size_t length)
{
    char header[LUMAT_NPY_HEADER];
    lumat_archive_write(L, a, header,
                        lumat_npy_header_of(header, type, ndim, &size));
    lumat_archive_write(L, a, bytes, length);
}

/* A string as letters of 4 bytes, as NumPy keeps it. */
static void write_text(lua_State *L, lumat_archive *a, int index)
{
    size_t length, count = 0;
    char type[32];
    const char *text = lua_tolstring(L, index, &length);
    uint32_t *letters = lua_newuserdatauv(L, 4 * length + 4, 0);
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)text[i++];
        int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
        uint32_t letter = more ? c & (0x3Fu >> more) : c;
        for (; more > 0 && i < length; more--)
            letter = letter << 6 | ((unsigned char)text[i++] & 0x3F);
        letters[count++] = letter;
    }
    if (count == 0)
        letters[count++] = 0;
    snprintf(type, sizeof type, "U%zu", count);
    write_raw(L, a, type, 0, 1, letters, 4 * count);
    lua_pop(L, 1);
}

static void write_value(lua_State *L, lumat_archive *a, int index,
                        const char *name)
{
    lumat_npy_writer w = {.archive = a};
    const gpu_complex *z = lumat_test_complex(L, index);
    double x = lua_tonumber(L, index);
    int64_t whole = lua_tointeger(L, index);
    unsigned char truth = (unsigned char)lua_toboolean(L, index);
    const gpu_matrix *m = lumat_test_matrix(L, index);
    if (m != NULL && m->storage != NULL)
        lumat_write_npy(L, &w, m);
    else if (z != NULL)
        write_raw(L, a, "c16", 0, 1, z, sizeof *z);
    else if (lua_isinteger(L, index))
        write_raw(L, a, "i8", 0, 1, &whole, sizeof whole);
    else if (lua_type(L, index) == LUA_TNUMBER)
        write_raw(L, a, "f8", 0, 1, &x, sizeof x);
    else if (lua_isboolean(L, index))
        write_raw(L, a, "b1", 0, 1, &truth, sizeof truth);
    else if (lua_type(L, index) == LUA_TSTRING)
        write_text(L, a, index);
    else if (lua_istable(L, index))
        lumat_write_pages(L, &w, index);
    else
        lumat_raise(L, "save: '%s' is %s, and no array", name,
                    lumat_push_brief(L, index));
}

/* Before anything is written: can all of it be? */
static void check_values(lua_State *L)
{
    int count = 0;
    lumat_refuse_object(L, 1);
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1), count++) {
        int value = lua_gettop(L);
        size_t length;
        if (lua_type(L, -2) != LUA_TSTRING)
            lumat_raise(L,
                        "save: a value has %s for a name, not a string; a "
                        ".npz file takes names: save({a = A}, \"f.npz\")",
                        lumat_push_brief(L, -2));
        const char *name = lua_tolstring(L, -2, &length);
        if (strlen(name) != length || length == 0)
            lumat_raise(L, "save: a name is empty, or has a zero byte in it");
        if (lumat_look_at_sparse(L, value) != NULL)
            lumat_raise(L,
                        "save: '%s' is sparse: a .npz file holds it alone, "
                        "save(S, \"f.npz\"), or full(S) among others",
                        name);
        if (lua_istable(L, value))
            lumat_check_pages(L, value);
        else if (lumat_test_matrix(L, value) != NULL)
            lumat_check_matrix(L, value);
        else if (!lua_isnumber(L, value) && !lua_isboolean(L, value) &&
                 !lua_isstring(L, value) && !lumat_test_complex(L, value))
            lumat_raise(L, "save: '%s' is %s, which no array holds", name,
                        lumat_push_brief(L, value));
    }
    if (count == 0)
        lumat_raise(L, "save: the table is empty");
}

static int is_list(lua_State *L, int index)
{
    int is = lua_rawgeti(L, index, 1) != LUA_TNIL;
    lua_pop(L, 1);
    return is;
}

static void write_named(lua_State *L, lumat_archive *a, int packs)
{
    lumat_push_sorted_names(L, 1);
    int names = lua_gettop(L);
    for (lua_Integer i = 1; lua_rawgeti(L, names, i) != LUA_TNIL; i++) {
        const char *name = lua_tostring(L, -1);
        lua_pushvalue(L, -1);
        lua_rawget(L, 1);
        begin_part(L, a, name, packs);
        write_value(L, a, lua_gettop(L), name);
        lumat_archive_end(L, a);
        lua_settop(L, names);
    }
    lua_settop(L, names - 1);
}

/* A vector, as elements of another type of the same size. */
static void write_vector(lua_State *L, lumat_archive *a, const char *name,
                         const gpu_matrix *m, const char *type, int packs)
{
    const void *bytes;
    begin_part(L, a, name, packs);
    void *host = lua_newuserdatauv(L, gpu_bytes(m) + 1, 0);
    lumat_try(L, gpu_look_at_bytes(m, host, &bytes));
    write_raw(L, a, type, 1, m->rows, gpu_is_dry() ? "" : bytes,
              gpu_is_dry() ? 0 : gpu_bytes(m));
    lumat_archive_end(L, a);
    lua_pop(L, 1);
}

/* The parts that SciPy's save_npz writes of compressed rows. */
static void write_sparse(lua_State *L, lumat_archive *a, const gpu_sparse *s,
                         int packs)
{
    int64_t shape[] = {s->rows, s->cols};
    write_vector(L, a, "indices", &s->columns, "i4", packs);
    write_vector(L, a, "indptr", &s->starts, "i4", packs);
    begin_part(L, a, "format", packs);
    write_raw(L, a, "S3", 0, 1, "csr", 3);
    lumat_archive_end(L, a);
    begin_part(L, a, "shape", packs);
    write_raw(L, a, "i8", 1, 2, shape, sizeof shape);
    lumat_archive_end(L, a);
    write_vector(L, a, "data", &s->values, lumat_npy_type_name(s->values.dtype),
                 packs);
}

void lumat_save_npz(lua_State *L, const char *path, const lumat_format *f)
{
    lumat_npy_writer w = {.target = NULL};
    gpu_sparse *s = lumat_test_sparse(L, 1);
    int packs = lua_istable(L, 3) &&
                (lua_getfield(L, 3, "compress"), lua_toboolean(L, -1));
    int is_pages = lua_istable(L, 1) && is_list(L, 1);
    (void)f;
    if (is_pages)
        lumat_check_pages(L, 1);
    else if (lua_istable(L, 1))
        check_values(L);
    else if (s == NULL)
        lumat_check_matrix(L, 1);
    lumat_archive *a = lumat_archive_create(L, "save", path);
    lua_toclose(L, -1);
    w.archive = a;
    if (s != NULL) {
        write_sparse(L, a, s, packs);
    } else if (lua_istable(L, 1) && !is_pages) {
        write_named(L, a, packs);
    } else {
        begin_part(L, a, "arr_0", packs); /* as numpy.savez calls it */
        if (is_pages)
            lumat_write_pages(L, &w, 1);
        else
            lumat_write_npy(L, &w, lumat_check_matrix(L, 1));
        lumat_archive_end(L, a);
    }
    lumat_archive_commit(L, a);
}
