/* Open files: all of a read or a write, and what has to be on the disk. Signals
 * that come meanwhile are no errors; an error number is errno's, 0 for none. */
#ifndef LUMAT_DESCRIPTOR_H
#define LUMAT_DESCRIPTOR_H

#include <stddef.h>
#include <sys/types.h>

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
