/* What the files of this room add to a state; the others have headers of their
 * own. */
#ifndef LUMAT_SESSION_PARTS_H
#define LUMAT_SESSION_PARTS_H

#include "lua.h"

void lumat_open_session(lua_State *L); /* the prompt's locals */
void lumat_open_who(lua_State *L);     /* who */
void lumat_open_screens(lua_State *L); /* view last */
void lumat_open_rescue(lua_State *L);

#endif
