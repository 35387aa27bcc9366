/* What the library's cost.lua needs of C. */
#ifndef LUMAT_OP_FACTS_H
#define LUMAT_OP_FACTS_H

#include "matrix.h"

void lumat_open_cost(lua_State *L);

#endif
