/* What a text leaves open: blocks, brackets, strings, comments. */
#ifndef LUMAT_OPEN_BLOCKS_H
#define LUMAT_OPEN_BLOCKS_H

#include "lua.h"
#include "lexer.h"

enum { LUMAT_DEEPEST = 64 }; /* constructs in each other that have a name */
#define LUMAT_NOWHERE ((size_t)-1)

typedef struct lumat_construct {
    const char *name; /* "for", "function", "(" … */
    size_t place;
    int awaits_do;
} lumat_construct;

/* What is open behind the tokens it was given; all zero at first. */
typedef struct lumat_nesting {
    lumat_construct open[LUMAT_DEEPEST]; /* innermost last */
    int depth;
} lumat_nesting;

/* Takes the next token. Returns where the construct began that it closes, or
 * LUMAT_NOWHERE. */
size_t lumat_nest(lumat_nesting *nesting, const char *text,
                  const lumat_token *token);
/* The name of the innermost open construct, or "". */
const char *lumat_innermost(const lumat_nesting *nesting);
/* The mark with which a string or comment of several lines begins: "[[" or
 * "--[["; "" for other tokens. */
const char *lumat_open_token(const char *text, const lumat_token *token);

/* Pushes the name of the innermost construct that text leaves open: "for",
 * "function", "(", "[[" …, or "" when none is. */
void lumat_push_open_construct(lua_State *L, const char *text, size_t length);

#endif
