/* The program's standard output and error while an entry runs: streams that
 * write to where they did before, know whether a terminal's row was begun, and
 * pass text without colours on. */
#ifndef LUMAT_OUTPUT_H
#define LUMAT_OUTPUT_H

#include "lua.h"

#include <stdio.h>

/* Begins, unless nobody wants it: neither is one a terminal nor is there a
 * sink. Returns 0 when memory is short. */
int lumat_start_output(void);
void lumat_stop_output(void);

/* What gets each character that is printed, but for escape sequences; NULL:
 * nothing does. */
void lumat_set_sink(void (*sink)(char c));

/* Where standard error goes, past what is passed on: for a word about that. */
FILE *lumat_real_stderr(void);

void lumat_open_output(lua_State *L);
/* The state is about to end. */
void lumat_close_output(void);

/* Whether what was printed by entries left text in the terminal's row; from
 * now on it has not. */
int lumat_take_open_row(void);

/* Is the value io.stdout or io.stderr? */
int lumat_is_own_output(lua_State *L, int index);

#endif
