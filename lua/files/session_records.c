/* The records of a saved session that hold values: words between blanks, one
 * record a line. There may be millions, so none leaves anything behind but its
 * value. Part of lumat.parts; session_syntax.lua writes these words. */
#include "archive.h"

#include "lauxlib.h"
#include <math.h>
#include <string.h>

/* Where reading is in a record; `values` is the stack index of the matrices
 * and tables by number. */
typedef struct record {
    lua_State *L;
    const char *p, *end;
    int values;
} record;

typedef struct word {
    const char *start;
    size_t length;
} word;

/* Takes a word and the blank, the newline or the end behind it. */
static int take_word(record *r, word *w, char behind)
{
    w->start = r->p;
    while (r->p < r->end && *r->p != ' ' && *r->p != '\n')
        r->p++;
    w->length = (size_t)(r->p - w->start);
    if (w->length == 0 || (r->p == r->end && behind != '\n') ||
        (r->p < r->end && *r->p != behind))
        return 0;
    r->p += r->p < r->end;
    return 1;
}

/* --- words ---------------------------------------------------------------- */

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "\032" is a blank: three digits of a byte. */
static void push_unescaped(lua_State *L, const char *p, size_t length)
{
    luaL_Buffer b;
    const char *end = p + length, *stroke;
    luaL_buffinit(L, &b);
    while ((stroke = memchr(p, '\\', (size_t)(end - p))) != NULL) {
        luaL_addlstring(&b, p, (size_t)(stroke - p));
        p = stroke + 1;
        if (end - p >= 3 && is_digit(p[0]) && is_digit(p[1]) &&
            is_digit(p[2])) {
            int byte = (p[0] - '0') * 100 + (p[1] - '0') * 10 + p[2] - '0';
            luaL_addchar(&b, (char)(byte % 256));
            p += 3;
        } else {
            luaL_addchar(&b, '\\');
        }
    }
    luaL_addlstring(&b, p, (size_t)(end - p));
    luaL_pushresult(&b);
}

static int push_number(lua_State *L, const char *p, size_t length)
{
    char text[64];
    if (length >= sizeof text)
        return 0;
    memcpy(text, p, length);
    text[length] = '\0';
    return lua_stringtonumber(L, text) == length + 1;
}

static int push_integer(lua_State *L, const char *p, size_t length)
{
    int is_whole = 0;
    if (!push_number(L, p, length))
        return 0;
    lua_Integer i = lua_tointegerx(L, -1, &is_whole);
    lua_pop(L, 1);
    if (is_whole)
        lua_pushinteger(L, i);
    return is_whole;
}

static int push_double(lua_State *L, const char *p, size_t length)
{
    static const struct {
        const char *name;
        double value;
    } special[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        if (strlen(special[i].name) == length &&
            memcmp(special[i].name, p, length) == 0) {
            lua_pushnumber(L, (lua_Number)special[i].value);
            return 1;
        }
    }
    return push_number(L, p, length);
}

static int push_numbered(const record *r, const char *p, size_t length)
{
    if (!push_integer(r->L, p, length))
        return 0;
    lua_rawget(r->L, r->values);
    if (!lua_isnil(r->L, -1))
        return 1;
    lua_pop(r->L, 1);
    return 0;
}

static int is_word(const word *w, const char *text)
{
    return w->length == strlen(text) && memcmp(w->start, text, w->length) == 0;
}

/* Pushes the value a word stands for; 0, and nothing pushed, if for none. */
static int push_value(const record *r, const word *w)
{
    const char *rest = w->start + 1;
    size_t length = w->length - 1;
    if (is_word(w, "true") || is_word(w, "false")) {
        lua_pushboolean(r->L, *w->start == 't');
        return 1;
    }
    switch (*w->start) {
    case 's':
        push_unescaped(r->L, rest, length);
        return 1;
    case 'i':
        return push_integer(r->L, rest, length);
    case 'd':
        return push_double(r->L, rest, length);
    case 'v':
        return push_numbered(r, rest, length);
    default:
        return 0;
    }
}

/* --- records -------------------------------------------------------------- */

/* The record at place arg 2 of the text, behind its first word; values are
 * arg 3. */
static int begin(lua_State *L, record *r)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    lua_Integer at = luaL_checkinteger(L, 2);
    word kind;
    luaL_checktype(L, 3, LUA_TTABLE);
    luaL_argcheck(L, at >= 1 && (size_t)at <= length, 2, "is outside");
    *r = (record){L, text + at - 1, text + length, 3};
    return take_word(r, &kind, ' ') && kind.length == 1;
}

/* fill(text, place, values): "e table key value". The place of what follows,
 * or nothing when it is no such record. */
static int fill(lua_State *L)
{
    record r;
    word table, key, value;
    if (!begin(L, &r) || !take_word(&r, &table, ' ') ||
        !take_word(&r, &key, ' ') || !take_word(&r, &value, '\n') ||
        !push_numbered(&r, table.start, table.length) || !lua_istable(L, -1) ||
        !push_value(&r, &key))
        return 0;
    if (lua_type(L, -1) == LUA_TNUMBER && isnan(lua_tonumber(L, -1)))
        return 0;
    if (!push_value(&r, &value))
        return 0;
    lua_rawset(L, -3);
    lua_pushinteger(L, r.p - lua_tostring(L, 1) + 1);
    return 1;
}

/* name(text, place, values): "g name value". The place of what follows, the
 * name and the value; or nothing. */
static int name(lua_State *L)
{
    record r;
    word named, value;
    if (!begin(L, &r) || !take_word(&r, &named, ' ') ||
        !take_word(&r, &value, '\n'))
        return 0;
    lua_pushinteger(L, r.p - lua_tostring(L, 1) + 1);
    if (!push_value(&r, &named) || lua_type(L, -1) != LUA_TSTRING ||
        !push_value(&r, &value))
        return 0;
    return 3;
}

static const luaL_Reg functions[] = {
    {"fill", fill}, {"name", name}, {NULL, NULL}};

void lumat_add_session_records(lua_State *L)
{
    luaL_setfuncs(L, functions, 0);
}
