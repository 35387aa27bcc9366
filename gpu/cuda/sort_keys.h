/* Numbers as unsigned integers whose order is theirs, and sorts of such keys,
 * for files that have keys of their own. */
#ifndef GPU_CUDA_SORT_KEYS_H
#define GPU_CUDA_SORT_KEYS_H

#include "cuda_device.h"

/* Zeros of both signs are equal, every NaN comes last. Flipping the sign bit,
 * or all bits of a negative number, makes the bits' order the numbers'. */
__device__ __forceinline__ uint64_t key_of(double x, int descending)
{
    if (x != x)
        return ~(uint64_t)0;
    uint64_t bits = (uint64_t)__double_as_longlong(x == 0 ? 0.0 : x);
    bits = bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
    return descending ? ~bits : bits;
}

__device__ __forceinline__ uint32_t key_of(float x, int descending)
{
    if (x != x)
        return ~(uint32_t)0;
    uint32_t bits = __float_as_uint(x == 0 ? 0.0f : x);
    bits = bits >> 31 ? ~bits : bits | (uint32_t)1 << 31;
    return descending ? ~bits : bits;
}

/* The number of an ascending key. */
__device__ __forceinline__ double number_of(uint64_t key)
{
    uint64_t bits = key >> 63 ? key & ~((uint64_t)1 << 63) : ~key;
    return __longlong_as_double((long long)bits);
}

__device__ __forceinline__ float number_of(uint32_t key)
{
    return __uint_as_float(key >> 31 ? key & ~((uint32_t)1 << 31) : ~key);
}

/* Two copies of keys, and of the places they carry, if any, of which the first
 * are sorted; afterwards `keys` and `places` are where the result is. */
template <class K> struct sort_keys {
    int64_t size;
    K *keys, *other_keys;
    uint32_t *places, *other_places; /* NULL: none */
};

/* How much room it needs. K: uint32_t or uint64_t. */
template <class K>
gpu_status gpu_cuda_sort_room(cuda_device *d, int64_t size, int has_places,
                              size_t *bytes);
/* Stably, by the lowest bits of the keys; in so much room. */
template <class K>
gpu_status gpu_cuda_sort_keys(cuda_device *d, sort_keys<K> *s, int bits,
                              void *room, size_t bytes);

/* *v becomes a copy of itself without gaps, whose memory is *copy: for who
 * reads it in another order, or writes where it lies. The caller frees
 * copy_bytes of it; what names the operation in errors. */
gpu_status gpu_cuda_copy_view(cuda_device *d, const char *what, gpu_view *v,
                              void **copy);
size_t gpu_cuda_copy_bytes(const gpu_view *v);

/* Bits that tell so many numbers apart, from 0 on. */
static inline int bits_for(int64_t count)
{
    int bits = 0;
    while (bits < 63 && (int64_t)1 << bits < count)
        bits++;
    return bits;
}

#endif
