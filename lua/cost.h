/* What the library's later_cost.lua needs of C. */
#ifndef LUMAT_COST_H
#define LUMAT_COST_H

#include "matrix.h"

void lumat_open_cost(lua_State *L);

#endif
