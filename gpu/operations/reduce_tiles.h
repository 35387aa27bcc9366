/* Reductions cut into blocks: see reduce_tiles.c. For reduction.c and tests. */
#ifndef GPU_REDUCE_TILES_H
#define GPU_REDUCE_TILES_H

#include "core.h"

/* Is the reduction of so many elements cut into blocks wherever it is? */
int gpu_is_in_blocks(int kind, int64_t rows, int64_t cols);
/* The backend's reduce, of views that lie on d, into a matrix of d's. */
gpu_status gpu_reduce_blocks(gpu_device *d, const gpu_program *p,
                             const gpu_view *in, int axis, gpu_matrix *out);
/* By devices, of views of the host's memory, but those that lie there, on the
 * only device: a bit for each, from the lowest on. count falls where there are
 * not as many tiles. */
gpu_status gpu_reduce_tiles(gpu_team *team, const gpu_program *p,
                            unsigned there, const gpu_view *in, int axis,
                            gpu_matrix *out);
/* For tests: what has more than `whole` elements is cut into blocks of about so
 * many; 0: as it is. */
void gpu_set_blocks(int64_t whole, int64_t block);

#endif
