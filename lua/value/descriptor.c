/* Open files: reads and writes that go on to the end, and fsync. */
#include "descriptor.h"
#include "fence.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

ssize_t lumat_read_fully(int fd, void *bytes, size_t size, off_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n =
            pread(fd, (char *)bytes + done, size - done, offset + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int lumat_write_fully(int fd, const void *bytes, size_t length, off_t at)
{
    const char *p = bytes;
    while (length > 0) {
        ssize_t n = at < 0 ? write(fd, p, length) : pwrite(fd, p, length, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : ENOSPC;
        p += n;
        at += at < 0 ? 0 : n;
        length -= (size_t)n;
    }
    return 0;
}

int lumat_sync(int fd)
{
    int error;
    do
        error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    while (error == EINTR);
    return error;
}

int lumat_open_folder_of(const char *path)
{
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (slash) {
        memcpy(folder, path, length);
        strcpy(folder + length, length ? "" : "/");
    }
    return lumat_open_path(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

int lumat_sync_folder(const char *path)
{
    int fd = lumat_open_folder_of(path);
    if (fd < 0)
        return errno == EACCES ? 0 : errno;
    int error = lumat_sync(fd);
    close(fd);
    return error;
}
