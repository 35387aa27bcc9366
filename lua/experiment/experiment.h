/* What experiments need of the machine, below what is written of them in Lua:
 * JSON, journals, leases, processes, what is being done. */
#ifndef LUMAT_EXPERIMENT_H
#define LUMAT_EXPERIMENT_H

#include "lua.h"

/* Makes the module "lumat.journal". */
void lumat_open_journal(lua_State *L);
/* From now on no process is started, for --safe. */
void lumat_start_no_processes(lua_State *L);

/* What the signal handler that is there for faults while an experiment runs is
 * to call before the program dies. */
void lumat_at_fault(void (*function)(void));

/* A longer task, of which operations are parts: what is done, and for how many
 * seconds already; NULL when it has ended. Called on the language's thread. */
void lumat_watch_tasks(void (*changed)(const char *what, double seconds));

#endif
