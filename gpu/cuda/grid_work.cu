/* Products by cuBLASMp, factorisations and eigenvalues by cuSOLVERMp, of
 * matrices that lie in blocks on the GPUs of several processes. Neither comes
 * with CUDA's toolkit: they are opened when a task first asks for them, and
 * there is nothing without them. Older ones take no communicator of NCCL, or
 * have faults that they tell of themselves: see LEAST_BLAS. */
#include <dlfcn.h>
#include <library_types.h>
#include <stdio.h>
#include <stdlib.h>

#include "grid_work.h"
#include "factor.h"

extern "C" {
#include "complex_numbers.h"
}

/* --- the libraries, whose headers are not needed -------------------------- */

/* Versions, as 10000, 100 and 1 of their three numbers. 0.7.2 of cuSOLVERMp
 * mends LU's results. */
enum { LEAST_BLAS = 700, LEAST_SOLVER = 702 };

typedef int status_t; /* 0: it went well */
typedef void *object;
enum { NO_TRANSPOSE = 0 };
enum { LOWER = 0, LEFT = 0, BY_ROWS = 1 };
enum { COMPUTE_F32 = 68, COMPUTE_F64 = 70 };
typedef int64_t position; /* of a first element, from 1 */

#define OPERAND object, position, position, object
#define READ const void *, position, position, object
#define ROOM void *, size_t, void *, size_t
#define SIZES size_t *, size_t *

static struct blas_library {
    int looked;
    const char *missing;
    status_t (*GetVersion)(int *);
    status_t (*Create)(object *, cudaStream_t);
    status_t (*GridCreate)(int64_t rows, int64_t cols, int order, void *comm,
                           object *);
    status_t (*MatrixDescriptorCreate)(int64_t m, int64_t n, int64_t mb,
                                       int64_t nb, int64_t row, int64_t col,
                                       int64_t ld, cudaDataType, object grid,
                                       object *);
    status_t (*MatrixDescriptorDestroy)(object);
    status_t (*Gemm_bufferSize)(object, int, int, int64_t, int64_t, int64_t,
                                const void *, READ, READ, const void *, OPERAND,
                                int compute, SIZES);
    status_t (*Gemm)(object, int, int, int64_t, int64_t, int64_t, const void *,
                     READ, READ, const void *, OPERAND, int compute, ROOM);
} blas;

static struct solver_library {
    int looked;
    const char *missing;
    status_t (*Create)(object *, int device, cudaStream_t);
    status_t (*GetVersion)(object, int *);
    status_t (*CreateDeviceGrid)(object, object *, void *comm, int32_t rows,
                                 int32_t cols, int order);
    status_t (*CreateMatrixDesc)(object *, object grid, cudaDataType, int64_t m,
                                 int64_t n, int64_t mb, int64_t nb,
                                 uint32_t row, uint32_t col, int64_t ld);
    status_t (*DestroyMatrixDesc)(object);
    status_t (*Getrf_bufferSize)(object, int64_t m, int64_t n, OPERAND,
                                 int64_t *, cudaDataType, SIZES);
    status_t (*Getrf)(object, int64_t m, int64_t n, OPERAND, int64_t *,
                      cudaDataType, ROOM, int *info);
    status_t (*Potrf_bufferSize)(object, int, int64_t n, READ, cudaDataType,
                                 SIZES);
    status_t (*Potrf)(object, int, int64_t n, OPERAND, cudaDataType, ROOM,
                      int *info);
    status_t (*Geqrf_bufferSize)(object, int64_t m, int64_t n, OPERAND,
                                 cudaDataType, SIZES);
    status_t (*Geqrf)(object, int64_t m, int64_t n, OPERAND, void *tau,
                      cudaDataType, ROOM, int *info);
    status_t (*Ormqr_bufferSize)(object, int, int, int64_t m, int64_t n,
                                 int64_t k, READ, const void *tau, OPERAND,
                                 cudaDataType, SIZES);
    status_t (*Ormqr)(object, int, int, int64_t m, int64_t n, int64_t k, READ,
                      const void *tau, OPERAND, cudaDataType, ROOM, int *info);
    status_t (*Syevd_bufferSize)(object, char *, int, int64_t n, OPERAND,
                                 void *values, OPERAND, cudaDataType, SIZES);
    status_t (*Syevd)(object, char *, int, int64_t n, OPERAND, void *values,
                      OPERAND, cudaDataType, ROOM, int *info);
} solver;

#define FIND(library, prefix, name)                                       \
    if (library.missing == NULL &&                                        \
        (*(void **)&library.name = dlsym(object_, prefix #name)) == NULL) \
        library.missing = prefix #name;

/* Bound at once, as a function that is missing in an older NCCL would end the
 * process when it is called. What dlerror says of that lasts here. */
static void *open_library(const char *file, const char **missing)
{
    static char said[2][300];
    static int count;
    void *found = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (found == NULL) {
        const char *why = dlerror();
        snprintf(said[count], sizeof said[count], "%s", why ? why : file);
        *missing = said[count++];
    }
    return found;
}

static void find_blas(void)
{
    void *object_ = open_library("libcublasmp.so.0", &blas.missing);
    int version = 0;
    blas.looked = 1;
    FIND(blas, "cublasMp", GetVersion)
    FIND(blas, "cublasMp", Create)
    FIND(blas, "cublasMp", GridCreate)
    FIND(blas, "cublasMp", MatrixDescriptorCreate)
    FIND(blas, "cublasMp", MatrixDescriptorDestroy)
    FIND(blas, "cublasMp", Gemm_bufferSize)
    FIND(blas, "cublasMp", Gemm)
    if (blas.missing == NULL &&
        (blas.GetVersion(&version) != 0 || version < LEAST_BLAS))
        blas.missing = "version 0.7 of libcublasmp.so.0";
}

static void find_solver(void)
{
    void *object_ = open_library("libcusolverMp.so.0", &solver.missing);
    solver.looked = 1;
#define BOTH(name)                   \
    FIND(solver, "cusolverMp", name) \
    FIND(solver, "cusolverMp", name##_bufferSize)
    FIND(solver, "cusolverMp", Create)
    FIND(solver, "cusolverMp", GetVersion)
    FIND(solver, "cusolverMp", CreateDeviceGrid)
    FIND(solver, "cusolverMp", CreateMatrixDesc)
    FIND(solver, "cusolverMp", DestroyMatrixDesc)
    BOTH(Getrf)
    BOTH(Potrf)
    BOTH(Geqrf)
    BOTH(Ormqr)
    BOTH(Syevd)
}

const char *gpu_cuda_grid_lacks(gpu_grid_task task)
{
    if (task == GPU_GRID_PRODUCT) {
        if (!blas.looked)
            find_blas();
        return blas.missing;
    }
    if (!solver.looked)
        find_solver();
    return solver.missing;
}

/* What statuses mean, of both and from the sixth on of each. */
static const char *words_of(status_t status, bool is_blas)
{
    static const char *const both[] = {"", "not initialized", "out of memory",
                                       "invalid value", "not for this GPU"};
    static const char *const of_blas[] = {"a GPU failed", "internal error",
                                          "not supported"};
    static const char *const of_solver[] = {
        "mapping failed", "a GPU failed", "internal error",
        "matrix type not supported", "not supported"};
    if (status > 0 && status < 5)
        return both[status];
    if (is_blas)
        return status >= 5 && status < 8 ? of_blas[status - 5] : "failed";
    return status >= 5 && status < 10 ? of_solver[status - 5] : "failed";
}

static gpu_status went(const char *what, status_t status, bool is_blas)
{
    if (status == 0)
        return GPU_OK;
    cudaGetLastError(); /* which the next call would take for its own */
    return FAIL(status == 2 ? GPU_MEMORY : GPU_INTERNAL, "%s: %s (status %d)",
                what, words_of(status, is_blas), status);
}

#define BLAS(name, ...) \
    TRY(went("cublasMp" #name, blas.name(__VA_ARGS__), true))
#define SOLVER(name, ...) \
    TRY(went("cusolverMp" #name, solver.name(__VA_ARGS__), false))

/* --- what they are given -------------------------------------------------- */

static cudaDataType type_of(gpu_dtype t)
{
    switch (t) {
    case GPU_F32:
        return CUDA_R_32F;
    case GPU_F64:
        return CUDA_R_64F;
    case GPU_C64:
        return CUDA_C_32F;
    default:
        return CUDA_C_64F;
    }
}

/* A part as they want it: in room of whole blocks, so that where it ends within
 * one it is a copy. */
typedef struct placed {
    const gpu_grid_view *of;
    void *data;
    int64_t ld, size; /* bytes of an element */
    size_t bytes;     /* 0: no copy */
    object descriptor;
} placed;

static int64_t whole_blocks(int64_t n, int64_t block)
{
    return larger(1, ceil_div(n, block)) * block;
}

static gpu_status copy_part(cuda_device *d, const placed *p, int is_back)
{
    const gpu_grid_view *v = p->of;
    size_t own = (size_t)(v->rows * p->size), whole = (size_t)(p->ld * p->size);
    if (p->bytes == 0 || own == 0 || v->cols == 0)
        return GPU_OK;
    CHECK(d, cudaMemcpy2DAsync(
                 is_back ? v->data : p->data, is_back ? own : whole,
                 is_back ? p->data : v->data, is_back ? whole : own, own,
                 (size_t)v->cols, cudaMemcpyDeviceToDevice, d->stream));
    return GPU_OK;
}

static gpu_status place_part(cuda_device *d, const gpu_grid_view *v,
                             gpu_dtype type, placed *p)
{
    int64_t rows = whole_blocks(v->rows, v->mb);
    int64_t cols = whole_blocks(v->cols, v->nb);
    *p = {};
    p->of = v;
    p->size = (int64_t)dtype_bytes(type);
    p->ld = rows;
    p->data = v->data;
    if (rows == v->rows && cols == v->cols)
        return GPU_OK;
    size_t bytes = (size_t)(rows * cols * p->size);
    TRY(gpu_cuda_take_room(d, bytes, &p->data));
    p->bytes = bytes;
    CHECK(d, cudaMemsetAsync(p->data, 0, bytes, d->stream));
    return copy_part(d, p, 0);
}

static void end_part(cuda_device *d, placed *p)
{
    if (p->bytes > 0)
        gpu_cuda_free(d, p->data, p->bytes);
    p->bytes = 0;
}

/* Room for a call, on the device and the host, for what it says, and for the
 * pivots as cuSOLVERMp has them. */
typedef struct room {
    void *there, *here;
    size_t bytes_there, bytes_here, bytes_of_pivots;
    void *pivots;
    int *info;
} room;

static gpu_status take_call_room(cuda_device *d, room *r)
{
    if (r->bytes_there > 0)
        TRY(gpu_cuda_take_room(d, r->bytes_there, &r->there));
    r->here = malloc((size_t)larger(1, (int64_t)r->bytes_here));
    if (r->here == NULL)
        return FAIL(GPU_MEMORY, "out of host memory");
    return GPU_OK;
}

__global__ void pivots_to(double *to, const int64_t *from, int64_t n)
{
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = (double)from[i];
}

/* Whole numbers of 8 bytes, one for each of a's columns here, to come. */
static gpu_status take_pivots(cuda_device *d, const gpu_grid_work *w, room *r)
{
    int64_t n = w->a.cols;
    if (w->task != GPU_GRID_LU)
        return GPU_OK;
    int64_t most =
        larger(n, w->a.rows + w->a.mb); /* ScaLAPACK's have so many */
    size_t bytes = (size_t)most * sizeof(int64_t);
    TRY(gpu_cuda_take_room(d, bytes, &r->pivots));
    r->bytes_of_pivots = bytes;
    CHECK(d, cudaMemsetAsync(r->pivots, 0, bytes, d->stream));
    return GPU_OK;
}

static gpu_status keep_pivots(cuda_device *d, const gpu_grid_work *w,
                              const room *r)
{
    int64_t n = w->a.cols;
    if (n == 0)
        return GPU_OK;
    pivots_to<<<(unsigned)ceil_div(n, 256), 256, 0, d->stream>>>(
        (double *)w->numbers, (const int64_t *)r->pivots, n);
    LAUNCHED(d);
    return GPU_OK;
}

/* Waits: until then the call reads the host's part. */
static gpu_status read_info(cuda_device *d, const room *r, int64_t *trouble)
{
    int info;
    TRY(gpu_cuda_download(d, &info, r->info, sizeof info));
    if (info < 0)
        return FAIL(GPU_INTERNAL, "cuSOLVERMp: argument %d is wrong", -info);
    *trouble = info;
    return GPU_OK;
}

/* What the host keeps for a call that may still run is not given back: an
 * interrupt ends the wait for it. */
static void end_room(cuda_device *d, room *r, int may_run)
{
    if (r->there != NULL)
        gpu_cuda_free(d, r->there, r->bytes_there);
    if (r->info != NULL)
        gpu_cuda_free(d, r->info, sizeof *r->info);
    if (r->pivots != NULL)
        gpu_cuda_free(d, r->pivots, r->bytes_of_pivots);
    if (!may_run)
        free(r->here);
}

#define FIRST(p) (p).data, 1, 1, (p).descriptor
#define IN_ROOM(r) (r).there, (r).bytes_there, (r).here, (r).bytes_here

/* --- products ------------------------------------------------------------- */

static gpu_status describe_for_blas(const grid_libraries *l, gpu_dtype type,
                                    placed *p)
{
    const gpu_grid_view *v = p->of;
    BLAS(MatrixDescriptorCreate, v->m, v->n, v->mb, v->nb, 0, 0, p->ld,
         type_of(type), l->blas_grid, &p->descriptor);
    return GPU_OK;
}

/* A product's scalars and computing, of its type. */
typedef struct product_how {
    const void *alpha, *beta;
    int compute;
} product_how;

static product_how how_to_multiply(const gpu_grid_work *w)
{
    static const double one[2] = {1, 0}, zero[2] = {0, 0};
    static const float one_f32[2] = {1, 0}; /* zero's bytes serve both */
    int is_wide = gpu_dtype_of_parts(w->type) == GPU_F64;
    return {is_wide ? (const void *)one : one_f32, zero,
            is_wide ? COMPUTE_F64 : COMPUTE_F32};
}

static gpu_status ask_to_multiply(const grid_libraries *l,
                                  const gpu_grid_work *w, const placed *p,
                                  room *r)
{
    product_how h = how_to_multiply(w);
    BLAS(Gemm_bufferSize, l->blas, NO_TRANSPOSE, NO_TRANSPOSE, w->c.m, w->c.n,
         w->a.n, h.alpha, FIRST(p[0]), FIRST(p[1]), h.beta, FIRST(p[2]),
         h.compute, &r->bytes_there, &r->bytes_here);
    return GPU_OK;
}

static gpu_status multiply(const grid_libraries *l, const gpu_grid_work *w,
                           const placed *p, const room *r)
{
    product_how h = how_to_multiply(w);
    BLAS(Gemm, l->blas, NO_TRANSPOSE, NO_TRANSPOSE, w->c.m, w->c.n, w->a.n,
         h.alpha, FIRST(p[0]), FIRST(p[1]), h.beta, FIRST(p[2]), h.compute,
         IN_ROOM(*r));
    return GPU_OK;
}

/* --- factors -------------------------------------------------------------- */

static gpu_status describe_for_solver(const grid_libraries *l, gpu_dtype type,
                                      placed *p)
{
    const gpu_grid_view *v = p->of;
    SOLVER(CreateMatrixDesc, &p->descriptor, l->solver_grid, type_of(type),
           v->m, v->n, v->mb, v->nb, 0, 0, p->ld);
    return GPU_OK;
}

static char VECTORS[] = "V"; /* a parameter that is not const */

/* How much room a task needs, or then itself. */
#define STEP(name, ...)                                                   \
    if (asks)                                                             \
        SOLVER(name##_bufferSize, l->solver, __VA_ARGS__, type,           \
               &r->bytes_there, &r->bytes_here);                          \
    else                                                                  \
        SOLVER(name, l->solver, __VA_ARGS__, type, IN_ROOM(*r), r->info); \
    break
static gpu_status factor(const grid_libraries *l, const gpu_grid_work *w,
                         const placed *p, room *r, bool asks)
{
    cudaDataType type = type_of(w->type);
    int64_t *pivots = (int64_t *)r->pivots;
    int64_t m = w->a.m, n = w->a.n, sides = w->b.n;
    switch (w->task) {
    case GPU_GRID_LU:
        STEP(Getrf, m, n, FIRST(p[0]), pivots);
    case GPU_GRID_CHOLESKY:
        STEP(Potrf, LOWER, n, FIRST(p[0]));
    case GPU_GRID_QR: /* its question for room has no factors */
        if (asks)
            SOLVER(Geqrf_bufferSize, l->solver, m, n, FIRST(p[0]), type,
                   &r->bytes_there, &r->bytes_here);
        else
            SOLVER(Geqrf, l->solver, m, n, FIRST(p[0]), w->numbers, type,
                   IN_ROOM(*r), r->info);
        break;
    case GPU_GRID_APPLY_Q:
        STEP(Ormqr, LEFT, NO_TRANSPOSE, w->b.m, sides, smaller(m, n),
             FIRST(p[0]), w->numbers, FIRST(p[1]));
    default:
        STEP(Syevd, VECTORS, LOWER, n, FIRST(p[0]), w->numbers, FIRST(p[1]));
    }
    return GPU_OK;
}

/* --- both ----------------------------------------------------------------- */

/* Which of a, b and c it writes. */
static int is_written(gpu_grid_task task, int which)
{
    switch (task) {
    case GPU_GRID_PRODUCT:
        return which == 2;
    case GPU_GRID_LU:
    case GPU_GRID_CHOLESKY:
    case GPU_GRID_QR:
        return which == 0;
    default:
        return which == 1;
    }
}

/* What a process needs nobody else for. */
static gpu_status begin_alone(cuda_device *d, grid_libraries *l,
                              const gpu_grid_work *w, placed *p, room *r)
{
    const gpu_grid_view *views[] = {&w->a, &w->b, &w->c};
    int is_product = w->task == GPU_GRID_PRODUCT, device, version = 0;
    const char *lacks = gpu_cuda_grid_lacks(w->task);
    if (lacks != NULL)
        return FAIL(GPU_UNSUPPORTED, "%s: %s",
                    is_product ? "cuBLASMp" : "cuSOLVERMp", lacks);
    CHECK(d, cudaGetDevice(&device));
    if (is_product && l->blas == NULL)
        BLAS(Create, &l->blas, d->stream);
    if (!is_product && l->solver == NULL) {
        SOLVER(Create, &l->solver, device, d->stream);
        SOLVER(GetVersion, l->solver, &version);
        if (version < LEAST_SOLVER)
            solver.missing = "version 0.7.2 of libcusolverMp.so.0";
        if (version < LEAST_SOLVER)
            return FAIL(GPU_UNSUPPORTED, "cuSOLVERMp: %s", solver.missing);
    }
    TRY(take_pivots(d, w, r));
    for (int i = 0; i < 3; i++)
        if (views[i]->mb > 0)
            TRY(place_part(d, views[i], w->type, &p[i]));
    TRY(gpu_cuda_take_room(d, sizeof *r->info, (void **)&r->info));
    CHECK(d, cudaMemsetAsync(r->info, 0, sizeof *r->info, d->stream));
    return GPU_OK;
}

/* What all call together: some of it exchanges something itself. */
static gpu_status ask_together(const grid_libraries *l, void *comm,
                               const gpu_grid_work *w, placed *p, room *r,
                               object *grid)
{
    int is_product = w->task == GPU_GRID_PRODUCT;
    if (is_product && *grid == NULL)
        BLAS(GridCreate, w->rows, w->cols, BY_ROWS, comm, grid);
    if (!is_product && *grid == NULL)
        SOLVER(CreateDeviceGrid, l->solver, grid, comm, w->rows, w->cols,
               BY_ROWS);
    for (int i = 0; i < 3; i++)
        if (p[i].of != NULL)
            TRY(is_product ? describe_for_blas(l, w->type, &p[i])
                           : describe_for_solver(l, w->type, &p[i]));
    return is_product ? ask_to_multiply(l, w, p, r) : factor(l, w, p, r, true);
}

static gpu_status run(cuda_device *d, const grid_libraries *l, gpu_grid_work *w,
                      const placed *p, room *r)
{
    TRY(w->task == GPU_GRID_PRODUCT ? multiply(l, w, p, r)
                                    : factor(l, w, p, r, false));
    for (int i = 0; i < 3; i++)
        if (p[i].of != NULL && is_written(w->task, i))
            TRY(copy_part(d, &p[i], 1));
    if (w->task == GPU_GRID_LU)
        TRY(keep_pivots(d, w, r));
    return read_info(d, r, &w->trouble);
}

/* What became of a step, or that it failed in another process; its text is what
 * ranks.ANOTHER says (lua/pool/ranks.lua). */
gpu_status gpu_cuda_all_are_well(const gpu_grid_work *w, gpu_status status)
{
    if (w->agree(w->context, status == GPU_OK) || status != GPU_OK)
        return status;
    return FAIL(GPU_INTERNAL, "another process failed");
}

gpu_status gpu_cuda_grid_work(cuda_device *d, grid_libraries *l, void *comm,
                              gpu_grid_work *w)
{
    placed p[3] = {};
    room r = {};
    int is_product = w->task == GPU_GRID_PRODUCT, has_begun = 0;
    w->trouble = 0;
    gpu_status status = gpu_cuda_all_are_well(
        w, l->is_broken
               ? FAIL(GPU_INTERNAL, "the libraries for several GPUs failed; "
                                    "pool.restart() starts them anew")
               : begin_alone(d, l, w, p, &r));
    if (status == GPU_OK) {
        status = gpu_cuda_all_are_well(
            w, ask_together(l, comm, w, p, &r,
                            is_product ? &l->blas_grid : &l->solver_grid));
        l->is_broken = status != GPU_OK; /* some may have a grid, others not */
        if (status == GPU_OK)
            status = gpu_cuda_all_are_well(w, take_call_room(d, &r));
        has_begun = status == GPU_OK;
        if (has_begun)
            status = gpu_cuda_all_are_well(w, run(d, l, w, p, &r));
    }
    end_room(d, &r, has_begun && status != GPU_OK);
    for (int i = 0; i < 3; i++) {
        if (p[i].descriptor != NULL)
            is_product ? blas.MatrixDescriptorDestroy(p[i].descriptor)
                       : solver.DestroyMatrixDesc(p[i].descriptor);
        end_part(d, &p[i]);
    }
    return status;
}
