/* What the tests of gpu/ itself share: a device of their own, which is the
 * CPU with other entries in front of it. Its memory is as small as a test
 * wants, knows every block, and makes NaN of what is new or given back. Its
 * matmul kernel keeps the elements of its operands as f64 and multiplies what
 * it kept, so that a product shows what it was made of; others need nothing,
 * and are chosen when memory is short or for their precision. */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include "core.h"
#include "cpu.h"
#include "cpu_testing.h"

static gpu_device *fake;

/* --- memory --------------------------------------------------------------- */

enum { FEW_BLOCKS = 2048, NAN_BYTE = 0xff, SPOILED = 1 << 16 };

static struct {
    size_t total, used;
    int refusals;   /* so many allocations from now on fail */
    int is_unknown; /* its size */
    int promises;   /* more than there is */
    int makes_room; /* when an allocation fails, as CUDA does */
    int is_lost, trims, count;
    struct {
        void *data;
        size_t bytes;
    } block[FEW_BLOCKS];
} ram;

/* Large blocks only in part, so that their pages are never touched. */
static inline void spoil(void *data, size_t bytes)
{
    memset(data, NAN_BYTE, bytes < SPOILED ? bytes : SPOILED);
}

static inline gpu_status take_block(size_t bytes, void **data)
{
    assert_true(ram.count < FEW_BLOCKS);
    if (ram.refusals > 0) {
        ram.refusals--;
        return GPU_MEMORY;
    }
    if (ram.used + bytes > ram.total && !ram.promises)
        return GPU_MEMORY;
    *data = malloc(bytes);
    assert_non_null(*data);
    spoil(*data, bytes);
    ram.block[ram.count].data = *data;
    ram.block[ram.count++].bytes = bytes;
    ram.used += bytes;
    return GPU_OK;
}

static inline gpu_status fake_alloc(void *handle, size_t bytes, void **data)
{
    gpu_status status = take_block(bytes, data);
    if (status == GPU_MEMORY && ram.makes_room &&
        gpu_cpu_host->make_room(handle))
        status = take_block(bytes, data);
    return status;
}

/* Only what was given out, once, and with its size. */
static inline void fake_free(void *handle, void *data, size_t bytes)
{
    int i = 0;
    (void)handle;
    while (i < ram.count && ram.block[i].data != data)
        i++;
    assert_true(i < ram.count);
    assert_int_equal(ram.block[i].bytes, bytes);
    ram.block[i] = ram.block[--ram.count];
    ram.used -= bytes;
    spoil(data, bytes);
    free(data);
}

static inline gpu_status fake_size(void *handle, size_t *room, size_t *total)
{
    (void)handle;
    if (ram.is_unknown)
        return GPU_INTERNAL;
    *room = ram.total > ram.used ? ram.total - ram.used : 0;
    *total = ram.total;
    return GPU_OK;
}

static inline void fake_trim(void *handle)
{
    (void)handle;
    ram.trims++;
}

/* --- the kernel ----------------------------------------------------------- */

enum { LEFT = 1, RIGHT = 2 }; /* kinds of kept things, too */

static struct {
    int keeps;              /* LEFT, RIGHT or both */
    int calls, found, made; /* calls of it, operands it found and kept */
    int64_t rows;           /* of c, in the last call */
    int failures;           /* so many calls from now on fail */
    gpu_status failure;     /* like this, with nothing filled yet */
    int spoils;         /* c, where it fails for other reasons than memory */
    size_t scratch;     /* bytes it needs besides */
    int has_substitute; /* small, where memory is short */
    int others;         /* calls of the kernels that need nothing */
    double error;       /* added to the last element of a result */
} keeper;

typedef struct plane {
    double *data; /* NULL: not kept, place it in scratch */
    size_t bytes;
    int is_found;
} plane;

static inline plane find_plane(gpu_storage *s, const gpu_view *v, int kind)
{
    gpu_keep_key key = {kind, *v};
    plane p = {.bytes = (size_t)(v->rows * v->cols) * sizeof(double)};
    if (!(keeper.keeps & kind))
        return p;
    p.data = gpu_cpu_host->recall(s, &key);
    p.is_found = p.data != NULL;
    if (!p.data)
        p.data = gpu_cpu_host->keep(s, &key, p.bytes);
    keeper.found += p.is_found;
    keeper.made += p.data && !p.is_found;
    return p;
}

static inline void fill_plane(plane *p, const gpu_view *v, char **scratch)
{
    if (!p->data) {
        p->data = (double *)(void *)*scratch;
        *scratch += p->bytes;
    }
    for (int64_t i = 0; i < v->rows && !p->is_found; i++)
        for (int64_t j = 0; j < v->cols; j++)
            p->data[i * v->cols + j] = get(v, i, j);
}

static inline void multiply_planes(const gpu_gemm *p, const double *a,
                                   const double *b)
{
    int64_t n = p->c.cols, depth = p->a.cols;
    for (int64_t i = 0; i < p->c.rows; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = p->beta == 0 ? 0 : p->beta * get(&p->c, i, j);
            for (int64_t k = 0; k < depth; k++)
                sum += p->alpha * a[i * depth + k] * b[k * n + j];
            set(&p->c, i, j, sum);
        }
    set(&p->c, p->c.rows - 1, n - 1,
        get(&p->c, p->c.rows - 1, n - 1) + keeper.error);
}

static inline void spoil_result(const gpu_gemm *p)
{
    for (int64_t i = 0; i < p->c.rows; i++)
        for (int64_t j = 0; j < p->c.cols; j++)
            set(&p->c, i, j, NAN);
}

/* An attempt may have written anything before it fails, but for memory. */
static inline gpu_status fail_as_told(const gpu_gemm *p)
{
    keeper.failures--;
    if (keeper.spoils && keeper.failure != GPU_MEMORY)
        spoil_result(p);
    return gpu_fail(keeper.failure, "matmul: kernel keeper was told to");
}

static inline gpu_status keep_and_multiply(void *handle, const gpu_gemm *p)
{
    plane a = find_plane(p->a_storage, &p->a, LEFT);
    plane b = find_plane(p->b_storage, &p->b, RIGHT);
    size_t bytes = keeper.scratch + (a.data ? 0 : a.bytes);
    bytes += b.data ? 0 : b.bytes;
    void *scratch = NULL;
    keeper.calls++;
    keeper.rows = p->c.rows;
    if (keeper.failures > 0)
        return fail_as_told(p);
    if (bytes > 0 && fake_alloc(handle, bytes, &scratch) != GPU_OK)
        return gpu_fail(GPU_MEMORY, "matmul: no room for keeper's scratch");
    if (p->beta == 0)
        spoil_result(p);
    char *place = scratch;
    fill_plane(&a, &p->a, &place);
    fill_plane(&b, &p->b, &place);
    multiply_planes(p, a.data, b.data);
    if (scratch)
        fake_free(handle, scratch, bytes);
    return GPU_OK;
}

static inline gpu_status multiply_in_place(void *handle, const gpu_gemm *p)
{
    (void)handle;
    keeper.others++;
    for (int64_t i = 0; i < p->c.rows; i++)
        for (int64_t j = 0; j < p->c.cols; j++) {
            double sum = p->beta == 0 ? 0 : p->beta * get(&p->c, i, j);
            for (int64_t k = 0; k < p->a.cols; k++)
                sum += p->alpha * get(&p->a, i, k) * get(&p->b, k, j);
            set(&p->c, i, j, sum);
        }
    return GPU_OK;
}

static inline double exactly(gpu_dtype dtype, int64_t k)
{
    (void)dtype, (void)k;
    return 0;
}

static const gpu_kernel keeper_kernel = {
    .operation = "matmul",
    .name = "keeper",
    .idea = "multiplies what it kept",
    .needs = "a test",
    .precision = "f32",
    .dtypes = 1u << GPU_F32 | 1u << GPU_F64,
    .bound = exactly,
    .matmul = keep_and_multiply,
};

enum { CAPABILITY = 10 };

#define IN_PLACE(id, its_precision, its_capability) \
    static const gpu_kernel id##_kernel = {         \
        .operation = "matmul",                      \
        .name = #id,                                \
        .idea = "multiplies what is there",         \
        .needs = "a test",                          \
        .precision = its_precision,                 \
        .capability = its_capability,               \
        .dtypes = 1u << GPU_F32,                    \
        .bound = exactly,                           \
        .matmul = multiply_in_place,                \
    }
IN_PLACE(small, "f32", 0);
IN_PLACE(later, "tf32", CAPABILITY + 1);
IN_PLACE(rough, "tf32", CAPABILITY);
IN_PLACE(peer, "tf32", 0);

static inline int fake_kernels(const gpu_kernel *const **list)
{
    static const gpu_kernel *const all[] = {&keeper_kernel, &small_kernel,
                                            &later_kernel, &rough_kernel,
                                            &peer_kernel};
    *list = all;
    return sizeof all / sizeof *all;
}

/* Asks what is there before it chooses, as CUDA does. */
static inline const gpu_kernel *fake_choice(void *handle, const gpu_gemm *p)
{
    gpu_keep_key a = {LEFT, p->a}, b = {RIGHT, p->b};
    (void)handle;
    gpu_cpu_host->recall(p->a_storage, &a);
    gpu_cpu_host->recall(p->b_storage, &b);
    if (p->is_short_of_memory && keeper.has_substitute)
        return &small_kernel;
    return &keeper_kernel;
}

/* --- the device ----------------------------------------------------------- */

static inline int fake_is_lost(void *handle)
{
    (void)handle;
    return ram.is_lost;
}

static inline int fake_capability(void *handle)
{
    (void)handle;
    return CAPABILITY;
}

/* Before each test. The CPU's device gets the other table after it is opened:
 * the next one who asks for the CPU opens another. */
static inline int open_fake(void **state)
{
    static gpu_backend table;
    (void)state;
    if (gpu_open("cpu", &fake) != GPU_OK)
        return 1;
    table = *fake->backend;
    table.name = "fake";
    table.is_lost = fake_is_lost;
    table.capability = fake_capability;
    table.alloc = fake_alloc;
    table.free = fake_free;
    table.memory = fake_size;
    table.trim = fake_trim;
    table.kernels = fake_kernels;
    table.choose_matmul = fake_choice;
    fake->backend = &table;
    fake->is_cpu = 0;
    snprintf(fake->name, sizeof fake->name, "fake:0");
    memset(&ram, 0, sizeof ram);
    memset(&keeper, 0, sizeof keeper);
    ram.total = 64 << 20;
    keeper.keeps = LEFT | RIGHT;
    return 0;
}

/* After each test: every block is back. */
static inline int close_fake(void **state)
{
    (void)state;
    gpu_on_memory_short(NULL, NULL);
    int leaks = fake->live != 0 || ram.used != 0 || ram.count != 0;
    gpu_shutdown();
    return leaks;
}

#endif
