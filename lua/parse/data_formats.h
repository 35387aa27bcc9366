/* Formats of data that others write: readers of their bytes, pure, without Lua
 * and without memory of their own. They borrow the bytes, trust none of them,
 * and are all fuzzed. For lua/files. */
#ifndef LUMAT_DATA_FORMATS_H
#define LUMAT_DATA_FORMATS_H

#include <stddef.h>
#include <stdint.h>

/* --- Matrix Market -------------------------------------------------------- */
/* Text: a line that says what follows, comments, sizes, and then entries with
 * their places, or all elements column after column. Source: Boisvert, Pozo,
 * Remington, The Matrix Market exchange formats, NIST, 1996. */

typedef enum lumat_mtx_symmetry {
    LUMAT_MTX_GENERAL,
    LUMAT_MTX_SYMMETRIC,
    LUMAT_MTX_SKEW,
    LUMAT_MTX_HERMITIAN
} lumat_mtx_symmetry;

typedef struct lumat_mtx {
    /* set by the caller */
    const char *text;
    size_t length;
    int (*goes_on)(size_t bytes); /* or NULL; called when so many more are
                                   * read; 0 stops with no message */
    /* set by lumat_mtx_open */
    int is_array; /* all elements, not entries with places */
    int is_vector, is_pattern, is_complex, is_integer;
    lumat_mtx_symmetry symmetry;
    int64_t rows, cols; /* of a vector cols = 1 */
    int64_t count;      /* entries in the file; as many fit its bytes */
    size_t data;        /* where they start */
    int64_t line;       /* the number of the line there, from 1 */
} lumat_mtx;

/* Does text begin as one of these files does? */
int lumat_mtx_is(const char *text, size_t length);
/* Reads up to the sizes. Returns 1, or 0 with a message, which begins with the
 * number of a line. */
int lumat_mtx_open(lumat_mtx *m, char *error, size_t size);

/* Where reading goes on; begins as {.at = data, .line = line}. */
typedef struct lumat_mtx_place {
    size_t at;
    int64_t line, done; /* entries */
    int64_t row, col;   /* of an array: the next element's */
} lumat_mtx_place;

/* An entry: its place, from 0, and its value; of a pattern 1. */
typedef struct lumat_mtx_entry {
    int64_t row, col;
    double re, im;
} lumat_mtx_entry;

/* Reads at most so many entries. Of a symmetric matrix those that the file has,
 * in one of its triangles. Returns how many, 0 behind the last one, or -1 with
 * a message. */
int64_t lumat_mtx_read(const lumat_mtx *m, lumat_mtx_place *place, int64_t most,
                       lumat_mtx_entry *entries, char *error, size_t size);

#endif
