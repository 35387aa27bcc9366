/* What is told of scripts that would be right but for a slip, or slow without
 * need; with --strict most of it is an error. */
#ifndef LUMAT_STRICT_H
#define LUMAT_STRICT_H

#include "lua.h"

/* From now on reading a global that was never set is an error, and a function
 * that sets a new one is told. For --strict. */
void lumat_make_strict(lua_State *L);
/* Is the table on top's metatable the one that does so? */
int lumat_is_strict(lua_State *L, int index);

#endif
