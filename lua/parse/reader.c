/* The words and signs of Lua text, and the extent of its expressions. */
#include "reader.h"
#include "lexer.h"

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

int lumat_word_among(const lumat_word *t, const char *words)
{
    return lumat_is_listed(t->start, t->length, words);
}

/* --- reading -------------------------------------------------------------- */

static lumat_word_kind kind_of(const lumat_token *token)
{
    switch (token->kind) {
    case LUMAT_NAME:
        return LUMAT_WORD_NAME;
    case LUMAT_KEYWORD:
        return LUMAT_WORD_KEYWORD;
    case LUMAT_NUMBER:
        return LUMAT_WORD_NUMBER;
    case LUMAT_STRING:
        return LUMAT_WORD_STRING;
    default:
        return LUMAT_WORD_SIGN;
    }
}

void lumat_next_word(lumat_reader *r)
{
    const char *text = r->p;
    size_t length = (size_t)(r->end - text);
    lumat_token token = {0};
    int is_word = 0;
    while (!is_word && lumat_next_token(text, length, &token))
        is_word = token.kind != LUMAT_BLANK && token.kind != LUMAT_COMMENT;
    const char *start = is_word ? text + token.start : r->end;
    int line = r->line + lumat_count_lines(r->p, start);
    r->behind = r->p;
    r->p = is_word ? text + token.end : r->end;
    r->line = line + lumat_count_lines(start, r->p);
    r->word = (lumat_word){is_word ? kind_of(&token) : LUMAT_WORD_END, start,
                           (size_t)(r->p - start), line};
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

/* Only a name or what stands in parentheses can be called or indexed: behind
 * `x = 5` a row that begins with "(" is another statement. */
void lumat_skip_expressions(lumat_reader *r)
{
    for (;;) {
        while (is_unary(&r->word))
            lumat_next_word(r);
        int is_primary = r->word.kind == LUMAT_WORD_NAME || lumat_at(r, "(");
        lumat_skip_operand(r);
        while (is_primary && is_suffix(&r->word))
            lumat_skip_operand(r);
        if (!joins(&r->word))
            return;
        lumat_next_word(r);
    }
}
