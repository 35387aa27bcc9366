/* Several devices that compute one operation together: what gpu_compute_through
 * (gpu.h) is of one device. For lua/. */
#ifndef GPU_TEAM_H
#define GPU_TEAM_H

#include "gpu.h"

enum { GPU_MOST_TEAM = 16 };

/* GPUs of one backend, each of them once; count 0: none. */
typedef struct gpu_team {
    int count;
    gpu_device *devices[GPU_MOST_TEAM];
} gpu_team;

/* From now on they compute together what gpu_compute_through has computed: each
 * has tiles of its own, that are cut as for one of them alone, so that bits are
 * the same with any number of like devices. One thread gives work to them by
 * turns; where one of them fails the operation does. What goes through one
 * device only goes through the first. Returns what it was. */
gpu_team gpu_compute_together(gpu_team team);
/* "cuda:0, cuda:1", in text. */
enum { GPU_TEAM_TEXT = 12 * GPU_MOST_TEAM };
const char *gpu_team_text(const gpu_team *team, char text[GPU_TEAM_TEXT]);

#endif
