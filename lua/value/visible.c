/* Text that a terminal would obey made text that it shows: control characters
 * of one byte (C0, DEL) and of two (C1), what is no UTF-8, and the marks that
 * turn the direction of writing, behind which other text can hide (Boucher and
 * Anderson, Trojan Source, 2021). */
#include "visible.h"

#include "lauxlib.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
