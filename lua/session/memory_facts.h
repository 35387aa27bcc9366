/* What holds memory, for the library's memory.lua. */
#ifndef LUMAT_MEMORY_FACTS_H
#define LUMAT_MEMORY_FACTS_H

#include "matrix.h"

void lumat_open_held(lua_State *L);

#endif
