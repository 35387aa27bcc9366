/* What the files that read numbers and tables as text share, and nobody else
 * sees. */
#ifndef LUMAT_CSV_PARTS_H
#define LUMAT_CSV_PARTS_H

#include "csv.h"
#include "parse.h"

/* The number at p, before end; behind it is a byte that belongs to none, such
 * as 0 at end itself. Returns where it ends, or NULL: there is none, or where
 * the point is no point none that is simple. Once before: lumat_csv_prepare. */
const char *lumat_csv_take_f64(const char *p, const char *end, char point,
                               double *out);
const char *lumat_csv_take_f32(const char *p, const char *end, char point,
                               float *out);

/* The date that all of the text is; has: LUMAT_DATE_… are added. Returns 0 when
 * it is none. */
int lumat_csv_take_date(const char *text, size_t length, const char *format,
                        double *out, unsigned char *has);

#endif
