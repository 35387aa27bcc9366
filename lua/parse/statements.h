/* Statements of Lua text, for text that compiles. */
#ifndef LUMAT_STATEMENTS_H
#define LUMAT_STATEMENTS_H

#include "reader.h"

enum { LUMAT_MOST_NAMES = 200 }; /* Lua's limit of locals in a function */

/* The names of a declaration, from the first one on. */
typedef struct lumat_declaration {
    struct {
        lumat_word name;
        int constant, closes;
    } list[LUMAT_MOST_NAMES];
    int count;
} lumat_declaration;

/* At `local`: past the declaration, whose names it gives. */
void lumat_read_declaration(lumat_reader *r, lumat_declaration *out);

/* Past a statement, or one token of what is none. */
void lumat_skip_statement(lumat_reader *r);

#endif
