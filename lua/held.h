/* What holds memory, for the library's memory.lua. */
#ifndef LUMAT_HELD_H
#define LUMAT_HELD_H

#include "matrix.h"

void lumat_open_held(lua_State *L);

#endif
