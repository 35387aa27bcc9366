/* The bytes of a file, for load. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "files.h"
#include "matrix.h"
#include "stopping.h"

enum { PART = 1 << 22 }; /* bytes read at a time */

/* --- progress ------------------------------------------------------------ */

int lumat_begin_file(const char *what, const char *path, size_t bytes)
{
    const char *slash = strrchr(path, '/');
    if (bytes < PART ||
        !gpu_begin_work("%s %s", what, slash != NULL ? slash + 1 : path))
        return 0;
    return gpu_begin_stage((int64_t)bytes);
}

void lumat_end_file(int began)
{
    gpu_end_work(began);
}

int lumat_file_goes_on(size_t bytes)
{
    gpu_advance((int64_t)bytes);
    return !gpu_is_interrupted();
}

/* --- reading ------------------------------------------------------------- */

/* Opens path for reading when it is a regular file. Returns 0, or what errno
 * said; *what gets a better word when there is one. */
static int open_regular(const char *path, int *fd, size_t *size,
                        const char **what)
{
    struct stat info;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return errno;
    int error = fstat(*fd, &info) == 0 ? 0 : errno;
    if (error == 0 && !S_ISREG(info.st_mode)) {
        error = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
        *what = S_ISDIR(info.st_mode) ? "it is a directory"
                                      : "it is not a regular file";
    }
    *size = error == 0 ? (size_t)info.st_size : 0;
    if (error != 0)
        close(*fd);
    return error;
}

static int file_size(const char *path, size_t *size, const char **what)
{
    int fd, error = open_regular(path, &fd, size, what);
    if (error == 0)
        close(fd);
    return error;
}

/* Reads at most *size bytes, and says in *size how many there were. */
static int read_whole(const char *path, char *buffer, size_t *size,
                      const char **what)
{
    size_t now, got = 0;
    int fd, error = open_regular(path, &fd, &now, what);
    if (error != 0)
        return error;
    int began = lumat_begin_file("load", path, *size);
    while (got < *size) {
        size_t part = *size - got < PART ? *size - got : PART;
        ssize_t n = read(fd, buffer + got, part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            error = errno;
        if (n <= 0)
            break;
        got += (size_t)n;
        if (!lumat_file_goes_on((size_t)n)) {
            error = EINTR;
            break;
        }
    }
    lumat_end_file(began);
    close(fd);
    *size = got;
    return error;
}

/* The file is opened twice, so that
 * no descriptor is open when Lua runs out of memory. */
char *lumat_push_file(lua_State *L, const char *path, size_t *size)
{
    const char *what = NULL;
    char *buffer = NULL;
    int error = file_size(path, size, &what);
    if (error == 0) {
        buffer = lua_newuserdatauv(L, *size + 1, 0);
        error = read_whole(path, buffer, size, &what);
    }
    if (error == EINTR)
        lumat_poll(L, 0);
    if (error != 0)
        lumat_raise(L, "load: cannot read '%s': %s", path,
                    what != NULL ? what : strerror(error));
    if (*size == 0)
        lumat_raise(L, "load: '%s' is empty", path);
    return buffer;
}
