/* Ctrl-C: a mark while a line is typed, a stop for what runs. */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include "lumat.h"

/* At a prompt: from now on Ctrl-C never ends the program. */
void repl_keep_interrupts(void);

/* Calls as lumat_call does, and lets Ctrl-C stop it. In a script a second
 * Ctrl-C ends the program. */
int repl_call(lua_State *L, int nargs);

/* From now on a call that lasts longer is stopped, as by Ctrl-C; the program
 * ends where a script's does not stop. */
void repl_limit_time(double seconds);
/* Around what else a script makes the program do: compiling it, showing what
 * it gives, ending. */
void repl_begin_time(void);
void repl_end_time(void);

/* For work that is not a call, such as showing a value; NULL ends it. */
void repl_interrupts_stop(lua_State *L);

/* Whether Ctrl-C came since the last clearing. */
int repl_interrupted(void);
void repl_clear_interrupt(void);
/* Whether the terminal has shown a ^C that stands at the end of its row; from
 * now on it does not. */
int repl_take_echo(void);
/* How often it came since the start. */
unsigned repl_interrupt_count(void);

#endif
