/* The options of a table as text that is read. */
#include "table_reader.h"

#include "arguments.h"
#include "cancellation.h"
#include "fence.h"

#include <ctype.h>
#include <string.h>

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
    int is_in_quotes = c->thousands == ',' && c->delimiter == ',' && c->quote;
    if (c->delimiter != 0 && !is_in_quotes &&
        (c->delimiter == c->decimal || c->delimiter == c->thousands))
        lumat_raise(L,
                    "load: \"%c\" is the delimiter, and cannot be in "
                    "numbers, too",
                    c->delimiter);
}

/* na: words and numbers that mean nothing is there. */
static void read_missing(lua_State *L, lumat_table *t, int anchor)
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
        if (i > LUMAT_TABLE_WORDS)
            lumat_raise(L, "na: has more than %d words", LUMAT_TABLE_WORDS);
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

/* header: "auto", true, false, or the names. */
static void read_header(lua_State *L, lumat_csv *c)
{
    c->header = LUMAT_HEADER_AUTO;
    int type = lua_getfield(L, 2, "header");
    if (type == LUA_TTABLE)
        c->header = LUMAT_HEADER_NO;
    else if (type == LUA_TBOOLEAN)
        c->header = lua_toboolean(L, -1) ? LUMAT_HEADER_YES : LUMAT_HEADER_NO;
    lua_pop(L, 1);
}

void lumat_table_read_options(lua_State *L, lumat_table *t, char delimiter,
                              int anchor)
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
    lua_getfield(L, 2, "skip");
    c->skip = lua_tointeger(L, -1);
    lua_getfield(L, 2, "fill");
    c->fill = lua_toboolean(L, -1);
    if (lua_getfield(L, 2, "as") == LUA_TSTRING)
        t->as = *lua_tostring(L, -1);
    lua_pop(L, 3);
}
