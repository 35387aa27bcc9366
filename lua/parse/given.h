/* What an entry's text says of names: which it gives a value, and where its
 * statements begin. */
#ifndef LUMAT_GIVEN_H
#define LUMAT_GIVEN_H

#include "lua.h"
#include "reader.h"

/* Is it one of the words or signs between blanks, and no string? */
int lumat_is_one_of(const lumat_word *t, const char *words);
/* Does it go on with an operand before it: a call, an index, a field? */
int lumat_is_suffix(const lumat_word *t);
/* Right behind another token: a name or keyword that starts a statement. */
int lumat_starts_statement(const lumat_word *before, const lumat_word *t);
lumat_word lumat_word_behind(const lumat_reader *r);

/* Pushes a table of the names that the text declares or sets anywhere: its
 * variables, locals, loops' and functions' names. Returns whether it makes
 * functions. */
int lumat_push_given(lua_State *L, lumat_reader r);

#endif
