/* Finding backends and opening devices: the CPU is built in, CUDA is a shared
 * object loaded when the first GPU is asked for. */
#include "core.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LUMAT_LIBDIR
#define LUMAT_LIBDIR "/usr/local/lib/lumat"
#endif

enum { MAX_DEVICES = 17 };

extern volatile int gpu_interrupt_flag;

/* --- compiling ------------------------------------------------------------ */

static volatile int compile;

void gpu_set_compile(gpu_compile how)
{
    compile = how;
}

gpu_compile gpu_get_compile(void)
{
    return (gpu_compile)compile;
}

static void note_compiled(void)
{
    gpu_counted.compiled++;
}

/* --- finding and opening -------------------------------------------------- */

static gpu_host host = {.abi = GPU_BACKEND_ABI,
                        .fail = gpu_fail,
                        .interrupted = &gpu_interrupt_flag,
                        .begin_stage = gpu_begin_stage,
                        .advance = gpu_advance,
                        .end_stage = gpu_end_stage,
                        .recall = gpu_recall,
                        .keep = gpu_keep,
                        .make_room = gpu_make_room,
                        .room_left = gpu_room_left,
                        .compile = &compile,
                        .note_compiled = note_compiled};
static gpu_device *opened[MAX_DEVICES];
static int opened_count;

static struct {
    const gpu_backend *backend; /* NULL: not there */
    void *object;               /* that it is in */
    int looked, count;          /* -1: there is one that cannot be used */
    char why[256];
} cuda;

/* Devices may be opened by the preparing thread and the main one. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t preparing;
static int is_preparing;
static char default_name[24] = "auto";
static gpu_device *default_device;

/* Why "auto" is the CPU though there is a GPU; "": it is not, or was told. */
static char untold[512];
static void (*tell_fallback)(const char *why);

static const gpu_backend *load_from(const char *folder)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/liblumat-cuda.so", folder);
    if (access(path, R_OK) != 0)
        return NULL;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        snprintf(cuda.why, sizeof cuda.why, "%s", dlerror());
        return NULL;
    }
    gpu_backend_entry *entry;
    *(void **)&entry = dlsym(object, GPU_BACKEND_SYMBOL);
    const gpu_backend *b = entry ? entry(&host) : NULL;
    if (!b || b->abi != GPU_BACKEND_ABI) {
        snprintf(cuda.why, sizeof cuda.why,
                 "liblumat-cuda.so is of another version");
        return NULL;
    }
    cuda.object = object;
    return b;
}

const void *gpu_find_in_cuda(const char *symbol)
{
    return cuda.object ? dlsym(cuda.object, symbol) : NULL;
}

/* Beside the program, then where `make install` puts it; never where the
 * user happens to stand. */
static const gpu_backend *load_cuda(void)
{
    char folder[4096];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 16);
    snprintf(cuda.why, sizeof cuda.why,
             "this build has no CUDA (there is no liblumat-cuda.so)");
    const gpu_backend *b = NULL;
    if (n > 0) {
        folder[n] = '\0';
        char *slash = strrchr(folder, '/');
        if (slash)
            *slash = '\0';
        b = load_from(folder);
        if (!b && slash) {
            strcpy(slash, "/../lib/lumat");
            b = load_from(folder);
        }
    }
    return b ? b : load_from(LUMAT_LIBDIR);
}

static void look_for_cuda(void)
{
    if (cuda.looked)
        return;
    cuda.looked = 1;
    const char *off = getenv("LUMAT_NO_CUDA");
    if (off && *off && strcmp(off, "0") != 0) {
        snprintf(cuda.why, sizeof cuda.why, "LUMAT_NO_CUDA is set");
        return;
    }
    if (gpu_has_faults())
        host.fault = gpu_fault;
    host.cpu = gpu_cpu_backend(&host);
    cuda.backend = load_cuda();
    if (cuda.backend)
        cuda.count = cuda.backend->probe(cuda.why, sizeof cuda.why);
}

static const gpu_backend *own_backend(const gpu_device *d)
{
    return d->own ? d->own : d->backend;
}

static gpu_status open_device(const gpu_backend *b, int index, gpu_device **out)
{
    for (int i = 0; i < opened_count; i++) {
        if (own_backend(opened[i]) == b && opened[i]->index == index) {
            *out = opened[i];
            return GPU_OK;
        }
    }
    if (opened_count == MAX_DEVICES)
        return gpu_fail(GPU_DEVICE, "too many devices are open");
    void *handle;
    TRY(b->open(index, &handle));
    gpu_device *d = calloc(1, sizeof *d);
    if (!d)
        return gpu_fail(GPU_MEMORY, "out of memory");
    d->backend = b;
    d->handle = handle;
    d->index = index;
    d->is_cpu = b->capability(handle) == 0;
    if (d->is_cpu)
        snprintf(d->name, sizeof d->name, "%s", b->name);
    else
        snprintf(d->name, sizeof d->name, "%s:%d", b->name, index);
    if (gpu_dry && !gpu_dry->adopt(d)) {
        free(d);
        return gpu_fail(GPU_MEMORY, "out of memory");
    }
    opened[opened_count++] = d;
    *out = d;
    return GPU_OK;
}

static gpu_status open_cpu(gpu_device **out)
{
    return open_device(gpu_cpu_backend(&host), 0, out);
}

static gpu_status open_cuda(int index, gpu_device **out)
{
    look_for_cuda();
    if (cuda.count <= 0)
        return gpu_fail(GPU_DEVICE, "no usable GPU: %s", cuda.why);
    if (index >= cuda.count)
        return gpu_fail(GPU_DEVICE, "no device cuda:%d: there %s %d GPU%s",
                        index, cuda.count == 1 ? "is" : "are", cuda.count,
                        cuda.count == 1 ? "" : "s");
    return open_device(cuda.backend, index, out);
}

static gpu_status open_auto(gpu_device **out)
{
    look_for_cuda();
    if (cuda.count != 0 && open_cuda(0, out) == GPU_OK)
        return GPU_OK;
    if (cuda.count != 0)
        snprintf(untold, sizeof untold, "the CPU computes: %s", gpu_message());
    return open_cpu(out);
}

static int cuda_index(const char *name)
{
    char *end;
    if (strcmp(name, "cuda") == 0)
        return 0;
    if (strncmp(name, "cuda:", 5) != 0 || name[5] < '0' || name[5] > '9')
        return -1;
    long index = strtol(name + 5, &end, 10);
    return *end == '\0' && index < 1000 ? (int)index : -1;
}

static gpu_status open_named(const char *name, gpu_device **out)
{
    if (strcmp(name, "auto") == 0)
        return open_auto(out);
    if (strcmp(name, "cpu") == 0)
        return open_cpu(out);
    if (cuda_index(name) >= 0)
        return open_cuda(cuda_index(name), out);
    return gpu_fail(GPU_DEVICE,
                    "no device is called '%s': use cpu, cuda or cuda:N", name);
}

/* The preparing thread has to end before anyone else opens a device. */
static void wait_for_preparation(void)
{
    if (!is_preparing)
        return;
    is_preparing = 0;
    pthread_join(preparing, NULL);
}

gpu_status gpu_open(const char *name, gpu_device **out)
{
    wait_for_preparation();
    pthread_mutex_lock(&lock);
    gpu_status status = open_named(name, out);
    pthread_mutex_unlock(&lock);
    return status;
}

gpu_device *gpu_cpu(void)
{
    gpu_device *d = NULL;
    gpu_open("cpu", &d);
    return d;
}

void gpu_on_fallback(void (*tell)(const char *why))
{
    tell_fallback = tell;
}

static void tell_untold(void)
{
    if (untold[0] && tell_fallback)
        tell_fallback(untold);
    untold[0] = '\0';
}

/* "auto" is the CPU when its GPU is lost. */
static void replace_lost(void)
{
    if (!gpu_device_is_lost(default_device) ||
        strcmp(default_name, "auto") != 0)
        return;
    snprintf(untold, sizeof untold,
             "the CPU computes from here on: %s was lost; at the prompt "
             ":restart uses it again",
             default_device->name);
    default_device = gpu_cpu();
}

gpu_status gpu_default(gpu_device **out)
{
    if (!default_device)
        TRY(gpu_open(default_name, &default_device));
    replace_lost();
    tell_untold();
    *out = default_device;
    return GPU_OK;
}

gpu_status gpu_set_default(const char *name)
{
    wait_for_preparation();
    if (strcmp(name, "auto") != 0 && strcmp(name, "cpu") != 0 &&
        cuda_index(name) < 0)
        return gpu_fail(GPU_DEVICE,
                        "no device is called '%s': use cpu, cuda or cuda:N",
                        name);
    snprintf(default_name, sizeof default_name, "%s", name);
    default_device = NULL;
    return GPU_OK;
}

const char *gpu_default_name(void)
{
    return default_name;
}

static void *prepare(void *name)
{
    gpu_device *d;
    pthread_mutex_lock(&lock);
    open_named(name, &d);
    pthread_mutex_unlock(&lock);
    return NULL;
}

void gpu_prepare(void)
{
    if (is_preparing || default_device)
        return;
    is_preparing = pthread_create(&preparing, NULL, prepare, default_name) == 0;
}

int gpu_device_count_opened(gpu_device *const **devices)
{
    wait_for_preparation();
    *devices = opened;
    return opened_count;
}

gpu_device *gpu_device_of(void *handle)
{
    for (int i = 0; i < opened_count; i++) {
        if (opened[i]->handle == handle)
            return opened[i];
    }
    return NULL;
}

/* The lock is held as long as a device is being opened. */
int gpu_device_count_ready(gpu_device *const **devices)
{
    if (pthread_mutex_trylock(&lock) != 0)
        return 0;
    int count = opened_count;
    pthread_mutex_unlock(&lock);
    *devices = opened;
    return count;
}

int gpu_count_known(void)
{
    if (pthread_mutex_trylock(&lock) != 0)
        return 0;
    int count = cuda.count > 0 ? cuda.count : 0;
    pthread_mutex_unlock(&lock);
    return count;
}

void gpu_shutdown(void)
{
    wait_for_preparation();
    for (int i = 0; i < opened_count; i++) {
        gpu_drop_all_kept(opened[i]);
        const gpu_backend *b = own_backend(opened[i]);
        if (b->close)
            b->close(opened[i]->handle);
        free(opened[i]->answer);
        free(opened[i]);
    }
    opened_count = 0;
    default_device = NULL;
}
