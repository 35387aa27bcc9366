/* What kernels keep about an operand, so as not to work it out again: found
 * by what was worked out from which view, dropped when the operand is
 * written to or released, when memory is short, and oldest first when there
 * is too much of it. */
#include "core.h"

#include <stdlib.h>

enum { MOST = 256, SHARE = 4 }; /* entries; of the device's memory, 1 / SHARE */

struct gpu_kept {
    gpu_kept *next; /* the device's list, latest use first */
    gpu_storage *storage;
    gpu_keep_key key;
    void *data;
    size_t bytes;
    uint64_t round; /* the product that used it last */
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

/* Drops what was used longest ago, but nothing the running product uses. */
static int drop_last(gpu_device *d)
{
    gpu_kept **link = &d->kept;
    if (!d->kept)
        return 0;
    while ((*link)->next)
        link = &(*link)->next;
    if ((*link)->round == d->keep_round)
        return 0;
    drop(link);
    return 1;
}

void *gpu_recall(gpu_storage *s, const gpu_keep_key *key)
{
    if (!s || s->kept == 0)
        return NULL;
    gpu_device *d = s->device;
    for (gpu_kept **link = &d->kept; *link; link = &(*link)->next) {
        gpu_kept *k = *link;
        if (k->storage != s || !is_same(&k->key, key))
            continue;
        *link = k->next;
        k->next = d->kept;
        d->kept = k;
        k->round = d->keep_round;
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

void *gpu_keep(gpu_storage *s, const gpu_keep_key *key, size_t bytes)
{
    if (!s || bytes > limit_of(s->device))
        return NULL;
    gpu_device *d = s->device;
    while (d->kept_count >= MOST || d->kept_bytes + bytes > limit_of(d)) {
        if (!drop_last(d))
            return NULL;
    }
    gpu_kept *k = malloc(sizeof *k);
    if (!k)
        return NULL;
    *k = (gpu_kept){
        .storage = s, .key = *key, .bytes = bytes, .round = d->keep_round};
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

void gpu_forget(const gpu_matrix *m)
{
    if (m->storage && m->storage->kept)
        gpu_drop_kept(m->storage);
}

void gpu_set_keep_limit(gpu_device *d, size_t bytes)
{
    d->keep_limit = bytes;
    d->keep_limit_known = 1;
    d->keep_round++; /* no product is running */
    while (d->kept_bytes > bytes && drop_last(d))
        continue;
}
