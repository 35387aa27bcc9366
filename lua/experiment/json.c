/* JSON, written as journals have it, and read so and as others write it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "experiment_parts.h"
#include "parse.h"
#include "value.h"

enum { DEEPEST = 64 }; /* lists and objects in each other */

/* --- writing -------------------------------------------------------------- */
/* Lua's integers and floats stay apart, and NaN and the infinities have their
 * names. Strings are bytes. */

typedef struct writer {
    luaL_Buffer b;
    int strict; /* what other programs read: no NaN, no infinities */
} writer;

static void add_string(luaL_Buffer *b, const char *text, size_t length)
{
    char code[8];
    luaL_addchar(b, '"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            luaL_addchar(b, '\\');
            luaL_addchar(b, (char)c);
        } else if (c < 0x20 || c == 0x7f) {
            snprintf(code, sizeof code, "\\u%04x", c);
            luaL_addstring(b, code);
        } else {
            luaL_addchar(b, (char)c);
        }
    }
    luaL_addchar(b, '"');
}

static void add_float(writer *w, double x)
{
    char text[LUMAT_NUMBER_ROOM + 2];
    if (!isfinite(x)) {
        luaL_addstring(&w->b, w->strict    ? "null"
                              : isnan(x)   ? "NaN"
                              : signbit(x) ? "-Infinity"
                                           : "Infinity");
        return;
    }
    size_t n = lumat_print_f64(x, 0, text);
    text[n] = '\0';
    if (!strpbrk(text, ".eE"))
        strcat(text, ".0");
    luaL_addstring(&w->b, text);
}

static void add_number(lua_State *L, writer *w, int index)
{
    char text[32];
    if (!lua_isinteger(L, index)) {
        add_float(w, lua_tonumber(L, index));
        return;
    }
    snprintf(text, sizeof text, "%lld", (long long)lua_tointeger(L, index));
    luaL_addstring(&w->b, text);
}

typedef struct name {
    const char *text;
    size_t length;
} name;

static int by_name(const void *a, const void *b)
{
    const name *x = a, *y = b;
    size_t both = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->text, y->text, both);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* Pushes a userdata with the table's keys in order. */
static const name *push_keys(lua_State *L, int table, int *count)
{
    int n = 0;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "a table's keys are names, or 1, 2, … without gaps");
        n++;
    }
    name *keys = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *keys, 0);
    int i = 0;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1), i++)
        keys[i].text = lua_tolstring(L, -2, &keys[i].length);
    if (n > 0)
        qsort(keys, (size_t)n, sizeof *keys, by_name);
    *count = n;
    return keys;
}

static void push_value(lua_State *L, int index, int depth, int strict);

/* Pieces are strings on the stack, joined as they come. */
static void push_table(lua_State *L, int index, int depth, int strict)
{
    luaL_Buffer b;
    int n, is_list = lua_rawlen(L, index) > 0;
    if (depth > DEEPEST)
        luaL_error(L, "tables are nested too deep");
    luaL_checkstack(L, 10, NULL);
    const name *keys = NULL;
    if (is_list)
        n = (int)lua_rawlen(L, index), lua_pushnil(L);
    else
        keys = push_keys(L, index, &n);
    luaL_buffinit(L, &b);
    luaL_addchar(&b, is_list ? '[' : '{');
    for (int i = 0; i < n; i++) {
        if (i > 0)
            luaL_addchar(&b, ',');
        if (keys) {
            add_string(&b, keys[i].text, keys[i].length);
            luaL_addchar(&b, ':');
            lua_pushlstring(L, keys[i].text, keys[i].length);
            lua_rawget(L, index);
        } else {
            lua_rawgeti(L, index, i + 1);
        }
        push_value(L, lua_gettop(L), depth + 1, strict);
        lua_remove(L, -2);
        luaL_addvalue(&b);
    }
    luaL_addchar(&b, is_list ? ']' : '}');
    luaL_pushresult(&b);
    lua_remove(L, -2);
}

static void push_value(lua_State *L, int index, int depth, int strict)
{
    writer w = {.strict = strict};
    size_t length;
    const char *text;
    switch (lua_type(L, index)) {
    case LUA_TTABLE:
        push_table(L, index, depth, strict);
        return;
    case LUA_TNUMBER:
        luaL_buffinit(L, &w.b);
        add_number(L, &w, index);
        break;
    case LUA_TSTRING:
        text = lua_tolstring(L, index, &length);
        luaL_buffinit(L, &w.b);
        add_string(&w.b, text, length);
        break;
    case LUA_TBOOLEAN:
        lua_pushstring(L, lua_toboolean(L, index) ? "true" : "false");
        return;
    case LUA_TNIL:
        lua_pushliteral(L, "null");
        return;
    default:
        luaL_error(L, "a %s cannot be written", lumat_kind_of(L, index));
    }
    luaL_pushresult(&w.b);
}

/* encode(value [, strict]) */
static int encode(lua_State *L)
{
    luaL_checkany(L, 1);
    push_value(L, 1, 0, lua_toboolean(L, 2));
    return 1;
}

/* --- reading -------------------------------------------------------------- */

typedef struct reader {
    lua_State *L;
    const char *at, *end;
    const char *wrong; /* NULL: nothing so far */
} reader;

static int read_value(reader *r, int depth);

static void skip_blanks(reader *r)
{
    while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at)
        r->at++;
}

static int refuse(reader *r, const char *why)
{
    r->wrong = why;
    return 0;
}

static int take(reader *r, char c)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != c)
        return 0;
    r->at++;
    return 1;
}

static int take_word(reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return 0;
    r->at += n;
    return 1;
}

static void add_utf8(luaL_Buffer *b, unsigned long c)
{
    char text[4];
    int n = 0;
    if (c < 0x80) {
        text[n++] = (char)c;
    } else if (c < 0x800) {
        text[n++] = (char)(0xC0 | c >> 6);
        text[n++] = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        text[n++] = (char)(0xE0 | c >> 12);
        text[n++] = (char)(0x80 | (c >> 6 & 0x3F));
        text[n++] = (char)(0x80 | (c & 0x3F));
    } else {
        text[n++] = (char)(0xF0 | c >> 18);
        text[n++] = (char)(0x80 | (c >> 12 & 0x3F));
        text[n++] = (char)(0x80 | (c >> 6 & 0x3F));
        text[n++] = (char)(0x80 | (c & 0x3F));
    }
    luaL_addlstring(b, text, (size_t)n);
}

/* Four hexadecimal digits, or -1. */
static long read_hex(reader *r)
{
    long value = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        const char *digits = "0123456789abcdefABCDEF", *d;
        if (r->at == r->end || !*r->at || !(d = strchr(digits, *r->at)))
            return -1;
        value = value * 16 + (d - digits > 15 ? d - digits - 6 : d - digits);
    }
    return value;
}

static int read_code(reader *r, luaL_Buffer *b)
{
    long c = read_hex(r);
    if (c >= 0xD800 && c < 0xDC00 && take_word(r, "\\u")) {
        long low = read_hex(r);
        if (low < 0xDC00 || low > 0xDFFF)
            return 0;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    } else if (c >= 0xD800 && c <= 0xDFFF)
        return 0; /* half a character */
    if (c < 0)
        return 0;
    add_utf8(b, (unsigned long)c);
    return 1;
}

static int read_escape(reader *r, luaL_Buffer *b)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = r->at < r->end ? *r->at++ : '\0';
    if (c == 'u')
        return read_code(r, b);
    const char *found = c ? strchr(from, c) : NULL;
    if (found)
        luaL_addchar(b, to[found - from]);
    return found != NULL;
}

static int read_string(reader *r)
{
    luaL_Buffer b;
    luaL_buffinit(r->L, &b);
    while (r->at < r->end && *r->at != '"') {
        char c = *r->at++;
        if (c != '\\')
            luaL_addchar(&b, c);
        else if (!read_escape(r, &b))
            r->wrong = "a wrong escape in a string";
    }
    luaL_pushresult(&b);
    if (r->at == r->end)
        return refuse(r, "a string without an end");
    r->at++;
    return r->wrong == NULL;
}

static int read_number(reader *r)
{
    char text[64];
    size_t n = 0;
    while (r->at < r->end && *r->at && strchr("+-.0123456789eE", *r->at) &&
           n < sizeof text - 1)
        text[n++] = *r->at++;
    text[n] = '\0';
    if (n == 0 || strpbrk(text, "xX") || !lua_stringtonumber(r->L, text))
        return refuse(r, "what is no value");
    return 1;
}

static int read_list(reader *r, int depth)
{
    lua_newtable(r->L);
    if (take(r, ']'))
        return 1;
    for (int i = 1;; i++) {
        if (!read_value(r, depth + 1))
            return 0;
        lua_rawseti(r->L, -2, i);
        if (take(r, ']'))
            return 1;
        if (!take(r, ','))
            return refuse(r, "a list without a comma or an end");
    }
}

static int read_object(reader *r, int depth)
{
    lua_newtable(r->L);
    if (take(r, '}'))
        return 1;
    for (;;) {
        if (!take(r, '"'))
            return refuse(r, "an object's entry without a name");
        if (!read_string(r))
            return 0;
        if (!take(r, ':'))
            return refuse(r, "a name without a colon");
        if (!read_value(r, depth + 1))
            return 0;
        lua_rawset(r->L, -3);
        if (take(r, '}'))
            return 1;
        if (!take(r, ','))
            return refuse(r, "an object without a comma or an end");
    }
}

static int read_word(reader *r)
{
    lua_State *L = r->L;
    if (take_word(r, "true"))
        lua_pushboolean(L, 1);
    else if (take_word(r, "false"))
        lua_pushboolean(L, 0);
    else if (take_word(r, "null"))
        lua_pushnil(L);
    else if (take_word(r, "NaN"))
        lua_pushnumber(L, (lua_Number)NAN);
    else if (take_word(r, "Infinity"))
        lua_pushnumber(L, HUGE_VAL);
    else if (take_word(r, "-Infinity"))
        lua_pushnumber(L, -HUGE_VAL);
    else
        return read_number(r);
    return 1;
}

static int read_value(reader *r, int depth)
{
    if (depth > DEEPEST || !lua_checkstack(r->L, 6))
        return refuse(r, "tables nested too deep");
    if (take(r, '"'))
        return read_string(r);
    if (take(r, '['))
        return read_list(r, depth);
    if (take(r, '{'))
        return read_object(r, depth);
    return read_word(r);
}

const char *lumat_push_json(lua_State *L, const char *text, size_t length,
                            size_t *at)
{
    int top = lua_gettop(L);
    reader r = {L, text, text + length, NULL};
    if (read_value(&r, 0)) {
        skip_blanks(&r);
        if (r.at < r.end)
            refuse(&r, "more than one value");
    }
    if (r.wrong)
        lua_settop(L, top);
    if (at)
        *at = (size_t)(r.at - text);
    return r.wrong;
}

/* decode(text): the value, or nil, what is wrong and behind how many bytes. */
static int decode(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    size_t at;
    const char *wrong = lumat_push_json(L, text, length, &at);
    if (!wrong)
        return 1;
    lua_pushnil(L);
    lua_pushstring(L, wrong);
    lua_pushinteger(L, (lua_Integer)at);
    return 3;
}

void lumat_add_json(lua_State *L)
{
    lua_pushcfunction(L, encode);
    lua_setfield(L, -2, "encode");
    lua_pushcfunction(L, decode);
    lua_setfield(L, -2, "decode");
}
