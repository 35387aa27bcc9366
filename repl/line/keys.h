/* What the keys of the prompt run: Readline commands, each called with the
 * number typed before the key and the key, and returning 0. For line/ alone;
 * they work on Readline's buffer and cursor. */
#ifndef KEYS_H
#define KEYS_H

#include "lumat.h"

/* --- keys.c --------------------------------------------------------------- */

/* Names the commands, so that the user's inputrc can bind them under "$if
 * lumat", and binds their keys; the inputrc, which Readline reads later, has
 * the last word. */
void repl_keys_open(void);

/* Before each line: keys that are bound to what Readline does with a line do
 * the same with its rows. */
void repl_keys_begin(void);

/* --- line.c --------------------------------------------------------------- */

/* While a paste is read, from 1 to 0, keys come in blocks; whatever is left
 * behind it is given back to Readline. */
void repl_read_ahead(int on);

/* --- multiline.c: an entry of several rows in one buffer ------------------ */

/* Entries are judged in this state from now on. */
void repl_edit_open(lua_State *L);

/* Takes the line, or begins another row while it is incomplete. */
int repl_accept(int count, int key);
/* Begins another row in any case. */
int repl_insert_row(int count, int key);

/* To the row above or below; from the first or last one through history. */
int repl_row_up(int count, int key);
int repl_row_down(int count, int key);

/* To the row's start or end, and from there to the line's. */
int repl_to_row_start(int count, int key);
int repl_to_row_end(int count, int key);

/* Kill to the row's end, or back to its start; from there, a newline. */
int repl_kill_row(int count, int key);
int repl_kill_row_back(int count, int key);

/* Take the suggestion, or a word of it; where there is none, move. */
int repl_forward_character(int count, int key);
int repl_forward_word(int count, int key);
int repl_take_suggestion(int count, int key);

/* Edits the line in the user's editor. */
int repl_edit_elsewhere(int count, int key);

/* --- paste.c -------------------------------------------------------------- */

/* Reads what the terminal marks as pasted and puts it in as one piece. */
int repl_paste(int count, int key);

/* --- history_search.c: an entry with a text in it that is typed first ------
 * As Alt-P, Alt-N and vi's / ? n N do. What Readline 8.2 does for them frees
 * the changes of a line twice, and in vi's searches takes seconds over a long
 * entry. */

int repl_search_older(int count, int key);
int repl_search_newer(int count, int key);
int repl_search_older_again(int count, int key);
int repl_search_newer_again(int count, int key);
int repl_search_as_vi(int count, int key);
int repl_search_as_vi_again(int count, int key);

#endif
