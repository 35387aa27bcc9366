/* Two parts of a device that work beside each other: one factors the next
 * panel, which needs clusters of 16 blocks, while the other updates the rest.
 * Streams alone would not do: a cluster waits until a whole group of
 * multiprocessors is free. So each lane has multiprocessors of its own, by the
 * driver's green contexts. */
#ifndef GPU_CUDA_LANES_H
#define GPU_CUDA_LANES_H

#include "cuda_device.h"

/* What cuda_device's lane says. */
enum { LANE_REST = 1, LANE_PANEL = 2, LANE_SIDE = 3 };

/* Lanes are devices for whatever takes one, with a stream, multiprocessors,
 * scratch memory and tickets of their own. */
typedef struct cuda_lanes {
    cuda_device *rest, *panel;
    cudaEvent_t begun, rest_done, panel_done;
} cuda_lanes;

/* Lanes of which the panel's has about so many multiprocessors; they stay until
 * the device is closed. NULL, and GPU_OK, where the driver makes none. */
gpu_status gpu_cuda_find_lanes(cuda_device *d, int panel_sms,
                               cuda_lanes **lanes);
/* The lanes go on where d's stream is now; d's stream waits for both. */
gpu_status gpu_cuda_fork_lanes(cuda_device *d, cuda_lanes *lanes);
gpu_status gpu_cuda_join_lanes(cuda_device *d, cuda_lanes *lanes);
/* They have no work left, also where something failed: their scratch goes. */
void gpu_cuda_rest_lanes(cuda_device *d, cuda_lanes *lanes);
void gpu_cuda_close_lanes(cuda_device *d);

/* A second stream beside the device's own, for kernels that wait for nobody:
 * blocks of few multiprocessors, which the device's kernels leave free. */
typedef struct cuda_side {
    cuda_device *device;
    cudaEvent_t begun, done;
} cuda_side;

/* It stays until the device is closed. NULL, and GPU_OK, where there is none.
 */
gpu_status gpu_cuda_find_side(cuda_device *d, cuda_side **side);
/* It goes on where d's stream is now; d's stream waits for it. */
gpu_status gpu_cuda_begin_side(cuda_device *d, cuda_side *side);
gpu_status gpu_cuda_join_side(cuda_device *d, cuda_side *side);
/* It has no work left, also where something failed. */
void gpu_cuda_rest_side(cuda_device *d, cuda_side *side);

#endif
