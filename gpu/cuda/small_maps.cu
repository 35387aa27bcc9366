/* Small elementwise work: what a launch costs the host is more than what the
 * GPU takes for it, so programs over few elements wait for others and are run
 * by one launch, one after the other, by one block; where the environment has
 * LUMAT_TOGETHER=on.
 *
 * Whatever else is issued to the stream comes behind them: gpu_cuda_enter
 * starts what waits, and so do those who wait for the stream, mark a place in
 * it or give memory back to the driver. Blocks of memory that are kept for the
 * next of their size (cuda.cu) need no start: whoever takes one is behind its
 * last reader here as there. A start that fails leaves all where it is, and the
 * next one tries again: no result is lost, and who was told of the error can go
 * on. */
#include <stdlib.h>
#include <string.h>
#include "map_job.h"

enum { THREADS = 512, MOST_SHARED = 48 << 10 };
enum { SMALL = 4096 }; /* elements: more are worth blocks of their own */

/* Kernels are given so many at most: parameters are copied whole. Those of 4
 * KiB cost a launch nothing, those of 16 a tenth of a microsecond for each job.
 */
enum { FEW = 4, MOST = 18 };

template <int N> struct job_list {
    int count;
    struct {
        map_job job;
        int width; /* threads along a row */
    } of[N];
};

typedef struct small_maps {
    job_list<MOST> list;
    size_t shared;
    void *late[64]; /* memory that goes when all is started; what is more */
    int late_count; /* stays the pool's */
} small_maps;

/* Each job may read what those before it have written. */
template <int N>
__global__ void __launch_bounds__(THREADS)
    list_kernel(const __grid_constant__ job_list<N> list)
{
    extern __shared__ __align__(16) char shared[];
    for (int n = 0; n < list.count; n++) {
        const map_job &job = list.of[n].job;
        unsigned width = list.of[n].width;
        dim3 block(width, THREADS / width);
        dim3 thread(threadIdx.x % width, threadIdx.x / width);
        if (n > 0)
            __syncthreads(); /* the results before are written */
        if (job.p.is_f64)
            map_block<double>(job, shared, block, thread, dim3(1), dim3(0, 0));
        else
            map_block<float>(job, shared, block, thread, dim3(1), dim3(0, 0));
    }
}

template <int N> static cudaError_t start(cuda_device *d, small_maps *s)
{
    void *arguments[] = {&s->list};
    return cudaLaunchKernel((const void *)list_kernel<N>, dim3(1),
                            dim3(THREADS), arguments, s->shared, d->stream);
}

gpu_status gpu_cuda_start_small(cuda_device *d)
{
    small_maps *s = d->small;
    int n = s->list.count;
    CHECK(d, cudaSetDevice(d->ordinal));
    CHECK(d, n <= FEW ? start<FEW>(d, s) : start<MOST>(d, s));
    s->list.count = 0;
    s->shared = 0;
    d->waits_small = 0;
    while (s->late_count > 0)
        if (cudaFreeAsync(s->late[--s->late_count], d->stream) != cudaSuccess)
            cudaGetLastError();
    return GPU_OK;
}

int gpu_cuda_keep_for_small(cuda_device *d, void *data)
{
    small_maps *s = d->small;
    if (!d->waits_small || gpu_cuda_start_small(d) == GPU_OK)
        return 0;
    if (s->late_count < (int)(sizeof s->late / sizeof *s->late))
        s->late[s->late_count++] = data;
    return 1;
}

/* Where kernels are to be compiled for all programs it is for these, too. */
static int is_small(const cuda_device *d, const gpu_program *p,
                    const gpu_view *out)
{
    return out->rows * out->cols <= SMALL && p->draw == NULL &&
           p->extras == 0 && d->lane == 0 &&
           *gpu_cuda_host->compile != GPU_COMPILE_ALWAYS;
}

static small_maps *list_of(cuda_device *d)
{
    if (d->small == NULL)
        d->small = (small_maps *)calloc(1, sizeof *d->small);
    return d->small;
}

static bool is_on()
{
    static const char *const how = getenv("LUMAT_TOGETHER");
    return how && strcmp(how, "on") == 0;
}

gpu_status gpu_cuda_put_off(cuda_device *d, const gpu_program *p,
                            const gpu_view *in, const gpu_view *out)
{
    if (!is_on())
        return GPU_UNSUPPORTED;
    small_maps *s = list_of(d);
    if (s == NULL || d->lost || !is_small(d, p, out))
        return GPU_UNSUPPORTED;
    if (out->rows == 0 || out->cols == 0)
        return GPU_OK;
    if (s->list.count == MOST)
        TRY(gpu_cuda_start_small(d));
    auto *next = &s->list.of[s->list.count];
    gpu_cuda_make_job(p, in, out, &next->job);
    size_t type = next->job.p.is_f64 ? sizeof(double) : sizeof(float);
    size_t shared = gpu_cuda_plan_bytes(&next->job.p, THREADS, type);
    if (shared > MOST_SHARED)
        return GPU_UNSUPPORTED;
    d->is_answering = 0;
    next->width = gpu_cuda_lay_out(&next->job, THREADS);
    s->shared = shared > s->shared ? shared : s->shared;
    s->list.count++;
    d->waits_small = 1;
    return GPU_OK;
}

void gpu_cuda_forget_small(cuda_device *d)
{
    free(d->small);
    d->small = NULL;
    d->waits_small = 0;
}
