/* How the numbers of one column are written: pure, without Lua or a device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "format.h"
#include "parse.h"
#include "settings.h"

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
    *c = (lumat_column){.digits = lumat_print_limits()->digits};
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
