/* Text that may be more than a screen: last() and :last. */
#ifndef PAGER_H
#define PAGER_H

#include "lumat.h"

/* Functions of Lua. The first prints the text at 1 through $PAGER, or plainly
 * where the output is no terminal or has room for it; the second never starts
 * a process, and turns the pages itself. */
int repl_page(lua_State *L);
int repl_page_safely(lua_State *L);

/* On the whole screen, without colours. */
int repl_turn_pages(lua_State *L);

#endif
