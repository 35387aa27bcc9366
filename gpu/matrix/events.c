/* The frame of an operation: what is counted, told, shown and left incomplete
 * around what a backend does of it. Whether products are checked is here, too,
 * as what keeps a trace quiet rests the checks. */
#include "core.h"

/* Elements, or multiplications, of an operation that may last: at a slow
 * core's rate, 10 ms. */
static const double LASTING = 5e6;

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

static int is_traced(void)
{
    return trace.report && !trace.paused;
}

static int start_timer(gpu_device *d)
{
    return gpu_timer_start(d, &trace.timer) == GPU_OK;
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

int gpu_must_check(void)
{
    return !trace.paused && trace.checks;
}

void gpu_note_fallback(void)
{
    gpu_counted.fallbacks++;
    trace.fallback = 1;
}

/* --- operations ----------------------------------------------------------- */

static const gpu_matrix *extent_of(const gpu_operation *op)
{
    return op->extent ? op->extent : op->result;
}

static int is_lasting(const gpu_operation *op)
{
    const gpu_matrix *m = extent_of(op);
    return (double)m->rows * (double)m->cols >= LASTING ||
           op->flops >= 2 * LASTING;
}

/* A product by its three sizes, another operation by what it goes over. */
static int begin_shown(const gpu_operation *op)
{
    const gpu_matrix *m = extent_of(op);
    if (op->k > 0 && !op->extent)
        return gpu_begin_work("%s %lldx%lldx%lld", op->name, (long long)m->rows,
                              (long long)op->k, (long long)m->cols);
    return gpu_begin_work("%s %s", op->name, gpu_shape_text(m));
}

void gpu_begin_operation(gpu_operation *op)
{
    if (op->device->is_cpu && is_lasting(op))
        op->is_shown = begin_shown(op);
    gpu_counted.operations++;
    op->compiled = gpu_counted.compiled;
    op->checked = -1;
    if (is_traced())
        op->is_timed = start_timer(op->device);
}

int gpu_wants_bytes(const gpu_device *d)
{
    return d->backend->pace || is_traced();
}

/* What the work, now over, has made of the matrix that it wrote. */
static inline void note_written(const gpu_operation *op, gpu_status status)
{
    const gpu_matrix *m = op->result;
    if (status == GPU_INTERRUPTED)
        gpu_leave_incomplete(m);
    else if (status == GPU_OK && op->writes_all && m->storage->incomplete)
        gpu_make_whole(m);
}

/* On a GPU, what went wrong may show only when the work is waited for. */
static inline gpu_status stop_timer(gpu_operation *op, gpu_status status)
{
    if (!op->is_timed || status != GPU_OK)
        return status;
    return gpu_timer_stop(op->device, &trace.timer, &op->seconds);
}

static inline gpu_status stop(gpu_operation *op, gpu_status status)
{
    if (op->is_shown)
        gpu_end_work(1);
    note_written(op, status);
    return stop_timer(op, status);
}

static void tell(const gpu_operation *op, int fallback, gpu_status status)
{
    const gpu_matrix *m = op->result;
    int is_compiled = gpu_counted.compiled != op->compiled;
    gpu_team alone = {1, {op->device}};
    gpu_event e = {.operation = op->name,
                   .kernel = is_compiled ? "compiled" : op->kernel,
                   .device = op->device,
                   .team = op->team ? op->team : &alone,
                   .m = m->rows,
                   .n = m->cols,
                   .k = op->k,
                   .ndim = m->ndim,
                   .dtype = m->dtype,
                   .seconds = op->seconds,
                   .flops = op->flops,
                   .bytes = op->bytes,
                   .fallback = fallback,
                   .status = status,
                   .checked = op->checked};
    trace.report(&e, trace.data);
}

static inline gpu_status report(const gpu_operation *op, gpu_status status)
{
    int fallback = trace.fallback;
    trace.fallback = 0;
    if (op->is_timed && trace.report)
        tell(op, fallback, status);
    return status;
}

gpu_status gpu_stop_operation(gpu_operation *op, gpu_status status)
{
    return stop(op, status);
}

gpu_status gpu_report_operation(gpu_operation *op, gpu_status status)
{
    return report(op, status);
}

gpu_status gpu_end_operation(gpu_operation *op, gpu_status status)
{
    gpu_device *d = op->device;
    if (status == GPU_OK && d->backend->pace)
        d->backend->pace(d->handle, NULL, NULL, op->bytes);
    return report(op, stop(op, status));
}

/* --- the bus -------------------------------------------------------------- */

void gpu_begin_transfer(gpu_operation *op)
{
    op->checked = -1;
    op->compiled = gpu_counted.compiled;
    if (!op->device->is_cpu && is_traced())
        op->is_timed = start_timer(op->device);
}

gpu_status gpu_end_transfer(gpu_operation *op, gpu_status status)
{
    if (!op->is_timed)
        return status;
    return report(op, stop_timer(op, status));
}
