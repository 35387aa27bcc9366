/* The commands of the prompt, a colon and a name, and what else is typed there
 * that is no Lua: !command, ?name, ??word. Sees entries, the history, lines
 * (for :keys) and the terminal; the program sees this one. Nothing here
 * raises; errors are reported. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "entry.h"

/* Runs what follows the colon: a command's name, or what begins no other one's,
 * and its argument. */
void repl_run_command(repl_session *session, const char *text);

/* Runs what follows the exclamation mark in a shell. */
void repl_run_shell(repl_session *session, const char *text);

/* ?name or name?; an empty one: the page of first things. */
void repl_print_help(repl_session *session, const char *topic);
/* ??word */
void repl_print_search(repl_session *session, const char *word);

/* Names by number from 0; NULL ends them. */
typedef const char *repl_name_at(int i);

/* The name most like a misspelt word, or NULL when none is near. */
const char *repl_nearest(const char *word, repl_name_at *name_at);

#endif
