/* load and save: what they are called with, and load itself. */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "csv.h"
#include "files.h"
#include "matrix.h"
#include "npy.h"
#include "stopping.h"

enum { MESSAGE = 256 };

/* --- arguments ----------------------------------------------------------- */

static const struct suffix {
    const char *name;
    lumat_file_kind kind;
    char reads, writes; /* delimiters; 0: looks for one */
} suffixes[] = {{".csv", LUMAT_FILE_CSV, 0, ','},
                {".tsv", LUMAT_FILE_CSV, '\t', '\t'},
                {".txt", LUMAT_FILE_CSV, 0, ' '},
                {".npy", LUMAT_FILE_NPY, 0, 0}};

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

const char *lumat_check_path(lua_State *L, int arg, const char *who,
                             lumat_file_kind *kind, char *delimiter)
{
    size_t length;
    const char *path = luaL_checklstring(L, arg, &length);
    if (strlen(path) != length)
        luaL_argerror(L, arg, "the path has a zero byte in it");
    path = lumat_expand_path(L, arg);
    int saves = strcmp(who, "save") == 0;
    const struct suffix *s = find_suffix(path);
    if (!s) {
        if (!saves)
            lumat_refuse_file(L, path);
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

char lumat_option_delimiter(lua_State *L, int arg, char otherwise)
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

/* Creates the result from elements in host memory, on the stack's top. */
static gpu_matrix *push_result(lua_State *L, gpu_dtype dtype, int ndim,
                               int64_t rows, int64_t cols, const void *host)
{
    gpu_device *device = lumat_option_device(L, 2, NULL);
    gpu_matrix *m = lumat_new_matrix(L);
    lumat_try(L, gpu_create(m, device, dtype, ndim, rows, cols));
    lumat_account(L, m);
    if (gpu_size(m) > 0)
        lumat_try(L, gpu_upload(m, host));
    return m;
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
    lua_createtable(L, (int)(c->cols < 4096 ? c->cols : 4096), 0);
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

static int load_csv(lua_State *L, const char *path, char delimiter)
{
    char message[MESSAGE] = "";
    lumat_check_options(L, 2, "header delimiter dtype device");
    lumat_csv c = {.delimiter = lumat_option_delimiter(L, 2, delimiter),
                   .header = option_header(L, 2)};
    gpu_dtype dtype = lumat_option_dtype(L, 2, lumat_default_dtype(L));
    c.text = lumat_push_file(L, path, &c.length);
    c.goes_on = lumat_file_goes_on;
    if (!lumat_csv_open(&c, message, sizeof message))
        return lumat_raise(L, "load: '%s' %s", path, message);
    int doubled = dtype == GPU_F64;
    size_t size = doubled ? sizeof(double) : sizeof(float);
    size_t count = (size_t)(c.most_rows * c.cols);
    void *host = lua_newuserdatauv(L, size * count, 0);
    int began = lumat_begin_file("load", path, c.length);
    int64_t rows =
        lumat_csv_read(&c, doubled ? NULL : host, doubled ? host : NULL,
                       message, sizeof message);
    lumat_end_file(began);
    if (rows < 0)
        lumat_poll(L, 0);
    if (rows < 0)
        return lumat_raise(L, "load: %s:%s", path, message);
    if (dtype == GPU_BOOL)
        to_truths(host, rows * c.cols);
    push_result(L, dtype, 2, rows, c.cols, host);
    if (!c.has_names)
        return 1;
    push_names(L, &c);
    return 2;
}

/* --- NumPy --------------------------------------------------------------- */

/* The elements as dtype: the file's own bytes, or converted in a userdata
 * that is pushed. */
static const void *convert(lua_State *L, const char *path, const lumat_npy *n,
                           const char *file, gpu_dtype dtype)
{
    char message[MESSAGE] = "";
    if (lumat_npy_is_plain(n, dtype))
        return file + n->data;
    size_t count = (size_t)(n->rows * n->cols);
    void *host = lua_newuserdatauv(L, gpu_dtype_size(dtype) * count, 0);
    int chosen = lua_istable(L, 2) && lua_getfield(L, 2, "dtype") != LUA_TNIL;
    int began = lumat_begin_file("load", path, count * (size_t)n->bytes);
    int done =
        lumat_npy_read(n, file, dtype, host, !chosen, message, sizeof message);
    lumat_end_file(began);
    if (!done)
        lumat_poll(L, 0);
    if (!done)
        lumat_raise(L, "load: '%s': %s", path, message);
    return host;
}

static int load_npy(lua_State *L, const char *path)
{
    char message[MESSAGE] = "";
    lumat_npy n;
    size_t length;
    lumat_check_options(L, 2, "dtype device");
    char *file = lumat_push_file(L, path, &length);
    if (!lumat_npy_open(&n, file, length, message, sizeof message))
        return lumat_raise(L, "load: '%s' %s", path, message);
    n.goes_on = lumat_file_goes_on;
    gpu_dtype dtype = lumat_option_dtype(L, 2, lumat_npy_dtype(&n));
    const void *host = convert(L, path, &n, file, dtype);
    if (n.ndim < 2) {
        push_result(L, dtype, 1, n.rows, 1, host);
    } else if (!n.fortran) {
        push_result(L, dtype, 2, n.rows, n.cols, host);
    } else {
        gpu_matrix *columns = push_result(L, dtype, 2, n.cols, n.rows, host);
        gpu_view_transposed(columns, lumat_new_matrix(L));
        gpu_release(columns);
    }
    return 1;
}

static int load_file(lua_State *L)
{
    lumat_file_kind kind;
    char delimiter;
    const char *path = lumat_check_path(L, 1, "load", &kind, &delimiter);
    lua_settop(L, 2);
    return kind == LUMAT_FILE_NPY ? load_npy(L, path)
                                  : load_csv(L, path, delimiter);
}

static const lumat_function functions[] = {
    {"load", load_file, 0, "load(path [, options])",
     "Reads a matrix from a .csv, .tsv, .txt or .npy file. A line of names "
     "at the top of a table is returned second. Empty cells are NaN. In every "
     "file's name ~/ is your home. One word that is no Lua is a file's name, "
     "and an error says what is wrong with it; everything else is Lua's own "
     "load, for chunks. Options: "
     "header (true, false, \"auto\"), delimiter, dtype, device.",
     "(function() save(vec{1, 2}, \"/tmp/lumat-example.npy\") "
     "return load(\"/tmp/lumat-example.npy\") end)()",
     "{1, 2}"},
    {"save", lumat_file_save, 1, "save(A, path [, options])",
     "Writes a matrix to a .csv, .tsv, .txt or .npy file, which is replaced "
     "whole or not at all. Options for tables: header (a table of names), "
     "delimiter, digits (default: as many as give the same number again).",
     "(function() save(mat{{1, 2}, {3, 4}}, \"/tmp/lumat-example.csv\") "
     "return load(\"/tmp/lumat-example.csv\") end)()",
     "{{1, 2}, {3, 4}}"},
    {0}};

void lumat_open_files(lua_State *L)
{
    lumat_open_atomic(L);
    lumat_register(L, functions);
}
