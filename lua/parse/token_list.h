/* Lua text up to a cursor, as tokens, for completion. Tokens are named by
 * their number in the list. */
#ifndef LUMAT_TOKEN_LIST_H
#define LUMAT_TOKEN_LIST_H

#include <stddef.h>
#include "lua.h"

/* A sign of one character is its own kind. */
enum {
    TOKEN_NAME = 256,
    TOKEN_WORD, /* a keyword of Lua */
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_OPEN_STRING, /* the last one: the cursor is in it */
    TOKEN_CONCAT,      /* .. */
    TOKEN_DIVIDE,      /* // */
    TOKEN_COMPARE,     /* == ~= <= >= < > */
    TOKEN_OTHER        /* ... :: << >> and what is no Lua */
};

typedef struct lumat_lexeme {
    int kind;
    int match; /* a bracket's other one; of an open one that is never closed,
                  the open one around it; else -1 */
    size_t start, end;
    size_t content; /* of a string: behind its opening quote */
} lumat_lexeme;

typedef struct lumat_lexemes {
    const char *text;
    const lumat_lexeme *list;
    int count;
    int innermost; /* the last bracket that is not closed, or -1 */
    int in_comment;
} lumat_lexemes;

/* Cuts text up to length. Pushes one userdata, which holds the list. */
void lumat_push_lexemes(lua_State *L, const char *text, size_t length,
                        lumat_lexemes *out);
int lumat_is_lexeme(const lumat_lexemes *t, int i, const char *text);
int lumat_lexeme_kind(const lumat_lexemes *t, int i); /* 0: there is none */

/* --- declared.c ----------------------------------------------------------- */

typedef void lumat_declared_fn(void *data, const char *name, size_t length);
/* Calls each for the names that local, for and function declare in t. */
void lumat_each_declared(const lumat_lexemes *t, lumat_declared_fn *each,
                         void *data);

#endif
