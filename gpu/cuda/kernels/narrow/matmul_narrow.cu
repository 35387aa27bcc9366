/* matmul bf16 and tf32: operands are rounded into planes in scratch memory
 * (narrow_planes.cu), which are multiplied on the tensor cores and added in f32
 * (narrow_hopper.cu on Hopper, narrow_mma.cu elsewhere). Limited by the tensor
 * cores' power. Few bits of every factor count, so they run only when they are
 * asked for. */
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

static gpu_status narrow_matmul(void *device, const gpu_gemm *p,
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
    q.then = gpu_cuda_no_epilogue();
    int takes = d->capability == 90 && gpu_cuda_find_epilogue(p, &g, &q.then);
    TRY(place_planes(d, &q));
    TRY(gpu_cuda_narrow_round(d, kind, &g, &q.a, &q.b));
    TRY(d->capability == 90 ? gpu_cuda_narrow_hopper(d, &q)
                            : gpu_cuda_narrow_mma(d, &q));
    if (takes)
        p->epilogue->is_done = 1;
    return GPU_OK;
}

/* Each factor off by u, then the sum in f32: (1 + u)^2 (1 + gamma) - 1. A sum
 * on the tensor cores is cut off where f32 would round, but only once for
 * eight products or more, which gamma covers. Source: Blanchard, Higham,
 * Lopez, Mary and Pranesh, Mixed Precision Block Fused Multiply-Add, 2020. */
static double narrow_bound(double u, int64_t k)
{
    double gamma = gpu_cuda_matmul_bound(GPU_F32, k);
    return 2 * u + u * u + (1 + u) * (1 + u) * gamma;
}

/* --- bf16 -------------------------------------------------------------------
 * Eight bits of every factor count. One that rounds past the largest bf16
 * becomes Inf. */

static gpu_status multiply_bf16(void *device, const gpu_gemm *p)
{
    return narrow_matmul(device, p, NARROW_BF16, "bf16");
}

/* Eight bits, rounded to nearest: u = 2^-8. */
static double bound_bf16(gpu_dtype dtype, int64_t k)
{
    (void)dtype;
    return narrow_bound(0x1p-8, k);
}

const gpu_kernel gpu_cuda_matmul_bf16 = {
    .operation = "matmul",
    .name = "bf16",
    .idea = "tensor cores at bf16: factors of 8 bits, sums in f32",
    .needs = "sm_80",
    .precision = "bf16",
    .capability = 80,
    .dtypes = 1u << GPU_F32,
    .bound = bound_bf16,
    .matmul = multiply_bf16,
    .dot = NULL,
    .has_epilogue = 1,
};

/* --- tf32 -------------------------------------------------------------------
 * Eleven bits of every factor count. On Hopper an operand that lies along k is
 * rounded by the tensor copy engine on its way; others are rounded, and turned,
 * before. */

static gpu_status multiply_tf32(void *device, const gpu_gemm *p)
{
    return narrow_matmul(device, p, NARROW_TF32, "tf32");
}

/* Eleven bits: 2^-10 holds for factors that are cut off as for those that are
 * rounded. */
static double bound_tf32(gpu_dtype dtype, int64_t k)
{
    (void)dtype;
    return narrow_bound(0x1p-10, k);
}

const gpu_kernel gpu_cuda_matmul_tf32 = {
    .operation = "matmul",
    .name = "tf32",
    .idea = "tensor cores at TF32: factors of 11 bits, sums in f32",
    .needs = "sm_80",
    .precision = "tf32",
    .capability = 80,
    .dtypes = 1u << GPU_F32,
    .bound = bound_tf32,
    .matmul = multiply_tf32,
    .dot = NULL,
    .has_epilogue = 1,
};
