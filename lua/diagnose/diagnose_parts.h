/* What the files of this room tell each other, and nobody else hears. */
#ifndef LUMAT_DIAGNOSE_PARTS_H
#define LUMAT_DIAGNOSE_PARTS_H

#include "diagnose.h"

/* Pushes what an entry does that compiles, and does something else than it
 * would elsewhere; or returns NULL. */
const char *lumat_push_misread(lua_State *L, const char *text, size_t length);

/* With the error value on top: where Lua says that a global is nil, adds what
 * may have been meant; in an entry says it in the prompt's words. */
void lumat_explain_nil(lua_State *L, int is_entry);

/* Pushes and returns how a message goes on about a name without a value: "did
 * you mean sum?" (in an entry a command, too), or a sentence; or pushes nil
 * and returns NULL. *is_likely, unless NULL: is it more than a resemblance? */
const char *lumat_push_meant(lua_State *L, const char *name, int is_entry,
                             int *is_likely);

/* Is it one of the session's locals, or a global that is not nil? */
int lumat_has_value(lua_State *L, const char *name, size_t length);
/* Have neither nil nor the globals a metatable? Who gives them one has plans
 * of his own; --strict does not count. */
int lumat_are_globals_plain(lua_State *L);

#endif
