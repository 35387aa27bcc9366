/* Which rung `auto` takes. Policy only: no kernel is launched here. */
#include "kernels/kernel.h"

/* A block of `register` computes 128 columns of c, or rows, whatever c's
 * size, and one multiprocessor with one block reaches about five times the
 * rate it has with `tiled`. So `register` pays as soon as a fifth of the
 * device has a tile, unless most of each tile lies outside c: `tiled` then
 * wastes less, and as it has more blocks it wins already at half the gain. */
enum { REGISTER_TILE = 128, TILED_TILE = 32, GAIN = 5 };

static double used_share(const gpu_gemm *p, int64_t tile)
{
    double inside = (double)p->c.rows * (double)p->c.cols;
    double tiles =
        (double)ceil_div(p->c.rows, tile) * (double)ceil_div(p->c.cols, tile);
    return inside / (tiles * (double)tile * (double)tile);
}

const gpu_kernel *gpu_cuda_choose_matmul(void *device, const gpu_gemm *p)
{
    const cuda_device *d = (const cuda_device *)device;
    int64_t tiles =
        ceil_div(p->c.rows, REGISTER_TILE) * ceil_div(p->c.cols, REGISTER_TILE);
    double gain = (double)GAIN / 2 * used_share(p, REGISTER_TILE);
    if (tiles * GAIN >= d->sms && gain > used_share(p, TILED_TILE))
        return &gpu_cuda_matmul_register;
    return &gpu_cuda_matmul_tiled;
}

/* One launch, the exactest sums and the widest loads: nothing is better at
 * any length. */
const gpu_kernel *gpu_cuda_choose_dot(void *device, const gpu_view *x,
                                      const gpu_view *y)
{
    (void)device;
    (void)x;
    (void)y;
    return &gpu_cuda_dot_shuffle;
}
