/* Reading a line from the terminal. Behind it stands GNU Readline; where the
 * input is no terminal, plain reading. */
#ifndef LINE_H
#define LINE_H

#include "lumat.h"

typedef enum repl_line_end {
    REPL_LINE_READ,        /* by RETURN */
    REPL_LINE_INTERRUPTED, /* by Ctrl-C: what was typed so far */
    REPL_LINE_END          /* of the input, or Ctrl-D: NULL */
} repl_line_end;

/* Judges lines and offers completions by L from now on. */
void repl_line_open(lua_State *L);

/* Reads a line, or several rows of one. The caller frees it. */
char *repl_read_line(const char *prompt, repl_line_end *end);

/* Whether a line can have rows: then it is read whole, not row by row. */
int repl_line_has_rows(void);

/* While a paste is read, keys come in blocks; whatever is left behind it is
 * given back to Readline. */
void repl_read_ahead(int on);

#endif
