/* Running the kernel of a product: again when memory is short, and panel by
 * panel where a device takes long, as what it has begun cannot be stopped. */
#include "core.h"

/* By way of the epilogue, which a map from c into c is where the kernel does
 * not know how. */
static gpu_status run_once(gpu_device *d, const gpu_kernel *k,
                           const gpu_gemm *p)
{
    gpu_epilogue *e = p->epilogue;
    if (e)
        e->is_done = 0;
    gpu_begin_product(d);
    gpu_status status = k->matmul(d->handle, p);
    gpu_end_product(d, status);
    if (status != GPU_OK || !e || e->is_done)
        return status;
    return d->backend->map(d->handle, e->program, e->in, &p->c);
}

/* When memory is short, makes room and tries again; where that is not enough,
 * auto's kernel, which *k becomes, is one that needs little. */
static gpu_status run_kernel(gpu_device *d, gpu_gemm *p, int is_chosen,
                             const gpu_kernel **k)
{
    gpu_status status = run_once(d, *k, p);
    if (status != GPU_MEMORY)
        return status;
    gpu_relieve(d);
    status = run_once(d, *k, p);
    if (status != GPU_MEMORY || !is_chosen)
        return status;
    p->is_short_of_memory = 1;
    const gpu_kernel *small = d->backend->choose_matmul(d->handle, p);
    if (small == *k)
        return status;
    *k = small;
    return run_once(d, small, p);
}

/* --- panels --------------------------------------------------------------- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void *element(const gpu_view *v, int64_t i, int64_t j)
{
    int64_t at = i * v->row_stride + j * v->col_stride;
    return (char *)v->data + at * (int64_t)gpu_dtype_size(v->dtype);
}

/* The part of an epilogue for that panel of c, whose views `in` gets. */
static gpu_epilogue part_of(const gpu_epilogue *e, int64_t i, int64_t j,
                            int64_t rows, int64_t cols, gpu_view *in)
{
    gpu_epilogue part = *e;
    for (int v = 0; v < e->program->inputs; v++) {
        in[v] = e->in[v];
        in[v].data = element(&e->in[v], i, j);
        in[v].rows = rows;
        in[v].cols = cols;
    }
    part.in = in;
    return part;
}

/* The product that gives rows x cols of c, from (i, j) on. */
static gpu_gemm panel_of(const gpu_gemm *p, int64_t i, int64_t j, int64_t rows,
                         int64_t cols)
{
    gpu_gemm part = *p;
    part.a.data = element(&p->a, i, 0);
    part.b.data = element(&p->b, 0, j);
    part.c.data = element(&p->c, i, j);
    part.a.rows = part.c.rows = rows;
    part.b.cols = part.c.cols = cols;
    return part;
}

static gpu_status run_panel(gpu_device *d, gpu_gemm *p, int is_chosen,
                            const gpu_kernel **k)
{
    gpu_status status = run_kernel(d, p, is_chosen, k);
    if (status == GPU_OK && d->backend->pace)
        d->backend->pace(d->handle, *k, p, 0);
    return status;
}

gpu_panels gpu_cut_product(gpu_device *d, gpu_gemm *p, int is_chosen,
                           const gpu_kernel **k)
{
    gpu_panels x = {.device = d,
                    .p = p,
                    .is_chosen = is_chosen,
                    .k = k,
                    .rows = p->c.rows,
                    .cols = p->c.cols};
    if (d->backend->panel)
        d->backend->panel(d->handle, *k, p, &x.rows, &x.cols);
    x.across = (p->c.cols + x.cols - 1) / x.cols;
    x.count = (p->c.rows + x.rows - 1) / x.rows * x.across;
    return x;
}

/* What a kernel cannot do it refuses in the words for the whole product. */
static gpu_status run_part(gpu_panels *x, int64_t i, int64_t j)
{
    gpu_gemm *p = x->p;
    int64_t m = smaller(x->rows, p->c.rows - i);
    int64_t n = smaller(x->cols, p->c.cols - j);
    gpu_gemm part = panel_of(p, i, j, m, n);
    gpu_epilogue then;
    gpu_view in[GPU_MAX_INPUTS];
    if (p->epilogue) {
        then = part_of(p->epilogue, i, j, m, n, in);
        part.epilogue = &then;
    }
    gpu_status status = run_panel(x->device, &part, x->is_chosen, x->k);
    if (status == GPU_UNSUPPORTED && i == 0 && j == 0) {
        x->count = 1;
        return run_panel(x->device, p, x->is_chosen, x->k);
    }
    p->is_short_of_memory = part.is_short_of_memory;
    if (status == GPU_OK)
        gpu_advance(m * n);
    return status;
}

gpu_status gpu_run_panel(gpu_panels *x, int64_t number)
{
    if (x->count == 1)
        return run_panel(x->device, x->p, x->is_chosen, x->k);
    TRY(gpu_poll());
    return run_part(x, number / x->across * x->rows,
                    number % x->across * x->cols);
}

gpu_status gpu_run_product(gpu_device *d, gpu_gemm *p, int is_chosen,
                           const gpu_kernel **k)
{
    gpu_panels x = gpu_cut_product(d, p, is_chosen, k);
    if (x.count == 1)
        return gpu_run_panel(&x, 0);
    int work = gpu_begin_work("matmul %lldx%lldx%lld", (long long)p->c.rows,
                              (long long)p->a.cols, (long long)p->c.cols);
    int stage = gpu_begin_stage(p->c.rows * p->c.cols);
    gpu_status status = GPU_OK;
    for (int64_t n = 0; n < x.count && status == GPU_OK; n++)
        status = gpu_run_panel(&x, n);
    gpu_end_stage(stage);
    gpu_end_work(work);
    return status;
}
