/* Matrix Market's files: their first line, sizes and entries. */
#include "csv_parts.h"
#include "data_formats.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Where a line is read, and where to say what is wrong with it. */
typedef struct scanner {
    const char *p, *end; /* what is left of the line */
    const char *after;   /* where the next one begins */
    const char *last;    /* the end of the text */
    const char *whole;   /* behind its last line that has an end */
    int64_t line;
    char *error;
    size_t size;
} scanner;

static int fail(const scanner *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int fail(const scanner *s, const char *format, ...)
{
    va_list list;
    int n = snprintf(s->error, s->size, "%" PRId64 ": ", s->line);
    va_start(list, format);
    if (n > 0 && (size_t)n < s->size)
        vsnprintf(s->error + n, s->size - (size_t)n, format, list);
    va_end(list);
    return 0;
}

/* --- lines and words ------------------------------------------------------ */

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(scanner *s)
{
    while (s->p < s->end && is_blank(*s->p))
        s->p++;
}

/* Goes to the next line; 0 behind the last. */
static int next_line(scanner *s)
{
    if (s->after >= s->last)
        return 0;
    s->p = s->after;
    const char *end = memchr(s->p, '\n', (size_t)(s->last - s->p));
    s->end = end != NULL ? end : s->last;
    s->after = end != NULL ? end + 1 : s->last;
    s->line++;
    return 1;
}

/* Goes to the next line that has something in it. */
static int next_full_line(scanner *s)
{
    while (next_line(s)) {
        skip_blanks(s);
        if (s->p < s->end)
            return 1;
    }
    return 0;
}

static size_t word_length(const scanner *s)
{
    const char *p = s->p;
    while (p < s->end && !is_blank(*p))
        p++;
    return (size_t)(p - s->p);
}

/* The next word, at most so much of it as a message can show. */
static const char *shown_word(scanner *s, int *length)
{
    enum { MOST = 32 };
    skip_blanks(s);
    size_t n = word_length(s);
    *length = n < MOST ? (int)n : MOST;
    return s->p;
}

/* Takes the next word if it is this one, in any case of letters. */
static int take_word(scanner *s, const char *word)
{
    skip_blanks(s);
    size_t n = word_length(s);
    if (n != strlen(word) || strncasecmp(s->p, word, n) != 0)
        return 0;
    s->p += n;
    return 1;
}

static int take_whole(scanner *s, int64_t *out)
{
    skip_blanks(s);
    const char *start = s->p;
    int64_t value = 0;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9') {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *s->p - '0', &value)) {
            s->p = start;
            return 0;
        }
        s->p++;
    }
    *out = value;
    return s->p > start && (s->p == s->end || is_blank(*s->p));
}

/* What numbers are not written in digits. */
static size_t special_number(const char *p, size_t length, double *out)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"nan", NAN},
                 {"inf", INFINITY},
                 {"+inf", INFINITY},
                 {"-inf", -INFINITY},
                 {"-nan", NAN},
                 {"infinity", INFINITY},
                 {"-infinity", -INFINITY}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (length == strlen(words[i].word) &&
            strncasecmp(p, words[i].word, length) == 0) {
            *out = words[i].value;
            return length;
        }
    return 0;
}

static int take_number(scanner *s, double *out)
{
    skip_blanks(s);
    size_t n = word_length(s);
    size_t taken = lumat_parse_f64(s->p, n, out);
    if (taken == 0)
        taken = special_number(s->p, n, out);
    if (taken == 0 || taken != n)
        return 0;
    s->p += n;
    return 1;
}

/* Nothing but blanks may follow. */
static int ends(scanner *s)
{
    skip_blanks(s);
    return s->p == s->end;
}

/* --- the first line and the sizes ----------------------------------------- */

static const char *skip_to_banner(const char *text, size_t length)
{
    const char *p = text, *end = text + length;
    if (length >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    while (p < end && (is_blank(*p) || *p == '\n'))
        p++;
    return p;
}

int lumat_mtx_is(const char *text, size_t length)
{
    static const char word[] = "MatrixMarket";
    const char *p = skip_to_banner(text, length), *end = text + length;
    const char *start = p;
    while (p < end && *p == '%')
        p++;
    return p > start && (size_t)(end - p) >= sizeof word - 1 &&
           strncasecmp(p, word, sizeof word - 1) == 0;
}

static int fail_word(scanner *s, const char *what, const char *known)
{
    int n;
    const char *word = shown_word(s, &n);
    return fail(s, "%s \"%.*s\" is none of %s", what, n, word, known);
}

static int read_banner(scanner *s, lumat_mtx *m)
{
    int is_there = lumat_mtx_is(m->text, m->length);
    if (!next_full_line(s) || !is_there)
        return fail(s, "does not begin with %%%%MatrixMarket");
    s->p += word_length(s);
    m->is_vector = take_word(s, "vector");
    if (!m->is_vector && !take_word(s, "matrix"))
        return fail_word(s, "object", "matrix, vector");
    m->is_array = take_word(s, "array");
    if (!m->is_array && !take_word(s, "coordinate"))
        return fail_word(s, "format", "coordinate, array");
    m->is_pattern = take_word(s, "pattern");
    m->is_complex = take_word(s, "complex");
    m->is_integer = take_word(s, "integer") || take_word(s, "unsigned-integer");
    if (!m->is_pattern && !m->is_complex && !m->is_integer &&
        !take_word(s, "real") && !take_word(s, "double"))
        return fail_word(s, "field", "real, integer, complex, pattern");
    if (take_word(s, "symmetric"))
        m->symmetry = LUMAT_MTX_SYMMETRIC;
    else if (take_word(s, "skew-symmetric"))
        m->symmetry = LUMAT_MTX_SKEW;
    else if (take_word(s, "hermitian"))
        m->symmetry = LUMAT_MTX_HERMITIAN;
    else if (!take_word(s, "general"))
        return fail_word(s, "symmetry",
                         "general, symmetric, skew-symmetric, hermitian");
    if (!ends(s))
        return fail(s, "has more than five words");
    if (m->is_array && m->is_pattern)
        return fail(s, "an array has no pattern");
    if (m->is_pattern && m->symmetry == LUMAT_MTX_SKEW)
        return fail(s, "a pattern cannot be skew-symmetric");
    if (m->is_vector && m->symmetry != LUMAT_MTX_GENERAL)
        return fail(s, "a vector has no symmetry");
    return 1;
}

/* The elements that an array's file has; -1: too many to count. */
static int64_t array_count(const lumat_mtx *m)
{
    int64_t n = m->rows, count, first = m->symmetry == LUMAT_MTX_SKEW ? -1 : 1;
    if (m->symmetry == LUMAT_MTX_GENERAL)
        return __builtin_mul_overflow(n, m->cols, &count) ? -1 : count;
    if (n == 0)
        return 0;
    return __builtin_mul_overflow(n, n + first, &count) ? -1 : count / 2;
}

/* Can so many entries stand in the rest of the file? The shortest has a digit
 * and a blank for each of its numbers, but the last one. */
static int check_count(scanner *s, const lumat_mtx *m)
{
    uint64_t rest = (uint64_t)(s->last - s->after) + 1;
    uint64_t each = m->is_array ? 0 : m->is_vector ? 2 : 4;
    each += m->is_pattern ? 0 : m->is_complex ? 4 : 2;
    if (m->count >= 0 && (uint64_t)m->count <= rest / each)
        return 1;
    if (m->count < 0)
        return fail(s, "claims more elements than can be counted");
    return fail(s,
                "claims %" PRId64 " entries, too many for the %" PRIu64
                " bytes that follow",
                m->count, rest - 1);
}

static int read_sizes(scanner *s, lumat_mtx *m)
{
    do {
        if (!next_full_line(s))
            return fail(s, "the file ends before the sizes");
    } while (*s->p == '%');
    m->cols = 1;
    if (!take_whole(s, &m->rows) ||
        (!m->is_vector && !take_whole(s, &m->cols)) ||
        (!m->is_array && !take_whole(s, &m->count)) || !ends(s))
        return fail(s, "the sizes are not %s whole numbers",
                    m->is_vector  ? (m->is_array ? "one" : "two")
                    : m->is_array ? "two"
                                  : "three");
    if (m->symmetry != LUMAT_MTX_GENERAL && m->rows != m->cols)
        return fail(s, "a symmetric matrix of %" PRId64 "x%" PRId64, m->rows,
                    m->cols);
    if (m->rows == INT64_MAX)
        return fail(s, "%" PRId64 " rows are too many", m->rows);
    if (m->is_array)
        m->count = array_count(m);
    return check_count(s, m);
}

int lumat_mtx_open(lumat_mtx *m, char *error, size_t size)
{
    scanner s = {.after = skip_to_banner(m->text, m->length),
                 .last = m->text + m->length,
                 .error = error,
                 .size = size};
    for (const char *p = m->text; p < s.after; p++)
        s.line += *p == '\n';
    m->symmetry = LUMAT_MTX_GENERAL;
    if (!read_banner(&s, m) || !read_sizes(&s, m))
        return 0;
    m->data = (size_t)(s.after - m->text);
    m->line = s.line;
    return 1;
}

/* --- entries -------------------------------------------------------------- */

static int take_index(scanner *s, const char *what, int64_t most, int64_t *out)
{
    int n;
    if (!take_whole(s, out)) {
        const char *word = shown_word(s, &n);
        return n == 0
                   ? fail(s, "the %s is missing", what)
                   : fail(s, "%s \"%.*s\" is no whole number", what, n, word);
    }
    if (*out < 1 || *out > most)
        return fail(s, "%s %" PRId64 " is not in 1 to %" PRId64, what, *out,
                    most);
    --*out;
    return 1;
}

static int take_value(scanner *s, const char *what, double *out)
{
    int n;
    if (take_number(s, out))
        return 1;
    const char *word = shown_word(s, &n);
    return n == 0 ? fail(s, "the %s is missing", what)
                  : fail(s, "%s \"%.*s\" is no number", what, n, word);
}

/* The place of an array's next element: down the columns. */
static void step(const lumat_mtx *m, lumat_mtx_place *place)
{
    if (++place->row < m->rows)
        return;
    place->col++;
    place->row = m->symmetry == LUMAT_MTX_GENERAL ? 0
                 : m->symmetry == LUMAT_MTX_SKEW  ? place->col + 1
                                                  : place->col;
}

static int read_entry(scanner *s, const lumat_mtx *m, lumat_mtx_place *place,
                      lumat_mtx_entry *e)
{
    *e = (lumat_mtx_entry){.row = place->row, .col = place->col, .re = 1};
    if (!m->is_array &&
        (!take_index(s, m->is_vector ? "place" : "row", m->rows, &e->row) ||
         (!m->is_vector && !take_index(s, "column", m->cols, &e->col))))
        return 0;
    if (!m->is_pattern && !take_value(s, "value", &e->re))
        return 0;
    if (m->is_complex && !take_value(s, "imaginary part", &e->im))
        return 0;
    if (!ends(s))
        return fail(s, "something follows the entry");
    if (e->row == e->col && m->symmetry == LUMAT_MTX_SKEW &&
        (e->re != 0 || e->im != 0))
        return fail(s, "a skew-symmetric matrix has zeros on its diagonal");
    if (m->is_array)
        step(m, place);
    return 1;
}

/* A place at p, from 1, and the blanks behind it; NULL: it is none as simple.
 */
static const char *take_place(const char *p, int64_t most, int64_t *out)
{
    int64_t value = 0;
    const char *first = p;
    for (; *p >= '0' && *p <= '9' && p - first < 18; p++)
        value = value * 10 + (*p - '0');
    if (!is_blank(*p) && *p != '\n')
        return NULL;
    while (is_blank(*p))
        p++;
    *out = value - 1;
    return value >= 1 && value <= most ? p : NULL;
}

/* The entry of the next line, read as most are written: in one go, and without
 * a word about what is wrong with it. Returns 0, and has gone nowhere, if it is
 * written in another way or wrong. */
static int take_entry(scanner *s, const lumat_mtx *m, lumat_mtx_place *place,
                      lumat_mtx_entry *e)
{
    const char *p = s->after;
    if (m->symmetry == LUMAT_MTX_SKEW || p >= s->whole)
        return 0;
    *e = (lumat_mtx_entry){.row = place->row, .col = place->col, .re = 1};
    if (!m->is_array)
        p = take_place(p, m->rows, &e->row);
    if (p != NULL && !m->is_array && !m->is_vector)
        p = take_place(p, m->cols, &e->col);
    double *const parts[] = {&e->re, &e->im};
    int count = m->is_pattern ? 0 : m->is_complex ? 2 : 1;
    for (int i = 0; i < count && p != NULL; i++) {
        p = lumat_csv_take_f64(p, s->last, '.', parts[i]);
        if (p != NULL && !is_blank(*p) && *p != '\n')
            return 0;
        while (p != NULL && is_blank(*p))
            p++;
    }
    if (p == NULL || *p != '\n')
        return 0;
    if (m->is_array)
        step(m, place);
    s->after = p + 1;
    s->line++;
    return 1;
}

static int64_t stop(const scanner *s, const lumat_mtx_place *place,
                    const lumat_mtx *m)
{
    fail(s, "the file ends behind %" PRId64 " of %" PRId64 " entries",
         place->done, m->count);
    return -1;
}

int64_t lumat_mtx_read(const lumat_mtx *m, lumat_mtx_place *place, int64_t most,
                       lumat_mtx_entry *entries, char *error, size_t size)
{
    scanner s = {.after = m->text + place->at,
                 .last = m->text + m->length,
                 .line = place->line,
                 .error = error,
                 .size = size};
    int64_t left = m->count - place->done, count = 0;
    if (m->is_array && place->done == 0 && m->symmetry == LUMAT_MTX_SKEW)
        place->row = 1;
    most = most < left ? most : left;
    const char *end = memrchr(s.after, '\n', (size_t)(s.last - s.after));
    s.whole = end != NULL ? end + 1 : s.after;
    lumat_csv_prepare();
    for (; count < most; count++, place->done++) {
        if (take_entry(&s, m, place, &entries[count]))
            continue;
        if (!next_full_line(&s))
            return stop(&s, place, m);
        if (!read_entry(&s, m, place, &entries[count]))
            return -1;
    }
    size_t at = (size_t)(s.after - m->text);
    if (m->goes_on != NULL && !m->goes_on(at - place->at)) {
        if (size > 0)
            *error = '\0';
        return -1;
    }
    place->at = at;
    place->line = s.line;
    if (left == 0 && next_full_line(&s)) {
        fail(&s, "something follows the %" PRId64 " entries", m->count);
        return -1;
    }
    return count;
}
