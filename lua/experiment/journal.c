/* Journals, in which nothing is lost: one for each writer, a checked record a
 * line, synced before it counts. */
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
#include "experiment_parts.h"
#include "fence.h"

/* --- records -------------------------------------------------------------- */
/* Lines, each with a checksum behind it. What a writer was killed at, the end
 * of the file, is no record and is not read; what is wrong before a record is
 * damage. */

void lumat_mark_record(const char *line, size_t length,
                       char mark[LUMAT_MARK + 1])
{
    snprintf(mark, LUMAT_MARK + 1, "\t%08lx\n",
             crc32(0, (const Bytef *)line, (uInt)length));
}

typedef struct span {
    const char *start, *end;
} span;

/* Is the line, without its newline, a record with its mark? */
static int is_whole(const char *line, size_t length)
{
    char mark[LUMAT_MARK + 1];
    if (length < LUMAT_MARK - 1)
        return 0;
    size_t n = length - (LUMAT_MARK - 1);
    lumat_mark_record(line, n, mark);
    return memcmp(line + n, mark, LUMAT_MARK - 1) == 0;
}

/* Does any whole record follow? Then what is wrong before it is damage. */
static int has_whole(span t)
{
    while (t.start < t.end) {
        const char *end = memchr(t.start, '\n', (size_t)(t.end - t.start));
        if (!end)
            return 0;
        if (is_whole(t.start, (size_t)(end - t.start)))
            return 1;
        t.start = end + 1;
    }
    return 0;
}

/* Pushes the file from offset on; an error number. */
static int push_rest(lua_State *L, const char *path, off_t offset)
{
    struct stat info;
    int error = 0, fd = lumat_open_fresh(path);
    if (fd < 0)
        return errno;
    if (fstat(fd, &info) != 0)
        error = errno;
    off_t size = error || info.st_size < offset ? 0 : info.st_size - offset;
    char *room = error ? NULL : malloc((size_t)size + 1);
    ssize_t n = room ? lumat_read_fully(fd, room, (size_t)size, offset) : -1;
    if (!error && n < 0)
        error = room ? errno : ENOMEM;
    close(fd);
    if (!error)
        lua_pushlstring(L, room, (size_t)n);
    free(room);
    return error;
}

/* Adds the record to the list under it. */
static int add_record(lua_State *L, int list, int number, const char *line,
                      size_t length)
{
    if (!is_whole(line, length) ||
        lumat_push_json(L, line, length - (LUMAT_MARK - 1), NULL))
        return 0;
    lua_rawseti(L, list, number);
    return 1;
}

/* read(path, offset): the records from there on, where they end, and how many
 * bytes behind are no record; or nil and the number of the line, counted from
 * the offset, that is damaged; or nil, nil and the system's word. */
static int read_records(lua_State *L)
{
    size_t length;
    const char *path = luaL_checkstring(L, 1);
    off_t offset = (off_t)luaL_checkinteger(L, 2);
    int n = 0, error = push_rest(L, path, offset);
    if (error) {
        lua_pushnil(L);
        lua_pushnil(L);
        lua_pushstring(L, lumat_error_text(error));
        return 3;
    }
    const char *all = lua_tolstring(L, -1, &length);
    span t = {all, all + length};
    lua_newtable(L);
    int list = lua_gettop(L);
    while (t.start < t.end) {
        const char *end = memchr(t.start, '\n', (size_t)(t.end - t.start));
        if (!end ||
            !add_record(L, list, n + 1, t.start, (size_t)(end - t.start))) {
            if (end && has_whole((span){end + 1, t.end})) {
                lua_pushnil(L);
                lua_pushinteger(L, n + 1);
                return 2;
            }
            break;
        }
        n++;
        t.start = end + 1;
    }
    lua_pushinteger(L, (lua_Integer)(offset + (t.start - all)));
    lua_pushinteger(L, (lua_Integer)(t.end - t.start));
    return 3;
}

/* --- hashing -------------------------------------------------------------- */

/* FNV-1a of 64 bits, its bits mixed as in MurmurHash3. */
static uint64_t hash_of(const char *s, size_t length, uint64_t h)
{
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

/* hash(text): 16 hexadecimal digits. */
static int hash(lua_State *L)
{
    size_t length;
    char digits[17];
    const char *s = luaL_checklstring(L, 1, &length);
    snprintf(digits, sizeof digits, "%016llx",
             (unsigned long long)hash_of(s, length, 0xcbf29ce484222325u));
    lua_pushstring(L, digits);
    return 1;
}

/* checksum(text): as it stands behind a record. */
static int checksum(lua_State *L)
{
    size_t length;
    char digits[17];
    const char *s = luaL_checklstring(L, 1, &length);
    snprintf(digits, sizeof digits, "%08lx",
             crc32(0, (const Bytef *)s, (uInt)length));
    lua_pushstring(L, digits);
    return 1;
}

/* --- writing -------------------------------------------------------------- */

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

static const luaL_Reg functions[] = {{"create", create},
                                     {"read", read_records},
                                     {"hash", hash},
                                     {"checksum", checksum},
                                     {NULL, NULL}};

void lumat_add_records(lua_State *L)
{
    luaL_newmetatable(L, writer_type);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
