/* The CPU backend: its table, and what a device must say about itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"
#include "vector.h"

const gpu_host *gpu_cpu_host;
const gpu_cpu_vector *gpu_cpu_vectors = &gpu_cpu_vector_base;

/* The one device. */
static struct {
    char description[160];
    double started;
} device_state;

static int probe(char *why, size_t size)
{
    (void)why, (void)size;
    return 1;
}

/* The first "model name" of /proc/cpuinfo, or what there is. */
static void read_model(char *model, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256];
    snprintf(model, size, "CPU");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon)
            continue;
        line[strcspn(line, "\n")] = 0;
        colon++;
        snprintf(model, size, "%s", colon + strspn(colon, " \t"));
        break;
    }
    if (f)
        fclose(f);
}

static gpu_status open_device(int index, void **device)
{
    char model[100];
    if (index != 0)
        return gpu_cpu_host->fail(GPU_DEVICE, "there is no cpu:%d", index);
    if (!device_state.description[0]) {
        int cores = gpu_cpu_threads();
        gpu_cpu_set_up_memory();
        read_model(model, sizeof model);
        snprintf(device_state.description, sizeof device_state.description,
                 "%s, %d core%s, %s", model, cores, cores == 1 ? "" : "s",
                 gpu_cpu_vectors->name);
    }
    *device = &device_state;
    return GPU_OK;
}

static void close_device(void *device)
{
    gpu_cpu_trim(device);
}

static const char *describe(void *device)
{
    (void)device;
    return device_state.description;
}

static int zero(void *device)
{
    (void)device;
    return 0;
}

static gpu_status deliver(void *device, int give_up)
{
    (void)device, (void)give_up;
    return GPU_OK;
}

static gpu_status pass_mark(void *device, gpu_lane lane, int mark)
{
    (void)device, (void)lane, (void)mark;
    return GPU_OK;
}

static gpu_status memory(void *device, size_t *available, size_t *total)
{
    (void)device;
    gpu_cpu_memory_limits(available, total);
    return GPU_OK;
}

static gpu_status nothing_to_wait_for(void *device)
{
    (void)device;
    return GPU_OK;
}

static gpu_status timer_start(void *device)
{
    (void)device;
    device_state.started = gpu_now();
    return GPU_OK;
}

static gpu_status timer_stop(void *device, double *seconds)
{
    (void)device;
    *seconds = gpu_now() - device_state.started;
    return GPU_OK;
}

/* --- peak: the best of a few tries at what the machine does best ---------- */

enum { SIDE = 1024, TRIES = 4, COPIED = 64 << 20 };
static const double patience = 0.05; /* seconds a measurement may take */

static gpu_status best_product(gpu_dtype t, void *a, void *c, double *flops)
{
    gpu_view in = {a, t, SIDE, SIDE, SIDE, 1}, out = in;
    out.data = c;
    gpu_gemm g = {.a = in, .b = in, .c = out, .alpha = 1};
    double start = gpu_now(), best = 1e9;
    for (int i = 0; i < TRIES && (i < 1 || gpu_now() - start < patience); i++) {
        double began = gpu_now();
        gpu_status status = gpu_cpu_matmul_packed.matmul(NULL, &g);
        if (status != GPU_OK)
            return status;
        double took = gpu_now() - began;
        best = took < best ? took : best;
    }
    *flops = 2.0 * SIDE * SIDE * SIDE / best;
    return GPU_OK;
}

static double best_copy(void *a, void *b)
{
    int64_t n = COPIED / 4;
    gpu_program p = {.inputs = 1, .compute = GPU_F32};
    gpu_view from = {a, GPU_F32, 1, n, n, 1}, to = {b, GPU_F32, 1, n, n, 1};
    double start = gpu_now(), best = 1e9;
    for (int i = 0; i < TRIES && (i < 2 || gpu_now() - start < patience); i++) {
        double began = gpu_now();
        gpu_cpu_map(NULL, &p, &from, &to);
        double took = gpu_now() - began;
        best = took < best ? took : best;
    }
    return 2.0 * COPIED / best;
}

/* Numbers that are not zeros, which multiply faster on some machines. */
static void fill(gpu_dtype t, void *data)
{
    size_t n = COPIED / gpu_cpu_size(t);
    for (size_t i = 0; i < n; i++) {
        double value = (double)(i % 1021) / 1021 - 0.5;
        if (t == GPU_F64)
            ((double *)data)[i] = value;
        else
            ((float *)data)[i] = (float)value;
    }
}

static gpu_status measure_peak(void *a, void *b, gpu_peak *out)
{
    fill(GPU_F32, a);
    gpu_status status = best_product(GPU_F32, a, b, &out->f32_flops);
    fill(GPU_F64, a);
    if (status == GPU_OK)
        status = best_product(GPU_F64, a, b, &out->f64_flops);
    out->bytes = best_copy(a, b);
    return status;
}

static gpu_status peak(void *device, gpu_peak *out)
{
    void *a, *b;
    if (gpu_cpu_alloc(device, COPIED, &a) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    gpu_status status = gpu_cpu_alloc(device, COPIED, &b);
    if (status == GPU_OK) {
        status = measure_peak(a, b, out);
        gpu_cpu_free(device, b, COPIED);
    } else {
        gpu_cpu_stop(status);
    }
    gpu_cpu_free(device, a, COPIED);
    return status;
}

static const gpu_backend table = {
    .abi = GPU_BACKEND_ABI,
    .name = "cpu",
    .probe = probe,
    .open = open_device,
    .close = close_device,
    .describe = describe,
    .capability = zero,
    .is_lost = zero,
    .alloc = gpu_cpu_alloc,
    .free = gpu_cpu_free,
    .clear = gpu_cpu_clear,
    .upload = gpu_cpu_copy_bytes,
    .download = gpu_cpu_copy_bytes,
    .bring = gpu_cpu_bring,
    .fetch = gpu_cpu_fetch,
    .deliver = deliver,
    .mark = pass_mark,
    .follow = pass_mark,
    .memory = memory,
    .trim = gpu_cpu_trim,
    .sync = nothing_to_wait_for,
    .timer_start = timer_start,
    .timer_stop = timer_stop,
    .peak = peak,
    .draws = 1,
    .map = gpu_cpu_map,
    .reduce = gpu_cpu_reduce,
    .gather = gpu_cpu_gather,
    .scatter = gpu_cpu_scatter,
    .pick = gpu_cpu_pick,
    .pick_checks = 1,
    .compress = gpu_cpu_compress,
    .expand = gpu_cpu_expand,
    .scan = gpu_cpu_scan,
    .sort = gpu_cpu_sort,
    .select = gpu_cpu_select,
    .first = gpu_cpu_first,
    .runs = gpu_cpu_runs,
    .search = gpu_cpu_search,
    .group = gpu_cpu_group,
    .fold = gpu_cpu_fold,
    .windows = gpu_cpu_windows,
    .random = gpu_cpu_random,
    .variates = gpu_cpu_variates,
    .survey = gpu_cpu_survey,
    .bins = gpu_cpu_bins,
    .blocks = gpu_cpu_blocks,
    .kernels = gpu_cpu_kernels,
    .choose_matmul = gpu_cpu_choose_matmul,
    .choose_dot = gpu_cpu_choose_dot,
    .sparse_product = gpu_cpu_sparse_product,
    .sparse_turned_product = gpu_cpu_sparse_turned_product,
    .sparse_places = gpu_cpu_sparse_places,
    .sparse_build = gpu_cpu_sparse_build,
    .sparse_transpose = gpu_cpu_sparse_transpose,
    .sparse_from_dense = gpu_cpu_sparse_from_dense,
    .sparse_keep = gpu_cpu_sparse_keep,
    .sparse_diagonals = gpu_cpu_sparse_diagonals,
    .sparse_list = gpu_cpu_sparse_list,
    .sparse_to_dense = gpu_cpu_sparse_to_dense,
    .sparse_combine = gpu_cpu_sparse_combine,
    .sparse_sample = gpu_cpu_sparse_sample,
    .sparse_reduce = gpu_cpu_sparse_reduce,
    .sparse_lookup = gpu_cpu_sparse_lookup,
    .sparse_along = gpu_cpu_sparse_along,
    .sparse_gather = gpu_cpu_sparse_gather,
    .sparse_arrange = gpu_cpu_sparse_arrange,
    .sparse_factor = gpu_cpu_sparse_factor,
    .sparse_solve = gpu_cpu_sparse_solve,
    .sparse_forget = gpu_cpu_sparse_forget,
    .sparse_incomplete = gpu_cpu_sparse_incomplete,
    .solve = gpu_cpu_solve,
    .determinant = gpu_cpu_determinant,
    .inverse_norm = gpu_cpu_inverse_norm,
    .factor = gpu_cpu_factor,
    .complex_map = gpu_cpu_complex_map,
    .fft = gpu_cpu_fft,
    .convolve = gpu_cpu_convolve,
};

/* The best table of loops this processor runs; LUMAT_CPU=base or avx2 takes
 * a lesser one, to compare them. */
static const gpu_cpu_vector *best_vectors(void)
{
#if defined(__x86_64__)
    const char *wish = getenv("LUMAT_CPU");
    int below = !wish                   ? 3
                : !strcmp(wish, "base") ? 1
                : !strcmp(wish, "avx2") ? 2
                                        : 3;
    if (below > 2 && gpu_cpu_vector_avx512.name &&
        __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512cd"))
        return &gpu_cpu_vector_avx512;
    if (below > 1 && gpu_cpu_vector_avx2.name &&
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &gpu_cpu_vector_avx2;
#endif
    return &gpu_cpu_vector_base;
}

const gpu_backend *gpu_cpu_backend(const gpu_host *host)
{
    if (host->abi != GPU_BACKEND_ABI)
        return NULL;
    gpu_cpu_host = host;
    gpu_cpu_vectors = best_vectors();
    return &table;
}
