/* Tables as text: lines and cells, what opening one finds (delimiter, names,
 * columns and their types), and reading its rows. The grammar is RFC 4180's,
 * with other delimiters, blanks around cells, and blank lines between rows. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "csv_parts.h"
#include "data_formats.h"

/* --- lines and cells ------------------------------------------------------ */
/* p .. end is what is left of the text; at end is a byte 0. */

#define BLANKS LUMAT_CSV_BLANKS

typedef struct csv_cell {
    const char *start;
    size_t length;
    int is_open;    /* its quote does not end */
    int is_doubled; /* quotes in it are written twice */
} csv_cell;

/* The smallest steps are inline: they run for every cell. */

static void set_stops(lumat_csv *c)
{
    memset(c->stops, 0, sizeof c->stops);
    c->stops[0] = c->stops['\n'] = c->stops['\r'] = 1;
    c->stops[(unsigned char)c->delimiter] = 1;
    c->stops[(unsigned char)c->comment] = 1;
    c->stops['\t'] |= c->delimiter == BLANKS;
}

static inline int ends_line(const lumat_csv *c, const char *p, const char *end)
{
    return p == end || *p == '\n' ||
           (*p == '\r' && (p + 1 == end || p[1] == '\n')) ||
           (c->comment != 0 && *p == c->comment);
}

/* p ends a line; the start of the next one. */
static inline const char *next_line(const char *p, const char *end)
{
    if (p < end && *p == '\n')
        return p + 1;
    const char *q = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    return q != NULL ? q + 1 : end;
}

static inline const char *skip_blanks(const char *p, const char *end,
                                      char delimiter)
{
    while (p < end && (*p == ' ' || (*p == '\t' && delimiter != '\t')))
        p++;
    return p;
}

static inline int ends_cell(const lumat_csv *c, const char *p, const char *end)
{
    if (ends_line(c, p, end))
        return 1;
    return *p == c->delimiter || (c->delimiter == BLANKS && *p == '\t');
}

/* The start of the next cell, or NULL when p ends the line. */
static inline const char *next_cell(const lumat_csv *c, const char *p,
                                    const char *end)
{
    if (ends_line(c, p, end))
        return NULL;
    return c->delimiter == BLANKS ? p : p + 1;
}

/* The quote that ends the text of the one at p, or NULL. Those in the text are
 * doubled. */
static const char *closing_quote(const lumat_csv *c, const char *p,
                                 const char *end, int *is_doubled)
{
    const char *q = p + 1;
    for (*is_doubled = 0;; q += 2, *is_doubled = 1) {
        q = q < end ? memchr(q, c->quote, (size_t)(end - q)) : NULL;
        if (q == NULL || q + 1 == end || q[1] != c->quote)
            return q;
    }
}

/* The text between the quotes that start at p. Returns 0 when they do not end,
 * or do not end the cell; *after gets where the cell ends. */
static int quoted_cell(const lumat_csv *c, const char *p, const char *end,
                       csv_cell *out, const char **after)
{
    int is_doubled;
    const char *q = closing_quote(c, p, end, &is_doubled);
    if (q == NULL) {
        out->is_open = 1;
        return 0;
    }
    *out = (csv_cell){p + 1, (size_t)(q - p) - 1, 0, is_doubled};
    const char *blank = q + 1;
    *after = skip_blanks(blank, end, c->delimiter);
    return ends_cell(c, *after, end) ||
           (c->delimiter == BLANKS && *after > blank);
}

/* Takes the cell at p, without the blanks and quotes around it. Returns where
 * it ends: at a delimiter or at the end of the line; of one that is open, p. */
static const char *take_cell(const lumat_csv *c, const char *p, const char *end,
                             csv_cell *out)
{
    const char *after;
    char delimiter = c->delimiter;
    p = skip_blanks(p, end, delimiter);
    out->is_open = 0;
    if (*p == c->quote && p < end && c->quote != 0 &&
        quoted_cell(c, p, end, out, &after))
        return after;
    if (out->is_open) {
        *out = (csv_cell){p, 0, 1, 0};
        return p;
    }
    const char *q = p;
    for (;; q++) {
        while (!c->stops[(unsigned char)*q])
            q++;
        if (ends_cell(c, q, end))
            break;
    }
    after = delimiter == BLANKS ? skip_blanks(q, end, delimiter) : q;
    while (q > p && (q[-1] == ' ' || q[-1] == '\t'))
        q--;
    *out = (csv_cell){p, (size_t)(q - p), 0, 0};
    return after;
}

/* The first line at or after p that has more than blanks or a comment, as far
 * as lines begin before limit; counts lines. A comment at the end stays, where
 * that is not all. */
static const char *skip_empty_lines(const lumat_csv *c, const char *p,
                                    const char *limit, const char *end,
                                    int is_all, int64_t *line)
{
    while (p < limit) {
        const char *q = skip_blanks(p, end, c->delimiter);
        if (!ends_line(c, q, end))
            return p;
        const char *next = next_line(q, end);
        if (next == end && next[-1] != '\n')
            return q == end || is_all ? end : p;
        p = next;
        ++*line;
    }
    return p;
}

int64_t lumat_csv_count(const char *p, const char *end, char c)
{
    enum { BLOCK = 64 }; /* which compilers make vectors of */
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

const char *lumat_csv_line_behind(const lumat_csv *c, const char *at,
                                  const char *end, int is_quoted)
{
    for (; at < end; at++) {
        if (*at == c->quote && c->quote != 0)
            is_quoted = !is_quoted;
        else if (*at == '\n' && !is_quoted)
            return at + 1;
    }
    return end;
}

size_t lumat_csv_unquote(const lumat_csv *c, lumat_csv_text text, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < text.length; i++) {
        out[n++] = text.start[i];
        i += text.start[i] == c->quote && c->quote != 0 &&
             i + 1 < text.length && text.start[i + 1] == c->quote;
    }
    return n;
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

/* A word for what is not a number or not finite. */
static int word_value(const csv_cell *cell, double *out)
{
    static const char *const nan_words[] = {"nan", NULL};
    static const char *const inf_words[] = {"inf", "infinity", NULL};
    const char *text = cell->start;
    size_t length = cell->length;
    int negative = length > 0 && *text == '-';
    if (length > 0 && (*text == '-' || *text == '+')) {
        text++;
        length--;
    }
    *out = NAN;
    if (is_word(text, length, nan_words))
        return 1;
    *out = negative ? -INFINITY : INFINITY;
    return is_word(text, length, inf_words);
}

/* Words for what is missing: in texts as they are written here, since "Na" is
 * an element and "none" an answer; else in any case. */
static const lumat_csv_text missing_texts[] = {
    {"", 0},     {"NA", 2},   {"N/A", 3},  {"n/a", 3}, {"#N/A", 4},
    {"<NA>", 4}, {"NULL", 4}, {"null", 4}, {"NaN", 3}, {"nan", 3}};
static const char *const missing_words[] = {"na",   "n/a",  "#n/a", "<na>",
                                            "null", "none", "nan",  NULL};

static int is_missing(const lumat_csv *c, const csv_cell *cell, int is_text)
{
    if (c->missing == NULL && !is_text)
        return cell->length == 0 ||
               is_word(cell->start, cell->length, missing_words);
    const lumat_csv_text *word = c->missing;
    size_t count = c->missing_count;
    if (word == NULL) {
        word = missing_texts;
        count = sizeof missing_texts / sizeof *missing_texts;
    }
    for (; count > 0; count--, word++)
        if (word->length == cell->length &&
            memcmp(cell->start, word->start, cell->length) == 0)
            return 1;
    return cell->length == 0 && !is_text;
}

static double without_missing(const lumat_csv *c, double x)
{
    for (size_t i = 0; i < c->missing_value_count; i++)
        if (x == c->missing_values[i])
            return NAN;
    return x;
}

enum { LONGEST_NUMBER = 1100 };

static int is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Copies a number with a point for its decimal mark and without the marks that
 * divide thousands, which have to stand before each three digits. Returns its
 * length, or 0: it is none. */
static size_t plain_number(const lumat_csv *c, const csv_cell *cell,
                           char out[LONGEST_NUMBER])
{
    size_t n = 0, digits = 0, groups = 0;
    int is_whole = 1;
    if (cell->length >= LONGEST_NUMBER)
        return 0;
    for (size_t i = 0; i < cell->length; i++) {
        char x = cell->start[i];
        if (x == c->thousands && c->thousands != 0) {
            if (!is_whole || digits == 0 || digits > 3 ||
                (groups > 0 && digits != 3))
                return 0;
            groups++;
            digits = 0;
            continue;
        }
        if (is_whole && !is_digit(x) && n > (out[0] == '-' || out[0] == '+')) {
            if (groups > 0 && digits != 3)
                return 0;
            is_whole = 0;
        }
        if (x == '.' && c->decimal != '.')
            return 0;
        digits += is_digit(x);
        out[n++] = x == c->decimal ? '.' : x;
    }
    if (is_whole && groups > 0 && digits != 3)
        return 0;
    return n;
}

/* A number or a word such as inf; returns 0 for anything else. single, or NULL,
 * gets the number rounded once. */
static int cell_number(const lumat_csv *c, const csv_cell *cell, double *out,
                       float *single)
{
    char plain[LONGEST_NUMBER];
    const char *text = cell->start;
    size_t length = cell->length;
    if (length == 0)
        return 0;
    if (c->decimal != '.' || c->thousands != 0) {
        length = plain_number(c, cell, plain);
        text = plain;
    }
    if (length > 0 && lumat_parse_f64(text, length, out) == length) {
        if (single != NULL)
            lumat_parse_f32(text, length, single);
        return 1;
    }
    if (!word_value(cell, out))
        return 0;
    if (single != NULL)
        *single = (float)*out;
    return 1;
}

/* true, false; where they are asked for also yes, no, 1, 0, t, f. */
static int cell_truth(const csv_cell *cell, int is_given, double *out)
{
    static const char *const yes[] = {"true", "t", "yes", "y", "1", NULL};
    static const char *const no[] = {"false", "f", "no", "n", "0", NULL};
    if (!is_given && cell->length != 4 && cell->length != 5)
        return 0;
    *out = 1;
    if (is_word(cell->start, cell->length, yes))
        return 1;
    *out = 0;
    return is_word(cell->start, cell->length, no);
}

/* --- complex cells ---------------------------------------------------------
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
    csv_cell word = {p, (size_t)(q - p), 0, 0};
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

/* a, a+bi, bi, with i or j, in brackets or not. Returns 0 for anything else. */
static int cell_complex(const csv_cell *cell, double out[2])
{
    const char *p = skip_spaces(cell->start, cell->start + cell->length);
    const char *end = cell->start + cell->length;
    double part;
    out[0] = out[1] = 0;
    if (p == end)
        return 0;
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

static int is_imaginary(const csv_cell *cell)
{
    double value[2];
    if (cell->length < 2)
        return 0;
    const char *last = cell->start + cell->length - 1;
    last -= *last == ')';
    return (*last == 'i' || *last == 'j') && cell_complex(cell, value);
}

/* What a cell is where nothing is known of its column; ANY: it is missing. */
static lumat_csv_type cell_type(const lumat_csv *c, const csv_cell *cell)
{
    double value;
    unsigned char has = 0;
    if (is_missing(c, cell, 0))
        return LUMAT_CSV_ANY;
    if (cell_number(c, cell, &value, NULL))
        return isnan(without_missing(c, value)) && !isnan(value)
                   ? LUMAT_CSV_ANY
                   : LUMAT_CSV_NUMBER;
    if (cell_truth(cell, 0, &value))
        return LUMAT_CSV_TRUTH;
    if (lumat_csv_take_date(cell->start, cell->length, NULL, &value, &has))
        return LUMAT_CSV_DATE;
    return is_imaginary(cell) ? LUMAT_CSV_COMPLEX : LUMAT_CSV_TEXT;
}

/* --- opening -------------------------------------------------------------- */

static const char open_quote[] =
    "a quote begins here that does not end; in a text in quotes a quote is "
    "doubled, and where quotes mean nothing give {quote=false}";

/* The cells from p to the end of the line, which goes into *after; without
 * quotes they are counted by their delimiters. */
static int64_t count_cells(const lumat_csv *c, const char *p, const char *end,
                           const char **after)
{
    int64_t count = 0;
    csv_cell found;
    const char *last = memchr(p, '\n', (size_t)(end - p));
    if (last == NULL)
        last = end;
    int is_plain = c->delimiter != BLANKS && c->comment == 0 &&
                   (c->quote == 0 || last == p ||
                    memchr(p, c->quote, (size_t)(last - p)) == NULL);
    if (is_plain) {
        *after = last > p && last[-1] == '\r' ? last - 1 : last;
        return lumat_csv_count(p, *after, c->delimiter) + 1;
    }
    if (c->delimiter == BLANKS)
        p = skip_blanks(p, end, BLANKS);
    for (; p != NULL; count++) {
        last = take_cell(c, p, end, &found);
        p = found.is_open ? NULL : next_cell(c, last, end);
        if (found.is_open)
            last = end;
    }
    *after = last;
    return count;
}

/* Is one of the cells of the line at p a number? */
static int has_number(const lumat_csv *c, const char *p, const char *end)
{
    csv_cell found;
    double value;
    for (p = skip_blanks(p, end, c->delimiter); p != NULL;) {
        p = take_cell(c, p, end, &found);
        if (cell_number(c, &found, &value, NULL))
            return 1;
        p = found.is_open ? NULL : next_cell(c, p, end);
    }
    return 0;
}

/* Those that are looked for, in this order. */
static const char candidates[] = {'\t', ';', ',', '|', BLANKS};

/* Does the line at p have the delimiter within quotes that stand between others
 * of the candidates, so that it is text? */
static int tears_quotes(const lumat_csv *c, const char *p, const char *end)
{
    char before = 0; /* the candidate there; 0: none yet */
    int is_start = 1, is_doubled;
    for (; c->quote != 0 && p < end && *p != '\n'; p++) {
        if (*p == c->quote && is_start) {
            const char *q = closing_quote(c, p, end, &is_doubled);
            if (q == NULL)
                return 0;
            const char *after = q + 1;
            if (c->delimiter != BLANKS)
                after = skip_blanks(after, end, c->delimiter);
            int is_own = (before == 0 || before == c->delimiter) &&
                         ends_cell(c, after, end);
            if (!is_own && memchr(p, c->delimiter, (size_t)(q - p)) != NULL)
                return 1;
            p = q;
            is_start = 0;
        } else if (memchr(candidates, *p, sizeof candidates - 1) != NULL) {
            before = *p;
            is_start = 1;
        } else {
            is_start = *p == BLANKS;
        }
    }
    return 0;
}

/* Does the line at p begin with a bar, as lines of a drawn table do? */
static int begins_with_bar(const char *p, const char *end)
{
    p = skip_blanks(p, end, '|');
    return p < end && *p == '|';
}

/* Is a bar between blanks a cell of the line at p, which blanks divide? */
static int has_lone_bar(const lumat_csv *c, const char *p, const char *end)
{
    csv_cell found;
    for (p = skip_blanks(p, end, BLANKS); p != NULL;) {
        p = take_cell(c, p, end, &found);
        if (found.length == 1 && *found.start == '|')
            return 1;
        p = found.is_open ? NULL : next_cell(c, p, end);
    }
    return 0;
}

/* Does the line at p have the mark of thousands where it divides none, before
 * other than three digits, so that it stands between cells? */
static int divides_cells(const lumat_csv *c, const char *p, const char *end)
{
    const char *start = p;
    for (; p < end && *p != '\n' && (*p != c->quote || c->quote == 0); p++) {
        if (*p != c->thousands)
            continue;
        int digits = 0;
        while (p + 1 + digits < end && is_digit(p[1 + digits]))
            digits++;
        if (p == start || !is_digit(p[-1]) || digits != 3)
            return 1;
    }
    return p < end && *p != '\n'; /* a cell in quotes */
}

/* The first that divides the first lines into as many cells each, more than
 * one; blanks do so with much that is text, and have to leave a number. */
static char guess_delimiter(const lumat_csv *c, const char *start,
                            const char *end, int is_all)
{
    enum { LINES = 10 };
    char otherwise = 0;
    int has_bars = 0;
    for (size_t i = 0; i < sizeof candidates; i++) {
        lumat_csv t = *c;
        const char *after, *p = start;
        int64_t line = 0, more = 0, cells;
        t.delimiter = candidates[i];
        if (t.delimiter == c->decimal || t.delimiter == c->comment)
            continue;
        if (t.delimiter == '|' && begins_with_bar(start, end))
            continue;
        if (t.delimiter == c->thousands &&
            (t.delimiter == BLANKS || !divides_cells(c, start, end)))
            continue;
        set_stops(&t);
        cells = count_cells(&t, start, end, &after);
        if (cells == 1 || tears_quotes(&t, start, end))
            continue;
        int is_even = 1;
        for (; is_even && line < LINES; line++) {
            after = next_line(after, end);
            after = skip_empty_lines(&t, after, end, end, is_all, &more);
            if (after == end)
                break;
            const char *next = after;
            int64_t count = count_cells(&t, next, end, &after);
            if (after == end && !is_all)
                break;
            is_even = count == cells && !tears_quotes(&t, next, end);
            p = next;
        }
        /* bars, unless they are in the texts of what blanks divide */
        if (is_even && t.delimiter == '|')
            has_bars = 1;
        else if (is_even && (t.delimiter != BLANKS ||
                             (has_number(&t, p, end) &&
                              !(has_bars && has_lone_bar(&t, start, end)))))
            return t.delimiter;
        else if (otherwise == 0 && t.delimiter != BLANKS)
            otherwise = t.delimiter;
    }
    if (has_bars)
        return '|';
    if (otherwise == 0)
        otherwise = c->decimal == ',' || c->thousands == ',' ? ';' : ',';
    return otherwise;
}

/* Are there names in the line at p, and nothing but names? -1 after a message.
 */
static int names_only(const lumat_csv *c, const char *p, const char *end,
                      char *error, size_t size)
{
    int named = 0, is_data = 0, skips = c->delimiter != BLANKS;
    const char *line = p;
    csv_cell found;
    for (int64_t col = 1; p != NULL; col++) {
        for (; skips && p < end && *p == c->delimiter; p++)
            col++;
        p = take_cell(c, p, end, &found);
        if (found.is_open) {
            lumat_refuse_data(
                error, size, "%lld: column %lld: %s",
                (long long)(c->line + lumat_csv_count(line, found.start, '\n')),
                (long long)col, open_quote);
            return -1;
        }
        p = next_cell(c, p, end);
        if (found.length == 0 || is_data)
            continue;
        if (c->header == LUMAT_HEADER_AUTO) {
            lumat_csv_type type = cell_type(c, &found);
            is_data = type != LUMAT_CSV_TEXT && type != LUMAT_CSV_ANY;
            named |= type == LUMAT_CSV_TEXT;
        }
    }
    if (c->header == LUMAT_HEADER_AUTO && (is_data || !named))
        return 0;
    if (c->cols <= LUMAT_CSV_MOST_NAMES)
        return 1;
    lumat_refuse_data(
        error, size,
        "%lld: it names %lld columns; names of at most %d are read; "
        "with {header=false} a line has to be numbers",
        (long long)c->line, (long long)c->cols, LUMAT_CSV_MOST_NAMES);
    return -1;
}

/* Do lines end with a carriage return alone in the text at p, which has no
 * other ends of lines? */
static int ends_with_returns(const lumat_csv *c, const char *p, const char *end)
{
    const char *q = memchr(p, '\r', (size_t)(end - p));
    return q != NULL && end - q > 1 &&
           (c->quote == 0 || memchr(p, c->quote, (size_t)(q - p)) == NULL);
}

/* Skips lines before the table. NULL: there are not as many. */
static const char *skip_lines(lumat_csv *c, const char *p, const char *end)
{
    for (int64_t i = 0; i < c->skip; i++) {
        const char *q = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        if (q == NULL)
            return NULL;
        p = q + 1;
    }
    c->line += c->skip;
    return p;
}

int lumat_csv_open(lumat_csv *c, const char *text, size_t length, int is_all,
                   char *error, size_t size)
{
    const char *end = text + length, *p = text, *next;
    if (length >= 2 && (!memcmp(p, "\xFF\xFE", 2) || !memcmp(p, "\xFE\xFF", 2)))
        return lumat_refuse_data(error, size, "is in UTF-16; save it as UTF-8");
    if (length >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    c->line = 1;
    p = skip_lines(c, p, end);
    if (p == NULL)
        return is_all ? lumat_refuse_data(error, size,
                                          "has not %lld lines to skip",
                                          (long long)c->skip)
                      : -1;
    p = skip_empty_lines(c, p, end, end, is_all, &c->line);
    if (p == end)
        return is_all ? lumat_refuse_data(error, size, "is empty") : -1;
    c->likely_comment = c->comment == 0 && (*p == '#' || *p == '%') ? *p : 0;
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    const char *line_end = newline != NULL ? newline : end;
    const char *zero = memchr(p, 0, (size_t)(line_end - p));
    if (zero != NULL) {
        lumat_csv t = *c;
        t.delimiter = c->delimiter != 0 ? c->delimiter : ',';
        return lumat_refuse_data(
            error, size,
            "%lld: column %lld: a zero byte: this is no text, or "
            "UTF-16, to be saved as UTF-8",
            (long long)c->line,
            (long long)lumat_csv_count(p, zero, t.delimiter) + 1);
    }
    if (newline == NULL && ends_with_returns(c, p, end))
        return lumat_refuse_data(
            error, size,
            "%lld: lines end with a carriage return alone, as on old Macs: "
            "tr '\\r' '\\n' makes them end as others do",
            (long long)c->line);
    if (newline == NULL && !is_all)
        return -1;
    if (c->delimiter == 0)
        c->delimiter = guess_delimiter(c, p, end, is_all);
    set_stops(c);
    if (c->delimiter == BLANKS)
        p = skip_blanks(p, end, BLANKS);
    c->cols = count_cells(c, p, end, &next);
    if (next == end && !is_all)
        return -1;
    c->has_names =
        c->header == LUMAT_HEADER_NO ? 0 : names_only(c, p, end, error, size);
    if (c->has_names < 0)
        return 0;
    c->names = (size_t)(p - text);
    if (c->has_names) {
        next = next_line(next, end);
        c->line += lumat_csv_count(p, next, '\n');
        p = next;
    }
    c->data = (size_t)(p - text);
    return 1;
}

int lumat_csv_name(const lumat_csv *c, const char *text, size_t length,
                   size_t *at, lumat_csv_text *name)
{
    const char *end = text + length;
    csv_cell found;
    if (*at == SIZE_MAX)
        return 0;
    const char *p = take_cell(c, text + *at, end, &found);
    p = found.is_open ? NULL : next_cell(c, p, end);
    *at = p == NULL ? SIZE_MAX : (size_t)(p - text);
    *name = (lumat_csv_text){found.start, found.length};
    return 1;
}

/* Is one of the first cells at p an imaginary number? */
static int begins_complex(const lumat_csv *c, const char *p, const char *end)
{
    enum { LOOKED_AT = 1000 };
    csv_cell found;
    for (int i = 0; p != NULL && i < LOOKED_AT; i++) {
        p = take_cell(c, p, end, &found);
        if (!found.is_open && is_imaginary(&found))
            return 1;
        p = found.is_open ? NULL : next_cell(c, p, end);
    }
    return 0;
}

int lumat_csv_find_types(const lumat_csv *c, const char *text, size_t length)
{
    const char *end = text + length, *p = text + c->data;
    int64_t unknown = 0, line = 0;
    int is_complex = 0;
    if (c->column == NULL)
        return begins_complex(c, p, end);
    for (int64_t j = 0; j < c->cols; j++)
        unknown +=
            c->column[j].type == LUMAT_CSV_ANY && !c->column[j].is_skipped;
    while (unknown > 0 && p < end) {
        p = skip_empty_lines(c, p, end, end, 1, &line);
        const char *after = p;
        for (int64_t j = 0; p != NULL && p < end && j < c->cols; j++) {
            csv_cell found;
            lumat_csv_column *column = &c->column[j];
            after = take_cell(c, p, end, &found);
            p = found.is_open ? NULL : next_cell(c, after, end);
            if (column->type != LUMAT_CSV_ANY || column->is_skipped ||
                found.is_open)
                continue;
            column->type = cell_type(c, &found);
            unknown -= column->type != LUMAT_CSV_ANY;
            is_complex |= column->type == LUMAT_CSV_COMPLEX;
        }
        p = next_line(after, end);
    }
    for (int64_t j = 0; j < c->cols; j++)
        if (c->column[j].type == LUMAT_CSV_ANY)
            c->column[j].type = LUMAT_CSV_NUMBER;
    return is_complex;
}

int lumat_csv_misleads(const char *text, size_t length, char delimiter,
                       int is_alone)
{
    for (size_t i = 0; i < sizeof candidates && candidates[i] != BLANKS; i++) {
        if (candidates[i] == delimiter && !is_alone)
            return 0;
        if (memchr(text, candidates[i], length) != NULL)
            return 1;
    }
    return 0;
}

int lumat_csv_needs_quotes(const char *text, size_t length, char delimiter)
{
    if (length == 0)
        return delimiter == BLANKS;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == delimiter || strchr("\"\r\n\t", text[i]) != NULL)
            return 1;
    }
    return text[0] == ' ' || text[length - 1] == ' ';
}

/* --- rows ----------------------------------------------------------------- */

enum {
    SHOWN = 40,    /* characters of a bad cell in errors */
    PART = 1 << 18 /* bytes between two calls of goes_on */
};

/* One that reads a chunk. */
typedef struct reader {
    const lumat_csv *c;
    lumat_csv_chunk *k;
    const char *end;
    const char *told;      /* where goes_on was asked last */
    int64_t line;          /* lines that ended before the one that is read */
    int is_inside;         /* behind some cells that were taken of a row */
    lumat_csv_column same; /* the column that is read, where all are one */
} reader;

static void fail_at(reader *r, int64_t col, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(r->k->message, sizeof r->k->message, format, list);
    va_end(list);
    r->k->has_failed = 1;
    r->k->bad_line = r->line;
    r->k->bad_col = col;
}

/* What goes to the end of the text may go on behind it; at a \r there a line
 * ends only if a \n follows. */
static int may_go_on(const reader *r, const char *after)
{
    if (r->k->is_last || after + (*after == '\r') < r->end)
        return 0;
    r->k->needs_more = 1;
    return 1;
}

static void fail_open(reader *r, int64_t col)
{
    if (!may_go_on(r, r->end))
        fail_at(r, col, "%s", open_quote);
}

static void fail_cell(reader *r, int64_t col, const csv_cell *cell,
                      const char *what)
{
    char text[SHOWN + 4];
    size_t length = cell->length < SHOWN ? cell->length : SHOWN;
    while (length < cell->length && length > 0 &&
           ((unsigned char)cell->start[length] & 0xC0) == 0x80)
        length--; /* no half letters */
    for (size_t i = 0; i < length; i++)
        text[i] = (unsigned char)cell->start[i] < ' ' ? '?' : cell->start[i];
    text[length] = '\0';
    if (cell->length > 0 && memchr(cell->start, 0, cell->length) != NULL)
        fail_at(r, col,
                "a zero byte: this is no text, or UTF-16, to be saved as "
                "UTF-8");
    else
        fail_at(r, col, "\"%s%s\" is not %s", text,
                length < cell->length ? "..." : "", what);
}

/* The place of the first byte that is no UTF-8, or length. */
static size_t find_bad_byte(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0; i < length;) {
        unsigned char a = s[i];
        if (a == 0)
            return i;
        size_t more = a < 0x80    ? 0
                      : a >= 0xF0 ? 3
                      : a >= 0xE0 ? 2
                      : a >= 0xC2 ? 1
                                  : length;
        if (a > 0xF4 || more >= length - i)
            return i;
        for (size_t k = 1; k <= more; k++)
            if ((s[i + k] & 0xC0) != 0x80)
                return i;
        if ((a == 0xE0 && s[i + 1] < 0xA0) || (a == 0xED && s[i + 1] > 0x9F) ||
            (a == 0xF0 && s[i + 1] < 0x90) || (a == 0xF4 && s[i + 1] > 0x8F))
            return i;
        i += more + 1;
    }
    return length;
}

static inline const lumat_csv_column *column_of(reader *r, int64_t col)
{
    if (r->c->column != NULL)
        return &r->c->column[col];
    r->same.offset = (size_t)col * r->c->same.step;
    return &r->same;
}

/* Where a column's element of the row is. */
static inline void *place_of(const reader *r, const lumat_csv_column *column)
{
    const lumat_csv_chunk *k = r->k;
    return k->to + (column->offset + (size_t)k->rows * column->step - k->shift);
}

static void set_number(const reader *r, const lumat_csv_column *column,
                       double value, float single)
{
    void *to = place_of(r, column);
    if (column->is_wide)
        memcpy(to, &value, sizeof value);
    else
        memcpy(to, &single, sizeof single);
}

/* Nothing is there, in any type. */
static void set_missing(const reader *r, const lumat_csv_column *column)
{
    static const double pair[2] = {NAN, 0};
    if (column->type == LUMAT_CSV_COMPLEX)
        memcpy(place_of(r, column), pair, sizeof pair);
    else if (column->type == LUMAT_CSV_DATE || column->type == LUMAT_CSV_TEXT)
        memcpy(place_of(r, column), pair, sizeof *pair);
    else
        set_number(r, column, NAN, NAN);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_text(uint64_t seed, uint32_t column, const char *text,
                          size_t length)
{
    uint64_t h = seed ^ (column + 1) * UINT64_C(0x9E3779B97F4A7C15), part = 0;
    size_t left = length;
    for (; left >= sizeof part; left -= sizeof part, text += sizeof part) {
        memcpy(&part, text, sizeof part);
        h = mix(h ^ part, UINT64_C(0xD6E8FEB86659FD93));
    }
    part = 0;
    memcpy(&part, text, left);
    return mix(h ^ part ^ (uint64_t)length << 56,
               UINT64_C(0xA0761D6478BD642F) ^ seed);
}

/* The code of a text; less than 0 for one that is new to all. */
static int set_label(reader *r, int64_t col, const lumat_csv_column *column,
                     const csv_cell *cell)
{
    lumat_labels *fresh = &r->k->fresh;
    uint64_t hash =
        hash_text(r->c->seed, (uint32_t)col, cell->start, cell->length);
    const lumat_label *label = lumat_labels_find(
        r->c->labels, hash, (uint32_t)col, cell->start, cell->length);
    double code = label != NULL ? (double)label->code : 0;
    if (label == NULL) {
        label = lumat_labels_find(fresh, hash, (uint32_t)col, cell->start,
                                  cell->length);
        if (label == NULL) {
            size_t bad = find_bad_byte(cell->start, cell->length);
            if (bad < cell->length && cell->start[bad] == 0) {
                fail_cell(r, col, cell, "");
                return 0;
            }
            if (bad < cell->length) {
                fail_at(r, col,
                        "a byte 0x%02X that is no UTF-8: save the file as "
                        "UTF-8 (iconv -f latin1 -t utf8)",
                        (unsigned char)cell->start[bad]);
                return 0;
            }
            label = lumat_labels_add(fresh, hash, (uint32_t)col, cell->start,
                                     cell->length, 0);
        }
        if (label == NULL) {
            fail_at(r, -1, "there is no memory for its texts");
            return 0;
        }
        code = -1.0 - (double)(label - fresh->list);
    }
    memcpy(place_of(r, column), &code, sizeof code);
    return 1;
}

static int take_text(reader *r, int64_t col, const lumat_csv_column *column,
                     csv_cell *cell)
{
    /* what is missing is short, and most texts are not */
    if ((cell->length <= 4 || r->c->missing != NULL) &&
        is_missing(r->c, cell, 1)) {
        set_missing(r, column);
        return 1;
    }
    if (!cell->is_doubled)
        return set_label(r, col, column, cell);
    lumat_csv_chunk *k = r->k;
    if (cell->length > k->scratch_room) {
        char *room = realloc(k->scratch, 2 * cell->length);
        if (room == NULL) {
            fail_at(r, -1, "there is no memory for its texts");
            return 0;
        }
        k->scratch = room;
        k->scratch_room = 2 * cell->length;
    }
    lumat_csv_text text = {cell->start, cell->length};
    csv_cell plain = {k->scratch, lumat_csv_unquote(r->c, text, k->scratch), 0,
                      0};
    return set_label(r, col, column, &plain);
}

/* Stores what a cell says. Returns 0 for what is not of its column's type. */
static int set_value(reader *r, int64_t col, const lumat_csv_column *column,
                     const csv_cell *cell)
{
    double pair[2];
    float single;
    switch (column->type) {
    case LUMAT_CSV_TRUTH:
        if (!cell_truth(cell, column->is_given, pair))
            return 0;
        set_number(r, column, pair[0], (float)pair[0]);
        return 1;
    case LUMAT_CSV_DATE:
        if (!lumat_csv_take_date(cell->start, cell->length, column->format,
                                 pair, &r->k->finest[col]))
            return 0;
        memcpy(place_of(r, column), pair, sizeof *pair);
        return 1;
    case LUMAT_CSV_COMPLEX:
        if (!cell_complex(cell, pair))
            return 0;
        memcpy(place_of(r, column), pair, sizeof pair);
        return 1;
    default:
        if (!cell_number(r->c, cell, pair, &single))
            return 0;
        double value = without_missing(r->c, pair[0]);
        set_number(r, column, value, isnan(value) ? NAN : single);
        return 1;
    }
}

/* Below them all whole numbers are exact. */
#define MOST_EXACT_F64 0x1p53
#define MOST_EXACT_F32 0x1p24F

/* Is the text a whole number, without a point or exponent, and not what was
 * made of it? */
static __attribute__((noinline, cold)) int
is_rounded(const char *text, size_t length, double value)
{
    char shown[LONGEST_NUMBER];
    size_t sign = length > 0 && (*text == '-' || *text == '+');
    for (text += sign, length -= sign; length > 0 && *text == '0'; length--)
        text++;
    for (size_t i = 0; i < length; i++)
        if (!is_digit(text[i]))
            return 0;
    int n = snprintf(shown, sizeof shown, "%.0f", fabs(value));
    return (size_t)n != length || memcmp(shown, text, length) != 0;
}

/* Looks at the number that was stored for a cell. Returns 0 after a message. */
static int is_kept(reader *r, int64_t col, const lumat_csv_column *column,
                   const csv_cell *cell)
{
    char plain[LONGEST_NUMBER];
    const char *text = cell->start;
    size_t length = cell->length;
    double value;
    float single;
    memcpy(&value, place_of(r, column), column->is_wide ? sizeof value : 0);
    memcpy(&single, place_of(r, column), sizeof single);
    value = column->is_wide ? value : (double)single;
    if (!(fabs(value) >= (column->is_wide ? MOST_EXACT_F64 : MOST_EXACT_F32)) ||
        isinf(value))
        return 1;
    if (r->c->decimal != '.' || r->c->thousands != 0) {
        length = plain_number(r->c, cell, plain);
        text = plain;
    }
    if (!is_rounded(text, length, value))
        return 1;
    r->k->is_narrow = !column->is_wide;
    if (r->k->is_narrow)
        fail_at(r, col,
                "the integer %.*s, which f32 would round: give {dtype=\"f64\"}",
                (int)(length < SHOWN ? length : SHOWN), text);
    else
        fail_at(r, col,
                "the integer %.*s is beyond 2^53, where f64 rounds integers: "
                "give {dtype=\"f64\"} to accept that",
                (int)(length < SHOWN ? length : SHOWN), text);
    return 0;
}

/* Stores a cell. Returns 0 after a message. */
static int take_value(reader *r, int64_t col, csv_cell *cell)
{
    const lumat_csv_column *column = column_of(r, col);
    if (column->type == LUMAT_CSV_TEXT)
        return take_text(r, col, column, cell);
    /* only words that were given may be something else, too */
    if (r->c->missing != NULL && is_missing(r->c, cell, 0)) {
        set_missing(r, column);
        return 1;
    }
    if (set_value(r, col, column, cell))
        return !r->c->is_exact || column->type != LUMAT_CSV_NUMBER ||
               is_kept(r, col, column, cell);
    if (is_missing(r->c, cell, 0)) {
        set_missing(r, column);
        return 1;
    }
    fail_cell(r, col, cell,
              column->type == LUMAT_CSV_TRUTH  ? "true or false"
              : column->type != LUMAT_CSV_DATE ? "a number"
              : column->format != NULL         ? column->format
                                               : "a date as 2026-11-23");
    return 0;
}

/* Takes a number that stands alone in its cell, which is nearly every cell.
 * Returns where the cell ends, or NULL. */
static inline const char *
take_number(const reader *r, const lumat_csv_column *column, const char *p)
{
    const lumat_csv *c = r->c;
    char delimiter = c->delimiter;
    p = skip_blanks(p, r->end, delimiter);
    const char *first = p;
    if (column->is_wide) {
        double value;
        p = lumat_csv_take_f64(p, r->end, c->decimal, &value);
        if (p == NULL)
            return NULL;
        if (c->missing_value_count > 0)
            value = without_missing(c, value);
        if (__builtin_expect(fabs(value) >= MOST_EXACT_F64, 0) && c->is_exact &&
            is_rounded(first, (size_t)(p - first), value))
            return NULL;
        memcpy(place_of(r, column), &value, sizeof value);
    } else {
        float value;
        if (c->missing_value_count > 0)
            return NULL; /* compared in f64 */
        p = lumat_csv_take_f32(p, r->end, c->decimal, &value);
        if (p == NULL)
            return NULL;
        if (__builtin_expect(fabsf(value) >= MOST_EXACT_F32, 0) &&
            c->is_exact &&
            is_rounded(first, (size_t)(p - first), (double)value))
            return NULL;
        memcpy(place_of(r, column), &value, sizeof value);
    }
    if (*p == delimiter && delimiter != BLANKS)
        return p;
    const char *after = skip_blanks(p, r->end, delimiter);
    if (ends_cell(c, after, r->end))
        return after;
    return delimiter == BLANKS && after > p ? after : NULL;
}

/* Takes any other cell. */
static const char *take_other(reader *r, int64_t col, const char *p)
{
    csv_cell found;
    const char *after = take_cell(r->c, p, r->end, &found);
    if (found.is_open) {
        fail_open(r, col);
        return NULL;
    }
    if (may_go_on(r, after))
        return NULL;
    if (!r->c->is_counting && !column_of(r, col)->is_skipped &&
        !take_value(r, col, &found))
        return NULL;
    if (found.start > p && found.start[-1] == r->c->quote && r->c->quote != 0)
        r->line +=
            lumat_csv_count(found.start, found.start + found.length, '\n');
    return after;
}

/* Cells that are nothing but a delimiter: some files have little else. */
static const char *take_empty(reader *r, const char *p, int64_t *col,
                              int64_t last)
{
    const lumat_csv *c = r->c;
    while (*p == c->delimiter && *col < last) {
        const lumat_csv_column *column = column_of(r, *col);
        if (column->type == LUMAT_CSV_TEXT && c->missing != NULL)
            break; /* may be a text */
        if (!c->is_counting && !column->is_skipped)
            set_missing(r, column);
        ++*col;
        p++;
    }
    return p;
}

static const char *fail_ragged(reader *r, int64_t found, const char *p)
{
    const char *after = p;
    if (found == r->c->cols)
        found += count_cells(r->c, p, r->end, &after);
    if (may_go_on(r, after))
        return NULL;
    char hint[64] = "";
    if (r->c->likely_comment != 0)
        snprintf(hint, sizeof hint,
                 " ({comment=\"%c\"} passes lines that begin so)",
                 r->c->likely_comment);
    else if (found < r->c->cols)
        snprintf(hint, sizeof hint, " ({fill=true} leaves the others empty)");
    fail_at(r, -1, "%lld column%s, but %lld expected%s", (long long)found,
            found == 1 ? "" : "s", (long long)r->c->cols, hint);
    return NULL;
}

/* Takes the cells of the row at p, from column *col on up to column `last`.
 * Returns where the last one ends, or NULL. */
static const char *take_cells(reader *r, const char *p, int64_t *col,
                              int64_t last)
{
    const lumat_csv *c = r->c;
    while (*col < last) {
        const lumat_csv_column *column = column_of(r, *col);
        const char *after = NULL;
        if (p - r->told > PART && c->goes_on != NULL) {
            r->told = p;
            if (!c->goes_on()) {
                fail_at(r, -1, "stopped");
                return NULL;
            }
        }
        if (*p == c->delimiter && c->delimiter != BLANKS && *col + 1 < last) {
            const char *next = take_empty(r, p, col, last - 1);
            if (next > p) {
                p = next;
                continue;
            }
        }
        if (column->type == LUMAT_CSV_NUMBER && !column->is_skipped &&
            !c->is_counting)
            after = take_number(r, column, p);
        if (after == NULL && (after = take_other(r, *col, p)) == NULL)
            return NULL;
        ++*col;
        p = after;
        if (*col == last && *col < c->cols && !ends_line(c, p, r->end)) {
            r->is_inside = 1;
            return c->delimiter == BLANKS ? p : p + 1;
        }
        if (*p == c->delimiter && c->delimiter != BLANKS && p < r->end) {
            if (*col == c->cols)
                return fail_ragged(r, *col, p + 1);
            p++;
            continue;
        }
        if (ends_line(c, p, r->end))
            return p;
        if (*col == c->cols)
            return fail_ragged(r, *col, p);
    }
    return p;
}

/* Takes a row, or what is asked of it; of one that is only counted no more is
 * looked at than where it ends. Returns where the next one starts, or
 * NULL. */
static const char *take_row(reader *r, const char *p)
{
    const lumat_csv *c = r->c;
    lumat_csv_chunk *k = r->k;
    int64_t col = k->col, last = c->cols;
    if (k->most_cells > 0 && k->most_cells < last - col)
        last = col + k->most_cells;
    if (c->is_counting && c->comment == 0) {
        /* a line is a row, where no quote can hide its end */
        const char *q = memchr(p, '\n', (size_t)(r->end - p));
        if (q != NULL &&
            (c->quote == 0 || memchr(p, c->quote, (size_t)(q - p)) == NULL)) {
            r->line++;
            return q + 1;
        }
    }
    r->is_inside = 0;
    p = take_cells(r, p, &col, last);
    if (p == NULL)
        return NULL;
    if (r->is_inside) {
        k->col = col;
        return p;
    }
    const char *next = next_line(p, r->end);
    if (!k->is_last && next == r->end && next[-1] != '\n') {
        k->needs_more = 1;
        return NULL;
    }
    if (col < c->cols) {
        if (!c->fill)
            return fail_ragged(r, col, p);
        for (; col < c->cols; col++)
            if (!c->is_counting && !column_of(r, col)->is_skipped)
                set_missing(r, column_of(r, col));
    }
    k->col = 0;
    r->line++;
    return next;
}

void lumat_csv_read(const lumat_csv *c, lumat_csv_chunk *k)
{
    reader r = {
        .c = c, .k = k, .end = k->end, .told = k->next, .same = c->same};
    r.same.step = 0; /* of rows: there is one */
    const char *p = k->next;
    r.line = k->col > 0 ? k->lines : 0;
    k->rows = k->lines = 0;
    k->needs_more = k->has_failed = k->is_narrow = 0;
    while (k->rows < k->most_rows) {
        if (k->col == 0)
            p = skip_empty_lines(c, p, k->limit, k->end, k->is_last, &r.line);
        k->next = p;
        k->lines = r.line;
        if (k->col == 0 && p >= k->limit)
            return;
        size_t labels = k->fresh.count;
        p = take_row(&r, p);
        if (p == NULL) {
            lumat_labels_truncate(&k->fresh, labels);
            return;
        }
        k->next = p;
        k->lines = r.line;
        if (k->col > 0)
            return;
        k->rows++;
    }
}
