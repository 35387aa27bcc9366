/* Cholesky of c64 matrices by real products alone. With the real matrix
 * [re -im; im re] for each of its elements a Hermitian matrix is a symmetric
 * one of twice the side, and the factor of that is L's in the same form: as
 * factors with a positive diagonal are unique, and L's diagonal is real. So a
 * square on the diagonal is written out in that form and factored as a real one
 * is; of a pair of rows below it the first is solved for, which tells the
 * second. The rest is kept as rows of real parts and of imaginary ones, each
 * updated by a product of the panel's rows of its kind and of those of real
 * parts, twice as deep: no multiplication is done twice but in squares.
 *
 * Limited by the tensor cores above 8192, by squares on the diagonal below.
 * Needs sm_90a. */
#include "definite_rows.h"
#include "doubled.h"
#include "kernel.h"

/* The panel whose first column is j: as a copy whose first row and column are
 * the panel's. */
static padded panel_of(const cholesky *c, int j)
{
    padded e = {};
    e.data = c->doubled[j / c->width % 2];
    e.ld = 2 * c->width;
    return e;
}

enum { ROWS_AT_ONCE = 8, COLUMNS_AT_ONCE = 32 };

/* Rows of p's columns [j, j + nb), m of them from row i on. */
typedef struct panel_rows {
    float *p, *e; /* the matrix, and the panel's first row, doubled */
    int64_t ld, lde;
    int i, m, j, nb;
} panel_rows;

/* The panel's element a thread has, if it has one. */
__device__ __forceinline__ bool find_element(const panel_rows &r, int *i,
                                             int *c)
{
    *c = (int)(blockIdx.y * COLUMNS_AT_ONCE + threadIdx.x);
    *i = r.i + (int)(blockIdx.x * ROWS_AT_ONCE + threadIdx.y);
    return *i < r.i + r.m && *c < r.nb;
}

/* Above the diagonal is whatever p has there. */
__global__ void __launch_bounds__(ROWS_AT_ONCE *COLUMNS_AT_ONCE)
    double_rows(const __grid_constant__ panel_rows r)
{
    int i, c;
    if (!find_element(r, &i, &c))
        return;
    const float *p = r.p + 2 * i * r.ld + r.j + c;
    place_doubled(r.e, r.lde, i - r.j, c,
                  make_float2(p[0], i == r.j + c ? 0 : p[r.ld]));
}

/* The way back, at and below the diagonal; the second row of a pair becomes
 * what the first tells. */
__global__ void __launch_bounds__(ROWS_AT_ONCE *COLUMNS_AT_ONCE)
    join_rows(const __grid_constant__ panel_rows r)
{
    int i, c;
    if (!find_element(r, &i, &c) || i < r.j + c)
        return;
    float2 v = *((const float2 *)(r.e + 2 * (i - r.j) * r.lde) + c);
    float *p = r.p + 2 * i * r.ld + r.j + c;
    p[0] = v.x;
    p[r.ld] = i == r.j + c ? 0 : -v.y;
    place_doubled(r.e, r.lde, i - r.j, c, make_float2(v.x, -v.y));
}

static panel_rows rows_of(const cholesky *c, const padded *e, int i, int end,
                          int j, int nb)
{
    return {c->p->data, e->data, c->p->ld, e->ld, i, end - i, j, nb};
}

static dim3 blocks_of(const panel_rows *r)
{
    return dim3((unsigned)ceil_div(r->m, ROWS_AT_ONCE),
                (unsigned)ceil_div(r->nb, COLUMNS_AT_ONCE));
}

static gpu_status double_panel(cuda_device *d, const panel_rows *r)
{
    double_rows<<<blocks_of(r), dim3(COLUMNS_AT_ONCE, ROWS_AT_ONCE), 0,
                  d->stream>>>(*r);
    LAUNCHED(d);
    return GPU_OK;
}

static gpu_status join_panel(cuda_device *d, const panel_rows *r)
{
    join_rows<<<blocks_of(r), dim3(COLUMNS_AT_ONCE, ROWS_AT_ONCE), 0,
                d->stream>>>(*r);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_factor_doubled_square(cuda_device *d, const cholesky *c,
                                          int j, int nb)
{
    padded e = panel_of(c, j);
    panel_rows square = rows_of(c, &e, j, j + nb, j, nb);
    TRY(double_panel(d, &square));
    TRY(gpu_cuda_factor_square(d, c, &e, 0, 2 * nb, 2 * j));
    return join_panel(d, &square);
}

gpu_status gpu_cuda_solve_doubled_rows(cuda_device *d, const cholesky *c, int j,
                                       int nb)
{
    padded e = panel_of(c, j);
    panel_rows below = rows_of(c, &e, j + nb, c->p->side, j, nb);
    gpu_view first =
        gpu_cuda_rows_view(e.data + 2 * nb * e.ld, below.m, 2 * nb, 2 * e.ld);
    TRY(double_panel(d, &below));
    TRY(gpu_cuda_solve_rows(d, c, &e, 0, 2 * nb, &first));
    return join_panel(d, &below);
}

gpu_status gpu_cuda_update_by_doubled(cuda_device *d, const cholesky *c, int i,
                                      int end, int j, int nb)
{
    const padded *p = c->p;
    padded e = panel_of(c, j);
    int first = j + nb;
    int64_t m = end - i, n = end - first, k = 2 * nb;
    const float *rows = e.data + 2 * (i - j) * e.ld;
    gpu_view of_re = gpu_cuda_rows_view(rows, m, k, 2 * e.ld);
    gpu_view of_im = gpu_cuda_rows_view(rows + e.ld, m, k, 2 * e.ld);
    gpu_view right = gpu_cuda_rows_view(e.data + 2 * nb * e.ld, n, k, 2 * e.ld);
    float *corner = p->data + 2 * i * p->ld + first;
    gpu_view re = gpu_cuda_rows_view(corner, m, n, 2 * p->ld);
    gpu_view im = gpu_cuda_rows_view(corner + p->ld, m, n, 2 * p->ld);
    TRY(gpu_cuda_subtract_lower(d, &re, &of_re, &right));
    return gpu_cuda_subtract_lower(d, &im, &of_im, &right);
}
