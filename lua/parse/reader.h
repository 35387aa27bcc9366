/* The words and signs of Lua text, one after another, without blanks and
 * comments: the tokens of lexer.c and the extent of expressions. */
#ifndef LUMAT_READER_H
#define LUMAT_READER_H

#include <stddef.h>

typedef enum lumat_word_kind {
    LUMAT_WORD_END, /* of the text; its length is 0 */
    LUMAT_WORD_NAME,
    LUMAT_WORD_KEYWORD,
    LUMAT_WORD_NUMBER,
    LUMAT_WORD_STRING,
    LUMAT_WORD_SIGN
} lumat_word_kind;

typedef struct lumat_word {
    lumat_word_kind kind;
    const char *start;
    size_t length;
    int line; /* from 1 */
} lumat_word;

/* A place in a text: the token there, and where the one before it ended. */
typedef struct lumat_reader {
    const char *p, *end;
    int line;
    lumat_word word;
    const char *behind;
} lumat_reader;

/* At the first token. */
lumat_reader lumat_read_words(const char *text, size_t length);
void lumat_next_word(lumat_reader *r);

/* Is the token the keyword or sign? */
int lumat_at(const lumat_reader *r, const char *word);
int lumat_word_is(const lumat_word *t, const char *word);
/* Is its text one of the words, between blanks? */
int lumat_word_among(const lumat_word *t, const char *words);

/* +1 where a block opens (function do if repeat), -1 where one ends. */
int lumat_block_step(const lumat_word *t);

/* Past a bracketed part, a function's body from its keyword on, or one token.
 */
void lumat_skip_operand(lumat_reader *r);
/* Past a list of expressions. */
void lumat_skip_expressions(lumat_reader *r);

#endif
