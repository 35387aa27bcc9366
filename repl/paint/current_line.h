/* The picture of Readline's line as it is now. */
#ifndef CURRENT_LINE_H
#define CURRENT_LINE_H

#include "layout.h"

/* Draws the line, with the prompt that is shown at the moment, for the screen
 * as it is; as it stays there when final. A picture stands until the next one
 * is drawn. NULL: memory is short. */
const repl_picture *repl_draw_line(int is_final);

/* All of the line that was drawn last. It is another picture than the one
 * returned when that has only the rows that the screen has room for. */
const repl_picture *repl_drawn_whole(void);

/* The prompt in front of it. */
const char *repl_drawn_prompt(void);

/* A new line: it is shown from its first row on. */
void repl_begin_drawing(void);

/* Whether one of Readline's variables is on. */
int repl_readline_has(const char *variable);

#endif
