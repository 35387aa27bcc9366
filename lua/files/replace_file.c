/* Writes a file so that a reader sees the old content or the new, whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "replace_file.h"
#include "descriptor.h"
#include "fence.h"
#include "temp_file.h"

enum { MOST_LINKS = 40, WINDOW = 8 << 20 };

/* The length of the folder's part of path, with its slash. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* Writes folder (so many bytes of it) and name into out. */
static int join(char out[PATH_MAX], const char *folder, size_t length,
                const char *name)
{
    if (length + strlen(name) >= PATH_MAX)
        return ENAMETOOLONG;
    memmove(out, folder, length);
    strcpy(out + length, name);
    return 0;
}

/* The file that path names, behind any symbolic links; it need not exist. */
static int resolve(const char *path, char out[PATH_MAX])
{
    char link[PATH_MAX];
    int error = join(out, "", 0, path);
    for (int i = 0; error == 0 && i < MOST_LINKS; i++) {
        ssize_t length = readlink(out, link, sizeof link - 1);
        if (length < 0)
            return errno == EINVAL || errno == ENOENT ? 0 : errno;
        link[length] = '\0';
        size_t folder = link[0] == '/' ? 0 : folder_length(out);
        error = join(out, out, folder, link);
    }
    return error != 0 ? error : ELOOP;
}

/* Checks that target may be replaced; mode gets its permission bits, or 0
 * when there is none yet. */
static int check_target(const char *target, mode_t *mode)
{
    struct stat info;
    *mode = 0;
    if (stat(target, &info) != 0)
        return errno == ENOENT ? 0 : errno;
    if (S_ISDIR(info.st_mode))
        return EISDIR;
    if (!S_ISREG(info.st_mode))
        return EINVAL;
    *mode = info.st_mode & 0777;
    return access(target, W_OK) == 0 ? 0 : errno;
}

/* A file that is to be replaced lends its permission bits, from the start:
 * with --safe none are changed afterwards. */
static int create_temporary(lumat_atomic *a, mode_t mode)
{
    size_t folder = folder_length(a->target);
    lumat_sweep_temporaries(a->target, folder);
    mode_t kept = mode != 0 ? umask(0) : 0;
    a->fd = lumat_create_temporary(a->temporary, a->target, folder,
                                   mode != 0 ? mode : 0666);
    int error = a->fd < 0 ? errno : 0;
    if (mode != 0)
        umask(kept);
    return error;
}

/* What is written goes to disk at once, and little more is taken before it is
 * there: the last fsync, which nothing can interrupt, finds little to do. */
static void push_out(lumat_atomic *a)
{
    unsigned wait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                    SYNC_FILE_RANGE_WAIT_AFTER;
    while (a->written - a->started >= WINDOW) {
        sync_file_range(a->fd, a->started, WINDOW, SYNC_FILE_RANGE_WRITE);
        if (a->started >= WINDOW)
            sync_file_range(a->fd, a->started - WINDOW, WINDOW, wait);
        a->started += WINDOW;
    }
}

static int write_out(lumat_atomic *a, const void *data, size_t length)
{
    int error = lumat_write_fully(a->fd, data, length, a->written);
    a->written += (off_t)length;
    push_out(a);
    return error;
}

static int flush(lumat_atomic *a)
{
    size_t used = a->used;
    a->used = 0;
    return write_out(a, a->buffer, used);
}

int lumat_atomic_open(lumat_atomic *a, const char *path)
{
    mode_t mode;
    a->fd = -1;
    a->used = 0;
    a->written = a->started = 0;
    int error = resolve(path, a->target);
    if (error == 0)
        error = check_target(a->target, &mode);
    return error != 0 ? error : create_temporary(a, mode);
}

int lumat_atomic_write(lumat_atomic *a, const void *data, size_t length)
{
    if (length > sizeof a->buffer - a->used) {
        int error = flush(a);
        if (error != 0)
            return error;
    }
    if (length >= sizeof a->buffer)
        return write_out(a, data, length);
    memcpy(a->buffer + a->used, data, length);
    a->used += length;
    return 0;
}

int lumat_atomic_patch(lumat_atomic *a, off_t at, const void *data,
                       size_t length)
{
    int error = flush(a);
    return error != 0 ? error : lumat_write_fully(a->fd, data, length, at);
}

off_t lumat_atomic_size(const lumat_atomic *a)
{
    return a->written + (off_t)a->used;
}

int lumat_atomic_commit(lumat_atomic *a)
{
    int error = flush(a);
    if (error == 0)
        error = lumat_sync(a->fd);
    if (error != 0)
        return error;
    if (rename(a->temporary, a->target) != 0)
        return errno;
    /* not before: it is what keeps the temporary file locked */
    error = close(a->fd) == 0 || errno == EINTR ? 0 : errno;
    a->fd = -1;
    int synced = lumat_sync_folder(a->target);
    return error != 0 ? error : synced;
}

void lumat_atomic_abort(lumat_atomic *a)
{
    if (a->fd < 0)
        return;
    unlink(a->temporary);
    close(a->fd);
    a->fd = -1;
}
