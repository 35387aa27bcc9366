/* The value of an entry of several rows. */
#ifndef REPL_ROWS_H
#define REPL_ROWS_H

#include "lumat.h"

/* Loads text as lumat_load does; but where its last statement is an expression
 * that begins a row, as pasted blocks often end, the function returns that. */
int repl_load_rows(lua_State *L, const char *text, size_t length);

#endif
