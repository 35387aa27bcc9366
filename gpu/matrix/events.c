/* What is told of operations: events for a trace, and how many there were.
 * Whether products are checked is here, too, as both make an operation be
 * watched. */
#include "core.h"

static struct {
    void (*report)(const gpu_event *e, void *data);
    void *data;
    int paused, fallback, checks; /* checks: are products checked? */
    gpu_timer timer;
} trace, outer; /* outer: the user's, while a dry run goes on */

void gpu_set_trace(void (*report)(const gpu_event *e, void *data), void *data)
{
    if (gpu_dry) {
        outer.report = report;
        outer.data = data;
        return;
    }
    trace.report = report;
    trace.data = data;
}

void gpu_begin_dry_trace(void)
{
    outer = trace;
    trace.report = gpu_dry->watch->event;
    trace.data = gpu_dry->watch->data;
    trace.paused = trace.fallback = trace.checks = 0;
}

void gpu_end_dry_trace(void)
{
    trace = outer;
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

void gpu_set_check(int on)
{
    if (gpu_dry)
        outer.checks = on;
    else
        trace.checks = on;
}

int gpu_is_checking(void)
{
    return trace.checks;
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
    e.ndim = result->ndim;
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
