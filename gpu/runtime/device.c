/* One device's facts, time and memory; and the limit of the host's memory that
 * the user has set. */
#include "core.h"

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

gpu_counters gpu_counted;
gpu_dry_run *gpu_dry;

int gpu_may_collect_dry(void)
{
    return gpu_dry->collecting < 0.5;
}

const char *gpu_device_name(const gpu_device *d)
{
    return d->name;
}

const char *gpu_device_description(const gpu_device *d)
{
    return d->backend->describe(d->handle);
}

int gpu_device_is_cpu(const gpu_device *d)
{
    return d->is_cpu;
}

int gpu_device_is_lost(const gpu_device *d)
{
    return !d->is_cpu && d->backend->is_lost && d->backend->is_lost(d->handle);
}

gpu_status gpu_device_memory(gpu_device *d, gpu_memory *out)
{
    out->live = d->live;
    out->peak = d->peak_live;
    out->kept = d->kept_bytes;
    out->unused = d->backend->unused ? d->backend->unused(d->handle) : 0;
    return d->backend->memory(d->handle, &out->free, &out->total);
}

size_t gpu_device_live(const gpu_device *d)
{
    return d->live;
}

void gpu_reset_peak(gpu_device *d)
{
    d->peak_live = d->live;
}

gpu_status gpu_device_peak(gpu_device *d, gpu_peak *out)
{
    if (d->peak.bytes == 0)
        TRY(d->backend->peak(d->handle, &d->peak));
    *out = d->peak;
    return GPU_OK;
}

static double better(double a, double b)
{
    return a > b ? a : b;
}

gpu_status gpu_device_peak_again(gpu_device *d, gpu_peak *out)
{
    gpu_peak now;
    TRY(d->backend->peak(d->handle, &now));
    d->peak.f32_flops = better(d->peak.f32_flops, now.f32_flops);
    d->peak.f64_flops = better(d->peak.f64_flops, now.f64_flops);
    d->peak.bytes = better(d->peak.bytes, now.bytes);
    *out = d->peak;
    return GPU_OK;
}

gpu_status gpu_sync(gpu_device *d)
{
    int began = !d->is_cpu && gpu_begin_work("waiting for %s", d->name);
    gpu_status status = d->backend->sync(d->handle);
    gpu_end_work(began);
    return status;
}

gpu_status gpu_sync_all(void)
{
    gpu_device *const *devices;
    int n = gpu_device_count_opened(&devices);
    for (int i = 0; i < n; i++)
        if (!gpu_device_is_lost(devices[i]))
            TRY(gpu_sync(devices[i]));
    return GPU_OK;
}

gpu_status gpu_timer_start(gpu_device *d, gpu_timer *t)
{
    t->number = ++d->timers;
    t->started = gpu_now();
    return d->backend->timer_start(d->handle);
}

/* A device has one timer, which another may have started again. */
gpu_status gpu_timer_stop(gpu_device *d, const gpu_timer *t, double *seconds)
{
    if (t->number == d->timers)
        return d->backend->timer_stop(d->handle, seconds);
    TRY(gpu_sync(d));
    *seconds = gpu_now() - t->started;
    return GPU_OK;
}

const gpu_counters *gpu_counts(void)
{
    return &gpu_counted;
}

/* --- a limit of the host's memory ----------------------------------------- */

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
