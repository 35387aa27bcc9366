/* Numbers in tables: nearly all have at most 19 digits and a small exponent,
 * and those are read here by one product of whole numbers. All others, and the
 * one in some hundred that this leaves undecided, are the C++ library's.
 *
 * A decimal w * 10^q, with w below 2^64, is w * 5^q * 2^q. 5^q is known to 64
 * bits, rounded down, so that the product's upper 64 bits are too small by less
 * than 2. Where the bits behind the mantissa do not tell on which side of the
 * middle between two floats it lies, it is left undecided. (Eisel and Lemire
 * take a second product there: "Number parsing at a gigabyte per second",
 * 2021.) */
#include <math.h>
#include <string.h>
#include "csv_parts.h"

enum { FAR = 27, MOST_DIGITS = 19 }; /* 5^27 < 2^64 < 5^28; 10^19 < 2^64 */

/* 5^q is mantissa * 2^exponent. */
static struct {
    uint64_t mantissa;
    int exponent;
} powers[2 * FAR + 1];

void lumat_csv_prepare(void)
{
    uint64_t power = 1;
    for (int q = 0; q <= FAR; q++, power *= 5) {
        int bits = 64 - __builtin_clzll(power);
        unsigned __int128 one = (unsigned __int128)1 << (63 + bits);
        powers[FAR + q].mantissa = power << (64 - bits);
        powers[FAR + q].exponent = bits - 64;
        if (q == 0)
            continue;
        powers[FAR - q].mantissa = (uint64_t)(one / power);
        powers[FAR - q].exponent = -(63 + bits);
    }
}

/* The nearest float with so many bits of mantissa to w * 10^q, as its mantissa
 * and the exponent of that; 0: undecided. */
static inline int round_decimal(uint64_t w, int q, int bits, uint64_t *mantissa,
                                int *exponent)
{
    int zeros = __builtin_clzll(w);
    unsigned __int128 product =
        (unsigned __int128)(w << zeros) * powers[FAR + q].mantissa;
    uint64_t upper = (uint64_t)(product >> 64);
    int shift = 63 - bits + (int)(upper >> 63);
    uint64_t half = (uint64_t)1 << (shift - 1);
    uint64_t rest = upper & (2 * half - 1);
    if (rest == half || rest == half - 1)
        return 0;
    *mantissa = (upper >> shift) + (rest > half);
    *exponent = shift + 64 - zeros + powers[FAR + q].exponent + q;
    return 1;
}

static inline int make_f64(uint64_t w, int q, int is_negative, double *out)
{
    uint64_t mantissa;
    int exponent;
    uint64_t sign = (uint64_t)is_negative << 63;
    if (w == 0) {
        memcpy(out, &sign, sizeof sign);
        return 1;
    }
    if (!round_decimal(w, q, 53, &mantissa, &exponent))
        return 0;
    /* the leading bit of the mantissa counts as one more exponent */
    uint64_t bits = ((uint64_t)(exponent + 1074) << 52) + mantissa + sign;
    memcpy(out, &bits, sizeof bits);
    return 1;
}

static inline int make_f32(uint64_t w, int q, int is_negative, float *out)
{
    uint64_t mantissa;
    int exponent;
    uint32_t sign = (uint32_t)is_negative << 31;
    if (w == 0) {
        memcpy(out, &sign, sizeof sign);
        return 1;
    }
    if (!round_decimal(w, q, 24, &mantissa, &exponent) || exponent + 149 < 1 ||
        exponent + 150 > 253)
        return 0;
    uint32_t bits =
        ((uint32_t)(exponent + 149) << 23) + (uint32_t)mantissa + sign;
    memcpy(out, &bits, sizeof bits);
    return 1;
}

static inline int is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Eight digits at once, where there are as many. */
static inline int take_eight(const char *p, uint64_t *w)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t v;
    memcpy(&v, p, sizeof v);
    if (((v & 0xF0F0F0F0F0F0F0F0) |
         (((v + 0x0606060606060606) & 0xF0F0F0F0F0F0F0F0) >> 4)) !=
        0x3333333333333333)
        return 0;
    v -= 0x3030303030303030;
    v = v * 10 + (v >> 8); /* pairs, then fours, then all */
    v = ((v & 0x000000FF000000FF) * (100 + ((uint64_t)1000000 << 32)) +
         ((v >> 16) & 0x000000FF000000FF) * (1 + ((uint64_t)10000 << 32))) >>
        32;
    *w = *w * 100000000 + v;
    return 1;
#else
    (void)p;
    (void)w;
    return 0;
#endif
}

/* The digits at p; the next eight bytes behind each may be read up to end. */
static inline const char *take_digits(const char *p, const char *end,
                                      uint64_t *w)
{
    while (end - p >= 8 && take_eight(p, w))
        p += 8;
    for (; is_digit(*p); p++)
        *w = *w * 10 + (uint64_t)(*p - '0');
    return p;
}

typedef struct decimal {
    uint64_t w;
    int q, is_negative;
} decimal;

/* The number at p. Returns where it ends, or NULL: none that is as simple. */
static inline __attribute__((always_inline)) const char *
take_decimal(const char *p, const char *end, char point, decimal *d)
{
    uint64_t w = 0;
    int64_t exponent = 0;
    d->is_negative = *p == '-';
    p += *p == '-' || *p == '+';
    const char *first = p, *last;
    p = take_digits(p, end, &w);
    int64_t digits = p - first;
    if (*p == point) {
        const char *fraction = ++p;
        p = take_digits(p, end, &w);
        exponent = fraction - p;
        digits -= exponent;
    }
    last = p;
    if (digits == 0)
        return NULL;
    if (digits > MOST_DIGITS) { /* zeros before it do not count */
        for (; first < last && (*first == '0' || *first == point); first++)
            digits -= *first == '0';
        if (digits > MOST_DIGITS)
            return NULL;
    }
    if (*p == 'e' || *p == 'E') {
        int64_t given = 0;
        int is_small = *++p == '-';
        p += *p == '-' || *p == '+';
        const char *start = p;
        for (; is_digit(*p) && p - start < 5; p++)
            given = given * 10 + (*p - '0');
        if (p == start || is_digit(*p))
            return NULL;
        exponent += is_small ? -given : given;
    }
    if (exponent < -FAR || exponent > FAR) {
        if (w != 0)
            return NULL;
        exponent = 0;
    }
    d->w = w;
    d->q = (int)exponent;
    return p;
}

const char *lumat_csv_take_f64(const char *p, const char *end, char point,
                               double *out)
{
    decimal d;
    const char *after = take_decimal(p, end, point, &d);
    if (after != NULL && make_f64(d.w, d.q, d.is_negative, out))
        return after;
    if (point != '.')
        return NULL;
    size_t used = lumat_parse_f64(p, (size_t)(end - p), out);
    return used > 0 ? p + used : NULL;
}

const char *lumat_csv_take_f32(const char *p, const char *end, char point,
                               float *out)
{
    decimal d;
    const char *after = take_decimal(p, end, point, &d);
    if (after != NULL && make_f32(d.w, d.q, d.is_negative, out))
        return after;
    if (point != '.')
        return NULL;
    size_t used = lumat_parse_f32(p, (size_t)(end - p), out);
    return used > 0 ? p + used : NULL;
}
