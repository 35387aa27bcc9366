/* Dates in tables, as seconds since 1970 in UTC: ISO 8601's, and others by a
 * format of strftime's letters. Days are counted by the rule of the Gregorian
 * calendar, before it was made, too; there are no leap seconds. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "csv_parts.h"

enum { DAY = 86400, MICRO = 1000000, FIRST_YEAR = 0, LAST_YEAR = 9999 };

static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* A time as it is written; month and day from 1. */
typedef struct moment {
    int year, month, day, hour, minute, second, micros, of_year;
} moment;

static int is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_of(int year, int month)
{
    static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days from 1 January 1970 to 1 March of the year, which begins one whose
 * leap day comes last. */
static int64_t days_to_march(int64_t year)
{
    return year * 365 + year / 4 - year / 100 + year / 400 - 719468;
}

static int64_t days_to(const moment *t)
{
    int m = (t->month + 9) % 12; /* from March */
    int64_t year = t->year - (t->month < 3);
    int64_t before = year < 0 ? -365 - 719468 : days_to_march(year);
    return before + (153 * m + 2) / 5 + t->day - 1;
}

/* Seconds, or 0 when there is no such time. */
static int to_seconds(const moment *t, int64_t shift, double *out)
{
    if (t->month < 1 || t->month > 12 || t->day < 1 ||
        t->day > days_of(t->year, t->month) || t->hour > 23 || t->minute > 59 ||
        t->second > 59)
        return 0;
    int64_t seconds =
        days_to(t) * DAY + t->hour * 3600 + t->minute * 60 + t->second - shift;
    *out = (double)seconds + t->micros / (double)MICRO;
    return 1;
}

static int is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Exactly so many digits. Returns where they end, or NULL. */
static const char *take_digits(const char *p, const char *end, int count,
                               int *out)
{
    *out = 0;
    if (end - p < count)
        return NULL;
    for (; count > 0; count--, p++) {
        if (!is_digit(*p))
            return NULL;
        *out = *out * 10 + (*p - '0');
    }
    return p;
}

/* The fraction behind a point at p; more than six digits are cut. */
static const char *take_fraction(const char *p, const char *end, int *micros)
{
    int unit = MICRO / 10;
    *micros = 0;
    if (end - p < 2 || (*p != '.' && *p != ',') || !is_digit(p[1]))
        return p;
    for (p++; p < end && is_digit(*p); p++, unit /= 10)
        *micros += (*p - '0') * unit;
    return p;
}

/* "Z", "+02", "+0200", "+02:00": seconds east of Greenwich. NULL: no zone. */
static const char *take_zone(const char *p, const char *end, int64_t *shift)
{
    int hours, minutes = 0, sign = *p == '-' ? -1 : 1;
    if (*p == 'Z' || *p == 'z')
        return p + 1;
    if (*p != '+' && *p != '-')
        return NULL;
    p = take_digits(p + 1, end, 2, &hours);
    if (p != NULL && p < end)
        p = take_digits(p + (*p == ':'), end, 2, &minutes);
    if (p == NULL || hours > 23 || minutes > 59)
        return NULL;
    *shift = sign * (hours * 3600 + minutes * 60);
    return p;
}

/* 2026-11-23, 2026-11-23 10:05, …T10:05:07.25Z */
static int take_iso(const char *p, const char *end, double *out,
                    unsigned char *has)
{
    moment t = {0};
    int64_t shift = 0;
    unsigned char parts = 0;
    p = take_digits(p, end, 4, &t.year);
    if (p == NULL || end - p < 6 || *p != '-' ||
        take_digits(p + 1, end, 2, &t.month) == NULL || p[3] != '-' ||
        take_digits(p + 4, end, 2, &t.day) == NULL)
        return 0;
    p += 6;
    if (p < end) {
        if (*p != ' ' && *p != 'T' && *p != 't')
            return 0;
        parts = LUMAT_DATE_MINUTES | (*p == ' ' ? 0 : LUMAT_DATE_T);
        p = take_digits(p + 1, end, 2, &t.hour);
        if (p == NULL || p == end || *p != ':' ||
            (p = take_digits(p + 1, end, 2, &t.minute)) == NULL)
            return 0;
        if (p < end && *p == ':') {
            parts |= LUMAT_DATE_SECONDS;
            p = take_digits(p + 1, end, 2, &t.second);
            if (p == NULL)
                return 0;
            p = take_fraction(p, end, &t.micros);
            parts |= t.micros != 0 ? LUMAT_DATE_FRACTION : 0;
        }
        if (p < end && (p = take_zone(p, end, &shift)) == NULL)
            return 0;
    }
    if (p != end || !to_seconds(&t, shift, out))
        return 0;
    *has |= parts;
    return 1;
}

/* One or two digits, as people write days and months. */
static const char *take_short(const char *p, const char *end, int most,
                              int *out)
{
    int n = 0;
    while (n < most && p + n < end && is_digit(p[n]))
        n++;
    return n > 0 ? take_digits(p, end, n, out) : NULL;
}

static const char *take_month(const char *p, const char *end, int *month)
{
    for (int i = 0; i < 12 && end - p >= 3; i++) {
        if (strncasecmp(p, months[i], 3) == 0) {
            *month = i + 1;
            return p + 3;
        }
    }
    return NULL;
}

/* What a letter of the format stands for. */
static const char *take_part(char letter, const char *p, const char *end,
                             moment *t, unsigned char *has)
{
    switch (letter) {
    case 'Y':
        return take_digits(p, end, 4, &t->year);
    case 'y':
        p = take_digits(p, end, 2, &t->year);
        t->year += t->year < 69 ? 2000 : 1900; /* as POSIX has it */
        return p;
    case 'm':
        return take_short(p, end, 2, &t->month);
    case 'b':
        return take_month(p, end, &t->month);
    case 'd':
        return take_short(p, end, 2, &t->day);
    case 'j':
        return take_short(p, end, 3, &t->of_year);
    case 'H':
        return take_short(p, end, 2, &t->hour);
    case 'M':
        *has |= LUMAT_DATE_MINUTES;
        return take_short(p, end, 2, &t->minute);
    case 'S':
        *has |= LUMAT_DATE_MINUTES | LUMAT_DATE_SECONDS;
        p = take_short(p, end, 2, &t->second);
        return p != NULL ? take_fraction(p, end, &t->micros) : NULL;
    default:
        return p < end && *p == letter ? p + 1 : NULL;
    }
}

int lumat_csv_take_date(const char *text, size_t length, const char *format,
                        double *out, unsigned char *has)
{
    const char *p = text, *end = text + length;
    if (format == NULL)
        return take_iso(p, end, out, has);
    moment t = {.year = 1970, .month = 1, .day = 1};
    unsigned char parts = 0;
    for (; *format != '\0'; format++) {
        if (*format == '%' && format[1] != '\0') {
            format++;
            p = take_part(*format, p, end, &t, &parts);
        } else {
            p = p < end && *p == *format ? p + 1 : NULL;
        }
        if (p == NULL)
            return 0;
    }
    if (p != end)
        return 0;
    if (t.of_year > 365 + is_leap(t.year) || !to_seconds(&t, 0, out))
        return 0;
    if (t.of_year > 0)
        *out += (t.of_year - 1) * (double)DAY;
    *has |= parts;
    return 1;
}

int lumat_csv_read_date(const char *text, size_t length, const char *format,
                        double *seconds)
{
    unsigned char has = 0;
    return lumat_csv_take_date(text, length, format, seconds, &has);
}

int lumat_csv_is_date_format(const char *format)
{
    int parts = 0;
    for (; *format != '\0'; format++) {
        if (*format != '%')
            continue;
        format++;
        if (*format == '\0' || strchr("YymdbjHMS%", *format) == NULL)
            return 0;
        parts += *format != '%';
    }
    return parts > 0;
}

/* --- writing -------------------------------------------------------------- */

static void to_moment(int64_t micros, moment *t)
{
    int64_t days = micros / ((int64_t)DAY * MICRO);
    int64_t rest = micros % ((int64_t)DAY * MICRO);
    if (rest < 0) {
        rest += (int64_t)DAY * MICRO;
        days--;
    }
    t->micros = (int)(rest % MICRO);
    rest /= MICRO;
    t->hour = (int)(rest / 3600);
    t->minute = (int)(rest / 60 % 60);
    t->second = (int)(rest % 60);
    int64_t year = (days + 719468) * 400 / 146097;
    while (days_to_march(year) > days)
        year--;
    while (days_to_march(year + 1) <= days)
        year++;
    int day = (int)(days - days_to_march(year));
    int m = (5 * day + 2) / 153;
    t->day = day - (153 * m + 2) / 5 + 1;
    t->month = m < 10 ? m + 3 : m - 9;
    t->year = (int)year + (t->month < 3);
    t->of_year = t->day;
    for (int i = 1; i < t->month; i++)
        t->of_year += days_of(t->year, i);
}

/* Seconds, with their fraction and without zeros at its end. */
static int print_seconds(const moment *t, char *out, size_t size)
{
    if (t->micros == 0)
        return snprintf(out, size, "%02d", t->second);
    int n = snprintf(out, size, "%02d.%06d", t->second, t->micros);
    while (n > 0 && (size_t)n < size && out[n - 1] == '0')
        out[--n] = '\0';
    return n;
}

static int print_part(char letter, const moment *t, char *out, size_t size)
{
    switch (letter) {
    case 'Y':
        return snprintf(out, size, "%04d", t->year);
    case 'y':
        return snprintf(out, size, "%02d", t->year % 100);
    case 'm':
        return snprintf(out, size, "%02d", t->month);
    case 'b':
        return snprintf(out, size, "%s", months[t->month - 1]);
    case 'd':
        return snprintf(out, size, "%02d", t->day);
    case 'j':
        return snprintf(out, size, "%03d", t->of_year);
    case 'H':
        return snprintf(out, size, "%02d", t->hour);
    case 'M':
        return snprintf(out, size, "%02d", t->minute);
    case 'S':
        return print_seconds(t, out, size);
    default:
        return snprintf(out, size, "%c", letter);
    }
}

size_t lumat_csv_print_date(double seconds, const char *format, char *out,
                            size_t size)
{
    const double most = 253402300800.0; /* the year 10000 */
    size_t length = 0;
    moment t;
    if (!(seconds > -62167219201.0 && seconds < most))
        return 0;
    int64_t whole = (int64_t)floor(seconds);
    double rest = (seconds - (double)whole) * MICRO;
    to_moment(whole * MICRO + (int64_t)(rest + 0.5), &t);
    if (t.year < FIRST_YEAR || t.year > LAST_YEAR)
        return 0;
    for (; *format != '\0'; format++) {
        char letter = *format;
        int n = 1;
        if (letter == '%' && format[1] != '\0')
            n = print_part(*++format, &t, out + length, size - length);
        else if (length < size)
            out[length] = letter;
        length += (size_t)n;
        if (length >= size)
            return 0;
    }
    return length;
}
