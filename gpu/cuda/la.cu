/* Products that other libraries do: loads liblumat-cuda-la.so and calls it. */
#include <stdio.h>
#include "la.h"
#include "cuda_device.h"
#include "op_list.h"

enum { MOST_DEVICES = 64, DEVICE_LANES = 4 };

static found_library<la_table> library;

static la_device *opened[MOST_DEVICES][DEVICE_LANES]; /* by ordinal */

/* --- finding it ----------------------------------------------------------- */

/* What a call is for, in words: the operation, what does it, and the part of
 * the CUDA toolkit it needs. */
typedef struct purpose {
    const char *operation, *by, *toolkit;
} purpose;

static gpu_status open_library(cuda_device *d, purpose p, la_device **out)
{
    if (!find_table(&library, "liblumat-cuda-la.so", LA_SYMBOL, LA_ABI))
        return FAIL(GPU_UNSUPPORTED,
                    "%s: kernel %s cannot run: it needs liblumat-cuda-la.so "
                    "and the CUDA toolkit's "
                    "%s: %s",
                    p.operation, p.by, p.toolkit, library.why);
    if (d->ordinal >= MOST_DEVICES)
        return FAIL(GPU_UNSUPPORTED, "%s: %s serves no device above cuda:%d",
                    p.operation, p.by, MOST_DEVICES - 1);
    la_setup setup = gpu_cuda_la_setup(d);
    la_device **la = &opened[d->ordinal][d->lane];
    if (*la == NULL)
        TRY(library.table->open(&setup, la));
    *out = *la;
    return GPU_OK;
}

void gpu_cuda_la_close(cuda_device *d)
{
    for (int i = 0; i < DEVICE_LANES && d->ordinal < MOST_DEVICES; i++) {
        if (opened[d->ordinal][i] != NULL)
            library.table->close(opened[d->ordinal][i]);
        opened[d->ordinal][i] = NULL;
    }
}

/* The libraries do not say that the device is lost; the stream does. */
static gpu_status finish(cuda_device *d, gpu_status status)
{
    if (status == GPU_INTERNAL)
        TRY(gpu_cuda_wait(d));
    return status;
}

/* --- dense products ------------------------------------------------------- */

bool gpu_cuda_is_columns(const gpu_view *v, la_operand *out)
{
    bool near = v->rows == 1 || v->row_stride == 1;
    bool apart = v->cols == 1 || v->col_stride >= v->rows;
    *out = {v->data, v->cols == 1 ? v->rows : v->col_stride, 0};
    return near && apart;
}

gpu_status gpu_cuda_la_matmul(cuda_device *d, const char *rung,
                              const la_product *p)
{
    la_device *la = NULL;
    TRY(open_library(d, {"matmul", rung, "cuBLAS"}, &la));
    return finish(d, library.table->matmul(la, p));
}

gpu_status gpu_cuda_la_dot(cuda_device *d, const char *rung, const la_dot *p)
{
    la_device *la = NULL;
    TRY(open_library(d, {"dot", rung, "cuBLAS"}, &la));
    return finish(d, library.table->dot(la, p));
}

gpu_status gpu_cuda_la_sparse(cuda_device *d, const char *rung,
                              const la_sparse *p)
{
    la_device *la = NULL;
    TRY(open_library(d, {"matmul", rung, "cuSPARSE"}, &la));
    return finish(d, library.table->sparse_product(la, p));
}
