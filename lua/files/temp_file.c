/* Temporary files: .lumat-HOST-PROCESS-NUMBER.tmp, locked by whoever writes
 * one. The kernel takes the lock away from a process that ends, however it
 * ends: what can be locked has no writer any more. Between machines that share
 * a folder locks may not be seen; a file of another one counts as left behind
 * after a day without a write. */
#include "temp_file.h"
#include "fence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

static int join(char out[PATH_MAX], const char *folder, size_t length,
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

int lumat_create_temporary(char out[PATH_MAX], const char *path, size_t length,
                           mode_t mode)
{
    char name[LONGEST_HOST + 64];
    for (int i = 0; i < MOST_NAMES; i++) {
        snprintf(name, sizeof name, "%s%s-%ld-%d%s", BEGIN, host_name(),
                 (long)getpid(), i, END);
        errno = join(out, path, length, name);
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
        time_t time;
    } last;
    struct timespec now;
    struct stat info;
    if (fstat(folder, &info) != 0)
        return 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (info.st_dev == last.dev && info.st_ino == last.ino &&
        now.tv_sec - last.time < PAUSE)
        return 0;
    last.dev = info.st_dev;
    last.ino = info.st_ino;
    last.time = now.tv_sec;
    return 1;
}

void lumat_sweep_temporaries(const char *path, size_t length)
{
    char folder[PATH_MAX];
    DIR *entries = NULL;
    if (join(folder, path, length, length == 0 ? "." : "") == 0 &&
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
