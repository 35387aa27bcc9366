/* Archives by minizip, on top of files that are replaced whole. */
#include "archive.h"
#include "fence.h"
#include "atomic.h"
#include "matrix.h"
#include "stopping.h"

#include <errno.h>
#include <minizip/unzip.h>
#include <minizip/zip.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char METATABLE[] = "lumat.archive";

struct lumat_archive {
    const char *who;
    zipFile writes; /* one of the two, or neither */
    unzFile reads;
    int error; /* what errno said when a write failed */
    lumat_atomic file;
    int progress; /* begun: see progress.h */
    char path[];
};

void lumat_archive_fail(lua_State *L, const lumat_archive *a,
                        const char *format, ...)
{
    va_list values;
    lua_pushfstring(L, "%s: '%s' ", a->who, a->path);
    va_start(values, format);
    lua_pushvfstring(L, format, values);
    va_end(values);
    lua_concat(L, 2);
    lumat_raise(L, "%s", lua_tostring(L, -1));
}

/* --- the file under a written archive ------------------------------------ */

static voidpf ZCALLBACK file_open(voidpf archive, const void *name, int mode)
{
    (void)name;
    (void)mode;
    return archive;
}

static uLong ZCALLBACK file_read(voidpf archive, voidpf stream, void *data,
                                 uLong length)
{
    (void)archive;
    (void)stream;
    (void)data;
    (void)length;
    return 0;
}

static uLong ZCALLBACK file_write(voidpf archive, voidpf stream,
                                  const void *data, uLong length)
{
    lumat_archive *a = archive;
    uLong done = 0;
    (void)stream;
    while (done < length && a->error == 0) {
        ssize_t n = write(a->file.fd, (const char *)data + done, length - done);
        if (n > 0)
            done += (uLong)n;
        else if (n < 0 && errno != EINTR)
            a->error = errno;
    }
    return done;
}

static ZPOS64_T ZCALLBACK file_tell(voidpf archive, voidpf stream)
{
    (void)stream;
    return (ZPOS64_T)lseek(((lumat_archive *)archive)->file.fd, 0, SEEK_CUR);
}

static long ZCALLBACK file_seek(voidpf archive, voidpf stream, ZPOS64_T offset,
                                int origin)
{
    static const int whence[] = {SEEK_SET, SEEK_CUR, SEEK_END};
    int fd = ((lumat_archive *)archive)->file.fd;
    (void)stream;
    return lseek(fd, (off_t)offset, whence[origin]) < 0 ? -1 : 0;
}

static int ZCALLBACK file_close(voidpf archive, voidpf stream)
{
    (void)archive;
    (void)stream;
    return 0;
}

static int ZCALLBACK file_error(voidpf archive, voidpf stream)
{
    (void)stream;
    return ((lumat_archive *)archive)->error;
}

/* --- opening and closing ------------------------------------------------- */

static lumat_archive *push_archive(lua_State *L, const char *who,
                                   const char *path)
{
    size_t length = strlen(path) + 1;
    lumat_archive *a = lua_newuserdatauv(L, sizeof *a + length, 0);
    memset(a, 0, sizeof *a);
    a->who = who;
    a->file.fd = -1;
    memcpy(a->path, path, length);
    luaL_setmetatable(L, METATABLE);
    return a;
}

static int close_archive(lua_State *L)
{
    lumat_archive *a = luaL_checkudata(L, 1, METATABLE);
    if (a->writes != NULL)
        zipClose(a->writes, NULL);
    if (a->reads != NULL)
        unzClose(a->reads);
    a->writes = a->reads = NULL;
    gpu_end_work(a->progress);
    a->progress = 0;
    lumat_atomic_abort(&a->file);
    return 0;
}

void lumat_open_archive(lua_State *L)
{
    luaL_newmetatable(L, METATABLE);
    lua_pushcfunction(L, close_archive);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__gc");
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
}

/* Raises unless error is 0. */
static void check(lua_State *L, const lumat_archive *a, const char *verb,
                  int error)
{
    if (error != 0)
        lumat_raise(L, "%s: cannot %s '%s': %s", a->who, verb, a->path,
                    error == EISDIR   ? "it is a directory"
                    : error == EINVAL ? "it is not a regular file"
                                      : lumat_error_text(error));
}

/* With the first part: what ends it, an archive's scope, is there by then. */
static void begin_progress(lumat_archive *a, const char *verb)
{
    const char *slash = strrchr(a->path, '/');
    if (!a->progress)
        a->progress =
            gpu_begin_work("%s %s", verb, slash != NULL ? slash + 1 : a->path);
}

lumat_archive *lumat_archive_create(lua_State *L, const char *who,
                                    const char *path)
{
    lumat_archive *a = push_archive(L, who, path);
    zlib_filefunc64_def calls = {.zopen64_file = file_open,
                                 .zread_file = file_read,
                                 .zwrite_file = file_write,
                                 .ztell64_file = file_tell,
                                 .zseek64_file = file_seek,
                                 .zclose_file = file_close,
                                 .zerror_file = file_error,
                                 .opaque = a};
    check(L, a, "write", lumat_atomic_open(&a->file, path));
    a->writes = zipOpen2_64(path, APPEND_STATUS_CREATE, NULL, &calls);
    check(L, a, "write", a->writes != NULL ? 0 : ENOMEM);
    return a;
}

lumat_archive *lumat_archive_open(lua_State *L, const char *who,
                                  const char *path)
{
    struct stat info;
    lumat_archive *a = push_archive(L, who, path);
    int error = stat(path, &info) == 0 ? 0 : errno;
    if (error == 0 && !S_ISREG(info.st_mode))
        error = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    if (error == 0 && access(path, R_OK) != 0)
        error = errno;
    if (error == 0 && !lumat_may_open(path, 0))
        error = EACCES;
    check(L, a, "read", error);
    a->reads = unzOpen64(path);
    if (a->reads == NULL)
        lumat_archive_fail(L, a, "is no archive, or is cut off");
    return a;
}

/* --- writing ------------------------------------------------------------- */

static void check_written(lua_State *L, const lumat_archive *a, int result)
{
    if (result != ZIP_OK)
        check(L, a, "write", a->error != 0 ? a->error : EIO);
}

void lumat_archive_begin(lua_State *L, lumat_archive *a, const char *part)
{
    /* the date of a part: the earliest there is, so that equal contents give
     * equal files */
    zip_fileinfo info = {.tmz_date = {.tm_mday = 1, .tm_year = 1980}};
    int is_large = 1; /* may pass 4 GiB */
    begin_progress(a, "save");
    check_written(L, a,
                  zipOpenNewFileInZip64(a->writes, part, &info, NULL, 0, NULL,
                                        0, NULL, 0, 0, is_large));
}

void lumat_archive_write(lua_State *L, lumat_archive *a, const void *data,
                         size_t length)
{
    enum { MOST = 1 << 30 };
    const char *bytes = data;
    lumat_poll(L, 0);
    while (length > 0) {
        unsigned n = length < MOST ? (unsigned)length : MOST;
        check_written(L, a, zipWriteInFileInZip(a->writes, bytes, n));
        bytes += n;
        length -= n;
    }
}

void lumat_archive_end(lua_State *L, lumat_archive *a)
{
    check_written(L, a, zipCloseFileInZip(a->writes));
}

void lumat_archive_commit(lua_State *L, lumat_archive *a)
{
    int result = zipClose(a->writes, NULL);
    a->writes = NULL;
    check_written(L, a, result);
    check(L, a, "write", lumat_atomic_commit(&a->file));
}

/* --- reading ------------------------------------------------------------- */

uint64_t lumat_archive_find(lua_State *L, lumat_archive *a, const char *part)
{
    unz_file_info64 info;
    begin_progress(a, "load");
    if (unzLocateFile(a->reads, part, 1) != UNZ_OK ||
        unzGetCurrentFileInfo64(a->reads, &info, NULL, 0, NULL, 0, NULL, 0) !=
            UNZ_OK ||
        unzOpenCurrentFile(a->reads) != UNZ_OK)
        lumat_archive_fail(L, a, "has no readable part '%s'", part);
    return info.uncompressed_size;
}

void lumat_archive_read(lua_State *L, lumat_archive *a, void *data,
                        size_t length)
{
    enum { MOST = 1 << 30 };
    char *bytes = data;
    lumat_poll(L, 0);
    while (length > 0) {
        unsigned n = length < MOST ? (unsigned)length : MOST;
        int got = unzReadCurrentFile(a->reads, bytes, n);
        if (got <= 0)
            lumat_archive_fail(L, a, "is damaged or cut off");
        bytes += got;
        length -= (size_t)got;
    }
}

void lumat_archive_finish(lua_State *L, lumat_archive *a)
{
    if (unzCloseCurrentFile(a->reads) != UNZ_OK)
        lumat_archive_fail(L, a, "is damaged: a checksum is wrong");
}
