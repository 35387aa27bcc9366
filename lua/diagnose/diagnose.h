/* What is wrong with an entry or a script: habits of other languages, names
 * without a value, slips that Lua lets pass. */
#ifndef LUMAT_DIAGNOSE_H
#define LUMAT_DIAGNOSE_H

#include <stddef.h>
#include "lua.h"
#include "value.h"
#include "parse.h"

/* --- habits of other languages -------------------------------------------- */
/* What people write who come from them, and what to write here. */

/* With the error value on top: adds what to write to what Lua itself says,
 * where a name is nil, a property such as A.rows was called, or the entry's
 * line shows a habit. At the prompt in rows of its own, in a script's one line.
 */
void lumat_explain_error(lua_State *L, int is_entry);

/* Raises what to write where a matrix was called as none can be: A.T(), A{1},
 * A'…', for i in A; else returns. To be called by its __call. */
void lumat_refuse_called(lua_State *L);

/* With a syntax error's message on top, adds what to write where the line in
 * text shows a habit of another language: A(1,2) = 3, !=, +=, .*, A'. */
void lumat_explain_syntax(lua_State *L, const char *text, size_t length);

/* --- names without a value ------------------------------------------------ */
/* Told before an entry runs where it is sure to fail, and with what they may
 * have meant wherever Lua stumbles on one. */

/* With an entry's function, compiled from these tokens, on top: LUA_OK, or,
 * when the entry calls, indexes or computes with a global that has no value and
 * that nothing in it can have set, LUA_ERRSYNTAX with the message in its place.
 */
int lumat_check_names(lua_State *L, const lumat_tokens *t);

/* With the function compiled from them still to be called: finds the names in
 * it that have no value and are passed on, for lumat_each_unset to tell of. */
void lumat_find_unset(lua_State *L, const lumat_tokens *t);

/* Behind that one, with the entry's own text: finds what it does that would be
 * something else in another language, for lumat_each_unset to tell of. */
void lumat_find_misread(lua_State *L, const char *text, size_t length);

/* With the error value of the last entry at index, or 0: tells once of each
 * name without a value that it passed on, when something else may have been
 * meant, or nil was the error. headline is "mattt is nil; did you mean mat?"
 * Tells as well, with "" for the name, of an entry without an error that would
 * do something else in another language. */
void lumat_each_unset(lua_State *L, int error, lumat_name_fn *each, void *data);

/* --- --strict ------------------------------------------------------------- */

/* From now on reading a global that was never set is an error, and a function
 * that sets a new one is told. */
void lumat_make_strict(lua_State *L);
int lumat_is_strict(lua_State *L);

#endif
