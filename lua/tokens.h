/* Lua text as tokens: what every reader of it in lua/ begins with. The tokens
 * themselves are in lumat.h, for the terminal has use for them, too. */
#ifndef LUMAT_TOKENS_H
#define LUMAT_TOKENS_H

#include "lumat.h"

extern const char lumat_keywords[]; /* with a blank between them */
int lumat_is_keyword(const char *word, size_t length);

/* The newlines between the two, as Lua counts lines. */
int lumat_count_lines(const char *from, const char *to);

#endif
