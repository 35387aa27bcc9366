/* Reading a line from the terminal: keys on their way to Readline, and what
 * becomes of a line; where the input is no terminal, plain reading. Sees paint,
 * the history, entries and the terminal. repl.c reads by it. */
#ifndef LINE_H
#define LINE_H

#include "lumat.h"

/* How a line ended. */
typedef enum repl_line_end {
    REPL_LINE_READ,        /* by RETURN */
    REPL_LINE_INTERRUPTED, /* by Ctrl-C: what was typed so far */
    REPL_LINE_END          /* of the input, or Ctrl-D: NULL */
} repl_line_end;

/* Judges lines by L from now on, which stays the caller's. Once, before any is
 * read. */
void repl_line_open(lua_State *L);

/* Reads a line, or several rows of one, without the newline at its end. The
 * caller frees it. end gets how it ended. */
char *repl_read_line(const char *prompt, repl_line_end *end);

/* Text that was read and is to be typed at the next line: no more than a few
 * hundred bytes. */
void repl_give_keys(const char *keys);

/* Whether a line can have rows: then it is read whole, not row by row. */
int repl_line_has_rows(void);

/* Prints the list of keys, for :keys. */
void repl_print_keys(void);

#endif
