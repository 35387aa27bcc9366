/* The line being typed, on the screen: Readline draws it, and where there may
 * be colours they are painted over what it drew. Sees entries, the history and
 * the terminal; the rooms that read lines see this one. */
#ifndef PAINT_H
#define PAINT_H

#include <stddef.h>

/* --- the line: paint.c ---------------------------------------------------- */

/* Takes over Readline's drawing where the terminal can move its cursor. Once.
 */
void repl_paint_open(void);

/* Before each line: what the terminal and the user's settings allow. */
void repl_paint_begin(void);

/* Whether a line may have rows of its own; else every row is a line. As of
 * the last repl_paint_begin. */
int repl_paint_has_rows(void);

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

/* --- prompts: prompt.c ---------------------------------------------------- */

/* The prompt of a row that goes on with what is open: "for …> ", ending where
 * the first row's prompt does when that leaves room. Written into prompt, of
 * room bytes. */
void repl_continuation_prompt(const char *first, const char *open, int ascii,
                              char *prompt, size_t room);

/* The length of a prompt that a line pasted from a screen begins with, or 0.
 * first gets 1 for an entry's first row. */
size_t repl_prompt_in(const char *line, int *first);

#endif
