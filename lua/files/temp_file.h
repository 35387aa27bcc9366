/* Files that are written beside the one they are to become, and those that
 * processes left there which died meanwhile. */
#ifndef LUMAT_TEMP_FILE_H
#define LUMAT_TEMP_FILE_H

#include <limits.h>
#include <sys/types.h>

/* Creates a file in the folder that the first `length` bytes of path name, the
 * slash among them: none for the current one. It is locked as long as it is
 * open. Returns its descriptor and its name in out, or -1 with errno set. */
int lumat_create_temporary(char out[PATH_MAX], const char *path, size_t length,
                           mode_t mode);

/* Removes what dead processes left in the folder; once in a while, however
 * often it is asked to. */
void lumat_sweep_temporaries(const char *path, size_t length);

#endif
