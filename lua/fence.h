/* --safe: what the process itself may do, whatever a script gets it to do.
 *
 * Two fences of the kernel's (Landlock and seccomp; the process cannot take
 * them down). The first stands before any thread is there, and leaves the
 * driver of the GPU what it needs to start. The second stands on the main
 * thread, on which scripts run, before the first line of one: files are those
 * of the folders that were given, and the libraries', read-only; there are no
 * sockets, no /proc and no /dev. Scripts open files on that thread alone.
 *
 * Beside them one question about paths, for messages that say what is wrong,
 * and for --safe-language, which has no fences. */
#ifndef LUMAT_FENCE_H
#define LUMAT_FENCE_H

#include "lumat.h"
#include <sys/types.h>

/* Reads the folders and raises the first fence. Returns 0, or -1 after writing
 * into why (of size bytes) what is missing. */
int lumat_raise_fence(const lumat_options *options, char *why, size_t size);
/* Raises the second one; nothing where there is no first one. */
int lumat_close_fence(char *why, size_t size);

/* Is it --safe or --safe-language? */
int lumat_is_safe(void);

/* Whether the file may be opened, to be written or not. Says so of any without
 * --safe. A name that has no file yet counts by its folder, and each symbolic
 * link by what it leads to. */
int lumat_may_open(const char *path, int writing);
/* open(2) of what may be opened, else -1 with EACCES. */
int lumat_open_path(const char *path, int flags, mode_t mode);
/* strerror, but for what --safe refuses. */
const char *lumat_error_text(int error);
/* Raises "name: --safe …" when it may not. */
void lumat_check_fence(lua_State *L, const char *name, const char *path,
                       int writing);

#endif
