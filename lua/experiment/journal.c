/* Journals, in which nothing is lost: one for each writer, a checked record a
 * line, synced before it counts. And the module of what experiments need. */
#include "journal.h"
#include "descriptor.h"
#include "fence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static const char writer_type[] = "lumat.journal_writer";

typedef struct writer {
    int fd;
    off_t size;
} writer;

/* create(path): a new journal, whose name nobody else has, or nil and why
 * not. */
static int create(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    writer *w = lua_newuserdatauv(L, sizeof *w, 1);
    w->fd = -1;
    w->size = 0;
    luaL_setmetatable(L, writer_type);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    w->fd = lumat_open_path(
        path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    int error = w->fd < 0 ? errno : lumat_sync_folder(path);
    if (!error)
        return 1;
    lua_pushnil(L);
    lua_pushstring(L, lumat_error_text(error));
    return 2;
}

/* A record that is not whole is taken back: the file stays as it was. */
static int put(writer *w, const char *text, size_t length)
{
    struct stat info;
    int error = lumat_write_fully(w->fd, text, length, -1);
    if (!error && fdatasync(w->fd) != 0 && errno != EINVAL)
        error = errno;
    if (error) {
        if (ftruncate(w->fd, w->size) != 0)
            return error; /* a torn last line, which readers drop */
        return error;
    }
    w->size += (off_t)length;
    if (fstat(w->fd, &info) == 0 && info.st_nlink == 0)
        return ENOENT; /* the folder was removed meanwhile */
    return 0;
}

/* writer:append(text): true once the record is on the disk; else nil and the
 * system's word. */
static int append(lua_State *L)
{
    size_t length;
    char mark[LUMAT_MARK + 1];
    writer *w = luaL_checkudata(L, 1, writer_type);
    const char *text = luaL_checklstring(L, 2, &length);
    luaL_argcheck(L, w->fd >= 0, 1, "is closed");
    luaL_argcheck(L, !memchr(text, '\n', length), 2, "has more than a line");
    lumat_mark_record(text, length, mark);
    lua_pushvalue(L, 2);
    lua_pushlstring(L, mark, LUMAT_MARK);
    lua_concat(L, 2);
    text = lua_tolstring(L, -1, &length);
    int error = put(w, text, length);
    if (error) {
        lua_pushnil(L);
        lua_pushstring(L, lumat_error_text(error));
        lua_pushboolean(L, error == ENOENT);
        return 3;
    }
    lua_pushboolean(L, 1);
    return 1;
}

static int close_writer(lua_State *L)
{
    writer *w = luaL_checkudata(L, 1, writer_type);
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
    return 0;
}

static const luaL_Reg methods[] = {{"append", append},
                                   {"close", close_writer},
                                   {"__close", close_writer},
                                   {"__gc", close_writer},
                                   {NULL, NULL}};

void lumat_open_journal(lua_State *L)
{
    luaL_newmetatable(L, writer_type);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_newtable(L);
    lua_pushcfunction(L, create);
    lua_setfield(L, -2, "create");
    lumat_add_records(L);
    lumat_add_folders(L);
    lumat_add_json_writer(L);
    lumat_add_json_reader(L);
    lumat_add_claims(L);
    lumat_add_processes(L);
    lumat_add_tasks(L);
    lumat_add_crew(L);
    lumat_add_when_stopped(L);
    lua_pushliteral(L, LUMAT_VERSION);
    lua_setfield(L, -2, "version");
    lua_setfield(L, -2, "lumat.journal");
    lua_pop(L, 1);
}

void lumat_start_no_processes(lua_State *L)
{
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "lumat.safe");
}
