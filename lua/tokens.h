/* Lua text as tokens: what every reader of it in lua/ begins with. The tokens
 * themselves are in lumat.h, for the terminal has use for them, too. */
#ifndef LUMAT_TOKENS_H
#define LUMAT_TOKENS_H

#include "lumat.h"

extern const char lumat_keywords[]; /* with a blank between them */
/* Is the word one of those between blanks? It may hold no zero. */
int lumat_is_listed(const char *word, size_t length, const char *words);
int lumat_is_keyword(const char *word, size_t length);

/* The newlines between the two, as Lua counts lines. */
int lumat_count_lines(const char *from, const char *to);

#endif
