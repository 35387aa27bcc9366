/* The functions behind commands.def, and what they share. Each gets what
 * follows the command's name, without blanks at its ends. */
#ifndef COMMAND_LIST_H
#define COMMAND_LIST_H

#include "commands.h"

typedef void repl_command_fn(repl_session *session, const char *rest);

#define COMMAND(name, form, help, argument, choices, run) repl_command_fn run;
#define TWIN(name, form, help, argument)
#include "commands.def"
#undef COMMAND
#undef TWIN

/* Prints the string on top of the stack, with a newline if it lacks one, and
 * pops it. */
void repl_print_top(lua_State *L);
/* The same when ok, else reports it as an error. */
void repl_print_or_complain(lua_State *L, int ok);

/* Evaluates the library's function of that name, whatever the user's own
 * variable of the name may be, and shows what it gives. */
void repl_show_call(repl_session *session, const char *function,
                    const char *arguments);

/* Is the word one of the list? Complains if not. */
int repl_is_choice(const char *command, const char *word, const char *list);

/* Pushes "function() return text end", or without the return where text is a
 * statement. */
const char *repl_push_function(lua_State *L, const char *text, size_t length);

#endif
