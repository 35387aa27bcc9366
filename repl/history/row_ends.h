/* The rows of the line in Readline's buffer. */
#ifndef ROW_ENDS_H
#define ROW_ENDS_H

/* Where the row begins, or ends, that the place is in. */
int repl_row_start(int place);
int repl_row_end(int place);

#endif
