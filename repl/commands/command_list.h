/* The functions behind commands.def, and what they share; for commands/ alone.
 * A command is a row there and its function here. */
#ifndef COMMAND_LIST_H
#define COMMAND_LIST_H

#include "commands.h"

/* Runs a command: gets what follows its name, without blanks at the ends, which
 * stands until it returns. Of a command that reads words a table of them is on
 * top of the stack. What it leaves there is dropped. */
typedef void repl_command_fn(repl_session *session, const char *rest);

#define COMMAND(name, form, help, argument, choices, run) repl_command_fn run;
#define LIBRARY(name, form, help, argument, choices)
#define TWIN(name, form, help, argument)
#include "commands.def"
#undef COMMAND
#undef LIBRARY
#undef TWIN

#endif
