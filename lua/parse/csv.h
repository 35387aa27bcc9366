/* Tables of numbers as text, read and written: pure, without Lua. The reader
 * borrows the text; nothing here allocates. */
#ifndef LUMAT_CSV_H
#define LUMAT_CSV_H

#include <stddef.h>
#include <stdint.h>

enum lumat_csv_header { LUMAT_HEADER_AUTO, LUMAT_HEADER_NO, LUMAT_HEADER_YES };

enum { LUMAT_MOST_NAMES = 1 << 21 };

typedef struct lumat_csv {
    /* set by the caller */
    const char *text;
    size_t length;
    char delimiter; /* 0: look for one; ' ': runs of blanks */
    enum lumat_csv_header header;
    int (*goes_on)(size_t bytes); /* or NULL; called when so many more are
                                   * read; 0 stops with no message */
    /* set by lumat_csv_open */
    int64_t cols;
    int64_t rows; /* unless some have too few cells; rows * cols <= length +
                   * cols */
    size_t names; /* where the line of names starts */
    size_t data;  /* where the rows start */
    int64_t line; /* the number of the line there, from 1 */
    int has_names;
} lumat_csv;

/* Finds delimiter, names, columns and rows. The first line is one of names,
 * unless told, when none of its cells is a number. Returns 1, or 0 with a
 * message, which starts with a line, "17: column 2: …", where one is known. */
int lumat_csv_open(lumat_csv *c, char *error, size_t size);

/* Where reading goes on: at a cell of a line. Begins as {data, line, 0}; what
 * is before `at` is not looked at again. */
typedef struct lumat_csv_place {
    size_t at;
    int64_t line, col;
} lumat_csv_place;

/* Reads at most so many cells, row after row, into floats or doubles (the
 * other NULL). Empty cells are NaN. Returns how many, 0 behind the last one,
 * or -1 with a message that starts with the line. */
int64_t lumat_csv_read(const lumat_csv *c, lumat_csv_place *place, int64_t most,
                       float *singles, double *doubles, char *error,
                       size_t size);

/* Steps through the names: *at starts at c->names. text gets the raw name,
 * in which quotes are still doubled. Returns 0 after the last. */
int lumat_csv_name(const lumat_csv *c, size_t *at, const char **text,
                   size_t *length);

/* Must a name be written in quotes? */
int lumat_csv_needs_quotes(const char *name, size_t length, char delimiter);

#endif
