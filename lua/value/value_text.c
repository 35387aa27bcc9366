/* Values and foreign text as people read them: what a terminal would obey made
 * text that it shows, objects without their addresses, and what messages call a
 * value. */
#include "fence.h"
#include "value.h"

#include "lualib.h"
#include <stdarg.h>
#include <string.h>

/* --- visible text ---------------------------------------------------------
 *
 * Control characters of one byte (C0, DEL) and of two (C1), what is no UTF-8,
 * and the marks that turn the direction of writing, behind which other text can
 * hide (Boucher and Anderson, Trojan Source, 2021). */

enum { LONGEST = 12 }; /* bytes of one character made visible */

/* The bytes of the character that text begins with, and its code; 0: no
 * UTF-8. Source: RFC 3629, section 4. */
static size_t decode(const unsigned char *text, size_t length, unsigned *code)
{
    unsigned c = text[0];
    size_t n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c >= 0x80 && (c < 0xC2 || c > 0xF4 || n > length))
        return 0;
    *code = n == 1 ? c : c & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
        *code = *code << 6 | (text[i] & 0x3Fu);
    }
    if (*code < least[n] || *code > 0x10FFFF ||
        (*code >= 0xD800 && *code <= 0xDFFF))
        return 0;
    return n;
}

static int turns_direction(unsigned code)
{
    return code == 0x061C || code == 0x200E || code == 0x200F ||
           (code >= 0x202A && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

static int is_obeyed(unsigned code)
{
    return (code < 0x20 && code != '\n' && code != '\t') ||
           (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
           turns_direction(code);
}

size_t lumat_shown_length(const char *text, size_t length)
{
    unsigned code = 0;
    size_t n = decode((const unsigned char *)text, length, &code);
    return n > 0 && !is_obeyed(code) ? n : 0;
}

/* How much of text can be shown as it is; 0 at what cannot, of which *bytes
 * are one character, with its name in out. */
static size_t split(const char *text, size_t length, size_t *bytes,
                    char out[LONGEST])
{
    size_t at = 0, n;
    unsigned code = 0;
    while (at < length && (n = lumat_shown_length(text + at, length - at)) > 0)
        at += n;
    if (at > 0)
        return at;
    n = decode((const unsigned char *)text, length, &code);
    *bytes = n > 0 ? n : 1;
    if (n > 1)
        snprintf(out, LONGEST, "\\u{%X}", code);
    else
        snprintf(out, LONGEST, "\\x%02X", (unsigned char)*text);
    return 0;
}

/* The length of a colour that text begins with: ESC [ digits and ; m. None
 * hides what it colours. */
static size_t colour_length(const char *text, size_t length)
{
    size_t n = 2;
    if (length < 3 || text[0] != '\033' || text[1] != '[')
        return 0;
    while (n < length && ((text[n] >= '0' && text[n] <= '9') || text[n] == ';'))
        n++;
    if (n == length || text[n] != 'm' || (n == 3 && text[2] == '8'))
        return 0;
    return n + 1;
}

void lumat_write_visible(FILE *to, const char *text, size_t length,
                         int with_colours)
{
    while (length > 0) {
        char name[LONGEST];
        size_t n = split(text, length, &n, name), bytes = n;
        if (n > 0) {
            fwrite(text, 1, n, to);
        } else if (with_colours && (n = colour_length(text, length)) > 0) {
            fwrite(text, 1, bytes = n, to);
        } else {
            split(text, length, &bytes, name);
            fputs(name, to);
        }
        text += bytes;
        length -= bytes;
    }
}

void lumat_print_visible(FILE *to, const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    lumat_write_visible(to, text, strlen(text), 0);
}

const char *lumat_push_visible(lua_State *L, const char *text, size_t length)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    while (length > 0) {
        char name[LONGEST];
        size_t bytes = 0, n = split(text, length, &bytes, name);
        if (n > 0)
            luaL_addlstring(&b, text, bytes = n);
        else
            luaL_addstring(&b, name);
        text += bytes;
        length -= bytes;
    }
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

/* --- colours -------------------------------------------------------------- */

const char *lumat_skip_colour(const char *text)
{
    if (text[0] != '\033' || text[1] != '[')
        return text;
    text += 2 + strspn(text + 2, "0123456789;");
    return *text ? text + 1 : text;
}

size_t lumat_strip_colours(char *text)
{
    char *to = text;
    for (const char *p = text; *p;) {
        const char *behind = lumat_skip_colour(p);
        if (behind == p)
            *to++ = *p++;
        else
            p = behind;
    }
    *to = '\0';
    return (size_t)(to - text);
}

/* --- objects without addresses, for --safe -------------------------------- */

/* Registry: object -> its number, weak keys; and how many there were. */
static const char numbers_key;
static lua_Integer last_number;

/* Pushes "table: 12": the number is the object's own. */
static void push_numbered(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    const char *kind = luaL_getmetafield(L, index, "__name") == LUA_TSTRING
                           ? lua_tostring(L, -1)
                           : luaL_typename(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &numbers_key);
    lua_pushvalue(L, index);
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushinteger(L, ++last_number);
        lua_pushvalue(L, index);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    lua_pushfstring(L, "%s: %I", kind, (LUAI_UACINT)lua_tointeger(L, -1));
}

/* Would Lua's tostring give the address? */
static int has_address(lua_State *L, int index)
{
    switch (lua_type(L, index)) {
    case LUA_TNIL:
    case LUA_TBOOLEAN:
    case LUA_TNUMBER:
    case LUA_TSTRING:
        return 0;
    default:
        if (luaL_getmetafield(L, index, "__tostring") == LUA_TNIL)
            return 1;
        lua_pop(L, 1);
        return 0;
    }
}

const char *lumat_tolstring(lua_State *L, int index, size_t *length)
{
    if (!lumat_is_safe() || !has_address(L, index))
        return luaL_tolstring(L, index, length);
    int top = lua_gettop(L);
    push_numbered(L, index);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return lua_tolstring(L, -1, length);
}

static int to_string(lua_State *L)
{
    luaL_checkany(L, 1);
    lumat_tolstring(L, 1, NULL);
    return 1;
}

/* Upvalue: Lua's print. */
static int print_numbered(lua_State *L)
{
    for (int i = 1; i <= lua_gettop(L); i++) {
        if (!has_address(L, i))
            continue;
        lumat_tolstring(L, i, NULL);
        lua_replace(L, i);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

static int file_to_string(lua_State *L)
{
    luaL_Stream *s = luaL_checkudata(L, 1, LUA_FILEHANDLE);
    lua_pushstring(L, s->closef ? "file" : "file (closed)");
    return 1;
}

void lumat_hide_addresses(lua_State *L)
{
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &numbers_key);
    lua_pushglobaltable(L);
    lua_pushcfunction(L, to_string);
    lua_setfield(L, -2, "tostring");
    lua_getfield(L, -1, "print");
    lua_pushcclosure(L, print_numbered, 1);
    lua_setfield(L, -2, "print");
    lua_pop(L, 1);
    luaL_getmetatable(L, LUA_FILEHANDLE);
    lua_pushcfunction(L, file_to_string);
    lua_setfield(L, -2, "__tostring");
    lua_pop(L, 1);
}

/* --- kinds: a matrix is no "userdata" ------------------------------------- */

/* By the name in its metatable, as Lua's own messages do, but for those that
 * say nothing to a user. */
const char *lumat_kind_of(lua_State *L, int index)
{
    if (lua_istable(L, index) &&
        luaL_getmetafield(L, index, "__headline") != LUA_TNIL)
        lua_pop(L, 1); /* an object of the library's */
    else if (!lua_isuserdata(L, index))
        return luaL_typename(L, index);
    const char *name = "value of a library";
    if (luaL_getmetafield(L, index, "__name") != LUA_TNIL) {
        if (lua_type(L, -1) == LUA_TSTRING)
            name = lua_tostring(L, -1); /* the metatable keeps it */
        lua_pop(L, 1);
    }
    return strcmp(name, LUA_FILEHANDLE) == 0 ? "file" : name;
}

/* Nor is it one in the messages of Lua's own library. */

static const char *const events[] = {"__add", "__sub",  "__mul", "__mod",
                                     "__pow", "__idiv", "__div", "__unm"};

/* Arithmetic of a string and a value that has none. Upvalues: Lua's own for
 * strings, and the event. */
static int compute_with_string(lua_State *L)
{
    const char *event = lua_tostring(L, lua_upvalueindex(2));
    for (int i = 1; i <= 2; i++)
        if (lua_isuserdata(L, i) && !luaL_getmetafield(L, i, event))
            return luaL_error(L, "attempt to %s a '%s' with a '%s'", event + 2,
                              lumat_kind_of(L, 1), lumat_kind_of(L, 2));
    lua_settop(L, 2);
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

void lumat_open_kinds(lua_State *L)
{
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        lua_getfield(L, -1, events[i]);
        lua_pushstring(L, events[i]);
        lua_pushcclosure(L, compute_with_string, 2);
        lua_setfield(L, -2, events[i]);
    }
    lua_pop(L, 2);
}
