/* Tab at the prompt. Sees entries and the terminal; repl.c opens it.
 */
#ifndef TAB_COMPLETION_H
#define TAB_COMPLETION_H

#include "lumat.h"

/* Offers completions from L's variables from now on; L stays the caller's.
 * Once, after repl_line_open. */
void repl_offers_open(lua_State *L);

#endif
