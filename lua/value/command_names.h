/* What the terminal has of its own, the commands and the options of the command
 * line: for help, for messages, for the manual. */
#ifndef LUMAT_COMMAND_NAMES_H
#define LUMAT_COMMAND_NAMES_H

#include <stddef.h>
#include "lua.h"

/* A line of what the terminal has to tell: "race", "A, B", "every kernel …".
 * One without a form is the heading of those below it; one without a name
 * ends the list. */
typedef struct lumat_row {
    const char *name, *form, *help;
} lumat_row;

/* The commands and the options of the command line, for help, search and the
 * manual. The lists stay the caller's. */
void lumat_describe(const lumat_row *commands, const lumat_row *options);

const lumat_row *lumat_command_rows(void);
const lumat_row *lumat_option_rows(void);

/* Is it the name of a command of the terminal? */
int lumat_is_command(const char *name, size_t length);

/* Pushes and returns how a message goes on about a word of other languages,
 * "did you mean A.T?" or a sentence; or pushes nil and returns NULL. */
const char *lumat_push_instead(lua_State *L, const char *word);

#endif
