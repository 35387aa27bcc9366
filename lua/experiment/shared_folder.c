/* Files and folders that processes of several machines share, as over NFS,
 * where what is known of a file may be old until it is opened. */
#include "fence.h"
#include "experiment_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An opened folder is asked for at the server, and so is an opened file;
 * without the first, an old answer may say that the name is not there. */
int lumat_open_fresh(const char *path)
{
    const char *slash = strrchr(path, '/');
    int folder = lumat_open_folder_of(path);
    if (folder < 0)
        return -1;
    if (!lumat_may_open(path, 0)) { /* a link that leads out */
        close(folder);
        errno = EACCES;
        return -1;
    }
    int fd = openat(folder, slash ? slash + 1 : path,
                    O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int error = errno;
    close(folder);
    errno = error;
    return lumat_take_regular(fd, NULL);
}

static int result_of(lua_State *L, int error)
{
    if (!error) {
        lua_pushboolean(L, 1);
        return 1;
    }
    lua_pushnil(L);
    lua_pushstring(L, lumat_error_text(error));
    return 2;
}

static int write_whole(const char *path, const char *content, size_t length)
{
    int fd =
        lumat_open_path(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    int error = lumat_write_fully(fd, content, length, -1);
    if (!error)
        error = lumat_sync(fd);
    if (close(fd) != 0 && !error)
        error = errno;
    return error;
}

/* Has the file a second name? Asked for by opening it. */
static int has_two_names(const char *path)
{
    struct stat info;
    int fd = lumat_open_fresh(path);
    int two = fd >= 0 && fstat(fd, &info) == 0 && info.st_nlink == 2;
    if (fd >= 0)
        close(fd);
    return two;
}

/* Gives the file the name unless another has it: 1, 0, or -1 with errno. By
 * link, which is atomic on every file system; what it answers may be wrong
 * over NFS, where an answer can be lost and the question asked again. */
static int give_name(const char *temporary, const char *path)
{
    int error = link(temporary, path) != 0 ? errno : 0;
    if (!error || has_two_names(temporary))
        return 1;
    errno = error;
    return error == EEXIST ? 0 : -1;
}

/* found(path, text, unique): writes the file unless it is there: true if this
 * call did, false if it was there, nil and why not. No other process has the
 * unique word. */
static int found(lua_State *L)
{
    size_t length;
    const char *path = luaL_checkstring(L, 1);
    const char *content = luaL_checklstring(L, 2, &length);
    const char *temporary =
        lua_pushfstring(L, "%s.%s.tmp", path, luaL_checkstring(L, 3));
    int fd = lumat_open_fresh(path);
    if (fd >= 0) {
        close(fd);
        lua_pushboolean(L, 0);
        return 1;
    }
    int error = write_whole(temporary, content, length);
    int mine = error ? -1 : give_name(temporary, path);
    if (mine < 0 && !error)
        error = errno;
    lumat_unlink_path(temporary);
    if (mine == 1)
        lumat_sync_folder(path);
    if (mine < 0)
        return result_of(L, error);
    lua_pushboolean(L, mine);
    return 1;
}

/* make_folder(path), with those above it. */
static int make_folder(lua_State *L)
{
    size_t length;
    const char *path = luaL_checklstring(L, 1, &length);
    if (!lumat_may_open(path, 1))
        return result_of(L, EACCES);
    char *copy = lua_newuserdatauv(L, length + 1, 0);
    memcpy(copy, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (copy[i] != '/' && copy[i] != '\0')
            continue;
        char kept = copy[i];
        copy[i] = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST && errno != EISDIR)
            return result_of(L, errno);
        copy[i] = kept;
    }
    struct stat info;
    if (stat(path, &info) != 0)
        return result_of(L, errno);
    return result_of(L, S_ISDIR(info.st_mode) ? 0 : ENOTDIR);
}

/* The next entry; at the end NULL, and 0 or what the system says in *error. */
static struct dirent *next_entry(DIR *d, int *error)
{
    errno = 0;
    struct dirent *e = readdir(d);
    *error = e ? 0 : errno;
    return e;
}

/* list(path): {name = size}; or nil, why not, and whether it is not there. */
static int list_folder(lua_State *L)
{
    int error;
    const char *path = luaL_checkstring(L, 1);
    errno = EACCES;
    DIR *d = lumat_may_open(path, 0) ? opendir(path) : NULL;
    if (!d) {
        error = errno;
        result_of(L, error);
        lua_pushboolean(L, error == ENOENT || error == ENOTDIR);
        return 3;
    }
    lua_newtable(L);
    for (struct dirent *e; (e = next_entry(d, &error)) != NULL;) {
        struct stat info;
        if (fstatat(dirfd(d), e->d_name, &info, 0) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        lua_pushinteger(L, (lua_Integer)info.st_size);
        lua_setfield(L, -2, e->d_name); /* out of memory leaks d: the end */
    }
    closedir(d);
    return error ? result_of(L, error) : 1;
}

/* read_file(path [, most]): the text of a regular file; or nil, why not, and
 * the system's number. */
static int read_file(lua_State *L)
{
    size_t size = 0;
    const char *path = luaL_checkstring(L, 1);
    lua_Integer most = luaL_optinteger(L, 2, LUA_MAXINTEGER);
    int fd = lumat_open_regular(path, &size);
    int error = fd < 0 ? errno : 0;
    if (!error && (lua_Integer)size > most)
        error = EFBIG;
    char *text = error ? NULL : malloc(size + 1);
    ssize_t n = text ? lumat_read_fully(fd, text, size, 0) : -1;
    if (!error && n < 0)
        error = text ? errno : ENOMEM;
    if (fd >= 0)
        close(fd);
    if (!error)
        lua_pushlstring(L, text, (size_t)n); /* out of memory leaks the text */
    free(text);
    if (!error)
        return 1;
    lua_pushinteger(L, result_of(L, error) ? error : 0);
    return 3;
}

/* is_there(path): is there anything of the name, as it is now? */
static int is_there(lua_State *L)
{
    int fd = lumat_open_fresh(luaL_checkstring(L, 1));
    if (fd >= 0)
        close(fd);
    lua_pushboolean(L, fd >= 0 || (errno != ENOENT && errno != ENOTDIR));
    return 1;
}

static int is_writable(lua_State *L)
{
    return result_of(
        L, access(luaL_checkstring(L, 1), W_OK | X_OK) == 0 ? 0 : errno);
}

/* probe(folder, unique): can a file be made and filled there? */
static int probe(lua_State *L)
{
    static const char text[4096];
    const char *folder = luaL_checkstring(L, 1);
    const char *path =
        lua_pushfstring(L, "%s/%s.tmp", folder, luaL_checkstring(L, 2));
    int error = write_whole(path, text, sizeof text);
    lumat_unlink_path(path);
    return result_of(L, error);
}

/* The path without links and dots, for comparing. */
static int real_path(lua_State *L)
{
    char *path = realpath(luaL_checkstring(L, 1), NULL);
    if (!path)
        return result_of(L, errno);
    lua_pushstring(L, path);
    free(path);
    return 1;
}

static const luaL_Reg functions[] = {{"found", found},
                                     {"make_folder", make_folder},
                                     {"list", list_folder},
                                     {"is_writable", is_writable},
                                     {"probe", probe},
                                     {"real_path", real_path},
                                     {"is_there", is_there},
                                     {"read_file", read_file},
                                     {NULL, NULL}};

void lumat_add_folders(lua_State *L)
{
    lua_pushinteger(L, LUMAT_IRREGULAR);
    lua_setfield(L, -2, "irregular");
    luaL_setfuncs(L, functions, 0);
}
