/* Open files: all of a read or a write, and what has to be on the disk. */
#ifndef LUMAT_DESCRIPTOR_H
#define LUMAT_DESCRIPTOR_H

#include <stddef.h>
#include <sys/types.h>

/* Reads size bytes, or as many as there are, from offset on; their number, or
 * -1 with errno. */
ssize_t lumat_read_fully(int fd, void *bytes, size_t size, off_t offset);

/* Writes all of it: at a place, or with -1 where the file stands. Returns an
 * error number; where there is room for a part alone, that of the rest. */
int lumat_write_fully(int fd, const void *bytes, size_t length, off_t at);

/* Has it on the disk; an error number. Pipes, terminals and the folders of some
 * file systems need none of that. */
int lumat_sync(int fd);

/* The folder that the path is in, opened, or -1; and the same for that, which
 * makes a name last: a folder that may not be read is no error. */
int lumat_open_folder_of(const char *path);
int lumat_sync_folder(const char *path);

#endif
