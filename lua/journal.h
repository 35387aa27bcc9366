/* What experiments need of the machine, as one module "lumat.journal": JSON,
 * files that are only appended to, claims, processes, what is being done. */
#ifndef LUMAT_JOURNAL_H
#define LUMAT_JOURNAL_H

#include "lauxlib.h"
#include "lua.h"

/* Adds functions to the module on top of the stack. */
void lumat_add_json(lua_State *L);
void lumat_add_claims(lua_State *L);
void lumat_add_processes(lua_State *L);
void lumat_add_tasks(lua_State *L);

/* Makes the module. */
void lumat_open_journal(lua_State *L);
/* From now on no process is started, for --safe. */
void lumat_start_no_processes(lua_State *L);

/* Pushes the value that JSON text stands for and returns NULL, or says what
 * is wrong with it, pushing nothing. */
const char *lumat_push_json(lua_State *L, const char *text, size_t length);

/* Raises "what: path: why" with the system's word for the error number. */
int lumat_raise_file(lua_State *L, const char *what, const char *path,
                     int error);

#endif
