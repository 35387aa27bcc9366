/* Lua text as tokens: what every reader of it begins with. */
#ifndef LUMAT_LEXER_H
#define LUMAT_LEXER_H

#include <stddef.h>

/* Messages about an entry begin with this, a line number and a colon. */
#define LUMAT_CHUNK "lumat"

enum { LUMAT_INCOMPLETE = 100 }; /* beside Lua's own status codes */

typedef enum lumat_token_kind {
    LUMAT_BLANK,
    LUMAT_NAME,
    LUMAT_KEYWORD,
    LUMAT_NUMBER,
    LUMAT_STRING,
    LUMAT_COMMENT,
    LUMAT_SIGN /* ".." and "==" too; also a character that is no Lua */
} lumat_token_kind;

typedef struct lumat_token {
    lumat_token_kind kind;
    size_t start, end;
    size_t content; /* of a string or comment: behind its opening mark */
    int open;       /* a string or comment that the text ends in */
} lumat_token;

enum { LUMAT_OPEN_IN_LINE = 2 }; /* open, and a newline would end it badly */

/* Reads the token behind the last one; all zero in front of the first. Every
 * character belongs to a token. Returns 0 at the end. */
int lumat_next_token(const char *text, size_t length, lumat_token *token);

extern const char lumat_keywords[]; /* with a blank between them */
/* Is the word one of those between blanks? It may hold no zero. */
int lumat_is_listed(const char *word, size_t length, const char *words);
int lumat_is_keyword(const char *word, size_t length);

/* The newlines between the two, as Lua counts lines. */
int lumat_count_lines(const char *from, const char *to);

#endif
