/* Running files and pieces of code that were not typed at the prompt. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "lumat.h"

/* Compiles a file (NULL: standard input), source text only, of at most 256 MiB:
 * what goes on for ever has an end there. Pushes the function and returns
 * LUA_OK, or pushes what is wrong. */
int repl_load_file(lua_State *L, const char *path);
/* The same of a file that nobody named: a regular one. */
int repl_load_own_file(lua_State *L, const char *path);

/* Compiles code of the command line: an expression, or, unless one is asked
 * for, statements. */
int repl_load_code(lua_State *L, const char *code, int expression);

/* Calls the function under nargs arguments and leaves its results. When it
 * fails, reports the error, with a traceback when it came from deeper than
 * the main chunk and is no interrupt, leaves nothing, and returns the exit
 * code. */
int repl_run(lua_State *L, int nargs);

/* Reports what a load pushed instead of a function; returns the exit code. */
int repl_load_failed(lua_State *L, int status);

/* Sets `arg`: words[script] at 0, those behind it from 1, those before it
 * below 0. Without a script (script == count) the first word is at 0. */
void repl_set_arg(lua_State *L, char **words, int count, int script);

#endif
