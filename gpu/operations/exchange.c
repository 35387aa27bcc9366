/* Exchanges between processes: matrices in, bytes of the device out. */
#include "complex_numbers.h"
#include "core.h"
#include "exchange.h"

#include <stdlib.h>

struct gpu_exchange {
    const gpu_exchange_entry *entry;
    void *handle;
    gpu_device *device;
};

static gpu_status find_entry(gpu_device *d, const gpu_exchange_entry **out)
{
    *out = d->is_cpu ? NULL : gpu_find_in_cuda(GPU_EXCHANGE_SYMBOL);
    if (!*out || (*out)->abi != GPU_EXCHANGE_ABI)
        return gpu_fail(GPU_UNSUPPORTED,
                        "%s has no way to devices of other processes", d->name);
    return GPU_OK;
}

gpu_status gpu_exchange_make_name(gpu_device *d,
                                  unsigned char name[GPU_EXCHANGE_NAME])
{
    const gpu_exchange_entry *entry;
    TRY(find_entry(d, &entry));
    return entry->make_name(d->handle, name);
}

gpu_status gpu_exchange_open(gpu_device *d,
                             const unsigned char name[GPU_EXCHANGE_NAME],
                             int rank, int count, gpu_exchange **out)
{
    const gpu_exchange_entry *entry;
    TRY(find_entry(d, &entry));
    gpu_exchange *e = malloc(sizeof *e);
    if (!e)
        return gpu_fail(GPU_MEMORY, "out of memory for an exchange");
    *e = (gpu_exchange){.entry = entry, .device = d};
    gpu_status status = entry->open(d->handle, name, rank, count, &e->handle);
    if (status != GPU_OK) {
        free(e);
        return status;
    }
    *out = e;
    return GPU_OK;
}

void gpu_exchange_close(gpu_exchange *e)
{
    if (e)
        e->entry->close(e->handle);
    free(e);
}

static gpu_status check_parcel(const gpu_parcel *p, const gpu_device *d)
{
    const gpu_matrix *in[] = {p->m};
    gpu_device *on = NULL;
    TRY(p->is_incoming ? gpu_check_complex_target("exchange", p->m, &on)
                       : gpu_check_complex("exchange", in, 1, &on));
    if (on != d || !gpu_is_contiguous(p->m) || p->m->is_conjugated)
        return gpu_fail(GPU_INTERNAL,
                        "exchange: elements of %s with gaps, or of another "
                        "device",
                        on->name);
    return GPU_OK;
}

/* Where its elements lie, for reading or for writing all; those of pairs begin
 * with the first real part. */
static gpu_status place_of(const gpu_parcel *p, const gpu_device *d,
                           void **data)
{
    gpu_matrix reals;
    TRY(check_parcel(p, d));
    gpu_view_part(p->m, GPU_REAL_PART, &reals);
    *data =
        p->is_incoming ? gpu_target_of(&reals).data : gpu_view_of(&reals).data;
    gpu_release(&reals);
    if (p->is_incoming)
        gpu_make_whole(p->m);
    return GPU_OK;
}

gpu_status gpu_exchange_begin(gpu_exchange *e, const gpu_parcel *list, int n)
{
    gpu_bytes_parcel *all = calloc((size_t)n + 1, sizeof *all);
    if (!all)
        return gpu_fail(GPU_MEMORY, "out of memory for an exchange");
    gpu_status status = GPU_OK;
    for (int i = 0; i < n && status == GPU_OK; i++) {
        all[i] = (gpu_bytes_parcel){.bytes = gpu_bytes(list[i].m),
                                    .peer = list[i].peer,
                                    .is_incoming = list[i].is_incoming};
        status = place_of(&list[i], e->device, &all[i].data);
    }
    if (status == GPU_OK)
        status = e->entry->begin(e->handle, all, n);
    free(all);
    return status;
}

gpu_status gpu_exchange_finish(gpu_exchange *e)
{
    return e->entry->finish(e->handle);
}

const char *gpu_exchange_lacks(const gpu_exchange *e, gpu_grid_task task)
{
    return e->entry->lacks(e->handle, task);
}

/* As a parcel that is read, and then written where it is. */
static gpu_status find_data(gpu_exchange *e, gpu_matrix *m, int is_written,
                            void **data)
{
    gpu_parcel p = {m, 0, 0};
    TRY(place_of(&p, e->device, data));
    if (!is_written)
        return GPU_OK;
    p.is_incoming = 1;
    return place_of(&p, e->device, data);
}

static gpu_status view_part(gpu_exchange *e, const gpu_grid_part *part,
                            int is_written, gpu_dtype type, gpu_grid_view *out)
{
    gpu_matrix *m = part->data;
    *out = (gpu_grid_view){0};
    if (!m)
        return GPU_OK;
    if (m->dtype != type)
        return gpu_fail(GPU_INTERNAL, "parts of a grid of two types");
    *out = (gpu_grid_view){NULL,     part->m, part->n, part->mb,
                           part->nb, m->cols, m->rows};
    return find_data(e, m, is_written, &out->data);
}

gpu_status gpu_exchange_work(gpu_exchange *e, gpu_grid_job *job)
{
    gpu_grid_task t = job->task;
    gpu_dtype type = job->a.data->dtype;
    int is_factor = t == GPU_GRID_LU || t == GPU_GRID_CHOLESKY ||
                    t == GPU_GRID_QR || t == GPU_GRID_EIGH;
    gpu_grid_work w = {.task = t,
                       .type = type,
                       .rows = job->rows,
                       .cols = job->cols,
                       .agree = job->agree,
                       .context = job->context};
    TRY(view_part(e, &job->a, is_factor, type, &w.a));
    TRY(view_part(e, &job->b, t != GPU_GRID_PRODUCT, type, &w.b));
    TRY(view_part(e, &job->c, 1, type, &w.c));
    if (job->numbers)
        TRY(find_data(e, job->numbers, is_factor, &w.numbers));
    gpu_status status = e->entry->work(e->handle, &w);
    job->trouble = w.trouble;
    return status;
}
