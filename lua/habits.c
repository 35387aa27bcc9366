/* Habits from other languages that are no Lua, recognised in the line of a
 * syntax error, and what to write instead. */
#include "library.h"
#include "lumat.h"

#include "lauxlib.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct line {
    const char *start, *end;
} line;

/* The number between the last ":" pair before the message's text, as in
 * "exp.lua:12: unexpected symbol"; 0 when there is none. */
static int line_number(const char *message)
{
    for (const char *p = strchr(message, ':'); p; p = strchr(p + 1, ':')) {
        char *end;
        long n = strtol(p + 1, &end, 10);
        if (end > p + 1 && *end == ':')
            return (int)n;
    }
    return 0;
}

static line find_line(const char *text, size_t length, int number)
{
    line l = {text, text + length};
    while (--number > 0) {
        const char *next = memchr(l.start, '\n', (size_t)(l.end - l.start));
        if (!next)
            break;
        l.start = next + 1;
    }
    const char *end = memchr(l.start, '\n', (size_t)(l.end - l.start));
    if (end)
        l.end = end;
    return l;
}

static char last_before(const line *l, const char *p)
{
    while (p > l->start && isspace((unsigned char)p[-1]))
        p--;
    return p > l->start ? p[-1] : '\0';
}

static int is_operand_end(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == ')' || c == ']';
}

/* A(1, 2) = 3: a "=" alone, right behind a ")", anywhere in the line. */
static int assigns_to_call(const line *l)
{
    for (const char *p = l->start; p < l->end; p++) {
        int alone = *p == '=' && (p + 1 == l->end || p[1] != '=') &&
                    (p == l->start || !strchr("=~<>", p[-1]));
        if (alone && last_before(l, p) == ')')
            return 1;
    }
    return 0;
}

static int contains(const line *l, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = l->start; p + n <= l->end; p++)
        if (memcmp(p, word, n) == 0)
            return 1;
    return 0;
}

/* A' and (A + B)' */
static int has_prime(const line *l)
{
    for (const char *p = l->start + 1; p < l->end; p++)
        if (*p == '\'' && is_operand_end(p[-1]))
            return 1;
    return 0;
}

/* A[1, 2]: a comma inside brackets that stand behind an operand. */
static int has_two_indices(const line *l)
{
    for (const char *p = l->start; p < l->end; p++) {
        if (*p != '[' || !is_operand_end(last_before(l, p)))
            continue;
        for (p++; p < l->end && !strchr("[](){}\"'", *p); p++)
            if (*p == ',')
                return 1;
    }
    return 0;
}

/* What brackets mean in other languages. */
static const char *on_brackets(const char *message, const line *l)
{
    if (strstr(message, "symbol near '['"))
        return "a matrix is mat{{1, 2}, {3, 4}}, a vector vec{1, 2, 3}";
    if (strstr(message, "']' expected near ','") && has_two_indices(l))
        return "an element is A[{1, 2}], a block A[\"1:2, 3:4\"]";
    return NULL;
}

static const char *advice(const char *message, const line *l)
{
    if (strstr(message, "near '='") && assigns_to_call(l))
        return "an element is assigned with A[{1, 2}] = 3, a row with A[1] = 0";
    if (contains(l, "!=") && strstr(message, "near '!'"))
        return "\"not equal\" is ~= in Lua; A:ne(B) gives a mask";
    if (contains(l, "+=") || contains(l, "-=") || contains(l, "*=") ||
        contains(l, "/="))
        return "Lua has no +=: write A = A + B, or A:add_(B) in place";
    if (contains(l, ".*") || contains(l, "./") || contains(l, ".^"))
        return "element by element is A % B, A / B and A:pow(p)";
    if (strstr(message, "unfinished string") && has_prime(l))
        return "the transpose of A is A.T";
    if (strstr(message, "near '\\'"))
        return "A \\ b, the x with A * x = b, is solve(A, b)";
    return on_brackets(message, l);
}

/* --- letters that Lua has no use for -------------------------------------- */

/* The first byte of such a letter outside of strings and comments, or NULL. */
static const char *find_foreign(const line *l)
{
    lumat_token token = {0};
    while (lumat_next_token(l->start, (size_t)(l->end - l->start), &token)) {
        const char *p = l->start + token.start;
        if (token.kind == LUMAT_SIGN && (unsigned char)*p >= 0x80)
            return p;
    }
    return NULL;
}

/* The code of the letter at p in UTF-8, and its bytes; 0 when it is none. */
static unsigned decode(const char *p, const char *end, size_t *length)
{
    unsigned char c = (unsigned char)*p;
    size_t n = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    unsigned code = c & (0x7Fu >> n);
    if (c < 0xC2 || c > 0xF4 || (size_t)(end - p) < n)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | ((unsigned char)p[i] & 0x3Fu);
    }
    *length = n;
    return code;
}

/* Blanks and marks that look like nothing. */
static int is_invisible(unsigned code)
{
    return code <= 0xA0 || code == 0xAD || code == 0x3000 || code == 0xFEFF ||
           (code >= 0x2000 && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202F);
}

/* What came from a web page or a text processor: quotes, blanks, minus signs.
 * Lua names their first byte alone. */
static const char *push_foreign(lua_State *L, const char *message,
                                const line *l)
{
    size_t length = 0;
    const char *p = strstr(message, "near '<\\") ? find_foreign(l) : NULL;
    unsigned code = p ? decode(p, l->end, &length) : 0;
    char number[24];
    if (!code)
        return NULL;
    snprintf(number, sizeof number, "U+%04X", code);
    lua_pushlstring(L, p, is_invisible(code) ? 0 : length);
    return lua_pushfstring(L, "%s%s%s can only stand in strings and comments",
                           is_invisible(code) ? "the invisible "
                                              : lua_tostring(L, -1),
                           is_invisible(code) ? "" : " ", number);
}

/* "help sum", "save work.lum": a command and a word behind it, where Lua has
 * none. Pushes ":help sum" in a hint, or returns NULL. */
static const char *push_command(lua_State *L, const char *message,
                                const line *l)
{
    lumat_token word = {0}, next = {0};
    size_t length = (size_t)(l->end - l->start);
    lumat_next_token(l->start, length, &word);
    next = word;
    while (lumat_next_token(l->start, length, &next))
        if (next.kind != LUMAT_BLANK)
            break;
    if (!lumat_is_command(l->start + word.start, word.end - word.start) ||
        next.kind != LUMAT_NAME)
        return NULL;
    lua_pushlstring(L, l->start + next.start, next.end - next.start);
    lua_pushfstring(L, "near '%s'", lua_tostring(L, -1));
    if (!strstr(message, lua_tostring(L, -1)))
        return NULL;
    lua_pushlstring(L, l->start, length);
    return lua_pushfstring(L, "a command begins with a colon: :%s",
                           lua_tostring(L, -1));
}

void lumat_explain_syntax(lua_State *L, const char *text, size_t length)
{
    int top = lua_gettop(L);
    const char *message = lua_tostring(L, -1), *hint = NULL;
    if (!message)
        return;
    line l = find_line(text, length, line_number(message));
    if (l.start < l.end)
        hint = advice(message, &l);
    if (!hint)
        hint = push_foreign(L, message, &l);
    if (!hint && l.start == text)
        hint = push_command(L, message, &l);
    if (hint) {
        lua_pushfstring(L, "%s\n  %s", message, hint);
        lua_replace(L, top);
    }
    lua_settop(L, top);
}
