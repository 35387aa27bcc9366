/* The line being typed on the screen: Readline draws it, and where there may
 * be colours they are painted over what it drew. */
#ifndef PAINT_H
#define PAINT_H

/* Takes over Readline's drawing where the terminal can move its cursor. */
void repl_paint_open(void);

/* Whether a line may have rows of its own; else every row is a line. As of
 * the last repl_paint_begin. */
int repl_paint_has_rows(void);

/* Before each line: what the terminal and the user's settings allow. */
void repl_paint_begin(void);

/* Clears the echo of keys that came too early, and will come again. */
void repl_paint_clear_echo(void);

/* Draws the line as it stays on the screen: all of it, and nothing that helps
 * only while typing. */
void repl_paint_final(void);

/* Ctrl-C: puts the cursor behind the line, and from now on the line stays as
 * it is on the screen. */
void repl_paint_leave(void);

/* Takes the suggestion off the screen, when a key comes or the program
 * stops. */
void repl_paint_clear_ghost(void);

/* Draws the line anew on a screen of another size. */
void repl_paint_resized(void);

/* Clears the line off the screen, for another program to use it. */
void repl_paint_clear(void);

#endif
