/* Which rung `auto` takes. Policy only: no kernel is launched here.
 *
 * Where the answer depends on sizes, times are estimated from what an H200
 * was measured to need (scripts/bench_matmul.lua), and the shortest wins;
 * what counts is their ratio, which other large processors share roughly. */
#include "kernel.h"
#include "split16.h"

/* Up to so many rows or columns of c, a product is a matter of reading the
 * other operand once. */
enum { FEW = 4, TILE = 128, STEP = 64, MOST_SLICES = 32 };

/* Microseconds, and bytes or operations a microsecond. */
static const double SPLIT_LAUNCH = 4.5, SPLIT_RATE = 3.8e6, WRITE_RATE = 3e6;
static const double UNALIGNED = 1.3; /* times as long */
static const double SPLIT16_RATE = 225e6, SIMT_RATE = 47e6, SIMT_LAUNCH = 6;
/* Through mma.sync: of a tile's 64 of k, of all launches, and at most. */
static const double STEP_TIME = 2.4, LAUNCHES = 9, MMA_RATE = 85e6;

/* f64 tensor cores are fast on the large processors alone: 8.0, 9.0, 10.0. On
 * the others FP16's are not three times faster than FP32 either. */
static bool is_large_processor(const cuda_device *d)
{
    return d->capability >= 80 && d->capability % 10 == 0 &&
           d->capability < 120;
}

/* simt has tiles of 64 for either side. */
static double padded(int64_t size)
{
    return (double)(ceil_div(size, TILE / 2) * (TILE / 2));
}

/* Are the operand's planes there already? See matmul_split16.cu. */
static bool is_split(gpu_storage *storage, const gpu_view *v, int along_k)
{
    gpu_keep_key key = {along_k ? KEPT_A : KEPT_B, *v};
    return gpu_cuda_host->recall(storage, &key) != NULL;
}

/* Of an operand, read and written, by as many lines as one pass does. */
static double bytes_to_split(const gpu_view *v, double lines, double length)
{
    int64_t far = v->col_stride == 1 ? v->row_stride : v->col_stride;
    bool is_aligned = (uintptr_t)v->data % 16 == 0 && far % 4 == 0;
    return 8 * lines * length * (is_aligned ? 1 : UNALIGNED);
}

/* A long row of a is split by one block: few leave the device half idle. */
static double split_time(const cuda_device *d, const gpu_gemm *p)
{
    double bytes = 0, rows = (double)larger(p->a.rows, d->sms);
    if (!is_split(p->a_storage, &p->a, 1))
        bytes += bytes_to_split(&p->a, rows, (double)p->a.cols);
    if (!is_split(p->b_storage, &p->b, 0))
        bytes += bytes_to_split(&p->b, (double)p->b.rows, (double)p->b.cols);
    return bytes > 0 ? SPLIT_LAUNCH + bytes / SPLIT_RATE : 0;
}

/* Blocks share tiles where these are few. */
static double mma_time(const cuda_device *d, const gpu_gemm *p)
{
    int64_t tiles = ceil_div(p->c.rows, TILE) * ceil_div(p->c.cols, TILE);
    int64_t steps = ceil_div(p->a.cols, STEP);
    double rounds = (double)ceil_div(tiles, d->sms) * (double)steps;
    if (tiles * 2 <= d->sms)
        rounds = (double)ceil_div(steps, smaller(d->sms / tiles, MOST_SLICES));
    return LAUNCHES + rounds * STEP_TIME;
}

static double split16_time(const cuda_device *d, const gpu_gemm *p)
{
    double m = (double)p->c.rows, n = (double)p->c.cols;
    bool is_hopper = d->capability == 90;
    double compute =
        is_hopper
            ? gpu_cuda_split16_hopper_way(d, p->c.rows, p->c.cols, p->a.cols)
                  .time
            : mma_time(d, p);
    double power =
        2 * m * n * (double)p->a.cols / (is_hopper ? SPLIT16_RATE : MMA_RATE);
    return split_time(d, p) + (compute > power ? compute : power) +
           4 * m * n / WRITE_RATE;
}

static double simt_time(const gpu_gemm *p)
{
    return SIMT_LAUNCH + 2 * padded(p->c.rows) * padded(p->c.cols) *
                             (double)p->a.cols / SIMT_RATE;
}

/* split16 has planes of both operands; simt works on them where they lie. */
static const gpu_kernel *choose_f32(const cuda_device *d, const gpu_gemm *p)
{
    if (d->capability < 80)
        return &gpu_cuda_matmul_register;
    if (!is_large_processor(d) || p->is_short_of_memory ||
        p->a.cols < LEAST_DEPTH || p->a.cols > MOST_DEPTH)
        return &gpu_cuda_matmul_simt;
    return split16_time(d, p) < simt_time(p) ? &gpu_cuda_matmul_split16
                                             : &gpu_cuda_matmul_simt;
}

const gpu_kernel *gpu_cuda_choose_matmul(void *device, const gpu_gemm *p)
{
    const cuda_device *d = (const cuda_device *)device;
    if (smaller(p->c.rows, p->c.cols) <= FEW)
        return &gpu_cuda_matmul_vector;
    if (p->c.dtype == GPU_F32)
        return choose_f32(d, p);
    return is_large_processor(d) ? &gpu_cuda_matmul_dmma
                                 : &gpu_cuda_matmul_register;
}

/* One launch, the exactest sums and the widest loads: nothing is better at
 * any length. */
const gpu_kernel *gpu_cuda_choose_dot(void *device, const gpu_view *x,
                                      const gpu_view *y)
{
    (void)device;
    (void)x;
    (void)y;
    return &gpu_cuda_dot_stream;
}
