/* Standard input while an entry runs: see lumat_set_typing. */
#ifndef INPUT_H
#define INPUT_H

#include "lua.h"

/* Puts stand-ins in place of io's and os's functions that may have the terminal
 * read. */
void lumat_open_input(lua_State *L);

#endif
