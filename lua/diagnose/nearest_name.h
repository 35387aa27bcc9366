/* Names that have no value: told before an entry runs where it is sure to
 * fail, and with what they may have meant wherever Lua stumbles on one. */
#ifndef LUMAT_NEAREST_NAME_H
#define LUMAT_NEAREST_NAME_H

#include "lua.h"
#include <stddef.h>

/* With an entry's function, compiled from text, on top: LUA_OK, or, when the
 * entry calls, indexes or computes with a global that has no value and that
 * nothing in it can have set, LUA_ERRSYNTAX with the message in its place. */
int lumat_check_names(lua_State *L, const char *text, size_t length);

/* With the error value on top: where Lua says that a global is nil, adds what
 * may have been meant; in an entry says it in the prompt's words. */
void lumat_explain_nil(lua_State *L, int is_entry);

/* With the function compiled from text still to be called: finds the names in
 * it that have no value and are passed on, for lumat_each_unset to tell of. */
void lumat_find_unset(lua_State *L, const char *text, size_t length);

/* Behind that one, with the entry's own text: finds what it does that would be
 * something else in another language, for lumat_each_unset to tell of. */
void lumat_find_misread(lua_State *L, const char *text, size_t length);

/* Pushes "'matmull' is not defined: did you mean matmul?"; in an entry a
 * command may be meant, too. */
void lumat_push_undefined(lua_State *L, const char *name, int is_entry);

/* Is it one of the session's locals, or a global that is not nil? */
int lumat_has_value(lua_State *L, const char *name, size_t length);
/* Have neither nil nor the globals a metatable? Who gives them one has plans
 * of his own; --strict does not count. */
int lumat_are_globals_plain(lua_State *L);

/* Pushes and returns how a message goes on about a name without a value: "did
 * you mean sum?" (in an entry a command, too), or a sentence; or pushes nil
 * and returns NULL. *is_likely, unless NULL: is it more than a resemblance? */
const char *lumat_push_meant(lua_State *L, const char *name, int is_entry,
                             int *is_likely);

#endif
