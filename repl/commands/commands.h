/* The commands of the prompt: a colon and a name. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "entry.h"
#include "entry.h"

/* Runs what follows the colon. */
void repl_run_command(repl_session *session, const char *text);

/* Runs what follows the exclamation mark. */
void repl_run_shell(repl_session *session, const char *text);

/* ?name or name?; an empty one: the page of first things. */
void repl_print_help(repl_session *session, const char *topic);
/* ??word */
void repl_print_search(repl_session *session, const char *word);

#endif
