/* The prompt, and what its parts share. */
#ifndef REPL_H
#define REPL_H

#include "lumat.h"

/* The path of the user's init file, in path or the environment; NULL: none. */
const char *repl_init_path(char *path, size_t room);
/* Runs the user's init file; whatever is wrong with it is only reported. */
void repl_run_init(lua_State *L);

/* Prompts until the user leaves. */
void repl_loop(lua_State *L);

#endif
