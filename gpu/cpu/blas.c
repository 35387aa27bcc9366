/* Loading BLAS and LAPACK: at start it would cost more time than all the rest,
 * and only here can OpenBLAS still be told what the processor can do. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include "blas.h"
#include "cpu.h"

gpu_cpu_blas_functions gpu_cpu_blas;
static int is_loaded;

/* OpenBLAS chooses its kernels by the processor's model number; a model newer
 * than itself gets those for SSE, at a quarter of the speed. So it is told
 * the instruction sets, unless the user has told it something. */
static void name_processor(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        setenv("OPENBLAS_CORETYPE", "Haswell", 0);
#endif
}

/* Address space this process has taken. */
static double bytes_in_use(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return 0;
    if (fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* OpenBLAS takes a block of memory for each thread when it is loaded, and
 * tries for ever where a limit forbids it. */
static int has_room(void)
{
    struct rlimit limit;
    double wanted = bytes_in_use() + 256e6 + 96e6 * gpu_cpu_threads();
    return getrlimit(RLIMIT_AS, &limit) != 0 ||
           limit.rlim_cur == RLIM_INFINITY || (double)limit.rlim_cur > wanted;
}

/* OpenBLAS has both; other libraries come as a pair. */
static int open_libraries(void *library[2])
{
    int flags = RTLD_NOW | RTLD_GLOBAL;
    library[0] = library[1] = dlopen("libopenblas.so.0", flags);
    if (library[0])
        return 1;
    library[0] = dlopen("libblas.so.3", flags);
    library[1] = dlopen("liblapack.so.3", flags);
    return library[0] && library[1];
}

static void find(void *library[2], const char *name, void *slot)
{
    void *symbol = dlsym(library[0], name);
    *(void **)slot = symbol ? symbol : dlsym(library[1], name);
}

static int find_all(void *library[2])
{
    gpu_cpu_blas_functions *f = &gpu_cpu_blas;
    find(library, "cblas_sgemm", &f->sgemm);
    find(library, "cblas_dgemm", &f->dgemm);
    find(library, "cblas_sgemv", &f->sgemv);
    find(library, "cblas_dgemv", &f->dgemv);
    find(library, "cblas_sdot", &f->sdot);
    find(library, "cblas_ddot", &f->ddot);
    find(library, "cblas_strsm", &f->strsm);
    find(library, "cblas_dtrsm", &f->dtrsm);
    find(library, "cblas_strsv", &f->strsv);
    find(library, "cblas_dtrsv", &f->dtrsv);
    find(library, "sgetrf_", &f->sgetrf);
    find(library, "dgetrf_", &f->dgetrf);
    find(library, "openblas_get_num_threads", &f->get_num_threads);
    find(library, "openblas_set_num_threads", &f->set_num_threads);
    return f->sgemm && f->dgemm && f->sgemv && f->dgemv && f->sdot && f->ddot &&
           f->strsm && f->dtrsm && f->strsv && f->dtrsv && f->sgetrf &&
           f->dgetrf;
}

int gpu_cpu_has_blas(void)
{
    static int tried;
    if (!tried) {
        void *library[2];
        tried = 1;
        name_processor();
        is_loaded = has_room() && open_libraries(library) && find_all(library);
    }
    return is_loaded;
}

gpu_status gpu_cpu_load_blas(void)
{
    if (gpu_cpu_has_blas())
        return GPU_OK;
    if (!has_room())
        return gpu_cpu_host->fail(GPU_MEMORY,
                                  "out of memory: the limit on this process "
                                  "leaves no room for BLAS");
    return gpu_cpu_host->fail(GPU_UNSUPPORTED,
                              "there is no BLAS library here: install "
                              "libopenblas0");
}
