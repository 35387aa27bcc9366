/* Numbers and text, fast and whatever the locale. C calls C++ here. */
#ifndef LUMAT_NUMBER_H
#define LUMAT_NUMBER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the number at the start of text (decimal, an optional sign before it)
 * and returns how many characters it took, 0 if there is none. The nearest
 * number of the type; beyond its range, infinity or zero. */
size_t lumat_parse_f64(const char *text, size_t length, double *out);
size_t lumat_parse_f32(const char *text, size_t length, float *out);

enum { LUMAT_NUMBER_ROOM = 32, LUMAT_MOST_DIGITS = 17 };

/* Writes x and returns the length, without a zero byte. digits 0: the fewest
 * that read back as x; else so many significant digits. */
size_t lumat_print_f64(double x, int digits, char out[LUMAT_NUMBER_ROOM]);
size_t lumat_print_f32(float x, int digits, char out[LUMAT_NUMBER_ROOM]);

/* "NaN", whatever its sign, "Inf" or "-Inf", as they are wherever numbers are
 * shown; NULL for any other number. Files have the words of their formats. */
const char *lumat_special(double x);

#ifdef __cplusplus
}
#endif

#endif
