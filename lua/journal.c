/* Files in which nothing is lost: journals, one for each writer, a checked
 * record a line, synced before it counts; and files that are written once,
 * whole, by whoever comes first. */
#include "journal.h"
#include "lumat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static const char writer_type[] = "lumat.journal_writer";

enum { MARK = 10 }; /* a tab, eight hexadecimal digits, a newline */

typedef struct writer {
    int fd;
    off_t size;
} writer;

int lumat_raise_file(lua_State *L, const char *what, const char *path,
                     int error)
{
    return luaL_error(L, "%s: %s: %s", what, path, strerror(error));
}

/* --- writing -------------------------------------------------------------- */

static int sync_folder(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) >= sizeof folder)
        return 0;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    int fd = open(*folder ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : errno;
    int error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    close(fd);
    return error;
}

/* create(path): a new journal. A limit of a file's size is an error like
 * others, not the program's end. */
static int create(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    writer *w = lua_newuserdatauv(L, sizeof *w, 1);
    w->fd = -1;
    w->size = 0;
    luaL_setmetatable(L, writer_type);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    signal(SIGXFSZ, SIG_IGN);
    w->fd =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    int error = w->fd < 0 ? errno : sync_folder(path);
    return error ? lumat_raise_file(L, "journal", path, error) : 1;
}

/* A record that is not whole is taken back: the file stays as it was. */
static int put(writer *w, const char *text, size_t length)
{
    struct stat info;
    ssize_t n;
    do
        n = write(w->fd, text, length);
    while (n < 0 && errno == EINTR);
    int error = n < 0 ? errno : (size_t)n < length ? ENOSPC : 0;
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
    char mark[MARK + 1];
    writer *w = luaL_checkudata(L, 1, writer_type);
    const char *text = luaL_checklstring(L, 2, &length);
    luaL_argcheck(L, w->fd >= 0, 1, "is closed");
    luaL_argcheck(L, !memchr(text, '\n', length), 2, "has more than a line");
    snprintf(mark, sizeof mark, "\t%08lx\n",
             crc32(0, (const Bytef *)text, (uInt)length));
    lua_pushvalue(L, 2);
    lua_pushlstring(L, mark, MARK);
    lua_concat(L, 2);
    text = lua_tolstring(L, -1, &length);
    int error = put(w, text, length);
    if (error) {
        lua_pushnil(L);
        lua_pushstring(L, strerror(error));
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

/* --- reading -------------------------------------------------------------- */

typedef struct text {
    const char *start, *end;
} text;

/* Is the line, without its newline, a record with its mark? */
static int is_whole(const char *line, size_t length)
{
    char mark[MARK];
    if (length < MARK - 1)
        return 0;
    size_t n = length - (MARK - 1);
    snprintf(mark, sizeof mark, "\t%08lx",
             crc32(0, (const Bytef *)line, (uInt)n));
    return memcmp(line + n, mark, MARK - 1) == 0;
}

/* Does any whole record follow? Then what is wrong before it is damage. */
static int has_whole(text t)
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
    int error = 0, fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (fstat(fd, &info) != 0)
        error = errno;
    off_t size = error || info.st_size < offset ? 0 : info.st_size - offset;
    char *room = error ? NULL : malloc((size_t)size + 1);
    ssize_t n = room ? pread(fd, room, (size_t)size, offset) : -1;
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
        lumat_push_json(L, line, length - (MARK - 1)))
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
        lua_pushstring(L, strerror(error));
        return 3;
    }
    const char *all = lua_tolstring(L, -1, &length);
    text t = {all, all + length};
    lua_newtable(L);
    int list = lua_gettop(L);
    while (t.start < t.end) {
        const char *end = memchr(t.start, '\n', (size_t)(t.end - t.start));
        if (!end ||
            !add_record(L, list, n + 1, t.start, (size_t)(end - t.start))) {
            if (end && has_whole((text){end + 1, t.end})) {
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

/* --- files and folders ---------------------------------------------------- */

static int result_of(lua_State *L, int error)
{
    if (!error) {
        lua_pushboolean(L, 1);
        return 1;
    }
    lua_pushnil(L);
    lua_pushstring(L, strerror(error));
    return 2;
}

static int write_whole(const char *path, const char *content, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    int error = 0;
    ssize_t n = write(fd, content, length);
    if (n < 0 || (size_t)n < length)
        error = n < 0 ? errno : ENOSPC;
    else if (fsync(fd) != 0 && errno != EINVAL)
        error = errno;
    close(fd);
    return error;
}

/* found(path, text): writes the file unless it is there: true if this call
 * did, false if it was there, nil and why not. By link, which is atomic on
 * every file system, also where an answer was lost on the way. */
static int found(lua_State *L)
{
    size_t length;
    struct stat info;
    const char *path = luaL_checkstring(L, 1);
    const char *content = luaL_checklstring(L, 2, &length);
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    const char *temporary =
        lua_pushfstring(L, "%s.%s.%d.tmp", path, host, (int)getpid());
    if (access(path, F_OK) == 0) {
        lua_pushboolean(L, 0);
        return 1;
    }
    int error = write_whole(temporary, content, length), mine = 0;
    if (!error) {
        int failed = link(temporary, path) != 0 ? errno : 0;
        mine = stat(temporary, &info) == 0 && info.st_nlink == 2;
        error = mine || failed == EEXIST ? 0 : failed;
    }
    unlink(temporary);
    if (mine)
        sync_folder(path);
    if (error)
        return result_of(L, error);
    lua_pushboolean(L, mine);
    return 1;
}

/* make_folder(path), with those above it. */
static int make_folder(lua_State *L)
{
    size_t length;
    const char *path = luaL_checklstring(L, 1, &length);
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

/* list(path): {name = size}, or nil and why not. */
static int list_folder(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    DIR *d = opendir(path);
    if (!d)
        return result_of(L, errno);
    lua_newtable(L);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        struct stat info;
        if (fstatat(dirfd(d), e->d_name, &info, 0) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        lua_pushinteger(L, (lua_Integer)info.st_size);
        lua_setfield(L, -2, e->d_name); /* out of memory leaks d: the end */
    }
    closedir(d);
    return 1;
}

static int is_writable(lua_State *L)
{
    return result_of(
        L, access(luaL_checkstring(L, 1), W_OK | X_OK) == 0 ? 0 : errno);
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

static const luaL_Reg functions[] = {
    {"create", create},       {"read", read_records},
    {"found", found},         {"make_folder", make_folder},
    {"list", list_folder},    {"is_writable", is_writable},
    {"real_path", real_path}, {"hash", hash},
    {"checksum", checksum},   {NULL, NULL}};

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
    luaL_newlib(L, functions);
    lumat_add_json(L);
    lumat_add_claims(L);
    lumat_add_processes(L);
    lumat_add_tasks(L);
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
