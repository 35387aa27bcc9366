/* What entries at the prompt changed: how() and made_by(). */
#ifndef LUMAT_LINEAGE_H
#define LUMAT_LINEAGE_H

#include "lua.h"

void lumat_open_lineage(lua_State *L);

#endif
