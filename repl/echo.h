/* Loading, calling and echoing one entry. */
#ifndef ECHO_H
#define ECHO_H

#include "repl.h"

/* Compiles an entry as lumat_load does; '=' in front makes it an expression, as
 * in Lua 5.2. */
int repl_load_entry(lua_State *L, const char *text, int *shown);

/* Reports the message a load left, and pops it. */
void repl_report_unloaded(lua_State *L, const char *text);

/* Calls the loaded entry on top of the stack, echoes or reports what comes of
 * it, and takes both away. Returns 1 when it ran. */
int repl_call_loaded(repl_session *session, const char *text, int shown);

/* All of it, for text that has to be complete. Returns 1 when it ran. */
int repl_evaluate(repl_session *session, const char *text);

#endif
