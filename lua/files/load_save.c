/* Tables of numbers as text: how load reads them, and save writes them. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "arguments.h"
#include "cancellation.h"
#include "complex_value.h"
#include "formats.h"

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

/* --- arguments ----------------------------------------------------------- */

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

/* What is being saved, and to where. */
typedef struct saving {
    const gpu_matrix *m;
    lumat_target *target;
    char delimiter;
    int digits;
} saving;

static void put(lua_State *L, const saving *s, const void *data, size_t n)
{
    lumat_put_bytes(L, s->target, data, n);
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

/* A block that starts in column `first`. */
static void put_text(lua_State *L, void *data, const void *host, int64_t first,
                     int64_t rows, int64_t cols)
{
    const saving *s = data;
    char text[2 * LUMAT_NUMBER_ROOM + 3];
    if (host == NULL)
        return;
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

static void check_text_options(lua_State *L, saving *s)
{
    s->delimiter = option_delimiter(L, 3, s->delimiter);
    if (gpu_size(s->m) == 0)
        lumat_raise(L, "save: an empty matrix has no text; .npy keeps it");
    s->digits = lumat_option_digits(L, 3);
}

void lumat_save_csv(lua_State *L, const char *path, const lumat_format *f)
{
    saving s = {.m = lumat_check_matrix(L, 1),
                .delimiter = f->writes_delimiter};
    check_text_options(L, &s);
    int named = has_names(L, s.m);
    s.target = lumat_push_target(L, path, gpu_bytes(s.m));
    if (named)
        put_names(L, &s);
    lumat_each_block(L, s.m, put_text, &s);
    lumat_finish_target(L, s.target);
}

/* --- loading -------------------------------------------------------------- */

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
static void read_table(lua_State *L, lumat_input *in, const lumat_csv *c,
                       char *text, gpu_dtype dtype, lumat_result *r)
{
    char message[LUMAT_MESSAGE] = "";
    int in_pairs = gpu_dtype_is_complex(dtype);
    size_t size = in_pairs           ? sizeof(gpu_complex)
                  : dtype == GPU_F64 ? sizeof(double)
                                     : sizeof(float);
    void *host = lumat_push_room(L, gpu_size(r->all) + 1, size);
    lumat_csv_place place = {c->data, c->line, 0};
    lumat_begin_input(in, c->length);
    for (int64_t count = 1; count > 0;) {
        size_t start = place.at;
        int is_wide = dtype == GPU_F64 || in_pairs;
        count = lumat_csv_read(c, &place, LUMAT_PIECE, is_wide ? NULL : host,
                               is_wide ? host : NULL, message, sizeof message);
        if (count < 0 || count > gpu_size(r->all) - r->done)
            break;
        if (dtype == GPU_BOOL)
            to_truths(host, count);
        if (dtype == GPU_C64)
            to_singles(host, 2 * count);
        if (count > 0)
            lumat_add_to_result(L, r, host, count);
        forget_text(text, start, place.at);
    }
    lumat_poll(L, 0);
    if (*message != '\0' || r->done < gpu_size(r->all))
        refuse_table(L, in->path, message);
    gpu_release(r->flat);
}

int lumat_load_csv(lua_State *L, lumat_input *in, const lumat_format *f)
{
    char message[LUMAT_MESSAGE] = "";
    lumat_csv c = {.delimiter = option_delimiter(L, 2, f->delimiter),
                   .header = option_header(L, 2)};
    gpu_dtype asked = lumat_option_dtype(L, 2, GPU_ALL_DTYPES);
    gpu_dtype dtype = lumat_default_dtype(L);
    if (asked != GPU_ALL_DTYPES)
        dtype = asked;
    char *text = lumat_push_input_text(L, in, &c.length);
    c.text = text;
    c.goes_on = lumat_input_goes_on;
    if (!lumat_csv_open(&c, message, sizeof message))
        return refuse_table(L, in->path, message);
    if (c.is_complex && asked == GPU_ALL_DTYPES)
        dtype = gpu_dtype_made_complex(dtype);
    c.is_complex = gpu_dtype_is_complex(dtype);
    if (c.has_names)
        push_names(L, &c);
    int names = lua_gettop(L);
    lumat_result r = lumat_push_result(L, dtype, 2, c.rows, c.cols);
    int all = lua_gettop(L);
    read_table(L, in, &c, text, dtype, &r);
    lua_pushvalue(L, all);
    if (!c.has_names)
        return 1;
    lua_pushvalue(L, names);
    return 2;
}
