/* Feeds any bytes to the reader of HDF5 files. Holds: no address leads out of
 * the file, what a dataset claims is bounded by what is there, and every walk
 * ends. */
#include <stdlib.h>
#include <string.h>
#include "data_formats.h"

enum { MESSAGE = 256, MOST_DEPTH = 6, MOST = 1 << 22, OBJECTS = 300 };

static void require(int truth)
{
    if (!truth)
        abort();
}

typedef struct visitor {
    const lumat_hdf *h;
    int depth, left;
} visitor;

static volatile unsigned used;

static void read_dataset(const lumat_hdf *h, const lumat_hdf_object *o)
{
    char message[MESSAGE] = "";
    if (!lumat_hdf_check(h, o, message, MESSAGE)) {
        require(message[0] != '\0');
        return;
    }
    require(o->count >= 0 && o->width >= 0);
    uint64_t bytes = (uint64_t)o->count * (uint64_t)o->width;
    if (bytes > MOST || o->chunk_bytes > MOST)
        return; /* would only take long */
    unsigned char *to = malloc((size_t)bytes + 1);
    void *work = malloc(2 * o->chunk_bytes + 1);
    require(to != NULL && work != NULL);
    if (!lumat_hdf_read(h, o, to, work, message, MESSAGE))
        require(message[0] != '\0');
    free(to);
    free(work);
}

static void visit(visitor *v, uint64_t address);

static int take_link(void *data, const char *name, size_t length,
                     uint64_t address)
{
    visitor *v = data;
    for (size_t i = 0; i < length; i++)
        used += (unsigned char)name[i];
    visit(v, address);
    return v->left > 0;
}

static void visit(visitor *v, uint64_t address)
{
    char message[MESSAGE] = "";
    lumat_hdf_object o;
    if (v->left-- <= 0 || v->depth > MOST_DEPTH)
        return;
    if (!lumat_hdf_read_object(v->h, address, &o, message, MESSAGE)) {
        require(message[0] != '\0');
        return;
    }
    require(memchr(o.matlab_class, 0, sizeof o.matlab_class) != NULL);
    v->depth++;
    if (!o.is_group)
        read_dataset(v->h, &o);
    else if (!lumat_hdf_each_link(v->h, &o, take_link, v, message, MESSAGE))
        require(message[0] != '\0');
    v->depth--;
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char message[MESSAGE] = "";
    lumat_hdf h;
    uint8_t *copy = malloc(size + 1);
    require(copy != NULL);
    uint8_t *exact = realloc(copy, size > 0 ? size : 1);
    memcpy(exact, data, size);
    if (lumat_hdf_open(&h, exact, size, message, MESSAGE)) {
        visitor v = {.h = &h, .left = OBJECTS};
        visit(&v, h.root);
    } else {
        require(message[0] != '\0');
    }
    free(exact);
    return 0;
}
