/* A row of its own for what comes behind the output of other programs. */
#ifndef FRESH_ROW_H
#define FRESH_ROW_H

/* When programs that lumat started have ended since the last call, has the
 * cursor of the terminal leave a row in which there is text. */
void repl_begin_fresh_row(int terminal);

#endif
