/* The tokens of an entry, whether or not it is complete or even Lua: for
 * colours, prompts, and what hangs open. Section 3.1 of Lua's manual. */
#include "lumat.h"

#include <string.h>

typedef struct scanner {
    const char *p, *end;
    int open; /* the text ended in a string or comment */
} scanner;

static int is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Lua's names are ASCII, whatever the locale. */
static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* --- strings and comments ------------------------------------------------- */

/* The number of = in the long bracket that begins at p, or -1. */
static int long_bracket(const scanner *s)
{
    const char *p = s->p + 1;
    if (s->p >= s->end || *s->p != '[')
        return -1;
    while (p < s->end && *p == '=')
        p++;
    return p < s->end && *p == '[' ? (int)(p - s->p - 1) : -1;
}

static void skip_long(scanner *s, int level)
{
    for (s->p += level + 2; s->p < s->end; s->p++) {
        if (*s->p != ']')
            continue;
        const char *p = s->p + 1;
        while (p < s->end && *p == '=')
            p++;
        if (p < s->end && *p == ']' && p - s->p - 1 == level) {
            s->p = p + 1;
            return;
        }
    }
    s->open = 1;
}

/* Past what a backslash escapes; \z takes every blank behind it. */
static void skip_escaped(scanner *s)
{
    if (s->p == s->end)
        return;
    if (*s->p++ != 'z')
        return;
    while (s->p < s->end && is_blank(*s->p))
        s->p++;
}

/* A newline that is not escaped ends a string, though not well. */
static void skip_string(scanner *s)
{
    char quote = *s->p++;
    while (s->p < s->end && *s->p != '\n') {
        char c = *s->p++;
        if (c == quote)
            return;
        if (c == '\\')
            skip_escaped(s);
    }
    s->open = s->p == s->end;
}

static void skip_comment(scanner *s)
{
    s->p += 2;
    int level = long_bracket(s);
    if (level >= 0) {
        skip_long(s, level);
        return;
    }
    while (s->p < s->end && *s->p != '\n')
        s->p++;
}

/* --- words and signs ------------------------------------------------------ */

/* As Lua does: whatever might belong to a number, well formed or not. */
static void skip_number(scanner *s)
{
    const char *marks = "Ee", *start = s->p;
    if (*s->p == '0' && s->p + 1 < s->end && (s->p[1] | 32) == 'x')
        s->p += 2, marks = "Pp";
    while (s->p < s->end) {
        char c = *s->p;
        int after = s->p > start && strchr(marks, s->p[-1]) != NULL;
        if (!is_hex(c) && !is_letter(c) && c != '.' &&
            !(after && (c == '+' || c == '-')))
            return;
        s->p++;
    }
}

static int is_keyword(const char *word, size_t length)
{
    static const char *const keywords[] = {
        "and",   "break", "do",    "else", "elseif", "end",
        "false", "for",   "goto",  "if",   "in",     "function",
        "local", "nil",   "not",   "or",   "repeat", "return",
        "then",  "true",  "until", "while"};
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strlen(keywords[i]) == length &&
            memcmp(keywords[i], word, length) == 0)
            return 1;
    return 0;
}

static lumat_token_kind skip_word(scanner *s)
{
    const char *start = s->p;
    while (s->p < s->end && (is_letter(*s->p) || is_digit(*s->p)))
        s->p++;
    return is_keyword(start, (size_t)(s->p - start)) ? LUMAT_KEYWORD
                                                     : LUMAT_NAME;
}

static lumat_token_kind skip_sign(scanner *s)
{
    int level = long_bracket(s);
    if (level < 0) {
        s->p++;
        return LUMAT_SIGN;
    }
    skip_long(s, level);
    return LUMAT_STRING;
}

static lumat_token_kind skip_token(scanner *s)
{
    char c = *s->p, next = s->p + 1 < s->end ? s->p[1] : '\0';
    if (is_letter(c))
        return skip_word(s);
    if (is_digit(c) || (c == '.' && is_digit(next)))
        return skip_number(s), LUMAT_NUMBER;
    if (c == '"' || c == '\'')
        return skip_string(s), LUMAT_STRING;
    if (c == '-' && next == '-')
        return skip_comment(s), LUMAT_COMMENT;
    if (!is_blank(c))
        return skip_sign(s);
    while (s->p < s->end && is_blank(*s->p))
        s->p++;
    return LUMAT_BLANK;
}

int lumat_next_token(const char *text, size_t length, lumat_token *token)
{
    scanner s = {.p = text + token->end, .end = text + length};
    if (token->end >= length)
        return 0;
    token->start = token->end;
    token->kind = skip_token(&s);
    token->end = (size_t)(s.p - text);
    token->open = s.open;
    return 1;
}
