/* Files that are replaced whole or not at all: written beside the target under
 * another name, synced, then renamed over it. */
#ifndef LUMAT_REPLACE_FILE_H
#define LUMAT_REPLACE_FILE_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

enum { LUMAT_ATOMIC_BUFFER = 65536 };

typedef struct lumat_atomic {
    int fd;                 /* -1: not open */
    size_t used;            /* bytes in the buffer */
    off_t written, started; /* bytes of the file; those on their way to disk */
    char target[PATH_MAX], temporary[PATH_MAX];
    char buffer[LUMAT_ATOMIC_BUFFER];
} lumat_atomic;

/* Each returns 0, or what errno said. open follows a symbolic link to its
 * target, and keeps the permission bits of a file that is there. After an
 * error only abort may follow; abort leaves the target as it was, and does
 * nothing when no file is open. */
int lumat_atomic_open(lumat_atomic *a, const char *path);
int lumat_atomic_write(lumat_atomic *a, const void *data, size_t length);
/* Writes over length bytes that were written before, from byte `at` on. */
int lumat_atomic_patch(lumat_atomic *a, off_t at, const void *data,
                       size_t length);
/* The bytes written so far. */
off_t lumat_atomic_size(const lumat_atomic *a);
int lumat_atomic_commit(lumat_atomic *a);
void lumat_atomic_abort(lumat_atomic *a);

#endif
