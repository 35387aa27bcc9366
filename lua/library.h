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
#ifndef LUMAT_LIBRARY_H
#define LUMAT_LIBRARY_H

#include "matrix.h"

void lumat_open_library(lua_State *L);        /* first of all: empty tables */
void lumat_open_kinds(lua_State *L);          /* what messages call a value */
void lumat_open_working_folder(lua_State *L); /* cd pwd */
void lumat_open_session(lua_State *L);        /* the prompt's locals */
void lumat_open_parts(lua_State *L);          /* what saved sessions need */
void lumat_open_who(lua_State *L);            /* who */
void lumat_open_texts(lua_State *L);          /* what tables and reports need */
void lumat_open_std(lua_State *L);            /* lua/std, text in Lua */
/* Last: names become globals, and with is_safe only what is allowed stays. */
void lumat_close_library(lua_State *L, int is_safe);
void lumat_open_completions(lua_State *L);

/* The thread that runs, or ran last; NULL before the first. */
lua_State *lumat_running(void);

/* Is it the name of a command of the terminal? */
int lumat_is_command(const char *name, size_t length);

/* Pushes and returns how a message goes on about a word of other languages,
 * "did you mean A.T?" or a sentence; or pushes nil and returns NULL. */
const char *lumat_push_instead(lua_State *L, const char *word);

/* Precompiled chunks are refused everywhere. */
void lumat_refuse_bytecode(lua_State *L);
/* The global `load` takes chunks and data files. */
void lumat_join_load(lua_State *L);
/* safe.c, behind lumat_close_library: leaves scripts what --safe allows. */
void lumat_make_safe(lua_State *L);

/* Pushes the name of the innermost construct that text leaves open: "for",
 * "function", "(", "[[" …, or "" when none is. */
void lumat_push_open_construct(lua_State *L, const char *text, size_t length);

#endif
