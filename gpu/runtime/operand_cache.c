/* What kernels keep about an operand, so as not to work it out again: found
 * by what was worked out from which view, dropped when the operand is
 * written to or released, when memory is short, and oldest first when there
 * is too much of it. What the running product uses stays, at the head of the
 * list, until its kernel returns. */
#include "core.h"

#include <stdlib.h>

enum { MOST = 256, SHARE = 4 }; /* entries; of the device's memory, 1 / SHARE */

struct gpu_kept {
    gpu_kept *next; /* the device's list, latest use first */
    gpu_storage *storage;
    gpu_keep_key key;
    void *data;
    size_t bytes;
    uint64_t made, used; /* the first product and the last */
};

static int is_same(const gpu_keep_key *x, const gpu_keep_key *y)
{
    const gpu_view *a = &x->view, *b = &y->view;
    return x->kind == y->kind && a->data == b->data && a->dtype == b->dtype &&
           a->rows == b->rows && a->cols == b->cols &&
           a->row_stride == b->row_stride && a->col_stride == b->col_stride;
}

/* Takes *link out of its list and gives its memory back. */
static void drop(gpu_kept **link)
{
    gpu_kept *k = *link;
    gpu_device *d = k->storage->device;
    *link = k->next;
    k->storage->kept--;
    d->kept_bytes -= k->bytes;
    d->kept_count--;
    d->backend->free(d->handle, k->data, k->bytes);
    free(k);
}

/* Drops what was used longest ago. */
static void drop_last(gpu_device *d)
{
    gpu_kept **link = &d->kept;
    while ((*link)->next)
        link = &(*link)->next;
    drop(link);
}

static int is_in_use(const gpu_device *d, const gpu_kept *k)
{
    return k->used == d->keep_round;
}

static void use(gpu_device *d, gpu_kept **link)
{
    gpu_kept *k = *link;
    *link = k->next;
    k->next = d->kept;
    d->kept = k;
    k->used = d->keep_round;
}

/* Between products, to look is not to use. */
void *gpu_recall(gpu_storage *s, const gpu_keep_key *key)
{
    if (!s || s->kept == 0)
        return NULL;
    gpu_device *d = s->device;
    for (gpu_kept **link = &d->kept; *link; link = &(*link)->next) {
        gpu_kept *k = *link;
        if (k->storage != s || !is_same(&k->key, key))
            continue;
        if (d->is_multiplying)
            use(d, link);
        return k->data;
    }
    return NULL;
}

static size_t limit_of(gpu_device *d)
{
    size_t free, total;
    if (!d->keep_limit_known &&
        d->backend->memory(d->handle, &free, &total) == GPU_OK) {
        d->keep_limit = total / SHARE;
        d->keep_limit_known = 1;
    }
    return d->keep_limit;
}

/* Can so many bytes be kept beside what the running product uses? */
static int fits(gpu_device *d, size_t bytes)
{
    int count = 0;
    for (const gpu_kept *k = d->kept; k && is_in_use(d, k); k = k->next) {
        bytes += k->bytes;
        count++;
    }
    return count < MOST && bytes <= limit_of(d);
}

void *gpu_keep(gpu_storage *s, const gpu_keep_key *key, size_t bytes)
{
    if (!s || !fits(s->device, bytes))
        return NULL;
    gpu_device *d = s->device;
    gpu_kept *k = malloc(sizeof *k);
    if (!k)
        return NULL;
    while (d->kept_count >= MOST || d->kept_bytes + bytes > limit_of(d))
        drop_last(d);
    *k = (gpu_kept){.storage = s,
                    .key = *key,
                    .bytes = bytes,
                    .made = d->keep_round,
                    .used = d->keep_round};
    if (d->backend->alloc(d->handle, bytes, &k->data) != GPU_OK) {
        free(k);
        return NULL;
    }
    k->next = d->kept;
    d->kept = k;
    d->kept_count++;
    d->kept_bytes += bytes;
    s->kept++;
    return k->data;
}

void gpu_drop_kept(gpu_storage *s)
{
    gpu_kept **link = &s->device->kept;
    while (s->kept > 0 && *link) {
        if ((*link)->storage == s)
            drop(link);
        else
            link = &(*link)->next;
    }
}

void gpu_drop_all_kept(gpu_device *d)
{
    while (d->kept)
        drop(&d->kept);
}

static int drop_unused(gpu_device *d)
{
    gpu_kept **link = &d->kept;
    while (*link && is_in_use(d, *link))
        link = &(*link)->next;
    int went = *link != NULL;
    while (*link)
        drop(link);
    return went;
}

int gpu_make_room(void *handle)
{
    gpu_device *d = gpu_device_of(handle);
    return d ? drop_unused(d) : 0;
}

void gpu_begin_product(gpu_device *d)
{
    d->is_multiplying = 1;
}

static void drop_made(gpu_device *d)
{
    gpu_kept **link = &d->kept;
    while (*link) {
        if ((*link)->made == d->keep_round)
            drop(link);
        else
            link = &(*link)->next;
    }
}

void gpu_end_product(gpu_device *d, gpu_status status)
{
    if (status != GPU_OK)
        drop_made(d);
    d->is_multiplying = 0;
    d->keep_round++;
}

void gpu_forget(const gpu_matrix *m)
{
    if (m->storage && m->storage->kept)
        gpu_drop_kept(m->storage);
}

size_t gpu_kept_bytes(const gpu_matrix *m)
{
    size_t bytes = 0;
    if (!m->storage || !m->storage->kept)
        return 0;
    for (const gpu_kept *k = m->storage->device->kept; k; k = k->next)
        bytes += k->storage == m->storage ? k->bytes : 0;
    return bytes;
}

void gpu_set_keep_limit(gpu_device *d, size_t bytes)
{
    d->keep_limit = bytes;
    d->keep_limit_known = 1;
    while (d->kept_bytes > bytes)
        drop_last(d);
}
