/* --safe: what the process itself may do, whatever a script gets it to do; and
 * how files are opened, read and written.
 *
 * Two fences of the kernel's (Landlock and seccomp; the process cannot take
 * them down). The first stands before any thread is there, and leaves the
 * driver of the GPU what it needs to start. The second stands on the main
 * thread, on which scripts run, before the first line of one: files are those
 * of the folders that were given, and the libraries', read-only; there are no
 * sockets, no /proc and no /dev. Scripts open files on that thread alone.
 *
 * Beside them whatever opens a file by a name asks here first, for messages
 * that say what is wrong, and for --safe-language, which has no fences. */
#ifndef LUMAT_FENCE_H
#define LUMAT_FENCE_H

#include "lua.h"
#include "value.h"
#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

/* --- the fences ----------------------------------------------------------- */

/* Reads the folders and raises the first fence. Returns 0, or -1 after writing
 * into why (of size bytes) what is missing. */
int lumat_raise_fence(const lumat_options *options, char *why, size_t size);
/* Raises the second one; nothing where there is no first one. */
int lumat_close_fence(char *why, size_t size);
/* Is it --safe or --safe-language? */
int lumat_is_safe(void);

/* --- opening files -------------------------------------------------------- */

/* Whether the file may be opened, to be written or not. Says so of any without
 * --safe, unless writing is forbidden. A name that has no file yet counts by
 * its folder, and each symbolic link by what it leads to. */
int lumat_may_open(const char *path, int writing);
/* Raises "name: --safe …" when it may not. */
void lumat_check_fence(lua_State *L, const char *name, const char *path,
                       int writing);
/* While it is on, no file may be written: in a dry run. */
void lumat_forbid_writing(int on);
/* Is it what the system tells of its processors and memory? */
int lumat_is_system_path(const char *path);

/* For files that nobody named, or that have to have an end. fd, opened to be
 * read with O_NONBLOCK, which is cleared, if it is a regular file, whose size
 * it gives unless NULL; else it is closed, and -1 with LUMAT_IRREGULAR: a pipe
 * would be waited for, and a device goes on for ever. The null device counts as
 * an empty file. Of -1 it makes -1. */
enum { LUMAT_IRREGULAR = ENOSTR };
int lumat_take_regular(int fd, size_t *size);
/* open(2) of what may be opened, else -1 with EACCES. */
int lumat_open_path(const char *path, int flags, mode_t mode);
/* The same for reading, and of regular files alone: see lumat_take_regular. */
int lumat_open_regular(const char *path, size_t *size);
/* unlink(2) of what may be written. */
void lumat_unlink_path(const char *path);
/* strerror, but for what --safe refuses, folders and irregular files. */
const char *lumat_error_text(int error);

/* --- open files -----------------------------------------------------------
 * All of a read or a write, and what has to be on the disk. Signals that come
 * meanwhile are no errors; an error number is errno's, 0 for none. */

/* Reads size bytes, or as many as there are, from offset on; their number, or
 * -1 with errno. */
ssize_t lumat_read_fully(int fd, void *bytes, size_t size, off_t offset);

/* Writes all of it: at a place, or with -1 where the file stands. Returns an
 * error number; where there is room for a part alone, that is written, and the
 * number is that of the rest. */
int lumat_write_fully(int fd, const void *bytes, size_t length, off_t at);

/* Has it on the disk; an error number. Pipes, terminals and the folders of some
 * file systems need none of that. */
int lumat_sync(int fd);

/* The folder that the path is in, opened to be read and closed by the caller;
 * or -1 with errno, EACCES also where --safe keeps it out. */
int lumat_open_folder_of(const char *path);
/* Has that folder on the disk, which makes a name in it last; an error number.
 * A folder that may not be read is no error. */
int lumat_sync_folder(const char *path);

#endif
