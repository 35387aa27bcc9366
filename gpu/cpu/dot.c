/* Dot products: one by one, and in vector lanes; BLAS's is in openblas.c. */
#include <math.h>
#include <stdlib.h>
#include "cpu.h"
#include "vector.h"

enum {
    PIECE = 1024,      /* elements packed or folded at a time */
    PART = 64 * PIECE, /* elements of a partial sum */
    MANY_PARTS = 1024
};

static gpu_view as_row(const gpu_view *v)
{
    return v->cols == 1 ? gpu_cpu_turned(*v) : *v;
}

/* Elements first .. first + n - 1 without gaps: where they are, or copied. */
static const void *piece(const gpu_view *v, int64_t first, int64_t n,
                         void *room)
{
    gpu_view part = gpu_cpu_part(v, 0, first, 1, n);
    if (v->col_stride == 1)
        return part.data;
    gpu_view to = {room, v->dtype, 1, n, n, 1};
    gpu_cpu_convert(&part, &to);
    return room;
}

/* A sum and what rounding took from it. */
typedef struct total {
    double sum, rest;
} total;

/* Knuth, The Art of Computer Programming 2, 4.2.2. */
static void add(total *t, double value)
{
    double s = t->sum + value;
    double b = s - t->sum;
    double error = (t->sum - (s - b)) + (value - b);
    t->sum = s;
    t->rest += isfinite(error) ? error : 0;
}

/* --- reference ------------------------------------------------------------
 * Dot2 of Ogita, Rump and Oishi, Accurate sum and dot product, 2005: as if
 * computed in twice f64's precision, then rounded. */

static gpu_status dot_reference(void *device, const gpu_view *x,
                                const gpu_view *y, double *out)
{
    (void)device;
    gpu_view a = as_row(x), b = as_row(y);
    double p[PIECE], q[PIECE];
    total t = {0, 0};
    for (int64_t first = 0; first < a.cols; first += PIECE) {
        int64_t left = a.cols - first, n = left < PIECE ? left : PIECE;
        if (gpu_cpu_interrupted())
            return gpu_cpu_stop(GPU_INTERRUPTED);
        gpu_cpu_load(&a, first, n, GPU_F64, p);
        gpu_cpu_load(&b, first, n, GPU_F64, q);
        for (int64_t i = 0; i < n; i++) {
            double product = p[i] * q[i];
            double error = fma(p[i], q[i], -product);
            add(&t, product);
            t.rest += isfinite(error) ? error : 0;
        }
    }
    *out = t.sum + t.rest;
    return GPU_OK;
}

static double bound_reference(gpu_dtype dtype, int64_t k)
{
    (void)dtype;
    double gamma = gpu_cpu_gamma(GPU_F64, (double)k);
    return 0x1p-53 + gamma * gamma;
}

const gpu_kernel gpu_cpu_dot_reference = {
    .operation = "dot",
    .name = "reference",
    .idea = "one by one in order, with the rounding errors carried along",
    .needs = "any CPU",
    .precision = "f32",
    .dtypes = 1 << GPU_F32 | 1 << GPU_F64,
    .bound = bound_reference,
    .dot = dot_reference,
};

/* --- vector ---------------------------------------------------------------
 * Products and sums in f64 (exact products for f32) in 32 lanes; pieces and
 * parts joined in order with the rounding errors carried along. */

typedef struct folding {
    gpu_view x, y;
    int64_t part_size;
    total *part;
} folding;

static total fold(const folding *f, int64_t first, int64_t last)
{
    double room[2][PIECE];
    total t = {0, 0};
    for (; first < last; first += PIECE) {
        int64_t n = last - first < PIECE ? last - first : PIECE;
        const void *x = piece(&f->x, first, n, room[0]);
        const void *y = piece(&f->y, first, n, room[1]);
        add(&t, gpu_cpu_vectors->dot[f->x.dtype](x, y, (size_t)n));
    }
    return t;
}

static gpu_status fold_parts(void *context, int64_t first, int64_t last)
{
    const folding *f = context;
    for (int64_t i = first; i < last; i++) {
        int64_t start = i * f->part_size, end = start + f->part_size;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        f->part[i] = fold(f, start, end < f->x.cols ? end : f->x.cols);
    }
    return GPU_OK;
}

static gpu_status dot_vector(void *device, const gpu_view *x, const gpu_view *y,
                             double *out)
{
    (void)device;
    folding f = {as_row(x), as_row(y), PART, NULL};
    int64_t n = f.x.cols;
    while ((n + f.part_size - 1) / f.part_size > MANY_PARTS)
        f.part_size *= 2;
    int64_t parts = (n + f.part_size - 1) / f.part_size;
    total part[parts + 1], t = {0, 0};
    f.part = part;
    gpu_status status = gpu_cpu_parallel(parts, n, fold_parts, &f);
    if (status != GPU_OK)
        return status;
    for (int64_t i = 0; i < parts; i++) {
        add(&t, part[i].sum);
        t.rest += part[i].rest;
    }
    *out = t.sum + t.rest;
    return GPU_OK;
}

/* One rounding a product (none for f32), at most 32 in a lane, 5 to join the
 * lanes, and 2 for the corrected sum of the pieces. */
static double bound_vector(gpu_dtype dtype, int64_t k)
{
    double steps = k < 40 ? (double)k + 8 : 40;
    double gamma = gpu_cpu_gamma(GPU_F64, (double)k / PIECE + 1);
    (void)dtype;
    return gpu_cpu_gamma(GPU_F64, steps) + gamma * gamma;
}

const gpu_kernel gpu_cpu_dot_vector = {
    .operation = "dot",
    .name = "vector",
    .idea = "32 lanes that multiply and add in f64, on all cores",
    .needs = "any CPU",
    .precision = "f32",
    .dtypes = 1 << GPU_F32 | 1 << GPU_F64,
    .bound = bound_vector,
    .dot = dot_vector,
};
