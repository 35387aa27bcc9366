/* Sorting of keys that carry places, for files that have keys of their own. */
#ifndef GPU_CUDA_SORT_PAIRS_H
#define GPU_CUDA_SORT_PAIRS_H

#include "cuda_device.h"

/* Two copies of keys and places, of which the first are sorted; afterwards
 * `keys` and `places` are where the result is. */
template <class K> struct sort_pairs {
    int64_t size;
    K *keys, *other_keys;
    uint32_t *places, *other_places;
};

/* How much room it needs. K: uint32_t or uint64_t. */
template <class K>
gpu_status gpu_cuda_sort_room(cuda_device *d, int64_t size, size_t *bytes);
/* Stably, by the lowest bits of the keys; in so much room. */
template <class K>
gpu_status gpu_cuda_sort_pairs(cuda_device *d, sort_pairs<K> *p, int bits,
                               void *room, size_t bytes);

/* Bits that tell so many numbers apart, from 0 on. */
static inline int bits_for(int64_t count)
{
    int bits = 0;
    while (bits < 63 && (int64_t)1 << bits < count)
        bits++;
    return bits;
}

#endif
