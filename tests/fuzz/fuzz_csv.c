/* Feeds any bytes to the reader of tables. The first byte chooses delimiter,
 * header and type; the rest is the file. Holds: the bound on the rows keeps
 * memory near the file's size, every element is written, what is read does
 * not depend on the type asked for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "csv.h"

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

static int64_t read_as(const lumat_csv *c, int doubled, void **host)
{
    char message[MESSAGE] = "";
    size_t size = doubled ? sizeof(double) : sizeof(float);
    size_t count = (size_t)(c->most_rows * c->cols);
    require(count <= c->length + (size_t)c->cols);
    *host = malloc(size * count + 1);
    require(*host != NULL);
    int64_t rows = lumat_csv_read(c, doubled ? NULL : *host,
                                  doubled ? *host : NULL, message, MESSAGE);
    require(rows <= c->most_rows);
    require((rows < 0) == (message[0] != '\0'));
    return rows;
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

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char delimiters[] = {0, ',', ';', '\t', ' ', '|', 0, 0};
    char message[MESSAGE] = "";
    void *singles, *doubles;
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
        int64_t rows = read_as(&c, 0, &singles);
        require(rows == read_as(&c, 1, &doubles));
        if (rows > 0)
            compare(singles, doubles, rows * c.cols);
        free(singles);
        free(doubles);
    }
    free(text);
    return 0;
}
