/* The whole of liblumat-cuda-solver.so: cuSOLVER's routines, each with what it
 * asks for to work in. Results repeat bit for bit: cuSOLVER's own default. */
#include <limits.h>
#include <stdlib.h>
#include "library_call.h"
#include "solver_table.h"

#define DISABLE_CUSOLVER_DEPRECATED
#include <cublas_v2.h>
#include <cusolverDn.h>

struct solver_device {
    la_setup setup;
    cusolverDnHandle_t solver;
    cusolverDnParams_t params;
    cublasHandle_t blas;
    /* What routines use of the host's memory: kept, as what was issued may
     * still read it. */
    void *host;
    size_t host_bytes;
};

#define SOLVE(d, function, ...)                                       \
    CALL_OF(d, #function, function, CUSOLVER_STATUS_EXECUTION_FAILED, \
            __VA_ARGS__)

/* --- errors, handles, memory ---------------------------------------------- */

static const char *name_of(cusolverStatus_t error)
{
    switch (error) {
    case CUSOLVER_STATUS_NOT_INITIALIZED:
        return "it could not be started";
    case CUSOLVER_STATUS_ALLOC_FAILED:
        return "out of memory";
    case CUSOLVER_STATUS_INVALID_VALUE:
        return "an argument that it refuses";
    case CUSOLVER_STATUS_ARCH_MISMATCH:
        return "it has no code for this GPU";
    case CUSOLVER_STATUS_EXECUTION_FAILED:
        return "a kernel of its failed";
    case CUSOLVER_STATUS_INTERNAL_ERROR:
        return "an internal error of its own";
    case CUSOLVER_STATUS_NOT_SUPPORTED:
        return "what it does not support";
    default:
        return "an error that it does not explain";
    }
}

static gpu_status check(const solver_device *d, cusolverStatus_t error)
{
    gpu_status status = GPU_INTERNAL;
    if (error == CUSOLVER_STATUS_SUCCESS)
        return GPU_OK;
    if (error == CUSOLVER_STATUS_ALLOC_FAILED)
        status = GPU_MEMORY;
    if (error == CUSOLVER_STATUS_NOT_SUPPORTED)
        status = GPU_UNSUPPORTED;
    return d->setup.fail(status, "factor: cuSOLVER failed: %s (%d)",
                         name_of(error), (int)error);
}

static gpu_status check_blas(const solver_device *d, cublasStatus_t error)
{
    if (error == CUBLAS_STATUS_SUCCESS)
        return GPU_OK;
    return d->setup.fail(
        error == CUBLAS_STATUS_ALLOC_FAILED ? GPU_MEMORY : GPU_INTERNAL,
        "factor: cuBLAS failed: %s", cublasGetStatusName(error));
}

static gpu_status start_solver(solver_device *d)
{
    cusolverDnHandle_t handle;
    if (d->params)
        return GPU_OK;
    if (!d->solver) {
        TRY(check(d, CALL(d, cusolverDnCreate, CUSOLVER_STATUS_ALLOC_FAILED,
                          &handle)));
        d->solver = handle;
    }
    TRY(check(d, SOLVE(d, cusolverDnSetStream, d->solver, d->setup.stream)));
    cusolverDnParams_t params;
    TRY(check(d, CALL(d, cusolverDnCreateParams, CUSOLVER_STATUS_ALLOC_FAILED,
                      &params)));
    d->params = params;
    return GPU_OK;
}

static gpu_status start_blas(solver_device *d)
{
    cublasHandle_t handle;
    if (d->blas)
        return GPU_OK;
    TRY(check_blas(d,
                   CALL(d, cublasCreate, CUBLAS_STATUS_ALLOC_FAILED, &handle)));
    gpu_status status =
        check_blas(d, CALL(d, cublasSetStream, CUBLAS_STATUS_EXECUTION_FAILED,
                           handle, d->setup.stream));
    if (status == GPU_OK)
        d->blas = handle;
    else
        cublasDestroy(handle);
    return status;
}

/* What a routine works in. */
typedef struct room {
    void *device;
    size_t device_bytes, host_bytes;
} room;

static gpu_status take_host(solver_device *d, size_t bytes)
{
    if (bytes <= d->host_bytes)
        return GPU_OK;
    void *host = malloc(bytes);
    if (!host)
        return d->setup.fail(GPU_MEMORY, "factor: out of host memory");
    free(d->host);
    d->host = host;
    d->host_bytes = bytes;
    return GPU_OK;
}

static gpu_status take_room(solver_device *d, room *r)
{
    TRY(take_host(d, r->host_bytes));
    gpu_status status =
        d->setup.alloc(d->setup.device, r->device_bytes, &r->device);
    if (status == GPU_MEMORY)
        return d->setup.fail(GPU_MEMORY,
                             "factor: no memory for %zu MiB that cuSOLVER "
                             "works in",
                             (r->device_bytes >> 20) + 1);
    return status;
}

static void give_room(const solver_device *d, const room *r)
{
    d->setup.free(d->setup.device, r->device, r->device_bytes);
}

/* What is meant of the four types; only that is worked out. */
#define OF_TYPE(t, f32, f64, c64, c128) \
    ((t) == GPU_F32   ? (f32)           \
     : (t) == GPU_F64 ? (f64)           \
     : (t) == GPU_C64 ? (c64)           \
                      : (c128))
/* The routine of the type, of four with the same arguments. */
#define SOLVE_TYPED(d, t, s_name, d_name, c_name, z_name, ...)               \
    OF_TYPE(t, SOLVE(d, s_name, __VA_ARGS__), SOLVE(d, d_name, __VA_ARGS__), \
            SOLVE(d, c_name, __VA_ARGS__), SOLVE(d, z_name, __VA_ARGS__))

static cudaDataType type_of(const solver_matrix *m)
{
    return OF_TYPE(m->dtype, CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F);
}

/* Of the real numbers that belong to it. */
static cudaDataType real_type_of(const solver_matrix *m)
{
    return OF_TYPE(m->dtype, CUDA_R_32F, CUDA_R_64F, CUDA_R_32F, CUDA_R_64F);
}

static int is_complex(const solver_matrix *m)
{
    return OF_TYPE(m->dtype, 0, 0, 1, 1);
}

/* A routine of the 64-bit interface: what it wants, then itself. The arguments
 * that only one of the two has stand in the second pair of brackets. */
#define WITH_ROOM(d, routine, common, rest)                                    \
    do {                                                                       \
        room r = {0};                                                          \
        TRY(start_solver(d));                                                  \
        TRY(check(d, SOLVE(d, routine##_bufferSize, (d)->solver, (d)->params,  \
                           EXPAND common, &r.device_bytes, &r.host_bytes)));   \
        TRY(take_room(d, &r));                                                 \
        gpu_status done =                                                      \
            check(d, SOLVE(d, routine, (d)->solver, (d)->params,               \
                           EXPAND common, r.device, r.device_bytes, (d)->host, \
                           r.host_bytes, EXPAND rest));                        \
        give_room(d, &r);                                                      \
        return done;                                                           \
    } while (0)
#define EXPAND(...) __VA_ARGS__

/* --- LU, Cholesky, triangles ---------------------------------------------- */

static gpu_status lu(solver_device *d, const solver_matrix *a, int64_t *pivots,
                     int *info)
{
    cudaDataType t = type_of(a);
    room r = {0};
    TRY(start_solver(d));
    TRY(check(d, SOLVE(d, cusolverDnXgetrf_bufferSize, d->solver, d->params,
                       a->rows, a->cols, t, a->data, a->ld, t, &r.device_bytes,
                       &r.host_bytes)));
    TRY(take_room(d, &r));
    gpu_status status =
        check(d, SOLVE(d, cusolverDnXgetrf, d->solver, d->params, a->rows,
                       a->cols, t, a->data, a->ld, pivots, t, r.device,
                       r.device_bytes, d->host, r.host_bytes, info));
    give_room(d, &r);
    return status;
}

static gpu_status lu_solve(solver_device *d, int turned, const solver_matrix *a,
                           const int64_t *pivots, const solver_matrix *b,
                           int *info)
{
    cudaDataType t = type_of(a);
    TRY(start_solver(d));
    return check(d, SOLVE(d, cusolverDnXgetrs, d->solver, d->params,
                          turned ? CUBLAS_OP_T : CUBLAS_OP_N, a->rows, b->cols,
                          t, a->data, a->ld, pivots, t, b->data, b->ld, info));
}

static gpu_status cholesky(solver_device *d, const solver_matrix *a, int *info)
{
    cudaDataType t = type_of(a);
    WITH_ROOM(d, cusolverDnXpotrf,
              (CUBLAS_FILL_MODE_LOWER, a->rows, t, a->data, a->ld, t), (info));
}

static gpu_status triangle(solver_device *d, const solver_half *how,
                           const solver_matrix *a, const solver_matrix *b)
{
    static const float one_f32 = 1;
    static const double one_f64 = 1;
    static const cuComplex one_c64 = {1, 0};
    static const cuDoubleComplex one_c128 = {1, 0};
    cublasFillMode_t half =
        how->is_lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    cublasOperation_t turned = !how->is_turned      ? CUBLAS_OP_N
                               : how->is_conjugated ? CUBLAS_OP_C
                                                    : CUBLAS_OP_T;
    cublasDiagType_t unit =
        how->is_unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
    enum { FAILED = CUBLAS_STATUS_EXECUTION_FAILED };
    TRY(start_blas(d));
#define COLUMN(name)                                                     \
    CALL(d, name, FAILED, d->blas, half, turned, unit, a->rows, a->data, \
         a->ld, b->data, 1)
#define COLUMNS(name, one)                                               \
    CALL(d, name, FAILED, d->blas, CUBLAS_SIDE_LEFT, half, turned, unit, \
         b->rows, b->cols, &(one), a->data, a->ld, b->data, b->ld)
    if (b->cols == 1)
        return check_blas(
            d, OF_TYPE(a->dtype, COLUMN(cublasStrsv_64), COLUMN(cublasDtrsv_64),
                       COLUMN(cublasCtrsv_64), COLUMN(cublasZtrsv_64)));
    return check_blas(d, OF_TYPE(a->dtype, COLUMNS(cublasStrsm_64, one_f32),
                                 COLUMNS(cublasDtrsm_64, one_f64),
                                 COLUMNS(cublasCtrsm_64, one_c64),
                                 COLUMNS(cublasZtrsm_64, one_c128)));
}

/* --- QR ------------------------------------------------------------------- */

static gpu_status qr(solver_device *d, const solver_matrix *a, void *tau,
                     int *info)
{
    cudaDataType t = type_of(a);
    WITH_ROOM(d, cusolverDnXgeqrf,
              (a->rows, a->cols, t, a->data, a->ld, t, tau, t), (info));
}

/* The older interface counts in ints. */
static gpu_status check_sides(const solver_device *d, const solver_matrix *a,
                              const solver_matrix *b)
{
    if (a->rows <= INT_MAX && a->cols <= INT_MAX && b->cols <= INT_MAX)
        return GPU_OK;
    return d->setup.fail(GPU_UNSUPPORTED, "qr: cuSOLVER takes sides up to %d",
                         INT_MAX);
}

static gpu_status take_elements(solver_device *d, gpu_dtype t, int elements,
                                room *r)
{
    r->device_bytes = (size_t)elements * OF_TYPE(t, 4, 8, 8, 16);
    return take_room(d, r);
}

static gpu_status make_q(solver_device *d, const solver_matrix *q,
                         const void *tau, int64_t reflections, int *info)
{
    int m = (int)q->rows, n = (int)q->cols, k = (int)reflections, size = 0;
    int ld = (int)q->ld;
    room r = {0};
    TRY(start_solver(d));
    TRY(check_sides(d, q, q));
    TRY(check(d, SOLVE_TYPED(d, q->dtype, cusolverDnSorgqr_bufferSize,
                             cusolverDnDorgqr_bufferSize,
                             cusolverDnCungqr_bufferSize,
                             cusolverDnZungqr_bufferSize, d->solver, m, n, k,
                             q->data, ld, tau, &size)));
    TRY(take_elements(d, q->dtype, size, &r));
    gpu_status status =
        check(d, SOLVE_TYPED(d, q->dtype, cusolverDnSorgqr, cusolverDnDorgqr,
                             cusolverDnCungqr, cusolverDnZungqr, d->solver, m,
                             n, k, q->data, ld, tau, r.device, size, info));
    give_room(d, &r);
    return status;
}

static gpu_status apply_q(solver_device *d, int turned, const solver_matrix *a,
                          const void *tau, const solver_matrix *b, int *info)
{
    int m = (int)b->rows, n = (int)b->cols, size = 0, lda = (int)a->ld;
    int k = (int)(a->rows < a->cols ? a->rows : a->cols), ldb = (int)b->ld;
    cublasOperation_t op = !turned         ? CUBLAS_OP_N
                           : is_complex(a) ? CUBLAS_OP_C
                                           : CUBLAS_OP_T;
    room r = {0};
    TRY(start_solver(d));
    TRY(check_sides(d, a, b));
    TRY(check(
        d, SOLVE_TYPED(d, a->dtype, cusolverDnSormqr_bufferSize,
                       cusolverDnDormqr_bufferSize, cusolverDnCunmqr_bufferSize,
                       cusolverDnZunmqr_bufferSize, d->solver, CUBLAS_SIDE_LEFT,
                       op, m, n, k, a->data, lda, tau, b->data, ldb, &size)));
    TRY(take_elements(d, a->dtype, size, &r));
    gpu_status status =
        check(d, SOLVE_TYPED(d, a->dtype, cusolverDnSormqr, cusolverDnDormqr,
                             cusolverDnCunmqr, cusolverDnZunmqr, d->solver,
                             CUBLAS_SIDE_LEFT, op, m, n, k, a->data, lda, tau,
                             b->data, ldb, r.device, size, info));
    give_room(d, &r);
    return status;
}

/* --- singular values, eigenvalues ----------------------------------------- */

static gpu_status polar_svd(solver_device *d, solver_svd *p, int *info)
{
    cudaDataType t = type_of(&p->a), real = real_type_of(&p->a);
    cusolverEigMode_t job = p->wants_vectors ? CUSOLVER_EIG_MODE_VECTOR
                                             : CUSOLVER_EIG_MODE_NOVECTOR;
    int economic = p->u.cols <= p->a.cols;
    WITH_ROOM(d, cusolverDnXgesvdp,
              (job, economic, p->a.rows, p->a.cols, t, p->a.data, p->a.ld, real,
               p->s, t, p->u.data, p->u.ld, t, p->v.data, p->v.ld, t),
              (info, &p->off));
}

static gpu_status plain_svd(solver_device *d, const solver_svd *p, int *info)
{
    cudaDataType t = type_of(&p->a), real = real_type_of(&p->a);
    signed char job_u = !p->wants_vectors        ? 'N'
                        : p->u.cols <= p->a.cols ? 'S'
                                                 : 'A';
    signed char job_v = p->wants_vectors ? 'A' : 'N';
    WITH_ROOM(d, cusolverDnXgesvd,
              (job_u, job_v, p->a.rows, p->a.cols, t, p->a.data, p->a.ld, real,
               p->s, t, p->u.data, p->u.ld, t, p->v.data, p->v.ld, t),
              (info));
}

static gpu_status svd(solver_device *d, solver_svd *p, int *info)
{
    p->off = 0;
    return p->is_polar ? polar_svd(d, p, info) : plain_svd(d, p, info);
}

static gpu_status eigh(solver_device *d, int wants_vectors,
                       const solver_matrix *a, void *values, int *info)
{
    cudaDataType t = type_of(a);
    cusolverEigMode_t job =
        wants_vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
    WITH_ROOM(d, cusolverDnXsyevd,
              (job, CUBLAS_FILL_MODE_LOWER, a->rows, t, a->data, a->ld,
               real_type_of(a), values, t),
              (info));
}

/* --- the table -------------------------------------------------------------
 * The one exported symbol. */

static gpu_status open_device(const la_setup *setup, solver_device **out)
{
    solver_device *d = calloc(1, sizeof *d);
    if (!d)
        return setup->fail(GPU_MEMORY, "out of memory");
    d->setup = *setup;
    *out = d;
    return GPU_OK;
}

static void close_device(solver_device *d)
{
    if (d->params)
        cusolverDnDestroyParams(d->params);
    if (d->solver)
        cusolverDnDestroy(d->solver);
    if (d->blas)
        cublasDestroy(d->blas);
    free(d->host);
    free(d);
}

static const solver_table table = {
    .abi = SOLVER_ABI,
    .open = open_device,
    .close = close_device,
    .lu = lu,
    .lu_solve = lu_solve,
    .cholesky = cholesky,
    .qr = qr,
    .make_q = make_q,
    .apply_q = apply_q,
    .triangle = triangle,
    .svd = svd,
    .eigh = eigh,
};

__attribute__((visibility("default"))) solver_entry lumat_cuda_solver;

const solver_table *lumat_cuda_solver(int abi)
{
    return abi == SOLVER_ABI ? &table : NULL;
}
