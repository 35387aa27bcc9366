/* Entries at the prompt: compiling and calling them, what they changed, the
 * variables, what they read and print, and saving all that at the worst. */
#ifndef LUMAT_SESSION_H
#define LUMAT_SESSION_H

#include <stddef.h>
#include <sys/types.h>
#include "parse.h"
#include "print.h"
#include "lua.h"
#include "value.h"

/* --- entries -------------------------------------------------------------- */

/* Compiles an entry: Lua, in which lists of expressions may stand as
 * statements of the top level. Each but the last is given to the function of
 * lumat_set_echo when it is reached, the last one is what the entry returns.
 * Its locals will survive it. Pushes the function and returns LUA_OK; or
 * pushes a message and returns LUA_ERRSYNTAX; or pushes the open construct's
 * name ("for", "function", "(", "[[" …) and returns LUMAT_INCOMPLETE. shown
 * becomes 0 when a ';' ends the entry. */
int lumat_load(lua_State *L, const char *text, size_t length, int *shown);

/* With --strict, for the text of a script that compiled to the function on top:
 * LUA_OK; or replaces it by "name:line: …" and returns LUA_ERRSYNTAX where an
 * assignment has more names than its call has results. */
int lumat_check_script(lua_State *L, const char *name, const char *text,
                       size_t length);

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

/* --- input and output while an entry runs --------------------------------- */

/* How an entry reads standard input, what is called around a program that it
 * starts or a terminal that it opens: the program may read it; and whether
 * Ctrl-C came since the entry was read. */
typedef struct lumat_typing {
    ssize_t (*read)(char *text, size_t size);
    void (*lend)(void), (*take_back)(void);
    int (*is_interrupted)(void);
} lumat_typing;
void lumat_set_typing(const lumat_typing *ways);

/* Runs a command of the shell, which has the terminal meanwhile; Ctrl-C ends
 * it. Pushes what there is to say of its end, "exit 3" or "interrupted", or "".
 * Returns 0 with a message pushed when it may not be started, or cannot. */
int lumat_run_shell(lua_State *L, const char *command);

/* Whether what was printed by entries left text in the terminal's row; from
 * now on it has not. */
int lumat_take_open_row(void);

/* Is the value io.stdout or io.stderr? */
int lumat_is_own_output(lua_State *L, int index);

/* What view(A) calls with the matrix and its name, and last() with a text. */
void lumat_set_screens(lua_State *L, lua_CFunction view, lua_CFunction page);

/* --- the session as a file ------------------------------------------------ */
/* Entries and what they print. */

/* For a transcript alone: an entry, with NULL for the prompt none, and
 * what is printed up to the end. */
void lumat_transcribe(const char *prompt, const char *text);
void lumat_end_transcribed(void);
/* What the terminal itself has shown: "^C". */
void lumat_transcribe_echo(const char *text);
/* Ends the transcript; NULL, or "f.log is not complete: No space left on
 * device", also of one that stopped earlier. */
const char *lumat_end_transcript(void);

/* --- when the program cannot go on ---------------------------------------- */

/* Saves what can be read of the variables, as save_session does, into the
 * first of the paths (up to a NULL) that can be written. For a program that
 * does not stop: lumat_rescue may be called in any signal handler. What it
 * leaves to do, if anything, lumat_rescue_here may, unless that hangs. said:
 * of LUMAT_RESCUE_TEXT bytes, what was saved or why it failed. */
typedef enum lumat_rescued {
    LUMAT_RESCUE_LATER = 1, /* it stands badly: try again in a moment */
    LUMAT_RESCUE_FAILED,
    LUMAT_RESCUED_IN_PART, /* lumat_rescue_here is needed */
    LUMAT_RESCUED
} lumat_rescued;
enum { LUMAT_RESCUE_TEXT = 4096 };
lumat_rescued lumat_rescue(const char *const *paths, char *said, size_t size);
lumat_rescued lumat_rescue_here(const char *const *paths, char *said,
                                size_t size);

/* --- what the room adds to a state ---------------------------------------- */

void lumat_open_session(lua_State *L);    /* the prompt's locals */
void lumat_open_screens(lua_State *L);    /* view last */
void lumat_open_lineage(lua_State *L);    /* how made_by */
void lumat_open_transcript(lua_State *L); /* transcript */
void lumat_open_variables(lua_State *L);  /* what reports in Lua need */
void lumat_open_rescue(lua_State *L);
/* Puts stand-ins in place of io's and os's functions that may have the terminal
 * read. */
void lumat_open_input(lua_State *L);

/* Precompiled chunks are refused everywhere. */
void lumat_refuse_bytecode(lua_State *L);
/* The global `load` takes chunks and data files. */
void lumat_join_load(lua_State *L);

#endif
