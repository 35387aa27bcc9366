/* The pieces that printed matrices are put together from. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "format.h"
#include "settings.h"

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
    if (lumat_print_limits()->rows > 0)
        return lumat_print_limits()->rows;
    return lines > LEAST_LINES ? lines : LEAST_LINES;
}

void lumat_line_edges(int64_t limit, int64_t *head, int64_t *tail)
{
    int64_t edge = lumat_print_limits()->edge, most = 2 * limit / 3;
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

void lumat_add_specials(luaL_Buffer *b, const char *lead, int64_t nan,
                        int64_t inf)
{
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
