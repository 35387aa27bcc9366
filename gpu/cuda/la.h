/* The way to liblumat-cuda-la.so, which stands beside this backend where it
 * was built, and is loaded by the first product that needs it.
 *
 * Nothing here waits, but where a library failed, to learn whether the device
 * is lost. Operands are the caller's device memory, to be there until the
 * stream has done what was issued. GPU_UNSUPPORTED where the library cannot be
 * loaded, with what it needs. */
#ifndef GPU_CUDA_LA_H
#define GPU_CUDA_LA_H

#include "cuda_device.h"

#include <stdio.h>

extern "C" {
#include "la/la_table.h"
}

/* The entry of an object that stands beside this backend, loaded for good; or
 * NULL, and why. */
void *gpu_cuda_find_entry(const char *object, const char *symbol, char *why,
                          size_t size);

/* Such an object's functions, and what it was found to be. */
template <class TABLE> struct found_library {
    const TABLE *table; /* NULL: not there, and why */
    bool looked;
    char why[512];
};

/* Its table, looked for once; NULL where it is not there, or its entry gives
 * none for this abi. */
template <class TABLE>
const TABLE *find_table(found_library<TABLE> *l, const char *object,
                        const char *symbol, int abi)
{
    typedef const TABLE *entry_of(int abi);
    if (l->looked)
        return l->table;
    l->looked = true;
    entry_of *entry =
        (entry_of *)gpu_cuda_find_entry(object, symbol, l->why, sizeof l->why);
    l->table = entry != NULL ? entry(abi) : NULL;
    if (entry != NULL && l->table == NULL)
        snprintf(l->why, sizeof l->why, "%s is of another version", object);
    return l->table;
}

/* What its functions get of the device that they work on. */
inline la_setup gpu_cuda_la_setup(cuda_device *d)
{
    return {gpu_cuda_host->fail, gpu_cuda_alloc, gpu_cuda_free, d,
            d->stream,           gpu_cuda_fault};
}

/* v as a cuBLAS operand that is not transposed, if it is one. */
bool gpu_cuda_is_columns(const gpu_view *v, la_operand *out);

/* `rung` is the kernel's name, for the message where there is no library. */
gpu_status gpu_cuda_la_matmul(cuda_device *d, const char *rung,
                              const la_product *p);
gpu_status gpu_cuda_la_dot(cuda_device *d, const char *rung, const la_dot *p);

gpu_status gpu_cuda_la_sparse(cuda_device *d, const char *rung,
                              const la_sparse *p);

/* Before the device's stream and memory go. */
void gpu_cuda_la_close(cuda_device *d);

#endif
