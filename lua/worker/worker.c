/* lumat-worker SOCKET: one of the processes of a pool. It is started by a
 * launcher of MPI; the prompt at the socket tells it what to do, in Lua, and it
 * ends when the prompt does. lumat-worker --spmd WORDS…: one of those that run
 * lumat's command line, WORDS, together. */
#include "lumat.h"
#include "pool.h"
#include "repl.h"
#include "worker.h"

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* --- the program ---------------------------------------------------------- */

static int serve(lua_State *L)
{
    const char *path = lua_touserdata(L, 1);
    lumat_open_grid(L);
    lumat_push_required(L, "ranks");
    lua_getfield(L, -1, "serve");
    lua_pushstring(L, path);
    lumat_push_required(L, "grid");
    lua_call(L, 2, 0);
    return 0;
}

int main(int argc, char **argv)
{
    const lumat_options options = {.device = "cpu"};
    int threads, code = 1, failed;
    char why[512];
    if (argc == 2 && lumat_is_trial(argv[1]))
        return lumat_try_libraries();
    if (argc > 2 && strcmp(argv[1], REPL_AS_RANK) == 0)
        return lumat_run_spmd(argc - 2, argv + 2);
    signal(SIGINT, SIG_IGN); /* the terminal's; the prompt says when */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
    lumat_start_grid();
    if (argc != 2) {
        fprintf(stderr,
                "usage: lumat-worker SOCKET, started by lumat's pool\n");
        MPI_Finalize();
        return 2;
    }
    lua_State *L = lumat_open(&options, why, sizeof why, &code);
    if (!L) {
        fprintf(stderr, "lumat-worker: %s\n", why);
        MPI_Abort(MPI_COMM_WORLD, code);
    }
    lua_pushcfunction(L, serve);
    lua_pushlightuserdata(L, argv[1]);
    failed = lua_pcall(L, 1, 0, 0) != LUA_OK;
    if (failed) {
        fprintf(stderr, "lumat-worker: %s\n", lua_tostring(L, -1));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    lumat_close(L);
    MPI_Finalize();
    return 0;
}
