/* Gather and scatter: elements picked by a list of rows and a list of columns.
 * The lists come from the host and travel through the scratch block. Limited
 * by bytes and by how the picked elements lie. */
#include "view.h"

#include <stdlib.h>

enum { THREADS = 256, BLOCKS_PER_SM = 16, MAX_GRID_Y = 65535 };

/* small has the lists' shape; its element (i, j) belongs to big's
 * (rows[i], cols[j]). A list that is NULL is the identity; a place of -1 is
 * left alone. */
typedef struct move_job {
    gpu_view big, small;
    const int64_t *rows, *cols;
} move_job;

template <bool SCATTER>
__global__ void __launch_bounds__(THREADS)
    move_kernel(const __grid_constant__ move_job job)
{
    int64_t i = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t step_i = (int64_t)gridDim.y * blockDim.y;
    int64_t step_j = (int64_t)gridDim.x * blockDim.x;
    for (; i < job.small.rows; i += step_i) {
        int64_t row = job.rows ? job.rows[i] : i;
        int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
        for (; j < job.small.cols; j += step_j) {
            int64_t col = job.cols ? job.cols[j] : j;
            if (row < 0 || col < 0)
                continue;
            int64_t at = place(job.small, i, j);
            int64_t there = place(job.big, row, col);
            if (SCATTER)
                store<double>(job.big, there, load<double>(job.small, at));
            else
                store<double>(job.small, at, load<double>(job.big, there));
        }
    }
}

/* Both lists into scratch, one after the other. */
static gpu_status upload_lists(cuda_device *d, move_job *job,
                               const int64_t *rows, const int64_t *cols)
{
    size_t row_bytes = rows ? (size_t)job->small.rows * sizeof *rows : 0;
    size_t col_bytes = cols ? (size_t)job->small.cols * sizeof *cols : 0;
    char *data = NULL;
    job->rows = job->cols = NULL;
    if (row_bytes + col_bytes == 0)
        return GPU_OK;
    TRY(gpu_cuda_scratch(d, row_bytes + col_bytes, (void **)&data));
    if (rows != NULL)
        job->rows = (const int64_t *)data;
    if (cols != NULL)
        job->cols = (const int64_t *)(data + row_bytes);
    TRY(gpu_cuda_upload(d, data, rows, row_bytes));
    return gpu_cuda_upload(d, data + row_bytes, cols, col_bytes);
}

static void swap_job(move_job *job, const int64_t **rows, const int64_t **cols)
{
    const int64_t *list = *rows;
    *rows = *cols;
    *cols = list;
    swap_axes(&job->big);
    swap_axes(&job->small);
}

/* Do neighbours in memory follow each other down the columns? A small view
 * that is broadcast is read from the cache: then the big one's layout counts.
 */
static bool runs_down(const move_job *job)
{
    bool is_broadcast =
        job->small.row_stride == 0 || job->small.col_stride == 0;
    const gpu_view *v = is_broadcast ? &job->big : &job->small;
    return job->small.cols == 1 ||
           stride_size(v->row_stride) < stride_size(v->col_stride);
}

template <bool SCATTER>
static gpu_status move(cuda_device *d, move_job *job, const int64_t *rows,
                       const int64_t *cols)
{
    const gpu_view *small = &job->small;
    if (runs_down(job))
        swap_job(job, &rows, &cols);
    TRY(upload_lists(d, job, rows, cols));
    int width = 1;
    while (width < THREADS && width < small->cols)
        width *= 2;
    dim3 block(width, THREADS / width);
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    int64_t x = smaller(ceil_div(small->cols, width), most);
    int64_t y = smaller(ceil_div(small->rows, block.y), ceil_div(most, x));
    move_kernel<SCATTER><<<dim3((unsigned)x, (unsigned)smaller(y, MAX_GRID_Y)),
                           block, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_gather(void *device, const gpu_view *from,
                           const int64_t *rows, const int64_t *cols,
                           const gpu_view *to)
{
    ENTER(d, device);
    move_job job = {*from, *to, NULL, NULL};
    if (to->rows == 0 || to->cols == 0)
        return GPU_OK;
    return move<false>(d, &job, rows, cols);
}

/* A copy of list in which a place that comes again later reads -1, so that
 * the last one wins whatever the order of the threads. NULL: no memory. An
 * open-addressing table holds the places already seen from the end. */
static int64_t *keep_last(const int64_t *list, int64_t n)
{
    size_t size = 4;
    while (size < 2 * (size_t)n)
        size *= 2;
    int64_t *kept = (int64_t *)malloc((size_t)n * sizeof *kept);
    int64_t *seen = (int64_t *)malloc(size * sizeof *seen);
    for (size_t s = 0; seen != NULL && s < size; s++)
        seen[s] = -1;
    for (int64_t i = n - 1; kept != NULL && seen != NULL && i >= 0; i--) {
        size_t s = (uint64_t)list[i] * 0x9e3779b97f4a7c15u >> 20 & (size - 1);
        while (seen[s] != -1 && seen[s] != list[i])
            s = (s + 1) & (size - 1);
        kept[i] = seen[s] == list[i] ? -1 : list[i];
        seen[s] = list[i];
    }
    if (seen == NULL) {
        free(kept);
        kept = NULL;
    }
    free(seen);
    return kept;
}

gpu_status gpu_cuda_scatter(void *device, const gpu_view *from,
                            const int64_t *rows, const int64_t *cols,
                            const gpu_view *to)
{
    ENTER(d, device);
    move_job job = {*to, *from, NULL, NULL};
    if (from->rows == 0 || from->cols == 0)
        return GPU_OK;
    int64_t *last_rows = rows ? keep_last(rows, from->rows) : NULL;
    int64_t *last_cols = cols ? keep_last(cols, from->cols) : NULL;
    gpu_status status;
    if ((rows && !last_rows) || (cols && !last_cols))
        status = FAIL(GPU_MEMORY, "scatter: no host memory for its indices");
    else
        status = move<true>(d, &job, last_rows, last_cols);
    free(last_rows);
    free(last_cols);
    return status;
}
