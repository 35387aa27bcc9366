/* Slice strings: "1:3, end" and the like. */
#include "parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct parser {
    const char *p, *end;
    int64_t size; /* of the dimension being parsed */
    char *error;
    size_t error_size;
} parser;

static int fail(parser *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->error, s->error_size, format, args);
    va_end(args);
    return 0;
}

/* No matrix is larger, and so sums of sizes and steps cannot overflow. */
static int is_sliceable(parser *s)
{
    return s->size <= INT64_MAX / 4 ||
           fail(s, "the dimension is too large to slice");
}

int64_t lumat_place(int64_t index, int64_t size)
{
    if (index >= 1 && index <= size)
        return index - 1;
    if (index <= -1 && index >= -size)
        return size + index;
    return -1;
}

static int outside(parser *s, int64_t index)
{
    if (index == 0)
        return fail(s, "index 0: indices start at 1 (size %lld)",
                    (long long)s->size);
    return fail(s, "index %lld is outside 1..%lld", (long long)index,
                (long long)s->size);
}

/* 1-based and at most one place outside, so that empty ranges such as 1:0
 * and end+1:end can be said. */
static int edge(parser *s, int64_t index, int64_t *out)
{
    *out = index < 0 ? s->size + 1 + index : index;
    if (index < -s->size || *out < 0 || *out > s->size + 1)
        return outside(s, index);
    return 1;
}

static int make_range(parser *s, int64_t first, int64_t last, int64_t step,
                      gpu_slice *out)
{
    if (step == 0)
        return fail(s, "a step cannot be 0");
    if (step == INT64_MIN)
        return fail(s, "the step is too large");
    if (!edge(s, first, &first) || !edge(s, last, &last))
        return 0;
    int64_t gap = step > 0 ? last - first : first - last;
    int64_t size = step > 0 ? step : -step;
    *out = (gpu_slice){first - 1, step, gap < 0 ? 0 : gap / size + 1};
    if (out->count == 0) {
        *out = (gpu_slice){0, 1, 0};
        return 1;
    }
    int64_t final = out->first + (out->count - 1) * step;
    if (first < 1 || first > s->size)
        return outside(s, first);
    if (final < 0 || final >= s->size)
        return outside(s, last);
    if (out->count == 1)
        out->step = 1;
    return 1;
}

/* How many places first:step:last has that was written first:last:step, by
 * the habit of other languages: those have no negative places there, and who
 * counts down from a number, by a last place of -1, counts down to 1. */
static int64_t count_swapped(const parser *s, int64_t first, int64_t step,
                             int64_t last, int from_end)
{
    if (first < 1 || last < 1 || first > s->size || last > s->size ||
        step == 0 || step < -s->size || (step < 0 && last > 1 && !from_end))
        return 0;
    int64_t gap = step > 0 ? last - first : first - last;
    return gap < 0 ? 0 : gap / (step > 0 ? step : -step) + 1;
}

static void note_swapped(lumat_part *part, int64_t count)
{
    part->swapped =
        part->slice.count <= 1 && count >= part->slice.count + 2 ? count : 0;
}

int lumat_slice_range(int64_t first, int64_t last, int64_t step, int64_t size,
                      lumat_part *out, char *error, size_t error_size)
{
    parser s = {NULL, NULL, size, error, error_size};
    *out = (lumat_part){.is_index = 0};
    if (!is_sliceable(&s) || !make_range(&s, first, last, step, &out->slice))
        return 0;
    note_swapped(out, count_swapped(&s, first, last, step, 0));
    return 1;
}

static void skip_blanks(parser *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
        s->p++;
}

static int at(parser *s, char c)
{
    skip_blanks(s);
    return s->p < s->end && *s->p == c;
}

static int read_digits(parser *s, int64_t *out)
{
    int64_t value = 0;
    const char *start = s->p;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
        if (value > (INT64_MAX - 9) / 10)
            return fail(s, "the number is too large");
        value = value * 10 + (*s->p - '0');
    }
    *out = value;
    if (s->p == start)
        return fail(s, "expected an index, a range or ':' at '%.*s'",
                    (int)(s->end - s->p < 20 ? s->end - s->p : 20), s->p);
    return 1;
}

/* end, end-2, end+1 */
static int read_end(parser *s, int64_t *out)
{
    int64_t offset = 0;
    s->p += 3;
    *out = s->size;
    if (!at(s, '-') && !at(s, '+'))
        return 1;
    int minus = *s->p++ == '-';
    skip_blanks(s);
    if (!read_digits(s, &offset))
        return 0;
    if (minus ? offset > s->size : offset > 1)
        return fail(s, "end%c%lld is outside 1..%lld", minus ? '-' : '+',
                    (long long)offset, (long long)s->size);
    *out += minus ? -offset : offset;
    return 1;
}

static int is_end(parser *s)
{
    skip_blanks(s);
    return s->end - s->p >= 3 && memcmp(s->p, "end", 3) == 0;
}

static int read_index(parser *s, int64_t *out)
{
    if (is_end(s))
        return read_end(s, out);
    int minus = at(s, '-');
    if (minus)
        s->p++;
    if (!read_digits(s, out))
        return 0;
    if (minus)
        *out = -*out;
    return 1;
}

static int read_step(parser *s, int64_t *out)
{
    skip_blanks(s);
    int minus = at(s, '-');
    if (minus)
        s->p++;
    if (is_end(s))
        return fail(s, "a step is a whole number, not 'end': slices are "
                       "first:last:step");
    if (s->p == s->end || *s->p < '0' || *s->p > '9')
        return fail(s, "a step is a whole number, not '%.*s'",
                    (int)(s->end - s->p < 20 ? s->end - s->p : 20), s->p);
    if (!read_digits(s, out))
        return 0;
    if (minus)
        *out = -*out;
    return 1;
}

static int ends_part(parser *s)
{
    skip_blanks(s);
    return s->p == s->end || *s->p == ',' || *s->p == ':';
}

/* Behind the first ":" of a range: last, or last:step. */
static int read_range(parser *s, int has_first, int64_t first, int from_end,
                      lumat_part *out)
{
    int64_t last = 0, step = 1;
    int has_last = !ends_part(s), is_number = has_last && !is_end(s);
    if (has_last && !read_index(s, &last))
        return 0;
    int has_step = at(s, ':');
    if (has_step) {
        s->p++;
        if (!read_step(s, &step))
            return 0;
    }
    int64_t swapped = has_first && is_number && has_step
                          ? count_swapped(s, first, last, step, from_end)
                          : 0;
    if (!has_first)
        first = step > 0 ? 1 : s->size;
    if (!has_last)
        last = step > 0 ? s->size : 1;
    if (!make_range(s, first, last, step, &out->slice))
        return 0;
    note_swapped(out, swapped);
    return 1;
}

static int read_part(parser *s, lumat_part *out)
{
    if (!is_sliceable(s))
        return 0;
    int64_t first = 0;
    int has_first = !ends_part(s), from_end = is_end(s);
    *out = (lumat_part){.is_index = 0};
    if (has_first && !read_index(s, &first))
        return 0;
    if (at(s, ':')) {
        s->p++;
        return read_range(s, has_first, first, from_end, out);
    }
    if (!has_first)
        return make_range(s, 1, s->size, 1, &out->slice);
    int64_t place = lumat_place(first, s->size);
    out->slice = (gpu_slice){place, 1, 1};
    out->is_index = 1;
    return place >= 0 ? 1 : outside(s, first);
}

int lumat_slice_parse(const char *text, size_t length, int ndim, int64_t rows,
                      int64_t cols, lumat_part out[2], char *error,
                      size_t error_size)
{
    parser s = {text, text + length, rows, error, error_size};
    out[1] = (lumat_part){.slice = {0, 1, cols}};
    if (!read_part(&s, &out[0]))
        return 0;
    if (at(&s, ',')) {
        if (ndim == 1)
            return fail(&s, "a vector has one index, not two");
        s.p++;
        s.size = cols;
        if (!read_part(&s, &out[1]))
            return 0;
    }
    skip_blanks(&s);
    if (s.p != s.end)
        return fail(&s, "unexpected '%.*s'",
                    (int)(s.end - s.p < 20 ? s.end - s.p : 20), s.p);
    return 1;
}
