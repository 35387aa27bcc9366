/* "~/name" as the file it is in the user's home, wherever the library or a
 * command takes a file's name: a shell would say it so, and Lua's own
 * functions do not know it. */
#include "tilde.h"
#include "load_save.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The home of the user whose name is `length` long; of this one for 0. */
static const char *home_of(lua_State *L, const char *name, size_t length)
{
    const char *home = length == 0 ? getenv("HOME") : NULL;
    if (home && *home)
        return home;
    const struct passwd *user =
        length == 0 ? getpwuid(getuid())
                    : getpwnam(lua_pushlstring(L, name, length));
    return user ? user->pw_dir : NULL;
}

/* A name of nobody's home is a file's as it is. */
const char *lumat_push_path(lua_State *L, const char *path)
{
    int top = lua_gettop(L);
    size_t length = *path == '~' ? strcspn(path + 1, "/") : 0;
    const char *home = *path == '~' ? home_of(L, path + 1, length) : NULL;
    if (home)
        path = lua_pushfstring(L, "%s%s", home, path + 1 + length);
    else
        path = lua_pushstring(L, path);
    lua_insert(L, top + 1);
    lua_settop(L, top + 1);
    return path;
}

const char *lumat_expand_path(lua_State *L, int arg)
{
    size_t length;
    const char *path = luaL_checklstring(L, arg, &length);
    if (*path != '~' || strlen(path) != length)
        return path;
    arg = lua_absindex(L, arg);
    path = lumat_push_path(L, path);
    lua_replace(L, arg);
    return path;
}
