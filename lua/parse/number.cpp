/* Numbers and text by the C++ library's from_chars and to_chars. */
#include <cmath>
#include <charconv>
#include <limits>
#include "parse.h"

namespace
{

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Is the decimal number in first .. last, which is out of range, too large?
 * It is when the place of its first digit that counts is above the units. */
bool is_large(const char *first, const char *last)
{
    const long far = 1000000;
    long place = 0;
    bool seen = false, point = false;
    const char *p = first;
    for (; p < last && (is_digit(*p) || *p == '.'); p++) {
        if (*p == '.') {
            point = true;
        } else {
            seen = seen || *p != '0';
            place += !point && seen ? 1 : point && !seen ? -1 : 0;
        }
    }
    long exponent = 0;
    bool negative = false;
    if (p < last)
        p++;
    if (p < last && !is_digit(*p))
        negative = *p++ == '-';
    for (; p < last && exponent < far; p++)
        exponent = exponent * 10 + (*p - '0');
    return place + (negative ? -exponent : exponent) > 0;
}

template <typename T> size_t parse(const char *text, size_t length, T *out)
{
    const char *first = text, *last = text + length;
    bool negative = length > 0 && *first == '-';
    if (length > 0 && (*first == '+' || *first == '-'))
        first++;
    if (first == last || (!is_digit(*first) && *first != '.'))
        return 0;
    T value = 0;
    auto end = std::from_chars(first, last, value);
    if (end.ec == std::errc::invalid_argument)
        return 0;
    if (end.ec == std::errc::result_out_of_range)
        value = is_large(first, end.ptr) ? std::numeric_limits<T>::infinity()
                                         : T(0);
    *out = negative ? -value : value;
    return size_t(end.ptr - text);
}

template <typename T> size_t print(T x, int digits, char *out)
{
    char *last = out + LUMAT_NUMBER_ROOM;
    if (digits > LUMAT_MOST_DIGITS)
        digits = LUMAT_MOST_DIGITS;
    auto end = digits > 0 ? std::to_chars(out, last, x,
                                          std::chars_format::general, digits)
                          : std::to_chars(out, last, x);
    return size_t(end.ptr - out);
}

} // namespace

size_t lumat_parse_f64(const char *text, size_t length, double *out)
{
    return parse(text, length, out);
}

size_t lumat_parse_f32(const char *text, size_t length, float *out)
{
    return parse(text, length, out);
}

size_t lumat_print_f64(double x, int digits, char out[LUMAT_NUMBER_ROOM])
{
    return print(x, digits, out);
}

size_t lumat_print_f32(float x, int digits, char out[LUMAT_NUMBER_ROOM])
{
    return print(x, digits, out);
}

const char *lumat_special(double x)
{
    if (std::isnan(x))
        return "NaN";
    if (std::isinf(x))
        return x < 0 ? "-Inf" : "Inf";
    return nullptr;
}
