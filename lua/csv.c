/* Opens a table of numbers: delimiter, names, columns, a bound for the rows. */
#include <string.h>
#include "csv_cell.h"

/* The start of the line after the one at p, cells in quotes respected. */
static const char *after_line(const char *p, const char *end, char delimiter)
{
    lumat_cell ignored;
    for (;;) {
        const char *q = lumat_csv_take_cell(p, end, delimiter, &ignored);
        p = lumat_csv_next_cell(q, end, delimiter);
        if (p == NULL)
            return lumat_csv_next_line(q, end);
    }
}

/* The delimiter that gives the first two lines the same number of cells, more
 * than one; else one that gives the first more than one; else a comma. */
static char guess_delimiter(const char *first, const char *end)
{
    static const char candidates[] = {'\t', ';', ',', ' '};
    char otherwise = ',';
    for (size_t i = sizeof candidates; i-- > 0;) {
        char c = candidates[i];
        if (c != LUMAT_BLANKS && lumat_csv_count_cells(first, end, c) > 1)
            otherwise = c;
    }
    for (size_t i = 0; i < sizeof candidates; i++) {
        char c = candidates[i];
        int64_t line = 0, cells = lumat_csv_count_cells(first, end, c);
        const char *second = lumat_csv_skip_blank_lines(
            after_line(first, end, c), end, c, &line);
        if (cells > 1 &&
            (second == end || lumat_csv_count_cells(second, end, c) == cells))
            return c;
    }
    return otherwise;
}

static int names_only(const char *p, const char *end, char delimiter)
{
    int named = 0;
    double value;
    lumat_cell found;
    while (p != NULL) {
        p = lumat_csv_next_cell(lumat_csv_take_cell(p, end, delimiter, &found),
                                end, delimiter);
        if (found.length > 0 && lumat_csv_cell_value(&found, &value))
            return 0;
        named = named || found.length > 0;
    }
    return named;
}

static void bound_rows(lumat_csv *c)
{
    const char *end = c->text + c->length;
    int64_t lines = lumat_csv_count_lines(c->text + c->data, end);
    int64_t by_size = (int64_t)(c->length - c->data) / c->cols + 1;
    c->most_rows = c->data == c->length ? 0 : lines < by_size ? lines : by_size;
}

int lumat_csv_open(lumat_csv *c, char *error, size_t size)
{
    const char *end = c->text + c->length, *p = c->text;
    if (c->length >= 2 &&
        (!memcmp(p, "\xFF\xFE", 2) || !memcmp(p, "\xFE\xFF", 2)))
        return lumat_csv_fail(error, size, "is in UTF-16; save it as UTF-8");
    if (c->length >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    c->line = 1;
    p = lumat_csv_skip_blank_lines(p, end, c->delimiter, &c->line);
    if (p == end)
        return lumat_csv_fail(error, size, "is empty");
    if (c->delimiter == 0)
        c->delimiter = guess_delimiter(p, end);
    if (c->delimiter == LUMAT_BLANKS)
        p = lumat_csv_skip_blanks(p, end, LUMAT_BLANKS);
    c->cols = lumat_csv_count_cells(p, end, c->delimiter);
    c->has_names =
        c->header == LUMAT_HEADER_YES ||
        (c->header == LUMAT_HEADER_AUTO && names_only(p, end, c->delimiter));
    c->names = (size_t)(p - c->text);
    if (c->has_names) {
        const char *next = after_line(p, end, c->delimiter);
        c->line += lumat_csv_lines_between(p, next);
        p = lumat_csv_skip_blank_lines(next, end, c->delimiter, &c->line);
    }
    c->data = (size_t)(p - c->text);
    bound_rows(c);
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
    p = lumat_csv_next_cell(p, end, c->delimiter);
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
