/* Where lumat-worker lies. */
#include "pool.h"

#include "value.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The folder of the program that runs, with its slash, or 0. */
static int own_folder(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    if (n <= 0)
        return 0;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        slash[1] = '\0';
    return slash != NULL;
}

int lumat_find_worker(char *path, size_t size)
{
    static const char *const places[] = {"lumat-worker",
                                         "../lib/lumat/lumat-worker"};
    char folder[PATH_MAX];
    if (!own_folder(folder, sizeof folder))
        return 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int n = snprintf(path, size, "%s%s", folder, places[i]);
        if (n > 0 && (size_t)n < size && access(path, X_OK) == 0)
            return 1;
    }
    return 0;
}

/* worker_path(): where it lies, or nil. */
static int worker_path(lua_State *L)
{
    char path[PATH_MAX];
    if (!lumat_find_worker(path, sizeof path))
        return 0;
    lua_pushstring(L, path);
    return 1;
}

void lumat_open_worker_path(lua_State *L)
{
    lua_pushcfunction(L, worker_path);
    lumat_set_required(L, "worker_path");
}
