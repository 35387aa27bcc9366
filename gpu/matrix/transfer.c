/* Elements in and out of matrices: host memory, other types, other devices. */
#include "complex_numbers.h"
#include "core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LASTING = 1 << 28 }; /* bytes that may take long to copy */

static gpu_status check_alive(const char *name, const gpu_matrix *m)
{
    gpu_device *d;
    const gpu_matrix *in[] = {m};
    return gpu_check_operands(name, in, 1, &d);
}

static gpu_status check_target(const char *name, const gpu_matrix *m)
{
    gpu_device *d = NULL;
    return gpu_check_target(name, m, &d);
}

/* "copy 3.2 GiB to cuda:0" */
static int begin_copy(const gpu_device *d, size_t n, const char *where)
{
    if (n < LASTING)
        return 0;
    return gpu_begin_work("copy %s %s %s", gpu_bytes_text(n), where, d->name);
}

/* shape: of what is moved, for the trace. */
static gpu_operation bus(const char *name, const gpu_matrix *shape, size_t n)
{
    return (gpu_operation){.name = name,
                           .kernel = "bus",
                           .device = shape->storage->device,
                           .result = shape,
                           .bytes = (double)n};
}

/* Few bytes on the CPU are not worth an operation. */
static int is_few(const gpu_device *d, size_t n)
{
    enum { FEW = 4096 };
    return d->is_cpu && n <= FEW && !gpu_dry;
}

static gpu_status upload_bytes(const gpu_matrix *shape, void *to,
                               const void *from, size_t n)
{
    gpu_device *d = shape->storage->device;
    if (is_few(d, n)) {
        memcpy(to, from, n);
        return GPU_OK;
    }
    if (!d->is_cpu)
        gpu_counted.uploaded += n;
    gpu_operation op = bus("upload", shape, n);
    int began = begin_copy(d, n, "to");
    gpu_begin_transfer(&op);
    gpu_status status = d->backend->upload(d->handle, to, from, n);
    gpu_end_work(began);
    return gpu_end_transfer(&op, status);
}

static gpu_status download_bytes(const gpu_matrix *shape, void *to,
                                 const void *from, size_t n)
{
    gpu_device *d = shape->storage->device;
    if (is_few(d, n)) {
        memcpy(to, from, n);
        return GPU_OK;
    }
    if (!d->is_cpu)
        gpu_counted.downloaded += n;
    gpu_operation op = bus("download", shape, n);
    int began = begin_copy(d, n, "from");
    gpu_begin_transfer(&op);
    gpu_status status = d->backend->download(d->handle, to, from, n);
    gpu_end_work(began);
    return gpu_end_transfer(&op, status);
}

/* One element of m, as what is moved. */
static gpu_matrix one_of(const gpu_matrix *m)
{
    return (gpu_matrix){.storage = m->storage,
                        .dtype = m->dtype,
                        .ndim = 2,
                        .rows = 1,
                        .cols = 1};
}

static gpu_status copy_here(const char *name, const gpu_matrix *from,
                            gpu_matrix *to)
{
    gpu_program p;
    gpu_program_start(&p, 1);
    const gpu_matrix *in[] = {from};
    return gpu_map(name, &p, in, to);
}

static gpu_status upload_whole(const gpu_matrix *m, const void *host)
{
    gpu_status status =
        upload_bytes(m, gpu_target_of(m).data, host, gpu_bytes(m));
    if (status == GPU_OK)
        gpu_make_whole(m);
    else
        gpu_leave_incomplete(m);
    return status;
}

gpu_status gpu_upload(gpu_matrix *m, const void *host)
{
    if (gpu_is_complex(m))
        return gpu_complex_upload(m, host);
    TRY(check_target("upload", m));
    if (gpu_size(m) == 0)
        return GPU_OK;
    if (gpu_is_contiguous(m))
        return upload_whole(m, host);
    gpu_matrix packed;
    TRY(gpu_create(&packed, m->storage->device, m->dtype, m->ndim, m->rows,
                   m->cols));
    gpu_status status = gpu_upload(&packed, host);
    if (status == GPU_OK)
        status = copy_here("upload", &packed, m);
    gpu_release(&packed);
    return status;
}

void *gpu_own_bytes(gpu_matrix *m)
{
    if (gpu_dry || gpu_is_complex(m) || check_target("upload", m) != GPU_OK ||
        !m->storage->device->is_cpu || !gpu_is_contiguous(m))
        return NULL;
    return gpu_target_of(m).data;
}

gpu_status gpu_download_unseen(const gpu_matrix *m, void *host)
{
    TRY(check_alive("download", m));
    if (gpu_size(m) == 0)
        return GPU_OK;
    if (gpu_is_contiguous(m))
        return download_bytes(m, host, gpu_view_of(m).data, gpu_bytes(m));
    gpu_matrix packed;
    TRY(gpu_clone(m, m->dtype, NULL, &packed));
    gpu_status status = gpu_download_unseen(&packed, host);
    gpu_release(&packed);
    return status;
}

gpu_status gpu_look_at_bytes(const gpu_matrix *m, void *host,
                             const void **bytes)
{
    *bytes = host;
    if (gpu_is_complex(m))
        return gpu_dry ? GPU_OK : gpu_complex_download(m, host);
    TRY(check_alive("download", m));
    if (gpu_dry || !m->storage->device->is_cpu || !gpu_is_contiguous(m))
        return gpu_download_unseen(m, host);
    *bytes = gpu_view_of(m).data;
    return GPU_OK;
}

gpu_status gpu_download(const gpu_matrix *m, void *host)
{
    TRY(gpu_download_unseen(m, gpu_dry ? NULL : host));
    return gpu_dry && gpu_size(m) > 0 ? gpu_fail_unread() : GPU_OK;
}

/* --- single elements ------------------------------------------------------ */

typedef union element {
    float f32;
    double f64;
    uint8_t truth;
} element;

static void *place(const gpu_matrix *m, int64_t i, int64_t j)
{
    int64_t at = m->offset + i * m->row_stride + j * m->col_stride;
    return (char *)m->storage->data + at * (int64_t)gpu_dtype_size(m->dtype);
}

static int is_inside(const gpu_matrix *m, int64_t i, int64_t j)
{
    return i >= 0 && i < m->rows && j >= 0 && j < m->cols;
}

static gpu_status check_place(const gpu_matrix *m, int64_t i, int64_t j)
{
    if (is_inside(m, i, j))
        return GPU_OK;
    return gpu_fail(GPU_RANGE, "element (%lld, %lld) is outside %s",
                    (long long)i + 1, (long long)j + 1, gpu_shape_text(m));
}

/* Is there nothing to be done before an element of m is read where it lies? */
static int is_at_hand(const gpu_matrix *m)
{
    const gpu_storage *s = m->storage;
    return s && s->device->is_cpu && !gpu_dry && !s->dry && !s->pending &&
           !s->incomplete;
}

static gpu_status fetch_element(const gpu_matrix *m, int64_t i, int64_t j,
                                double *out)
{
    element e;
    if (!is_at_hand(m) || gpu_is_complex(m))
        TRY(check_alive("read", m));
    TRY(check_place(m, i, j));
    gpu_matrix one = one_of(m);
    TRY(download_bytes(&one, &e, place(m, i, j), gpu_dtype_size(m->dtype)));
    if (gpu_dry)
        e.f64 = 1;
    *out = gpu_dry               ? e.f64
           : m->dtype == GPU_F32 ? (double)e.f32
           : m->dtype == GPU_F64 ? e.f64
                                 : (double)e.truth;
    return GPU_OK;
}

gpu_status gpu_get(const gpu_matrix *m, int64_t i, int64_t j, double *out)
{
    int64_t at = m->offset + i * m->row_stride + j * m->col_stride;
    int is_plain = is_at_hand(m) && is_inside(m, i, j);
    if (is_plain && m->dtype == GPU_F32)
        *out = (double)((const float *)m->storage->data)[at];
    else if (is_plain && m->dtype == GPU_F64)
        *out = ((const double *)m->storage->data)[at];
    else
        TRY(fetch_element(m, i, j, out));
    if (*out != *out)
        *out = NAN; /* whatever its sign bit: it is printed as nan, not -nan */
    return GPU_OK;
}

static gpu_status put_element(gpu_matrix *m, int64_t i, int64_t j, double value)
{
    element e;
    if (gpu_is_complex(m))
        return gpu_complex_set(m, i, j, (gpu_complex){value, 0});
    if (!is_at_hand(m) || m->storage->readers > 0)
        TRY(check_target("write", m));
    TRY(check_place(m, i, j));
    if (m->dtype == GPU_F32)
        e.f32 = (float)value;
    else if (m->dtype == GPU_F64)
        e.f64 = value;
    else
        e.truth = value != 0;
    gpu_matrix one = one_of(m);
    gpu_target_of(m);
    return upload_bytes(&one, place(m, i, j), &e, gpu_dtype_size(m->dtype));
}

gpu_status gpu_set(gpu_matrix *m, int64_t i, int64_t j, double value)
{
    int64_t at = m->offset + i * m->row_stride + j * m->col_stride;
    int is_plain =
        is_at_hand(m) && m->storage->readers == 0 && is_inside(m, i, j);
    if (!is_plain || (m->dtype != GPU_F32 && m->dtype != GPU_F64))
        return put_element(m, i, j, value);
    gpu_note_write(m);
    if (m->dtype == GPU_F32)
        ((float *)m->storage->data)[at] = (float)value;
    else
        ((double *)m->storage->data)[at] = value;
    return GPU_OK;
}

gpu_status gpu_fill(gpu_matrix *m, double value)
{
    gpu_program p;
    gpu_program_start(&p, 0);
    gpu_program_constant(&p, value);
    return gpu_map("fill", &p, NULL, m);
}

static gpu_status clear(const gpu_matrix *m)
{
    size_t bytes = m->storage->bytes;
    gpu_operation op = {.name = "fill",
                        .kernel = "clear",
                        .device = m->storage->device,
                        .result = m,
                        .writes_all = 1,
                        .bytes = (double)bytes};
    return RUN_OPERATION(&op, clear, m->storage->data, bytes);
}

gpu_status gpu_create_zeros(gpu_matrix *out, gpu_device *device,
                            gpu_dtype dtype, int ndim, int64_t rows,
                            int64_t cols)
{
    TRY(gpu_create(out, device, dtype, ndim, rows, cols));
    int clears = !gpu_dry && out->storage->device->backend->clear != NULL;
    gpu_status status = clears ? clear(out) : gpu_fill(out, 0);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* --- copies --------------------------------------------------------------- */

static gpu_status place_host(const gpu_matrix *from, const void *host,
                             gpu_matrix *to)
{
    if (from->dtype == to->dtype && from->ndim == to->ndim &&
        from->rows == to->rows && from->cols == to->cols)
        return gpu_upload(to, host);
    gpu_matrix there;
    TRY(gpu_create(&there, to->storage->device, from->dtype, from->ndim,
                   from->rows, from->cols));
    gpu_status status = gpu_upload(&there, host);
    if (status == GPU_OK)
        status = copy_here("copy", &there, to);
    gpu_release(&there);
    return status;
}

/* The view of the device as the backend's entries want it: rows side by side.
 * *other follows it. */
static int is_by_rows(gpu_view *v, gpu_view *other)
{
    if (v->col_stride != 1 && v->cols > 1) {
        *v = gpu_turned(v);
        *other = gpu_turned(other);
    }
    return (v->col_stride == 1 || v->cols == 1) &&
           (v->row_stride >= v->cols || v->rows == 1);
}

/* Between a device and host memory, where one copy is enough: GPU_UNSUPPORTED,
 * without a message, where it is not. */
static gpu_status copy_straight(const gpu_matrix *from, gpu_matrix *to)
{
    gpu_device *a = from->storage->device, *b = to->storage->device;
    gpu_device *d = a->is_cpu ? b : a;
    if (gpu_dry || a->is_cpu == b->is_cpu || !d->backend->bring ||
        from->ndim != to->ndim || from->rows != to->rows ||
        from->cols != to->cols)
        return GPU_UNSUPPORTED;
    gpu_view x = gpu_view_of(from), y = gpu_view_of(to);
    if (!is_by_rows(d == a ? &x : &y, d == a ? &y : &x))
        return GPU_UNSUPPORTED;
    if (gpu_size(to) == 0)
        return GPU_OK;
    gpu_target_of(to);
    size_t n = gpu_bytes(d == a ? from : to);
    *(d == a ? &gpu_counted.downloaded : &gpu_counted.uploaded) += n;
    gpu_operation op =
        bus(d == a ? "download" : "upload", d == a ? from : to, n);
    int began = begin_copy(d, n, d == a ? "from" : "to");
    gpu_begin_transfer(&op);
    gpu_status status = (d == a ? d->backend->fetch : d->backend->bring)(
        d->handle, GPU_LANE_WORK, &x, &y);
    gpu_end_work(began);
    if (status == GPU_OK)
        gpu_make_whole(to);
    else
        gpu_leave_incomplete(to);
    return gpu_end_transfer(&op, status);
}

/* Through host memory: the two devices know nothing of each other. */
static gpu_status copy_across(const gpu_matrix *from, gpu_matrix *to)
{
    size_t bytes = gpu_bytes(from);
    void *host = gpu_dry ? NULL : malloc(bytes ? bytes : 1);
    if (!host && !gpu_dry)
        return gpu_fail(GPU_MEMORY, "out of memory: %s to copy through",
                        gpu_bytes_text(bytes));
    gpu_status status = gpu_download_unseen(from, host);
    if (status == GPU_OK)
        status = place_host(from, host, to);
    free(host);
    return status;
}

gpu_status gpu_copy(const gpu_matrix *from, gpu_matrix *to)
{
    if (gpu_is_complex(from) || gpu_is_complex(to))
        return gpu_copy_complex(from, to);
    TRY(check_alive("copy", from));
    TRY(check_target("copy", to));
    if (from->storage->device == to->storage->device)
        return copy_here("copy", from, to);
    gpu_status status = copy_straight(from, to);
    return status == GPU_UNSUPPORTED ? copy_across(from, to) : status;
}

/* Few elements on the CPU go past all that larger operations look after. */
static gpu_status clone_few(const gpu_matrix *m, gpu_matrix *out)
{
    gpu_view from = gpu_view_of(m), to = gpu_view_of(out);
    gpu_program p;
    gpu_program_start(&p, 1);
    gpu_operation op = {.name = "copy",
                        .kernel = "map",
                        .device = m->storage->device,
                        .result = out,
                        .bytes = (double)(gpu_bytes(m) + gpu_bytes(out))};
    return RUN_OPERATION(&op, map, &p, &from, &to);
}

gpu_status gpu_clone(const gpu_matrix *m, gpu_dtype dtype, gpu_device *device,
                     gpu_matrix *out)
{
    enum { FEW = 256 };
    out->storage = NULL;
    if (!gpu_is_complex(m) || !m->storage)
        TRY(check_alive("clone", m));
    TRY(gpu_create(out, device ? device : m->storage->device, dtype, m->ndim,
                   m->rows, m->cols));
    int is_few = gpu_size(m) > 0 && gpu_size(m) <= FEW && is_at_hand(m) &&
                 !gpu_is_complex(m) &&
                 out->storage->device == m->storage->device &&
                 !gpu_is_complex(out);
    gpu_status status = is_few ? clone_few(m, out) : gpu_copy(m, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}
