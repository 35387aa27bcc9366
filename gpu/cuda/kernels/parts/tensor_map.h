/* Maps of operands in global memory, as Hopper's tensor copy engine reads
 * them: boxes come into shared memory in lines of 128 bytes, whose 16-byte
 * pieces are exchanged so that eight lines' are in different banks. What lies
 * beyond the edges comes as zeros. */
#ifndef GPU_CUDA_TENSOR_MAP_H
#define GPU_CUDA_TENSOR_MAP_H

#include "cuda_device.h"

#include <cuda.h>

/* An operand's axes, neighbours first. */
typedef struct map_shape {
    CUtensorMapDataType type;
    int rank;
    cuuint64_t size[4];          /* elements */
    cuuint64_t bytes[3];         /* from one to the next, from axis 1 on */
    cuuint32_t box[4];           /* elements that one copy brings */
    CUtensorMapL2promotion line; /* what the L2 cache fetches at least */
} map_shape;

/* The map of data, whose first element and lines lie on 16 bytes. `kernel` is
 * the rung's name, for the message where the driver makes none. */
gpu_status gpu_cuda_make_map(cuda_device *d, const char *kernel,
                             const void *data, const map_shape *shape,
                             CUtensorMap *out);

/* Fetches what a map says, as the first copies would have to. */
static __device__ __forceinline__ void prefetch_map(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

#endif
