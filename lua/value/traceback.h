/* The calls that are under way, as a user sees them. */
#ifndef LUMAT_TRACEBACK_H
#define LUMAT_TRACEBACK_H

#include "lua.h"

/* Is it a line of a user's? The library's part in Lua is not where one would
 * look. Of what lua_getinfo gives for "Sl". */
int lumat_is_users(const lua_Debug *ar);

/* Pushes the traceback of the users' functions above a message handler, or nil
 * when none of them called another. What the library did between two of them
 * is one line. */
void lumat_push_traceback(lua_State *L);

#endif
