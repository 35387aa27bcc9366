/* Feeds any bytes to the reader of zip archives, as a file. Holds: what a part
 * claims is bounded by the file's bytes, read in two pieces it is what it is
 * read in one, and all that is refused is refused with words that name the
 * file. What else the room would bring, writing among it, is cut off here. */
#include "cancellation.h"
#include "files_parts.h"
#include "value.h"

#include "lualib.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 1 << 22, PARTS = 64 };

static void require(int truth)
{
    if (!truth)
        abort();
}

/* --- in the place of the rooms that are not linked ------------------------ */

int lumat_raise(lua_State *L, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    lua_pushvfstring(L, format, values);
    va_end(values);
    return lua_error(L);
}

void lumat_poll(lua_State *L, int64_t i)
{
    (void)L, (void)i;
}

void lumat_open_closing(lua_State *L, const char *name, lua_CFunction close)
{
    luaL_newmetatable(L, name);
    lua_pushcfunction(L, close);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, close);
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
}

int gpu_begin_work(const char *format, ...)
{
    (void)format;
    return 0;
}

void gpu_end_work(int began)
{
    (void)began;
}

int lumat_atomic_open(lumat_atomic *a, const char *path)
{
    (void)a, (void)path;
    return EROFS;
}

int lumat_atomic_write(lumat_atomic *a, const void *data, size_t length)
{
    (void)a, (void)data, (void)length;
    return EROFS;
}

int lumat_atomic_patch(lumat_atomic *a, off_t at, const void *data,
                       size_t length)
{
    (void)a, (void)at, (void)data, (void)length;
    return EROFS;
}

int lumat_atomic_commit(lumat_atomic *a)
{
    (void)a;
    return EROFS;
}

void lumat_atomic_abort(lumat_atomic *a)
{
    (void)a;
}

off_t lumat_atomic_size(const lumat_atomic *a)
{
    (void)a;
    return 0;
}

/* --- reading -------------------------------------------------------------- */

/* Pushes a part's bytes, or false where it would only take long. The archive is
 * at 1, the part's name at 2, the bytes of its first piece at 3. */
static int read_part(lua_State *L)
{
    lumat_archive *a = lua_touserdata(L, 1);
    const char *name = lua_tostring(L, 2);
    size_t first = (size_t)lua_tointeger(L, 3);
    uint64_t length = lumat_archive_find(L, a, name);
    lua_getglobal(L, "size");
    require(length / 1032 <= (uint64_t)lua_tointeger(L, -1));
    if (length > MOST) {
        lua_pushboolean(L, 0);
        return 1;
    }
    char *bytes = malloc((size_t)length + 1);
    require(bytes != NULL);
    lua_pushlightuserdata(L, bytes);
    lua_setglobal(L, "memory"); /* freed whatever is raised */
    first = first < length ? first : (size_t)length;
    lumat_archive_read(L, a, bytes, first);
    lumat_archive_read(L, a, bytes + first, (size_t)length - first);
    lua_pushlstring(L, bytes, (size_t)length);
    lumat_archive_finish(L, a);
    return 1;
}

/* Leaves the part's bytes, or what they were refused with, on the stack. */
static void try_part(lua_State *L, int archive, int name, lua_Integer first)
{
    lua_pushcfunction(L, read_part);
    lua_pushvalue(L, archive);
    lua_pushvalue(L, name);
    lua_pushinteger(L, first);
    if (lua_pcall(L, 3, 1, 0) != LUA_OK)
        require(strstr(lua_tostring(L, -1), "/proc/self/fd/") != NULL);
    lua_getglobal(L, "memory");
    free(lua_touserdata(L, -1));
    lua_pop(L, 1);
    lua_pushnil(L);
    lua_setglobal(L, "memory");
}

static int read_all(lua_State *L)
{
    const char *path = lua_tostring(L, 1);
    for (int round = 0; round < 2; round++) {
        lumat_archive *a = lumat_archive_open(L, "load", path);
        int archive = lua_gettop(L);
        lumat_archive_names(L, a);
        int names = lua_gettop(L), piece = round == 0 ? MOST : 7;
        lua_Integer count = (lua_Integer)lua_rawlen(L, names);
        for (lua_Integer i = 1; i <= count && i <= PARTS; i++) {
            lua_rawgeti(L, names, i);
            lua_pushvalue(L, -1);
            if (round > 0 && lua_rawget(L, 2) != LUA_TNIL) {
                try_part(L, archive, names + 1, piece);
                require(lua_rawequal(L, -1, -2));
            } else if (round == 0) {
                try_part(L, archive, names + 1, piece);
                lua_rawset(L, 2);
            }
            lua_settop(L, names);
        }
        lua_settop(L, 2);
    }
    return 0;
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;
    static int file = -1;
    if (L == NULL) {
        L = luaL_newstate();
        require(L != NULL);
        lumat_open_archive(L);
        file = memfd_create("archive", 0);
    }
    require(file >= 0 && ftruncate(file, 0) == 0 &&
            pwrite(file, data, size, 0) == (ssize_t)size);
    lua_pushinteger(L, (lua_Integer)size);
    lua_setglobal(L, "size");
    lua_pushcfunction(L, read_all);
    lua_pushfstring(L, "/proc/self/fd/%d", file);
    lua_newtable(L);
    if (lua_pcall(L, 2, 0, 0) != LUA_OK)
        require(strstr(lua_tostring(L, -1), "/proc/self/fd/") != NULL);
    lua_settop(L, 0);
    lua_gc(L, LUA_GCCOLLECT);
    return 0;
}
