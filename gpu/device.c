/* One device's facts, time, memory and trace. */
#include "core.h"

gpu_counters gpu_counted;

static struct {
    void (*report)(const gpu_event *e, void *data);
    void *data;
    int paused;
} trace;

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

gpu_status gpu_device_memory(gpu_device *d, gpu_memory *out)
{
    out->live = d->live;
    out->peak = d->peak_live;
    out->kept = d->kept_bytes;
    return d->backend->memory(d->handle, &out->free, &out->total);
}

size_t gpu_device_live(const gpu_device *d)
{
    return d->live;
}

gpu_status gpu_device_peak(gpu_device *d, gpu_peak *out)
{
    if (d->peak.bytes == 0)
        TRY(d->backend->peak(d->handle, &d->peak));
    *out = d->peak;
    return GPU_OK;
}

gpu_status gpu_sync(gpu_device *d)
{
    return d->backend->sync(d->handle);
}

gpu_status gpu_sync_all(void)
{
    gpu_device *const *devices;
    int n = gpu_device_count_opened(&devices);
    for (int i = 0; i < n; i++)
        TRY(gpu_sync(devices[i]));
    return GPU_OK;
}

gpu_status gpu_timer_start(gpu_device *d)
{
    return d->backend->timer_start(d->handle);
}

gpu_status gpu_timer_stop(gpu_device *d, double *seconds)
{
    return d->backend->timer_stop(d->handle, seconds);
}

const gpu_counters *gpu_counts(void)
{
    return &gpu_counted;
}

/* --- the trace ------------------------------------------------------------ */

void gpu_set_trace(void (*report)(const gpu_event *e, void *data), void *data)
{
    trace.report = report;
    trace.data = data;
}

void gpu_pause_trace(int paused)
{
    trace.paused = paused;
}

int gpu_trace_start(gpu_device *d)
{
    gpu_counted.operations++;
    return trace.report && !trace.paused && gpu_timer_start(d) == GPU_OK;
}

gpu_status gpu_trace_stop(gpu_device *d, gpu_event *e)
{
    TRY(gpu_timer_stop(d, &e->seconds));
    e->device = d;
    trace.report(e, trace.data);
    return GPU_OK;
}

gpu_status gpu_traced(gpu_device *d, int tracing, gpu_status status,
                      const char *operation, const char *kernel,
                      const gpu_matrix *result, int64_t k, double flops,
                      double bytes)
{
    if (!tracing || status != GPU_OK)
        return status;
    gpu_event e = {.operation = operation,
                   .kernel = kernel,
                   .m = result->rows,
                   .n = result->cols,
                   .k = k,
                   .dtype = result->dtype,
                   .flops = flops,
                   .bytes = bytes};
    return gpu_trace_stop(d, &e);
}
