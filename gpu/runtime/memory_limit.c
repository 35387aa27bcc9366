/* A limit of the host's memory that the user has set, and what counts. */
#include "core.h"

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>

static struct {
    size_t most, live;
    size_t (*beside)(void);
} limit;

void gpu_limit_memory(size_t most, size_t (*beside)(void))
{
    limit.most = most;
    limit.beside = beside;
#ifdef M_MMAP_THRESHOLD /* so that what is freed is given back */
    if (most)
        mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
}

size_t gpu_host_live(void)
{
    return limit.live;
}

void gpu_count_host(ptrdiff_t bytes)
{
    limit.live += (size_t)bytes;
}

size_t gpu_memory_limit(void)
{
    return limit.most;
}

size_t gpu_room_left(void)
{
    size_t held = limit.most ? limit.live + limit.beside() : 0;
    return limit.most == 0     ? SIZE_MAX
           : held < limit.most ? limit.most - held
                               : 0;
}
