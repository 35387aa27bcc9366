/* Feeds any bytes to the reader of tables. The first bytes choose the form, the
 * types and how it is cut; the rest is the file. Holds: what is read does not
 * depend on the cut into windows, chunks and pieces of rows, nor does what is
 * wrong; every element is written; labels are UTF-8; and what a table is
 * reckoned to have stays near the file's size. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "csv.h"

enum { MESSAGE = 256, CELL = 16, MOST_CELLS = 1 << 16, MOST_ROWS = 1 << 12 };

static void require(int truth)
{
    if (!truth)
        abort();
}

static void *room(size_t bytes)
{
    void *memory = calloc(bytes + 1, 1);
    require(memory != NULL);
    return memory;
}

/* What was read of a table. */
typedef struct table {
    char *cells; /* CELL bytes each, row after row */
    int64_t rows;
    lumat_labels labels;
    uint32_t *codes; /* how many of each column */
    int has_failed;
    int64_t line, col;
    char message[LUMAT_CSV_MESSAGE];
} table;

static void check_label(const lumat_labels *l, const lumat_label *label)
{
    const unsigned char *p = (const unsigned char *)l->bytes + label->at;
    const unsigned char *end = p + label->length;
    while (p < end) {
        int more = *p < 0x80 ? 0 : *p < 0xE0 ? 1 : *p < 0xF0 ? 2 : 3;
        require(*p != 0 && (*p < 0x80 || *p >= 0xC2) && *p < 0xF5);
        require(end - p > more);
        for (p++; more > 0; more--, p++)
            require(*p >> 6 == 2);
    }
}

/* The codes of a chunk's new labels become those of the table. */
static void merge(table *t, const lumat_csv *c, lumat_csv_chunk *k,
                  int64_t rows)
{
    uint32_t *codes = room(k->fresh.count * sizeof *codes);
    for (size_t i = 0; i < k->fresh.count; i++) {
        const lumat_label *f = &k->fresh.list[i];
        const char *text = k->fresh.bytes + f->at;
        check_label(&k->fresh, f);
        require(lumat_labels_find(&t->labels, f->hash, f->column, text,
                                  f->length) == NULL);
        codes[i] = ++t->codes[f->column];
        require(lumat_labels_add(&t->labels, f->hash, f->column, text,
                                 f->length, codes[i]) != NULL);
    }
    for (int64_t i = 0; i < rows * c->cols; i++) {
        double code;
        const lumat_csv_column *column = &c->column[i % c->cols];
        if (column->type != LUMAT_CSV_TEXT || column->is_skipped)
            continue;
        char *cell = t->cells + (t->rows * c->cols + i) * CELL;
        memcpy(&code, cell, sizeof code);
        if (code < 0) {
            require((size_t)(-1 - code) < k->fresh.count);
            code = codes[(size_t)(-1 - code)];
            memcpy(cell, &code, sizeof code);
        }
        require(isnan(code) || (code >= 1 && code <= t->codes[i % c->cols]));
    }
    lumat_labels_clear(&k->fresh);
    free(codes);
}

/* One row whose end is in the window, in pieces of so many cells. */
static void read_in_pieces(const lumat_csv *c, lumat_csv_chunk *k,
                           int64_t piece)
{
    lumat_csv counted = *c;
    counted.is_counting = 1;
    lumat_csv_chunk whole = *k;
    whole.most_rows = 1;
    lumat_csv_read(&counted, &whole);
    k->most_rows = 1;
    if (whole.needs_more) {
        k->needs_more = 1;
        k->rows = k->lines = k->has_failed = 0;
        return;
    }
    k->most_cells = piece;
    k->col = 0;
    do
        lumat_csv_read(c, k);
    while (k->rows == 0 && k->col > 0 && !k->has_failed);
    require(!k->needs_more);
    k->most_cells = k->col = 0;
}

/* Reads a table through windows that grow by `window` bytes, in chunks of
 * `step`; piece: cells of a part of a row, or 0. */
static table read_table(lumat_csv *c, const char *text, size_t length,
                        size_t window, size_t step, int64_t piece)
{
    table t = {.line = c->line};
    int64_t most = MOST_CELLS / c->cols + 1;
    if (most > MOST_ROWS)
        most = MOST_ROWS;
    t.cells = room((size_t)((most + 1) * c->cols) * CELL);
    t.codes = room((size_t)c->cols * sizeof *t.codes);
    c->labels = &t.labels;
    size_t at = c->data, end = length - at < window ? length : at + window;
    lumat_csv_chunk k = {.finest = room((size_t)c->cols)};
    while (t.rows < most && !t.has_failed && !(at == length)) {
        char *copy = room(end - at);
        memcpy(copy, text + at, end - at);
        k.next = copy;
        k.end = copy + (end - at);
        k.limit = end - at < step ? k.end : copy + step;
        k.is_last = end == length;
        k.most_rows = most - t.rows;
        k.to = t.cells + t.rows * c->cols * CELL;
        if (piece > 0)
            read_in_pieces(c, &k, piece);
        else
            lumat_csv_read(c, &k);
        require(k.next >= copy && k.next <= k.end);
        require(k.rows <= most - t.rows);
        require(!k.needs_more || !k.is_last);
        if (!c->fill)
            require(k.rows * c->cols <= k.next - copy + c->cols);
        merge(&t, c, &k, k.rows);
        t.rows += k.rows;
        if (k.has_failed) {
            t.has_failed = 1;
            t.line += k.bad_line;
            t.col = k.bad_col;
            memcpy(t.message, k.message, sizeof t.message);
        } else {
            t.line += k.lines;
        }
        size_t moved = (size_t)(k.next - copy);
        at += moved;
        if (k.needs_more || at == end || moved == 0)
            end = length - end < window ? length : end + window;
        free(copy);
        require(moved > 0 || k.has_failed || !k.is_last || piece > 0);
        if (moved == 0 && k.is_last && piece > 0 && !k.has_failed)
            break;
    }
    free(k.finest);
    free(k.scratch);
    lumat_labels_free(&k.fresh);
    return t;
}

static int is_same_cell(const lumat_csv_column *column, const char *a,
                        const char *b)
{
    double x, y;
    float f, g;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    memcpy(&f, a, sizeof f);
    memcpy(&g, b, sizeof g);
    int is_single = !column->is_wide && (column->type == LUMAT_CSV_NUMBER ||
                                         column->type == LUMAT_CSV_TRUTH);
    return is_single ? f == g || (isnan(f) && isnan(g))
                     : x == y || (isnan(x) && isnan(y));
}

static void compare(const lumat_csv *c, const table *a, const table *b)
{
    require(a->rows == b->rows);
    require(a->has_failed == b->has_failed);
    require(!a->has_failed || (a->line == b->line && a->col == b->col &&
                               strcmp(a->message, b->message) == 0));
    for (int64_t i = 0; i < a->rows * c->cols; i++)
        require(is_same_cell(&c->column[i % c->cols], a->cells + i * CELL,
                             b->cells + i * CELL));
    require(a->labels.count == b->labels.count || a->has_failed);
}

static void free_table(table *t)
{
    free(t->cells);
    free(t->codes);
    lumat_labels_free(&t->labels);
}

static void check_names(const lumat_csv *c, const char *text, size_t length)
{
    lumat_csv_text name;
    size_t at = c->names;
    int64_t count = 0;
    for (; lumat_csv_name(c, text, length, &at, &name); count++) {
        char *plain = room(name.length);
        require(name.start >= text &&
                name.start + name.length <= text + length);
        require(lumat_csv_unquote(c, name, plain) <= name.length);
        free(plain);
    }
    require(count == c->cols);
}

static void check_dates(const lumat_csv *c, const table *t)
{
    char text[64];
    for (int64_t i = 0; i < t->rows * c->cols; i++) {
        double x;
        if (c->column[i % c->cols].type != LUMAT_CSV_DATE)
            continue;
        memcpy(&x, t->cells + i * CELL, sizeof x);
        require(isnan(x) || fabs(x) < 1e12);
        if (!isnan(x))
            lumat_csv_print_date(x, "%Y-%m-%d %H:%M:%S", text, sizeof text);
    }
}

/* Types that are found, or one that is given to a column. */
static void choose_types(lumat_csv *c, const char *text, size_t length,
                         const uint8_t *choice)
{
    static const char *const formats[] = {NULL, "%d.%m.%Y", "%m/%d/%y %H:%M:%S",
                                          "%j %b %Y"};
    for (int64_t j = 0; j < c->cols; j++) {
        lumat_csv_column *column = &c->column[j];
        column->is_wide = choice[0] & 1;
        column->step = (size_t)c->cols * CELL;
        column->offset = (size_t)j * CELL;
        if ((choice[0] & 2) && j == choice[1] % 4) {
            column->type = LUMAT_CSV_NUMBER + choice[1] / 4 % 5;
            column->is_given = 1;
            if (column->type == LUMAT_CSV_DATE)
                column->format = formats[choice[1] / 32 % 4];
        }
        column->is_skipped = (choice[0] & 4) && j == choice[1] / 8 % 4;
    }
    lumat_csv_find_types(c, text, length);
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char delimiters[] = {0, ',', ';', '\t', ' ', '|', 0, 0};
    static const lumat_csv_text words[] = {{"-", 1}, {"", 0}, {"x", 1}};
    static const double values[] = {-999, 0};
    enum { CHOICES = 6 };
    char message[MESSAGE] = "";
    if (size < CHOICES)
        return 0;
    lumat_csv c = {.delimiter = delimiters[data[0] % 8],
                   .header = (enum lumat_csv_header)(data[0] / 8 % 3),
                   .fill = data[0] >= 192,
                   .decimal = data[1] & 1 ? ',' : '.',
                   .thousands = data[1] & 2 ? '\'' : 0,
                   .quote = data[1] & 4 ? data[1] & 8 ? '\'' : 0 : '"',
                   .comment = data[1] & 16 ? '#' : 0,
                   .skip = data[1] >= 224,
                   .seed = data[2]};
    if (data[1] & 32) {
        c.missing = words;
        c.missing_count = 1 + data[2] % 3;
        c.missing_values = values;
        c.missing_value_count = data[2] / 4 % 3;
    }
    if (c.delimiter == c.decimal || (c.quote == '\'' && c.thousands != 0))
        return 0;
    size_t length = size - CHOICES;
    char *text = room(length);
    memcpy(text, data + CHOICES, length);
    lumat_csv_prepare();
    lumat_csv early = c;
    char *half = room(length / 2);
    memcpy(half, text, length / 2);
    lumat_csv_open(&early, half, length / 2, 0, message, MESSAGE);
    free(half);
    if (lumat_csv_open(&c, text, length, 1, message, MESSAGE) > 0) {
        check_names(&c, text, length);
        c.column = room((size_t)c.cols * sizeof *c.column);
        choose_types(&c, text, length, data + 3);
        table whole = read_table(&c, text, length, length + 1, length + 1, 0);
        table cut = read_table(&c, text, length, 1 + data[5] % 16u,
                               1 + data[5] / 16u, 0);
        table parts = read_table(&c, text, length, 1 + data[5] % 32u,
                                 length + 1, 1 + data[5] / 32);
        compare(&c, &whole, &cut);
        compare(&c, &whole, &parts);
        check_dates(&c, &whole);
        free_table(&whole);
        free_table(&cut);
        free_table(&parts);
        free(c.column);
    } else {
        require(message[0] != '\0');
    }
    free(text);
    return 0;
}
