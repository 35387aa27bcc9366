/* The words and signs of Lua text, and the extent of its expressions. */
#include "reader.h"

#include <ctype.h>
#include <string.h>

int lumat_word_is(const lumat_word *t, const char *word)
{
    return (t->kind == LUMAT_WORD_KEYWORD || t->kind == LUMAT_WORD_SIGN) &&
           strlen(word) == t->length && memcmp(t->start, word, t->length) == 0;
}

int lumat_at(const lumat_reader *r, const char *word)
{
    return lumat_word_is(&r->word, word);
}

/* Is the token one of the words, between blanks? */
int lumat_word_among(const lumat_word *t, const char *words)
{
    for (const char *p = words; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (n == t->length && memcmp(p, t->start, n) == 0)
            return 1;
        p += n;
    }
    return 0;
}

/* --- reading -------------------------------------------------------------- */

/* At "[": the number of = in a long bracket's start, or -1 if it is none. */
static int long_bracket(const char *p, const char *end)
{
    const char *q = p + 1;
    while (q < end && *q == '=')
        q++;
    return *p == '[' && q < end && *q == '[' ? (int)(q - p - 1) : -1;
}

/* Past the long bracket of `level` at p. */
static const char *skip_long(const char *p, const char *end, int level)
{
    for (p += level + 2; p < end; p++) {
        const char *q = p + 1;
        if (*p != ']')
            continue;
        while (q < end && *q == '=')
            q++;
        if (q < end && *q == ']' && q - p - 1 == level)
            return q + 1;
    }
    return end;
}

static const char *skip_quoted(const char *p, const char *end)
{
    char quote = *p++;
    for (; p < end && *p != quote; p++)
        if (*p == '\\' && p + 1 < end)
            p++;
    return p < end ? p + 1 : end;
}

static const char *skip_comment(const char *p, const char *end)
{
    int level = p + 2 < end ? long_bracket(p + 2, end) : -1;
    if (level >= 0)
        return skip_long(p + 2, end, level);
    while (p < end && *p != '\n')
        p++;
    return p;
}

static int is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* An exponent's sign belongs to its number. */
static const char *skip_number(const char *p, const char *end)
{
    for (p++; p < end; p++)
        if (!is_word_char(*p) && *p != '.' &&
            !(strchr("+-", *p) && strchr("eEpP", p[-1])))
            break;
    return p;
}

static const char *skip_sign(const char *p, const char *end)
{
    static const char *const signs[] = {
        "...", "..", "==", "~=", "<=", ">=", "//", "::", "<<", ">>"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t n = strlen(signs[i]);
        if ((size_t)(end - p) >= n && memcmp(p, signs[i], n) == 0)
            return p + n;
    }
    return p + 1;
}

static const char *skip_word(const char *p, const char *end)
{
    while (p < end && is_word_char(*p))
        p++;
    return p;
}

static const char *skip_blanks(const char *p, const char *end)
{
    for (;;) {
        while (p < end && isspace((unsigned char)*p))
            p++;
        if (end - p < 2 || p[0] != '-' || p[1] != '-')
            return p;
        p = skip_comment(p, end);
    }
}

static lumat_word_kind kind_of_word(const lumat_word *t)
{
    static const char keywords[] =
        "and break do else elseif end false for function goto if in local nil "
        "not or repeat return then true until while";
    return lumat_word_among(t, keywords) ? LUMAT_WORD_KEYWORD : LUMAT_WORD_NAME;
}

/* The end of the token at p, whose kind it sets; words are told later. */
static const char *measure(lumat_word *t, const char *p, const char *end)
{
    int level = long_bracket(p, end);
    t->kind = LUMAT_WORD_SIGN;
    if (isalpha((unsigned char)*p) || *p == '_') {
        t->kind = LUMAT_WORD_NAME;
        return skip_word(p, end);
    }
    if (isdigit((unsigned char)*p) ||
        (*p == '.' && p + 1 < end && isdigit((unsigned char)p[1]))) {
        t->kind = LUMAT_WORD_NUMBER;
        return skip_number(p, end);
    }
    if (level < 0 && *p != '"' && *p != '\'')
        return skip_sign(p, end);
    t->kind = LUMAT_WORD_STRING;
    return level >= 0 ? skip_long(p, end, level) : skip_quoted(p, end);
}

static int count_lines(const char *from, const char *to)
{
    int lines = 0;
    while (from < to && (from = memchr(from, '\n', (size_t)(to - from))))
        from++, lines++;
    return lines;
}

void lumat_next_word(lumat_reader *r)
{
    lumat_word *t = &r->word;
    r->behind = r->p;
    t->start = skip_blanks(r->p, r->end);
    r->line += count_lines(r->p, t->start);
    t->line = r->line;
    if (t->start == r->end) {
        t->kind = LUMAT_WORD_END;
        t->length = 0;
        r->p = r->end;
        return;
    }
    r->p = measure(t, t->start, r->end);
    r->line += count_lines(t->start, r->p);
    t->length = (size_t)(r->p - t->start);
    if (t->kind == LUMAT_WORD_NAME)
        t->kind = kind_of_word(t);
}

lumat_reader lumat_read_words(const char *text, size_t length)
{
    lumat_reader r = {.p = text, .end = text + length, .line = 1};
    lumat_next_word(&r);
    return r;
}

/* --- extents -------------------------------------------------------------- */

int lumat_block_step(const lumat_word *t)
{
    if (t->kind != LUMAT_WORD_KEYWORD)
        return 0;
    return lumat_word_among(t, "function do if repeat") ? 1
           : lumat_word_among(t, "end until")           ? -1
                                                        : 0;
}

static int bracket_step(const lumat_word *t)
{
    if (t->kind != LUMAT_WORD_SIGN || t->length != 1)
        return 0;
    return strchr("([{", *t->start) ? 1 : strchr(")]}", *t->start) ? -1 : 0;
}

void lumat_skip_operand(lumat_reader *r)
{
    int in_block = lumat_at(r, "function"), depth = 0;
    do {
        depth += in_block ? lumat_block_step(&r->word) : bracket_step(&r->word);
        lumat_next_word(r);
    } while (depth > 0 && r->word.kind != LUMAT_WORD_END);
}

/* A field's dot and a method's colon join as operators do. */
static int joins(const lumat_word *t)
{
    return (t->kind == LUMAT_WORD_SIGN || t->kind == LUMAT_WORD_KEYWORD) &&
           lumat_word_among(
               t, ", . : + - * / // % ^ .. == ~= < > <= >= & | ~ << >> "
                  "and or");
}

static int is_unary(const lumat_word *t)
{
    return (t->kind == LUMAT_WORD_SIGN || t->kind == LUMAT_WORD_KEYWORD) &&
           lumat_word_among(t, "not - # ~");
}

static int is_suffix(const lumat_word *t)
{
    return t->kind == LUMAT_WORD_STRING || lumat_word_is(t, "(") ||
           lumat_word_is(t, "[") || lumat_word_is(t, "{");
}

void lumat_skip_expressions(lumat_reader *r)
{
    for (;;) {
        while (is_unary(&r->word))
            lumat_next_word(r);
        lumat_skip_operand(r);
        while (is_suffix(&r->word))
            lumat_skip_operand(r);
        if (!joins(&r->word))
            return;
        lumat_next_word(r);
    }
}
