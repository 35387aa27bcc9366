/* lua/worker: lumat-worker, with MPI and ScaLAPACK, which no other program
 * links. It is one of the processes of a pool, a whole lumat without a terminal
 * that a prompt tells what to do (lua/pool); or, with --spmd, one of those that
 * run a script together (spmd.c). */
#ifndef LUMAT_WORKER_H
#define LUMAT_WORKER_H

#include "lua.h"

/* The module lumat.grid: this process's place among the others, and what all
 * of them do together. */
void lumat_open_grid(lua_State *L);
/* prepare_swap(sent, wanted): of lists of matrices without gaps, one for each
 * process but the own. swap of what this gave: the elements of sent[i] go to
 * process i, and those of wanted[i] become what process i sends here. Who calls
 * knows their shapes. */
int lumat_prepare_swap(lua_State *L);
int lumat_swap(lua_State *L);
/* traffic(), stop_traffic(), ping(other, bytes, times): what goes to the other
 * processes, and how long a message takes. */
int lumat_traffic(lua_State *L);
int lumat_stop_traffic(lua_State *L);
int lumat_ping(lua_State *L);
/* Behind MPI_Init. */
void lumat_start_grid(void);

/* lumat's command line, run by all ranks as one script. Returns the exit code.
 */
int lumat_run_spmd(int argc, char **argv);

#endif
