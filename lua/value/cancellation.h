/* What runs, and how it is stopped: a flag and a hook that Ctrl-C sets, polls
 * in loops written in C, and what the error says. cancellation.c draws the
 * whole way. Also what a terminal may know of what runs: how far it is, which
 * entry it is, what time it is. */
#ifndef LUMAT_CANCELLATION_H
#define LUMAT_CANCELLATION_H

#include "lua.h"
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* --- for the terminal ----------------------------------------------------- */

/* Safe in a signal handler: what runs in L stops with "interrupted at
 * f.lua:31". A second one, before that has ended, stops it wherever it is. */
void lumat_interrupt(lua_State *L);
/* Safe there, too, while nothing is called: stops a finaliser that the
 * collector runs. Returns how often it was told so; 0: there is none. */
int lumat_interrupt_finaliser(void);
/* Outside lumat_call, which does it: what was to stop has come to its end. */
void lumat_end_interrupt(lua_State *L);

/* How far the running operation is, if it may last. Called around it, on the
 * language's own thread, are the two functions; look may be called from any
 * other, and returns 0 when none runs. */
typedef struct lumat_progress {
    char what[96];  /* "matmul 8000x8000x8000" */
    double seconds; /* since it began */
    double share;   /* done of what is to do; negative: unknown */
    double left;    /* seconds; negative: unknown */
} lumat_progress;
void lumat_watch_progress(void (*began)(void), void (*ended)(void));
int lumat_look_at_progress(lumat_progress *out);

/* The text of the entry that runs, or NULL, and its number in the session. The
 * text stays the one's who set it, up to the next that is set. */
const char *lumat_running_entry(int *number);
void lumat_set_running_entry(const char *text, int number);

/* Seconds of a clock that never goes back. */
double lumat_now(void);

/* --- for loops in C ------------------------------------------------------- */

/* In round i: raises when the user wants them to stop, looking once in many
 * rounds. */
void lumat_poll(lua_State *L, int64_t i);
/* The same for loops whose rounds are short: a look at a flag in each. */
extern volatile sig_atomic_t lumat_stopping;
void lumat_stop_here(lua_State *L);
static inline void lumat_look(lua_State *L)
{
    if (__builtin_expect(lumat_stopping, 0))
        lumat_stop_here(L);
}

/* --- for what calls ------------------------------------------------------- */

/* Around a call from the terminal, which may have been stopped already. Before
 * end, what is to be stopped stays so, whatever errors it catches. */
void lumat_begin_stoppable(lua_State *L);
void lumat_end_stoppable(lua_State *L);
/* Whether the last call was stopped. */
int lumat_was_stopped(void);
/* Given the status of a call that ended and what it left on top, if that was
 * stopped: makes it the message to that effect, and returns its status. */
int lumat_explain_stopped(lua_State *L, int status);

/* The thread that runs, or ran last; NULL before the first. */
lua_State *lumat_running(void);

/* --- for errors and warnings ---------------------------------------------- */

/* Raises "interrupted at f.lua:31", naming the user's line. */
int lumat_raise_interrupted(lua_State *L);
/* How many bytes at the message's beginning tell that the running or last call
 * was stopped, with the line of the entry where it was, or 0; 0: it tells of
 * something else. */
size_t lumat_interrupt_length(const char *message, int *line);
/* Raises that an operand of the running function was left incomplete, by its
 * name when it has one. */
int lumat_raise_incomplete(lua_State *L);
/* Whether a warning tells of a finaliser that was stopped with the call, whose
 * own error tells of it. Behind a call it is the end of what was stopped. */
int lumat_is_told_of(const char *warning);

/* --- for the state -------------------------------------------------------- */

/* With Lua's own functions there: wraps those that could not be stopped. When
 * the state is closed: nothing runs any more. */
void lumat_open_stopping(lua_State *L);
void lumat_close_stopping(void);

#endif
