/* How the rungs bf16 and tf32 go: operands are rounded into planes in scratch
 * memory (narrow_planes.cu), which are multiplied (narrow_hopper.cu on Hopper,
 * narrow_mma.cu elsewhere). */
#include "narrow.h"

static size_t padded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Scratch memory: planes that are not the operands themselves, workspace. */
static gpu_status place_planes(cuda_device *d, narrow_product *p)
{
    size_t a = padded(gpu_cuda_narrow_bytes(p->kind, &p->a));
    size_t b = padded(gpu_cuda_narrow_bytes(p->kind, &p->b));
    size_t rest = d->capability == 90 ? gpu_cuda_narrow_workspace(d, p) : 0;
    char *memory;
    TRY(gpu_cuda_scratch(d, a + b + rest, (void **)&memory));
    if (!p->a.is_direct)
        p->a.data = memory;
    if (!p->b.is_direct)
        p->b.data = memory + a;
    p->partial = (float *)(memory + a + b);
    return GPU_OK;
}

static gpu_status refuse(const cuda_device *d, const gpu_gemm *g,
                         const char *name)
{
    const int64_t most = 0x7fffff00;
    if (g->c.dtype != GPU_F32)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: kernel %s cannot multiply f64, only f32", name);
    if (d->capability < 80)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: kernel %s cannot run on sm_%d: it needs sm_80",
                    name, d->capability);
    if (g->c.rows > most || g->c.cols > most || g->a.cols > most)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: kernel %s cannot do %lldx%lld times %lldx%lld: "
                    "it takes sizes below 2^31",
                    name, (long long)g->a.rows, (long long)g->a.cols,
                    (long long)g->b.rows, (long long)g->b.cols);
    return GPU_OK;
}

gpu_status gpu_cuda_narrow_matmul(void *device, const gpu_gemm *p,
                                  narrow_kind kind, const char *name)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul(name, p, &g));
    TRY(refuse(d, &g, name));
    narrow_product q = {};
    q.kind = kind;
    q.a = gpu_cuda_narrow_plane(d, kind, &g.a, 1);
    q.b = gpu_cuda_narrow_plane(d, kind, &g.b, 0);
    q.c = (float *)g.c.data;
    q.m = g.c.rows;
    q.n = g.c.cols;
    q.k = g.a.cols;
    q.c_row = g.c.row_stride;
    q.c_col = g.c.col_stride;
    q.alpha = (float)g.alpha;
    q.beta = (float)g.beta;
    TRY(place_planes(d, &q));
    TRY(gpu_cuda_narrow_round(d, kind, &g, &q.a, &q.b));
    return d->capability == 90 ? gpu_cuda_narrow_hopper(d, &q)
                               : gpu_cuda_narrow_mma(d, &q);
}
