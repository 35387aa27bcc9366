/* Work of a device on what lies in the host's memory, tile by tile: while it
 * computes one, the next comes and the one before goes. For what computes in
 * gpu/; see gpu_compute_through. */
#ifndef GPU_TILES_H
#define GPU_TILES_H

#include "core.h"

/* One of the parts, from 0 on, into which a step's work is cut, or what is
 * brought for it. */
typedef struct gpu_tile_part {
    int64_t number, count;
} gpu_tile_part;

/* Steps of work. Each has a side of the device's memory for its result, of
 * which there are `sides`, taken in turn: so many steps may be under way.
 *
 * bring copies in by gpu_bring_tile, of all that comes the rows of that part;
 * work issues what computes, part 0 and then as many as it sets the part's
 * count to; fetch, which may be NULL, copies out by gpu_fetch_tile. What is
 * brought for a step lies where nothing was since step freed_by, or where
 * nothing was yet, if that is negative; without freed_by it lies on the step's
 * side. adds: what is brought lies where the result will. */
enum { GPU_TILE_SIDES = 8 };
typedef struct gpu_tile_work {
    gpu_device *device;
    int64_t steps;
    int sides; /* 2 .. GPU_TILE_SIDES */
    int adds;
    /* Bytes that it brings for a step; NULL: they are one part. */
    size_t (*brings)(void *context, int64_t step);
    gpu_status (*bring)(void *context, int64_t step, gpu_tile_part part);
    gpu_status (*work)(void *context, int64_t step, gpu_tile_part *part);
    gpu_status (*fetch)(void *context, int64_t step);
    int64_t (*freed_by)(void *context, int64_t step);
    void *context;
} gpu_tile_work;

/* All steps of all works, each of another device, GPU_MOST_TEAM at most. When
 * it returns nothing is under way on the other lanes, what was fetched is
 * there, and memory may be released. Of several works one that fails ends all.
 */
gpu_status gpu_run_tiles(const gpu_tile_work *works, int count);

/* The elements of host, at the buffer's byte `at`, as a view of them there:
 * what is repeated by strides of 0 is sent once. They lie without gaps, along
 * whichever axis the host's follow each other, or by rows, `pitch` elements
 * apart, where that is not 0. */
gpu_view gpu_tile_view(const gpu_view *host, const gpu_matrix *buffer,
                       size_t at, int64_t pitch);
/* bring: a part of the rows, or of columns where those follow each other. */
gpu_status gpu_bring_tile(gpu_device *d, const gpu_view *host,
                          const gpu_view *tile, gpu_tile_part part);
gpu_status gpu_fetch_tile(gpu_device *d, const gpu_view *tile,
                          const gpu_view *host);

/* Bytes of the device's memory, for tiles. */
gpu_status gpu_create_buffer(gpu_device *d, size_t bytes, gpu_matrix *out);
/* Where the next bytes of a buffer begin, behind so many. */
size_t gpu_tile_end(size_t bytes);
/* Bytes that one of so many parts may have, of which the device has to hold all
 * at once. */
size_t gpu_tile_bytes(const gpu_team *team, int parts);
/* Half of what is free on that of them where it is least. */
size_t gpu_tile_room(const gpu_team *team);
/* Those that compute what is computed through d (see gpu_compute_together), or
 * d alone where it has operands of its own. */
gpu_team gpu_team_of(gpu_device *d, int has_operands);
/* The same for tests: so many bytes; 0: what there is. */
void gpu_set_tile_bytes(size_t bytes);
size_t gpu_told_tile_bytes(void); /* by a test; or 0 */

/* The map of RUN_OPERATION by devices, of views of the host's memory, or there:
 * a bit for each input, from the lowest on, and one for out, which are set
 * where those lie on the only device. count falls where there are not as many
 * tiles. */
gpu_status gpu_map_tiles(gpu_team *team, const gpu_program *p, unsigned there,
                         const gpu_view *in, const gpu_view *out);

#endif
