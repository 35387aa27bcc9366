/* The full-screen viewer, :view A and view(A), and the pager of last() and
 * :last. Sees the terminal; main.c gives these functions to the language. */
#ifndef VIEWER_H
#define VIEWER_H

#include "lumat.h"

/* A function of Lua: shows the matrix under the name at 1 and 2 until the user
 * leaves, then prints what was noted. Raises where there is no screen. */
int repl_view(lua_State *L);

/* Functions of Lua. The first prints the text at 1 through $PAGER, or plainly
 * where the output is no terminal or has room for it; the second never starts
 * a process, and turns the pages itself. */
int repl_page(lua_State *L);
int repl_page_safely(lua_State *L);

#endif
