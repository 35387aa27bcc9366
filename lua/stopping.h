/* Ctrl-C in what runs: how a call stops, and what its error says. */
#ifndef LUMAT_STOPPING_H
#define LUMAT_STOPPING_H

#include "matrix.h"

/* Around a call from the terminal, which may have been stopped already. Before
 * end, what is to be stopped stays so, whatever errors it catches. */
void lumat_begin_stoppable(lua_State *L);
void lumat_end_stoppable(lua_State *L);
/* Whether the last call was stopped. */
int lumat_was_stopped(void);
/* Given the status of a call that ended and what it left on top, if that was
 * stopped: makes it the message to that effect, and returns its status. */
int lumat_explain_stopped(lua_State *L, int status);

/* Wraps Lua's own functions, so that loops in coroutines stop as well. */
void lumat_note_coroutines(lua_State *L);

/* For loops in C, in round i: raises when the user wants them to stop, looking
 * once in many rounds. */
void lumat_poll(lua_State *L, int64_t i);
/* Raises "interrupted at f.lua:31", naming the user's line. */
int lumat_raise_interrupted(lua_State *L);
/* Raises that an operand of the running function was left incomplete. */
int lumat_raise_incomplete(lua_State *L);

#endif
