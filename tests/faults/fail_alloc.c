/* Goes before the C library (LD_PRELOAD) and lets an allocation fail, or a
 * thread not start.
 *
 * FAIL_AT=n: the n-th one since they are counted; with FAIL_FOREVER=1 all from
 * that one on. The program under test says when, by asking for variables of the
 * environment: os.getenv "FAIL_BEGIN" begins, "FAIL_END" ends, "FAIL_COUNT" is
 * how many there were, "FAIL_DONE" is there if one has failed.
 *
 * FAIL_FILE=path, FAIL_RANK=r, FAIL_LEAST=bytes: in the process of a pool that
 * has that rank, from 0, while there is a file: it has n and what tells it from
 * the file before, as "3 17". The n-th allocation of so many bytes or more
 * fails, and takes the file away; with FAIL_TIMES=t so do those after it until
 * t have failed: Lua tries twice. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OURS __attribute__((visibility("default")))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static struct {
    atomic_int is_on;
    atomic_long count;
    long at;
    int forever, done;
} faults;

static struct {
    const char *path; /* NULL: it is not this process */
    size_t least;
    long times;
    char seen[32];
    atomic_long count;
} of_rank;

/* The rank of this process: as a launcher of MPI says, or the command line of
 * those that the prompt started; -1: it is none of a pool. */
static long own_rank(void)
{
    static char words[4096];
    char *said = secure_getenv("OMPI_COMM_WORLD_RANK");
    if (said)
        return atol(said);
    int file = open("/proc/self/cmdline", O_RDONLY);
    ssize_t n = read(file, words, sizeof words - 1);
    close(file);
    for (char *at = words; at < words + n; at += strlen(at) + 1)
        if (strcmp(at, "--pool-process") == 0) {
            at += strlen(at) + 1;             /* the socket */
            return atol(at + strlen(at) + 1); /* the rank */
        }
    return -1;
}

__attribute__((constructor)) static void begin_of_rank(void)
{
    const char *path = secure_getenv("FAIL_FILE");
    const char *rank = secure_getenv("FAIL_RANK");
    const char *least = secure_getenv("FAIL_LEAST");
    if (!path || !rank || !least || atol(rank) != own_rank())
        return;
    const char *times = secure_getenv("FAIL_TIMES");
    of_rank.least = (size_t)atol(least);
    of_rank.times = times ? atol(times) : 1;
    of_rank.path = path;
}

static int fails_by_file(size_t size)
{
    char said[32] = {0};
    int before = errno;
    if (!of_rank.path || size < of_rank.least)
        return 0;
    int file = open(of_rank.path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? 0 : read(file, said, sizeof said - 1);
    if (file >= 0)
        close(file);
    errno = before;
    if (n <= 0)
        return 0;
    if (strcmp(said, of_rank.seen) != 0) {
        memcpy(of_rank.seen, said, sizeof said);
        of_rank.count = 0;
    }
    long failed = ++of_rank.count - atol(said) + 1;
    if (failed < 1)
        return 0;
    if (failed >= of_rank.times)
        unlink(of_rank.path);
    errno = ENOMEM;
    return 1;
}

/* Counts; whether this one fails. */
static int fails(int error, size_t size)
{
    if (fails_by_file(size))
        return 1;
    if (!faults.is_on)
        return 0;
    long n = ++faults.count;
    if (faults.at == 0 || n < faults.at || (n > faults.at && !faults.forever))
        return 0;
    faults.done = 1;
    errno = error;
    return 1;
}

OURS void *malloc(size_t size)
{
    return fails(ENOMEM, size) ? NULL : __libc_malloc(size);
}

OURS void *calloc(size_t count, size_t size)
{
    return fails(ENOMEM, count * size) ? NULL : __libc_calloc(count, size);
}

/* What frees does not fail. */
OURS void *realloc(void *old, size_t size)
{
    if (size > 0 && fails(ENOMEM, size))
        return NULL;
    return __libc_realloc(old, size);
}

OURS void *memalign(size_t alignment, size_t size)
{
    return fails(ENOMEM, size) ? NULL : __libc_memalign(alignment, size);
}

OURS void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

OURS int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *data = memalign(alignment, size);
    if (!data)
        return ENOMEM;
    *out = data;
    return 0;
}

/* The function that this one stands before; finding it must not be counted. */
static void *original(const char *name)
{
    int was_on = atomic_exchange(&faults.is_on, 0);
    void *function = dlsym(RTLD_NEXT, name);
    faults.is_on = was_on;
    return function;
}

OURS void *mmap(void *at, size_t size, int access, int flags, int file,
                off_t offset)
{
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (!next)
        *(void **)&next = original("mmap");
    return fails(ENOMEM, size) ? MAP_FAILED
                               : next(at, size, access, flags, file, offset);
}

OURS int pthread_create(pthread_t *out, const pthread_attr_t *attributes,
                        void *(*run)(void *), void *data)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                       void *);
    if (!next)
        *(void **)&next = original("pthread_create");
    return fails(EAGAIN, 0) ? EAGAIN : next(out, attributes, run, data);
}

static char *ask(const char *name)
{
    static char *(*next)(const char *);
    if (!next)
        *(void **)&next = original("getenv");
    return next(name);
}

OURS char *getenv(const char *name)
{
    static char text[32];
    if (strncmp(name, "FAIL_", 5) != 0)
        return ask(name);
    if (strcmp(name, "FAIL_BEGIN") == 0) {
        char *at = ask("FAIL_AT");
        faults.at = at ? atol(at) : 0;
        faults.forever = ask("FAIL_FOREVER") != NULL;
        faults.count = 0;
        faults.is_on = 1;
    } else if (strcmp(name, "FAIL_END") == 0) {
        faults.is_on = 0;
    } else if (strcmp(name, "FAIL_COUNT") == 0) {
        snprintf(text, sizeof text, "%ld", (long)faults.count);
        return text;
    } else if (strcmp(name, "FAIL_DONE") == 0) {
        return faults.done ? text : NULL;
    }
    return NULL;
}
