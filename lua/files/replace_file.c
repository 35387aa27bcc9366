/* Files that are replaced whole: a reader sees the old content or the new.
 * Each is written beside its target as .lumat-HOST-PROCESS-NUMBER.tmp, locked
 * by whoever writes it. The kernel takes the lock away from a process that
 * ends, however it ends: what can be locked has no writer any more. Between
 * machines that share a folder locks may not be seen; a file of another one
 * counts as left behind after a day without a write. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "fence.h"
#include "gpu.h"
#include "files_parts.h"

/* --- temporary files ------------------------------------------------------ */

enum {
    MOST_NAMES = 1000,
    LONGEST_HOST = 64,
    DAY = 24 * 60 * 60,
    PAUSE = 10 /* seconds between two looks at the same folder */
};

static const char BEGIN[] = ".lumat-", END[] = ".tmp";

/* This machine's name, of letters that a file's name may have. */
static const char *host_name(void)
{
    static char name[LONGEST_HOST + 1];
    if (name[0] != '\0')
        return name;
    if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0')
        strcpy(name, "unknown");
    for (char *c = name; (c = strchr(c, '/')) != NULL;)
        *c = '_';
    return name;
}

static int join_name(char out[PATH_MAX], const char *folder, size_t length,
                     const char *name)
{
    int n = snprintf(out, PATH_MAX, "%.*s%s", (int)length, folder, name);
    return n >= PATH_MAX ? ENAMETOOLONG : 0;
}

/* --- creating ------------------------------------------------------------- */

/* Whether it could be locked before somebody took it for a leftover. Where
 * there are no locks it needs none: then nobody takes it. */
static int keep(int fd)
{
    struct stat info;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno != EWOULDBLOCK;
    return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

static int create(const char *path, mode_t mode)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = lumat_open_path(path, flags, mode);
    if (fd < 0 || keep(fd))
        return fd;
    close(fd);
    errno = EEXIST;
    return -1;
}

/* Creates a file in the folder that the first `length` bytes of path name, the
 * slash among them: none for the current one. It is locked as long as it is
 * open. Returns its descriptor and its name in out, or -1 with errno set. */
static int create_temp_file(char out[PATH_MAX], const char *path, size_t length,
                            mode_t mode)
{
    char name[LONGEST_HOST + 64];
    for (int i = 0; i < MOST_NAMES; i++) {
        snprintf(name, sizeof name, "%s%s-%ld-%d%s", BEGIN, host_name(),
                 (long)getpid(), i, END);
        errno = join_name(out, path, length, name);
        int fd = errno != 0 ? -1 : create(out, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* --- sweeping ------------------------------------------------------------- */

static int is_temporary(const char *name)
{
    size_t length = strlen(name), end = sizeof END - 1;
    return strncmp(name, BEGIN, sizeof BEGIN - 1) == 0 && length > end &&
           strcmp(name + length - end, END) == 0;
}

static int is_of_this_host(const char *name)
{
    const char *host = host_name();
    size_t length = strlen(host);
    name += sizeof BEGIN - 1;
    return strncmp(name, host, length) == 0 && name[length] == '-';
}

/* Whether the file that is open is one's own, and its writer gone. The lock
 * is asked for last: it is what makes sure of it. */
static int is_left(int fd, const char *name)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_uid != geteuid())
        return 0;
    if (!is_of_this_host(name) && time(NULL) - info.st_mtime < DAY)
        return 0;
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* A name may have become another file's since it was opened; while this one is
 * locked it cannot. */
static int is_still(int fd, int folder, const char *name)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 &&
           fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

static void remove_left(int folder, const char *name)
{
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = openat(folder, name, flags);
    if (fd < 0)
        return;
    if (is_left(fd, name) && is_still(fd, folder, name))
        unlinkat(folder, name, 0);
    close(fd);
}

/* Many files saved one after the other must not list the folder each time. */
static int is_due(int folder)
{
    static struct {
        dev_t dev;
        ino_t ino;
        double time;
    } last;
    struct stat info;
    if (fstat(folder, &info) != 0)
        return 0;
    double now = gpu_now();
    if (info.st_dev == last.dev && info.st_ino == last.ino &&
        now - last.time < PAUSE)
        return 0;
    last.dev = info.st_dev;
    last.ino = info.st_ino;
    last.time = now;
    return 1;
}

/* Removes what dead processes left in the folder; once in a while, however
 * often it is asked to. */
static void sweep_temp_files(const char *path, size_t length)
{
    char folder[PATH_MAX];
    DIR *entries = NULL;
    if (join_name(folder, path, length, length == 0 ? "." : "") == 0 &&
        lumat_may_open(folder, 1))
        entries = opendir(folder);
    if (entries == NULL)
        return;
    int fd = dirfd(entries);
    if (is_due(fd))
        for (struct dirent *e; (e = readdir(entries)) != NULL;)
            if (is_temporary(e->d_name))
                remove_left(fd, e->d_name);
    closedir(entries);
}

/* --- replacing ------------------------------------------------------------ */

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
    sweep_temp_files(a->target, folder);
    mode_t kept = mode != 0 ? umask(0) : 0;
    a->fd = create_temp_file(a->temporary, a->target, folder,
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

static const lumat_shared_files *sharing;

void lumat_share_files(const lumat_shared_files *ways)
{
    sharing = ways;
}

/* Is nothing to be written: it is another process's file, or one that failed,
 * which commit tells all of? */
static int is_silent(const lumat_atomic *a)
{
    return gpu_is_dry() || (a->shared && (!a->shared->writes || a->failed));
}

/* The error of a write: of a shared file it is told by commit. */
static int told_now(lumat_atomic *a, int error)
{
    if (!a->shared)
        return error;
    a->failed = error;
    return 0;
}

static int write_out(lumat_atomic *a, const void *data, size_t length)
{
    if (is_silent(a)) {
        a->written += (off_t)length;
        return 0;
    }
    int error = lumat_write_fully(a->fd, data, length, a->written);
    a->written += (off_t)length;
    push_out(a);
    return told_now(a, error);
}

static int flush(lumat_atomic *a)
{
    size_t used = a->used;
    a->used = 0;
    return write_out(a, a->buffer, used);
}

static int open_here(lumat_atomic *a, const char *path)
{
    mode_t mode;
    int error = resolve(path, a->target);
    if (error == 0)
        error = check_target(a->target, &mode);
    return error != 0 || gpu_is_dry() ? error : create_temporary(a, mode);
}

int lumat_atomic_open(lumat_atomic *a, const char *path)
{
    const lumat_shared_files *s = gpu_is_dry() ? NULL : sharing;
    a->fd = -1;
    a->used = 0;
    a->written = a->started = 0;
    a->failed = 0;
    a->shared = NULL;
    int error = s && !s->writes ? 0 : open_here(a, path);
    if (!s)
        return error;
    error = s->outcome(error);
    if (error == 0)
        a->shared = s;
    return error;
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
    if (error != 0 || is_silent(a))
        return error;
    return told_now(a, lumat_write_fully(a->fd, data, length, at));
}

off_t lumat_atomic_size(const lumat_atomic *a)
{
    return a->written + (off_t)a->used;
}

static int commit_here(lumat_atomic *a)
{
    int error = flush(a);
    if (gpu_is_dry())
        return error;
    if (error == 0)
        error = a->failed;
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

int lumat_atomic_commit(lumat_atomic *a)
{
    const lumat_shared_files *s = a->shared;
    int error = s && !s->writes ? 0 : commit_here(a);
    a->shared = NULL;
    return s ? s->outcome(error) : error;
}

/* Of a shared file, the others may wait for the outcome. */
void lumat_atomic_abort(lumat_atomic *a)
{
    const lumat_shared_files *s = a->shared;
    a->shared = NULL;
    if (s)
        s->outcome(ECANCELED);
    if (a->fd < 0)
        return;
    unlink(a->temporary);
    close(a->fd);
    a->fd = -1;
}
