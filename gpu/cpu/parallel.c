/* Spreading work over the cores, and stopping it. */
#include <omp.h>
#include <stdatomic.h>
#include "cpu.h"

enum {
    WORTH_THREADS = 32768, /* elements: starting threads costs about 5 us */
    RANGES_A_THREAD = 4    /* evens out threads that get less of a core */
};

int gpu_cpu_interrupted(void)
{
    return *gpu_cpu_host->interrupted;
}

gpu_status gpu_cpu_stop(gpu_status status)
{
    if (status == GPU_INTERRUPTED)
        return gpu_cpu_host->fail(status, "interrupted");
    if (status == GPU_MEMORY)
        return gpu_cpu_host->fail(status, "out of memory for scratch space");
    return status;
}

static gpu_status run_threads(int64_t count, int64_t ranges, gpu_cpu_work *work,
                              void *context)
{
    atomic_int worst = GPU_OK;
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t r = 0; r < ranges; r++) {
        int64_t first = (int64_t)((__int128)count * r / ranges);
        int64_t last = (int64_t)((__int128)count * (r + 1) / ranges);
        if (first == last || worst != GPU_OK)
            continue;
        gpu_status status = work(context, first, last);
        if (status != GPU_OK)
            worst = (int)status;
    }
    return (gpu_status)worst;
}

gpu_status gpu_cpu_parallel(int64_t count, int64_t elements, gpu_cpu_work *work,
                            void *context)
{
    if (count <= 0)
        return GPU_OK;
    int threads = elements > WORTH_THREADS ? omp_get_max_threads() : 1;
    gpu_status status;
    if (threads == 1 || count == 1)
        status = work(context, 0, count);
    else
        status = run_threads(count, (int64_t)threads * RANGES_A_THREAD, work,
                             context);
    return status == GPU_OK ? GPU_OK : gpu_cpu_stop(status);
}
