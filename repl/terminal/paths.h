/* Where a user's own files are (XDG Base Directory Specification). */
#ifndef PATHS_H
#define PATHS_H

#include <stddef.h>

/* Writes variable's folder, or else $HOME and fallback, with "/lumat" and
 * "/name" behind it. Returns 0 when neither variable holds an absolute path,
 * or the room is too small. */
int repl_user_path(char *path, size_t room, const char *variable,
                   const char *fallback, const char *name);

/* Makes the folders that lead to path, for the user alone. Returns 0, or -1
 * with errno set. */
int repl_make_folders(char *path);

#endif
