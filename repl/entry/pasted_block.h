/* Entries below each other in one text, as a pasted block may have them: Lua
 * between :commands and questions to the help. */
#ifndef PASTED_BLOCK_H
#define PASTED_BLOCK_H

#include "lumat.h"

/* Whether the text lacks something that rows below it could bring. Judged in
 * protected mode. */
int repl_is_incomplete(lua_State *L, const char *text);

/* The length of the first entry in text, which ends at a row that is not
 * complete Lua's last or a command's; of all the text when there is one. */
size_t repl_first_entry(lua_State *L, const char *text);

/* The first row of Lua text that is a command or a question, or NULL. */
const char *repl_find_command_row(const char *text);

#endif
