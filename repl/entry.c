/* What kind of entry was typed. */
#include "entry.h"

#include <ctype.h>
#include <string.h>

const char *repl_skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

/* "::" opens a Lua label. */
repl_entry_kind repl_entry_kind_of(const char *text, const char **rest)
{
    const char *start = repl_skip_blanks(text);
    repl_entry_kind kind = REPL_LUA;
    size_t mark = 0;
    if (start[strspn(start, " \t\r\n")] == '\0')
        kind = REPL_BLANK;
    else if (start[0] == ':' && start[1] != ':')
        kind = REPL_COMMAND, mark = 1;
    else if (start[0] == '?' && start[1] == '?')
        kind = REPL_SEARCH, mark = 2;
    else if (start[0] == '?')
        kind = REPL_HELP, mark = 1;
    *rest = repl_skip_blanks(start + mark);
    return kind;
}

/* The level of the long bracket that opens at text, or -1. */
static int bracket_level(const char *text, const char *end)
{
    const char *p = text + 1;
    if (text >= end || *text != '[')
        return -1;
    while (p < end && *p == '=')
        p++;
    return p < end && *p == '[' ? (int)(p - text - 1) : -1;
}

/* Behind the long bracket that opens at text, or NULL: it is not closed. */
static const char *skip_bracket(const char *text, const char *end, int level)
{
    for (const char *p = text + level + 2; p < end; p++) {
        const char *close = p + 1;
        if (*p != ']')
            continue;
        while (close < end && *close == '=')
            close++;
        if (close < end && *close == ']' && close - p - 1 == level)
            return close + 1;
    }
    return NULL;
}

static const char *skip_quoted(const char *text, const char *end)
{
    for (const char *p = text + 1; p < end; p++)
        if (*p == '\\')
            p++;
        else if (*p == *text)
            return p + 1;
    return NULL;
}

static const char *skip_comment(const char *text, const char *end)
{
    const char *newline;
    int level = bracket_level(text + 2, end);
    if (level >= 0)
        return skip_bracket(text + 2, end, level);
    newline = memchr(text, '\n', (size_t)(end - text));
    return newline != NULL ? newline : end;
}

static int is_comment(const char *text, const char *end)
{
    return end - text >= 2 && text[0] == '-' && text[1] == '-';
}

/* Behind the string or the character at text; NULL: an open string. */
static const char *skip_token(const char *text, const char *end)
{
    int level = bracket_level(text, end);
    if (level >= 0)
        return skip_bracket(text, end, level);
    if (*text == '"' || *text == '\'')
        return skip_quoted(text, end);
    return text + 1;
}

size_t repl_silenced(const char *text, size_t length)
{
    const char *end = text + length, *p = text, *last = NULL;
    while (p != NULL && p < end)
        if (is_comment(p, end)) {
            p = skip_comment(p, end);
        } else if (isspace((unsigned char)*p)) {
            p++;
        } else {
            last = p;
            p = skip_token(p, end);
        }
    return p != NULL && last != NULL && *last == ';' ? (size_t)(last - text)
                                                     : 0;
}
