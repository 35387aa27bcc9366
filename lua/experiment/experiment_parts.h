/* What the files of this room share, and nobody else sees. */
#ifndef LUMAT_EXPERIMENT_PARTS_H
#define LUMAT_EXPERIMENT_PARTS_H

#include "experiment.h"
#include "lauxlib.h"
#include <sys/types.h>

/* Adds functions to the module on top of the stack. */
void lumat_add_json(lua_State *L);
void lumat_add_records(lua_State *L);
void lumat_add_folders(lua_State *L);
void lumat_add_claims(lua_State *L);
void lumat_add_processes(lua_State *L);

/* Pushes the value that JSON text stands for and returns NULL, or says what
 * is wrong with it, pushing nothing; where reading ended, unless `at` is
 * NULL. */
const char *lumat_push_json(lua_State *L, const char *text, size_t length,
                            size_t *at);

/* What stands behind a record: a tab, eight hexadecimal digits, a newline. */
enum { LUMAT_MARK = 10 };
void lumat_mark_record(const char *line, size_t length,
                       char mark[LUMAT_MARK + 1]);

/* Opens the regular file for reading as it is now, whoever changed it, on
 * whatever machine; a descriptor, or -1. */
int lumat_open_fresh(const char *path);

#endif
