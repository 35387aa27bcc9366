/* Files: load and save, archives, saved sessions, the folder and names of
 * files. Whatever is written is there whole or not at all. */
#ifndef LUMAT_FILES_H
#define LUMAT_FILES_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>
#include "lauxlib.h"
#include "lua.h"

/* --- names of files ------------------------------------------------------- */

/* Pushes the path of a file that a user named: "~/name" is in his home. */
const char *lumat_push_path(lua_State *L, const char *path);

/* The endings of the files that load and save know, with blanks between. */
const char *lumat_data_endings(void);
/* Has the name one of those, or one of those with .gz behind it? */
int lumat_is_data_name(const char *name);

/* The string at arg, which becomes the file it names: "~/name" is in the
 * user's home. For whatever takes a path. */
const char *lumat_expand_path(lua_State *L, int arg);

void lumat_open_files(lua_State *L);          /* load save */
void lumat_open_working_folder(lua_State *L); /* cd pwd ls */
void lumat_open_parts(lua_State *L);          /* what saved sessions need */
void lumat_open_npy_parts(lua_State *L);      /* what pools need */
void lumat_open_texts(lua_State *L);          /* what tables and reports need */

/* --- files that are replaced whole ---------------------------------------- */
/* Written beside the target under another name, synced, then renamed over it.
 */

enum { LUMAT_ATOMIC_BUFFER = 65536 };

/* Where many processes run one script: the one that `writes` has the files, the
 * others are told what became of them. All call outcome at once, each with
 * what errno said to it, or 0; it returns what it said to the one that writes.
 */
typedef struct lumat_shared_files {
    int writes;
    int (*outcome)(int error);
} lumat_shared_files;
/* From now on; NULL, as at first: each process has files of its own. */
void lumat_share_files(const lumat_shared_files *ways);

typedef struct lumat_atomic {
    int fd;     /* -1: not open */
    int failed; /* of a shared file: what commit is to tell */
    const lumat_shared_files *shared; /* whom the outcome is owed, or NULL */
    size_t used;                      /* bytes in the buffer */
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
int lumat_atomic_commit(lumat_atomic *a);
void lumat_atomic_abort(lumat_atomic *a);

#endif
