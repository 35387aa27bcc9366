/* load and save: what they are called with, the bytes of a file or what is
 * wrong with it, and matrices from and to tables of numbers and .npy files, a
 * block at a time, so that a large one on a device needs little host memory. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "complex_value.h"
#include "fence.h"
#include "files_parts.h"
#include "arguments.h"
#include "cancellation.h"
#include "parse.h"
#include "value.h"

typedef enum file_kind { FILE_CSV, FILE_NPY } file_kind;

/* A regular file that is being read. */
typedef struct input_file {
    int fd;
    size_t size;
    const char *path;
    int began; /* of begin_file, until it is closed */
} input_file;

enum { PART = 1 << 22 }; /* bytes read at a time */

/* --- progress ------------------------------------------------------------ */

/* Begins "load name.csv" or "save …" for whoever watches the progress of so
 * many bytes, if any; ended with the same value, before anything raises.
 * goes_on counts bytes, and returns 0 when the user wants it to stop. */
static int begin_file(const char *what, const char *path, size_t bytes)
{
    const char *slash = strrchr(path, '/');
    if (bytes < PART ||
        !gpu_begin_work("%s %s", what, slash != NULL ? slash + 1 : path))
        return 0;
    return gpu_begin_stage((int64_t)bytes);
}

static void end_file(int began)
{
    gpu_end_work(began);
}

static int file_goes_on(size_t bytes)
{
    gpu_advance((int64_t)bytes);
    return !gpu_is_interrupted();
}

/* --- what is no file of ours ---------------------------------------------- */

enum { MOST_SEEN = 10000, MOST_NAMED = 3 };

/* What others write, and how it comes here. */
static const char *const foreign[][2] = {
    {".npz", "an archive of arrays: in Python numpy.save(\"a.npy\", "
             "numpy.load(\"%s\")[\"a\"]) takes one out"},
    {".mat", "MATLAB's: there writematrix(A, \"a.csv\"), in Octave "
             "csvwrite(\"a.csv\", A) writes one matrix"},
    {".mtx", "of Matrix Market: in Python numpy.save(\"a.npy\", "
             "scipy.io.mmread(\"%s\").toarray()) converts it"},
    {".lum", "a saved session: load_session(\"%s\") reads it"},
    {".lua", "a script: dofile(\"%s\") runs it"},
    {".xlsx", "a spreadsheet: save it there as .csv"},
    {".xls", "a spreadsheet: save it there as .csv"},
    {".ods", "a spreadsheet: save it there as .csv"},
    {".gz", "compressed: unpack it first"},
    {".bz2", "compressed: unpack it first"},
    {".xz", "compressed: unpack it first"},
    {".zst", "compressed: unpack it first"},
    {".zip", "compressed: unpack it first"},
    {".h5", "of HDF5: in Python numpy.save(\"a.npy\", array) writes an array"},
    {".hdf5",
     "of HDF5: in Python numpy.save(\"a.npy\", array) writes an array"},
    {".parquet", "of Parquet: in Python pandas' to_csv writes it as text"},
    {".pkl", "Python's: there numpy.save(\"a.npy\", array) writes an array"},
    {".pt",
     "PyTorch's: there numpy.save(\"a.npy\", t.numpy()) writes an array"},
};

/* It is there, but not to be read. */
static int refuse_kind(lua_State *L, const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof foreign / sizeof *foreign; i++) {
        if (strcasecmp(dot, foreign[i][0]) != 0)
            continue;
        const char *advice = luaL_gsub(L, foreign[i][1], "%s", path);
        return lumat_raise(L, "load: '%s' is %s; load reads " LUMAT_DATA_KINDS,
                           path, advice);
    }
    return lumat_raise(L,
                       "load: '%s' has none of the endings it knows: %s; name "
                       "a table of numbers .txt",
                       path, LUMAT_DATA_KINDS);
}

/* Names that differ in case or in what is behind their last dot alone. */
static int is_same_stem(const char *a, const char *b)
{
    const char *c = strrchr(a, '.'), *d = strrchr(b, '.');
    size_t n = c && c > a ? (size_t)(c - a) : strlen(a);
    size_t m = d && d > b ? (size_t)(d - b) : strlen(b);
    return strcasecmp(a, b) == 0 || (n == m && strncasecmp(a, b, n) == 0) ||
           (m == strlen(a) && strncasecmp(a, b, m) == 0);
}

/* Pushes "a.csv or a.npy": what there is in the folder of that stem; else the
 * one with the most similar name, or "". */
static const char *push_near_files(lua_State *L, const char *folder,
                                   const char *base)
{
    int top = lua_gettop(L), named = 0;
    DIR *d = lumat_may_open(folder, 0) ? opendir(folder) : NULL;
    lua_pushliteral(L, "");
    lua_pushliteral(L, "");
    for (int i = 0; d && i < MOST_SEEN; i++) {
        const struct dirent *e = readdir(d); /* of some a guess will do, too */
        if (!e)
            break;
        if (e->d_name[0] == '.' || strchr(e->d_name, ' '))
            continue;
        if (is_same_stem(base, e->d_name) && lumat_is_data_name(e->d_name) &&
            named < MOST_NAMED) {
            lua_pushfstring(L, "%s%s%s", lua_tostring(L, top + 1),
                            named++ ? " or " : "", e->d_name);
            lua_replace(L, top + 1);
        }
        lua_pushfstring(L, "%s%s ", lua_tostring(L, top + 2), e->d_name);
        lua_replace(L, top + 2);
    }
    if (d)
        closedir(d);
    if (!named && lumat_nearest(L, base, lua_tostring(L, top + 2)))
        lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return lua_tostring(L, -1);
}

/* There is none. */
static int refuse_missing(lua_State *L, const char *path)
{
    char here[PATH_MAX];
    struct stat found;
    const char *slash = strrchr(path, '/'), *base = path, *folder = ".";
    if (slash) {
        base = slash + 1;
        folder = lua_pushlstring(L, path,
                                 slash == path ? 1 : (size_t)(slash - path));
    }
    if (stat(folder, &found) != 0 || !S_ISDIR(found.st_mode))
        return lumat_raise(L,
                           "load: there is no file '%s': there is no folder "
                           "'%s'",
                           path, folder);
    const char *near = push_near_files(L, folder, base);
    if (*near)
        return lumat_raise(L, "load: there is no file '%s': did you mean %s?",
                           path, near);
    if (slash || !getcwd(here, sizeof here))
        return lumat_raise(L, "load: there is no file '%s'", path);
    return lumat_raise(L, "load: there is no file '%s' in %s", path, here);
}

/* Raises what is wrong with a path that load cannot read: there is no such
 * file, and what there is in its place; or another program's kind of file. */
static int refuse_file(lua_State *L, const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return refuse_missing(L, path);
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return lumat_raise(L, "load: '%s' is a directory", path);
    return refuse_kind(L, path);
}

/* --- reading ------------------------------------------------------------- */

static const char INPUT[] = "lumat.input";

static int close_input(lua_State *L)
{
    input_file *in = luaL_checkudata(L, 1, INPUT);
    end_file(in->began);
    in->began = 0;
    if (in->fd >= 0)
        close(in->fd);
    in->fd = -1;
    return 0;
}

static int refuse_input(lua_State *L, const char *path, int error)
{
    if (error == ENOENT || error == ENOTDIR)
        return refuse_file(L, path);
    return lumat_raise(L, "load: cannot read '%s': %s", path,
                       lumat_error_text(error));
}

/* Pushes a userdata that is closed where the running function ends, or on
 * being popped; raises when the file cannot be read, or is empty. */
static input_file *push_input(lua_State *L, const char *path)
{
    input_file *in = lua_newuserdatauv(L, sizeof *in, 0);
    *in = (input_file){.fd = -1, .path = path};
    luaL_setmetatable(L, INPUT);
    lua_toclose(L, -1);
    in->fd = lumat_open_regular(path, &in->size);
    if (in->fd < 0)
        refuse_input(L, path, errno);
    if (in->size == 0)
        lumat_raise(L, "load: '%s' is empty", path);
    return in;
}

/* Reads exactly so many bytes from a place on; raises when they are not there,
 * or when the user wants it to stop. */
static void read_input(lua_State *L, const input_file *in, size_t at,
                       void *bytes, size_t length)
{
    char *to = bytes;
    while (length > 0) {
        size_t part = length < PART ? length : PART;
        ssize_t n = pread(in->fd, to, part, (off_t)at);
        if (n < 0 && errno != EINTR)
            refuse_input(L, in->path, errno);
        if (n == 0)
            lumat_raise(L, "load: '%s' became shorter while it was read",
                        in->path);
        if (n > 0) {
            at += (size_t)n;
            to += n;
            length -= (size_t)n;
            gpu_advance(n);
        }
        lumat_poll(L, 0);
    }
}

/* Begins the progress of going through so many bytes. */
static void begin_input(input_file *in, size_t bytes)
{
    end_file(in->began);
    in->began = begin_file("load", in->path, bytes);
}

/* Pushes a userdata with all bytes of the file. */
static char *push_input_text(lua_State *L, input_file *in)
{
    char *text = lua_newuserdatauv(L, in->size, 0);
    begin_input(in, in->size);
    read_input(L, in, 0, text, in->size);
    return text;
}

/* Gives back the memory of what lies between, which then reads as zeros: whole
 * pages, for their neighbours are not the text's. */
static void forget_text(char *text, size_t first, size_t last)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = ((uintptr_t)text + first + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)text + last) / page * page;
    if (start < end)
        madvise((void *)start, end - start, MADV_DONTNEED);
}

enum { MESSAGE = 256 };

/* --- arguments ----------------------------------------------------------- */

static const struct suffix {
    const char *name;
    file_kind kind;
    char reads, writes; /* delimiters; 0: looks for one */
} suffixes[] = {{".csv", FILE_CSV, 0, ','},
                {".tsv", FILE_CSV, '\t', '\t'},
                {".txt", FILE_CSV, 0, ' '},
                {".npy", FILE_NPY, 0, 0}};

static const struct suffix *find_suffix(const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n = strlen(suffixes[i].name);
        if (length > n && strcasecmp(path + length - n, suffixes[i].name) == 0)
            return &suffixes[i];
    }
    return NULL;
}

int lumat_is_data_name(const char *name)
{
    return find_suffix(name) != NULL;
}

/* The path at arg, checked, and what its suffix says: the kind and, for
 * text, the delimiter that goes with it (0: none does). */
static const char *check_path(lua_State *L, int arg, const char *who,
                              file_kind *kind, char *delimiter)
{
    size_t length;
    const char *path = luaL_checklstring(L, arg, &length);
    if (strlen(path) != length)
        lumat_raise_argument(L, arg, "has a zero byte in it");
    path = lumat_expand_path(L, arg);
    int saves = strcmp(who, "save") == 0;
    const struct suffix *s = find_suffix(path);
    if (!s) {
        if (!saves)
            refuse_file(L, path);
        lumat_raise(
            L, "%s: '%s' has none of the endings it knows: " LUMAT_DATA_KINDS,
            who, path);
        return NULL;
    }
    *kind = s->kind;
    *delimiter = saves ? s->writes : s->reads;
    return path;
}

/* Could c stand between numbers and names? */
static int is_delimiter(char c)
{
    if (c == '\t' || c == ' ')
        return 1;
    return (unsigned char)c < 0x80 && ispunct((unsigned char)c) &&
           strchr("+-.\"", c) == NULL;
}

/* The option delimiter of the table at arg: one character; else otherwise. */
static char option_delimiter(lua_State *L, int arg, char otherwise)
{
    size_t length = 0;
    if (!lua_istable(L, arg))
        return otherwise;
    const char *text = NULL;
    if (lua_getfield(L, arg, "delimiter") == LUA_TSTRING)
        text = lua_tolstring(L, -1, &length);
    int absent = lua_isnil(L, -1);
    char c = length == 1 ? *text : 0;
    lua_pop(L, 1);
    if (absent)
        return otherwise;
    if (is_delimiter(c))
        return c;
    lumat_raise(L, "delimiter: needs one character that no number has, "
                   "such as \",\", \";\", \"\\t\" or \" \"");
    return 0;
}

/* "auto", true or false. */
static enum lumat_csv_header option_header(lua_State *L, int arg)
{
    enum lumat_csv_header header = LUMAT_HEADER_AUTO;
    if (!lua_istable(L, arg))
        return header;
    int type = lua_getfield(L, arg, "header");
    if (type == LUA_TBOOLEAN)
        header = lua_toboolean(L, -1) ? LUMAT_HEADER_YES : LUMAT_HEADER_NO;
    else if (type != LUA_TNIL &&
             (type != LUA_TSTRING || strcmp(lua_tostring(L, -1), "auto") != 0))
        lumat_raise(L, "header: needs true, false or \"auto\"");
    lua_pop(L, 1);
    return header;
}

/* --- saving --------------------------------------------------------------- */

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
    file_kind kind;
    char delimiter;
    int digits;
} saving;

static int collect_atomic(lua_State *L)
{
    open_file *f = luaL_checkudata(L, 1, METATABLE);
    end_file(f->began);
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
    gpu_dtype part = gpu_dtype_of_parts(s->m->dtype);
    if (part == GPU_BOOL) {
        out[0] = truths[i] ? '1' : '0';
        return 1;
    }
    double x = part == GPU_F32 ? singles[i] : doubles[i];
    if (isnan(x)) {
        memcpy(out, "nan", 3);
        return 3;
    }
    return part == GPU_F32 ? lumat_print_f32(singles[i], s->digits, out)
                           : lumat_print_f64(x, s->digits, out);
}

/* "1+2i" */
static size_t print_pair(const saving *s, const void *host, int64_t i,
                         char out[2 * LUMAT_NUMBER_ROOM])
{
    size_t n = print_element(s, host, 2 * i, out);
    char im[LUMAT_NUMBER_ROOM];
    size_t length = print_element(s, host, 2 * i + 1, im);
    if (*im != '-')
        out[n++] = '+';
    memcpy(out + n, im, length);
    out[n + length] = 'i';
    return n + length + 1;
}

/* Writes a block that starts in column `first`. */
static void put_text(lua_State *L, const saving *s, const void *host,
                     int64_t first, int64_t rows, int64_t cols)
{
    char text[2 * LUMAT_NUMBER_ROOM + 3];
    for (int64_t i = 0; i < rows * cols; i++) {
        size_t n = gpu_is_complex(s->m) ? print_pair(s, host, i, text)
                                        : print_element(s, host, i, text);
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
    const void *bytes;
    lumat_try(L, gpu_view_block(s->m, rows, cols, block));
    lumat_try(L, gpu_look_at_bytes(block, host, &bytes));
    gpu_release(block); /* a view: s->m holds the bytes */
    if (gpu_is_dry())
        lumat_poll(L, 0);
    else if (s->kind == FILE_NPY)
        put(L, s, bytes,
            gpu_dtype_size(s->m->dtype) * (size_t)(rows.count * cols.count));
    else
        put_text(L, s, bytes, cols.first, rows.count, cols.count);
    if (!file_goes_on(gpu_dtype_size(s->m->dtype) *
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
    s->delimiter = option_delimiter(L, 3, s->delimiter);
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
    f->began = begin_file("save", s->path, gpu_bytes(s->m));
}

/* Whatever raises, the unfinished file is a value to be closed, and goes. */
static int save_file(lua_State *L)
{
    char header[LUMAT_NPY_HEADER];
    saving s = {.m = lumat_check_matrix(L, 1)};
    int named = 0;
    s.path = check_path(L, 2, "save", &s.kind, &s.delimiter);
    lua_settop(L, 3);
    if (s.kind == FILE_NPY) {
        if (!lua_isnil(L, 3))
            return lumat_raise(L, "save: a .npy file takes no options");
    } else {
        check_text_options(L, &s);
        named = has_names(L, s.m);
    }
    open_target(L, &s);
    if (s.kind == FILE_NPY)
        put(L, &s, header,
            lumat_npy_header(header, s.m->dtype, s.m->ndim, s.m->rows,
                             s.m->cols));
    else if (named)
        put_names(L, &s);
    put_elements(L, &s);
    check(L, &s, lumat_atomic_commit(s.file));
    return 0;
}

/* --- loading -------------------------------------------------------------- */

/* A result that is filled piece by piece, in row-major order, from elements in
 * host memory: so beside the result there is little. */
enum { PIECE = 1 << 19 }; /* elements */

typedef struct result {
    gpu_matrix *all, *flat, *piece;
    int64_t done;
} result;

/* Creates it, and leaves it on the stack's top. */
static result push_result(lua_State *L, gpu_dtype dtype, int ndim, int64_t rows,
                          int64_t cols)
{
    gpu_device *device = lumat_option_device(L, 2, NULL);
    result r = {.flat = lumat_new_matrix(L), .piece = lumat_new_matrix(L)};
    r.all = lumat_new_matrix(L);
    lumat_try(L, gpu_create(r.all, device, dtype, ndim, rows, cols));
    lumat_account(L, r.all);
    lumat_try(L, gpu_reshape(r.all, 1, gpu_size(r.all), 1, r.flat));
    return r;
}

static void add_to_result(lua_State *L, result *r, const void *host,
                          int64_t count)
{
    gpu_slice rows = {r->done, 1, count}, cols = {0, 1, 1};
    lumat_try(L, gpu_view_block(r->flat, rows, cols, r->piece));
    lumat_try(L, gpu_upload(r->piece, host));
    gpu_release(r->piece);
    r->done += count;
}

static void *push_room(lua_State *L, int64_t count, size_t size)
{
    size_t most = (size_t)(count < PIECE ? count : PIECE);
    return lua_newuserdatauv(L, size * most + 1, 0);
}

/* --- text ---------------------------------------------------------------- */

/* Pushes a name with doubled quotes made single. */
static void push_name(lua_State *L, const char *text, size_t length)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (size_t i = 0; i < length; i++) {
        luaL_addchar(&b, text[i]);
        if (text[i] == '"' && i + 1 < length && text[i + 1] == '"')
            i++;
    }
    luaL_pushresult(&b);
}

static void push_names(lua_State *L, const lumat_csv *c)
{
    const char *text;
    size_t length, at = c->names;
    lua_createtable(L, (int)c->cols, 0);
    for (lua_Integer i = 1; lumat_csv_name(c, &at, &text, &length); i++) {
        push_name(L, text, length);
        lua_rawseti(L, -2, i);
    }
}

static void to_truths(float *singles, int64_t count)
{
    unsigned char *truths = (void *)singles;
    for (int64_t i = 0; i < count; i++) {
        float x;
        memcpy(&x, &singles[i], sizeof x);
        truths[i] = x != 0;
    }
}

/* Doubles that become floats, in place. */
static void to_singles(double *doubles, int64_t count)
{
    char *singles = (char *)doubles;
    for (int64_t i = 0; i < count; i++) {
        float x = (float)doubles[i];
        memcpy(singles + i * (int64_t)sizeof x, &x, sizeof x);
    }
}

/* Raises that the table is not as it should be; most messages begin with a
 * line. */
static int refuse_table(lua_State *L, const char *path, const char *message)
{
    int is_line = *message >= '0' && *message <= '9';
    return lumat_raise(L, is_line ? "load: %s:%s" : "load: '%s' %s", path,
                       message);
}

/* Reads the rows into the result. Text that was read is forgotten: where cells
 * are short the result is larger than the text. */
static void read_table(lua_State *L, input_file *in, const lumat_csv *c,
                       char *text, gpu_dtype dtype, result *r)
{
    char message[MESSAGE] = "";
    int in_pairs = gpu_dtype_is_complex(dtype);
    size_t size = in_pairs           ? sizeof(gpu_complex)
                  : dtype == GPU_F64 ? sizeof(double)
                                     : sizeof(float);
    void *host = push_room(L, gpu_size(r->all) + 1, size);
    lumat_csv_place place = {c->data, c->line, 0};
    begin_input(in, c->length);
    for (int64_t count = 1; count > 0;) {
        size_t start = place.at;
        int is_wide = dtype == GPU_F64 || in_pairs;
        count = lumat_csv_read(c, &place, PIECE, is_wide ? NULL : host,
                               is_wide ? host : NULL, message, sizeof message);
        if (count < 0 || count > gpu_size(r->all) - r->done)
            break;
        if (dtype == GPU_BOOL)
            to_truths(host, count);
        if (dtype == GPU_C64)
            to_singles(host, 2 * count);
        if (count > 0)
            add_to_result(L, r, host, count);
        forget_text(text, start, place.at);
    }
    lumat_poll(L, 0);
    if (*message != '\0' || r->done < gpu_size(r->all))
        refuse_table(L, in->path, message);
    gpu_release(r->flat);
}

static int load_csv(lua_State *L, const char *path, char delimiter)
{
    char message[MESSAGE] = "";
    lumat_csv c = {.delimiter = option_delimiter(L, 2, delimiter),
                   .header = option_header(L, 2)};
    gpu_dtype asked = lumat_option_dtype(L, 2, GPU_ALL_DTYPES);
    gpu_dtype dtype = lumat_default_dtype(L);
    if (asked != GPU_ALL_DTYPES)
        dtype = asked;
    input_file *in = push_input(L, path);
    char *text = push_input_text(L, in);
    c.text = text;
    c.length = in->size;
    c.goes_on = file_goes_on;
    if (!lumat_csv_open(&c, message, sizeof message))
        return refuse_table(L, path, message);
    if (c.is_complex && asked == GPU_ALL_DTYPES)
        dtype = gpu_dtype_made_complex(dtype);
    c.is_complex = gpu_dtype_is_complex(dtype);
    if (c.has_names)
        push_names(L, &c);
    int names = lua_gettop(L);
    result r = push_result(L, dtype, 2, c.rows, c.cols);
    int all = lua_gettop(L);
    read_table(L, in, &c, text, dtype, &r);
    lua_pushvalue(L, all);
    if (!c.has_names)
        return 1;
    lua_pushvalue(L, names);
    return 2;
}

/* --- NumPy --------------------------------------------------------------- */

/* Reads and converts the elements, in the file's order. */
static void read_elements(lua_State *L, input_file *in, const lumat_npy *n,
                          gpu_dtype dtype, result *r)
{
    char message[MESSAGE] = "";
    int64_t all = gpu_size(r->all);
    int is_plain = lumat_npy_is_plain(n, dtype), done = 1;
    int chosen = lua_istable(L, 2) && lua_getfield(L, 2, "dtype") != LUA_TNIL;
    size_t size = (size_t)n->bytes;
    char *raw = push_room(L, all, size);
    void *host = is_plain ? raw : push_room(L, all, gpu_dtype_size(dtype));
    begin_input(in, (size_t)all * size);
    while (done && r->done < all) {
        int64_t left = all - r->done, count = left < PIECE ? left : PIECE;
        read_input(L, in, n->data + (size_t)r->done * size, raw,
                   (size_t)count * size);
        done = is_plain || lumat_npy_read(n, raw, r->done, count, dtype, host,
                                          !chosen, message, sizeof message);
        if (done)
            add_to_result(L, r, host, count);
    }
    if (!done)
        lumat_raise(L, "load: '%s': %s", in->path, message);
    gpu_release(r->flat);
}

/* What goes with text alone. */
static void refuse_text_option(lua_State *L, const char *name)
{
    if (lua_istable(L, 2) && lua_getfield(L, 2, name) != LUA_TNIL)
        lumat_raise(L, "load: a .npy file takes no %s, but dtype and device",
                    name);
    lua_settop(L, 2);
}

static int load_npy(lua_State *L, const char *path)
{
    char message[MESSAGE] = "";
    lumat_npy n;
    refuse_text_option(L, "header");
    refuse_text_option(L, "delimiter");
    input_file *in = push_input(L, path);
    size_t most = LUMAT_NPY_MOST_HEADER;
    size_t length = in->size < most ? in->size : most;
    char *header = lua_newuserdatauv(L, length, 0);
    read_input(L, in, 0, header, length);
    if (!lumat_npy_open(&n, header, in->size, message, sizeof message))
        return lumat_raise(L, "load: '%s' %s", path, message);
    gpu_dtype dtype = lumat_option_dtype(L, 2, lumat_npy_dtype(&n));
    int turned = n.ndim == 2 && n.fortran;
    result r = push_result(L, dtype, n.ndim < 2 ? 1 : 2,
                           turned ? n.cols : n.rows, turned ? n.rows : n.cols);
    int all = lua_gettop(L);
    read_elements(L, in, &n, dtype, &r);
    if (turned) {
        gpu_view_transposed(r.all, lumat_new_matrix(L));
        gpu_release(r.all);
        return 1;
    }
    lua_pushvalue(L, all);
    return 1;
}

static int load_file(lua_State *L)
{
    file_kind kind;
    char delimiter;
    const char *path = check_path(L, 1, "load", &kind, &delimiter);
    lua_settop(L, 2);
    return kind == FILE_NPY ? load_npy(L, path) : load_csv(L, path, delimiter);
}

static const lumat_option load_options[] = {
    {"dtype", "dtype", "what default_dtype says, or a .npy file",
     "element type: \"f32\", \"f64\" or \"bool\""},
    {"header", "boolean|\"auto\"", "\"auto\", told by its cells",
     "is the first line one of names: true or false"},
    {NULL, NULL, NULL, NULL}};

static const lumat_option save_options[] = {
    {"header", "table", NULL, "a table of column names for the first line"},
    {"digits", "count", "as many as give the same number again",
     "significant digits"},
    {NULL, NULL, NULL, NULL}};

static const lumat_function functions[] = {
    {"load", load_file, 0, "path: data {header, delimiter, dtype, device}",
     "matrix, table",
     "Reads a matrix from a .csv, .tsv, .txt or .npy file. A line of names at "
     "the top of a table is returned second. Empty cells are NaN. In every "
     "file's name ~/ is your home. One word that is no Lua is a file's name, "
     "and an error says what is wrong with it; everything else is Lua's own "
     "load, for chunks.",
     "(function() save(vec{1, 2}, \"/tmp/lumat-example.npy\") return "
     "load(\"/tmp/lumat-example.npy\") end)()",
     "{1, 2}", .group = "files", .options = load_options},
    {"save", save_file, 1, "A: matrix, path: data {header, delimiter, digits}",
     "nothing",
     "Writes a matrix to a .csv, .tsv, .txt or .npy file, which is replaced "
     "whole or not at all.",
     "(function() save(mat{{1, 2}, {3, 4}}, \"/tmp/lumat-example.csv\") return "
     "load(\"/tmp/lumat-example.csv\") end)()",
     "{{1, 2}, {3, 4}}", .group = "files", .options = save_options},
    {0}};

void lumat_open_files(lua_State *L)
{
    lumat_open_closing(L, METATABLE, collect_atomic);
    lumat_open_closing(L, INPUT, close_input);
    lumat_register(L, functions);
}
