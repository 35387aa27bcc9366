/* Pasted text. */
#ifndef PASTE_H
#define PASTE_H

/* Reads what the terminal marks as pasted and puts it in as one piece. A
 * Readline command. */
int repl_paste(int count, int key);

#endif
