/* This program as one of the processes of a pool (lua/pool) that its prompt
 * started without MPI: a whole lumat without a terminal. */
#include "lumat.h"
#include "pool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --pool-process SOCKET NUMBER COUNT DEVICE: the prompt's socket, in a folder
 * in which processes come together, and which this one is, from 0. */
enum { WORDS = 6 };

int lumat_is_pool_process(int argc, char **argv)
{
    return argc == WORDS && strcmp(argv[1], LUMAT_POOL_PROCESS) == 0;
}

/* ranks.serve(path, grid) with the grid of local_grid.lua, in the folder of
 * that path. */
static int serve(lua_State *L)
{
    char **argv = lua_touserdata(L, 1);
    const char *path = argv[2], *slash = strrchr(path, '/');
    lumat_push_required(L, "ranks");
    lua_getfield(L, -1, "serve");
    lua_pushstring(L, path);
    lumat_push_required(L, "local_grid");
    lua_pushlstring(L, path, slash ? (size_t)(slash - path) : 0);
    lua_pushinteger(L, atoi(argv[3]));
    lua_pushinteger(L, atoi(argv[4]));
    lua_pushstring(L, argv[5]);
    lua_call(L, 4, 1);
    lua_call(L, 2, 0);
    return 0;
}

int lumat_be_pool_process(char **argv)
{
    const lumat_options options = {.device = argv[5]};
    char why[512];
    int code = 1;
    signal(SIGINT, SIG_IGN); /* the terminal's; the prompt says when */
    lua_State *L = lumat_open(&options, why, sizeof why, &code);
    if (!L) {
        fprintf(stderr, "lumat: %s\n", why);
        return code;
    }
    lua_pushcfunction(L, serve);
    lua_pushlightuserdata(L, argv);
    int failed = lua_pcall(L, 1, 0, 0) != LUA_OK;
    if (failed)
        fprintf(stderr, "lumat: %s\n", lua_tostring(L, -1));
    lumat_close(L);
    return failed;
}
