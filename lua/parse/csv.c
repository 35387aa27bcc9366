/* Opens a table of numbers: delimiter, names, columns, a bound for the rows. */
#include <string.h>
#include "csv_cell.h"

/* The delimiter that gives the first two lines the same number of cells, more
 * than one; else one that gives the first more than one; else a comma. */
static char guess_delimiter(const lumat_line *first)
{
    static const char candidates[] = {'\t', ';', ',', LUMAT_BLANKS};
    char otherwise = 0;
    for (size_t i = 0; i < sizeof candidates; i++) {
        char c = candidates[i];
        const char *next;
        int64_t line = 0, cells = lumat_csv_count_cells(first, c, &next);
        if (cells == 1)
            continue;
        next = lumat_csv_skip_blank_lines(lumat_csv_next_line(next, first->end),
                                          first->end, c, &line);
        lumat_line second = lumat_csv_line_at(next, first->end);
        if (next == first->end ||
            lumat_csv_count_cells(&second, c, NULL) == cells)
            return c;
        if (otherwise == 0 && c != LUMAT_BLANKS)
            otherwise = c;
    }
    return otherwise != 0 ? otherwise : ',';
}

/* Are there names in the line at p, and no numbers? -1 after a message. */
static int names_only(const lumat_csv *c, const char *p, char *error,
                      size_t size)
{
    const char *end = c->text + c->length, *line = p;
    int named = 0, skips = c->delimiter != LUMAT_BLANKS;
    double value;
    lumat_cell found;
    for (int64_t col = 1; p != NULL; col++) {
        for (; skips && p < end && *p == c->delimiter; p++)
            col++;
        p = lumat_csv_take_cell(p, end, c->delimiter, &found);
        if (found.is_open) {
            int64_t lines = lumat_csv_lines_between(line, found.start);
            lumat_csv_fail_open(error, size, c->line + lines, col);
            return -1;
        }
        p = lumat_csv_next_cell(p, end, c->delimiter);
        if (found.length == 0)
            continue;
        if (c->header == LUMAT_HEADER_AUTO &&
            lumat_csv_cell_value(&found, &value))
            return 0;
        named = 1;
    }
    if (!named && c->header != LUMAT_HEADER_YES)
        return 0;
    if (c->cols <= LUMAT_MOST_NAMES)
        return 1;
    lumat_csv_fail(error, size,
                   "%lld: it names %lld columns; names of at most %d are read; "
                   "with {header=false} a line has to be numbers",
                   (long long)c->line, (long long)c->cols, LUMAT_MOST_NAMES);
    return -1;
}

/* The lines from p on that are not blank. */
static int64_t count_lines(const lumat_csv *c, const char *p)
{
    const char *end = c->text + c->length;
    int has_quotes = p < end && memchr(p, '"', (size_t)(end - p)) != NULL;
    int64_t count = 0, line = 0;
    for (;; count++) {
        p = lumat_csv_skip_blank_lines(p, end, c->delimiter, &line);
        if (p == end)
            return count;
        const char *last = has_quotes ? NULL : memchr(p, '\n', end - p);
        if (has_quotes) {
            lumat_line l = lumat_csv_line_at(p, end);
            lumat_csv_count_cells(&l, c->delimiter, &last);
        }
        p = last != NULL ? lumat_csv_next_line(last, end) : end;
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
    lumat_line line = lumat_csv_line_at(start, zero);
    return lumat_csv_fail(
        error, size,
        "%lld: column %lld: a zero byte: this is no text, or UTF-16, to be "
        "saved as UTF-8",
        (long long)lumat_csv_lines_between(c->text, start) + 1,
        (long long)lumat_csv_count_cells(&line, c->delimiter, NULL));
}

int lumat_csv_open(lumat_csv *c, char *error, size_t size)
{
    const char *end = c->text + c->length, *p = c->text, *next;
    if (c->length >= 2 &&
        (!memcmp(p, "\xFF\xFE", 2) || !memcmp(p, "\xFE\xFF", 2)))
        return lumat_csv_fail(error, size, "is in UTF-16; save it as UTF-8");
    const char *zero = c->length > 0 ? memchr(p, 0, c->length) : NULL;
    if (c->length >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    c->line = 1;
    p = lumat_csv_skip_blank_lines(p, end, c->delimiter, &c->line);
    if (p == end)
        return lumat_csv_fail(error, size, "is empty");
    lumat_line first = lumat_csv_line_at(p, zero != NULL ? zero : end);
    if (c->delimiter == 0)
        c->delimiter = guess_delimiter(&first);
    if (zero != NULL)
        return fail_zero(c, zero, error, size);
    if (c->delimiter == LUMAT_BLANKS)
        p = lumat_csv_skip_blanks(p, end, LUMAT_BLANKS);
    c->cols = lumat_csv_count_cells(&first, c->delimiter, &next);
    c->has_names =
        c->header == LUMAT_HEADER_NO ? 0 : names_only(c, p, error, size);
    if (c->has_names < 0)
        return 0;
    c->names = (size_t)(p - c->text);
    if (c->has_names) {
        next = lumat_csv_next_line(next, end);
        c->line += lumat_csv_lines_between(p, next);
        p = lumat_csv_skip_blank_lines(next, end, c->delimiter, &c->line);
    }
    c->data = (size_t)(p - c->text);
    count_rows(c);
    return 1;
}

int lumat_csv_name(const lumat_csv *c, size_t *at, const char **text,
                   size_t *length)
{
    const char *end = c->text + c->length;
    lumat_cell found;
    if (*at == SIZE_MAX)
        return 0;
    const char *p =
        lumat_csv_take_cell(c->text + *at, end, c->delimiter, &found);
    p = found.is_open ? NULL : lumat_csv_next_cell(p, end, c->delimiter);
    *at = p == NULL ? SIZE_MAX : (size_t)(p - c->text);
    *text = found.start;
    *length = found.length;
    return 1;
}

int lumat_csv_needs_quotes(const char *name, size_t length, char delimiter)
{
    if (length == 0)
        return delimiter == LUMAT_BLANKS;
    for (size_t i = 0; i < length; i++) {
        if (name[i] == delimiter || strchr("\"\r\n\t", name[i]) != NULL)
            return 1;
    }
    return name[0] == ' ' || name[length - 1] == ' ';
}
