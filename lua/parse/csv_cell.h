/* Lines and cells, for csv.c and csv_read.c. p .. end is what is left of the
 * text; nothing reads at or past end. */
#ifndef LUMAT_CSV_CELL_H
#define LUMAT_CSV_CELL_H

#include "csv.h"

#define LUMAT_BLANKS ' ' /* the delimiter that means runs of blanks */

typedef struct lumat_cell {
    const char *start;
    size_t length;
    int is_open; /* its quote does not end */
} lumat_cell;

/* The smallest steps are inline: they run for every number. */

static inline int lumat_csv_ends_line(const char *p, const char *end)
{
    return p == end || *p == '\n' ||
           (*p == '\r' && (p + 1 == end || p[1] == '\n'));
}

/* p ends a line; the start of the next one. */
static inline const char *lumat_csv_next_line(const char *p, const char *end)
{
    if (p < end && *p == '\r')
        p++;
    return p < end ? p + 1 : end;
}

static inline const char *lumat_csv_skip_blanks(const char *p, const char *end,
                                                char delimiter)
{
    while (p < end && (*p == ' ' || (*p == '\t' && delimiter != '\t')))
        p++;
    return p;
}

static inline int lumat_csv_ends_cell(const char *p, const char *end,
                                      char delimiter)
{
    if (lumat_csv_ends_line(p, end))
        return 1;
    return *p == delimiter || (delimiter == LUMAT_BLANKS && *p == '\t');
}

/* The start of the next cell, or NULL when p ends the line. */
static inline const char *lumat_csv_next_cell(const char *p, const char *end,
                                              char delimiter)
{
    if (lumat_csv_ends_line(p, end))
        return NULL;
    return delimiter == LUMAT_BLANKS ? p : p + 1;
}

/* Writes the message and returns 0. */
int lumat_csv_fail(char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The first line at or after p that has more than blanks; counts lines. */
const char *lumat_csv_skip_blank_lines(const char *p, const char *end,
                                       char delimiter, int64_t *line);

/* Takes the cell at p, without the blanks and quotes around it. Returns where
 * it ends: at a delimiter or at the end of the line; of one that is open, p. */
const char *lumat_csv_take_cell(const char *p, const char *end, char delimiter,
                                lumat_cell *out);

/* A number, a word such as nan or inf, or NaN for an empty cell; returns 0
 * for anything else. */
int lumat_csv_cell_value(const lumat_cell *c, double *out);

/* What begins at start, up to where the text ends, and what is known of it. */
typedef struct lumat_line {
    const char *start, *end;
    const char *newline; /* or the end of the text; a \r before it belongs */
    int has_quotes;      /* before that: then cells may go on behind it */
} lumat_line;

lumat_line lumat_csv_line_at(const char *p, const char *end);
/* The cells of the line. *after, unless NULL, gets where they end. */
int64_t lumat_csv_count_cells(const lumat_line *l, char delimiter,
                              const char **after);
/* Line ends in first .. last. */
int64_t lumat_csv_lines_between(const char *first, const char *last);
/* Fails with "3: column 2: …" for a cell whose quote does not end. */
int lumat_csv_fail_open(char *error, size_t size, int64_t line, int64_t col);

#endif
