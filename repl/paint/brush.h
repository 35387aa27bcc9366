/* Writing on the terminal beside Readline. Rows count from the picture's
 * first. */
#ifndef BRUSH_H
#define BRUSH_H

#include "layout.h"

/* Moves the cursor, which is in row `from`. */
void repl_move_to(int from, int row, int column);

/* Clears the cursor's row and those below; it goes to the row's start. */
void repl_clear_below(void);

/* Writes over a picture that is on the screen, in colour, with the cursor at
 * its point, before and after; marked: what is between point and mark stands
 * out. */
void repl_paint_picture(const repl_picture *picture, int marked);

/* Writes a picture that may be higher than the screen, and a newline. */
void repl_write_picture(const repl_picture *picture, int in_colour);

#endif
