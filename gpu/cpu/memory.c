/* Memory: small blocks from the C library, aligned from 4 KiB on, and freed
 * large blocks kept for the next one, because the page faults of a fresh
 * large array cost more than most operations on it. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "cpu.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define KEPT_FROM MIB /* bytes of a block from which its page faults show */

enum { KEPT_BLOCKS = 64 };

typedef struct kept_block {
    void *data;
    size_t bytes;
} kept_block;

/* Oldest first. */
static struct {
    pthread_mutex_t lock;
    kept_block block[KEPT_BLOCKS];
    int count;
    size_t bytes, limit;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Reads "key number" from a file of such lines; 0 when it is not there. */
static size_t read_number(const char *path, const char *key)
{
    FILE *f = fopen(path, "re");
    char line[256];
    unsigned long long value = 0;
    size_t length = strlen(key);
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, length) &&
            sscanf(line + length, "%llu", &value) == 1)
            break;
    if (f)
        fclose(f);
    return (size_t)value;
}

/* The directory of this process's control group: path gets root followed by
 * what /proc/self/cgroup names after `tag`, if that exists, else root. */
static void find_group(const char *root, const char *tag, char *path,
                       size_t size)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[512], probe[1024];
    snprintf(path, size, "%s", root);
    while (f && fgets(line, sizeof line, f)) {
        char *name = strstr(line, tag);
        if (!name)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(probe, sizeof probe, "%s%s/memory.stat", root,
                 name + strlen(tag));
        if (read_number(probe, "inactive_file ") ||
            read_number(probe, "total_inactive_file "))
            snprintf(path, size, "%s%s", root, name + strlen(tag));
    }
    if (f)
        fclose(f);
}

static void lower_limits(const char *group, const char *limit_name,
                         const char *used_name, const char *cached_key,
                         size_t *available, size_t *total)
{
    char path[640];
    snprintf(path, sizeof path, "%s/%s", group, limit_name);
    size_t limit = read_number(path, "");
    if (limit == 0 || limit >= *total)
        return;
    snprintf(path, sizeof path, "%s/%s", group, used_name);
    size_t used = read_number(path, "");
    snprintf(path, sizeof path, "%s/memory.stat", group);
    size_t cached = read_number(path, cached_key);
    used = used > cached ? used - cached : 0;
    size_t left = limit > used ? limit - used : 0;
    *total = limit;
    *available = left < *available ? left : *available;
}

/* What a limit of this process's own (ulimit -v, -d) leaves of it. */
static void lower_by_limit(int resource, size_t used, size_t *available,
                           size_t *total)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur >= *total)
        return;
    size_t left = limit.rlim_cur > used ? (size_t)limit.rlim_cur - used : 0;
    *total = (size_t)limit.rlim_cur;
    *available = left < *available ? left : *available;
}

static void lower_by_limits(size_t *available, size_t *total)
{
    size_t size = 0, data = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return;
    if (fscanf(f, "%zu %*s %*s %*s %*s %zu", &size, &data) == 2) {
        lower_by_limit(RLIMIT_AS, size * page, available, total);
        lower_by_limit(RLIMIT_DATA, data * page, available, total);
    }
    fclose(f);
}

void gpu_cpu_memory_limits(size_t *available, size_t *total)
{
    char group[512];
    *available = read_number("/proc/meminfo", "MemAvailable:") * KIB;
    *total = read_number("/proc/meminfo", "MemTotal:") * KIB;
    find_group("/sys/fs/cgroup", "0::", group, sizeof group);
    lower_limits(group, "memory.max", "memory.current", "inactive_file ",
                 available, total);
    find_group("/sys/fs/cgroup/memory", ":memory:", group, sizeof group);
    lower_limits(group, "memory.limit_in_bytes", "memory.usage_in_bytes",
                 "total_inactive_file ", available, total);
    lower_by_limits(available, total);
}

/* Large sizes come in steps of at most an eighth, so that a freed block fits
 * requests of about its size, and a size always means the same block. */
static size_t rounded(size_t bytes)
{
    size_t step = 512 * KIB;
    while (step * 16 <= bytes)
        step *= 2;
    return (bytes + step - 1) / step * step;
}

static void *take_kept(size_t bytes)
{
    void *data = NULL;
    pthread_mutex_lock(&cache.lock);
    for (int i = cache.count - 1; i >= 0 && !data; i--) {
        if (cache.block[i].bytes != bytes)
            continue;
        data = cache.block[i].data;
        cache.count--;
        cache.bytes -= bytes;
        memmove(&cache.block[i], &cache.block[i + 1],
                (size_t)(cache.count - i) * sizeof *cache.block);
    }
    pthread_mutex_unlock(&cache.lock);
    return data;
}

static void drop_oldest(void)
{
    free(cache.block[0].data);
    cache.bytes -= cache.block[0].bytes;
    cache.count--;
    memmove(cache.block, cache.block + 1,
            (size_t)cache.count * sizeof *cache.block);
}

static size_t room_left(void)
{
    return gpu_cpu_host->room_left ? gpu_cpu_host->room_left() : SIZE_MAX;
}

static size_t kept_limit(void)
{
    size_t room = room_left();
    if (cache.limit == 0) {
        size_t available, total;
        gpu_cpu_memory_limits(&available, &total);
        cache.limit = total / 8 > GIB ? total / 8 : GIB;
    }
    return room < cache.limit ? room : cache.limit;
}

static void keep(void *data, size_t bytes)
{
    pthread_mutex_lock(&cache.lock);
    size_t most = kept_limit();
    if (bytes > most) {
        free(data);
    } else {
        while (cache.count == KEPT_BLOCKS || cache.bytes + bytes > most)
            drop_oldest();
        cache.block[cache.count++] = (kept_block){data, bytes};
        cache.bytes += bytes;
    }
    pthread_mutex_unlock(&cache.lock);
}

/* Linux grants more than it has and kills later: very large blocks are
 * compared with what is there. */
static int has_room(size_t bytes)
{
    size_t available, total;
    if (bytes < 64 * MIB)
        return 1;
    gpu_cpu_memory_limits(&available, &total);
    if (bytes <= available)
        return 1;
    gpu_cpu_trim(NULL);
    gpu_cpu_memory_limits(&available, &total);
    return bytes <= available || available == 0;
}

/* What is kept counts where the user has set a limit, so that a fresh block of
 * so many bytes is within it. */
static void keep_less(size_t bytes)
{
    size_t room = room_left();
    pthread_mutex_lock(&cache.lock);
    while (cache.count > 0 && room != SIZE_MAX && cache.bytes + bytes > room)
        drop_oldest();
    pthread_mutex_unlock(&cache.lock);
}

static void *take_fresh(size_t bytes)
{
    keep_less(bytes);
    void *data = has_room(bytes) ? aligned_alloc(512 * KIB, bytes) : NULL;
    if (data)
        madvise(data, bytes, MADV_HUGEPAGE);
    return data;
}

gpu_status gpu_cpu_alloc(void *device, size_t bytes, void **data)
{
    (void)device;
    if (bytes > SIZE_MAX / 4)
        return GPU_MEMORY;
    if (bytes < 4 * KIB) {
        *data = malloc(bytes ? bytes : 1);
    } else if (bytes < KEPT_FROM) {
        *data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    } else {
        bytes = rounded(bytes);
        *data = take_kept(bytes);
        if (!*data)
            *data = take_fresh(bytes);
    }
    return *data ? GPU_OK : GPU_MEMORY;
}

/* A large block lies on pages of its own, which the system takes back and
 * gives again as zeros when they are used. */
gpu_status gpu_cpu_clear(void *device, void *data, size_t bytes)
{
    (void)device;
    if (bytes < KEPT_FROM || madvise(data, rounded(bytes), MADV_DONTNEED) != 0)
        memset(data, 0, bytes);
    return GPU_OK;
}

void gpu_cpu_free(void *device, void *data, size_t bytes)
{
    (void)device;
    if (data && bytes >= KEPT_FROM)
        keep(data, rounded(bytes));
    else
        free(data);
}

/* Several results end at once, and the next ones want as much: the C library
 * is not to give back what they lay on each time, nor to map blocks that are
 * smaller than those kept here, as page faults take longer than an operation on
 * 10,000 elements. */
void gpu_cpu_set_up_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, (int)KEPT_FROM);
    mallopt(M_TRIM_THRESHOLD, (int)(8 * MIB));
#endif
}

void gpu_cpu_trim(void *device)
{
    (void)device;
    pthread_mutex_lock(&cache.lock);
    while (cache.count > 0)
        drop_oldest();
    pthread_mutex_unlock(&cache.lock);
#ifdef __GLIBC__ /* what lies free between blocks that are in use, too */
    malloc_trim(0);
#endif
}
