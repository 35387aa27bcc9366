/* The language, as the terminal sees it: a Lua state that knows matrices, and
 * what a prompt needs of it. The only header of lua/ that repl/ may include.
 *
 * Functions named push_… or said to push leave one string on the stack. None
 * of them raises an error unless it says so. */
#ifndef LUMAT_H
#define LUMAT_H

#include "browse.h"
#include "completion.h"
#include "diagnose.h"
#include "draw.h"
#include "experiment.h"
#include "fence.h"
#include "files.h"
#include "cancellation.h"
#include "measure.h"
#include "parse.h"
#include "pool.h"
#include "print.h"
#include "session.h"
#include "settings.h"
#include "value.h"

/* With --safe, before there is any thread: raises the first fence. Returns 0
 * with why it does not stand (of size bytes). The options stay the caller's,
 * as they are. */
int lumat_fence(const lumat_options *options, char *why, size_t size);

/* A state with the standard library and lumat's; with --safe the device is
 * open and the second fence stands. NULL with why, and the exit code as of
 * lumat_exit_code. */
lua_State *lumat_open(const lumat_options *options, char *why, size_t size,
                      int *code);
void lumat_close(lua_State *L);

/* --- what is there -------------------------------------------------------- */

/* Pushes the help on a function, a topic or a :command, and returns 1; for
 * an unknown one pushes what it may have meant and returns 0. NULL: the page
 * of first things; ":": the list of commands. */
int lumat_push_help(lua_State *L, const char *topic);
/* Pushes names whose help mentions the words, or words like them. */
void lumat_push_search(lua_State *L, const char *words);
/* Pushes the whole manual as "text", "markdown" or "roff" (a manual page);
 * returns 0 with a message pushed for any other form. */
int lumat_push_manual(lua_State *L, const char *form);
/* The default device when it is open and not the one auto takes; else NULL.
 * For the prompt. */
const char *lumat_unusual_device(lua_State *L);
/* Opens the chosen device now. Returns 1, or 0 and pushes why not. */
int lumat_require_device(lua_State *L);
/* Is given a line, once a reason, where the CPU computes although there is a
 * GPU: its driver is missing or old, it has no room, it was lost. */
void lumat_on_fallback(lumat_warning_fn *tell);
/* Opens it on a thread, while the user types. */
void lumat_prepare_device(void);

/* A library that can end the process is loaded by another one first: by
 * `program`, started with a word of which lumat_is_trial says that it is that,
 * which then returns what lumat_try_libraries gives. It stays the caller's;
 * NULL, as at first, and as with --safe: none. */
void lumat_set_trial(const char *program);
int lumat_is_trial(const char *word);
int lumat_try_libraries(void);

/* One of the processes of a pool that a prompt starts itself is this program,
 * with words of which the first says so; it then does what the prompt tells,
 * and returns the exit code. */
int lumat_is_pool_process(int argc, char **argv);
int lumat_be_pool_process(char **argv);

#endif
