/* The pieces that printed values are put together from: the numbers of a
 * column, counts, padding, colours. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "parse.h"
#include "print_parts.h"
#include "settings.h"

/* --- the numbers of one column -------------------------------------------- */
/* Pure, without Lua or a device. */

static const double PLAIN_BELOW = 1e6;    /* beyond it: e-notation */
static const double INTEGER_BELOW = 1e15; /* the same, whole numbers */
static const double LOSS_ALLOWED = 0.05;
enum { USUAL_DIGITS = 5, SHORT_DIGITS = 3 };

static int is_integer(double x)
{
    return isfinite(x) && x == floor(x);
}

static int exponent_of(const lumat_column *c, double x)
{
    char text[LUMAT_CELL];
    snprintf(text, sizeof text, "%.*e", c->digits - 1, x);
    return atoi(strchr(text, 'e') + 1);
}

/* Decimals that show the significant digits of a column's largest magnitude; a
 * zero before the point counts as one of them when no zero follows it. 1 when
 * plain notation would be no shorter than e-notation: no cell then keeps its
 * value in plain notation. */
static int decimals_for(const lumat_column *c, double largest)
{
    int most = c->digits - 1;
    if (largest == 0)
        return 1;
    int e = exponent_of(c, largest);
    if (e < -4)
        return 1;
    if (e < 0)
        return e == -1 ? most : most - e;
    return e < most ? most - e : 1;
}

static int trailing_zeros(const char *text, size_t length)
{
    int zeros = 0;
    while (length > 0 && text[length - 1] == '0') {
        zeros++;
        length--;
    }
    return zeros;
}

/* Is x written in plain notation in this column? */
static int is_plain(const lumat_column *c, double x)
{
    if (c->always_e)
        return 0;
    if (c->integers)
        return fabs(x) < INTEGER_BELOW;
    if (fabs(x) >= PLAIN_BELOW)
        return 0;
    char text[LUMAT_CELL];
    snprintf(text, sizeof text, "%.*f", c->decimals, x);
    return fabs(strtod(text, NULL) - x) <= LOSS_ALLOWED * fabs(x);
}

/* Takes away the decimals that are zero in every cell, all but one. */
static void trim_decimals(lumat_column *c, const double *values, int64_t count,
                          int64_t stride)
{
    char text[LUMAT_CELL];
    int common = c->decimals - 1;
    for (int64_t i = 0; i < count && common > 0; i++) {
        double x = values[i * stride];
        if (x == 0 || !(fabs(x) < PLAIN_BELOW))
            continue;
        int n = snprintf(text, sizeof text, "%.*f", c->decimals, x);
        int zeros = trailing_zeros(text, (size_t)n);
        common = zeros < common ? zeros : common;
    }
    c->decimals -= common;
}

/* A few cells in e-notation take 3 digits, unless more than the usual ones are
 * wanted; a column of nothing else takes all, less the zeros they share. */
static void fit_exponents(lumat_column *c, const double *values, int64_t count,
                          int64_t stride)
{
    char text[LUMAT_CELL];
    int most = c->digits - 1, common;
    c->exponents = c->digits > USUAL_DIGITS || c->digits < SHORT_DIGITS
                       ? most
                       : SHORT_DIGITS - 1;
    common = most - c->exponents;
    for (int64_t i = 0; i < count; i++) {
        double x = values[i * stride];
        if (x == 0 || !isfinite(x))
            continue;
        if (is_plain(c, x))
            return;
        snprintf(text, sizeof text, "%.*e", most, x);
        int zeros = trailing_zeros(text, (size_t)(strchr(text, 'e') - text));
        common = zeros < common ? zeros : common;
    }
    c->exponents = most - common;
}

void lumat_column_fit_as(lumat_column *c, const double *values, int64_t count,
                         int64_t stride)
{
    char text[LUMAT_CELL];
    double largest = 0;
    c->integers = 1;
    c->decimals = c->width = 0;
    for (int64_t i = 0; i < count; i++) {
        double x = values[i * stride], size = fabs(x);
        if (isfinite(x) && !is_integer(x))
            c->integers = 0;
        if (size < PLAIN_BELOW && size > largest)
            largest = size;
    }
    if (!c->integers && !c->always_e) {
        c->decimals = decimals_for(c, largest);
        trim_decimals(c, values, count, stride);
    }
    fit_exponents(c, values, count, stride);
    for (int64_t i = 0; i < count; i++) {
        int width = lumat_column_cell(c, values[i * stride], text);
        c->width = width > c->width ? width : c->width;
    }
}

void lumat_column_fit(lumat_column *c, const double *values, int64_t count,
                      int64_t stride)
{
    *c = (lumat_column){.digits = lumat_settings_now()->digits};
    lumat_column_fit_as(c, values, count, stride);
}

int lumat_column_cell(const lumat_column *c, double x, char out[LUMAT_CELL])
{
    const char *special = lumat_special(x);
    if (special)
        return snprintf(out, LUMAT_CELL, "%s", special);
    if (x == 0)
        return snprintf(out, LUMAT_CELL, "%s%*s", signbit(x) ? "-0" : "0",
                        c->decimals > 0 ? c->decimals + 1 : 0, "");
    if (is_plain(c, x))
        return snprintf(out, LUMAT_CELL, "%.*f", c->decimals, x);
    return snprintf(out, LUMAT_CELL, "%.*e", c->exponents, x);
}

/* --- pieces of text ------------------------------------------------------- */

enum { SCREEN_WIDTH = 80, SCREEN_HEIGHT = 24 };
enum { PROMPT_LINES = 6, LEAST_LINES = 7, NO_LIMIT = INT32_MAX };

#define DIM "\033[2m"
#define RED_BOLD "\033[1;31m"
#define YELLOW "\033[33m"
#define RESET "\033[0m"

lumat_style lumat_style_of(const lumat_style *style)
{
    lumat_style s = *style;
    if (s.width <= 0)
        s.width = SCREEN_WIDTH;
    if (s.height <= 0)
        s.height = SCREEN_HEIGHT;
    return s;
}

int64_t lumat_line_limit(const lumat_style *style)
{
    int64_t lines = (int64_t)style->height - PROMPT_LINES;
    if (style->full)
        return NO_LIMIT;
    if (lumat_settings_now()->rows > 0)
        return lumat_settings_now()->rows;
    return lines > LEAST_LINES ? lines : LEAST_LINES;
}

void lumat_line_edges(int64_t limit, int64_t *head, int64_t *tail)
{
    int64_t edge = lumat_settings_now()->edge, most = 2 * limit / 3;
    *head = edge < most ? edge : most;
    *tail = (*head + 1) / 2;
}

int lumat_digits(int64_t n)
{
    int digits = 1;
    while (n >= 10) {
        n /= 10;
        digits++;
    }
    return digits;
}

void lumat_add_count(luaL_Buffer *b, int64_t n)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%lld", (long long)n);
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            luaL_addchar(b, ' ');
        luaL_addchar(b, text[i]);
    }
}

static int has_shown_nan;

int lumat_has_shown_nan(void)
{
    int had = has_shown_nan;
    has_shown_nan = 0;
    return had;
}

void lumat_add_specials(luaL_Buffer *b, const char *lead, int64_t nan,
                        int64_t inf)
{
    has_shown_nan |= nan > 0;
    if (nan + inf > 0)
        luaL_addstring(b, lead);
    if (nan > 0) {
        lumat_add_count(b, nan);
        luaL_addstring(b, " NaN");
    }
    if (nan > 0 && inf > 0)
        luaL_addstring(b, ", ");
    if (inf > 0) {
        lumat_add_count(b, inf);
        luaL_addstring(b, " Inf");
    }
}

static void add_place(luaL_Buffer *b, const gpu_matrix *m,
                      const lumat_hidden *h)
{
    char text[80];
    if (m->ndim == 1)
        snprintf(text, sizeof text, " (first at [%lld])",
                 (long long)h->row + 1);
    else
        snprintf(text, sizeof text, " (first at [%lld, %lld])",
                 (long long)h->row + 1, (long long)h->col + 1);
    luaL_addstring(b, text);
}

void lumat_add_hidden(luaL_Buffer *b, const gpu_matrix *m,
                      const lumat_hidden *h)
{
    luaL_addstring(b, "\n  hidden: ");
    lumat_add_count(b, h->count);
    luaL_addstring(b, " of ");
    lumat_add_count(b, gpu_size(m));
    if (m->dtype == GPU_BOOL)
        return;
    if (h->nan + h->inf == 0) {
        luaL_addstring(b, ", no NaN or Inf");
        return;
    }
    lumat_add_specials(b, ", ", h->nan, h->inf);
    add_place(b, m, h);
}

static void add_blanks(luaL_Buffer *b, int64_t count)
{
    while (count-- > 0)
        luaL_addchar(b, ' ');
}

/* Text of `columns` columns at the right of width, in the colour given (NULL:
 * none). */
static void add_painted(luaL_Buffer *b, const lumat_style *s, const char *text,
                        int columns, int64_t width, const char *colour)
{
    int painted = s->colour && colour != NULL;
    add_blanks(b, width - columns);
    if (painted)
        luaL_addstring(b, colour);
    luaL_addstring(b, text);
    if (painted)
        luaL_addstring(b, RESET);
}

void lumat_add_padded(luaL_Buffer *b, const lumat_style *s, const char *text,
                      int columns, int64_t width, enum lumat_paint paint)
{
    add_painted(b, s, text, columns, width, paint == LUMAT_DIM ? DIM : NULL);
}

void lumat_add_number(luaL_Buffer *b, const lumat_style *s, int64_t n,
                      int64_t width)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%lld", (long long)n);
    add_painted(b, s, text, length, width, DIM);
}

static const char *colour_of(double x)
{
    if (isnan(x))
        return RED_BOLD;
    if (isinf(x))
        return YELLOW;
    return x == 0 ? DIM : NULL;
}

void lumat_add_cell(luaL_Buffer *b, const lumat_style *s, const lumat_column *c,
                    double x, int64_t width)
{
    char text[LUMAT_CELL];
    int length = lumat_column_cell(c, x, text);
    add_painted(b, s, text, length, width, colour_of(x));
}

/* --- complex numbers --------------------------------------------------------
 */

enum { JOINING = 4 }; /* of " + " and "i" */

/* Wide enough for the sizes of imaginary parts. */
static void fit_sizes(lumat_column *c, const double *values, int64_t count,
                      int64_t stride)
{
    lumat_column other;
    char text[LUMAT_CELL];
    lumat_column_fit(&other, values, count, stride);
    *c = other;
    c->width = 0;
    for (int64_t i = 0; i < count; i++) {
        int width = lumat_column_cell(c, fabs(values[i * stride]), text);
        c->width = width > c->width ? width : c->width;
    }
}

void lumat_pair_fit(lumat_pair_column *c, const double *values, int is_complex,
                    int64_t count, int64_t stride)
{
    *c = (lumat_pair_column){.is_complex = is_complex};
    lumat_column_fit(&c->re, values, count, stride);
    c->width = c->re.width;
    if (!is_complex)
        return;
    fit_sizes(&c->im, values + 1, count, stride);
    c->width += JOINING + c->im.width;
}

void lumat_add_pair(luaL_Buffer *b, const lumat_style *s,
                    const lumat_pair_column *c, const double *x, int64_t width)
{
    char cell[LUMAT_CELL];
    if (!c->is_complex) {
        lumat_add_cell(b, s, &c->re, x[0], width);
        return;
    }
    int is_negative = signbit(x[1]) && !isnan(x[1]);
    lumat_add_cell(b, s, &c->re, x[0], width - JOINING - c->im.width);
    luaL_addstring(b, is_negative ? " - " : " + ");
    int length = lumat_column_cell(&c->im, fabs(x[1]), cell);
    while (length > 0 && cell[length - 1] == ' ')
        cell[--length] = '\0';
    add_blanks(b, c->im.width - length);
    add_painted(b, s, cell, length, length, colour_of(x[1]));
    luaL_addchar(b, 'i');
}

static int trimmed_cell(const lumat_column *c, double x, char *out)
{
    int n = lumat_column_cell(c, x, out);
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
    return n;
}

int lumat_pair_text(const lumat_pair_column *c, const double *x,
                    char out[LUMAT_PAIR])
{
    char im[LUMAT_CELL];
    int n = trimmed_cell(&c->re, x[0], out);
    if (!c->is_complex)
        return n;
    trimmed_cell(&c->im, fabs(x[1]), im);
    return n + snprintf(out + n, LUMAT_PAIR - (size_t)n, " %c %si",
                        signbit(x[1]) && !isnan(x[1]) ? '-' : '+', im);
}
