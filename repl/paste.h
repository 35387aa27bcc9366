/* Pasted text, and lines that wait to be read. */
#ifndef PASTE_H
#define PASTE_H

/* Reads what the terminal marks as pasted and puts it in as one piece. A
 * Readline command. */
int repl_paste(int count, int key);

/* Text for the next line. With run it is read as if RETURN followed it. */
void repl_queue_line(const char *text, int run);

/* The first of the queue into the line. Returns whether it is to be run. */
int repl_take_queued(void);

/* After Ctrl-C the rest of what was pasted does not run. */
void repl_forget_queued(void);

#endif
