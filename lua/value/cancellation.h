/* Ctrl-C in what runs: how a call stops, and what its error says. */
#ifndef LUMAT_CANCELLATION_H
#define LUMAT_CANCELLATION_H

#include "matrix.h"

#include <signal.h>

/* Around a call from the terminal, which may have been stopped already. Before
 * end, what is to be stopped stays so, whatever errors it catches. */
void lumat_begin_stoppable(lua_State *L);
void lumat_end_stoppable(lua_State *L);
/* Whether the last call was stopped. */
int lumat_was_stopped(void);
/* Given the status of a call that ended and what it left on top, if that was
 * stopped: makes it the message to that effect, and returns its status. */
int lumat_explain_stopped(lua_State *L, int status);

/* Whether a warning tells of a finaliser that was stopped with the call, whose
 * own error tells of it. Behind a call it is the end of what was stopped. */
int lumat_is_told_of(const char *warning);

/* With Lua's own functions there: wraps those that could not be stopped. When
 * the state is closed: nothing runs any more. */
void lumat_open_stopping(lua_State *L);
void lumat_close_stopping(void);

/* For loops in C, in round i: raises when the user wants them to stop, looking
 * once in many rounds. */
void lumat_poll(lua_State *L, int64_t i);
/* The same for loops whose rounds are short: a look at a flag in each. */
extern volatile sig_atomic_t lumat_stopping;
void lumat_stop_here(lua_State *L);
static inline void lumat_look(lua_State *L)
{
    if (__builtin_expect(lumat_stopping, 0))
        lumat_stop_here(L);
}
/* Raises "interrupted at f.lua:31", naming the user's line. */
int lumat_raise_interrupted(lua_State *L);
/* Raises that an operand of the running function was left incomplete. */
int lumat_raise_incomplete(lua_State *L);

#endif
