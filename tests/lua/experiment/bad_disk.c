/* Put before the C library (LD_PRELOAD), is a disk that fails: a folder whose
 * path ends in $BAD_FOLDER cannot be read beyond its third entry, and no file
 * whose path ends in $BAD_FILE beyond its 100th byte. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int is_bad(int fd, const char *variable)
{
    char link[64], path[PATH_MAX + 1];
    const char *bad = getenv(variable);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = bad ? readlink(link, path, PATH_MAX) : -1;
    size_t length = bad ? strlen(bad) : 0;
    return n >= 0 && (size_t)n >= length &&
           memcmp(path + n - length, bad, length) == 0;
}

struct dirent *readdir(DIR *folder)
{
    struct dirent *(*real)(DIR *) = dlsym(RTLD_NEXT, "readdir");
    static DIR *last;
    static int count;
    count = folder == last ? count + 1 : 1;
    last = folder;
    if (count > 3 && is_bad(dirfd(folder), "BAD_FOLDER")) {
        last = NULL;
        errno = EIO;
        return NULL;
    }
    return real(folder);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
    ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread");
    if (is_bad(fd, "BAD_FILE")) {
        if (offset >= 100) {
            errno = EIO;
            return -1;
        }
        size = size < 100 - (size_t)offset ? size : 100 - (size_t)offset;
    }
    return real(fd, bytes, size, offset);
}

ssize_t pread64(int fd, void *bytes, size_t size, off_t offset)
{
    return pread(fd, bytes, size, offset);
}

struct dirent64 *readdir64(DIR *folder)
{
    return (struct dirent64 *)readdir(folder);
}
