/* Products of the host's matrices by a device, in tiles: for multiply.c. */
#ifndef GPU_PRODUCT_TILES_H
#define GPU_PRODUCT_TILES_H

#include "core.h"

/* p's views are of the host's memory; what k is, see gpu_run_product. */
gpu_status gpu_multiply_tiles(gpu_device *d, const gpu_gemm *p, int is_chosen,
                              const gpu_kernel **k);

#endif
