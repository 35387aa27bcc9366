/* The functions behind commands.def, and what they share; for commands/ alone.
 * A command is a row there and its function here. */
#ifndef COMMAND_LIST_H
#define COMMAND_LIST_H

#include "commands.h"

/* Runs a command: gets what follows its name, without blanks at the ends, which
 * stands until it returns; leaves the stack as it was. */
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
 * variable of the name may be, with the text of its arguments, and shows what
 * it gives; `ans` stays. */
void repl_show_call(repl_session *session, const char *function,
                    const char *arguments);

/* The same with a word of so many bytes, and a second text unless it is empty,
 * as strings; without either when the word is empty. */
void repl_show_strings(repl_session *session, const char *function,
                       const char *word, size_t length, const char *more);

/* Whether the word is one of the choices in the command's row; complains if it
 * is not. */
int repl_is_choice(const char *command, const char *word);

/* Pushes and returns the text as a string of Lua. */
const char *repl_push_quoted(lua_State *L, const char *text, size_t length);

#endif
