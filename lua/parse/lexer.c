/* Lua text cut into tokens. */
#include <string.h>
#include "parse.h"

const char lumat_keywords[] =
    "and break do else elseif end false for function goto if in local nil not "
    "or repeat return then true until while";

typedef struct scanner {
    const char *p, *end;
    const char *content; /* of a string or comment: behind its mark */
    int open;            /* as in lumat_token */
} scanner;

static int is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int is_newline(char c)
{
    return c == '\n' || c == '\r';
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
    s->content = s->p += level + 2;
    for (; s->p < s->end; s->p++) {
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

/* Past what a backslash escapes: a newline of two characters is one, and \z
 * takes every blank behind it. Returns whether it may go on behind the text. */
static int skip_escaped(scanner *s)
{
    if (s->p == s->end)
        return 1;
    char c = *s->p++;
    if (is_newline(c) && s->p < s->end && is_newline(*s->p) && *s->p != c)
        s->p++;
    while (c == 'z' && s->p < s->end && is_blank(*s->p))
        s->p++;
    return c == 'z' && s->p == s->end;
}

/* A newline that is not escaped ends a string, though not well. */
static void skip_string(scanner *s)
{
    char quote = *s->p++;
    int goes_on = 0;
    s->content = s->p;
    while (s->p < s->end && !is_newline(*s->p)) {
        char c = *s->p++;
        if (c == quote)
            return;
        if (c == '\\')
            goes_on = skip_escaped(s);
    }
    if (s->p == s->end)
        s->open = goes_on ? 1 : LUMAT_OPEN_IN_LINE;
}

static void skip_comment(scanner *s)
{
    s->content = s->p += 2;
    int level = long_bracket(s);
    if (level >= 0) {
        skip_long(s, level);
        return;
    }
    while (s->p < s->end && !is_newline(*s->p))
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
        if (!is_digit(c) && !is_letter(c) && c != '.' &&
            !(after && (c == '+' || c == '-')))
            return;
        s->p++;
    }
}

int lumat_is_listed(const char *word, size_t length, const char *words)
{
    for (const char *p = words; *p;) {
        size_t n = 0;
        while (n < length && p[n] == word[n])
            n++;
        if (n == length && (p[n] == ' ' || p[n] == '\0'))
            return 1;
        for (p += n; *p && *p != ' ';)
            p++;
        p += *p == ' ';
    }
    return 0;
}

/* The shortest are "do" and "if", the longest "function". */
int lumat_is_keyword(const char *word, size_t length)
{
    return length >= 2 && length <= 8 &&
           lumat_is_listed(word, length, lumat_keywords);
}

static int skip_word(scanner *s)
{
    const char *start = s->p;
    while (s->p < s->end && (is_letter(*s->p) || is_digit(*s->p)))
        s->p++;
    return lumat_is_keyword(start, (size_t)(s->p - start)) ? LUMAT_KEYWORD
                                                           : LUMAT_NAME;
}

/* A long string, or the longest sign that stands here. */
static int skip_sign(scanner *s)
{
    static const struct sign {
        const char *text;
        int kind;
    } signs[] = {
        {"...", LUMAT_OTHER},  {"..", LUMAT_CONCAT},  {"//", LUMAT_DIVIDE},
        {"==", LUMAT_COMPARE}, {"~=", LUMAT_COMPARE}, {"<=", LUMAT_COMPARE},
        {">=", LUMAT_COMPARE}, {"::", LUMAT_OTHER},   {"<<", LUMAT_OTHER},
        {">>", LUMAT_OTHER},   {"<", LUMAT_COMPARE},  {">", LUMAT_COMPARE}};
    int level = long_bracket(s);
    if (level >= 0) {
        skip_long(s, level);
        return LUMAT_STRING;
    }
    size_t left = (size_t)(s->end - s->p);
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t n = strlen(signs[i].text);
        if (n <= left && memcmp(s->p, signs[i].text, n) == 0) {
            s->p += n;
            return signs[i].kind;
        }
    }
    unsigned char c = (unsigned char)*s->p++;
    return c > 0 && c < 128 ? c : LUMAT_OTHER;
}

static int skip_token(scanner *s)
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

/* A newline of two characters is one. */
int lumat_count_lines(const char *from, const char *to)
{
    int lines = 0;
    for (; from < to; from++) {
        if (!is_newline(*from))
            continue;
        lines++;
        if (from + 1 < to && is_newline(from[1]) && from[1] != *from)
            from++;
    }
    return lines;
}

int lumat_next_token(const char *text, size_t length, lumat_token *token)
{
    scanner s = {.p = text + token->end, .end = text + length};
    if (token->end >= length)
        return 0;
    token->line += lumat_count_lines(text + token->start, text + token->end);
    token->line += token->line == 0;
    token->start = token->end;
    s.content = s.p;
    token->kind = skip_token(&s);
    token->end = (size_t)(s.p - text);
    token->content = (size_t)(s.content - text);
    token->open = s.open;
    token->match = -1;
    return 1;
}
