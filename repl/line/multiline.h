/* An entry of several rows in one buffer: Readline commands for its keys. */
#ifndef MULTILINE_H
#define MULTILINE_H

#include "lumat.h"

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

#endif
