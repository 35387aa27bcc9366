/* The folder in which files are looked for by names that do not begin with a
 * slash: going to another, and what is in it; and "~/name" as the file it is
 * in the user's home, wherever the library or a command takes a file's name: a
 * shell would say it so, and Lua's own functions do not know it. */
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fence.h"
#include "files.h"
#include "function.h"
#include "value.h"

/* --- the user's home ------------------------------------------------------ */

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

/* --- the folder ----------------------------------------------------------- */

static char former[PATH_MAX]; /* where it was before the last cd; "": nowhere */

static const char *push_here(lua_State *L, const char *who)
{
    char path[PATH_MAX];
    if (!getcwd(path, sizeof path))
        lumat_raise(L, "%s: the folder is gone; cd(\"~\") goes home", who);
    return lua_pushstring(L, path);
}

static int is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static const char *check_folder(lua_State *L)
{
    if (lua_isnoneornil(L, 1))
        return lumat_push_path(L, "~");
    const char *folder = luaL_checkstring(L, 1);
    if (strcmp(folder, "-") != 0)
        return lumat_expand_path(L, 1);
    if (!*former)
        lumat_raise(L, "cd: there was no folder before this one");
    return lua_pushstring(L, former);
}

/* cd([folder]): where it is now. */
static int cd(lua_State *L)
{
    char before[PATH_MAX];
    struct stat found;
    const char *folder = check_folder(L);
    if (!getcwd(before, sizeof before))
        *before = '\0';
    lumat_refuse_dry(L, "cd");
    lumat_check_fence(L, "cd", folder, 0);
    if (chdir(folder) == 0) {
        strcpy(former, before);
        push_here(L, "cd");
        return 1;
    }
    int error = errno;
    if (error == ENOENT)
        return lumat_raise(L, "cd: there is no folder '%s'", folder);
    if (error == ENOTDIR && stat(folder, &found) == 0)
        return lumat_raise(L, "cd: '%s' is a file", folder);
    return lumat_raise(L, "cd: cannot go to '%s': %s", folder, strerror(error));
}

/* pwd() */
static int pwd(lua_State *L)
{
    push_here(L, "pwd");
    return 1;
}

/* --- what is in it -------------------------------------------------------- */

static int is_shown(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* The names in a folder, those of folders with a slash behind them. */
static int list_folder(lua_State *L, const char *folder)
{
    struct dirent **names;
    lumat_check_fence(L, "ls", folder, 0);
    int count = scandir(folder, &names, is_shown, alphasort);
    if (count < 0)
        return lumat_raise(L, "ls: cannot read '%s': %s", folder,
                           strerror(errno));
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        int is_one = is_folder(lua_pushfstring(L, "%s/%s", folder, name));
        lua_pushfstring(L, "%s%s", name, is_one ? "/" : "");
        lua_rawseti(L, -3, i + 1);
        lua_pop(L, 1);
        free(names[i]);
    }
    free(names);
    return 1;
}

/* What readdir said, which glob takes for the end of a folder. */
static int read_error;

static struct dirent *note_error(void *folder)
{
    errno = 0;
    struct dirent *e = readdir(folder);
    if (!e && errno)
        read_error = errno;
    return e;
}

static void *open_listed(const char *path)
{
    return opendir(path);
}

static void close_listed(void *folder)
{
    closedir(folder);
}

/* glob, for which a folder that cannot be read to its end is an error. */
static int find_files(const char *pattern, glob_t *found)
{
    *found = (glob_t){.gl_opendir = open_listed,
                      .gl_readdir = note_error,
                      .gl_closedir = close_listed,
                      .gl_lstat = lstat,
                      .gl_stat = stat};
    read_error = 0;
    int status = glob(pattern, GLOB_MARK | GLOB_ALTDIRFUNC, NULL, found);
    if (status == 0 && read_error != 0)
        globfree(found);
    return read_error != 0 ? GLOB_ABORTED : status;
}

/* list([pattern]): what ls shows, a list of names: of a folder what is in it,
 * of a pattern such as "data/x*.csv" what it fits. */
static int list(lua_State *L)
{
    glob_t found;
    const char *pattern = ".";
    if (!lua_isnoneornil(L, 1)) {
        luaL_checkstring(L, 1);
        pattern = lumat_expand_path(L, 1);
    }
    if (is_folder(pattern))
        return list_folder(L, pattern);
    int status = find_files(pattern, &found);
    if (status == GLOB_NOMATCH && !strpbrk(pattern, "*?["))
        lumat_raise(L, "ls: there is no file or folder '%s'", pattern);
    if (status != 0 && status != GLOB_NOMATCH)
        lumat_raise(L, "ls: cannot read '%s': %s", pattern,
                    strerror(status == GLOB_NOSPACE ? ENOMEM : read_error));
    lua_newtable(L);
    lua_Integer count = 0;
    for (size_t i = 0; status == 0 && i < found.gl_pathc; i++) {
        if (!lumat_may_open(found.gl_pathv[i], 0))
            continue;
        lua_pushstring(L, found.gl_pathv[i]);
        lua_rawseti(L, -2, ++count);
    }
    if (status == 0)
        globfree(&found);
    return 1;
}

static const lumat_function functions[] = {
    {"cd", cd, 0, "[folder: folder]", "string",
     "Goes to a folder, where names of files that do not begin with / are "
     "looked for from then on, and gives its path. Without one it goes home, "
     "with \"-\" to where it was before. Also :cd.",
     "cd(\".\") == pwd()", "true", .group = "folders"},
    {"pwd", pwd, 0, "", "string",
     "The folder in which files are looked for by names that do not begin with "
     "/. Also :pwd.",
     "type(pwd())", "\"string\"", .group = "folders"},
    {0}};

void lumat_open_working_folder(lua_State *L)
{
    *former = '\0';
    lumat_register(L, functions);
    lua_pushcfunction(L, list);
    lumat_set_required(L, "list");
}
