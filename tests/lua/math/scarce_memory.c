/* Put before the C library (LD_PRELOAD), refuses memory and threads. A script
 * asks os.getenv for "REFUSE n once" or "REFUSE n forever": the n-th request
 * from then on is refused, or all from the n-th on; with "threads" behind it,
 * those for threads alone; for "REFUSE": none any more; and for "REFUSED":
 * whether any was. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t),
    *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
static long first, asked;
static int is_armed, is_forever, of_threads, was_refused;

static int refuse_any(void)
{
    if (!is_armed)
        return 0;
    long n = __sync_add_and_fetch(&asked, 1);
    if (is_forever ? n < first : n != first)
        return 0;
    was_refused = 1;
    errno = ENOMEM;
    return 1;
}

static int refuse(void)
{
    return !of_threads && refuse_any();
}

void *malloc(size_t n)
{
    return refuse() ? NULL : __libc_malloc(n);
}

void *calloc(size_t count, size_t size)
{
    return refuse() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t n)
{
    return n > 0 && refuse() ? NULL : __libc_realloc(old, n);
}

void *aligned_alloc(size_t step, size_t n)
{
    return refuse() ? NULL : __libc_memalign(step, n);
}

void *mmap(void *at, size_t n, int access, int flags, int file, off_t offset)
{
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "mmap");
    return refuse() ? MAP_FAILED : next(at, n, access, flags, file, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how,
                   void *(*function)(void *), void *argument)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                       void *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return refuse_any() ? EAGAIN : next(thread, how, function, argument);
}

char *getenv(const char *name)
{
    static char *(*next)(const char *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "getenv");
    if (strcmp(name, "REFUSED") == 0)
        return was_refused ? "yes" : NULL;
    if (strncmp(name, "REFUSE", 6) != 0)
        return next(name);
    is_armed = name[6] == ' ';
    if (!is_armed)
        return NULL;
    first = atol(name + 7);
    is_forever = strstr(name, "forever") != NULL;
    of_threads = strstr(name, "threads") != NULL;
    asked = was_refused = 0;
    return NULL;
}
