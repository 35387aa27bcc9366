/* Put before the C library (LD_PRELOAD), makes any file system answer as a
 * client of NFS may: a size may be old until the file is opened; a name that
 * was not there stays away until its folder is opened or changed by this
 * process; every second link and removal is done, but its answer is lost, and
 * the second try is told what it then finds. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { MOST = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char missing[MOST][NAME_MAX + 1];
static int missing_count;
static struct known {
    ino_t inode;
    off_t size;
} sizes[MOST];
static int size_count, tries;

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int is_shared(const char *path)
{
    const char *name = last_part(path);
    return strchr("jw0123456789abcdef", *name) &&
           (strstr(name, ".jsonl") || strncmp(name, "w-", 2) == 0 ||
            strspn(name, "0123456789abcdef") == 16);
}

static int is_known_missing(const char *path)
{
    int found = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < missing_count; i++)
        found |= strcmp(missing[i], last_part(path)) == 0;
    pthread_mutex_unlock(&lock);
    return found;
}

static void note_missing(const char *path)
{
    pthread_mutex_lock(&lock);
    if (missing_count < MOST)
        snprintf(missing[missing_count++], NAME_MAX + 1, "%s", last_part(path));
    pthread_mutex_unlock(&lock);
}

static void forget_missing(void)
{
    pthread_mutex_lock(&lock);
    missing_count = 0;
    pthread_mutex_unlock(&lock);
}

/* The size as it was when first seen, or last opened. */
static off_t old_size(ino_t inode, off_t size, int is_opened)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < size_count && sizes[i].inode != inode)
        i++;
    if (i < MOST && (is_opened || i == size_count))
        sizes[i] = (struct known){inode, size};
    if (i == size_count && i < MOST)
        size_count++;
    size = i < MOST ? sizes[i].size : size;
    pthread_mutex_unlock(&lock);
    return size;
}

static int opened(int fd, const char *path)
{
    struct stat info;
    int error = errno;
    if (fd < 0 && error == ENOENT && is_shared(path))
        note_missing(path);
    if (fd >= 0 && fstat(fd, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            forget_missing();
        else if (is_shared(path))
            old_size(info.st_ino, info.st_size, 1);
    }
    errno = error;
    return fd;
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

int open(const char *path, int flags, ...)
{
    int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (!(flags & O_CREAT) && is_shared(path) && is_known_missing(path))
        return refuse(ENOENT);
    return opened(next(path, flags, mode), path);
}

int openat(int folder, const char *path, int flags, ...)
{
    int (*next)(int, const char *, int, ...) = dlsym(RTLD_NEXT, "openat");
    if (is_shared(path) && is_known_missing(path))
        return refuse(ENOENT);
    return opened(next(folder, path, flags, 0), path);
}

int fstatat(int folder, const char *path, struct stat *info, int flags)
{
    int (*next)(int, const char *, struct stat *, int) =
        dlsym(RTLD_NEXT, "fstatat");
    int failed = next(folder, path, info, flags);
    if (!failed && is_shared(path))
        info->st_size = old_size(info->st_ino, info->st_size, 0);
    return failed;
}

DIR *opendir(const char *path)
{
    DIR *(*next)(const char *) = dlsym(RTLD_NEXT, "opendir");
    forget_missing();
    return next(path);
}

int link(const char *from, const char *to)
{
    int (*next)(const char *, const char *) = dlsym(RTLD_NEXT, "link");
    int failed = next(from, to);
    forget_missing();
    if (!failed && ++tries % 2)
        return refuse(EEXIST);
    return failed;
}

int unlink(const char *path)
{
    int (*next)(const char *) = dlsym(RTLD_NEXT, "unlink");
    int failed = next(path);
    forget_missing();
    if (!failed && ++tries % 2)
        return refuse(ENOENT);
    return failed;
}
