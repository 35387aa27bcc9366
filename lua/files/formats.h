/* What the formats of files share: bytes that are read and written, matrices
 * that are filled piece by piece, and the one table of formats, by which load
 * and save choose. For the files of this room alone.
 *
 * No file is trusted: what its header claims is compared with the bytes that
 * are there before anything is made room for. */
#ifndef LUMAT_FORMATS_H
#define LUMAT_FORMATS_H

#include "files_parts.h"
#include "function.h"
#include "parse.h"

/* --- files that are read -------------------------------------------------- */

enum { LUMAT_HEAD = 512, LUMAT_MESSAGE = 256 };

/* A regular file, open as long as the running function, and the first of its
 * bytes: those that are packed in it, where it is one of gzip's. */
typedef struct lumat_input {
    int fd;
    size_t size;      /* bytes in the file */
    const char *path; /* as long as load runs */
    int began;        /* of its progress */
    int is_packed;    /* gzip's */
    size_t head_length;
    unsigned char head[LUMAT_HEAD];
} lumat_input;

/* Pushes it; raises when the file cannot be read, or is empty. A lasting one is
 * open until the collector closes it. */
lumat_input *lumat_push_lasting_input(lua_State *L, const char *path);
lumat_input *lumat_push_input(lua_State *L, const char *path);
/* Reads exactly so many bytes of the file from a place on; raises when they
 * are not there, or when the user wants it to stop. */
void lumat_read_input(lua_State *L, const lumat_input *in, size_t at,
                      void *bytes, size_t length);
/* Begins the progress of going through so many bytes. */
void lumat_begin_input(lumat_input *in, size_t bytes);
/* Counts bytes; 0 when the user wants it to stop. */
int lumat_input_goes_on(size_t bytes);
/* Pushes a userdata with all of the file's bytes, unpacked. */
char *lumat_push_input_text(lua_State *L, lumat_input *in, size_t *length);
/* Raises "load: 'path' format". */
int lumat_refuse_input(lua_State *L, const lumat_input *in, const char *format,
                       ...) __attribute__((format(printf, 3, 4)));

/* Bytes one after the other: of a file, of a part of an archive or of memory.
 */
typedef struct lumat_source {
    uint64_t left;         /* how many there are yet */
    const lumat_input *in; /* a file's, or that of the memory, */
    size_t at;             /* from here on; */
    const char *memory;    /* NULL: of the file */
    /* In a file or in memory: behind each run of so many bytes as many as the
     * gap has are passed; 0: there are no gaps. */
    size_t run, gap, in_run; /* in_run: left of the one at hand */
    lumat_archive *archive;
    const char *part; /* of an archive, for messages */
} lumat_source;

void lumat_take_bytes(lua_State *L, lumat_source *s, void *to, size_t length);
/* Raises "load: 'path' format", with the part's name. */
int lumat_refuse_source(lua_State *L, const lumat_source *s, const char *format,
                        ...) __attribute__((format(printf, 3, 4)));

/* --- results ---------------------------------------------------------------
 */

/* A matrix that is filled from elements in host memory, in row-major order, so
 * that beside it there is little. */
enum { LUMAT_PIECE = 1 << 19 }; /* elements */

typedef struct lumat_result {
    gpu_matrix *all, *flat, *piece;
    int64_t done;
} lumat_result;

/* Creates it on the device that the options at 2 name, and leaves it on the
 * stack's top. */
lumat_result lumat_push_result(lua_State *L, gpu_dtype dtype, int ndim,
                               int64_t rows, int64_t cols);
void lumat_add_to_result(lua_State *L, lumat_result *r, const void *host,
                         int64_t count);
/* Pushes room for the elements of one piece of so many. */
void *lumat_push_room(lua_State *L, int64_t count, size_t size);
/* Fills r with what is left of it from elements of n's type, in the file's
 * order; pushes what it needs. exact: see lumat_npy_read. */
void lumat_read_elements(lua_State *L, lumat_source *s, const lumat_npy *n,
                         int exact, lumat_result *r);
/* Pushes what n's elements, all that is left of s, are as a value: a matrix, of
 * three dimensions a list of them, of texts a list of strings. dtype:
 * GPU_ALL_DTYPES takes the one that holds them. */
void lumat_push_elements(lua_State *L, lumat_source *s, const lumat_npy *n,
                         gpu_dtype dtype);
/* Leaves of n's elements, all that is left of s, those from one place of the
 * first dimension to another, from 1: rows, elements of a vector, matrices of
 * a list. Those behind the end are not there; raises where `first` is. */
void lumat_choose_rows(lua_State *L, lumat_source *s, lumat_npy *n,
                       int64_t first, int64_t last);
/* The option `rows` of the table at 2: {first, last}, both from 1; raises where
 * it is none. Without it 1 and INT64_MAX. */
void lumat_option_range(lua_State *L, int64_t *first, int64_t *last);
/* Raises where a list would have far more matrices than they have elements:
 * each takes its memory. */
void lumat_check_page_count(lua_State *L, const lumat_input *in, int64_t pages,
                            int64_t elements);
/* Reads the header of an array in NumPy's format; 0: there is a message. */
int lumat_try_npy_header(lua_State *L, lumat_source *s, lumat_npy *n,
                         char message[LUMAT_MESSAGE]);

/* Pushes m's transpose in its place, as a view: what lies column by column. */
void lumat_turn_result(lua_State *L, gpu_matrix *m);

/* --- files that are written ------------------------------------------------
 */

typedef struct lumat_target lumat_target;

/* Pushes a file that is closed, and gone, where the running function ends
 * before it was finished. What is put into it is packed where its name ends in
 * .gz. bytes: about as many, for its progress. */
lumat_target *lumat_push_target(lua_State *L, const char *path, size_t bytes);
void lumat_put_bytes(lua_State *L, lumat_target *t, const void *data,
                     size_t length);
void lumat_finish_target(lua_State *L, lumat_target *t);

/* Calls each for m's elements in row-major order: several rows at a time, or
 * parts of one, from column `first` on. bytes is NULL in a dry run. */
typedef void lumat_block_fn(lua_State *L, void *data, const void *bytes,
                            int64_t first, int64_t rows, int64_t cols);
void lumat_each_block(lua_State *L, const gpu_matrix *m, lumat_block_fn *each,
                      void *data);

/* Where the elements of arrays are written: to a file, or to the part of an
 * archive that was begun. */
typedef struct lumat_npy_writer {
    lumat_target *target;
    lumat_archive *archive;
    size_t element; /* its own */
} lumat_npy_writer;

/* For lumat_each_block, with a lumat_npy_writer as data: the bytes alone. */
lumat_block_fn lumat_put_elements;
void lumat_write_npy(lua_State *L, lumat_npy_writer *w, const gpu_matrix *m);
/* Of the list at index, matrices of one shape and type: raises when it is
 * none, else gives their bytes; writes them as one array. */
int64_t lumat_check_pages(lua_State *L, int index);
void lumat_write_pages(lua_State *L, lumat_npy_writer *w, int index);
/* Raises for a frame, a factorisation and the like, which are no lists. */
void lumat_refuse_object(lua_State *L, int index);

/* --- formats ---------------------------------------------------------------
 */

/* How one kind of file is read and written.
 *
 * load: with the path at 1, the options (or nil) at 2, pushes the results and
 * returns how many. save: with the value at 1, the path at 2, the options (or
 * nil) at 3. Names of options that it takes beside dtype and device stand in
 * `reads` and `writes`, with blanks between them. */
enum { LUMAT_HOLDS_SPARSE = 1, LUMAT_HOLDS_TABLES = 2, LUMAT_HOLDS_FRAMES = 4 };
typedef struct lumat_format {
    const char *name;    /* "a .npy file" */
    const char *about;   /* what is in it, and what that becomes */
    const char *endings; /* ".mat .MAT", with blanks between; "": none */
    int (*is)(const unsigned char *head, size_t length); /* NULL: not told by
                                                            its first bytes */
    int is_weak; /* those may be a text's: a name that says more counts */
    int (*load)(lua_State *L, lumat_input *in, const struct lumat_format *f);
    void (*save)(lua_State *L, const char *path, const struct lumat_format *f);
    int holds; /* what it takes beside a matrix: one of LUMAT_HOLDS_… */
    const char *reads, *writes;
    /* As load, for load_blocks: with the path at 1, the options (or nil) at 2,
     * and `in` on top, as lumat_push_lasting_input leaves it, returns the
     * values that Lua's `for` takes; each block has so many rows at most. NULL:
     * it is not read in blocks. block_reads: options, as in `reads`. */
    int (*blocks)(lua_State *L, lumat_input *in, const struct lumat_format *f,
                  int64_t rows);
    const char *block_reads;
    char delimiter, writes_delimiter; /* of text; 0: looks for one */
} lumat_format;

int lumat_load_csv(lua_State *L, lumat_input *in, const lumat_format *f);
int lumat_csv_blocks(lua_State *L, lumat_input *in, const lumat_format *f,
                     int64_t rows);
void lumat_save_csv(lua_State *L, const char *path, const lumat_format *f);
int lumat_load_npy(lua_State *L, lumat_input *in, const lumat_format *f);
int lumat_npy_blocks(lua_State *L, lumat_input *in, const lumat_format *f,
                     int64_t rows);
void lumat_save_npy(lua_State *L, const char *path, const lumat_format *f);
int lumat_load_npz(lua_State *L, lumat_input *in, const lumat_format *f);
void lumat_save_npz(lua_State *L, const char *path, const lumat_format *f);

/* Do the path's last n bytes, and not all of them, match the ending, in any
 * case of letters? */
int lumat_has_ending(const char *path, const char *ending, size_t n);
int lumat_load_market(lua_State *L, lumat_input *in, const lumat_format *f);
void lumat_save_market(lua_State *L, const char *path, const lumat_format *f);
int lumat_load_raw(lua_State *L, lumat_input *in, const lumat_format *f);
void lumat_save_raw(lua_State *L, const char *path, const lumat_format *f);
int lumat_load_png(lua_State *L, lumat_input *in, const lumat_format *f);
void lumat_save_png(lua_State *L, const char *path, const lumat_format *f);
int lumat_load_pnm(lua_State *L, lumat_input *in, const lumat_format *f);
void lumat_save_pnm(lua_State *L, const char *path, const lumat_format *f);
int lumat_load_jpeg(lua_State *L, lumat_input *in, const lumat_format *f);
int lumat_load_mat(lua_State *L, lumat_input *in, const lumat_format *f);
void lumat_save_mat(lua_State *L, const char *path, const lumat_format *f);
int lumat_load_hdf(lua_State *L, lumat_input *in, const lumat_format *f);

/* Is the named value wanted, by the option `names` of the table at 2? Without
 * that option all are. A value that is wanted has been met, and is counted. */
int lumat_wants(lua_State *L, const char *name);
/* Raises "load: 'path' has no …" unless each of the names was met. */
void lumat_check_wanted(lua_State *L, const lumat_input *in, int values);
/* Pushes a sorted list of the names in the table at index, which are strings:
 * so equal tables give equal files. */
void lumat_push_sorted_names(lua_State *L, int index);
/* Has the value at arg, a table or nil, that option? */
int lumat_has_option(lua_State *L, int arg, const char *name);
/* The option `digits` of the table at arg; 0: it is not there. */
int lumat_option_digits(lua_State *L, int arg);
/* Raises what is wrong with a path that load cannot read. */
int lumat_refuse_file(lua_State *L, const char *path);

void lumat_open_streams(lua_State *L);
void lumat_open_images(lua_State *L);

#endif
