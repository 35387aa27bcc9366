/* Results that find no room on the device that computes them.
 *
 * Such a result lies on the CPU and is computed there in tiles. It remembers
 * the GPU that it did not fit, and so does what the CPU makes of it element by
 * element: that one computes it together with matrices of its own, in tiles
 * again. All other operands of different devices are an error. */
#include "core.h"

#include <stdio.h>

static char told[512];
static int was_told;

const char *gpu_take_overflow(void)
{
    if (was_told || told[0] == '\0')
        return NULL;
    was_told = 1;
    return told;
}

/* --- homes ---------------------------------------------------------------- */

/* GPUs that something did not fit: a storage has the number of one, from 1. */
enum { MOST_HOMES = 15 };
static gpu_device *homes[MOST_HOMES];

/* 0: there are too many. */
static unsigned number_of(gpu_device *d)
{
    unsigned i = 0;
    while (i < MOST_HOMES && homes[i] && homes[i] != d)
        i++;
    if (i == MOST_HOMES)
        return 0;
    homes[i] = d;
    return i + 1;
}

gpu_device *gpu_home_of(const gpu_matrix *m)
{
    unsigned home = m->storage->home;
    return home > 0 ? homes[home - 1] : m->storage->device;
}

void gpu_pass_home(const gpu_matrix *const *in, int n, const gpu_matrix *out)
{
    for (int i = 0; i < n; i++)
        if (out->storage->device->is_cpu && in[i]->storage->home > 0)
            out->storage->home = in[i]->storage->home;
}

gpu_device *gpu_meeting_place(const gpu_matrix *const *in, int n,
                              const gpu_matrix *out)
{
    gpu_device *gpu =
        out && !out->storage->device->is_cpu ? out->storage->device : NULL;
    int on_cpu = out && out->storage->device->is_cpu;
    for (int i = 0; i < n; i++) {
        gpu_device *d = in[i]->storage->device;
        on_cpu |= d->is_cpu;
        gpu = d->is_cpu ? gpu : d;
    }
    return on_cpu ? gpu : NULL;
}

gpu_device *gpu_meeting_device(const gpu_matrix *a, const gpu_matrix *b)
{
    gpu_device *x = gpu_matrix_device(a), *y = gpu_matrix_device(b);
    if (x == y || !x || !y)
        return x;
    if (x->is_cpu && gpu_home_of(a) == y)
        return y;
    return y->is_cpu && gpu_home_of(b) == x ? x : NULL;
}

/* --- results -------------------------------------------------------------- */

static void tell(const gpu_device *d, const gpu_matrix *m)
{
    size_t free = 0, total = 0;
    if (told[0] != '\0')
        return;
    d->backend->memory(d->handle, &free, &total);
    int used = snprintf(told, sizeof told, "the result, %s %s of ",
                        gpu_dtype_name(m->dtype), gpu_shape_text(m));
    used += snprintf(told + used, sizeof told - (size_t)used, "%s",
                     gpu_bytes_text(gpu_bytes(m)));
    snprintf(
        told + used, sizeof told - (size_t)used,
        ", does not fit %s, where %s are free: it is computed in tiles and "
        "lies on the CPU, and goes on with matrices there in what is "
        "computed element by element, reductions and products; this is "
        "said once",
        d->name, gpu_bytes_text(free));
}

gpu_status gpu_create_anywhere(gpu_matrix *out, gpu_device *d, gpu_dtype dtype,
                               int ndim, int64_t rows, int64_t cols)
{
    char why[320];
    gpu_status status = gpu_create(out, d, dtype, ndim, rows, cols);
    unsigned home = status == GPU_MEMORY && !d->is_cpu ? number_of(d) : 0;
    if (home == 0 || gpu_dry)
        return status;
    snprintf(why, sizeof why, "%s", gpu_message());
    if (gpu_create(out, gpu_cpu(), dtype, ndim, rows, cols) != GPU_OK)
        return gpu_fail(GPU_MEMORY, "%s", why);
    out->storage->home = home;
    tell(d, out);
    return GPU_OK;
}

int gpu_move_home(gpu_storage *s)
{
    unsigned home = s->device->is_cpu ? 0 : number_of(s->device);
    if (home > 0) {
        s->home = home;
        s->device = gpu_cpu();
    } else if (s->home > 0) {
        s->device = homes[s->home - 1];
        s->home = 0;
    } else {
        return 0;
    }
    return 1;
}

void gpu_tell_overflow(const gpu_matrix *m)
{
    tell(gpu_home_of(m), m);
}
