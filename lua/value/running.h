/* What a terminal may do to what runs, and know of it. */
#ifndef LUMAT_RUNNING_H
#define LUMAT_RUNNING_H

#include "lua.h"

/* Safe in a signal handler: what runs in L stops with "interrupted at
 * f.lua:31". */
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

/* The text of the entry that runs, or NULL, and its number in the session. */
const char *lumat_running_entry(int *number);
void lumat_set_running_entry(const char *text, int number);

/* Seconds of a clock that never goes back. */
double lumat_now(void);

#endif
