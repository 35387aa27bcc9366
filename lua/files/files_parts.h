/* What the files of this room share, and nobody else sees. */
#ifndef LUMAT_FILES_PARTS_H
#define LUMAT_FILES_PARTS_H

#include "files.h"
#include "gpu.h"

/* --- files that are replaced whole ---------------------------------------- */

/* Writes over length bytes that were written before, from byte `at` on. */
int lumat_atomic_patch(lumat_atomic *a, off_t at, const void *data,
                       size_t length);
/* The bytes written so far. */
off_t lumat_atomic_size(const lumat_atomic *a);

/* Pushes a file, not yet open, that the collector aborts. */
lumat_atomic *lumat_push_atomic(lua_State *L);

/* --- archives ------------------------------------------------------------- */
/* Zip files of named parts, written whole or not at all. A matrix is a part in
 * NumPy's format, so numpy.load opens an archive. */

typedef struct lumat_archive lumat_archive;

/* Each raises with `who` and the path in the message. Both push a userdata
 * that is closed with the scope or by the collector; an archive that was not
 * committed leaves the file of that name as it was. */
lumat_archive *lumat_archive_create(lua_State *L, const char *who,
                                    const char *path);
lumat_archive *lumat_archive_open(lua_State *L, const char *who,
                                  const char *path);

/* Parts are written in order, each in pieces. */
void lumat_archive_begin(lua_State *L, lumat_archive *a, const char *part);
/* The same of one that is packed. */
void lumat_archive_begin_packed(lua_State *L, lumat_archive *a,
                                const char *part);
void lumat_archive_write(lua_State *L, lumat_archive *a, const void *data,
                         size_t length);
void lumat_archive_end(lua_State *L, lumat_archive *a);
void lumat_archive_commit(lua_State *L, lumat_archive *a);

/* Pushes a list of the names of a read one's parts, in no order. */
void lumat_archive_names(lua_State *L, lumat_archive *a);
/* Starts reading a part and returns its length, which its bytes in the file
 * can give; read takes exactly length bytes; finish compares the checksum of
 * what was read. */
uint64_t lumat_archive_find(lua_State *L, lumat_archive *a, const char *part);
/* The same of text, which may be packed, but not into next to nothing. */
uint64_t lumat_archive_find_text(lua_State *L, lumat_archive *a,
                                 const char *part);
void lumat_archive_read(lua_State *L, lumat_archive *a, void *data,
                        size_t length);
void lumat_archive_finish(lua_State *L, lumat_archive *a);

/* Raises "who: 'path' format". */
void lumat_archive_fail(lua_State *L, const lumat_archive *a,
                        const char *format, ...);

void lumat_open_archive(lua_State *L);

#endif
