/* matmul dmma: f64 products on the tensor cores, added up in f64: fused
 * multiply-adds rounded to nearest, as exact as the plain cores'.
 *
 * A block computes a tile of c; each of its warps computes a part of it in
 * registers with mma instructions, 16 x 8 of c^T and 8 or 16 of k at a time
 * (8 x 8 and 4 before sm_90): see dmma.h. A ring of shared memory slots holds
 * the next slices of a and b. Hopper's copy engine fills it, or, elsewhere and
 * where operands are not aligned to 16 bytes, asynchronous copies by all
 * threads. Products with few tiles cut k into parts too; a second kernel adds
 * the parts up in order.
 *
 * Limited by the tensor cores: 128 multiply-adds a cycle and multiprocessor on
 * an H200. A 128 x 128 tile needs 128 cycles for each k, in which its warps
 * read 6 KiB of fragments and the copies write 2 KiB: 64 cycles of shared
 * memory at 128 bytes each. From sm_80, any strides; GPUs whose tensor cores
 * lack f64 run it slowly. */
#include "dmma.h"

/* --- parts of k -------------------------------------------------------------
 * What makes one result of theirs, where k is cut. */

enum { FOLD_THREADS = 256 };

__device__ __forceinline__ void wait_for_parts(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* c from the parts' results (m lines of `line` elements each): every row of
 * threads adds up some of the parts, the first adds up the rows. */
static __global__ void __launch_bounds__(FOLD_THREADS)
    fold_kernel(const __grid_constant__ product<double> p,
                const double *results, int64_t line, int parts)
{
    __shared__ double sums[FOLD_THREADS];
    int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    wait_for_parts();
    if (e < p.m * line) {
#pragma unroll 8
        for (int part = threadIdx.y; part < parts; part += blockDim.y)
            sum += results[part * (p.m * line) + e];
    }
    sums[threadIdx.y * blockDim.x + threadIdx.x] = sum;
    __syncthreads(); /* every row of threads has its sum */
    int64_t i = divide(e, line), j = e - i * line;
    if (threadIdx.y > 0 || i >= p.m || j >= p.n)
        return;
    for (int y = 1; y < blockDim.y; y++)
        sum += sums[y * blockDim.x + threadIdx.x];
    write_c(p, i, j, sum);
}

static gpu_status fold(cuda_device *d, const product<double> &p,
                       const double *results, int64_t line, int parts)
{
    int height = 1;
    while (height < 8 && 4 * height < parts)
        height *= 2;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(FOLD_THREADS / height, height);
    config.gridDim = dim3((unsigned)ceil_div(p.m * line, config.blockDim.x));
    config.stream = d->stream;
    config.attrs = &early;
    config.numAttrs = d->capability >= 90;
    CHECK(d, cudaLaunchKernelEx(&config, fold_kernel, p, results, line, parts));
    return GPU_OK;
}

/* --- launches ----------------------------------------------------------- */

/* An operand in global memory: lines of contiguous elements. */
typedef struct lines {
    const double *data;
    int64_t length, count, stride;
} lines;

static lines lines_of_a(const job &j)
{
    const product<double> &p = j.p;
    if (j.a_along_k)
        return {p.a, p.k, p.m, p.a_row};
    return {p.a, p.m, p.k, p.a_col};
}

static lines lines_of_b(const job &j)
{
    const product<double> &p = j.p;
    if (j.b_along_k)
        return {p.b, p.k, p.n, p.b_col};
    return {p.b, p.n, p.k, p.b_row};
}

static bool fits_map(const lines &x)
{
    return x.length < 1ll << 30 && x.count < 1ll << 30 &&
           x.stride >= x.length && x.stride < 1ll << 36;
}

/* Hopper's copy engine takes what 16-byte copies can. */
static bool can_be_fed(const cuda_device *d, const job &j)
{
    return d->capability == 90 && j.a_wide && j.b_wide &&
           fits_map(lines_of_a(j)) && fits_map(lines_of_b(j));
}

template <slice S>
static gpu_status make_map(cuda_device *d, const lines &x, box_map *out)
{
    out->whole = !S.along_k && x.length % PANEL == 0;
    map_shape shape = {};
    shape.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    shape.rank = out->whole ? 3 : 2;
    shape.size[0] = (cuuint64_t)(out->whole ? PANEL : x.length);
    shape.size[1] = (cuuint64_t)x.count;
    shape.size[2] = (cuuint64_t)x.length / PANEL;
    shape.bytes[0] = (cuuint64_t)x.stride * sizeof(double);
    shape.bytes[1] = PANEL * sizeof(double);
    shape.box[0] = PANEL;
    shape.box[1] = S.along_k ? S.span : S.depth;
    shape.box[2] = S.span / PANEL;
    shape.line = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    return gpu_cuda_make_map(d, "dmma", x.data, &shape, &out->map);
}

template <tiling T> static unsigned blocks_for(const job &j)
{
    return grid_for(ceil_div(j.p.m, T.rows) * ceil_div(j.p.n, T.cols) *
                    ceil_div(j.p.k, j.part_k));
}

template <tiling T>
static gpu_status launch_copied(cuda_device *d, const job &j)
{
    const int bytes = RING_BYTES<T>;
    auto kernel = dmma_kernel<T>;
    CHECK(d, cudaFuncSetAttribute(
                 kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<blocks_for<T>(j), THREADS<T>, bytes, d->stream>>>(j);
    LAUNCHED(d);
    return GPU_OK;
}

template <tiling T> static gpu_status launch_fed(cuda_device *d, const job &j)
{
    const int bytes = RING_BYTES<T> + barrier_bytes(T.stages);
    auto kernel = dmma_fed_kernel<T>;
    maps m;
    TRY(make_map<slice_of_a(T)>(d, lines_of_a(j), &m.a));
    TRY(make_map<slice_of_b(T)>(d, lines_of_b(j), &m.b));
    CHECK(d, cudaFuncSetAttribute(
                 kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<blocks_for<T>(j), THREADS<T>, bytes, d->stream>>>(j, m);
    LAUNCHED(d);
    return GPU_OK;
}

template <tiling T> static gpu_status launch(cuda_device *d, const job &j)
{
    if constexpr (T.fed)
        return launch_fed<T>(d, j);
    else
        return launch_copied<T>(d, j);
}

consteval tiling along_k(tiling t, bool a, bool b)
{
    t.a_along_k = a;
    t.b_along_k = b;
    return t;
}

template <tiling T> static gpu_status launch_along(cuda_device *d, const job &j)
{
    if (j.b_along_k)
        return launch<along_k(T, true, true)>(d, j);
    return j.a_along_k ? launch<along_k(T, true, false)>(d, j)
                       : launch<along_k(T, false, false)>(d, j);
}

/* c in one launch, or parts of k into scratch memory and their sum. Parts are
 * whole slots: the copy engine knows no other edge than the operands'. */
template <tiling T>
static gpu_status run(cuda_device *d, const job &whole, int64_t parts)
{
    const product<double> &p = whole.p;
    job j = whole;
    j.part_k = ceil_div(ceil_div(p.k, parts), T.depth) * T.depth;
    parts = ceil_div(p.k, j.part_k);
    if (parts == 1)
        return launch_along<T>(d, j);
    int64_t line = p.n + p.n % 2; /* keeps rows 16-byte aligned */
    void *results;
    TRY(gpu_cuda_scratch(d, (size_t)(parts * p.m * line) * sizeof(double),
                         &results));
    j.p.c = (double *)results;
    j.p.c_row = line;
    j.p.c_col = 1;
    j.p.alpha = 1;
    j.p.beta = 0;
    j.c_wide = true;
    j.part_stride = p.m * line;
    TRY(launch_along<T>(d, j));
    return fold(d, p, j.p.c, line, (int)parts);
}

/* --- the choice --------------------------------------------------------- */

static bool lies_along_k(int64_t k_stride, int64_t other_stride)
{
    return stride_size(k_stride) <= stride_size(other_stride);
}

/* b's columns and a's k are best contiguous: a product in which neither is so
 * is computed as b^T a^T = c^T, in which both are. */
static product<double> turned(const product<double> &p)
{
    if (lies_along_k(p.a_col, p.a_row) || !lies_along_k(p.b_row, p.b_col))
        return p;
    product<double> t = p;
    t.a = p.b, t.a_row = p.b_col, t.a_col = p.b_row;
    t.b = p.a, t.b_row = p.a_col, t.b_col = p.a_row;
    t.m = p.n, t.n = p.m;
    t.c_row = p.c_col, t.c_col = p.c_row;
    return t;
}

static bool is_wide(const double *data, int64_t near_stride,
                    int64_t other_stride)
{
    return near_stride == 1 && is_aligned(data) && other_stride % 2 == 0;
}

/* Copies go along the side whose neighbours are nearer. */
static job plan(const product<double> &p)
{
    job j = {};
    j.p = p;
    j.a_along_k = lies_along_k(p.a_col, p.a_row);
    j.b_along_k = j.a_along_k && stride_size(p.b_row) < stride_size(p.b_col);
    j.a_wide = j.a_along_k ? is_wide(p.a, p.a_col, p.a_row)
                           : is_wide(p.a, p.a_row, p.a_col);
    j.b_wide = j.b_along_k ? is_wide(p.b, p.b_row, p.b_col)
                           : is_wide(p.b, p.b_col, p.b_row);
    j.c_wide = is_wide(p.c, p.c_col, p.c_row);
    return j;
}

/* Fed, a ring has 227 KiB to fill; copied, other GPUs' 99. Steps of 16 cost the
 * first 5 % where operands are read 8 bytes at a time, and gain nothing else.
 */
constexpr tiling FED_128X128 = {128, 128, 64, 32, 32, 8, 3, 1, true};
constexpr tiling FED_64X64 = {64, 64, 16, 32, 16, 8, 4, 2, true};
constexpr tiling FED_32X64 = {32, 64, 16, 16, 32, 8, 4, 2, true};
constexpr tiling COPIED_64X64 = {64, 64, 32, 32, 16, 16, 4, 3, false};

/* A tiling, the share of the tensor cores' peak that an H200's multiprocessors
 * were measured to reach with several blocks, and with one, and its launch. */
typedef struct choice {
    tiling tile;
    double share, share_alone;
    gpu_status (*run)(cuda_device *d, const job &j, int64_t parts);
} choice;

static const choice choices[] = {
    {FED_128X128, 0.92, 0.87, run<FED_128X128>},
    {FED_64X64, 0.81, 0.68, run<FED_64X64>},
    {FED_32X64, 0.75, 0.51, run<FED_32X64>},
    {COPIED_64X64, 0.70, 0.40, run<COPIED_64X64>},
};

/* Cycles of a product, by 128 multiply-adds a cycle in the multiprocessor that
 * has most to do. Parts cost a second launch, and every part's result is
 * written and read, at 2 KiB a cycle. */
static double estimate(const cuda_device *d, const product<double> &p,
                       const choice *c, int64_t parts)
{
    const double start = 3000, second_launch = 5000, bytes_a_cycle = 2048;
    int64_t tiles = ceil_div(p.m, c->tile.rows) * ceil_div(p.n, c->tile.cols);
    int64_t most = ceil_div(tiles * parts, d->sms);
    double tile =
        (double)c->tile.rows * c->tile.cols * ceil_div(p.k, parts) / 128;
    double cycles =
        start + most * tile / (most > 1 ? c->share : c->share_alone);
    if (parts > 1)
        cycles += second_launch + 16.0 * p.m * p.n * parts / bytes_a_cycle;
    return cycles;
}

/* The cheapest tiling and number of parts; those that fill the GPU one to four
 * times compete with the uncut product. */
static const choice *choose(const cuda_device *d, const job &j, int64_t *parts)
{
    const int64_t least_k = 64;
    const bool fed = can_be_fed(d, j);
    const choice *best = NULL;
    double least = 0;
    for (const choice &c : choices) {
        if (c.tile.fed != fed)
            continue;
        int64_t tiles =
            ceil_div(j.p.m, c.tile.rows) * ceil_div(j.p.n, c.tile.cols);
        for (int round = 0; round <= 4; round++) {
            int64_t n = round == 0 ? 1 : round * d->sms / tiles;
            n = larger(smaller(n, j.p.k / least_k), 1);
            double cycles = estimate(d, j.p, &c, n);
            if (best == NULL || cycles < least) {
                best = &c;
                least = cycles;
                *parts = n;
            }
        }
    }
    return best;
}

static gpu_status dmma(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul("dmma", p, &g));
    job j = plan(turned(typed_product<double>(&g)));
    int64_t parts = 1;
    const choice *c = choose(d, j, &parts);
    return c->run(d, j, parts);
}

const gpu_kernel gpu_cuda_matmul_dmma = {
    .operation = "matmul",
    .name = "dmma",
    .idea = "f64 on tensor cores",
    .needs = "sm_80",
    .precision = "f32",
    .capability = 80,
    .dtypes = 1u << GPU_F64,
    .bound = gpu_cuda_matmul_bound,
    .matmul = dmma,
    .dot = NULL,
};
