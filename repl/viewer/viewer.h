/* The full-screen viewer: :view A and view(A). */
#ifndef VIEWER_H
#define VIEWER_H

#include "lumat.h"

/* A function of Lua: shows the matrix under the name at 1 and 2 until the user
 * leaves, then prints what was noted. Raises where there is no screen. */
int repl_view(lua_State *L);

#endif
