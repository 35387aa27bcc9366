/* TAB: what may stand in place of a word, and its list on the screen. Of the
 * files that know Readline, the one for completion. */
#ifndef TAB_LIST_H
#define TAB_LIST_H

#include "lumat.h"

/* Offers completions from L's variables from now on. */
void repl_offers_open(lua_State *L);

#endif
