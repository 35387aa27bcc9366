/* What an operation asks of its operands before it runs, and what is left of
 * them when it is stopped. */
#include "complex_numbers.h"
#include "core.h"

#include <string.h>

/* --- complex operands ------------------------------------------------------
 */

/* Those that ask which of two numbers is larger, or find it. */
static int needs_order(const char *name)
{
    static const char *const names[] = {
        "lt",      "le",      "gt",     "ge",     "min",     "max",
        "minimum", "clip",    "argmin", "argmax", "maximum", "sort",
        "unique",  "argsort", "median", "cummax", "cummin",  "searchsorted"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return 0;
}

gpu_status gpu_fail_complex(const char *name)
{
    if (needs_order(name))
        return gpu_fail(GPU_TYPE,
                        "%s: complex numbers have no order: take abs(A), "
                        "real(A) or imag(A) first",
                        name);
    return gpu_fail(GPU_TYPE,
                    "%s: is of real numbers: take real(A), imag(A) or abs(A) "
                    "of a complex matrix first",
                    name);
}

gpu_status gpu_fail_complex_op(gpu_op op)
{
    return gpu_fail_complex(gpu_op_name(op));
}

/* --- checks ----------------------------------------------------------------
 */

static gpu_status check_there(const char *name, const gpu_matrix *m)
{
    if (!m->storage)
        return gpu_fail(GPU_ARGUMENT, "%s: the matrix has been freed", name);
    if (m->storage->dry && !gpu_dry)
        return gpu_fail(GPU_ARGUMENT,
                        "%s: the matrix is one of cost, and has no elements",
                        name);
    if (gpu_is_lost(m))
        return gpu_fail(GPU_LOST,
                        "%s: the matrix was lost when %s failed; "
                        "at the prompt :restart uses the GPU again",
                        name, m->storage->device->name);
    return GPU_OK;
}

static gpu_status fail_apart(const char *name, const gpu_device *a,
                             const gpu_device *b)
{
    return gpu_fail(GPU_DEVICE,
                    "%s: operands are on different devices (%s and %s); "
                    "move one, as in A:to(\"%s\")",
                    name, a->name, b->name, a->name);
}

gpu_status gpu_check_alive(const char *name, const gpu_matrix *m,
                           gpu_device **device)
{
    TRY(check_there(name, m));
    gpu_device *d = m->storage->device;
    if (*device && d != *device)
        return fail_apart(name, *device, d);
    *device = d;
    return GPU_OK;
}

gpu_status gpu_check_complex_target(const char *name, const gpu_matrix *m,
                                    gpu_device **device)
{
    TRY(gpu_check_alive(name, m, device));
    if (m->storage->pending)
        TRY(gpu_settle(m));
    return gpu_settle_readers(m);
}

gpu_status gpu_check_target(const char *name, const gpu_matrix *m,
                            gpu_device **device)
{
    if (gpu_is_complex(m) && m->storage)
        return gpu_fail_complex(name);
    return gpu_check_complex_target(name, m, device);
}

static gpu_status check_complete(const char *name, const gpu_matrix *m)
{
    if (m->storage->incomplete)
        return gpu_fail(GPU_INCOMPLETE,
                        "%s: the matrix is incomplete: the operation that "
                        "wrote it was interrupted",
                        name);
    return GPU_OK;
}

static gpu_status check_ready(const char *name, const gpu_matrix *const *in,
                              int n, gpu_device **out)
{
    *out = NULL;
    for (int i = 0; i < n; i++) {
        TRY(gpu_check_alive(name, in[i], out));
        TRY(check_complete(name, in[i]));
    }
    return GPU_OK;
}

gpu_status gpu_check_waiting(const char *name, const gpu_matrix *const *in,
                             int n, gpu_device **out)
{
    TRY(check_ready(name, in, n, out));
    for (int i = 0; i < n; i++)
        if (gpu_is_complex(in[i]))
            return gpu_fail_complex(name);
    return GPU_OK;
}

/* Does it lie on d, or did it not fit there? */
static int meets(const gpu_matrix *m, const gpu_device *d)
{
    return m->storage->device == d ||
           (m->storage->device->is_cpu && gpu_home_of(m) == d);
}

gpu_status gpu_check_meeting(const char *name, const gpu_matrix *const *in,
                             int n, const gpu_matrix *out, gpu_device **d)
{
    for (int i = 0; i < n; i++) {
        TRY(check_there(name, in[i]));
        TRY(check_complete(name, in[i]));
    }
    if (out)
        TRY(check_there(name, out));
    gpu_device *first = n > 0 ? in[0]->storage->device : out->storage->device;
    *d = gpu_meeting_place(in, n, out);
    if (!*d)
        *d = first;
    for (int i = 0; i <= n; i++) {
        const gpu_matrix *m = i < n ? in[i] : out;
        if (m && !meets(m, *d))
            return fail_apart(name, first,
                              first == *d ? m->storage->device : *d);
    }
    for (int i = 0; i < n; i++)
        if (gpu_is_complex(in[i]))
            return gpu_fail_complex(name);
    return GPU_OK;
}

static gpu_status settle_all(const gpu_matrix *const *in, int n)
{
    for (int i = 0; i < n; i++)
        if (in[i]->storage->pending)
            TRY(gpu_settle(in[i]));
    return GPU_OK;
}

gpu_status gpu_check_operands(const char *name, const gpu_matrix *const *in,
                              int n, gpu_device **out)
{
    TRY(gpu_check_waiting(name, in, n, out));
    return settle_all(in, n);
}

gpu_status gpu_check_complex(const char *name, const gpu_matrix *const *in,
                             int n, gpu_device **out)
{
    TRY(check_ready(name, in, n, out));
    return settle_all(in, n);
}

int gpu_is_incomplete(const gpu_matrix *m)
{
    return m->storage && m->storage->incomplete;
}

void gpu_leave_incomplete(const gpu_matrix *m)
{
    if (m->storage && !gpu_dry)
        m->storage->incomplete = 1;
}

/* A view as large as its storage, none of whose elements lie on another. */
static int is_all(const gpu_matrix *m)
{
    return gpu_bytes(m) == m->storage->bytes &&
           (m->rows <= 1 || m->row_stride != 0) &&
           (m->cols <= 1 || m->col_stride != 0);
}

void gpu_make_whole(const gpu_matrix *m)
{
    if (!gpu_dry && is_all(m))
        m->storage->incomplete = 0;
}

gpu_status gpu_check_places(const char *name, const int64_t *places, int64_t n,
                            int64_t size, const char *what)
{
    for (int64_t i = 0; places && i < n; i++) {
        if (places[i] < 0 || places[i] >= size)
            return gpu_fail(GPU_RANGE, "%s: %s %lld is outside 1..%lld", name,
                            what, (long long)places[i] + 1, (long long)size);
    }
    return GPU_OK;
}
