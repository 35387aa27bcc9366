/* The tables that make up the library, kept in the registry:
 *   lumat.functions  name -> function, what `require "lumat"` gives
 *   lumat.methods  name -> function, what A:name finds
 *   lumat.help     name -> {usage, help, example, result}
 *   lumat.session  the locals of the prompt, as they were when it was last
 *                  asked for an entry
 *   lumat.manual   what lua/manual is, once help was asked for
 *   lumat.base     the globals that are not the user's own, by name
 *   lumat.environment  the same for the library's own files, which --safe
 *                  takes nothing from */
#ifndef LUMAT_REGISTRY_H
#define LUMAT_REGISTRY_H

#include "matrix.h"

void lumat_open_library(lua_State *L); /* first of all: empty tables */
void lumat_open_kinds(lua_State *L);   /* what messages call a value */
void lumat_open_std(lua_State *L);     /* lua/std, text in Lua */
/* When all are there: their names become globals. */
void lumat_close_library(lua_State *L);
/* Keeps a copy of the table of globals in the registry. */
void lumat_copy_globals(lua_State *L, const char *name);

/* The thread that runs, or ran last; NULL before the first. */
lua_State *lumat_running(void);

#endif
