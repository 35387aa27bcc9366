/* Products of the host's matrices by a device, in tiles: for multiply.c. */
#ifndef GPU_PRODUCT_TILES_H
#define GPU_PRODUCT_TILES_H

#include "core.h"

/* Which of p's views lie on the device, not in the host's memory. */
typedef struct gpu_gemm_place {
    unsigned a : 1, b : 1, c : 1;
} gpu_gemm_place;

/* What k is, see gpu_run_product. Of several devices nothing lies on any; each
 * has tiles of C of its own, and the cut is that for one. count falls where
 * there are not as many tiles. */
gpu_status gpu_multiply_tiles(gpu_team *team, const gpu_gemm *p,
                              gpu_gemm_place there, int is_chosen,
                              const gpu_kernel **k);

#endif
