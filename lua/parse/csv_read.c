/* Reads the rows of a table of numbers. */
#include <math.h>
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

/* found: the columns before r->p, if there are too many. */
static int fail_ragged(const reader *r, int64_t found)
{
    lumat_line rest = lumat_csv_line_at(r->p, r->end);
    if (found == r->csv->cols)
        found += lumat_csv_count_cells(&rest, r->csv->delimiter, NULL);
    return lumat_csv_fail(r->error, r->size,
                          "%lld: %lld column%s, but %lld expected",
                          (long long)r->line, (long long)found,
                          found == 1 ? "" : "s", (long long)r->csv->cols);
}

static void set_value(const reader *r, int64_t at, double value)
{
    if (r->singles != NULL)
        r->singles[at] = (float)value;
    else
        r->doubles[at] = value;
}

/* Takes the cells from r->p on that are nothing but a delimiter, at most so
 * many, and returns how many: some files have little else. */
static int64_t take_empty(reader *r, int64_t at, int64_t most)
{
    char delimiter = r->csv->delimiter;
    int64_t count = 0;
    if (most > r->end - r->p)
        most = r->end - r->p;
    while (count < most && r->p[count] == delimiter)
        count++;
    if (r->singles != NULL)
        for (int64_t i = 0; i < count; i++)
            r->singles[at + i] = NAN;
    else
        for (int64_t i = 0; i < count; i++)
            r->doubles[at + i] = NAN;
    r->p += count;
    return count;
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
    if (found.is_open) {
        lumat_csv_fail_open(r->error, r->size, r->line, col + 1);
        return NULL;
    }
    if (!lumat_csv_cell_value(&found, &value)) {
        fail_cell(r, col, &found);
        return NULL;
    }
    r->line += lumat_csv_lines_between(found.start, found.start + found.length);
    if (r->singles == NULL ||
        lumat_parse_f32(found.start, found.length, &r->singles[at]) == 0)
        set_value(r, at, value);
    return after;
}

/* Takes the cell at r->p and goes to the next one, in the next line that is
 * not blank where it is the last of its row. */
static int take_cell(reader *r, int64_t at, int64_t *col)
{
    const char *after;
    if (r->p < r->end && *r->p == '\n') { /* nothing, at the end of a row */
        set_value(r, at, NAN);
        after = r->p;
    } else {
        after = take_number(r, at);
    }
    if (after == NULL && (after = take_other(r, at, *col)) == NULL)
        return 0;
    r->p = lumat_csv_next_cell(after, r->end, r->csv->delimiter);
    ++*col;
    if (r->p != NULL)
        return 1;
    r->p = lumat_csv_next_line(after, r->end);
    if (*col < r->csv->cols)
        return fail_ragged(r, *col);
    *col = 0;
    r->line++;
    r->p =
        lumat_csv_skip_blank_lines(r->p, r->end, r->csv->delimiter, &r->line);
    return 1;
}

int64_t lumat_csv_read(const lumat_csv *c, lumat_csv_place *place, int64_t most,
                       float *singles, double *doubles, char *error,
                       size_t size)
{
    reader r = {.csv = c,
                .p = c->text + place->at,
                .end = c->text + c->length,
                .singles = singles,
                .doubles = doubles,
                .told = c->text + place->at,
                .line = place->line,
                .error = error,
                .size = size};
    int64_t count = 0, col = place->col, cols = c->cols;
    while (count < most && (r.p < r.end || col > 0)) {
        if (r.p < r.end && *r.p == c->delimiter && *r.p != LUMAT_BLANKS) {
            int64_t left = cols - 1 - col, room = most - count;
            int64_t empty = take_empty(&r, count, left < room ? left : room);
            count += empty;
            col += empty;
        }
        if (count < most && !take_cell(&r, count++, &col))
            return -1;
        if (col == cols) {
            fail_ragged(&r, cols);
            return -1;
        }
        if (!goes_on(&r, r.p))
            return -1;
    }
    *place = (lumat_csv_place){(size_t)(r.p - c->text), r.line, col};
    return count;
}
