/* f64 systems by f32 factors: the matrix, scaled by a power of two, is factored
 * in f32 by our own LU; its solutions are refined with residuals in f64 until
 * the normwise backward error is that of a direct f64 solve. Where they do not
 * come nearer, with a condition above about 1e6, nothing is given, and the
 * caller factors in f64.
 *
 * Limited by the f32 factorisation, 2 to 3 times as fast as cuSOLVER's in f64;
 * each step reads the factors and the matrix once. Source: Higham, Accuracy
 * and Stability of Numerical Algorithms, 2nd edition, 12. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "padded.h"
#include "vector_solve.h"

extern "C" {
#include "inverse_size.h"
}

enum { MOST_STEPS = 12, MOST_COLUMNS = 64, THREADS = 256, FOLDERS = 1024 };

/* A backward error that is good, and one that is good enough where it does not
 * fall any more: direct ones are 7e-16 at 4096 and 2e-15 at 16384. */
static const double GOOD = 4e-16, GOOD_ENOUGH = 5e-16;

typedef struct refining {
    cuda_device *d;
    const gpu_view *a; /* n x n, f64, row by row */
    padded p;          /* its factors */
    int *order;        /* of the device, side */
    double scale;      /* they are of a times it */
    double size;       /* |a| in the Frobenius norm */
    gpu_view x, r;     /* n x columns, f64, column by column */
    gpu_view step;     /* side x columns, f32, column by column */
    void *work;        /* vector_bytes */
    void *memory;
    size_t bytes;
    double *norms; /* of r's columns, then of x's; pinned */
} refining;

/* --- sizes ---------------------------------------------------------------- */

/* A block's largest magnitude and sum of squares, added in a fixed order. */
__global__ void __launch_bounds__(THREADS)
    measure_elements(const double *a, int64_t n, double *largest, double *sums)
{
    __shared__ double sum[THREADS], most[THREADS];
    double s = 0, m = 0;
    for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * THREADS) {
        double v = fabs(a[i]);
        s += v * v;
        m = v <= m ? m : v; /* NaN stays */
    }
    sum[threadIdx.x] = s;
    most[threadIdx.x] = m;
    __syncthreads(); /* all are there */
    for (int k = THREADS / 2; k > 0; k /= 2) {
        if ((int)threadIdx.x < k) {
            double other = most[threadIdx.x + k];
            sum[threadIdx.x] += sum[threadIdx.x + k];
            if (!(other <= most[threadIdx.x]))
                most[threadIdx.x] = other;
        }
        __syncthreads(); /* half of them is left */
    }
    if (threadIdx.x == 0) {
        largest[blockIdx.x] = most[0];
        sums[blockIdx.x] = sum[0];
    }
}

/* The Frobenius norm, and a power of two that takes the largest element to
 * about 1; GPU_UNSUPPORTED where there is none. */
static gpu_status measure_matrix(refining *v)
{
    enum { BLOCKS = 256 };
    cuda_device *d = v->d;
    double *there, host[2 * BLOCKS], sum = 0, most = 0;
    TRY(gpu_cuda_take_room(d, sizeof host, (void **)&there));
    measure_elements<<<BLOCKS, THREADS, 0, d->stream>>>(
        (const double *)v->a->data, v->a->rows * v->a->cols, there,
        there + BLOCKS);
    gpu_status status = gpu_cuda_check(d, cudaGetLastError());
    if (status == GPU_OK)
        status = gpu_cuda_download(d, host, there, sizeof host);
    gpu_cuda_free(d, there, sizeof host);
    TRY(status);
    for (int i = 0; i < BLOCKS; i++) {
        most = host[i] <= most ? most : host[i];
        sum += host[BLOCKS + i];
    }
    if (!(most > DBL_MIN) || !(sum < DBL_MAX) || !(sum > DBL_MIN))
        return GPU_UNSUPPORTED;
    v->scale = ldexp(1, -ilogb(most));
    v->size = sqrt(sum);
    return GPU_OK;
}

/* The 2-norms of r's and x's columns. A block has a column. */
__global__ void __launch_bounds__(FOLDERS)
    measure_columns(const double *r, const double *x, int64_t n, double *norms)
{
    __shared__ double sum[FOLDERS];
    const double *from = (blockIdx.y ? x : r) + blockIdx.x * n;
    double s = 0;
    for (int64_t i = threadIdx.x; i < n; i += FOLDERS)
        s += from[i] * from[i];
    sum[threadIdx.x] = s;
    __syncthreads(); /* all are there */
    for (int k = FOLDERS / 2; k > 0; k /= 2) {
        if ((int)threadIdx.x < k)
            sum[threadIdx.x] += sum[threadIdx.x + k];
        __syncthreads(); /* half of them is left */
    }
    if (threadIdx.x == 0)
        norms[blockIdx.y * gridDim.x + blockIdx.x] = sqrt(sum[0]);
}

static gpu_status measure_solution(const refining *v)
{
    cuda_device *d = v->d;
    measure_columns<<<dim3((unsigned)v->x.cols, 2), FOLDERS, 0, d->stream>>>(
        (const double *)v->r.data, (const double *)v->x.data, v->x.rows,
        v->norms);
    LAUNCHED(d);
    return gpu_cuda_wait(d);
}

/* --- a step
 * ------------------------------------------------------------------- */

/* Factors for the columns, by value. */
typedef struct factors {
    double by[MOST_COLUMNS];
} factors;

__global__ void __launch_bounds__(THREADS)
    begin_step(const double *r, int64_t n, const int *order, int side,
               float *step, const __grid_constant__ factors f)
{
    int i = (int)(blockIdx.x * THREADS + threadIdx.x), j = (int)blockIdx.y;
    if (i >= side)
        return;
    int from = order[i];
    step[i + (int64_t)j * side] =
        from < n ? (float)(r[from + j * n] * f.by[j]) : 0;
}

__global__ void __launch_bounds__(THREADS)
    end_step(double *x, int64_t n, const float *step, int side,
             const __grid_constant__ factors f)
{
    int i = (int)(blockIdx.x * THREADS + threadIdx.x), j = (int)blockIdx.y;
    if (i < n)
        x[i + j * n] += (double)step[i + (int64_t)j * side] * f.by[j];
}

/* L^-1 or U^-1, or of their transposes, of what lies in step. The factors lie
 * row by row: column by column, as the library has them, they are turned. */
static gpu_status undo(const refining *v, int is_lower, int is_turned,
                       const gpu_view *step)
{
    if (step->cols == 1)
        return solve_vector_with(v->d, v->p.data, v->p.ld, v->p.side, is_lower,
                                 is_lower, is_turned, (float *)step->data,
                                 v->work);
    gpu_factoring how = {};
    gpu_view a = {v->p.data, GPU_F32, v->p.side, v->p.side, 1, v->p.ld};
    how.is_lower = !is_lower;
    how.is_unit = is_lower;
    how.is_turned = !is_turned;
    return gpu_cuda_solve_triangle(v->d, &how, &a, step);
}

static dim3 step_grid(const refining *v)
{
    return dim3((unsigned)ceil_div(v->p.side, THREADS), (unsigned)v->x.cols);
}

/* x += a^-1 r, about: r comes into f32's range by its norm. */
static gpu_status correct(const refining *v)
{
    cuda_device *d = v->d;
    factors in = {}, out = {};
    for (int j = 0; j < v->x.cols; j++) {
        double norm = v->norms[j];
        if (norm > 0 && isfinite(norm)) {
            int e = ilogb(norm);
            in.by[j] = ldexp(1, -e);
            out.by[j] = ldexp(v->scale, e);
        }
    }
    begin_step<<<step_grid(v), THREADS, 0, d->stream>>>(
        (const double *)v->r.data, v->r.rows, v->order, v->p.side,
        (float *)v->step.data, in);
    LAUNCHED(d);
    TRY(undo(v, 1, 0, &v->step));
    TRY(undo(v, 0, 0, &v->step));
    end_step<<<step_grid(v), THREADS, 0, d->stream>>>(
        (double *)v->x.data, v->x.rows, (const float *)v->step.data, v->p.side,
        out);
    LAUNCHED(d);
    return GPU_OK;
}

/* r = b - a x. */
static gpu_status find_residual(const refining *v, const gpu_view *b)
{
    gpu_gemm g = {};
    TRY(gpu_cuda_copy_view(v->d, b, &v->r));
    g.a = *v->a;
    g.b = v->x;
    g.c = v->r;
    g.alpha = -1;
    g.beta = 1;
    return gpu_cuda_choose_matmul(v->d, &g)->matmul(v->d, &g);
}

/* The largest of the columns. */
static double backward_error(const refining *v)
{
    double most = 0;
    int n = (int)v->x.cols;
    for (int j = 0; j < n; j++) {
        double x = v->norms[n + j], r = v->norms[j];
        double error = r == 0 ? 0 : r / (v->size * x);
        most = error <= most ? most : error;
    }
    return most;
}

/* GPU_UNSUPPORTED, without a message, where it does not come near enough. */
static gpu_status refine(const refining *v, const gpu_view *b,
                         gpu_inverse_size *told)
{
    double last = (double)INFINITY;
    TRY(gpu_cuda_check(
        v->d, cudaMemsetAsync(v->x.data, 0,
                              (size_t)(v->x.rows * v->x.cols) * sizeof(double),
                              v->d->stream)));
    TRY(gpu_cuda_copy_view(v->d, b, &v->r));
    TRY(measure_solution(v));
    for (int k = 1; k <= MOST_STEPS; k++) {
        TRY(correct(v));
        TRY(find_residual(v, b));
        TRY(measure_solution(v));
        double error = backward_error(v);
        if (!isfinite(error))
            return GPU_UNSUPPORTED;
        if (told != NULL) {
            told->steps = k;
            told->backward = error;
        }
        if (error <= GOOD)
            return GPU_OK;
        if (error > last / 2)
            return error <= GOOD_ENOUGH ? GPU_OK : GPU_UNSUPPORTED;
        last = error;
    }
    return GPU_UNSUPPORTED;
}

/* --- how large the inverse is
 * -------------------------------------------------- */

typedef struct inverting {
    const refining *v;
    float *host;
} inverting;

/* A gpu_invert, but for the order of columns: a is U^-1 L^-1 over the scale. */
static gpu_status invert(void *context, double *x, double start, int turned)
{
    const inverting *i = (const inverting *)context;
    const refining *v = i->v;
    int64_t n = v->x.rows;
    gpu_view step = v->step;
    size_t bytes = (size_t)v->p.side * sizeof *i->host;
    double most = 0;
    step.cols = 1;
    for (int64_t k = 0; k < n; k++)
        most = fabs(x[k]) > most ? fabs(x[k]) : most;
    int e = most > 0 && isfinite(most) ? ilogb(most) : 0;
    for (int64_t k = 0; k < v->p.side; k++)
        i->host[k] = k < n ? (float)ldexp(x[k], -e) : 0;
    TRY(gpu_cuda_upload(v->d, step.data, i->host, bytes));
    TRY(undo(v, !turned, turned, &step));
    TRY(undo(v, turned, turned, &step));
    TRY(gpu_cuda_download(v->d, i->host, step.data, bytes));
    for (int64_t k = 0; k < n; k++)
        x[k] = ldexp((double)i->host[k] * start * v->scale, e);
    return GPU_OK;
}

static gpu_status measure_inverse(const refining *v, gpu_inverse_size *out)
{
    size_t n = (size_t)v->x.rows, side = (size_t)v->p.side;
    inverting i = {v, NULL};
    double *room =
        (double *)malloc(2 * n * sizeof *room + side * sizeof *i.host);
    if (room == NULL)
        return FAIL(GPU_MEMORY, "solve: out of host memory");
    i.host = (float *)(room + 2 * n);
    gpu_status status = gpu_measure_inverse((int64_t)n, room, invert, &i, out);
    free(room);
    return status;
}

/* --- the whole
 * ------------------------------------------------------------------ */

static gpu_status take_vectors(refining *v, const gpu_view *b)
{
    size_t n = (size_t)b->rows, columns = (size_t)b->cols;
    size_t side = (size_t)v->p.side, vectors = n * columns * sizeof(double);
    size_t work = vector_bytes(v->p.side);
    v->bytes = work + 2 * vectors + side * columns * sizeof(float) +
               side * sizeof(int);
    TRY(gpu_cuda_take_room(v->d, v->bytes, &v->memory));
    char *at = (char *)v->memory + work;
    v->work = v->memory;
    v->x = {at, GPU_F64, b->rows, b->cols, 1, b->rows};
    v->r = v->x;
    v->r.data = at + vectors;
    v->step = {at + 2 * vectors, GPU_F32, v->p.side, b->cols, 1, v->p.side};
    v->order = (int *)(at + 2 * vectors + side * columns * sizeof(float));
    v->norms = v->d->slot;
    return GPU_OK;
}

static gpu_status solve_refined(refining *v, const gpu_view *b,
                                gpu_inverse_size *inverse)
{
    TRY(take_vectors(v, b));
    TRY(gpu_cuda_lu_of_padded(v->d, &v->p, gpu_cuda_is_for_ahead(v->p.n),
                              v->order));
    TRY(refine(v, b, inverse));
    TRY(gpu_cuda_copy_view(v->d, &v->x, b));
    if (inverse != NULL)
        TRY(measure_inverse(v, inverse));
    return gpu_cuda_wait(v->d);
}

bool gpu_cuda_can_refine(const cuda_device *d, const gpu_view *a,
                         const gpu_view *b)
{
    gpu_view single = *a;
    single.dtype = GPU_F32;
    return a->dtype == GPU_F64 && b->cols <= MOST_COLUMNS &&
           gpu_cuda_can_own_lu(d, &single);
}

gpu_status gpu_cuda_solve_by_refinement(cuda_device *d, const gpu_view *a,
                                        const gpu_view *b,
                                        gpu_inverse_size *inverse)
{
    refining v = {};
    v.d = d;
    v.a = a;
    TRY(measure_matrix(&v));
    TRY(gpu_cuda_pad(d, a, v.scale, PADDED_ALL, &v.p));
    gpu_status status = solve_refined(&v, b, inverse);
    if (v.memory != NULL)
        gpu_cuda_free(d, v.memory, v.bytes);
    gpu_cuda_end_padded(d, &v.p);
    return status;
}
