/* What entries at the prompt changed: how() and made_by(). */
#ifndef LUMAT_LINEAGE_H
#define LUMAT_LINEAGE_H

#include "lua.h"

/* The text of the entry that runs, or NULL, and its number in the session. */
const char *lumat_running_entry(int *number);

void lumat_open_lineage(lua_State *L);

#endif
