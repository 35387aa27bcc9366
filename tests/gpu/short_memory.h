/* Products that lack memory or whose kernel fails, on a fake device: who is
 * asked for garbage, what is laid out for a product, and which kernel it is
 * that ran. For the tests of short memory and of lost attempts. */
#ifndef TESTS_SHORT_MEMORY_H
#define TESTS_SHORT_MEMORY_H

#include "kept_products.h"

/* --- who collects garbage ------------------------------------------------- */

static struct {
    int calls;
    size_t kept; /* when it was called */
    gpu_matrix garbage;
} collector;

static inline int collect(void *data)
{
    (void)data;
    collector.calls++;
    collector.kept = kept();
    gpu_release(&collector.garbage);
    return 1;
}

static inline void set_collector(void)
{
    memset(&collector, 0, sizeof collector);
    collector.kept = SIZE_MAX;
    gpu_on_memory_short(collect, NULL);
}

/* --- a product about to be made ------------------------------------------- */

/* a and b of a product about to be made, c for it, and others about which
 * things are kept. */
static struct {
    gpu_matrix a, b, c, others[2];
} scene;

static inline void lay_out(void)
{
    start(&scene.others[0], &scene.others[1]);
    scene.a = matrix(3, 4);
    scene.b = matrix(4, 2);
    scene.c = matrix(3, 2);
}

static inline void put_away(void)
{
    release_all(scene.others, 2);
    gpu_release(&scene.a);
    gpu_release(&scene.b);
    gpu_release(&scene.c);
}

static inline int kept_about_operands(void)
{
    return scene.a.storage->kept + scene.b.storage->kept;
}

/* --- the kernel that ran -------------------------------------------------- */

static const char *traced;

static inline void note_kernel(const gpu_event *e, void *data)
{
    (void)data;
    if (e->status == GPU_OK && strcmp(e->operation, "matmul") == 0)
        traced = e->kernel;
}

static inline gpu_status traced_product(const gpu_product *how, gpu_matrix *c)
{
    traced = NULL;
    keeper.calls = keeper.others = 0;
    gpu_set_trace(note_kernel, NULL);
    gpu_status status = gpu_matmul(&scene.a, &scene.b, how, c);
    gpu_set_trace(NULL, NULL);
    return status;
}

#endif
