/* load and save: what they are called with, and load itself. */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "load_save.h"
#include "cancellation.h"
#include "parse.h"
#include "matrix.h"

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
static void read_table(lua_State *L, lumat_input *in, const lumat_csv *c,
                       char *text, gpu_dtype dtype, result *r)
{
    char message[MESSAGE] = "";
    size_t size = dtype == GPU_F64 ? sizeof(double) : sizeof(float);
    void *host = push_room(L, gpu_size(r->all) + 1, size);
    lumat_csv_place place = {c->data, c->line, 0};
    lumat_begin_input(in, c->length);
    for (int64_t count = 1; count > 0;) {
        size_t start = place.at;
        count = lumat_csv_read(c, &place, PIECE, dtype == GPU_F64 ? NULL : host,
                               dtype == GPU_F64 ? host : NULL, message,
                               sizeof message);
        if (count < 0 || count > gpu_size(r->all) - r->done)
            break;
        if (dtype == GPU_BOOL)
            to_truths(host, count);
        if (count > 0)
            add_to_result(L, r, host, count);
        lumat_forget_text(text, start, place.at);
    }
    lumat_poll(L, 0);
    if (*message != '\0' || r->done < gpu_size(r->all))
        refuse_table(L, in->path, message);
    gpu_release(r->flat);
}

static int load_csv(lua_State *L, const char *path, char delimiter)
{
    char message[MESSAGE] = "";
    lumat_check_options(L, 2, "header delimiter dtype device");
    lumat_csv c = {.delimiter = lumat_option_delimiter(L, 2, delimiter),
                   .header = option_header(L, 2)};
    gpu_dtype dtype = lumat_option_dtype(L, 2, lumat_default_dtype(L));
    lumat_input *in = lumat_push_input(L, path);
    char *text = lumat_push_input_text(L, in);
    c.text = text;
    c.length = in->size;
    c.goes_on = lumat_file_goes_on;
    if (!lumat_csv_open(&c, message, sizeof message))
        return refuse_table(L, path, message);
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
static void read_elements(lua_State *L, lumat_input *in, const lumat_npy *n,
                          gpu_dtype dtype, result *r)
{
    char message[MESSAGE] = "";
    int64_t all = gpu_size(r->all);
    int is_plain = lumat_npy_is_plain(n, dtype), done = 1;
    int chosen = lua_istable(L, 2) && lua_getfield(L, 2, "dtype") != LUA_TNIL;
    size_t size = (size_t)n->bytes;
    char *raw = push_room(L, all, size);
    void *host = is_plain ? raw : push_room(L, all, gpu_dtype_size(dtype));
    lumat_begin_input(in, (size_t)all * size);
    while (done && r->done < all) {
        int64_t left = all - r->done, count = left < PIECE ? left : PIECE;
        lumat_read_input(L, in, n->data + (size_t)r->done * size, raw,
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

static int load_npy(lua_State *L, const char *path)
{
    char message[MESSAGE] = "";
    lumat_npy n;
    lumat_check_options(L, 2, "dtype device");
    lumat_input *in = lumat_push_input(L, path);
    size_t most = LUMAT_NPY_MOST_HEADER;
    size_t length = in->size < most ? in->size : most;
    char *header = lua_newuserdatauv(L, length, 0);
    lumat_read_input(L, in, 0, header, length);
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
    lumat_open_inputs(L);
    lumat_register(L, functions);
}
