/* Feeds any bytes to the reader of Matrix Market's files, half of them behind
 * a valid first line. Holds: a file that is accepted has bytes for what it
 * claims, every place lies in the matrix, and reading in pieces of any size
 * gives the same entries. */
#include <stdlib.h>
#include <string.h>
#include "data_formats.h"

enum { MESSAGE = 128 };

static void require(int truth)
{
    if (!truth)
        abort();
}

static int is_same(double x, double y)
{
    return x == y || (x != x && y != y);
}

/* Returns the entries, or -1. */
static int64_t read_all(const lumat_mtx *m, int64_t piece,
                        lumat_mtx_entry *entries)
{
    char message[MESSAGE] = "";
    lumat_mtx_place place = {.at = m->data, .line = m->line};
    int64_t done = 0, got;
    while ((got = lumat_mtx_read(m, &place, piece, entries + done, message,
                                 MESSAGE)) > 0) {
        done += got;
        require(done <= m->count);
    }
    require(got == 0 ? done == m->count : message[0] != '\0');
    return got < 0 ? -1 : done;
}

static void try_file(const char *text, size_t length)
{
    char message[MESSAGE] = "";
    lumat_mtx m = {.text = text, .length = length};
    if (!lumat_mtx_open(&m, message, MESSAGE)) {
        require(message[0] != '\0');
        return;
    }
    require(m.rows >= 0 && m.cols >= 0 && m.count >= 0);
    require((uint64_t)m.count <= length);
    lumat_mtx_entry *all = calloc((size_t)m.count + 1, sizeof *all);
    lumat_mtx_entry *again = calloc((size_t)m.count + 1, sizeof *again);
    require(all != NULL && again != NULL);
    int64_t count = read_all(&m, m.count + 1, all);
    require(read_all(&m, 3, again) == count);
    for (int64_t i = 0; i < count; i++) {
        require(all[i].row >= 0 && all[i].row < m.rows);
        require(all[i].col >= 0 && all[i].col < m.cols);
        require(all[i].row == again[i].row && all[i].col == again[i].col);
        require(is_same(all[i].re, again[i].re));
        require(is_same(all[i].im, again[i].im));
    }
    free(all);
    free(again);
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const heads[] = {
        "%%MatrixMarket matrix coordinate real general\n",
        "%%MatrixMarket matrix coordinate pattern symmetric\n",
        "%%MatrixMarket matrix coordinate complex hermitian\n",
        "%%MatrixMarket matrix array real skew-symmetric\n",
        "%%MatrixMarket matrix array integer symmetric\n",
        "%%MatrixMarket vector coordinate real general\n"};
    size_t front = 0;
    const char *head = "";
    if (size > 0 && data[0] < 128) {
        head = heads[data[0] % (sizeof heads / sizeof *heads)];
        front = strlen(head);
        data++;
        size--;
    }
    char *text = malloc(front + size > 0 ? front + size : 1);
    require(text != NULL);
    memcpy(text, head, front);
    memcpy(text + front, data, size);
    try_file(text, front + size);
    free(text);
    return 0;
}
