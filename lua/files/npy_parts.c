/* Arrays in NumPy's format of which several processes read or write a part
 * each: the blocks of a matrix that go round a grid (lua/pool). For lua/pool,
 * as require "lumat.npy_parts".
 *
 * A part is a matrix whose rows are the columns that a process has, as
 * ScaLAPACK wants them. The prompt makes the file, with its whole length, under
 * another name, and gives it its own when all have written. */
#include "cancellation.h"
#include "complex_numbers.h"
#include "cyclic.h"
#include "fence.h"
#include "formats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SPAN = 1 << 16, /* bytes read at once, unless one block has more */
    GAP = 1 << 13   /* bytes of others that are read rather than passed */
};

/* --- who has what --------------------------------------------------------- */

typedef lumat_cyclic axis;

static int64_t integer_in(lua_State *L, int index, const char *name)
{
    lua_getfield(L, index, name);
    int64_t value = luaL_checkinteger(L, -1);
    lua_pop(L, 1);
    return value;
}

static axis check_axis(lua_State *L, int index, const char *const names[4])
{
    axis a = {integer_in(L, index, names[0]), integer_in(L, index, names[1]),
              integer_in(L, index, names[2]), integer_in(L, index, names[3])};
    luaL_argcheck(L, lumat_cyclic_is_valid(&a), index, "is no layout");
    return a;
}

/* The layout at index: {m, mb, row, rows, n, nb, col, cols}. */
static void check_layout(lua_State *L, int index, axis *rows, axis *cols)
{
    static const char *const down[] = {"m", "mb", "row", "rows"};
    static const char *const along[] = {"n", "nb", "col", "cols"};
    luaL_checktype(L, index, LUA_TTABLE);
    *rows = check_axis(L, index, down);
    *cols = check_axis(L, index, along);
}

static int64_t own_count(const axis *a)
{
    return lumat_cyclic_count(a, a->n);
}

/* Of its block number k, from 0: the first place, and how many it has. */
static int64_t block_at(const axis *a, int64_t k, int64_t *count)
{
    int64_t first = lumat_cyclic_place(a, k * a->block);
    *count = a->n - first < a->block ? a->n - first : a->block;
    return first;
}

static int64_t block_count(const axis *a)
{
    return (own_count(a) + a->block - 1) / a->block;
}

/* Room for so many elements, as long as the function runs. */
static void *push_elements(lua_State *L, int64_t count, size_t size)
{
    return lua_newuserdatauv(L, (size_t)count * size + 1, 0);
}

/* --- reading -------------------------------------------------------------- */

/* Opens the file and reads its header; of what is read in parts. */
static lumat_input *push_array(lua_State *L, const char *path, lumat_npy *n)
{
    lumat_input *in = lumat_push_input(L, path);
    lumat_source s = {.left = in->size, .in = in};
    char message[LUMAT_MESSAGE] = "";
    if (in->is_packed)
        lumat_refuse_input(L, in,
                           "is packed, and its parts cannot be found: "
                           "spread(load(path)) reads it whole");
    if (!lumat_try_npy_header(L, &s, n, message))
        lumat_refuse_input(L, in, "%s", message);
    if (n->kind == 'S' || n->kind == 'U')
        lumat_refuse_input(L, in, "holds strings, and no numbers");
    if (n->ndim == 0 || n->ndim == 3)
        lumat_refuse_input(L, in,
                           "has %d dimensions; a distributed matrix is "
                           "of one or two",
                           n->ndim);
    return in;
}

/* header(path): {path, bytes, rows, cols, dtype}: the path from the root, the
 * file's length and what load would make of it; a vector is a column. */
static int header(lua_State *L)
{
    lumat_npy n;
    const char *path = lumat_expand_path(L, 1);
    lua_settop(L, 1);
    const lumat_input *in = push_array(L, path, &n);
    char *whole = realpath(path, NULL);
    lua_createtable(L, 0, 5);
    lua_pushstring(L, whole ? whole : path);
    free(whole);
    lua_setfield(L, -2, "path");
    lua_pushinteger(L, (lua_Integer)in->size);
    lua_setfield(L, -2, "bytes");
    lua_pushinteger(L, n.rows);
    lua_setfield(L, -2, "rows");
    lua_pushinteger(L, n.cols);
    lua_setfield(L, -2, "cols");
    lua_pushstring(L, gpu_dtype_name(lumat_npy_dtype(&n)));
    lua_setfield(L, -2, "dtype");
    return 1;
}

/* What is read: the file's lines are the rows, or where the first index runs
 * fastest the columns, and elements lie along them. */
typedef struct reading {
    lua_State *L;
    const lumat_input *in;
    const lumat_npy *n;
    axis lines, along;
    gpu_dtype dtype;
    int exact;
    size_t size;             /* of an element of dtype */
    char *to, *raw, *values; /* the part; bytes of a span; a converted block */
    int64_t line_step, step; /* between elements of the part */
} reading;

/* Puts a block of line `line`, the process's own of number `own`, which
 * stands at raw, where it belongs: from its along-th element on. */
static void place_block(const reading *r, int64_t line, int64_t own,
                        const char *raw, int64_t first, int64_t count,
                        int64_t along)
{
    char message[LUMAT_MESSAGE] = "";
    const char *from = raw;
    if (!lumat_npy_is_plain(r->n, r->dtype)) {
        if (!lumat_npy_read(r->n, raw, line * r->along.n + first, count,
                            r->dtype, r->values, r->exact, message,
                            sizeof message))
            lumat_refuse_input(r->L, r->in, "cannot be read: %s", message);
        from = r->values;
    }
    char *to =
        r->to + (own * r->line_step + along * r->step) * (int64_t)r->size;
    if (r->step == 1) {
        memcpy(to, from, (size_t)count * r->size);
        return;
    }
    size_t step = (size_t)r->step * r->size;
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)i * step, from + (size_t)i * r->size, r->size);
}

/* Blocks k to before `end` of one line, which one read takes. */
static void read_span(const reading *r, int64_t line, int64_t own, int64_t k,
                      int64_t end)
{
    size_t bytes = (size_t)r->n->bytes;
    int64_t count;
    int64_t first = block_at(&r->along, k, &count);
    int64_t last = block_at(&r->along, end - 1, &count) + count;
    lumat_read_input(r->L, r->in,
                     r->n->data + (size_t)(line * r->along.n + first) * bytes,
                     r->raw, (size_t)(last - first) * bytes);
    for (int64_t b = k; b < end; b++) {
        int64_t at = block_at(&r->along, b, &count);
        place_block(r, line, own, r->raw + (size_t)(at - first) * bytes, at,
                    count, b * r->along.block);
    }
}

/* How many blocks one read takes, from any on. */
static int64_t span_blocks(const reading *r)
{
    int64_t bytes = r->n->bytes, block = r->along.block * bytes;
    int64_t round = block * r->along.processes;
    int64_t most = round - block <= GAP ? SPAN / round : 1;
    return most < 1 ? 1 : most;
}

static void read_all(const reading *r)
{
    int64_t blocks = block_count(&r->along), together = span_blocks(r);
    for (int64_t b = 0; b < block_count(&r->lines); b++) {
        int64_t count, first = block_at(&r->lines, b, &count);
        for (int64_t k = 0; k < blocks; k += together)
            for (int64_t i = 0; i < count; i++) {
                lumat_look(r->L);
                read_span(r, first + i, b * r->lines.block + i, k,
                          k + together < blocks ? k + together : blocks);
            }
    }
}

/* read(path, bytes, dtype, layout): the process's part; dtype nil: what holds
 * the file's values exactly, or an error. bytes: the file's length, as the
 * prompt saw it. */
static int read_part(lua_State *L)
{
    axis rows, cols;
    lumat_npy n;
    gpu_device *cpu;
    const char *path = luaL_checkstring(L, 1);
    int64_t length = luaL_checkinteger(L, 2);
    gpu_dtype dtype = GPU_ALL_DTYPES;
    if (!lua_isnil(L, 3) && !gpu_dtype_find(luaL_checkstring(L, 3), &dtype))
        return luaL_argerror(L, 3, "is no type");
    check_layout(L, 4, &rows, &cols);
    const lumat_input *in = push_array(L, path, &n);
    if ((int64_t)in->size != length || n.rows != rows.n || n.cols != cols.n)
        lumat_refuse_input(L, in, "is another file here: %lld bytes, %lldx%lld",
                           (long long)in->size, (long long)n.rows,
                           (long long)n.cols);
    int exact = dtype == GPU_ALL_DTYPES;
    dtype = exact ? lumat_npy_dtype(&n) : dtype;
    dtype = dtype == GPU_BOOL ? GPU_F32 : dtype;
    int64_t own_rows = own_count(&rows), own_cols = own_count(&cols);
    lumat_try(L, gpu_open("cpu", &cpu));
    gpu_matrix *m = lumat_new_matrix(L);
    int place = lua_gettop(L);
    lumat_try(L, gpu_create(m, cpu, dtype, 2, own_cols, own_rows));
    lumat_account(L, m);
    if (gpu_size(m) == 0)
        return 1;
    size_t size = gpu_dtype_size(dtype);
    char *own = gpu_own_bytes(m);
    char *to = own ? own : push_elements(L, gpu_size(m), size);
    reading r = {.L = L,
                 .in = in,
                 .n = &n,
                 .dtype = dtype,
                 .exact = exact,
                 .size = size,
                 .to = to};
    r.lines = n.fortran ? cols : rows;
    r.along = n.fortran ? rows : cols;
    r.line_step = n.fortran ? own_rows : 1;
    r.step = n.fortran ? 1 : own_rows;
    int64_t wide = r.along.block * r.along.processes * span_blocks(&r);
    wide = wide < r.along.n ? wide : r.along.n;
    r.raw = push_elements(L, wide, (size_t)n.bytes);
    r.values = push_elements(L, r.along.block, size);
    read_all(&r);
    if (!own)
        lumat_try(L, gpu_is_complex(m) ? gpu_complex_upload(m, to)
                                       : gpu_upload(m, to));
    lua_settop(L, place);
    return 1;
}

/* --- writing -------------------------------------------------------------- */

static const char NEW_FILE[] = "lumat.npy_parts";

typedef struct new_file {
    lumat_atomic file;
    const char *path; /* in the user value */
} new_file;

static int close_new(lua_State *L)
{
    new_file *f = luaL_checkudata(L, 1, NEW_FILE);
    lumat_atomic_abort(&f->file);
    return 0;
}

static void check_written(lua_State *L, const char *path, int error)
{
    if (error != 0)
        lumat_raise(L, "save: cannot write '%s': %s", path,
                    error == EISDIR   ? "it is a directory"
                    : error == EINVAL ? "it is not a regular file"
                                      : lumat_error_text(error));
}

/* create(path, dtype, rows, cols): a file that :commit() puts in the path's
 * place, and which is gone where that was not called; its name meanwhile, from
 * the root; the bytes of its header, and of all. */
static int create_file(lua_State *L)
{
    gpu_dtype dtype;
    char text[LUMAT_NPY_HEADER];
    const char *path = lumat_expand_path(L, 1);
    int64_t rows = luaL_checkinteger(L, 3), cols = luaL_checkinteger(L, 4);
    if (!gpu_dtype_find(luaL_checkstring(L, 2), &dtype))
        return luaL_argerror(L, 2, "is no type");
    new_file *f = lua_newuserdatauv(L, sizeof *f, 1);
    f->file.fd = -1;
    f->path = path;
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, NEW_FILE);
    size_t head = lumat_npy_header(text, dtype, 2, rows, cols);
    off_t all = (off_t)head + rows * cols * (off_t)gpu_dtype_size(dtype);
    check_written(L, path, lumat_atomic_open(&f->file, path));
    check_written(L, path, lumat_atomic_write(&f->file, text, head));
    /* The room is taken now: a full disk is told before anything is sent. */
    int error = posix_fallocate(f->file.fd, 0, all);
    if (error == EOPNOTSUPP || error == EINVAL)
        error = ftruncate(f->file.fd, all) == 0 ? 0 : errno;
    check_written(L, path, error);
    char *whole = realpath(f->file.temporary, NULL);
    lua_pushstring(L, whole ? whole : f->file.temporary);
    free(whole);
    lua_pushinteger(L, (lua_Integer)head);
    lua_pushinteger(L, (lua_Integer)all);
    return 4;
}

static int commit_file(lua_State *L)
{
    new_file *f = luaL_checkudata(L, 1, NEW_FILE);
    check_written(L, f->path, lumat_atomic_commit(&f->file));
    return 0;
}

/* The descriptor of the file being made, which is closed with this. */
static const char PART_FILE[] = "lumat.npy_part";

static int close_part(lua_State *L)
{
    int *fd = luaL_checkudata(L, 1, PART_FILE);
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return 0;
}

static int push_part_file(lua_State *L, const char *path, off_t bytes)
{
    int *fd = lua_newuserdatauv(L, sizeof *fd, 0);
    *fd = -1;
    luaL_setmetatable(L, PART_FILE);
    lua_toclose(L, -1);
    *fd = lumat_open_path(path, O_WRONLY | O_CLOEXEC, 0);
    if (*fd < 0)
        lumat_raise(L, "save: cannot write '%s': %s", path,
                    errno == ENOENT ? "it is not seen here; all processes of a "
                                      "pool write to one folder"
                                    : lumat_error_text(errno));
    if (lseek(*fd, 0, SEEK_END) != bytes)
        lumat_raise(L, "save: '%s' is another file here", path);
    return *fd;
}

/* What is written: some rows of the part at a time, so that its columns are
 * gone through by whole lines of the cache. */
enum { LINES = 16 };

typedef struct writing {
    lua_State *L;
    const char *path;
    int fd;
    off_t head;
    axis rows, cols;
    size_t size;
    const char *part; /* column by column */
    char *lines;      /* LINES of its rows */
} writing;

static void turn_lines(const writing *w, int64_t first, int64_t count)
{
    int64_t own_rows = own_count(&w->rows), own_cols = own_count(&w->cols);
    size_t size = w->size;
    for (int64_t j = 0; j < own_cols; j++) {
        const char *from = w->part + (size_t)(j * own_rows + first) * size;
        for (int64_t i = 0; i < count; i++)
            memcpy(w->lines + (size_t)(i * own_cols + j) * size,
                   from + (size_t)i * size, size);
    }
}

/* Row `own` of the process's own, which stands at line: block by block, or at
 * once where nobody else has any of it. */
static void write_line(const writing *w, int64_t own, const char *line)
{
    int64_t count, own_cols = own_count(&w->cols), block = w->cols.block;
    int64_t row =
        block_at(&w->rows, own / w->rows.block, &count) + own % w->rows.block;
    int64_t blocks = w->cols.processes == 1 ? 1 : block_count(&w->cols);
    for (int64_t k = 0; k < blocks; k++) {
        int64_t col = block_at(&w->cols, k, &count);
        off_t at = w->head + (row * w->cols.n + col) * (off_t)w->size;
        count = w->cols.processes == 1 ? own_cols : count;
        check_written(w->L, w->path,
                      lumat_write_fully(w->fd,
                                        line + (size_t)(k * block) * w->size,
                                        (size_t)count * w->size, at));
    }
}

/* write(path, head, bytes, part, layout): the elements of the part into the
 * file that create made, and onto the disk. */
static int write_part(lua_State *L)
{
    const void *bytes;
    writing w = {.L = L, .path = luaL_checkstring(L, 1)};
    w.head = luaL_checkinteger(L, 2);
    const gpu_matrix *m = lumat_check_matrix(L, 4);
    check_layout(L, 5, &w.rows, &w.cols);
    int64_t own_rows = own_count(&w.rows), own_cols = own_count(&w.cols);
    w.size = gpu_dtype_size(m->dtype);
    if (m->rows != own_cols || m->cols != own_rows)
        return luaL_error(L, "a part of another layout");
    w.fd = push_part_file(L, w.path, luaL_checkinteger(L, 3));
    if (gpu_size(m) == 0)
        return 0;
    lumat_try(
        L, gpu_look_at_bytes(m, push_elements(L, gpu_size(m), w.size), &bytes));
    w.part = bytes;
    w.lines = push_elements(L, own_cols * LINES, w.size);
    for (int64_t i = 0; i < own_rows; i += LINES) {
        int64_t count = own_rows - i < LINES ? own_rows - i : LINES;
        lumat_look(L);
        turn_lines(&w, i, count);
        for (int64_t k = 0; k < count; k++)
            write_line(&w, i + k, w.lines + (size_t)(k * own_cols) * w.size);
    }
    check_written(L, w.path, lumat_sync(w.fd));
    return 0;
}

void lumat_open_npy_parts(lua_State *L)
{
    static const luaL_Reg functions[] = {{"header", header},
                                         {"read", read_part},
                                         {"create", create_file},
                                         {"write", write_part},
                                         {NULL, NULL}};
    lumat_open_closing(L, NEW_FILE, close_new);
    luaL_getmetatable(L, NEW_FILE);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, commit_file);
    lua_setfield(L, -2, "commit");
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lumat_open_closing(L, PART_FILE, close_part);
    luaL_newlib(L, functions);
    lumat_set_required(L, "npy_parts");
}
