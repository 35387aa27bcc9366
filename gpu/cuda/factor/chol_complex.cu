/* Cholesky of c64 matrices by real products alone. With the real matrix
 * [re -im; im re] for each of its elements a Hermitian matrix is a symmetric
 * one of twice the side, and the factor of that is L's in the same form: as
 * factors with a positive diagonal are unique, and L's diagonal is real. So
 * panels are written out in that form and factored as real ones are; the rest
 * is kept as rows of real parts and of imaginary ones, each updated by a
 * product of the panel's rows of its kind and of those of real parts, twice as
 * deep: no multiplication is done twice but in panels.
 *
 * Limited by the tensor cores above 8192, by squares on the diagonal below, 37
 * us for 64 columns. Needs sm_90a. */
#include "definite_rows.h"
#include "doubled.h"
#include "kernel.h"

static int panel_width(int n)
{
    return n > 8192 ? 512 : 256;
}

enum { ROWS_AT_ONCE = 8, COLUMNS_AT_ONCE = 32 };

/* e: the columns [j, j + nb) of p from row j on, each element as four. Above
 * the diagonal is whatever p has there. */
__global__ void __launch_bounds__(ROWS_AT_ONCE *COLUMNS_AT_ONCE)
    double_panel(const float *p, int64_t ld, int side, int j, int nb, float *e,
                 int64_t lde)
{
    int c = (int)(blockIdx.y * COLUMNS_AT_ONCE + threadIdx.x);
    int i = j + (int)(blockIdx.x * ROWS_AT_ONCE + threadIdx.y);
    if (i >= side || c >= nb)
        return;
    float re = p[2 * i * ld + j + c];
    float im = i == j + c ? 0 : p[(2 * i + 1) * ld + j + c];
    place_doubled(e, lde, i - j, c, make_float2(re, im));
}

/* The way back, at and below the diagonal. */
__global__ void __launch_bounds__(ROWS_AT_ONCE *COLUMNS_AT_ONCE)
    join_panel(const float *e, int64_t lde, int side, int j, int nb, float *p,
               int64_t ld)
{
    int c = (int)(blockIdx.y * COLUMNS_AT_ONCE + threadIdx.x);
    int i = j + (int)(blockIdx.x * ROWS_AT_ONCE + threadIdx.y);
    if (i >= side || c >= nb || i < j + c)
        return;
    float2 v = *((const float2 *)(e + 2 * (i - j) * lde) + c);
    p[2 * i * ld + j + c] = v.x;
    p[(2 * i + 1) * ld + j + c] = i == j + c ? 0 : -v.y;
}

/* What is behind the columns [j, j + nb), which e has, loses their product. */
static gpu_status update_behind(cuda_device *d, const padded *p, int j, int nb,
                                const padded *e)
{
    int first = j + nb;
    int64_t m = p->side - first;
    const float *rows = e->data + 2 * nb * e->ld;
    gpu_view of_re = gpu_cuda_rows_view(rows, m, 2 * nb, 2 * e->ld);
    gpu_view of_im = gpu_cuda_rows_view(rows + e->ld, m, 2 * nb, 2 * e->ld);
    float *corner = p->data + 2 * first * p->ld + first;
    gpu_view re = gpu_cuda_rows_view(corner, m, m, 2 * p->ld);
    gpu_view im = gpu_cuda_rows_view(corner + p->ld, m, m, 2 * p->ld);
    TRY(gpu_cuda_subtract_lower(d, &re, &of_re, &of_re));
    return gpu_cuda_subtract_lower(d, &im, &of_im, &of_re);
}

/* e: memory for a panel. */
static gpu_status factor_panel(cuda_device *d, const padded *p, int j, int nb,
                               padded *e, cholesky_notes *notes)
{
    dim3 grid((unsigned)ceil_div(p->side - j, ROWS_AT_ONCE),
              (unsigned)ceil_div(nb, COLUMNS_AT_ONCE));
    dim3 block(COLUMNS_AT_ONCE, ROWS_AT_ONCE);
    e->side = 2 * (p->side - j);
    notes->first = 2 * j;
    double_panel<<<grid, block, 0, d->stream>>>(p->data, p->ld, p->side, j, nb,
                                                e->data, e->ld);
    LAUNCHED(d);
    TRY(gpu_cuda_factor_square(d, e, 0, 2 * nb, notes));
    if (e->side > 2 * nb)
        TRY(gpu_cuda_solve_rows(d, e, 2 * nb, 0, 2 * nb, notes));
    join_panel<<<grid, block, 0, d->stream>>>(e->data, e->ld, p->side, j, nb,
                                              p->data, p->ld);
    LAUNCHED(d);
    return GPU_OK;
}

static gpu_status factor_panels(cuda_device *d, const padded *p, int width,
                                padded *e, cholesky_notes *notes)
{
    for (int j = 0; j < p->side; j += width) {
        int nb = (int)smaller(width, p->side - j);
        if (*gpu_cuda_host->interrupted)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        TRY(factor_panel(d, p, j, nb, e, notes));
        if (j + nb < p->side)
            TRY(update_behind(d, p, j, nb, e));
    }
    return GPU_OK;
}

gpu_status gpu_cuda_factor_complex(cuda_device *d, const padded *p,
                                   cholesky_notes *notes)
{
    int width = (int)smaller(panel_width(p->side), p->side);
    padded e = {};
    e.ld = 2 * width;
    e.bytes = (size_t)(2 * p->side * e.ld) * sizeof(float);
    TRY(gpu_cuda_take_room(d, e.bytes, (void **)&e.data));
    gpu_status status = factor_panels(d, p, width, &e, notes);
    gpu_cuda_free(d, e.data, e.bytes);
    return status;
}
