/* Tables as text, .csv files and the like: pure, without Lua, and from any
 * thread where a struct is that thread's own.
 *
 * The text is borrowed. Behind its end stands a byte 0 that may be read, so
 * that the ends of numbers need no other check. A table is opened once, by its
 * first bytes; then its rows are read in chunks, several at once if one likes:
 * what a chunk gives depends on where it begins alone. */
#ifndef LUMAT_CSV_H
#define LUMAT_CSV_H

#include <stddef.h>
#include <stdint.h>

enum {
    LUMAT_CSV_MOST_NAMES = 1 << 21,
    LUMAT_CSV_BLANKS = ' ' /* the delimiter that means runs of blanks */
};

enum lumat_csv_header { LUMAT_HEADER_AUTO, LUMAT_HEADER_NO, LUMAT_HEADER_YES };

/* --- labels ----------------------------------------------------------------
 */

/* The different texts of columns, each once, and a code for each: 1, 2, … of a
 * column in the order of their first cells. All zero: none. */
typedef struct lumat_label {
    uint64_t hash;
    size_t at; /* of its bytes */
    uint32_t length, column, code;
} lumat_label;
typedef struct lumat_labels {
    lumat_label *list;
    size_t count, room;
    uint32_t *slots; /* places in the list, from 1 on; 0: free */
    size_t slot_count;
    char *bytes;
    size_t used, bytes_room;
} lumat_labels;

void lumat_labels_free(lumat_labels *l);
/* Forgets all of them and keeps the memory. */
void lumat_labels_clear(lumat_labels *l);
/* Forgets all but the first so many. */
void lumat_labels_truncate(lumat_labels *l, size_t count);
/* The label; NULL: it is none of these. */
const lumat_label *lumat_labels_find(const lumat_labels *l, uint64_t hash,
                                     uint32_t column, const char *text,
                                     size_t length);
/* One that is new, with this code; NULL: there is no memory. */
const lumat_label *lumat_labels_add(lumat_labels *l, uint64_t hash,
                                    uint32_t column, const char *text,
                                    size_t length, uint32_t code);

/* --- tables ----------------------------------------------------------------
 */

typedef enum lumat_csv_type {
    LUMAT_CSV_ANY,    /* not known: cells have been missing so far */
    LUMAT_CSV_NUMBER, /* also what is missing alone */
    LUMAT_CSV_TRUTH,  /* true and false, as 1 and 0 */
    LUMAT_CSV_DATE,   /* seconds since 1970, UTC, in f64 */
    LUMAT_CSV_TEXT,   /* codes in f64; of labels that are new, less than 0 */
    LUMAT_CSV_COMPLEX /* pairs of f64 */
} lumat_csv_type;

/* What dates have beside the day. */
enum {
    LUMAT_DATE_MINUTES = 1,
    LUMAT_DATE_SECONDS = 2,
    LUMAT_DATE_FRACTION = 4,
    LUMAT_DATE_T = 8 /* between day and time */
};

/* A column: set by the caller once the table is open, or found. */
typedef struct lumat_csv_column {
    lumat_csv_type type;
    int is_given;       /* its type, by the user: more is taken as truths */
    int is_skipped;     /* its cells go nowhere */
    int is_wide;        /* numbers and truths are f64, else f32 */
    const char *format; /* of dates; NULL: ISO 8601 */
    /* Its element of a chunk's row i is at byte offset + i * step of `to`. */
    size_t offset, step;
} lumat_csv_column;

typedef struct lumat_csv_text {
    const char *start;
    size_t length;
} lumat_csv_text;

typedef struct lumat_csv {
    /* Set by the caller. Cells are delimited by this (0: look for one), numbers
     * written with these (thousands 0: none), quote and comment 0: none. */
    char delimiter, decimal, thousands, quote, comment;
    enum lumat_csv_header header;
    int fill;                      /* a short row's other cells are missing */
    int64_t skip;                  /* lines before the table */
    const lumat_csv_text *missing; /* cells without a value, as written; */
    size_t missing_count;          /* NULL: the usual words */
    const double *missing_values;  /* and numbers */
    size_t missing_value_count;
    uint64_t seed;        /* of hashes: what no file can know */
    int (*goes_on)(void); /* or NULL; 0: stop, without a message */
    /* Set by lumat_csv_open. */
    int64_t cols;
    char likely_comment; /* what the first line begins with; 0: none */
    int has_names;
    size_t names;             /* where the line of names starts */
    size_t data;              /* where the rows start */
    int64_t line;             /* the number of the line there, from 1 */
    unsigned char stops[256]; /* characters that may end a cell */
    int is_counting; /* set by the caller: rows are passed, and not stored */
    int is_exact;    /* whole numbers that would be rounded are refused */
    lumat_csv_column *column;   /* cols of them, the caller's; NULL: all are */
    lumat_csv_column same;      /* this, side by side, its step apart */
    const lumat_labels *labels; /* those known so far */
} lumat_csv;

/* Once, before others: what numbers are read with. */
void lumat_csv_prepare(void);

/* Finds delimiter, names and columns in the beginning of the text. The first
 * line is one of names, unless told, when none of its cells is a number, a date
 * or a truth. Returns 1; -1: the text ends too early, and is not all there is;
 * or 0 with a message, which starts with a line, "17: column 2: …", where one
 * is known. */
int lumat_csv_open(lumat_csv *c, const char *text, size_t length, int is_all,
                   char *error, size_t size);

/* Steps through the names: *at starts at c->names. Gets the raw name, in which
 * quotes are still doubled. Returns 0 after the last. */
int lumat_csv_name(const lumat_csv *c, const char *text, size_t length,
                   size_t *at, lumat_csv_text *name);
/* Writes a text in which quotes are doubled, with single ones; returns its
 * length. */
size_t lumat_csv_unquote(const lumat_csv *c, lumat_csv_text text, char *out);

/* What the first cell that is not missing says the types of the columns are
 * that are not known. What is unknown behind the text's end becomes a number.
 * Returns whether a cell of a column that is not skipped is an imaginary
 * number. */
int lumat_csv_find_types(const lumat_csv *c, const char *text, size_t length);

/* A part of the rows. */
enum { LUMAT_CSV_MESSAGE = 256 };
typedef struct lumat_csv_chunk {
    /* Set by the caller: where rows begin that are its own, up to limit; up to
     * where there is text, whether that is all; and the most rows. */
    const char *next, *limit, *end;
    int is_last;
    int64_t most_rows;
    char *to;           /* of the columns' offsets */
    size_t shift;       /* bytes of them that are not there */
    lumat_labels fresh; /* empty, for new labels: -1 - n is number n's code */
    char *scratch;      /* NULL, then from malloc; the caller frees it */
    size_t scratch_room;
    unsigned char *finest; /* of every column, what dates have, is added */
    /* Of a row that is wider than its room: the column to go on with, and how
     * many to take, 0: all. Then most_rows is 1. */
    int64_t col, most_cells;
    /* Set by the reader: next is behind the last row that was read. */
    int64_t rows, lines; /* read; lines that ended */
    int needs_more;      /* the row at next goes on behind the end */
    int has_failed;      /* at the row at next, in the line so far behind */
    int is_narrow;       /* failed at a whole number that f32 would round */
    int64_t bad_line, bad_col;
    char message[LUMAT_CSV_MESSAGE];
} lumat_csv_chunk;

void lumat_csv_read(const lumat_csv *c, lumat_csv_chunk *k);

/* Where the first line begins that starts at or behind `at`; is_quoted: that is
 * within quotes. For the beginning of a chunk, which is a guess. */
const char *lumat_csv_line_behind(const lumat_csv *c, const char *at,
                                  const char *end, int is_quoted);
int64_t lumat_csv_count(const char *p, const char *end, char c);

/* Must a text be written in quotes? */
int lumat_csv_needs_quotes(const char *text, size_t length, char delimiter);

/* Would it, in the first line, tell of another delimiter, one that is looked
 * for before this one? That does not stand there where the text is alone. */
int lumat_csv_misleads(const char *text, size_t length, char delimiter,
                       int is_alone);

/* --- dates -----------------------------------------------------------------
 */

/* Is it one that dates can be read by? Of %Y %m %d %H %M %S %y %b %j. */
int lumat_csv_is_date_format(const char *format);
/* Is all of the text a date of that format? */
int lumat_csv_read_date(const char *text, size_t length, const char *format,
                        double *seconds);
/* Writes a date, the fraction of its seconds behind %S if there is one. Returns
 * its length, or 0: it is out of range. */
size_t lumat_csv_print_date(double seconds, const char *format, char *out,
                            size_t size);

#endif
