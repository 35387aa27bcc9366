/* Tables of numbers as text: lines and cells, what opening one finds
 * (delimiter, names, columns, a bound for the rows), and reading its rows. The
 * grammar is RFC 4180's, with other delimiters, blanks around cells, and blank
 * lines between rows. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "parse.h"

/* --- lines and cells ------------------------------------------------------ */
/* p .. end is what is left of the text; nothing reads at or past end. */

#define BLANKS ' ' /* the delimiter that means runs of blanks */

typedef struct csv_cell {
    const char *start;
    size_t length;
    int is_open; /* its quote does not end */
} csv_cell;

/* The smallest steps are inline: they run for every number. */

static inline int ends_line(const char *p, const char *end)
{
    return p == end || *p == '\n' ||
           (*p == '\r' && (p + 1 == end || p[1] == '\n'));
}

/* p ends a line; the start of the next one. */
static inline const char *next_line(const char *p, const char *end)
{
    if (p < end && *p == '\r')
        p++;
    return p < end ? p + 1 : end;
}

static inline const char *skip_blanks(const char *p, const char *end,
                                      char delimiter)
{
    while (p < end && (*p == ' ' || (*p == '\t' && delimiter != '\t')))
        p++;
    return p;
}

static inline int ends_cell(const char *p, const char *end, char delimiter)
{
    if (ends_line(p, end))
        return 1;
    return *p == delimiter || (delimiter == BLANKS && *p == '\t');
}

/* The start of the next cell, or NULL when p ends the line. */
static inline const char *next_cell(const char *p, const char *end,
                                    char delimiter)
{
    if (ends_line(p, end))
        return NULL;
    return delimiter == BLANKS ? p : p + 1;
}

/* What begins at start, up to where the text ends, and what is known of it. */
typedef struct csv_line {
    const char *start, *end;
    const char *newline; /* or the end of the text; a \r before it belongs */
    int has_quotes;      /* before that: then cells may go on behind it */
} csv_line;

/* Writes the message and returns 0. */
static int fail(char *error, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, size, format, list);
    va_end(list);
    return 0;
}

/* Fails with "3: column 2: …" for a cell whose quote does not end. */
static int fail_open(char *error, size_t size, int64_t line, int64_t col)
{
    return fail(error, size,
                "%lld: column %lld: a quote begins here that does "
                "not end; in a text in quotes a quote is doubled",
                (long long)line, (long long)col);
}

/* The text between the quotes that start at p. Returns 0 when they do not end,
 * or do not end the cell; *after gets where the cell ends. */
static int quoted_cell(const char *p, const char *end, char delimiter,
                       csv_cell *out, const char **after)
{
    const char *q = p + 1;
    for (;; q += 2) {
        q = q < end ? memchr(q, '"', (size_t)(end - q)) : NULL;
        if (q == NULL) {
            out->is_open = 1;
            return 0;
        }
        if (q + 1 == end || q[1] != '"')
            break;
    }
    *out = (csv_cell){p + 1, (size_t)(q - p) - 1, 0};
    const char *blank = q + 1;
    *after = skip_blanks(blank, end, delimiter);
    return ends_cell(*after, end, delimiter) ||
           (delimiter == BLANKS && *after > blank);
}

/* Takes the cell at p, without the blanks and quotes around it. Returns where
 * it ends: at a delimiter or at the end of the line; of one that is open, p. */
static const char *take_cell(const char *p, const char *end, char delimiter,
                             csv_cell *out)
{
    const char *after;
    p = skip_blanks(p, end, delimiter);
    out->is_open = 0;
    if (p < end && *p == '"' && quoted_cell(p, end, delimiter, out, &after))
        return after;
    if (out->is_open) {
        *out = (csv_cell){p, 0, 1};
        return p;
    }
    const char *q = p;
    while (!ends_cell(q, end, delimiter))
        q++;
    after = delimiter == BLANKS ? skip_blanks(q, end, delimiter) : q;
    while (q > p && (q[-1] == ' ' || q[-1] == '\t'))
        q--;
    *out = (csv_cell){p, (size_t)(q - p), 0};
    return after;
}

/* The first line at or after p that has more than blanks; counts lines. */
static const char *skip_blank_lines(const char *p, const char *end,
                                    char delimiter, int64_t *line)
{
    while (p < end) {
        const char *q = skip_blanks(p, end, delimiter);
        if (!ends_line(q, end))
            return p;
        p = next_line(q, end);
        ++*line;
    }
    return end;
}

/* --- what a cell says ---------------------------------------------------- */

static int is_word(const char *text, size_t length, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strlen(*words) == length && strncasecmp(text, *words, length) == 0)
            return 1;
    }
    return 0;
}

/* Words for what is not a number or not finite; nothing at all is NaN. */
static int word_value(const csv_cell *c, double *out)
{
    static const char *const nan_words[] = {"nan",  "na",   "n/a",
                                            "null", "#n/a", NULL};
    static const char *const inf_words[] = {"inf", "infinity", NULL};
    const char *text = c->start;
    size_t length = c->length;
    int negative = length > 0 && *text == '-';
    if (length > 0 && (*text == '-' || *text == '+')) {
        text++;
        length--;
    }
    if (length == 0 && c->length > 0)
        return 0;
    *out = NAN;
    if (length == 0 || is_word(text, length, nan_words))
        return 1;
    *out = negative ? -INFINITY : INFINITY;
    return is_word(text, length, inf_words);
}

/* A number, a word such as nan or inf, or NaN for an empty cell; returns 0
 * for anything else. */
static int cell_value(const csv_cell *c, double *out)
{
    if (c->length > 0 && lumat_parse_f64(c->start, c->length, out) == c->length)
        return 1;
    return word_value(c, out);
}

/* --- complex cells ----------------------------------------------------------
 */

static const char *skip_spaces(const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p++;
    return p;
}

/* A number or a word such as nan at p, with its sign; 1 where there is only
 * the sign of a bare i. Returns where it ends, or NULL. */
static const char *take_part(const char *p, const char *end, double *out)
{
    int is_negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p = skip_spaces(p + 1, end);
    const char *q = p;
    while (q < end && ((*q >= 'a' && *q <= 'z') || (*q >= 'A' && *q <= 'Z')))
        q++;
    csv_cell word = {p, (size_t)(q - p), 0};
    if (word.length > 3 && (q[-1] == 'i' || q[-1] == 'j'))
        word.length--; /* nani */
    size_t used = p < end && *p >= '+' && *p <= '9' && *p != '-' && *p != '+'
                      ? lumat_parse_f64(p, (size_t)(end - p), out)
                      : 0;
    if (used == 0 && word.length >= 3 && word_value(&word, out))
        used = word.length;
    if (used == 0 && p < end && (*p == 'i' || *p == 'j'))
        *out = 1;
    else if (used == 0)
        return NULL;
    if (is_negative)
        *out = -*out;
    return p + used;
}

/* a, a+bi, bi, with i or j, in brackets or not; empty: NaN. Returns 0 for
 * anything else. */
static int complex_value(const csv_cell *c, double out[2])
{
    const char *p = skip_spaces(c->start, c->start + c->length);
    const char *end = c->start + c->length;
    double part;
    out[0] = out[1] = 0;
    if (p == end) {
        out[0] = NAN;
        return 1;
    }
    if (end - p > 2 && *p == '(' && end[-1] == ')')
        p = skip_spaces(p + 1, end--);
    for (int parts = 0; p < end && parts < 2; parts++) {
        if (parts > 0 && *p != '+' && *p != '-')
            return 0;
        p = take_part(p, end, &part);
        if (p == NULL)
            return 0;
        int is_imaginary = p < end && (*p == 'i' || *p == 'j');
        if (parts > 0 && !is_imaginary)
            return 0;
        out[is_imaginary] = part;
        p = skip_spaces(p + is_imaginary, end);
        if (is_imaginary)
            break;
    }
    return p == end;
}

static int is_imaginary(const csv_cell *c)
{
    double value[2];
    if (c->length == 0)
        return 0;
    const char *last = c->start + c->length - 1;
    last -= *last == ')' && c->length > 1;
    return (*last == 'i' || *last == 'j') && c->length > 1 &&
           complex_value(c, value);
}

static csv_line line_at(const char *p, const char *end)
{
    const char *q = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    if (q == NULL)
        q = end;
    if (q > p && q[-1] == '\r')
        q--;
    return (csv_line){p, end, q,
                      q > p && memchr(p, '"', (size_t)(q - p)) != NULL};
}

/* In blocks of a size that compilers make vectors of. */
static int64_t count_of(const char *p, const char *end, char c)
{
    enum { BLOCK = 64 };
    int64_t count = 0;
    for (; end - p >= BLOCK; p += BLOCK) {
        unsigned char some = 0;
        for (int i = 0; i < BLOCK; i++)
            some += p[i] == c;
        count += some;
    }
    for (; p < end; p++)
        count += *p == c;
    return count;
}

/* The cells of the line. *after, unless NULL, gets where they end. */
static int64_t count_cells(const csv_line *l, char delimiter,
                           const char **after)
{
    int64_t count = 0;
    csv_cell found;
    const char *p = l->start, *last = l->newline;
    if (delimiter != BLANKS && !l->has_quotes) {
        p = NULL;
        count = count_of(l->start, last, delimiter) + 1;
    } else if (delimiter == BLANKS) {
        p = skip_blanks(p, l->end, delimiter);
    }
    for (; p != NULL; count++) {
        last = take_cell(p, l->end, delimiter, &found);
        p = found.is_open ? NULL : next_cell(last, l->end, delimiter);
    }
    if (after != NULL)
        *after = last;
    return count;
}

/* Line ends in first .. last. */
static int64_t lines_between(const char *first, const char *last)
{
    return count_of(first, last, '\n');
}

/* --- opening -------------------------------------------------------------- */

/* The delimiter that gives the first two lines the same number of cells, more
 * than one; else one that gives the first more than one; else a comma. */
static char guess_delimiter(const csv_line *first)
{
    static const char candidates[] = {'\t', ';', ',', BLANKS};
    char otherwise = 0;
    for (size_t i = 0; i < sizeof candidates; i++) {
        char c = candidates[i];
        const char *next;
        int64_t line = 0, cells = count_cells(first, c, &next);
        if (cells == 1)
            continue;
        next =
            skip_blank_lines(next_line(next, first->end), first->end, c, &line);
        csv_line second = line_at(next, first->end);
        if (next == first->end || count_cells(&second, c, NULL) == cells)
            return c;
        if (otherwise == 0 && c != BLANKS)
            otherwise = c;
    }
    return otherwise != 0 ? otherwise : ',';
}

/* Are there names in the line at p, and no numbers? -1 after a message. */
static int names_only(lumat_csv *c, const char *p, char *error, size_t size)
{
    const char *end = c->text + c->length, *line = p;
    int named = 0, is_number = 0, skips = c->delimiter != BLANKS;
    double value;
    csv_cell found;
    for (int64_t col = 1; p != NULL; col++) {
        for (; skips && p < end && *p == c->delimiter; p++)
            col++;
        p = take_cell(p, end, c->delimiter, &found);
        if (found.is_open) {
            int64_t lines = lines_between(line, found.start);
            fail_open(error, size, c->line + lines, col);
            return -1;
        }
        p = next_cell(p, end, c->delimiter);
        if (found.length == 0)
            continue;
        if (c->header != LUMAT_HEADER_YES && is_imaginary(&found)) {
            c->is_complex = 1;
            return 0;
        }
        if (c->header == LUMAT_HEADER_AUTO && cell_value(&found, &value))
            is_number = 1;
        if (is_number)
            continue;
        named = 1;
    }
    if (is_number || (!named && c->header != LUMAT_HEADER_YES))
        return 0;
    if (c->cols <= LUMAT_CSV_MOST_NAMES)
        return 1;
    fail(error, size,
         "%lld: it names %lld columns; names of at most %d are read; "
         "with {header=false} a line has to be numbers",
         (long long)c->line, (long long)c->cols, LUMAT_CSV_MOST_NAMES);
    return -1;
}

/* The lines from p on that are not blank. */
static int64_t count_lines(const lumat_csv *c, const char *p)
{
    const char *end = c->text + c->length;
    int has_quotes = p < end && memchr(p, '"', (size_t)(end - p)) != NULL;
    int64_t count = 0, line = 0;
    for (;; count++) {
        p = skip_blank_lines(p, end, c->delimiter, &line);
        if (p == end)
            return count;
        const char *last = has_quotes ? NULL : memchr(p, '\n', end - p);
        if (has_quotes) {
            csv_line l = line_at(p, end);
            count_cells(&l, c->delimiter, &last);
        }
        p = last != NULL ? next_line(last, end) : end;
    }
}

/* Every cell of a row takes a byte, but for the last one of the file. */
static void count_rows(lumat_csv *c)
{
    int64_t lines = count_lines(c, c->text + c->data);
    int64_t by_size = (int64_t)(c->length - c->data) / c->cols + 1;
    c->rows = lines < by_size ? lines : by_size;
}

/* Text has no zero bytes; a crashed machine and UTF-16 leave them. */
static int fail_zero(const lumat_csv *c, const char *zero, char *error,
                     size_t size)
{
    const char *start = zero;
    while (start > c->text && start[-1] != '\n')
        start--;
    csv_line line = line_at(start, zero);
    return fail(
        error, size,
        "%lld: column %lld: a zero byte: this is no text, or UTF-16, to be "
        "saved as UTF-8",
        (long long)lines_between(c->text, start) + 1,
        (long long)count_cells(&line, c->delimiter, NULL));
}

int lumat_csv_open(lumat_csv *c, char *error, size_t size)
{
    const char *end = c->text + c->length, *p = c->text, *next;
    if (c->length >= 2 &&
        (!memcmp(p, "\xFF\xFE", 2) || !memcmp(p, "\xFE\xFF", 2)))
        return fail(error, size, "is in UTF-16; save it as UTF-8");
    const char *zero = c->length > 0 ? memchr(p, 0, c->length) : NULL;
    if (c->length >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    c->line = 1;
    p = skip_blank_lines(p, end, c->delimiter, &c->line);
    if (p == end)
        return fail(error, size, "is empty");
    csv_line first = line_at(p, zero != NULL ? zero : end);
    if (c->delimiter == 0)
        c->delimiter = guess_delimiter(&first);
    if (zero != NULL)
        return fail_zero(c, zero, error, size);
    if (c->delimiter == BLANKS)
        p = skip_blanks(p, end, BLANKS);
    c->cols = count_cells(&first, c->delimiter, &next);
    c->has_names =
        c->header == LUMAT_HEADER_NO ? 0 : names_only(c, p, error, size);
    if (c->has_names < 0)
        return 0;
    c->names = (size_t)(p - c->text);
    if (c->has_names) {
        next = next_line(next, end);
        c->line += lines_between(p, next);
        p = skip_blank_lines(next, end, c->delimiter, &c->line);
    }
    c->data = (size_t)(p - c->text);
    count_rows(c);
    return 1;
}

int lumat_csv_name(const lumat_csv *c, size_t *at, const char **text,
                   size_t *length)
{
    const char *end = c->text + c->length;
    csv_cell found;
    if (*at == SIZE_MAX)
        return 0;
    const char *p = take_cell(c->text + *at, end, c->delimiter, &found);
    p = found.is_open ? NULL : next_cell(p, end, c->delimiter);
    *at = p == NULL ? SIZE_MAX : (size_t)(p - c->text);
    *text = found.start;
    *length = found.length;
    return 1;
}

int lumat_csv_needs_quotes(const char *name, size_t length, char delimiter)
{
    if (length == 0)
        return delimiter == BLANKS;
    for (size_t i = 0; i < length; i++) {
        if (name[i] == delimiter || strchr("\"\r\n\t", name[i]) != NULL)
            return 1;
    }
    return name[0] == ' ' || name[length - 1] == ' ';
}

/* --- rows ----------------------------------------------------------------- */

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

static int fail_cell(const reader *r, int64_t col, const csv_cell *c)
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
    return fail(r->error, r->size,
                "%lld: column %lld: \"%s%s\" is not a number (%s)",
                (long long)r->line, (long long)col + 1, text,
                c->length > SHOWN ? "..." : "", fix);
}

/* found: the columns before r->p, if there are too many. */
static int fail_ragged(const reader *r, int64_t found)
{
    csv_line rest = line_at(r->p, r->end);
    if (found == r->csv->cols)
        found += count_cells(&rest, r->csv->delimiter, NULL);
    return fail(r->error, r->size, "%lld: %lld column%s, but %lld expected",
                (long long)r->line, (long long)found, found == 1 ? "" : "s",
                (long long)r->csv->cols);
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
    const char *p = skip_blanks(r->p, r->end, delimiter);
    size_t left = (size_t)(r->end - p);
    size_t used = r->singles != NULL
                      ? lumat_parse_f32(p, left, &r->singles[at])
                      : lumat_parse_f64(p, left, &r->doubles[at]);
    if (used == 0)
        return NULL;
    p += used;
    const char *after = skip_blanks(p, r->end, delimiter);
    if (ends_cell(after, r->end, delimiter))
        return after;
    return delimiter == BLANKS && after > p ? after : NULL;
}

/* Takes any other cell: words, quotes, nothing. */
static const char *take_other(reader *r, int64_t at, int64_t col)
{
    csv_cell found;
    double value;
    const char *after = take_cell(r->p, r->end, r->csv->delimiter, &found);
    if (found.is_open) {
        fail_open(r->error, r->size, r->line, col + 1);
        return NULL;
    }
    if (!cell_value(&found, &value)) {
        fail_cell(r, col, &found);
        return NULL;
    }
    r->line += lines_between(found.start, found.start + found.length);
    if (r->singles == NULL ||
        lumat_parse_f32(found.start, found.length, &r->singles[at]) == 0)
        set_value(r, at, value);
    return after;
}

static const char *take_complex(reader *r, int64_t at, int64_t col)
{
    csv_cell found;
    const char *after = take_cell(r->p, r->end, r->csv->delimiter, &found);
    if (found.is_open) {
        fail_open(r->error, r->size, r->line, col + 1);
        return NULL;
    }
    if (!complex_value(&found, &r->doubles[2 * at])) {
        fail_cell(r, col, &found);
        return NULL;
    }
    r->line += lines_between(found.start, found.start + found.length);
    return after;
}

/* Takes the cell at r->p and goes to the next one, in the next line that is
 * not blank where it is the last of its row. */
static int take_value(reader *r, int64_t at, int64_t *col)
{
    const char *after;
    int is_complex = r->csv->is_complex;
    if (is_complex) {
        if ((after = take_complex(r, at, *col)) == NULL)
            return 0;
    } else if (r->p < r->end &&
               *r->p == '\n') { /* nothing, at the end of a row */
        set_value(r, at, NAN);
        after = r->p;
    } else {
        after = take_number(r, at);
    }
    if (after == NULL && (after = take_other(r, at, *col)) == NULL)
        return 0;
    r->p = next_cell(after, r->end, r->csv->delimiter);
    ++*col;
    if (r->p != NULL)
        return 1;
    r->p = next_line(after, r->end);
    if (*col < r->csv->cols)
        return fail_ragged(r, *col);
    *col = 0;
    r->line++;
    r->p = skip_blank_lines(r->p, r->end, r->csv->delimiter, &r->line);
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
        if (!c->is_complex && r.p < r.end && *r.p == c->delimiter &&
            *r.p != BLANKS) {
            int64_t left = cols - 1 - col, room = most - count;
            int64_t empty = take_empty(&r, count, left < room ? left : room);
            count += empty;
            col += empty;
        }
        if (count < most && !take_value(&r, count++, &col))
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
