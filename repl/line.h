/* Reading a line from the terminal. Behind it stands GNU Readline, which only
 * line.c knows; where the input is no terminal, plain reading. */
#ifndef LINE_H
#define LINE_H

#include "lumat.h"

typedef enum repl_line_end {
    REPL_LINE_READ,        /* by RETURN */
    REPL_LINE_INTERRUPTED, /* by Ctrl-C: what was typed so far */
    REPL_LINE_END          /* of the input, or Ctrl-D: NULL */
} repl_line_end;

/* Offers completions from L's variables from now on. */
void repl_line_open(lua_State *L);

/* Reads a line, or several that were pasted or recalled together. The caller
 * frees it. */
char *repl_read_line(const char *prompt, repl_line_end *end);

/* --- what Up brings back ------------------------------------------------ */

void repl_remember(const char *entry);
/* The newest entry, or NULL. */
const char *repl_last_remembered(void);
/* The entry i places from the oldest one, or NULL. */
const char *repl_remembered(int i);
/* Forgets the oldest entries over a number. */
void repl_forget_over(int most);

#endif
