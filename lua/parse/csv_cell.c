/* Splits text into lines and cells, and reads what a cell says. The grammar is
 * RFC 4180's, with other delimiters, blanks around cells, and blank lines
 * between rows. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "csv_cell.h"
#include "number.h"

int lumat_csv_fail(char *error, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, size, format, list);
    va_end(list);
    return 0;
}

int lumat_csv_fail_open(char *error, size_t size, int64_t line, int64_t col)
{
    return lumat_csv_fail(error, size,
                          "%lld: column %lld: a quote begins here that does "
                          "not end; in a text in quotes a quote is doubled",
                          (long long)line, (long long)col);
}

/* The text between the quotes that start at p. Returns 0 when they do not end,
 * or do not end the cell; *after gets where the cell ends. */
static int quoted_cell(const char *p, const char *end, char delimiter,
                       lumat_cell *out, const char **after)
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
    *out = (lumat_cell){p + 1, (size_t)(q - p) - 1, 0};
    const char *blank = q + 1;
    *after = lumat_csv_skip_blanks(blank, end, delimiter);
    return lumat_csv_ends_cell(*after, end, delimiter) ||
           (delimiter == LUMAT_BLANKS && *after > blank);
}

const char *lumat_csv_take_cell(const char *p, const char *end, char delimiter,
                                lumat_cell *out)
{
    const char *after;
    p = lumat_csv_skip_blanks(p, end, delimiter);
    out->is_open = 0;
    if (p < end && *p == '"' && quoted_cell(p, end, delimiter, out, &after))
        return after;
    if (out->is_open) {
        *out = (lumat_cell){p, 0, 1};
        return p;
    }
    const char *q = p;
    while (!lumat_csv_ends_cell(q, end, delimiter))
        q++;
    after = delimiter == LUMAT_BLANKS ? lumat_csv_skip_blanks(q, end, delimiter)
                                      : q;
    while (q > p && (q[-1] == ' ' || q[-1] == '\t'))
        q--;
    *out = (lumat_cell){p, (size_t)(q - p), 0};
    return after;
}

const char *lumat_csv_skip_blank_lines(const char *p, const char *end,
                                       char delimiter, int64_t *line)
{
    while (p < end) {
        const char *q = lumat_csv_skip_blanks(p, end, delimiter);
        if (!lumat_csv_ends_line(q, end))
            return p;
        p = lumat_csv_next_line(q, end);
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
static int word_value(const lumat_cell *c, double *out)
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

int lumat_csv_cell_value(const lumat_cell *c, double *out)
{
    if (c->length > 0 && lumat_parse_f64(c->start, c->length, out) == c->length)
        return 1;
    return word_value(c, out);
}

lumat_line lumat_csv_line_at(const char *p, const char *end)
{
    const char *q = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    if (q == NULL)
        q = end;
    if (q > p && q[-1] == '\r')
        q--;
    return (lumat_line){p, end, q,
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

int64_t lumat_csv_count_cells(const lumat_line *l, char delimiter,
                              const char **after)
{
    int64_t count = 0;
    lumat_cell found;
    const char *p = l->start, *last = l->newline;
    if (delimiter != LUMAT_BLANKS && !l->has_quotes) {
        p = NULL;
        count = count_of(l->start, last, delimiter) + 1;
    } else if (delimiter == LUMAT_BLANKS) {
        p = lumat_csv_skip_blanks(p, l->end, delimiter);
    }
    for (; p != NULL; count++) {
        last = lumat_csv_take_cell(p, l->end, delimiter, &found);
        p = found.is_open ? NULL : lumat_csv_next_cell(last, l->end, delimiter);
    }
    if (after != NULL)
        *after = last;
    return count;
}

int64_t lumat_csv_lines_between(const char *first, const char *last)
{
    return count_of(first, last, '\n');
}
