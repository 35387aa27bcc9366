/* Warnings: what is no error, and yet what the user should know of his result.
 * They go through Lua's own `warn`, so that warn("@off") silences them all. */
#ifndef LUMAT_WARNING_H
#define LUMAT_WARNING_H

#include "lua.h"

/* Warns "place: operation: …" of the user's line that is running; once for an
 * operation and a line, at the prompt once in each entry. Raises nothing but
 * for memory; the stack is as before. */
void lumat_warn(lua_State *L, const char *operation, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes at the prompt: once in a session for each word, what a user should
 * know who types; scripts are told nothing. */
void lumat_note(lua_State *L, const char *word, const char *note);

/* Are they on? For what costs something to find out. */
int lumat_warns(void);

void lumat_open_warnings(lua_State *L);

/* What is given each warning that is not silenced, one or more lines; NULL:
 * they go to standard error as they are. It must raise nothing. */
typedef void lumat_warning_fn(const char *message);
void lumat_set_warnings(lumat_warning_fn *print);
/* What is given each note for one who types, from a prompt on. */
void lumat_set_notes(lumat_warning_fn *print);

/* What is told of names, one after the other. */
typedef void lumat_name_fn(void *data, const char *name, const char *headline);

#endif
