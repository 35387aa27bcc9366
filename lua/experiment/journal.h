/* What experiments need of the machine, as one module "lumat.journal": JSON,
 * files that are only appended to, claims, processes, what is being done. */
#ifndef LUMAT_JOURNAL_H
#define LUMAT_JOURNAL_H

#include "lauxlib.h"
#include "lua.h"
#include <sys/types.h>

/* Adds functions to the module on top of the stack. */
void lumat_add_json_writer(lua_State *L);
void lumat_add_json_reader(lua_State *L);
void lumat_add_records(lua_State *L);
void lumat_add_folders(lua_State *L);
void lumat_add_claims(lua_State *L);
void lumat_add_processes(lua_State *L);
void lumat_add_tasks(lua_State *L);
void lumat_add_crew(lua_State *L);
void lumat_add_when_stopped(lua_State *L);

/* Makes the module. */
void lumat_open_journal(lua_State *L);
/* From now on no process is started, for --safe. */
void lumat_start_no_processes(lua_State *L);

/* Pushes the value that JSON text stands for and returns NULL, or says what
 * is wrong with it, pushing nothing; where reading ended, unless `at` is
 * NULL. */
const char *lumat_push_json(lua_State *L, const char *text, size_t length,
                            size_t *at);

/* What stands behind a record: a tab, eight hexadecimal digits, a newline. */
enum { LUMAT_MARK = 10 };
void lumat_mark_record(const char *line, size_t length,
                       char mark[LUMAT_MARK + 1]);

/* The file of a worker takes the word of what ends this process, while it is to
 * blame for that. */
void lumat_begin_words(int fd);
void lumat_blame(int fd, int yes);
void lumat_leave_word(const char *word);
void lumat_end_words(int fd);

/* Opens the regular file for reading as it is now, whoever changed it, on
 * whatever machine; a descriptor, or -1. */
int lumat_open_fresh(const char *path);

#endif
