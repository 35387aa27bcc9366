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

#endif
