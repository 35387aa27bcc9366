/* What load and save share. */
#ifndef LUMAT_LOAD_SAVE_H
#define LUMAT_LOAD_SAVE_H

#include "replace_file.h"
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

/* A regular file that is being read. */
typedef struct lumat_input {
    int fd;
    size_t size;
    const char *path;
    int began; /* of lumat_begin_file, until it is closed */
} lumat_input;

/* Pushes a userdata that is closed where the running function ends, or on
 * being popped; raises when the file cannot be read, or is empty. */
lumat_input *lumat_push_input(lua_State *L, const char *path);
/* Reads exactly so many bytes from a place on; raises when they are not there,
 * or when the user wants it to stop. */
void lumat_read_input(lua_State *L, const lumat_input *in, size_t at,
                      void *bytes, size_t length);
/* Pushes a userdata with all bytes of the file. */
char *lumat_push_input_text(lua_State *L, lumat_input *in);
/* Begins the progress of going through so many bytes. */
void lumat_begin_input(lumat_input *in, size_t bytes);
/* Gives back the memory of what lies between, which then reads as zeros. */
void lumat_forget_text(char *text, size_t first, size_t last);
void lumat_open_inputs(lua_State *L);

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

/* One file each. */
void lumat_open_files(lua_State *L);          /* load save */
void lumat_open_working_folder(lua_State *L); /* cd pwd ls */
void lumat_open_parts(lua_State *L);          /* what saved sessions need */
void lumat_open_texts(lua_State *L);          /* what tables and reports need */

#endif
