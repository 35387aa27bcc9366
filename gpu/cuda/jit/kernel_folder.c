/* Compiled kernels kept on disk: a file each, named after what it was compiled
 * from. It is code that will be run: so the folder and the files have to be the
 * user's own, writable by nobody else, and a file says what it is and has a sum
 * of its bytes. What is wrong with any of it means that there is none. */
#include "jit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_PATH = 4096, LONGEST_NAME = 64, MOST_FILES = 1 << 16 };
enum { HOUR = 3600, MOST_IMAGE = 8 << 20 };

static const char END[] = ".kernel";
static char folder_path[LONGEST_PATH]; /* empty: there is none */

/* What a file begins with; the image follows. All bytes count: see fill_head.
 */
typedef struct head {
    char magic[16];
    uint64_t files;              /* jit_hash_files */
    int32_t capability, version; /* of the GPU; of the compiler */
    uint64_t bytes, sum;         /* of the image */
    jit_form form;
    char unused[(8 - sizeof(jit_form) % 8) % 8];
} head;

static void fill_head(head *h, const jit_form *f, int capability, int version)
{
    memset(h, 0, sizeof *h);
    strcpy(h->magic, "lumat kernel 1\n");
    h->files = jit_hash_files();
    h->capability = capability;
    h->version = version;
    h->form = *f;
}

static void name_file(const head *h, char name[LONGEST_NAME])
{
    uint64_t one = jit_hash(h, sizeof *h, 0), two = jit_hash(h, sizeof *h, one);
    snprintf(name, LONGEST_NAME, "%016llx%016llx%s", (unsigned long long)one,
             (unsigned long long)two, END);
}

/* --- the folder ------------------------------------------------------------
 */

void jit_find_folder(void)
{
    const char *cache = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    int n = 0;
    if (cache && cache[0] == '/')
        n = snprintf(folder_path, sizeof folder_path, "%s/lumat", cache);
    else if (home && home[0] == '/')
        n = snprintf(folder_path, sizeof folder_path, "%s/.cache/lumat", home);
    if (n <= 0 || n >= (int)sizeof folder_path)
        folder_path[0] = '\0';
}

static int is_own(const struct stat *info)
{
    return info->st_uid == geteuid() && (info->st_mode & 022) == 0;
}

/* The folder, opened; -1: there is none that can be used. */
static int open_folder(void)
{
    struct stat info;
    if (folder_path[0] == '\0')
        return -1;
    int fd = open(folder_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &info) != 0 || !is_own(&info))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* And the one it lies in, where that is missing, too. */
static int make_folder(void)
{
    char above[LONGEST_PATH];
    strcpy(above, folder_path);
    char *slash = strrchr(above, '/');
    if (slash)
        *slash = '\0';
    if (mkdir(folder_path, 0700) != 0 && errno == ENOENT) {
        mkdir(above, 0700);
        mkdir(folder_path, 0700);
    }
    return open_folder();
}

/* --- a file ----------------------------------------------------------------
 */

/* The image of an open file, if it is whole and what it should be: expected
 * says all but its bytes and their sum. */
static void *read_image(int fd, const head *expected, size_t *bytes)
{
    struct stat info;
    head h, same;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !is_own(&info) ||
        !jit_read_fully(fd, &h, sizeof h))
        return NULL;
    same = h;
    same.bytes = same.sum = 0;
    if (memcmp(&same, expected, sizeof same) != 0 || h.bytes == 0 ||
        h.bytes > MOST_IMAGE ||
        info.st_size != (off_t)(sizeof h + (size_t)h.bytes))
        return NULL;
    *bytes = (size_t)h.bytes;
    char *image = malloc(*bytes);
    if (image && jit_read_fully(fd, image, *bytes) &&
        jit_hash(image, *bytes, 0) == h.sum)
        return image;
    free(image);
    return NULL;
}

/* What was used is younger than what was not, for those that are to go. */
void *jit_recall(const jit_form *f, int capability, int version, size_t *bytes)
{
    head expected;
    char name[LONGEST_NAME];
    void *image = NULL;
    int folder = open_folder();
    if (folder < 0)
        return NULL;
    fill_head(&expected, f, capability, version);
    name_file(&expected, name);
    int fd =
        openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        image = read_image(fd, &expected, bytes);
        if (image)
            futimens(fd, NULL);
        close(fd);
    }
    close(folder);
    return image;
}

/* --- keeping the folder small ----------------------------------------------
 */

typedef struct kept {
    char name[LONGEST_NAME];
    off_t bytes;
    time_t used;
} kept;

typedef struct listing {
    kept *files;
    size_t count, room;
    off_t bytes;
} listing;

static int ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static int add_file(listing *l, const char *name, const struct stat *info)
{
    if (l->count == l->room) {
        size_t room = l->room > 0 ? 2 * l->room : 64;
        kept *more =
            room <= MOST_FILES ? realloc(l->files, room * sizeof *more) : NULL;
        if (!more)
            return 0;
        l->files = more;
        l->room = room;
    }
    kept *file = &l->files[l->count++];
    snprintf(file->name, sizeof file->name, "%s", name);
    file->bytes = info->st_size;
    file->used = info->st_mtime;
    l->bytes += info->st_size;
    return 1;
}

/* The kernels; what one who writes has left behind goes. */
static void list_folder(DIR *entries, listing *l)
{
    time_t now = time(NULL);
    for (struct dirent *e; (e = readdir(entries)) != NULL;) {
        struct stat info;
        if (strlen(e->d_name) >= LONGEST_NAME ||
            fstatat(dirfd(entries), e->d_name, &info, AT_SYMLINK_NOFOLLOW) !=
                0 ||
            !S_ISREG(info.st_mode))
            continue;
        if (ends_with(e->d_name, ".kernel.tmp") && now - info.st_mtime > HOUR)
            unlinkat(dirfd(entries), e->d_name, 0);
        else if (ends_with(e->d_name, END) && !add_file(l, e->d_name, &info))
            return;
    }
}

static int older(const void *a, const void *b)
{
    const kept *one = a, *two = b;
    return one->used != two->used ? (one->used < two->used ? -1 : 1)
                                  : strcmp(one->name, two->name);
}

/* Removes the oldest until a quarter of the room is free. The folder stays
 * open. */
static void remove_oldest(int folder, size_t most_bytes)
{
    listing l = {0};
    int copy = dup(folder);
    DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
    if (!entries) {
        if (copy >= 0)
            close(copy);
        return;
    }
    rewinddir(entries);
    list_folder(entries, &l);
    closedir(entries);
    if (l.bytes > (off_t)most_bytes) {
        qsort(l.files, l.count, sizeof *l.files, older);
        for (size_t i = 0;
             i < l.count && l.bytes > (off_t)(most_bytes - most_bytes / 4); i++)
            if (unlinkat(folder, l.files[i].name, 0) == 0)
                l.bytes -= l.files[i].bytes;
    }
    free(l.files);
}

/* --- writing ---------------------------------------------------------------
 */

/* A reader sees all of a file or none: it gets its name when it is written. */
void jit_keep(const jit_form *f, int capability, int version, const void *image,
              size_t bytes, size_t most_bytes)
{
    head h;
    char name[LONGEST_NAME], temporary[LONGEST_NAME + 32];
    if (bytes == 0 || bytes > MOST_IMAGE)
        return;
    fill_head(&h, f, capability, version);
    name_file(&h, name);
    h.bytes = bytes;
    h.sum = jit_hash(image, bytes, 0);
    int folder = open_folder();
    if (folder < 0 && (folder_path[0] == '\0' || (folder = make_folder()) < 0))
        return;
    snprintf(temporary, sizeof temporary, "%.32s-%ld%s.tmp", name,
             (long)getpid(), END);
    unlinkat(folder, temporary, 0); /* of a process of the same number */
    int fd = openat(folder, temporary,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        int done = jit_write_fully(fd, &h, sizeof h) &&
                   jit_write_fully(fd, image, bytes);
        done = close(fd) == 0 && done;
        if (!done || renameat(folder, temporary, folder, name) != 0)
            unlinkat(folder, temporary, 0);
        remove_oldest(folder, most_bytes);
    }
    close(folder);
}
