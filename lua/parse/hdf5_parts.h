/* What the readers of HDF5 files share, and nobody else sees: numbers and
 * addresses, and the newer structures that addresses lead to. */
#ifndef LUMAT_HDF5_PARTS_H
#define LUMAT_HDF5_PARTS_H

#include "data_formats.h"

static const uint64_t NOWHERE = UINT64_MAX;

/* Little endian, so many bytes. */
static inline uint64_t get(const unsigned char *p, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i > 0; i--)
        value = value << 8 | p[i - 1];
    return value;
}

/* What is at an address, of which so many bytes are needed; NULL: they are not
 * there. */
static inline const unsigned char *find(const lumat_hdf *h, uint64_t address,
                                        uint64_t bytes)
{
    uint64_t at;
    if (__builtin_add_overflow(h->base, address, &at) || at > h->length ||
        bytes > h->length - at)
        return NULL;
    return h->bytes + at;
}

/* Where chunks' elements of a fixed or an extensible array begin. */
enum { LUMAT_HDF_FIXED_ARRAY = 3, LUMAT_HDF_EXTENSIBLE_ARRAY = 4 };

/* Element i of the array at an address, of *bytes bytes. Returns 0 where the
 * array is damaged; *element is NULL for one that was never written. */
int lumat_hdf_fixed_element(const lumat_hdf *h, uint64_t array, uint64_t i,
                            const unsigned char **element, int *bytes);
int lumat_hdf_extensible_element(const lumat_hdf *h, uint64_t array, uint64_t i,
                                 const unsigned char **element, int *bytes);

/* Calls each for the records of a tree of version 2 until it returns 0; what
 * stopped it is its own business. Returns 0 where the tree is damaged. */
typedef int lumat_hdf_record_fn(void *data, const unsigned char *record,
                                size_t bytes);
int lumat_hdf_each_record(const lumat_hdf *h, uint64_t tree,
                          lumat_hdf_record_fn *each, void *data);

/* The object in a heap that an identifier stands for; NULL: there is none, or
 * it is kept outside of the heap or packed. */
const unsigned char *lumat_hdf_find_in_heap(const lumat_hdf *h, uint64_t heap,
                                            const unsigned char *id,
                                            size_t id_bytes, size_t *bytes);

#endif
