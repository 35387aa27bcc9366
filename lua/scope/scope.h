/* The locals of the prompt: a session reads like one chunk, so a local of an
 * entry's top level is seen by the entries behind it, by the very variable a
 * closure of the entry sees.
 *
 * Each is kept as a closure over it, its cell; entries that name it are
 * compiled inside a function that declares it and joined to the cell. The
 * table lumat.session mirrors their values between calls. What is written
 * there becomes the local's value, or a new local. */
#ifndef LUMAT_SCOPE_H
#define LUMAT_SCOPE_H

#include "lua.h"
#include "parse.h"
#include <stddef.h>

void lumat_open_locals(lua_State *L);

/* Takes over what was written to lumat.session. Before an entry is compiled.
 */
void lumat_adopt_locals(lua_State *L);
/* Pushes the cell of a local of the session, or nil. Returns whether there is
 * one. */
int lumat_push_local(lua_State *L, const char *name, size_t length);

/* Pushes a variable's value by raw access: of a local of the session or a
 * global; nil when there is none. */
void lumat_push_variable(lua_State *L, const char *name, size_t length);

/* With an entry's function, compiled from these tokens, on top: puts the
 * function that sees and keeps the session's locals in its place. Returns Lua's
 * status; if it is not LUA_OK, the message is on top instead. */
int lumat_join_locals(lua_State *L, const lumat_tokens *t);

enum { LUMAT_ONE_PART = 101 }; /* beside Lua's own status codes */

/* Compiles tokens with more locals than one function can have: pushes the
 * function that runs its parts one after another and returns LUA_OK, or pushes
 * a message. LUMAT_ONE_PART: it is one statement; nothing is pushed. */
int lumat_load_parts(lua_State *L, const lumat_tokens *t);

/* While entries run the mirror is empty, or it would keep alive what they let
 * go; afterwards, or for whoever wants to look meanwhile, it is filled. */
void lumat_hide_locals(lua_State *L);
void lumat_refresh_locals(lua_State *L);

#endif
