/* What the files of this folder add to a state. */
#ifndef LUMAT_OPEN_H
#define LUMAT_OPEN_H

#include "lua.h"

void lumat_open_system(lua_State *L); /* clock sync device seed … */
void lumat_open_help(lua_State *L);
/* With --safe, before anything keeps a function of Lua's: the library itself
 * opens no other files, starts nothing and shows no addresses, whatever a
 * script has it do. */
void lumat_guard_library(lua_State *L);
/* When all names are globals: leaves scripts what --safe allows. */
void lumat_make_safe(lua_State *L);

#endif
