/* Parts of the scratch block, each aligned as the block itself is. */
#ifndef GPU_CUDA_SCRATCH_PARTS_H
#define GPU_CUDA_SCRATCH_PARTS_H

#include <stddef.h>
#include <stdint.h>

static inline size_t rounded_room(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* The next part of the room that begins at *room. */
template <class T> static T *take_part(char **room, int64_t count)
{
    T *part = (T *)*room;
    *room += rounded_room((size_t)count * sizeof(T));
    return part;
}

#endif
