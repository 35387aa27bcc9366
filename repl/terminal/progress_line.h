/* The line that says how far an operation is which takes longer than a second.
 */
#ifndef PROGRESS_LINE_H
#define PROGRESS_LINE_H

/* From now on such lines are shown, where standard error is a terminal that
 * can take them back and standard output is no pipe. */
void repl_show_progress(void);

/* While the whole screen is another's: keeps quiet from 1 to 0. */
void repl_pause_progress(int paused);

#endif
