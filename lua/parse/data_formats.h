/* Formats of data that others write: readers of their bytes, pure, without Lua
 * and without memory of their own. They borrow the bytes, trust none of them,
 * and are all fuzzed. For lua/files. */
#ifndef LUMAT_DATA_FORMATS_H
#define LUMAT_DATA_FORMATS_H

#include <stddef.h>
#include <stdint.h>

/* Writes what is wrong, as printf, into so many bytes, and returns 0. */
int lumat_refuse_data(char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

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

/* --- images --------------------------------------------------------------- */
/* Samples as the file has them, from 0 to `most`: nothing is made of gamma or
 * colour profiles. */

typedef struct lumat_image {
    int64_t rows, cols;
    int channels; /* 1: grey, 2: and alpha, 3: red, green, blue, 4: and alpha */
    int most;     /* the largest sample: at most 65535 */
    int (*goes_on)(size_t samples); /* or NULL; called when so many more are
                                     * read; 0 stops with no message. Set by
                                     * the caller when the image is open */
} lumat_image;

/* The most samples that are made of a file of so many bytes. */
int lumat_image_is_modest(const lumat_image *image, size_t length);

/* PNG of every kind, interlaced ones, too; a transparent colour makes a channel
 * of alpha. Source: W3C, Portable Network Graphics, second edition, 2003. */
typedef struct lumat_png {
    lumat_image image;
    const unsigned char *bytes;
    size_t length, work; /* work: bytes that reading needs */
    int depth, colour, is_interlaced;
    int colours; /* of the palette */
    const unsigned char *palette, *alpha;
    size_t alphas; /* bytes there */
} lumat_png;

int lumat_png_is(const unsigned char *bytes, size_t length);
/* Goes through all chunks of the file and compares what is claimed with what is
 * there. Returns 1, or 0 with a message. */
int lumat_png_open(lumat_png *p, const void *bytes, size_t length, char *error,
                   size_t size);
/* Reads rows x cols x channels samples, and needs `work` bytes. Returns 1, or 0
 * with a message. */
int lumat_png_read(const lumat_png *p, uint16_t *samples, void *work,
                   char *error, size_t size);

/* PBM, PGM, PPM as text or bits. Source: the manual pages of Netpbm. */
typedef struct lumat_pnm {
    lumat_image image;
    const unsigned char *bytes;
    size_t length, data; /* where the samples start */
    int kind;            /* 1 to 6, as the file's first line has it */
} lumat_pnm;

int lumat_pnm_is(const unsigned char *bytes, size_t length);
int lumat_pnm_open(lumat_pnm *p, const void *bytes, size_t length, char *error,
                   size_t size);
int lumat_pnm_read(const lumat_pnm *p, uint16_t *samples, char *error,
                   size_t size);

/* JPEG by libjpeg, where the program was built with it; else open fails with
 * that message. Grey or red, green, blue. A damaged file is refused, also where
 * libjpeg would guess what is missing. */
int lumat_jpeg_is(const unsigned char *bytes, size_t length);
int lumat_jpeg_open(lumat_image *image, const void *bytes, size_t length,
                    char *error, size_t size);
int lumat_jpeg_read(const lumat_image *image, const void *bytes, size_t length,
                    uint16_t *samples, char *error, size_t size);

/* --- MAT files ------------------------------------------------------------ */
/* MATLAB's, of versions 4, 5 (6, 7) and 7.3, which is HDF5. Source: MATLAB,
 * MAT-File Format, R2023b; The HDF Group, HDF5 file format specification 3.0.
 */

typedef enum lumat_mat_class {
    LUMAT_MAT_CELL = 1,
    LUMAT_MAT_STRUCT,
    LUMAT_MAT_OBJECT,
    LUMAT_MAT_CHAR,
    LUMAT_MAT_SPARSE,
    LUMAT_MAT_DOUBLE,
    LUMAT_MAT_SINGLE,
    LUMAT_MAT_I8, /* i8 u8 i16 … u64 */
    LUMAT_MAT_U64 = 15,
    LUMAT_MAT_FUNCTION,
    LUMAT_MAT_OPAQUE
} lumat_mat_class;

/* Plain elements, as lumat_npy has their types. */
typedef struct lumat_elements {
    const unsigned char *bytes;
    int64_t count;
    char kind; /* 'i' 'u' 'f'; 'c': pairs; 0: there are none */
    int width; /* bytes of one */
    int swapped;
} lumat_elements;

enum { LUMAT_MAT_DIMENSIONS = 8, LUMAT_MAT_NAME = 256 };

typedef struct lumat_mat_array {
    int of; /* a lumat_mat_class */
    int is_complex, is_logical;
    int is_triplets; /* of version 4: rows, columns, values of a sparse one */
    int is_utf8;     /* of characters: real are bytes of letters */
    int ndim;
    int64_t sizes[LUMAT_MAT_DIMENSIONS]; /* the first runs fastest */
    int64_t count;                       /* their product */
    const char *name;                    /* no zero byte behind it */
    size_t name_length;
    lumat_elements real, imaginary;
    lumat_elements rows, starts; /* of a sparse one, from 0 */
    /* of a structure: names of so many bytes each, filled up with zeros */
    const char *fields;
    int field_length, field_count;
    /* of a structure or cells: the arrays in them, one behind the other */
    const unsigned char *inner;
    size_t inner_length;
} lumat_mat_array;

typedef struct lumat_mat {
    const unsigned char *bytes;
    size_t length;
    int version; /* 4, 5 or 7 */
    int swapped; /* of 5: the other byte order */
} lumat_mat;

int lumat_mat_is(const unsigned char *bytes, size_t length);
/* Which version is it? Returns 1, or 0 with a message. */
int lumat_mat_open(lumat_mat *m, const void *bytes, size_t length, char *error,
                   size_t size);

/* Of version 4 and 5: the part of the file at *at, which moves on behind it.
 * Returns 1, 0 at the end, or -1 with a message. A packed part is unpacked into
 * `unpacked` bytes by lumat_mat_unpack, and is an array then; goes_on, unless
 * NULL, is called now and then, and stops it by 0. */
typedef struct lumat_mat_part {
    const unsigned char *bytes; /* what an array is read from */
    size_t length;
    size_t unpacked; /* 0: it is not packed */
    int is_array;    /* or else nothing that is known */
} lumat_mat_part;
int lumat_mat_next(const lumat_mat *m, size_t *at, lumat_mat_part *part,
                   char *error, size_t size);
int lumat_mat_unpack(const lumat_mat_part *part, void *to,
                     int (*goes_on)(size_t bytes));

/* Reads the array of a part, or of what was unpacked. */
int lumat_mat_read(const lumat_mat *m, const void *bytes, size_t length,
                   lumat_mat_array *a, char *error, size_t size);
/* Goes on to the next array inside: from a's inner bytes, at *at. */
int lumat_mat_inner(const lumat_mat *m, const lumat_mat_array *a, size_t *at,
                    lumat_mat_array *out, char *error, size_t size);

/* --- HDF5 ------------------------------------------------------------------
 */
/* As much of it as MATLAB's version 7.3 and h5py write, of the older and the
 * newer structures: groups, datasets in one piece or in chunks, packed by
 * deflate, attributes. What is else is refused with words: types that stand
 * elsewhere, other filters, datasets made of other files'. */

enum { LUMAT_HDF_DIMENSIONS = 8, LUMAT_HDF_CLASS = 32, LUMAT_HDF_FILTERS = 4 };

typedef struct lumat_hdf {
    const unsigned char *bytes;
    size_t length;
    uint64_t base;                /* of all addresses */
    uint64_t root;                /* the address of the outermost group */
    int (*goes_on)(size_t bytes); /* or NULL; called when so many more are
                                   * read; 0 stops with no message. Set by the
                                   * caller when the file is open */
} lumat_hdf;

typedef enum lumat_hdf_layout {
    LUMAT_HDF_NOWHERE, /* nothing was ever written: all are zeros */
    LUMAT_HDF_COMPACT,
    LUMAT_HDF_ONE_PIECE,
    LUMAT_HDF_CHUNKS
} lumat_hdf_layout;

/* A group, or a dataset. */
typedef struct lumat_hdf_object {
    uint64_t address;
    int is_group;
    uint64_t tree, heap; /* of a group's symbol table; both 0: links */
    uint64_t link_tree, link_heap; /* of those that its header does not hold */
    uint64_t attribute_tree, attribute_heap;
    int ndim;
    int64_t sizes[LUMAT_HDF_DIMENSIONS]; /* the last runs fastest */
    int64_t most[LUMAT_HDF_DIMENSIONS];  /* that they may grow to; INT64_MAX:
                                            without end */
    int64_t count;
    char kind; /* as lumat_elements; 'r' references; 0: none of these */
    int width, swapped;
    lumat_hdf_layout layout;
    const unsigned char *compact;
    uint64_t place, stored; /* of one piece: its address and bytes; or of the
                               tree of chunks */
    int64_t chunk[LUMAT_HDF_DIMENSIONS];
    size_t chunk_bytes;
    int index;                 /* how chunks are found; 0: by the older tree */
    int is_edge_plain;         /* chunks that reach out of it are not packed */
    uint32_t mask;             /* of one chunk alone: filters not applied */
    const unsigned char *fill; /* an element that was never written; NULL: 0 */
    size_t fill_bytes;
    int filters, filter[LUMAT_HDF_FILTERS];
    /* attributes of MATLAB's */
    char matlab_class[LUMAT_HDF_CLASS]; /* "" where there is none */
    int is_empty;                       /* the elements are sizes */
    int is_sparse;                      /* of a group: with so many rows */
    int64_t sparse_rows;
    int is_octave; /* a group that Octave wrote, with elements as MATLAB's */
} lumat_hdf_object;

/* Finds the start and the outermost group. Returns 1, or 0 with a message, as
 * all of these do. */
int lumat_hdf_open(lumat_hdf *h, const void *bytes, size_t length, char *error,
                   size_t size);
int lumat_hdf_read_object(const lumat_hdf *h, uint64_t address,
                          lumat_hdf_object *o, char *error, size_t size);
/* Calls each for the links of a group until it returns 0; the name has no zero
 * byte behind it. */
typedef int lumat_hdf_link_fn(void *data, const char *name, size_t length,
                              uint64_t address);
int lumat_hdf_each_link(const lumat_hdf *h, const lumat_hdf_object *o,
                        lumat_hdf_link_fn *each, void *data, char *error,
                        size_t size);
/* Can the file have so many elements? Else there is a message. */
int lumat_hdf_check(const lumat_hdf *h, const lumat_hdf_object *o, char *error,
                    size_t size);
/* Reads count elements of `width` bytes, and needs 2 chunk_bytes of work. */
int lumat_hdf_read(const lumat_hdf *h, const lumat_hdf_object *o, void *to,
                   void *work, char *error, size_t size);

#endif
