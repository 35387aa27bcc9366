/* What load and save share. */
#ifndef LUMAT_FILES_H
#define LUMAT_FILES_H

#include "atomic.h"
#include "lauxlib.h"
#include "lua.h"

typedef enum lumat_file_kind { LUMAT_FILE_CSV, LUMAT_FILE_NPY } lumat_file_kind;

/* The path at arg, checked, and what its suffix says: the kind and, for
 * text, the delimiter that goes with it (0: none does). */
const char *lumat_check_path(lua_State *L, int arg, const char *who,
                             lumat_file_kind *kind, char *delimiter);

#define LUMAT_DATA_KINDS ".csv .tsv .txt .npy"
/* Has the name one of the endings of those? */
int lumat_is_data_name(const char *name);
/* Raises what is wrong with a path that load cannot read: there is no such
 * file, and what there is in its place; or another program's kind of file. */
int lumat_refuse_file(lua_State *L, const char *path);

/* The string at arg, which becomes the file it names: "~/name" is in the
 * user's home. For whatever takes a path. */
const char *lumat_expand_path(lua_State *L, int arg);

/* The option delimiter of the table at arg: one character; else otherwise. */
char lumat_option_delimiter(lua_State *L, int arg, char otherwise);

/* Pushes a userdata with all bytes of the file, at least one; raises when it
 * cannot be read, or is interrupted. */
char *lumat_push_file(lua_State *L, const char *path, size_t *size);

/* Begins "load name.csv" or "save …" for whoever watches the progress of so
 * many bytes, if any; ended with the same value, before anything raises.
 * goes_on counts bytes, and returns 0 when the user wants it to stop. */
int lumat_begin_file(const char *what, const char *path, size_t bytes);
void lumat_end_file(int began);
int lumat_file_goes_on(size_t bytes);

int lumat_file_save(lua_State *L); /* save(A, path [, options]) */
/* Pushes a file, not yet open, that the collector aborts. */
lumat_atomic *lumat_push_atomic(lua_State *L);
void lumat_open_atomic(lua_State *L);

#endif
