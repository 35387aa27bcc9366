/* Feeds any bytes to the reader of tables. The first byte chooses delimiter,
 * header and type; the rest is the file. Holds: the bound on the rows keeps
 * memory near the file's size, every element is written, what is read does
 * not depend on the type asked for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "parse.h"

enum { MESSAGE = 128 };

static void require(int truth)
{
    if (!truth)
        abort();
}

static void check_names(const lumat_csv *c)
{
    const char *text;
    size_t length, at = c->names;
    int64_t count = 0;
    for (; lumat_csv_name(c, &at, &text, &length); count++)
        require(text >= c->text && text + length <= c->text + c->length);
    require(count == c->cols);
}

/* In pieces of so many cells. Returns the cells, or -1. */
static int64_t read_as(const lumat_csv *c, int doubled, int64_t piece,
                       void **host)
{
    char message[MESSAGE] = "";
    int numbers = c->is_complex ? 2 : 1; /* of a cell */
    size_t size = (doubled ? sizeof(double) : sizeof(float)) * (size_t)numbers;
    int64_t all = c->rows * c->cols, count = 0, got;
    lumat_csv_place place = {c->data, c->line, 0};
    require(all <= (int64_t)c->length + c->cols);
    *host = malloc(size * (size_t)(all + 1));
    require(*host != NULL);
    float *singles = doubled ? NULL : *host;
    double *doubles = doubled ? *host : NULL;
    do {
        int64_t most = all - count < piece ? all - count + 1 : piece;
        got = lumat_csv_read(c, &place, most, doubled ? NULL : singles + count,
                             doubled ? doubles + numbers * count : NULL,
                             message, MESSAGE);
        require(got <= most);
        count += got > 0 ? got : 0;
        require(count <= all);
    } while (got > 0);
    require((got < 0) == (message[0] != '\0'));
    require(got < 0 || count == all);
    return got < 0 ? -1 : count;
}

/* Rounded twice, a single can differ by one unit, and overflow. */
static void compare(const float *singles, const double *doubles, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = singles[i], y = (float)doubles[i];
        require(isnan(x) == isnan(y));
        require(isnan(x) || x == y || nextafterf(x, y) == y);
    }
}

/* A real cell is a complex one without an imaginary part. */
static void compare_pairs(const double *doubles, const double *pairs, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        require(isnan(doubles[i]) == isnan(pairs[2 * i]));
        require(isnan(doubles[i]) || doubles[i] == pairs[2 * i]);
        require(pairs[2 * i + 1] == 0);
    }
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char delimiters[] = {0, ',', ';', '\t', ' ', '|', 0, 0};
    char message[MESSAGE] = "";
    void *singles, *doubles, *pairs;
    if (size == 0)
        return 0;
    lumat_csv c = {.delimiter = delimiters[data[0] % 8],
                   .header = (enum lumat_csv_header)(data[0] / 8 % 3)};
    char *text = malloc(size);
    require(text != NULL);
    memcpy(text, data + 1, size - 1);
    c.text = text;
    c.length = size - 1;
    if (lumat_csv_open(&c, message, MESSAGE)) {
        check_names(&c);
        c.is_complex = 1;
        int64_t pairs_count = read_as(&c, 1, 1 + data[0] / 24, &pairs);
        c.is_complex = 0;
        int64_t count = read_as(&c, 0, INT64_MAX, &singles);
        require(count == read_as(&c, 1, 1 + data[0] / 24, &doubles));
        compare(singles, doubles, count);
        if (count >= 0 && pairs_count >= 0)
            compare_pairs(doubles, pairs, count);
        free(pairs);
        free(singles);
        free(doubles);
    }
    free(text);
    return 0;
}
