/* Reads the rows of a table of numbers. */
#include <string.h>
#include "csv_cell.h"
#include "number.h"

enum {
    SHOWN = 40,    /* characters of a bad cell in errors */
    PART = 1 << 18 /* bytes between two calls of goes_on */
};

typedef struct reader {
    const lumat_csv *csv;
    const char *p, *end;
    float *singles;
    double *doubles;
    const char *told; /* up to where goes_on knows of it */
    int64_t line;
    char *error;
    size_t size;
} reader;

/* In the middle of rows too: one may be the whole file. */
static int goes_on(reader *r, const char *p)
{
    size_t part = (size_t)(p - r->told);
    if (part < PART || r->csv->goes_on == NULL)
        return 1;
    r->told = p;
    return r->csv->goes_on(part);
}

static int fail_cell(const reader *r, int64_t col, const lumat_cell *c)
{
    char text[SHOWN + 4] = "";
    size_t length = c->length < SHOWN ? c->length : SHOWN;
    for (size_t i = 0; i < length; i++)
        text[i] = (unsigned char)c->start[i] < ' ' ? '?' : c->start[i];
    const char *fix =
        memchr(c->start, ',', c->length) != NULL
            ? "decimals take a point, not a comma"
            : "leave a cell empty for NaN; for a line of names give "
              "{header=true}";
    return lumat_csv_fail(r->error, r->size,
                          "%lld: column %lld: \"%s%s\" is not a number (%s)",
                          (long long)r->line, (long long)col + 1, text,
                          c->length > SHOWN ? "..." : "", fix);
}

static int fail_ragged(const reader *r, int64_t found)
{
    return lumat_csv_fail(r->error, r->size,
                          "%lld: %lld column%s, but %lld expected",
                          (long long)r->line, (long long)found,
                          found == 1 ? "" : "s", (long long)r->csv->cols);
}

/* Takes a number that stands alone in its cell, which is nearly every cell.
 * Returns where the cell ends, or NULL. */
static const char *take_number(const reader *r, int64_t at)
{
    char delimiter = r->csv->delimiter;
    const char *p = lumat_csv_skip_blanks(r->p, r->end, delimiter);
    size_t left = (size_t)(r->end - p);
    size_t used = r->singles != NULL
                      ? lumat_parse_f32(p, left, &r->singles[at])
                      : lumat_parse_f64(p, left, &r->doubles[at]);
    if (used == 0)
        return NULL;
    p += used;
    const char *after = lumat_csv_skip_blanks(p, r->end, delimiter);
    if (lumat_csv_ends_cell(after, r->end, delimiter))
        return after;
    return delimiter == LUMAT_BLANKS && after > p ? after : NULL;
}

/* Takes any other cell: words, quotes, nothing. */
static const char *take_other(reader *r, int64_t at, int64_t col)
{
    lumat_cell found;
    double value;
    const char *after =
        lumat_csv_take_cell(r->p, r->end, r->csv->delimiter, &found);
    if (!lumat_csv_cell_value(&found, &value)) {
        fail_cell(r, col, &found);
        return NULL;
    }
    r->line += lumat_csv_lines_between(found.start, found.start + found.length);
    if (r->singles == NULL)
        r->doubles[at] = value;
    else if (lumat_parse_f32(found.start, found.length, &r->singles[at]) == 0)
        r->singles[at] = (float)value;
    return after;
}

/* Reads the row at r->p into the cells from `at` on. */
static int read_row(reader *r, int64_t at)
{
    const char *start = r->p;
    int64_t cols = r->csv->cols;
    for (int64_t col = 0;; col++) {
        if (col == cols)
            return fail_ragged(
                r, lumat_csv_count_cells(start, r->end, r->csv->delimiter));
        const char *after = take_number(r, at + col);
        if (after == NULL && (after = take_other(r, at + col, col)) == NULL)
            return 0;
        if (!goes_on(r, after))
            return 0;
        r->p = lumat_csv_next_cell(after, r->end, r->csv->delimiter);
        if (r->p != NULL)
            continue;
        r->p = lumat_csv_next_line(after, r->end);
        return col + 1 == cols ? 1 : fail_ragged(r, col + 1);
    }
}

int64_t lumat_csv_read(const lumat_csv *c, float *singles, double *doubles,
                       char *error, size_t size)
{
    reader r = {.csv = c,
                .p = c->text + c->data,
                .end = c->text + c->length,
                .singles = singles,
                .doubles = doubles,
                .told = c->text + c->data,
                .line = c->line,
                .error = error,
                .size = size};
    int64_t rows = 0;
    while (r.p < r.end && rows < c->most_rows) {
        if (!read_row(&r, rows * c->cols))
            return -1;
        rows++;
        r.line++;
        r.p = lumat_csv_skip_blank_lines(r.p, r.end, c->delimiter, &r.line);
    }
    return rows;
}
