/* Readline's own drawing of a picture. */
#ifndef READLINE_DRAW_H
#define READLINE_DRAW_H

#include "layout.h"

/* Has Readline draw the line, with the picture's text in its place when asked
 * for. NULL: there is no picture. */
void repl_redraw(const repl_picture *picture, int in_place);

/* The row in which that left the cursor. */
int repl_redrawn_row(void);

/* Whether the cursor may be elsewhere: Readline 8.2 does not know, either. */
int repl_is_lost(void);

/* A new line: nothing of it is on the screen. */
void repl_begin_redrawing(void);

#endif
