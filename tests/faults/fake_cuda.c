/* liblumat-cuda.so without a GPU: the CPU's backend under CUDA's name, with
 * CUDA's errors where the environment has LUMAT_FAULT, with so many bytes of
 * memory a device where it has LUMAT_FAKE_MEMORY, after a comma of the second
 * and so on, and as so many devices where it has LUMAT_FAKE_DEVICES. What
 * becomes of them in gpu/ and above can be tested with it anywhere. */
#include "backend.h"

#define random random_of_stdlib /* here it is an entry */
#include <stdlib.h>
#undef random
#include <string.h>

/* The errors of CUDA's that are given here. */
enum {
    INVALID_VALUE = 1,
    MEMORY_ALLOCATION = 2,
    INSUFFICIENT_DRIVER = 35,
    NO_DEVICE = 100,
    ILLEGAL_ADDRESS = 700,
    OUT_OF_RESOURCES = 701
};

static const gpu_host *host;
static const gpu_backend *cpu;

/* Its address is its handle. */
enum { MOST = 16 };
typedef struct fake {
    int is_lost;
    size_t used; /* bytes */
} fake;
static fake fakes[MOST];

static int number_of(const void *handle)
{
    return (int)((const fake *)handle - fakes);
}

static int is_sticky(int error)
{
    static const int sticky[] = {214, 220, 226, 700, 702, 710, 714, 715,
                                 716, 717, 718, 719, 721, 810, 911, 999};
    for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++)
        if (sticky[i] == error)
            return 1;
    return 0;
}

gpu_status fake_fail(const char *why); /* of fake_exchange.c */
gpu_status fake_fail(const char *why)
{
    return host->fail(GPU_INTERNAL, "%s", why);
}

/* A call of CUDA's, which fails or not. */
static gpu_status call(void *handle, gpu_fault_site *site)
{
    fake *d = handle;
    int number = number_of(d);
    if (d->is_lost)
        return host->fail(GPU_LOST, "cuda:%d failed earlier and is lost",
                          number);
    int error = host->fault ? host->fault(site) : 0;
    if (error == 0)
        return GPU_OK;
    d->is_lost = is_sticky(error);
    if (error == MEMORY_ALLOCATION)
        return host->fail(GPU_MEMORY, "cuda:%d: out of memory", number);
    if (!d->is_lost)
        return host->fail(GPU_INTERNAL, "cuda:%d: (cudaError%d)", number,
                          error);
    return host->fail(GPU_LOST,
                      "cuda:%d failed: (cudaError%d); its matrices are "
                      "lost, and at the prompt :restart uses it again",
                      number, error);
}

#define CALL(of, error)                                            \
    do {                                                           \
        static gpu_fault_site site = {.name = of, .usual = error}; \
        gpu_status status = call(handle, &site);                   \
        if (status != GPU_OK)                                      \
            return status;                                         \
    } while (0)

static int probe(char *why, size_t size)
{
    static gpu_fault_site site = {.name = "cudaGetDeviceCount",
                                  .usual = NO_DEVICE};
    int error = host->fault ? host->fault(&site) : 0;
    const char *devices = getenv("LUMAT_FAKE_DEVICES");
    if (error == 0)
        return !devices ? 1 : atoi(devices) < MOST ? atoi(devices) : MOST;
    strncpy(why,
            error == INSUFFICIENT_DRIVER ? "the driver is too old"
                                         : "no NVIDIA GPU here",
            size);
    return error == INSUFFICIENT_DRIVER ? -1 : 0;
}

static gpu_status open_device(int index, void **out)
{
    void *unused, *handle = &fakes[index];
    CALL("cudaSetDevice", INVALID_VALUE);
    CALL("cudaMallocHost", MEMORY_ALLOCATION);
    *out = handle;
    return cpu->open(0, &unused);
}

static const char *describe(void *handle)
{
    (void)handle;
    return "the CPU under another name";
}

static int capability(void *handle)
{
    (void)handle;
    return 90;
}

static int is_lost(void *handle)
{
    return ((const fake *)handle)->is_lost;
}

static size_t all_memory(const void *handle)
{
    const char *text = getenv("LUMAT_FAKE_MEMORY"), *next;
    for (int i = 0; text && i < number_of(handle); i++) {
        next = strchr(text, ',');
        text = next ? next + 1 : text;
    }
    return text ? (size_t)atoll(text) : SIZE_MAX;
}

static gpu_status take(void *handle, size_t bytes, void **data)
{
    CALL("cudaMallocAsync", MEMORY_ALLOCATION);
    fake *d = handle;
    if (bytes > all_memory(d) - d->used)
        return GPU_MEMORY;
    gpu_status status = cpu->alloc(handle, bytes, data);
    if (status == GPU_OK)
        d->used += bytes;
    return status;
}

static void give(void *handle, void *data, size_t bytes)
{
    cpu->free(handle, data, bytes);
    ((fake *)handle)->used -= bytes;
}

static gpu_status upload(void *handle, void *to, const void *from, size_t n)
{
    CALL("cudaMemcpyAsync", INVALID_VALUE);
    return cpu->upload(handle, to, from, n);
}

static gpu_status download(void *handle, void *to, const void *from, size_t n)
{
    CALL("cudaMemcpyAsync", INVALID_VALUE);
    CALL("cudaStreamQuery", ILLEGAL_ADDRESS);
    return cpu->download(handle, to, from, n);
}

static gpu_status bring(void *handle, gpu_lane lane, const gpu_view *from,
                        const gpu_view *to)
{
    CALL("cudaMemcpyAsync", INVALID_VALUE);
    return cpu->bring(handle, lane, from, to);
}

static gpu_status fetch(void *handle, gpu_lane lane, const gpu_view *from,
                        const gpu_view *to)
{
    CALL("cudaMemcpyAsync", INVALID_VALUE);
    return cpu->fetch(handle, lane, from, to);
}

static gpu_status deliver(void *handle, int give_up)
{
    CALL("cudaEventQuery", ILLEGAL_ADDRESS);
    return cpu->deliver(handle, give_up);
}

static gpu_status mark(void *handle, gpu_lane lane, int at)
{
    CALL("cudaEventRecord", INVALID_VALUE);
    return cpu->mark(handle, lane, at);
}

static gpu_status follow(void *handle, gpu_lane lane, int at)
{
    CALL("cudaStreamWaitEvent", INVALID_VALUE);
    return cpu->follow(handle, lane, at);
}

static gpu_status memory(void *handle, size_t *available, size_t *total)
{
    CALL("cudaMemGetInfo", INVALID_VALUE);
    gpu_status status = cpu->memory(handle, available, total);
    if (all_memory(handle) < *total) {
        *total = all_memory(handle);
        *available = *total - ((fake *)handle)->used;
    }
    return status;
}

static gpu_status sync_device(void *handle)
{
    CALL("cudaStreamQuery", ILLEGAL_ADDRESS);
    return cpu->sync(handle);
}

/* Entries that launch a kernel: their parameters behind the handle, and the
 * names of these. */
#define ENTRY(name, parameters, ...)                \
    static gpu_status name parameters               \
    {                                               \
        CALL("cudaLaunchKernel", OUT_OF_RESOURCES); \
        return cpu->name(handle, __VA_ARGS__);      \
    }
#define VIEW const gpu_view *
ENTRY(map, (void *handle, const gpu_program *p, VIEW in, VIEW out), p, in, out)
ENTRY(reduce, (void *handle, const gpu_program *p, VIEW in, int axis, VIEW out),
      p, in, axis, out)
ENTRY(gather,
      (void *handle, VIEW from, const int64_t *rows, const int64_t *cols,
       VIEW to),
      from, rows, cols, to)
ENTRY(scatter,
      (void *handle, VIEW from, const int64_t *rows, const int64_t *cols,
       VIEW to),
      from, rows, cols, to)
ENTRY(pick, (void *handle, const gpu_picking *p), p)
ENTRY(compress, (void *handle, VIEW from, VIEW mask, VIEW to), from, mask, to)
ENTRY(expand, (void *handle, VIEW from, VIEW mask, VIEW to), from, mask, to)
ENTRY(scan, (void *handle, gpu_scan_kind kind, int axis, VIEW from, VIEW to),
      kind, axis, from, to)
ENTRY(sort,
      (void *handle, int axis, int descending, VIEW from, VIEW to, VIEW order),
      axis, descending, from, to, order)
ENTRY(search, (void *handle, VIEW sorted, VIEW values, int is_after, VIEW to),
      sorted, values, is_after, to)
ENTRY(group, (void *handle, const gpu_grouping *g), g)
ENTRY(windows, (void *handle, const gpu_windows *w), w)
ENTRY(random, (void *handle, const gpu_random *r, VIEW to), r, to)
ENTRY(survey, (void *handle, VIEW v, double scale, gpu_survey *out), v, scale,
      out)
ENTRY(bins, (void *handle, VIEW v, const gpu_bins *how, int64_t *counts), v,
      how, counts)
ENTRY(blocks, (void *handle, gpu_block_kind kind, VIEW v, VIEW to), kind, v, to)
ENTRY(sparse_product, (void *handle, const gpu_sparse_call *p), p)

/* As a GPU does: ordered rows alone. */
static gpu_status fold(void *handle, const gpu_folding *f)
{
    if (f->codes.data || f->kind == GPU_FOLD_MEDIAN)
        return GPU_UNSUPPORTED;
    CALL("cudaLaunchKernel", OUT_OF_RESOURCES);
    return cpu->fold(handle, f);
}

/* One kernel of each operation, named as the CPU's first. */
static gpu_status matmul(void *handle, const gpu_gemm *p)
{
    CALL("cudaLaunchKernel", OUT_OF_RESOURCES);
    return cpu->choose_matmul(handle, p)->matmul(handle, p);
}

static gpu_status dot(void *handle, VIEW x, VIEW y, double *out)
{
    CALL("cudaLaunchKernel", OUT_OF_RESOURCES);
    CALL("cudaStreamQuery", ILLEGAL_ADDRESS);
    return cpu->choose_dot(handle, x, y)->dot(handle, x, y, out);
}

static gpu_kernel rungs[2];
static const gpu_kernel *const list[] = {&rungs[0], &rungs[1]};

static int kernels(const gpu_kernel *const **out)
{
    *out = list;
    return 2;
}

static const gpu_kernel *choose_matmul(void *handle, const gpu_gemm *p)
{
    (void)handle, (void)p;
    return &rungs[0];
}

static const gpu_kernel *choose_dot(void *handle, VIEW x, VIEW y)
{
    (void)handle, (void)x, (void)y;
    return &rungs[1];
}

static void make_kernels(void)
{
    const gpu_kernel *const *all;
    int count = cpu->kernels(&all);
    for (int i = 0; i < count; i++)
        rungs[strcmp(all[i]->operation, "dot") == 0] = *all[i];
    rungs[0].matmul = matmul;
    rungs[1].dot = dot;
}

gpu_backend_entry lumat_backend __attribute__((visibility("default")));
const gpu_backend *lumat_backend(const gpu_host *given)
{
    static gpu_backend table;
    host = given;
    cpu = gpu_cpu_backend(given);
    if (!cpu)
        return NULL;
    make_kernels();
    table = *cpu;
    table.select = NULL; /* as CUDA's: gpu/ sorts */
    table.name = "cuda";
    table.probe = probe;
    table.open = open_device;
    table.describe = describe;
    table.capability = capability;
    table.is_lost = is_lost;
    table.alloc = take;
    table.free = give;
    table.upload = upload;
    table.download = download;
    table.bring = bring;
    table.fetch = fetch;
    table.deliver = deliver;
    table.mark = mark;
    table.follow = follow;
    table.memory = memory;
    table.sync = sync_device;
    table.map = map;
    table.reduce = reduce;
    table.gather = gather;
    table.scatter = scatter;
    table.pick = pick;
    table.compress = compress;
    table.expand = expand;
    table.scan = scan;
    table.sort = sort;
    table.search = search;
    table.group = group;
    table.fold = fold;
    table.windows = windows;
    table.random = random;
    table.survey = survey;
    table.bins = bins;
    table.blocks = blocks;
    table.sparse_product = sparse_product;
    table.kernels = kernels;
    table.choose_matmul = choose_matmul;
    table.choose_dot = choose_dot;
    table.solve = NULL; /* the CPU stands in, on copies */
    table.determinant = NULL;
    table.inverse_norm = NULL;
    table.factor = NULL;
    return &table;
}
