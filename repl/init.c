/* The user's init file. */
#include "entry.h"
#include "repl.h"
#include "terminal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* The file $LUMAT_INIT names has to be there, and may be a pipe; the one in its
 * usual place may be missing. */
const char *repl_init_path(char *path, size_t room)
{
    const char *named = getenv("LUMAT_INIT");
    if (named != NULL)
        return named[0] != '\0' ? named : NULL;
    if (!repl_user_path(path, room, "XDG_CONFIG_HOME", ".config", "init.lua"))
        return NULL;
    return access(path, F_OK) == 0 || errno != ENOENT ? path : NULL;
}

void repl_run_init(lua_State *L)
{
    char room[PATH_MAX];
    const char *path = repl_init_path(room, sizeof room);
    int base = lua_gettop(L), status;
    if (path == NULL)
        return;
    status =
        path == room ? repl_load_own_file(L, path) : repl_load_file(L, path);
    if (status == LUA_OK)
        repl_run(L, 0);
    else
        repl_load_failed(L, status);
    lua_settop(L, base);
}
