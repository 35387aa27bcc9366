/* What the screen can show: its size, colours, and characters. */
#ifndef SCREEN_H
#define SCREEN_H

#include "lumat.h"

/* Whether colours go to a file descriptor: with auto, only to a terminal that
 * knows them, and never against NO_COLOR. */
int repl_colour(int descriptor);

/* Is the terminal one that knows more than to print? */
int repl_can_move_cursor(void);

/* Whether … and the like cannot be shown. */
int repl_ascii(void);

/* The style of scripts: the same text wherever it goes, so 80 columns or
 * $COLUMNS, and colour only when asked for. */
void repl_script_style(lumat_style *style);
/* The style of the prompt: the terminal as it is now. */
void repl_prompt_style(lumat_style *style);

/* The terminal that shows what is printed, or -1. */
int repl_terminal_file(void);

/* On a terminal, ends a row that output or the terminal's ^C has begun, so that
 * what follows has its own. */
void repl_end_output(void);

#endif
