/* lua/pool: processes that compute together, and matrices that lie in parts on
 * them. The prompt starts them, tells them what to do and hears from each. What
 * they tell each other goes by MPI in lua/worker, a program of its own, or by
 * sockets where the prompt started them itself. Both ends of a link are here.
 */
#ifndef LUMAT_POOL_H
#define LUMAT_POOL_H

#include <stddef.h>

#include "gpu.h"
#include "lua.h"

/* The first word of the program as a process of a pool. */
#define LUMAT_POOL_PROCESS "--pool-process"

/* The modules lumat.links, lumat.mesh, lumat.block_cyclic with
 * lumat.elementwise, and lumat.serving. */
void lumat_open_links(lua_State *L);
void lumat_open_mesh(lua_State *L);
void lumat_open_block_cyclic(lua_State *L);
void lumat_open_serving(lua_State *L);
/* The module lumat.worker_path. */
void lumat_open_worker_path(lua_State *L);

/* Where lumat-worker lies: beside this program, or where it is installed. 0: it
 * is not there. */
int lumat_find_worker(char *path, size_t size);

/* Where the elements of m lie in the host's memory, pairs or not; NULL where
 * there are none, or they do not. Raises where there are gaps between them. */
void *lumat_part_bytes(lua_State *L, gpu_matrix *m);

/* Notes who started this process, while it is there; and, once the prompt is
 * gone, sees to it that it does not stay. */
void lumat_note_launcher(void);
void lumat_end_launcher(void);

#endif
