/* Tables of numbers as text, read and written: pure, without Lua. The reader
 * borrows the text; nothing here allocates. */
#ifndef LUMAT_CSV_H
#define LUMAT_CSV_H

#include <stddef.h>
#include <stdint.h>

enum lumat_csv_header { LUMAT_HEADER_AUTO, LUMAT_HEADER_NO, LUMAT_HEADER_YES };

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
    int64_t most_rows; /* most_rows * cols <= length + cols */
    size_t names;      /* where the line of names starts */
    size_t data;       /* where the rows start */
    int64_t line;      /* the number of the line there, from 1 */
    int has_names;
} lumat_csv;

/* Finds delimiter, names, columns and an upper bound for the rows. The first
 * line is one of names, unless told, when none of its cells is a number.
 * Returns 1, or 0 with a message. */
int lumat_csv_open(lumat_csv *c, char *error, size_t size);

/* Reads the rows into most_rows * cols floats or doubles (the other NULL).
 * Empty cells are NaN. Returns the rows, or -1 with a message that starts
 * with the line: "17: column 2: …". */
int64_t lumat_csv_read(const lumat_csv *c, float *singles, double *doubles,
                       char *error, size_t size);

/* Steps through the names: *at starts at c->names. text gets the raw name,
 * in which quotes are still doubled. Returns 0 after the last. */
int lumat_csv_name(const lumat_csv *c, size_t *at, const char **text,
                   size_t *length);

/* Must a name be written in quotes? */
int lumat_csv_needs_quotes(const char *name, size_t length, char delimiter);

#endif
