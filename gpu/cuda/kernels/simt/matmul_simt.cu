/* matmul simt: true FP32 multiply-adds, at the rate the multiprocessors can
 * issue them. Slices of a and b, 16 of k deep, travel through a ring in shared
 * memory by asynchronous copies while each thread multiplies a patch of c out
 * of fragments read one step of k ahead.
 *
 * Limited by issue slots: a patch of 16 x 8 makes 128 multiply-adds out of six
 * 16-byte reads. The lanes of a warp are laid 4 x 8 in pairs, so that each half
 * warp's reads are one pass over the banks. In shared memory an operand always
 * has k as its row; a k-contiguous one is turned by 4-byte copies on its way,
 * which any stride can take as well. 16-byte copies need a unit stride across
 * k and an aligned one along it. Products with few tiles are cut along k, and
 * the parts added in a fixed order. Needs sm_80 (cp.async). */
#include "simt.h"
#include "simt_tile.h"

/* A launch that may start while the kernel before it ends, where the GPU can:
 * the kernel itself waits for what it needs. */
static cudaLaunchConfig_t configure(const cuda_device *d, unsigned grid,
                                    int threads, int bytes,
                                    cudaLaunchAttribute *early)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = (unsigned)threads;
    config.dynamicSmemBytes = (size_t)bytes;
    config.stream = d->stream;
    early->id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early->val.programmaticStreamSerializationAllowed = 1;
    config.attrs = early;
    config.numAttrs = d->capability >= 90;
    return config;
}

/* A gated launch has no more blocks than run at once: most often all they do is
 * leave. */
template <shape S>
static gpu_status launch(cuda_device *d, const product<float> *p, const job *j)
{
    const int bytes = SHARED_BYTES<S>;
    int64_t most = j->gate ? d->sms * S.blocks : INT32_MAX;
    unsigned grid = (unsigned)smaller(j->units, most);
    cudaLaunchAttribute early;
    cudaLaunchConfig_t config = configure(d, grid, THREADS<S>, bytes, &early);
    if (bytes > 48 << 10)
        CHECK(d, cudaFuncSetAttribute(
                     simt_kernel<S>,
                     cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    return gpu_cuda_check(d,
                          cudaLaunchKernelEx(&config, simt_kernel<S>, *p, *j));
}

/* A shape as the choice sees it. weight: the clocks of a multiprocessor full of
 * such blocks, against one multiply-add a lane and clock; lone: what blocks
 * that run alone take besides; edge: clocks a unit needs to begin and end,
 * which only other blocks on the same multiprocessor can hide. */
typedef struct tiling {
    int rows, cols, blocks;
    double weight, lone, edge;
    gpu_status (*launch)(cuda_device *d, const product<float> *p, const job *j);
} tiling;

template <shape S> constexpr tiling tiling_of(double weight, double lone)
{
    const double edge = S.blocks == 1 ? 6930 : 1260;
    return {S.rows, S.cols, S.blocks, weight, lone, edge, launch<S>};
}

constexpr shape BIG = {128, 256, 16, 8, 4, 1};
constexpr shape SQUARE = {128, 128, 8, 8, 3, 2};
constexpr shape FLAT = {64, 256, 8, 8, 3, 2};
constexpr shape LOW = {64, 128, 8, 8, 3, 4};
constexpr shape HIGH = {128, 64, 8, 8, 3, 4};
constexpr shape HALF = {64, 128, 4, 8, 4, 2};
constexpr shape QUARTER = {64, 64, 8, 4, 4, 5};
constexpr shape SMALL = {64, 64, 4, 4, 4, 3};

static const tiling tilings[] = {
    tiling_of<BIG>(1.25, 0.19),     tiling_of<SQUARE>(1.34, 0.50),
    tiling_of<FLAT>(1.27, 0.57),    tiling_of<LOW>(1.27, 1.01),
    tiling_of<HIGH>(1.31, 1.32),    tiling_of<HALF>(1.51, 0.22),
    tiling_of<QUARTER>(1.55, 1.20), tiling_of<SMALL>(1.72, 0.77),
};

/* What the choice reckons with, as measured on an H200. Cut finer than
 * LEAST_PART, or into more than MOST_PART_BYTES, a product would do little but
 * write and fold parts. */
constexpr double LANES = 128; /* multiply-adds a clock, multiprocessor */
constexpr double FOLD_CLOCKS = 2930;
constexpr double FOLD_BYTES = 21.4; /* of parts, a clock and multiprocessor */
constexpr double PART_RISK = 1.04;  /* parts only for a clear gain */
constexpr double MOST_PART_BYTES = 1 << 28;
constexpr int64_t LEAST_PART = 4 * DEPTH;

typedef struct plan {
    const tiling *how;
    int64_t part_k;
    double clocks;
} plan;

static int64_t count_tiles(const product<float> *p, const tiling *t)
{
    return ceil_div(p->m, t->rows) * ceil_div(p->n, t->cols);
}

static int64_t part_pitch(const product<float> *p)
{
    return ceil_div(p->n, WIDTH) * WIDTH;
}

/* Predicts the clocks for units of so many multiply-adds: as many for each
 * multiprocessor as the fullest gets, in rounds of what it holds at once. */
static double predict_units(const cuda_device *d, const tiling *t,
                            int64_t units, double work)
{
    int64_t queue = ceil_div(units, d->sms);
    double busy = (double)queue * t->weight;
    double lone = (double)ceil_div(queue, t->blocks) * t->lone;
    return work / LANES * hypot(busy, lone) + (double)queue * t->edge;
}

/* The same for k cut in so many parts, and what folding them takes. */
static plan predict(const cuda_device *d, const product<float> *p,
                    const tiling *t, int64_t parts)
{
    int64_t part_k = ceil_div(ceil_div(p->k, DEPTH), parts) * DEPTH;
    parts = ceil_div(p->k, part_k);
    double work = (double)part_k * t->rows * t->cols;
    double clocks = predict_units(d, t, count_tiles(p, t) * parts, work);
    double bytes = 2.0 * sizeof(float) * (double)parts * (double)p->m *
                   (double)part_pitch(p);
    double fold = FOLD_CLOCKS + bytes / (FOLD_BYTES * (double)d->sms);
    bool fits = bytes / 2 <= MOST_PART_BYTES && part_k >= LEAST_PART;
    if (parts > 1)
        clocks = fits ? PART_RISK * (clocks + fold) : (double)INFINITY;
    return {t, part_k, clocks};
}

/* The cheapest of all tilings, whole or cut along k into two to eight parts or
 * so many that one to four rounds come out full. */
static plan choose_plan(const cuda_device *d, const product<float> *p,
                        bool whole)
{
    plan best = {NULL, 0, (double)INFINITY};
    for (const tiling &t : tilings) {
        int64_t tiles = count_tiles(p, &t);
        for (int64_t i = 1; i <= (whole ? 1 : 12); i++) {
            int64_t parts = i <= 8 ? i : (i - 8) * d->sms / tiles;
            plan next = predict(d, p, &t, larger(parts, 1));
            if (best.how == NULL || next.clocks < best.clocks)
                best = next;
        }
    }
    return best;
}

static access choose_access(const float *data, int64_t span, int64_t depth)
{
    if (span == 1 && is_aligned(data) && depth % WIDTH == 0)
        return WIDE;
    if (depth == 1)
        return ALONG;
    return stride_size(depth) <= stride_size(span) ? ANY : ACROSS;
}

static bool has_wide_c(const product<float> *p)
{
    return p->c_col == 1 && is_aligned(p->c) && p->c_row % WIDTH == 0;
}

static gpu_status fold(cuda_device *d, const product<float> *p,
                       const float *parts, int64_t part_floats, int count)
{
    int groups = count >= 2 * MAX_GROUPS ? MAX_GROUPS : 1;
    int64_t blocks = ceil_div(part_floats / WIDTH, FOLD_THREADS / groups);
    cudaLaunchAttribute early;
    cudaLaunchConfig_t config =
        configure(d, (unsigned)blocks, FOLD_THREADS, 0, &early);
    return gpu_cuda_check(d, cudaLaunchKernelEx(&config, fold_kernel, *p, parts,
                                                part_floats, part_pitch(p),
                                                count, groups, has_wide_c(p)));
}

/* Each part of k is written as if it were a product of its own. */
static gpu_status multiply_parts(cuda_device *d, const product<float> *p,
                                 const plan *q, job *j)
{
    int64_t count = ceil_div(p->k, j->part_k);
    float *parts;
    j->part_floats = p->m * part_pitch(p);
    j->wide_c = true;
    TRY(gpu_cuda_scratch(d, (size_t)(count * j->part_floats) * sizeof(float),
                         (void **)&parts));
    product<float> part = *p;
    part.c = parts;
    part.c_row = part_pitch(p);
    part.c_col = 1;
    part.alpha = 1;
    part.beta = 0;
    TRY(q->how->launch(d, &part, j));
    return fold(d, p, parts, j->part_floats, (int)count);
}

static gpu_status multiply(cuda_device *d, const product<float> *p,
                           const plan *q, const int *gate)
{
    int64_t tiles = count_tiles(p, q->how);
    int64_t parts = ceil_div(p->k, q->part_k);
    job j = {(unsigned)tiles,
             (unsigned)(tiles * parts),
             q->part_k,
             0,
             choose_access(p->a, p->a_row, p->a_col),
             choose_access(p->b, p->b_col, p->b_row),
             has_wide_c(p),
             gate};
    return parts > 1 ? multiply_parts(d, p, q, &j) : q->how->launch(d, p, &j);
}

gpu_status gpu_cuda_simt_matmul(cuda_device *d, const gpu_gemm *oriented,
                                const int *gate)
{
    product<float> p = typed_product<float>(oriented);
    plan q = choose_plan(d, &p, gate != NULL);
    return multiply(d, &p, &q, gate);
}

static gpu_status simt(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul("simt", p, &g));
    if (g.c.dtype != GPU_F32)
        return FAIL(GPU_UNSUPPORTED, "matmul: simt needs f32 operands");
    return gpu_cuda_simt_matmul(d, &g, NULL);
}

const gpu_kernel gpu_cuda_matmul_simt = {
    .operation = "matmul",
    .name = "simt",
    .idea = "warp tiles, asynchronous copies, k cut in parts for few tiles",
    .needs = "sm_80",
    .precision = "f32",
    .capability = 80,
    .dtypes = 1u << GPU_F32,
    .bound = gpu_cuda_matmul_bound,
    .matmul = simt,
    .dot = NULL,
};
