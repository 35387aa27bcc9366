/* Sparse products: which rung takes one. What counts is whether rows are about
 * equally long; that is found out once for a matrix, and kept with it. */
#include "sparse_rows.h"

enum { THREADS = 256 };

/* So few entries and rows that one launch is better than several. */
static const int64_t FEW = 1 << 15;

static bool is_small(const gpu_sparse_call *p)
{
    return p->s.rows + p->s.count <= FEW;
}

/* --- the survey ----------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
    longest_kernel(const int32_t *starts, int64_t rows, int *longest)
{
    int64_t step = gridDim.x * (int64_t)THREADS;
    int most = 0;
    for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < rows;
         i += step)
        most = max(most, starts[i + 1] - starts[i]);
    most = __reduce_max_sync(~0u, most);
    if (threadIdx.x % 32 == 0)
        atomicMax(longest, most);
}

static gpu_status find_longest(cuda_device *d, const gpu_csr *s, int *longest)
{
    int *there;
    int64_t blocks = smaller(ceil_div(s->rows, THREADS), (int64_t)d->sms * 8);
    TRY(gpu_cuda_scratch(d, sizeof *there, (void **)&there));
    CHECK(d, cudaMemsetAsync(there, 0, sizeof *there, d->stream));
    longest_kernel<<<(unsigned)blocks, THREADS, 0, d->stream>>>(s->starts,
                                                                s->rows, there);
    LAUNCHED(d);
    return gpu_cuda_download(d, longest, there, sizeof *longest);
}

gpu_status gpu_cuda_sparse_survey(void *device, gpu_sparse_call *p)
{
    ENTER(d, device);
    const gpu_csr *s = &p->s;
    gpu_view starts = {(void *)s->starts, GPU_F32, s->rows + 1, 1, 1, 1};
    gpu_keep_key even = {KEPT_EVEN, starts}, uneven = {KEPT_UNEVEN, starts};
    int longest;
    if (is_small(p) || p->c.cols > 1)
        return GPU_OK;
    p->is_even = gpu_cuda_host->recall(p->storage, &even) != NULL;
    if (p->is_even || gpu_cuda_host->recall(p->storage, &uneven) != NULL)
        return GPU_OK;
    TRY(find_longest(d, s, &longest));
    p->is_even = longest <= 16 + 8 * (s->count / s->rows);
    /* which of them is there tells it, not what lies there */
    gpu_cuda_host->keep(p->storage, p->is_even ? &even : &uneven, 1);
    return GPU_OK;
}

/* --- the choice ----------------------------------------------------------- */

/* Even rows are shared out to as many lanes as a GPU wants, unless there are
 * few of them. */
static bool is_for_vector(const cuda_device *d, const gpu_csr *s)
{
    const int64_t lanes_each = 1024; /* of a multiprocessor */
    int64_t lanes = smaller(32, larger(1, s->count / s->rows / 8));
    return s->rows * lanes >= d->sms * lanes_each;
}

const gpu_kernel *gpu_cuda_choose_sparse(void *device, const gpu_sparse_call *p)
{
    const cuda_device *d = (const cuda_device *)device;
    bool is_vector = is_small(p) || (p->is_even && is_for_vector(d, &p->s));
    if (p->c.cols == 1)
        return is_vector ? &gpu_cuda_spmv_vector : &gpu_cuda_spmv_merge;
    return is_small(p) ? &gpu_cuda_spmm_rows : &gpu_cuda_spmm_merge;
}

gpu_status gpu_cuda_sparse_product(void *device, const gpu_sparse_call *p)
{
    return p->rung->sparse(device, p);
}
