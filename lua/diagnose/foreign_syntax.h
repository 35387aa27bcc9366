/* What people write who come from other languages, and what to write here. */
#ifndef LUMAT_FOREIGN_SYNTAX_H
#define LUMAT_FOREIGN_SYNTAX_H

#include <stddef.h>
#include "lua.h"

/* With the error value on top: adds what to write to what Lua itself says,
 * where a name is nil, a property such as A.rows was called, or the entry's
 * line shows a habit. At the prompt in rows of its own, in a script's one line.
 */
void lumat_explain_error(lua_State *L, int is_entry);

/* Pushes what an entry does that compiles, and does something else than it
 * would elsewhere; or returns NULL. */
const char *lumat_push_misread(lua_State *L, const char *text, size_t length);

/* Raises what to write where a matrix was called as none can be: A.T(), A{1},
 * A'…', for i in A; else returns. To be called by its __call. */
void lumat_refuse_called(lua_State *L);

/* With a syntax error's message on top, adds what to write where the line in
 * text shows a habit of another language: A(1,2) = 3, !=, +=, .*, A'. */
void lumat_explain_syntax(lua_State *L, const char *text, size_t length);

#endif
