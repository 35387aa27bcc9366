/* Writing JSON, as journals have it: Lua's integers and floats stay apart, and
 * NaN and the infinities have their names. Strings are bytes. */
#include "journal.h"
#include "parse.h"
#include "visible.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64 };

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

void lumat_add_json_writer(lua_State *L)
{
    lua_pushcfunction(L, encode);
    lua_setfield(L, -2, "encode");
}
