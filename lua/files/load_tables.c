/* Tables as text: load and load_blocks of .csv, .tsv and .txt files.
 *
 * The file is read through a window of some megabytes, which is cut into chunks
 * that all cores read at once. Where a chunk's first row begins is guessed, as
 * a line may end within quotes; then the chunks are taken in order, and one
 * that did not begin where the one before it ended is read once more. So what
 * is read does not depend on the cut. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "arguments.h"
#include "cancellation.h"
#include "complex_value.h"
#include "cores.h"
#include "table_files.h"
#include "fence.h"

enum {
    CHUNK = 1 << 18, /* bytes of text: its numbers stay in a core's cache */
    CHUNKS = 32,
    WINDOW = CHUNK * CHUNKS,
    SLACK = 64,          /* bytes behind the text that may be read */
    MOST_ROOM = 1 << 26, /* bytes of the numbers of all chunks, about */
    WIDE = 1 << 16,      /* columns, from which a row is read in pieces */
    LONGEST_ROW = 1 << 30,
    MOST_WORDS = 256,
    PACKED = 1 << 16,
    GZIP = 16 + 15
};

/* What is known of a table while it is read. Its memory is malloc's, as cores
 * fill it; it goes with the userdata. */
typedef struct table_reader {
    lumat_input *in;
    size_t at;  /* bytes of the file that were read */
    z_stream z; /* where it is packed, and is_unpacking */
    int is_unpacking, has_ended;
    unsigned char *packed;    /* what is being unpacked */
    char *text;               /* the window: */
    size_t start, used, room; /* the first byte that no row has taken */
    int is_all;               /* the file has no more than is in it */
    int64_t line;             /* of text[start] */
    int64_t row;              /* rows that were taken, or passed */
    double row_bytes;         /* of text, about */
    lumat_csv c;
    lumat_csv_column *column;
    lumat_labels labels;
    uint32_t *label_count; /* of every column of the file */
    unsigned char *finest;
    int64_t *chosen; /* the file's columns, from 0, in the result's order */
    int64_t chosen_count;
    int is_frame, has_names;
    int is_whole;    /* all columns, in their order */
    int is_wide;     /* rows are read in pieces */
    gpu_dtype dtype; /* of a matrix, or of a frame's numbers */
    gpu_device *device;
    lumat_csv_text word[MOST_WORDS]; /* of na */
    double value[MOST_WORDS];
    lumat_csv_chunk chunk[CHUNKS];
    const char *begin[CHUNKS]; /* where it was read from */
    char is_odd[CHUNKS];       /* has it an odd number of quotes? */
    int chunk_count;
    int64_t chunk_rows; /* the most of one */
    uint32_t *codes;    /* of new labels */
    size_t codes_room;
} table_reader;

static const char READER[] = "lumat.table_reader";

static void free_reader(table_reader *t)
{
    if (t->is_unpacking)
        inflateEnd(&t->z);
    t->is_unpacking = 0;
    free(t->packed);
    free(t->text);
    free(t->column);
    free(t->label_count);
    free(t->chosen);
    free(t->codes);
    free(t->finest);
    lumat_labels_free(&t->labels);
    for (int i = 0; i < CHUNKS; i++) {
        free(t->chunk[i].to);
        free(t->chunk[i].scratch);
        free(t->chunk[i].finest);
        lumat_labels_free(&t->chunk[i].fresh);
    }
    t->packed = NULL;
    t->text = NULL;
    t->column = NULL;
    t->label_count = NULL;
    t->chosen = NULL;
    t->codes = NULL;
    t->finest = NULL;
    memset(t->chunk, 0, sizeof t->chunk);
}

static int close_reader(lua_State *L)
{
    free_reader(luaL_checkudata(L, 1, READER));
    return 0;
}

/* Pushes it, with a table for what it needs alive. */
static table_reader *push_reader(lua_State *L, lumat_input *in)
{
    table_reader *t = lua_newuserdatauv(L, sizeof *t, 1);
    memset(t, 0, sizeof *t);
    luaL_setmetatable(L, READER);
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1);
    t->in = in;
    return t;
}

static void *need(lua_State *L, void *memory)
{
    if (memory == NULL)
        lumat_raise(L, "load: out of memory");
    return memory;
}

/* --- bytes ---------------------------------------------------------------- */

/* A part of the window that one core reads. */
typedef struct read_job {
    const table_reader *t;
    size_t from, length; /* in the window */
    volatile int error;  /* -1: the file is shorter now */
} read_job;

static void read_part(void *context, int64_t i)
{
    read_job *j = context;
    size_t first = (size_t)i * CHUNK;
    size_t length = j->length - first < CHUNK ? j->length - first : CHUNK;
    ssize_t n = lumat_read_fully(j->t->in->fd, j->t->text + j->from + first,
                                 length, (off_t)(j->t->at + first));
    if (n < (ssize_t)length)
        j->error = n < 0 ? errno : -1;
}

static void refuse_reading(lua_State *L, const table_reader *t, int error)
{
    if (error > 0)
        lumat_raise(L, "load: cannot read '%s': %s", t->in->path,
                    lumat_error_text(error));
    lumat_raise(L, "load: '%s' became shorter while it was read", t->in->path);
}

static size_t read_plain(lua_State *L, table_reader *t, size_t most)
{
    size_t left = t->in->size - t->at;
    read_job j = {t, t->used, left < most ? left : most, 0};
    gpu_on_cores((int64_t)((j.length + CHUNK - 1) / CHUNK), read_part, &j);
    if (j.error != 0)
        refuse_reading(L, t, j.error);
    t->at += j.length;
    lumat_input_goes_on(j.length);
    t->is_all = t->at == t->in->size;
    return j.length;
}

static void refuse_damaged(lua_State *L, const table_reader *t,
                           const char *what)
{
    if (t->row == 0)
        lumat_raise(L, "load: '%s' %s: none of its rows can be unpacked",
                    t->in->path, what);
    lumat_raise(L, "load: '%s' %s: {rows={1, %I}} reads those before that",
                t->in->path, what, (LUAI_UACINT)t->row);
}

/* All members of the packed file, one behind the other. What can be unpacked
 * before damage is given first. */
static size_t read_packed(lua_State *L, table_reader *t, size_t most)
{
    z_stream *z = &t->z;
    size_t used = 0;
    while (used < most && !t->is_all) {
        if (z->avail_in == 0 && t->at < t->in->size) {
            size_t left = t->in->size - t->at;
            size_t n = left < PACKED ? left : PACKED;
            if (lumat_read_fully(t->in->fd, t->packed, n, (off_t)t->at) !=
                (ssize_t)n)
                refuse_reading(L, t, -1);
            t->at += n;
            lumat_input_goes_on(n);
            z->next_in = t->packed;
            z->avail_in = (uInt)n;
        }
        if (t->has_ended) { /* what tape drives pad it with is its end, too */
            t->is_all = z->avail_in == 0 || *z->next_in != 0x1f;
            if (t->is_all)
                break;
            inflateReset(z);
            t->has_ended = 0;
        }
        uInt before = z->avail_in;
        uInt room = (uInt)(most - used < CHUNK ? most - used : CHUNK);
        z->next_out = (unsigned char *)t->text + t->used + used;
        z->avail_out = room;
        int result = inflate(z, Z_NO_FLUSH);
        used += room - z->avail_out;
        t->has_ended = result == Z_STREAM_END;
        int moved = z->avail_in < before || z->avail_out < room;
        int is_bad =
            result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR;
        int is_cut = !moved && result != Z_STREAM_END && t->at == t->in->size;
        if ((is_bad || is_cut) && used > 0)
            break; /* and told of with no byte before it */
        if (is_bad)
            refuse_damaged(L, t, "is damaged");
        if (is_cut)
            refuse_damaged(L, t, "is cut off");
        lumat_poll(L, 0);
    }
    return used;
}

/* Goes on in the file: what no row has taken comes to the beginning of the
 * window, which grows where that is most of it. */
static void fill_window(lua_State *L, table_reader *t)
{
    size_t left = t->used - t->start;
    memmove(t->text, t->text + t->start, left);
    t->start = 0;
    t->used = left;
    if (left > t->room / 2) {
        size_t room = 2 * t->room;
        if (room > (size_t)4 * LONGEST_ROW)
            lumat_raise(L, "load: %s:%I: a row of more than 1 GiB begins here",
                        t->in->path, (LUAI_UACINT)t->line);
        char *text = realloc(t->text, room + SLACK);
        t->text = text != NULL ? text : t->text;
        need(L, text);
        t->room = room;
    }
    size_t most = t->room - t->used;
    t->used +=
        t->is_unpacking ? read_packed(L, t, most) : read_plain(L, t, most);
    memset(t->text + t->used, 0, SLACK);
    lumat_poll(L, 0);
}

static void open_window(lua_State *L, table_reader *t)
{
    size_t size = t->in->size;
    t->room = t->in->is_packed || size > WINDOW ? WINDOW : size + 1;
    t->text = need(L, malloc(t->room + SLACK));
    if (t->in->is_packed) {
        t->packed = need(L, malloc(PACKED));
        if (inflateInit2(&t->z, GZIP) != Z_OK)
            need(L, NULL);
        t->is_unpacking = 1;
    }
    fill_window(L, t);
}

/* --- options -------------------------------------------------------------- */

int lumat_csv_is_delimiter(char c)
{
    if (c == '\t' || c == ' ')
        return 1;
    return (unsigned char)c < 0x80 && ispunct((unsigned char)c) &&
           strchr("+-.\"", c) == NULL;
}

char lumat_csv_option_char(lua_State *L, int arg, const char *key,
                           int (*fits)(char c), const char *needs,
                           char otherwise)
{
    size_t length = 0;
    if (!lua_istable(L, arg))
        return otherwise;
    const char *text = NULL;
    if (lua_getfield(L, arg, key) == LUA_TSTRING)
        text = lua_tolstring(L, -1, &length);
    int absent = lua_isnil(L, -1);
    int is_off = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
    char c = length == 1 ? *text : 0;
    lua_pop(L, 1);
    if (absent)
        return otherwise;
    if (is_off && fits(0))
        return 0;
    if (length != 1 || !fits(c))
        lumat_raise(L, "%s: needs %s", key, needs);
    return c;
}

static int is_quote(char c)
{
    return c == 0 || (ispunct((unsigned char)c) && (unsigned char)c < 0x80);
}

int lumat_csv_is_decimal(char c)
{
    return c == '.' || c == ',';
}

static int is_thousands(char c)
{
    return c != 0 && strchr(",.' _", c) != NULL;
}

static int is_comment(char c)
{
    return c != 0 && strchr("#%!;/*'$&@~^|", c) != NULL;
}

/* The marks of the form; each has one meaning. */
static void read_marks(lua_State *L, lumat_csv *c, char delimiter)
{
    c->delimiter =
        lumat_csv_option_char(L, 2, "delimiter", lumat_csv_is_delimiter,
                              LUMAT_CSV_DELIMITER, delimiter);
    c->decimal = lumat_csv_option_char(L, 2, "decimal", lumat_csv_is_decimal,
                                       "\".\" or \",\"", '.');
    c->thousands =
        lumat_csv_option_char(L, 2, "thousands", is_thousands,
                              "one of \",\", \".\", \"'\", \"_\" and \" \"", 0);
    c->quote = lumat_csv_option_char(
        L, 2, "quote", is_quote, "one character such as \"'\", or false", '"');
    c->comment = lumat_csv_option_char(
        L, 2, "comment", is_comment, "one character such as \"#\" or \"%\"", 0);
    if (c->thousands == c->decimal)
        lumat_raise(L,
                    "thousands: is \"%c\", which is the decimal mark: give "
                    "{decimal=} the other",
                    c->decimal);
    char marks[] = {c->delimiter, c->quote, c->comment, 0};
    for (int i = 0; i < 3; i++)
        for (int j = i + 1; j < 3; j++)
            if (marks[i] != 0 && marks[i] == marks[j])
                lumat_raise(L,
                            "load: \"%c\" cannot be two of delimiter, quote "
                            "and comment",
                            marks[i]);
    if (c->delimiter != 0 &&
        (c->delimiter == c->decimal || c->delimiter == c->thousands))
        lumat_raise(L,
                    "load: \"%c\" is the delimiter, and cannot be in "
                    "numbers, too",
                    c->delimiter);
}

/* na: words and numbers that mean nothing is there. */
static void read_missing(lua_State *L, table_reader *t, int anchor)
{
    lumat_csv *c = &t->c;
    if (lua_getfield(L, 2, "na") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    c->missing = t->word;
    c->missing_values = t->value;
    int is_list = lua_istable(L, -1);
    lua_Integer count = is_list ? (lua_Integer)lua_rawlen(L, -1) : 1;
    for (lua_Integer i = 1; i <= count; i++) {
        if (is_list)
            lua_rawgeti(L, -1, i);
        else
            lua_pushvalue(L, -1);
        int type = lua_type(L, -1);
        if (type != LUA_TSTRING && type != LUA_TNUMBER)
            lumat_raise(L, "na: element %I is %s, not a string or a number",
                        (LUAI_UACINT)i, lumat_push_brief(L, -1));
        if (i > MOST_WORDS)
            lumat_raise(L, "na: has more than %d words", MOST_WORDS);
        size_t length;
        const char *word = lua_tolstring(L, -1, &length);
        double *value = &t->value[c->missing_value_count];
        c->missing_value_count +=
            length > 0 && lumat_parse_f64(word, length, value) == length;
        t->word[c->missing_count++] = (lumat_csv_text){word, length};
        lua_rawseti(L, anchor, (lua_Integer)lua_rawlen(L, anchor) + 1);
    }
    lua_pop(L, 1);
}

/* A whole number under key, or otherwise. */
static int64_t whole_option(lua_State *L, const char *key, int64_t otherwise)
{
    if (lua_getfield(L, 2, key) != LUA_TNIL)
        otherwise = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return otherwise;
}

/* header: "auto", true, false, or the names. */
static void read_header(lua_State *L, lumat_csv *c)
{
    c->header = LUMAT_HEADER_AUTO;
    int type = lua_getfield(L, 2, "header");
    if (type == LUA_TBOOLEAN)
        c->header = lua_toboolean(L, -1) ? LUMAT_HEADER_YES : LUMAT_HEADER_NO;
    else if (type == LUA_TTABLE)
        c->header = LUMAT_HEADER_NO;
    else if (type != LUA_TNIL &&
             (type != LUA_TSTRING || strcmp(lua_tostring(L, -1), "auto") != 0))
        lumat_raise(L,
                    "header: needs true, false, \"auto\" or a list of names");
    lua_pop(L, 1);
}

static void read_form(lua_State *L, table_reader *t, char delimiter, int anchor)
{
    lumat_csv *c = &t->c;
    *c = (lumat_csv){.delimiter = delimiter,
                     .decimal = '.',
                     .quote = '"',
                     .labels = &t->labels,
                     .seed = (uint64_t)(uintptr_t)t ^
                             (uint64_t)(lumat_now() * 1e9)};
    t->dtype = lumat_option_dtype(L, 2, GPU_ALL_DTYPES);
    t->device = lumat_option_device(L, 2, NULL);
    if (!lua_istable(L, 2))
        return;
    read_header(L, c);
    read_marks(L, c, delimiter);
    read_missing(L, t, anchor);
    c->skip = whole_option(L, "skip", 0);
    lua_getfield(L, 2, "fill");
    c->fill = lua_toboolean(L, -1);
    lua_pop(L, 1);
}

/* --- columns -------------------------------------------------------------- */

/* Raises that the table is not as it should be; most messages begin with a
 * line. */
static int refuse_table(lua_State *L, const table_reader *t,
                        const char *message)
{
    int is_line = *message >= '0' && *message <= '9';
    return lumat_raise(L, is_line ? "load: %s:%s" : "load: '%s' %s",
                       t->in->path, message);
}

static int has_option(lua_State *L, const char *key)
{
    int has = lua_istable(L, 2) && lua_getfield(L, 2, key) != LUA_TNIL;
    lua_pop(L, lua_istable(L, 2));
    return has;
}

/* Finds the form of the table in as much text as it takes. */
static void open_table(lua_State *L, table_reader *t)
{
    char message[LUMAT_MESSAGE] = "";
    int opened;
    lumat_csv_prepare();
    char delimiter = t->c.delimiter;
    while ((opened = lumat_csv_open(&t->c, t->text, t->used, t->is_all, message,
                                    sizeof message)) < 0) {
        t->c.delimiter = delimiter;
        t->line = 1;
        fill_window(L, t);
    }
    if (!opened)
        refuse_table(L, t, message);
    t->start = t->c.data;
    t->line = t->c.line;
    size_t cols = (size_t)t->c.cols;
    t->is_whole = !has_option(L, "columns");
    t->is_wide = cols > WIDE && t->is_whole && !has_option(L, "types") &&
                 !has_option(L, "as");
    t->chosen_count = t->is_wide ? t->c.cols : 0;
    if (t->is_wide)
        return;
    t->column = need(L, calloc(cols, sizeof *t->column));
    t->finest = need(L, calloc(cols, 1));
    t->chosen = need(L, calloc(cols, sizeof *t->chosen));
    t->c.column = t->column;
}

/* Pushes the list of names, or nil. */
static void push_names(lua_State *L, table_reader *t)
{
    const lumat_csv *c = &t->c;
    lumat_csv_text name;
    size_t at = c->names;
    if (lua_istable(L, 2) && lua_getfield(L, 2, "header") == LUA_TTABLE) {
        lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
        if (count != c->cols)
            lumat_raise(L, "header: has %I names for the %I columns of '%s'",
                        (LUAI_UACINT)count, (LUAI_UACINT)c->cols, t->in->path);
        lua_createtable(L, (int)count, 0);
        for (lua_Integer j = 1; j <= count; j++) {
            if (lua_rawgeti(L, -2, j) != LUA_TSTRING)
                lumat_raise(L, "header: name %I is %s, not a string",
                            (LUAI_UACINT)j, lumat_push_brief(L, -1));
            lua_rawseti(L, -2, j);
        }
        lua_remove(L, -2);
        t->has_names = 1;
        return;
    }
    if (lua_istable(L, 2))
        lua_pop(L, 1);
    if (!c->has_names) {
        lua_pushnil(L);
        return;
    }
    lua_createtable(L, (int)c->cols, 0);
    for (lua_Integer j = 1; lumat_csv_name(c, t->text, t->used, &at, &name);
         j++) {
        luaL_Buffer b;
        char *to = luaL_buffinitsize(L, &b, name.length + 1);
        luaL_pushresultsize(&b, lumat_csv_unquote(c, name, to));
        lua_rawseti(L, -2, j);
    }
    t->has_names = 1;
}

/* Raises that there is no such column; names: the list, or nil. */
static void refuse_column(lua_State *L, const table_reader *t, const char *key,
                          const char *wanted, int names)
{
    luaL_Buffer b;
    if (!t->has_names)
        lumat_raise(L,
                    "%s: '%s' has no names: give the column's place in place "
                    "of \"%s\", or {header={names}}",
                    key, t->in->path, wanted);
    luaL_buffinit(L, &b);
    for (lua_Integer j = 1; j <= t->c.cols && j <= 1000; j++) {
        lua_rawgeti(L, names, j);
        luaL_addvalue(&b);
        luaL_addchar(&b, '\n');
    }
    luaL_pushresult(&b);
    lua_pushstring(L, luaL_gsub(L, luaL_gsub(L, lua_tostring(L, -1), " ", "_"),
                                "\n", " "));
    const char *near = lumat_nearest(L, wanted, lua_tostring(L, -1))
                           ? lua_tostring(L, -1)
                           : NULL;
    if (near != NULL)
        lumat_raise(L, "%s: '%s' has no column \"%s\": did you mean \"%s\"?",
                    key, t->in->path, wanted, near);
    lumat_raise(L, "%s: '%s' has no column \"%s\"", key, t->in->path, wanted);
}

/* The place, from 0, of the column that the value on top names. */
static int64_t find_column(lua_State *L, const table_reader *t, const char *key,
                           int names)
{
    if (lua_type(L, -1) == LUA_TNUMBER) {
        int is_whole;
        lua_Integer j = lua_tointegerx(L, -1, &is_whole);
        if (!is_whole || j < 1 || j > t->c.cols)
            lumat_raise(L, "%s: there is no column %s of the %I of '%s'", key,
                        lua_tostring(L, -1), (LUAI_UACINT)t->c.cols,
                        t->in->path);
        return j - 1;
    }
    if (lua_type(L, -1) != LUA_TSTRING)
        lumat_raise(L, "%s: a column is its name or its place, not %s", key,
                    lumat_push_brief(L, -1));
    for (lua_Integer j = 1; t->has_names && j <= t->c.cols; j++) {
        lua_rawgeti(L, names, j);
        int is_it = lua_rawequal(L, -1, -2);
        lua_pop(L, 1);
        if (is_it)
            return j - 1;
    }
    refuse_column(L, t, key, lua_tostring(L, -1), names);
    return 0;
}

/* columns: which of them, and in which order. */
static void choose_columns(lua_State *L, table_reader *t, int names)
{
    int top = lua_gettop(L);
    int64_t cols = t->c.cols;
    for (int64_t j = 0; j < cols && t->is_whole && !t->is_wide; j++)
        t->chosen[t->chosen_count++] = j;
    if (t->is_whole)
        return;
    lua_getfield(L, 2, "columns");
    for (int64_t j = 0; j < cols; j++)
        t->column[j].is_skipped = 1;
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    if (count == 0)
        lumat_raise(L, "columns: is an empty list");
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, top + 1, i);
        int64_t j = find_column(L, t, "columns", names);
        if (!t->column[j].is_skipped)
            lumat_raise(L, "columns: %s is named twice",
                        lumat_push_brief(L, -1));
        t->column[j].is_skipped = 0;
        t->chosen[t->chosen_count++] = j;
        lua_settop(L, top + 1);
    }
    lua_settop(L, top);
}

/* Takes the type that the value on top stands for. */
static void give_type(lua_State *L, lumat_csv_column *column, int anchor)
{
    static const char *const words[] = {"number", "truth", "date", "text"};
    static const lumat_csv_type types[] = {LUMAT_CSV_NUMBER, LUMAT_CSV_TRUTH,
                                           LUMAT_CSV_DATE, LUMAT_CSV_TEXT};
    const char *word =
        lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    column->is_given = 1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) == 0) {
            column->type = types[i];
            return;
        }
    }
    if (strchr(word, '%') != NULL && lumat_csv_is_date_format(word)) {
        column->type = LUMAT_CSV_DATE;
        column->format = word;
        lua_pushvalue(L, -1);
        lua_rawseti(L, anchor, (lua_Integer)lua_rawlen(L, anchor) + 1);
        return;
    }
    lumat_raise(L,
                "types: %s is none of \"number\", \"truth\", \"date\" and "
                "\"text\", and no format of dates such as \"%%d.%%m.%%Y\"",
                lumat_push_brief(L, -1));
}

/* types: one for all columns, or by names and places. */
static void read_types(lua_State *L, table_reader *t, int names, int anchor)
{
    int top = lua_gettop(L);
    int type = lua_istable(L, 2) ? lua_getfield(L, 2, "types") : LUA_TNIL;
    if (type == LUA_TSTRING)
        for (int64_t j = 0; j < t->c.cols; j++)
            give_type(L, &t->column[j], anchor);
    if (type == LUA_TTABLE) {
        for (lua_pushnil(L); lua_next(L, top + 1); lua_settop(L, top + 2)) {
            lua_pushvalue(L, -2);
            int64_t j = find_column(L, t, "types", names);
            lua_pop(L, 1);
            give_type(L, &t->column[j], anchor);
        }
    }
    lua_settop(L, top);
}

/* Pushes how an option names the column: age, ["a b"], [3]. */
static const char *push_key(lua_State *L, const table_reader *t, int64_t col,
                            int names)
{
    if (!t->has_names || names == 0 ||
        lua_rawgeti(L, names, (lua_Integer)col + 1) != LUA_TSTRING)
        return lua_pushfstring(L, "[%I]", (LUAI_UACINT)col + 1);
    const char *name = lua_tostring(L, -1);
    int is_plain = isalpha((unsigned char)*name) || *name == '_';
    for (const char *p = name; *p != '\0'; p++)
        is_plain &= isalnum((unsigned char)*p) || *p == '_';
    return is_plain ? name : lua_pushfstring(L, "[\"%s\"]", name);
}

/* What helps against a cell that is not of its column's type. */
static const char *push_advice(lua_State *L, const table_reader *t,
                               const lumat_csv_chunk *k, int names)
{
    lumat_csv_type type =
        t->is_wide ? t->c.same.type : t->column[k->bad_col].type;
    const char *key = push_key(L, t, k->bad_col, names);
    const char *as = "";
    if (lua_istable(L, 2) && lua_getfield(L, 2, "as") == LUA_TSTRING)
        as = lua_tostring(L, -1);
    if (strcmp(as, "matrix") == 0)
        return "a matrix has numbers alone: {as=\"frame\"} takes the others, "
               "{columns={…}} leaves them out";
    const char *quote = strchr(k->message, '"');
    if (quote != NULL && type == LUMAT_CSV_NUMBER && t->c.decimal == '.' &&
        strchr(quote, ',') != NULL)
        return "decimals take a point, not a comma, unless {decimal=\",\"} is "
               "given";
    if (t->row + k->rows == 0 && t->c.header != LUMAT_HEADER_YES)
        return "for a line of names give {header=true}";
    return lua_pushfstring(
        L,
        "the cells above it are %s: leave it empty, name it in {na=}, or give "
        "{types={%s=\"text\"}}",
        type == LUMAT_CSV_TRUTH  ? "truths"
        : type == LUMAT_CSV_DATE ? "dates"
                                 : "numbers",
        key);
}

/* Raises what a chunk failed with. */
static void refuse_chunk(lua_State *L, const table_reader *t,
                         const lumat_csv_chunk *k, int names)
{
    long long line = (long long)(t->line + k->bad_line);
    char message[2 * LUMAT_MESSAGE];
    if (k->bad_col < 0) {
        snprintf(message, sizeof message, "%lld: %s", line, k->message);
        refuse_table(L, t, message);
    }
    int is_type = strstr(k->message, "\" is not ") != NULL;
    const char *advice = is_type ? push_advice(L, t, k, names) : NULL;
    snprintf(message, sizeof message, "%lld: column %lld: %s%s%s%s", line,
             (long long)k->bad_col + 1, k->message, advice ? " (" : "",
             advice ? advice : "", advice ? ")" : "");
    refuse_table(L, t, message);
}

/* Decides the columns' types, and what the result is. */
static void find_types(lua_State *L, table_reader *t, int names, int anchor)
{
    lumat_csv *c = &t->c;
    const char *as = "";
    read_types(L, t, names, anchor);
    if (lua_istable(L, 2) && lua_getfield(L, 2, "as") == LUA_TSTRING)
        as = lua_tostring(L, -1);
    int is_complex = 0, is_real = t->dtype != GPU_ALL_DTYPES;
    if (is_real && gpu_dtype_is_complex(t->dtype))
        is_complex = 1;
    else
        is_complex = lumat_csv_find_types(c, t->text, t->used);
    int64_t other = -1;
    for (int64_t j = 0; j < c->cols && !t->is_wide; j++) {
        lumat_csv_type type = c->column[j].type;
        if (!c->column[j].is_skipped && other < 0 &&
            (type == LUMAT_CSV_TEXT || type == LUMAT_CSV_DATE))
            other = j;
    }
    t->is_frame =
        strcmp(as, "frame") == 0 || (other >= 0 && strcmp(as, "matrix") != 0);
    for (int64_t j = 0; other >= 0 && !t->is_frame && j < c->cols; j++) {
        lumat_csv_column *column = &c->column[j];
        if (column->type != LUMAT_CSV_TEXT && column->type != LUMAT_CSV_DATE)
            continue;
        if (column->is_given)
            lumat_raise(L, "types: a matrix has numbers alone: give "
                           "{as=\"frame\"}");
        column->type = LUMAT_CSV_NUMBER; /* reading it tells what is there */
    }
    if (t->is_frame && t->dtype != GPU_ALL_DTYPES && t->dtype != GPU_F32 &&
        t->dtype != GPU_F64)
        lumat_raise(L, "dtype: the numbers of a frame are f32 or f64, not %s",
                    gpu_dtype_name(t->dtype));
    if (t->is_frame && is_complex)
        lumat_raise(L,
                    "load: '%s' has complex numbers, which a frame does not "
                    "hold: {columns={…}} leaves them out",
                    t->in->path);
    if (is_complex) {
        gpu_dtype real = is_real ? t->dtype : lumat_default_dtype(L);
        t->dtype = gpu_dtype_made_complex(real);
        if (is_real && !gpu_dtype_is_complex(real))
            is_complex = 0, t->dtype = real;
    }
    c->same = (lumat_csv_column){.type = is_complex ? LUMAT_CSV_COMPLEX
                                                    : LUMAT_CSV_NUMBER};
    for (int64_t j = 0; j < c->cols && !t->is_wide && !t->is_frame; j++) {
        lumat_csv_column *column = &c->column[j];
        if (is_complex)
            column->type = LUMAT_CSV_COMPLEX;
        else if (column->type == LUMAT_CSV_COMPLEX)
            column->type = LUMAT_CSV_NUMBER;
    }
    if (t->dtype == GPU_ALL_DTYPES)
        t->dtype = t->is_frame ? GPU_F64 : lumat_default_dtype(L);
}

/* --- numbers of chunks ---------------------------------------------------- */

/* Bytes of an element of the column, as chunks have it. */
static size_t element_size(const table_reader *t, const lumat_csv_column *c)
{
    if (c->type == LUMAT_CSV_COMPLEX)
        return 2 * sizeof(double);
    if (c->type == LUMAT_CSV_TEXT || c->type == LUMAT_CSV_DATE)
        return sizeof(double);
    return t->dtype == GPU_F64 ? sizeof(double) : sizeof(float);
}

/* Makes room for the numbers of chunks: row after row for a matrix, column
 * after column for a frame. */
static void place_columns(table_reader *t, size_t row)
{
    size_t at = 0;
    for (int64_t i = 0; i < t->chosen_count; i++) {
        lumat_csv_column *column = &t->column[t->chosen[i]];
        size_t size = element_size(t, column);
        column->is_wide = t->dtype == GPU_F64;
        column->offset = at;
        column->step = t->is_frame ? size : row;
        at += t->is_frame ? size * (size_t)t->chunk_rows : size;
    }
}

static void make_chunks(lua_State *L, table_reader *t)
{
    lumat_csv *c = &t->c;
    size_t row = 0, cols = (size_t)c->cols;
    size_t text = t->used < CHUNK && t->is_all ? t->used : CHUNK;
    c->same.is_wide = t->dtype == GPU_F64;
    c->same.step = element_size(t, &c->same); /* from column to column */
    for (int64_t i = 0; i < t->chosen_count && !t->is_wide; i++)
        row += element_size(t, &c->column[t->chosen[i]]);
    t->chunk_rows = t->is_wide ? 1 : (int64_t)(text / cols) + 2;
    size_t bytes =
        t->is_wide ? LUMAT_PIECE * c->same.step : (size_t)t->chunk_rows * row;
    size_t most = MOST_ROOM / bytes, useful = t->used / CHUNK + 1;
    most = t->is_wide || most < 1 ? 1 : most < CHUNKS ? most : CHUNKS;
    t->chunk_count = (int)(t->is_all && most > useful ? useful : most);
    for (int i = 0; i < t->chunk_count; i++) {
        t->chunk[i].to = need(L, malloc(bytes));
        if (!t->is_wide)
            t->chunk[i].finest = need(L, calloc(cols, 1));
    }
    if (t->is_wide)
        return;
    place_columns(t, row);
    t->label_count = need(L, calloc(cols, sizeof *t->label_count));
}

/* The codes of labels that are new to a chunk become those of all. */
static void merge_labels(lua_State *L, table_reader *t, lumat_csv_chunk *k)
{
    lumat_labels *fresh = &k->fresh;
    if (fresh->count == 0)
        return;
    if (fresh->count > t->codes_room) {
        uint32_t *codes = realloc(t->codes, 2 * fresh->count * sizeof *codes);
        need(L, codes);
        t->codes = codes;
        t->codes_room = 2 * fresh->count;
    }
    for (size_t i = 0; i < fresh->count; i++) {
        const lumat_label *f = &fresh->list[i];
        const char *text = fresh->bytes + f->at;
        const lumat_label *known =
            lumat_labels_find(&t->labels, f->hash, f->column, text, f->length);
        if (known == NULL) {
            uint32_t code = ++t->label_count[f->column];
            known = lumat_labels_add(&t->labels, f->hash, f->column, text,
                                     f->length, code);
        }
        need(L, (void *)known);
        t->codes[i] = known->code;
    }
    for (int64_t i = 0; i < t->chosen_count; i++) {
        const lumat_csv_column *column = &t->column[t->chosen[i]];
        if (column->type != LUMAT_CSV_TEXT)
            continue;
        double *values = (double *)(void *)(k->to + column->offset);
        for (int64_t r = 0; r < k->rows; r++)
            if (values[r] < 0)
                values[r] = t->codes[(size_t)(-1 - values[r])];
    }
    lumat_labels_clear(fresh);
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

/* --- results -------------------------------------------------------------- */

/* The result's parts are matrices in a table, in Lua, at `parts`. */
typedef struct table_result {
    int parts;
    int64_t count;    /* of parts */
    int64_t capacity; /* rows there is room for */
    int64_t rows;     /* that are there */
    /* Chunks whose rows are still to be copied, and where to; all cores do so
     * where the parts lie in host memory: then these are their bytes. */
    char **own;
    int late[CHUNKS], late_count;
    int64_t late_row[CHUNKS];
    const table_reader *t;
} table_result;

static gpu_dtype part_dtype(const table_reader *t, int64_t i)
{
    if (!t->is_frame)
        return t->dtype;
    lumat_csv_type type = t->column[t->chosen[i]].type;
    return type == LUMAT_CSV_TEXT || type == LUMAT_CSV_DATE ? GPU_F64
                                                            : t->dtype;
}

/* Pushes a matrix of so many rows. */
static gpu_matrix *push_part(lua_State *L, const table_reader *t, int64_t i,
                             int64_t rows)
{
    gpu_matrix *m = lumat_new_matrix(L);
    lumat_try(L, gpu_create(m, t->device, part_dtype(t, i), t->is_frame ? 1 : 2,
                            rows, t->is_frame ? 1 : t->chosen_count));
    lumat_account(L, m);
    return m;
}

/* Notes where the bytes of the parts are, if they are the host's. */
static void find_own(lua_State *L, table_result *r)
{
    for (int64_t i = 0; r->own != NULL && i < r->count; i++) {
        lua_rawgeti(L, r->parts, (lua_Integer)i + 1);
        r->own[i] = gpu_own_bytes(lumat_test_matrix(L, -1));
        if (r->own[i] == NULL)
            r->own = NULL;
        lua_pop(L, 1);
    }
}

static table_result push_parts(lua_State *L, const table_reader *t,
                               int64_t capacity)
{
    table_result r = {.count = t->is_frame ? t->chosen_count : 1,
                      .capacity = capacity,
                      .t = t};
    r.own = lua_newuserdatauv(L, (size_t)r.count * sizeof *r.own, 0);
    lua_createtable(L, (int)r.count, 0);
    r.parts = lua_gettop(L);
    for (int64_t i = 0; i < r.count; i++) {
        push_part(L, t, i, capacity);
        lua_rawseti(L, r.parts, (lua_Integer)i + 1);
    }
    find_own(L, &r);
    return r;
}

/* Gives the parts room for so many rows, of which the first stay. */
static void resize_parts(lua_State *L, const table_reader *t, table_result *r,
                         int64_t capacity)
{
    if (capacity == r->capacity)
        return;
    gpu_matrix *old_rows = lumat_new_matrix(L), *new_rows = lumat_new_matrix(L);
    for (int64_t i = 0; i < r->count; i++) {
        lua_rawgeti(L, r->parts, (lua_Integer)i + 1);
        gpu_matrix *old = lumat_test_matrix(L, -1);
        gpu_matrix *new = push_part(L, t, i, capacity);
        gpu_slice rows = {0, 1, r->rows}, cols = {0, 1, old->cols};
        if (r->rows > 0) {
            lumat_try(L, gpu_view_block(old, rows, cols, old_rows));
            lumat_try(L, gpu_view_block(new, rows, cols, new_rows));
            lumat_try(L, gpu_copy(old_rows, new_rows));
            gpu_release(old_rows);
            gpu_release(new_rows);
        }
        lua_rawseti(L, r->parts, (lua_Integer)i + 1);
        gpu_release(old);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    r->capacity = capacity;
    find_own(L, r);
}

static void upload_rows(lua_State *L, const gpu_matrix *m, int64_t first,
                        int64_t count, const void *host)
{
    gpu_matrix *piece = lumat_new_matrix(L);
    gpu_slice rows = {first, 1, count}, cols = {0, 1, m->cols};
    lumat_try(L, gpu_view_block(m, rows, cols, piece));
    lumat_try(L, gpu_upload(piece, host));
    gpu_release(piece);
    lua_pop(L, 1);
}

/* What a chunk has of part i. */
static const char *part_of_chunk(const table_reader *t,
                                 const lumat_csv_chunk *k, int64_t i)
{
    return t->is_frame ? k->to + t->column[t->chosen[i]].offset : k->to;
}

static void copy_late(void *context, int64_t n)
{
    const table_result *r = context;
    const table_reader *t = r->t;
    const lumat_csv_chunk *k = &t->chunk[r->late[n]];
    for (int64_t i = 0; i < r->count; i++) {
        size_t row = gpu_dtype_size(part_dtype(t, i));
        if (!t->is_frame)
            row *= (size_t)t->chosen_count;
        memcpy(r->own[i] + (size_t)r->late_row[n] * row, part_of_chunk(t, k, i),
               (size_t)k->rows * row);
    }
}

static void copy_all_late(table_result *r)
{
    if (r != NULL && r->late_count > 0)
        gpu_on_cores(r->late_count, copy_late, r);
    if (r != NULL)
        r->late_count = 0;
}

/* Adds the rows that chunk i has read. They stay in it until copy_all_late. */
static void add_rows(lua_State *L, table_reader *t, table_result *r, int chunk)
{
    lumat_csv_chunk *k = &t->chunk[chunk];
    if (r->rows + k->rows > r->capacity) {
        copy_all_late(r);
        resize_parts(L, t, r,
                     r->capacity + r->capacity / 2 + k->rows + CHUNK / 64);
    }
    merge_labels(L, t, k);
    if (t->dtype == GPU_BOOL)
        to_truths((float *)(void *)k->to, k->rows * t->chosen_count);
    if (t->dtype == GPU_C64)
        to_singles((double *)(void *)k->to, 2 * k->rows * t->chosen_count);
    if (r->own != NULL) {
        r->late[r->late_count] = chunk;
        r->late_row[r->late_count++] = r->rows;
    }
    for (int64_t i = 0; r->own == NULL && i < r->count; i++) {
        lua_rawgeti(L, r->parts, (lua_Integer)i + 1);
        upload_rows(L, lumat_test_matrix(L, -1), r->rows, k->rows,
                    part_of_chunk(t, k, i));
        lua_pop(L, 1);
    }
    for (int64_t j = 0; t->is_frame && j < t->c.cols; j++)
        t->finest[j] |= k->finest[j];
    r->rows += k->rows;
}

/* --- rounds --------------------------------------------------------------- */

static void read_chunk(void *context, int64_t i)
{
    table_reader *t = context;
    if (!gpu_is_interrupted())
        lumat_csv_read(&t->c, &t->chunk[i]);
}

static void look_for_quotes(void *context, int64_t i)
{
    table_reader *t = context;
    const char *first = t->text + t->start + (size_t)i * CHUNK;
    const char *end = t->text + t->used;
    if (end - first > CHUNK)
        end = first + CHUNK;
    t->is_odd[i] = lumat_csv_count(first, end, t->c.quote) % 2 != 0;
}

static int goes_on(void)
{
    return !gpu_is_interrupted();
}

/* Reads a chunk from p on. */
static void begin_chunk(const table_reader *t, lumat_csv_chunk *k,
                        const char *p, int64_t most)
{
    lumat_labels_clear(&k->fresh);
    k->next = p;
    k->end = t->text + t->used;
    k->is_last = t->is_all;
    k->most_rows = most < t->chunk_rows ? most : t->chunk_rows;
    k->shift = 0;
    k->col = k->most_cells = 0;
}

/* Cuts the window into chunks, as many as so many rows are likely to need, and
 * reads them. Returns how many. */
static int read_chunks(table_reader *t, int64_t most)
{
    const char *first = t->text + t->start, *end = t->text + t->used;
    size_t length = t->used - t->start;
    int64_t count = (int64_t)((length + CHUNK - 1) / CHUNK);
    double wanted = (double)most * t->row_bytes / CHUNK + 1;
    if (count > t->chunk_count)
        count = t->chunk_count;
    if ((double)count > wanted)
        count = (int64_t)wanted;
    int has_quotes = count > 1 && t->c.quote != 0 &&
                     memchr(first, t->c.quote, length) != NULL;
    if (has_quotes)
        gpu_on_cores(count, look_for_quotes, t);
    int is_quoted = 0;
    for (int64_t i = 0; i < count; i++) {
        lumat_csv_chunk *k = &t->chunk[i];
        const char *at = first + (size_t)i * CHUNK;
        const char *limit = end - at > CHUNK ? at + CHUNK : end;
        const char *begin =
            i == 0 || (at[-1] == '\n' && !is_quoted)
                ? at
                : lumat_csv_line_behind(&t->c, at, limit, is_quoted);
        is_quoted ^= has_quotes && t->is_odd[i];
        begin_chunk(t, k, begin, most);
        t->begin[i] = begin;
        k->limit = limit;
    }
    t->c.goes_on = goes_on;
    if (count == 1)
        read_chunk(t, 0);
    else
        gpu_on_cores(count, read_chunk, t);
    return (int)count;
}

/* Takes at most so many rows, all of one window, into r, or, where that is
 * NULL, passes them. Returns how many. */
static int64_t take_rows(lua_State *L, table_reader *t, table_result *r,
                         int64_t most, int names)
{
    const char *p = t->text + t->start, *first = p;
    int64_t left = most, line = t->line;
    t->c.is_counting = r == NULL;
    int count = read_chunks(t, most), is_done = 0;
    lumat_poll(L, 0);
    for (int i = 0; i < count && !is_done; i++) {
        lumat_csv_chunk *k = &t->chunk[i];
        if (p >= k->limit)
            continue;
        if (t->begin[i] != p) {
            begin_chunk(t, k, p, left);
            lumat_csv_read(&t->c, k);
        }
        for (;;) {
            if (k->rows > left) {
                begin_chunk(t, k, p, left);
                lumat_csv_read(&t->c, k);
            }
            lumat_poll(L, 0);
            if (k->rows > 0 && r != NULL)
                add_rows(L, t, r, i);
            left -= k->rows;
            t->row += k->rows;
            if (k->has_failed && left > 0)
                refuse_chunk(L, t, k, names);
            t->line += k->lines;
            p = k->next;
            t->start = (size_t)(p - t->text);
            is_done = k->needs_more || left == 0;
            if (is_done || p >= k->limit)
                break;
            copy_all_late(r);
            begin_chunk(t, k, p, left);
            lumat_csv_read(&t->c, k);
        }
    }
    copy_all_late(r);
    int64_t rows = most - left;
    if (rows > 0 && t->line > line)
        t->row_bytes = (double)(p - first) / (double)rows;
    return rows;
}

/* A row with so many columns that it is read in pieces. It is all in the
 * window. */
static void take_wide_row(lua_State *L, table_reader *t, table_result *r,
                          int names)
{
    lumat_csv_chunk *k = &t->chunk[0];
    gpu_matrix *piece = lumat_new_matrix(L);
    if (r->rows == r->capacity)
        resize_parts(L, t, r, r->capacity + r->capacity / 2 + 1);
    lua_rawgeti(L, r->parts, 1);
    const gpu_matrix *all = lumat_test_matrix(L, -1);
    int64_t done = 0;
    begin_chunk(t, k, t->text + t->start, 1);
    k->limit = k->end;
    t->c.is_counting = 0;
    do {
        int64_t first = k->col;
        k->shift = (size_t)first * t->c.same.step;
        k->most_cells = LUMAT_PIECE;
        lumat_csv_read(&t->c, k);
        lumat_poll(L, 0);
        if (k->has_failed)
            refuse_chunk(L, t, k, names);
        if (k->rows == 0 && k->col == 0)
            break; /* lines of blanks alone */
        int64_t n = (k->rows > 0 ? t->c.cols : k->col) - first;
        if (t->dtype == GPU_BOOL)
            to_truths((float *)(void *)k->to, n);
        if (t->dtype == GPU_C64)
            to_singles((double *)(void *)k->to, 2 * n);
        gpu_slice rows = {r->rows, 1, 1}, cols = {done, 1, n};
        lumat_try(L, gpu_view_block(all, rows, cols, piece));
        lumat_try(L, gpu_upload(piece, k->to));
        gpu_release(piece);
        done += n;
    } while (k->rows == 0);
    r->rows += k->rows;
    t->row += k->rows;
    t->line += k->lines;
    t->start = (size_t)(k->next - t->text);
    lua_pop(L, 2);
}

/* Is the first row of the window all in it? What is wrong with it is told when
 * it is read. */
static int has_wide_row(table_reader *t)
{
    lumat_csv_chunk *k = &t->chunk[0];
    begin_chunk(t, k, t->text + t->start, 1);
    k->limit = k->end;
    t->c.is_counting = 1;
    lumat_csv_read(&t->c, k);
    return !k->needs_more;
}

/* Reads up to `most` rows into r, or passes them where that is NULL. Returns
 * how many there were. */
static int64_t read_rows(lua_State *L, table_reader *t, table_result *r,
                         int64_t most, int names)
{
    int64_t done = 0;
    while (done < most) {
        int64_t before = t->row;
        if (t->start == t->used && t->is_all)
            break;
        if (t->is_wide && r != NULL) {
            if (has_wide_row(t))
                take_wide_row(L, t, r, names);
        } else if (t->start < t->used) {
            take_rows(L, t, r, most - done, names);
        }
        done += t->row - before;
        if (t->row == before && t->is_all && t->start < t->used)
            continue; /* lines without cells were passed, or it fails */
        if (!t->is_all && (t->row == before || t->used - t->start < CHUNK))
            fill_window(L, t);
    }
    return done;
}

/* --- how much there is ---------------------------------------------------- */

typedef struct count_job {
    const table_reader *t;
    size_t first; /* byte of the file */
    int64_t *counts;
} count_job;

static void count_part(void *context, int64_t i)
{
    enum { BLOCK = 1 << 15 };
    const count_job *j = context;
    char bytes[BLOCK];
    size_t at = j->first + (size_t)i * CHUNK, end = at + CHUNK;
    int64_t count = 0;
    if (end > j->t->in->size)
        end = j->t->in->size;
    while (at < end && !gpu_is_interrupted()) {
        size_t length = end - at < BLOCK ? end - at : BLOCK;
        ssize_t n = lumat_read_fully(j->t->in->fd, bytes, length, (off_t)at);
        if (n <= 0)
            break; /* told of where it is read again */
        count += lumat_csv_count(bytes, bytes + n, '\n');
        at += (size_t)n;
    }
    j->counts[i] = count;
}

/* Is a line's end the last there is? Of a packed file nobody knows yet. */
static int ends_with_line(const table_reader *t)
{
    char last = 0;
    if (t->is_all)
        last = t->used > 0 ? t->text[t->used - 1] : 0;
    else if (!t->in->is_packed)
        lumat_read_fully(t->in->fd, &last, 1, (off_t)(t->in->size - 1));
    return last == '\n';
}

/* A guess at the rows that are left, which is right for most tables whose file
 * is not packed: there each line is one. */
static int64_t guess_rows(lua_State *L, table_reader *t, int64_t most)
{
    const lumat_input *in = t->in;
    const char *first = t->text + t->start, *end = t->text + t->used;
    int64_t lines = lumat_csv_count(first, end, '\n') + !ends_with_line(t);
    size_t known = t->used - t->start;
    t->row_bytes = (double)known / (double)(lines + 1) + 1;
    double left = (double)known;
    if (!t->is_all)
        left += in->is_packed ? 4.0 * (double)(in->size - t->at)
                              : (double)(in->size - t->at);
    double guess = t->is_all ? (double)lines : 1.05 * left / t->row_bytes + 16;
    if ((double)most < guess)
        return most;
    if (t->is_all || in->is_packed || most < INT64_MAX)
        return (int64_t)guess;
    size_t parts = (in->size - t->at + CHUNK - 1) / CHUNK;
    count_job j = {t, t->at,
                   lua_newuserdatauv(L, parts * sizeof(int64_t) + 1, 0)};
    memset(j.counts, 0, parts * sizeof(int64_t));
    gpu_on_cores((int64_t)parts, count_part, &j);
    lumat_poll(L, 0);
    for (size_t i = 0; i < parts; i++)
        lines += j.counts[i];
    lua_pop(L, 1);
    /* each cell takes a byte, in rows that are whole */
    double by_size = left / (double)t->c.cols + 1;
    return (double)lines < by_size ? lines : (int64_t)by_size;
}

/* --- what load gives ------------------------------------------------------ */

/* Pushes the names of the chosen columns, or nil; names: of all, or nil. */
static void push_chosen_names(lua_State *L, const table_reader *t, int names)
{
    if (!t->has_names || t->is_whole) {
        lua_pushvalue(L, names);
        return;
    }
    lua_createtable(L, (int)t->chosen_count, 0);
    for (int64_t i = 0; i < t->chosen_count; i++) {
        lua_rawgeti(L, names, (lua_Integer)t->chosen[i] + 1);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/* Is the text a number with a decimal comma, or a date with its day or month
 * first? They are texts as long as nobody says what they mean. */
static int is_comma_number(const char *text, size_t length)
{
    size_t commas = 0;
    for (size_t i = 0; i < length; i++) {
        int is_inside = i > 0 && i + 1 < length;
        commas += text[i] == ',' && is_inside;
        if (!isdigit((unsigned char)text[i]) &&
            !(is_inside && text[i] == '.') && !(is_inside && text[i] == ',') &&
            !(i == 0 && text[i] == '-'))
            return 0;
    }
    return commas == 1;
}

static int is_common_date(const char *text, size_t length)
{
    double seconds;
    return lumat_csv_read_date(text, length, "%d.%m.%Y", &seconds) ||
           lumat_csv_read_date(text, length, "%m/%d/%Y", &seconds) ||
           lumat_csv_read_date(text, length, "%d/%m/%Y", &seconds);
}

/* Notes at the prompt what the first label of a column may be. */
static void note_label(lua_State *L, const table_reader *t,
                       const lumat_label *label, int names)
{
    const char *text = t->labels.bytes + label->at;
    int64_t j = label->column;
    if (label->code != 1 || label->length > 20 || t->column[j].is_given)
        return;
    lua_pushlstring(L, text, label->length);
    const char *shown = lua_tostring(L, -1);
    if (is_comma_number(text, label->length))
        lumat_note(L, "decimal",
                   lua_pushfstring(
                       L,
                       "texts such as \"%s\" are read as numbers by "
                       "load(…, {decimal=\",\"%s})",
                       shown, strchr(shown, '.') ? ", thousands=\".\"" : ""));
    if (is_common_date(text, label->length))
        lumat_note(L, "dates",
                   lua_pushfstring(L,
                                   "texts such as \"%s\" are read as dates by "
                                   "load(…, {types={%s=\"%s\"}})",
                                   shown, push_key(L, t, j, names),
                                   strchr(text, '.') != NULL ? "%d.%m.%Y"
                                                             : "%m/%d/%Y"));
}

/* Sets labels in each description of a column of texts, all in the list at
 * `list`. */
static void set_labels(lua_State *L, const table_reader *t, int list, int names)
{
    lua_newtable(L); /* lists of labels, by the file's columns */
    for (int64_t i = 0; i < t->chosen_count; i++) {
        int64_t j = t->chosen[i];
        if (t->column[j].type != LUMAT_CSV_TEXT)
            continue;
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        lua_createtable(L, (int)t->label_count[j], 0);
        lua_pushvalue(L, -1);
        lua_rawseti(L, list + 1, (lua_Integer)j + 1);
        lua_setfield(L, -2, "labels");
        lua_pop(L, 1);
    }
    int64_t column = -1;
    for (size_t n = 0; n < t->labels.count; n++) {
        const lumat_label *label = &t->labels.list[n];
        if (label->column != column) {
            column = label->column;
            lua_settop(L, list + 1);
            note_label(L, t, label, names);
            lua_settop(L, list + 1);
            lua_rawgeti(L, list + 1, (lua_Integer)column + 1);
        }
        lua_pushlstring(L, t->labels.bytes + label->at, label->length);
        lua_rawseti(L, -2, label->code);
        lumat_poll(L, (int64_t)n);
    }
    lua_settop(L, list);
}

/* Pushes the format that shows all of a column's dates. */
static void push_format(lua_State *L, const table_reader *t, int64_t j)
{
    int has = t->finest[j];
    if (t->column[j].format != NULL)
        lua_pushstring(L, t->column[j].format);
    else
        lua_pushfstring(L, "%%Y-%%m-%%d%s%s%s",
                        has & LUMAT_DATE_T         ? "T"
                        : has & LUMAT_DATE_MINUTES ? " "
                                                   : "",
                        has & LUMAT_DATE_MINUTES ? "%H:%M" : "",
                        has & LUMAT_DATE_SECONDS ? ":%S" : "");
}

/* Pushes the list that frames are made of. */
static void push_columns(lua_State *L, const table_reader *t,
                         const table_result *r, int names)
{
    lua_createtable(L, (int)r->count, 0);
    int list = lua_gettop(L);
    for (int64_t i = 0; i < r->count; i++) {
        int64_t j = t->chosen[i];
        lumat_csv_type type = t->column[j].type;
        lua_createtable(L, 0, 4);
        if (t->has_names)
            lua_rawgeti(L, names, (lua_Integer)j + 1);
        else
            lua_pushfstring(L, "column%I", (LUAI_UACINT)j + 1);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, type == LUMAT_CSV_TEXT   ? "text"
                          : type == LUMAT_CSV_DATE ? "date"
                                                   : "number");
        lua_setfield(L, -2, "kind");
        lua_rawgeti(L, r->parts, (lua_Integer)i + 1);
        lua_setfield(L, -2, type == LUMAT_CSV_TEXT ? "codes" : "values");
        if (type == LUMAT_CSV_DATE) {
            push_format(L, t, j);
            lua_setfield(L, -2, "format");
        }
        lua_rawseti(L, list, (lua_Integer)i + 1);
    }
    set_labels(L, t, list, names);
}

/* Pushes the matrix and its names, or the frame; returns how many values. */
static int push_table(lua_State *L, table_reader *t, table_result *r, int names)
{
    resize_parts(L, t, r, r->rows);
    if (t->is_frame) {
        lumat_push_required(L, "frames");
        lua_getfield(L, -1, "make");
        push_columns(L, t, r, names);
        lua_call(L, 1, 1);
        return 1;
    }
    lua_rawgeti(L, r->parts, 1);
    if (!t->has_names)
        return 1;
    push_chosen_names(L, t, names);
    return 2;
}

/* rows: the first and the last, which may be left out. */
static void read_range(lua_State *L, int64_t *first, int64_t *last)
{
    *first = 1;
    *last = INT64_MAX;
    if (!has_option(L, "rows"))
        return;
    lua_getfield(L, 2, "rows");
    int64_t *const ends[] = {first, last};
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    for (int i = 0; i < 2 && i < count; i++) {
        int is_whole;
        lua_rawgeti(L, -1, i + 1);
        *ends[i] = lua_tointegerx(L, -1, &is_whole);
        if (!is_whole || *ends[i] < 1)
            lumat_raise(L, "rows: %s is no place of a row: they count from 1",
                        lumat_push_brief(L, -1));
        lua_pop(L, 1);
    }
    if (count < 1 || count > 2 || *last < *first)
        lumat_raise(L, "rows: needs a first row and a last one behind it, such "
                       "as {1, 100}, or the first alone");
    lua_pop(L, 1);
}

/* Opens the table of t's input; the options are at 2. Leaves the list of names,
 * or nil, whose index it returns. */
static int begin_table(lua_State *L, table_reader *t, int index, char delimiter)
{
    lua_getiuservalue(L, index, 1);
    int anchor = lua_gettop(L);
    t->line = 1;
    read_form(L, t, delimiter, anchor);
    open_window(L, t);
    open_table(L, t);
    push_names(L, t);
    int names = lua_gettop(L);
    choose_columns(L, t, names);
    find_types(L, t, names, anchor);
    make_chunks(L, t);
    return names;
}

int lumat_load_csv(lua_State *L, lumat_input *in, const lumat_format *f)
{
    int64_t first, last;
    table_reader *t = push_reader(L, in);
    lua_toclose(L, -1);
    read_range(L, &first, &last);
    lumat_begin_input(in, in->size);
    int names = begin_table(L, t, lua_gettop(L), f->delimiter);
    if (first > 1 && read_rows(L, t, NULL, first - 1, names) < first - 1)
        lumat_raise(L, "rows: '%s' has %I rows, none of them is row %I",
                    in->path, (LUAI_UACINT)t->row, (LUAI_UACINT)first);
    int64_t most = last == INT64_MAX ? last : last - first + 1;
    table_result r = push_parts(L, t, guess_rows(L, t, most));
    read_rows(L, t, &r, most, names);
    if (first > 1 && r.rows == 0)
        lumat_raise(L, "rows: '%s' has %I rows, none of them is row %I",
                    in->path, (LUAI_UACINT)t->row, (LUAI_UACINT)first);
    return push_table(L, t, &r, names);
}

/* --- blocks --------------------------------------------------------------- */

/* Gives the next block, or nothing. Upvalues: the reader, the path, the
 * options, the names, the most rows. */
static int next_block(lua_State *L)
{
    table_reader *t = lua_touserdata(L, lua_upvalueindex(1));
    int64_t most = lua_tointeger(L, lua_upvalueindex(5));
    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, lua_upvalueindex(3)); /* where options are looked for */
    lua_pushvalue(L, lua_upvalueindex(4));
    if (t->text == NULL || (t->is_all && t->start == t->used))
        return 0;
    table_result r = push_parts(L, t, guess_rows(L, t, most));
    if (read_rows(L, t, &r, most, 3) == 0 && t->row > 0)
        return 0;
    return push_table(L, t, &r, 3);
}

static int load_blocks(lua_State *L)
{
    int64_t most = lua_tointeger(L, 2);
    lua_settop(L, 3);
    lua_remove(L, 2); /* path, options: as load has them */
    const lumat_format *f;
    lumat_input *in = lumat_open_table(L, &f);
    int input = lua_gettop(L);
    table_reader *t = push_reader(L, in);
    int reader = lua_gettop(L);
    int names = begin_table(L, t, reader, f->delimiter);
    lua_getiuservalue(L, reader, 1);
    lua_pushvalue(L, input);
    lua_setfield(L, -2, "input");
    lua_pushvalue(L, reader);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, names);
    lua_pushinteger(L, most);
    lua_pushcclosure(L, next_block, 5);
    lua_pushnil(L);
    lua_pushnil(L);
    lua_pushvalue(L, reader);
    return 4;
}

static const lumat_function functions[] = {
    {"load_blocks", load_blocks, 0,
     "path: data, n: count {header, delimiter, columns, types, na, skip, "
     "comment, decimal, thousands, quote, fill, as, dtype, device}",
     "function",
     "Reads a .csv, .tsv or .txt file n rows at a time: for block, names in "
     "load_blocks(\"f.csv\", 1e6) do … end. Each block is what load gives, and "
     "the memory of one is what it takes, however long the file. The columns' "
     "types are those of the first block, and texts have the same codes in "
     "all.",
     "(function() save(mat{{1, 2}, {3, 4}, {5, 6}}, \"/tmp/lumat-example.csv\")"
     " local rows = {} for A in load_blocks(\"/tmp/lumat-example.csv\", 2) do "
     "rows[#rows + 1] = A.rows end return vec(rows) end)()",
     "{2, 1}", .group = "files", .options = lumat_load_options},
    {0}};

void lumat_open_csv(lua_State *L)
{
    lumat_open_closing(L, READER, close_reader);
    lumat_register(L, functions);
}
