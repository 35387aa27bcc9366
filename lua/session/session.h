/* Entries typed at the prompt: compiling, calling, what they changed. */
#ifndef LUMAT_SESSION_H
#define LUMAT_SESSION_H

#include <stddef.h>
#include "parse.h"
#include "lua.h"
#include "print.h"
#include "warning.h"

/* Compiles an entry: Lua, in which lists of expressions may stand as
 * statements of the top level. Each but the last is given to the function of
 * lumat_set_echo when it is reached, the last one is what the entry returns.
 * Its locals will survive it. Pushes the function and returns LUA_OK; or
 * pushes a message and returns LUA_ERRSYNTAX; or pushes the open construct's
 * name ("for", "function", "(", "[[" …) and returns LUMAT_INCOMPLETE. shown
 * becomes 0 when a ';' ends the entry. */
int lumat_load(lua_State *L, const char *text, size_t length, int *shown);

/* Calls the function under nargs arguments, waits for the devices, and
 * leaves its results, or the error value, in place of function and
 * arguments. Returns Lua's status. */
int lumat_call(lua_State *L, int nargs);
/* Pushes the traceback of the last one's error, of the user's functions, or
 * nil when none of them had called another; then returns NULL. */
const char *lumat_push_last_traceback(lua_State *L);

/* Around what is typed at the prompt, Lua or a :command: its number is counted,
 * what it changed is noted for how() and made_by(), and a transcript gets it
 * with its output. A pair within another, without a prompt, notes changes
 * under its own text, or with NULL under that of the other. */
void lumat_begin_entry(lua_State *L, const char *prompt, const char *text);
void lumat_end_entry(lua_State *L, int ok, double seconds);

/* Sets `ans` to the value at index. */
void lumat_set_ans(lua_State *L, int index);

/* Reports every global and session local that the last lumat_call through
 * lumat_load set to another value, in order of name, but for those that a
 * statement with a ';' behind it set. headline is one line. */
void lumat_each_change(lua_State *L, lumat_name_fn *each, void *data);

/* The exit code for the error value at index: 1, or 3 (no usable GPU), 4
 * (out of memory), 130 (interrupted). */
int lumat_exit_code(lua_State *L, int index);

/* --- variables, devices, screens --------------------------------------- */

/* Pushes the table of the user's variables, or of those whose names match a
 * pattern such as "tmp*" (NULL: all); by name, or the largest first. */
void lumat_push_who(lua_State *L, const char *pattern, int by_size);

/* Opens the chosen device now. Returns 1, or 0 and pushes why not. */
int lumat_require_device(lua_State *L);
/* Opens it on a thread, while the user types. */
void lumat_prepare_device(void);

/* Pushes the device's state; with a name, makes it the default first. Returns
 * 0 with the message pushed when there is no such device. */
int lumat_push_device(lua_State *L, const char *name);

/* What view(A) calls with the matrix and its name, and last() with a text. */
void lumat_set_screens(lua_State *L, lua_CFunction view, lua_CFunction page);

/* A library that can end the process is loaded by another one first: by
 * `program`, started with a word of which lumat_is_trial says that it is that,
 * which then returns what lumat_try_libraries gives. It stays the caller's;
 * NULL, as at first, and as with --safe: none. */
void lumat_set_trial(const char *program);
int lumat_is_trial(const char *word);
int lumat_try_libraries(void);

#endif
