/* One device's facts, time, memory and trace. */
#include "core.h"

#include <time.h>

gpu_counters gpu_counted;

static struct {
    void (*report)(const gpu_event *e, void *data);
    void *data;
    int paused, fallback;
    gpu_timer timer;
} trace;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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
        TRY(gpu_sync(devices[i]));
    return GPU_OK;
}

gpu_status gpu_timer_start(gpu_device *d, gpu_timer *t)
{
    t->number = ++d->timers;
    t->started = now();
    return d->backend->timer_start(d->handle);
}

/* A device has one timer, which another may have started again. */
gpu_status gpu_timer_stop(gpu_device *d, const gpu_timer *t, double *seconds)
{
    if (t->number == d->timers)
        return d->backend->timer_stop(d->handle, seconds);
    TRY(gpu_sync(d));
    *seconds = now() - t->started;
    return GPU_OK;
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

int gpu_pause_trace(int paused)
{
    int before = trace.paused;
    trace.paused = paused;
    return before;
}

gpu_quiet gpu_begin_quiet(void)
{
    return (gpu_quiet){gpu_counted, gpu_pause_trace(1)};
}

gpu_status gpu_end_quiet(gpu_quiet before, gpu_status status)
{
    gpu_pause_trace(before.paused);
    gpu_counted = before.counters;
    return status;
}

static int start_timer(gpu_device *d)
{
    return trace.report && !trace.paused &&
           gpu_timer_start(d, &trace.timer) == GPU_OK;
}

int gpu_is_watched(void)
{
    return !trace.paused && (trace.report || gpu_is_checking());
}

int gpu_trace_start(gpu_device *d)
{
    gpu_counted.operations++;
    return start_timer(d);
}

int gpu_transfer_start(gpu_device *d)
{
    return !d->is_cpu && start_timer(d);
}

void gpu_note_fallback(void)
{
    gpu_counted.fallbacks++;
    trace.fallback = 1;
}

/* On a GPU, what went wrong may show only when the work is waited for. */
gpu_status gpu_trace_stop(gpu_device *d, int tracing, gpu_status status,
                          gpu_event *e)
{
    e->device = d;
    e->checked = -1;
    if (tracing && status == GPU_OK)
        status = gpu_timer_stop(d, &trace.timer, &e->seconds);
    return status;
}

gpu_status gpu_trace_report(int tracing, gpu_status status, gpu_event *e)
{
    e->status = status;
    e->fallback = trace.fallback;
    trace.fallback = 0;
    if (tracing && trace.report)
        trace.report(e, trace.data);
    return status;
}

static gpu_status tell(gpu_device *d, int tracing, gpu_status status,
                       gpu_event e, const gpu_matrix *result)
{
    e.m = result->rows;
    e.n = result->cols;
    e.dtype = result->dtype;
    status = gpu_trace_stop(d, tracing, status, &e);
    return gpu_trace_report(tracing, status, &e);
}

gpu_status gpu_traced(gpu_device *d, int tracing, gpu_status status,
                      const char *operation, const char *kernel,
                      const gpu_matrix *result, int64_t k, double flops,
                      double bytes)
{
    gpu_end_operation();
    if (status == GPU_OK && d->backend->pace)
        d->backend->pace(d->handle, NULL, NULL, bytes);
    if (status == GPU_INTERRUPTED)
        gpu_leave_incomplete(result);
    if (!tracing) {
        trace.fallback = 0;
        return status;
    }
    gpu_event e = {.operation = operation,
                   .kernel = kernel,
                   .k = k,
                   .flops = flops,
                   .bytes = bytes};
    return tell(d, tracing, status, e, result);
}

gpu_status gpu_transferred(gpu_device *d, int tracing, gpu_status status,
                           const char *name, const gpu_matrix *m, size_t bytes)
{
    gpu_event e = {.operation = name, .kernel = "bus", .bytes = (double)bytes};
    return tracing ? tell(d, tracing, status, e, m) : status;
}
