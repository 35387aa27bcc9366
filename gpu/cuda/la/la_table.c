/* The table of liblumat-cuda-la.so, its one exported symbol. */
#include "la_device.h"

#include <stdlib.h>

static gpu_status open_device(const la_setup *setup, la_device **out)
{
    la_device *d = calloc(1, sizeof *d);
    if (!d)
        return setup->fail(GPU_MEMORY, "out of memory");
    d->setup = *setup;
    *out = d;
    return GPU_OK;
}

static void close_device(la_device *d)
{
    la_close_dense(d);
    la_close_sparse(d);
    free(d);
}

static const la_table table = {
    .abi = LA_ABI,
    .open = open_device,
    .close = close_device,
    .matmul = la_matmul,
    .dot = la_dot_product,
    .sparse_product = la_sparse_product,
};

__attribute__((visibility("default"))) la_entry lumat_cuda_la;

const la_table *lumat_cuda_la(int abi)
{
    return abi == LA_ABI ? &table : NULL;
}
