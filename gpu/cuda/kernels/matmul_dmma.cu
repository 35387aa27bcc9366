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
#include "hopper.h"

/* The first row and column of this block's tile, and its part of k. */
template <tiling T>
__device__ __forceinline__ void find_tile(const job &j, int64_t *row,
                                          int64_t *col, int64_t *part)
{
    int64_t down = (j.p.m + T.rows - 1) / T.rows;
    int64_t across = (j.p.n + T.cols - 1) / T.cols;
    *part = divide(blockIdx.x, down * across);
    tile_of(blockIdx.x - *part * down * across, down, across, row, col);
    *row *= T.rows;
    *col *= T.cols;
}

/* Blocks of the fold may be launched; they wait for the results themselves. */
__device__ __forceinline__ void let_fold_start(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* Writes this block's tile: finding it again is cheaper than registers kept. */
template <tiling T>
__device__ __forceinline__ void write_tile(const job &j, const warp_work<T> &w)
{
    int64_t row, col, part;
    if (j.part_stride > 0)
        let_fold_start();
    find_tile<T>(j, &row, &col, &part);
    write_sums(j, w, j.p.c + part * j.part_stride, row, col);
}

/* --- a ring filled by all threads --------------------------------------- */

/* Copies WIDTH elements, the first `inside` of them real, the rest zeros. */
template <int WIDTH>
__device__ __forceinline__ void copy_async(double *to, const double *from,
                                           int inside)
{
    int bytes = min(max(inside, 0), WIDTH) * (int)sizeof(double);
    uint32_t at = shared_address(to);
    if (WIDTH == 2)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at),
                     "l"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at),
                     "l"(from), "r"(bytes)
                     : "memory");
}

__device__ __forceinline__ void end_copies(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most PENDING of this thread's newest groups are under way. */
template <int PENDING> __device__ __forceinline__ void wait_for_copies(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* threadIdx.x, where what is worked out from it shall not be kept: the loop
 * has cycles to spare, but no registers. */
__device__ __forceinline__ int thread_again(void)
{
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    __builtin_assume(thread >= 0 && thread < 1024);
    return thread;
}

/* How a block's threads share the copying of a slice, WIDTH elements at a
 * time: each has one place in several lines, LINES apart. */
template <slice S, int COUNT, int WIDTH> struct sharing {
    static constexpr int PER_LINE = (S.along_k ? S.depth : S.span) / WIDTH;
    static constexpr int LINES = COUNT / PER_LINE;
    static constexpr int COPIES = S.span * S.depth / WIDTH / COUNT;
    static_assert(COUNT % PER_LINE == 0 && COPIES > 0);
};

template <slice S, int COUNT, int WIDTH>
__device__ __forceinline__ void first_copy(int *s, int *k)
{
    constexpr int per_line = sharing<S, COUNT, WIDTH>::PER_LINE;
    int thread = thread_again();
    int line = thread / per_line, near = thread % per_line * WIDTH;
    *s = S.along_k ? line : near;
    *k = S.along_k ? near : line;
}

/* What is left of an operand: this thread's next element, and how many rows
 * of a (or columns of b) are inside this tile. */
typedef struct source {
    const double *next;
    int64_t s_stride, k_stride;
    bool wide; /* copied 16 bytes at a time */
    int s_left;
} source;

/* x, an operand as a whole, from row (or column) s and k on. */
template <slice S, int COUNT>
__device__ __forceinline__ source open_source(source x, int64_t count,
                                              int64_t s, int64_t k)
{
    int own_s, own_k;
    if (x.wide)
        first_copy<S, COUNT, 2>(&own_s, &own_k);
    else
        first_copy<S, COUNT, 1>(&own_s, &own_k);
    x.next += (s + own_s) * x.s_stride + (k + own_k) * x.k_stride;
    x.s_left = (int)min(count - s, (int64_t)S.span);
    return x;
}

/* Zeros beyond the edges. */
template <slice S, int COUNT, int WIDTH>
__device__ __forceinline__ void copy_slice(double *to, const source &from,
                                           int k_left)
{
    using share = sharing<S, COUNT, WIDTH>;
    int64_t line_stride = S.along_k ? from.s_stride : from.k_stride;
    int s, k;
    first_copy<S, COUNT, WIDTH>(&s, &k);
#pragma unroll
    for (int n = 0; n < share::COPIES; n++) {
        int inside = S.along_k ? k_left - k : from.s_left - s;
        if (S.along_k ? s >= from.s_left : k >= k_left)
            inside = 0;
        copy_async<WIDTH>(to + place_in_slice<S>(s, k),
                          from.next + n * share::LINES * line_stride, inside);
        *(S.along_k ? &s : &k) += share::LINES;
    }
}

template <slice S, int COUNT>
__device__ __forceinline__ void copy_next(double *to, source *from, int k_left)
{
    if (from->wide)
        copy_slice<S, COUNT, 2>(to, *from, k_left);
    else
        copy_slice<S, COUNT, 1>(to, *from, k_left);
    from->next += S.depth * from->k_stride;
}

typedef struct feed {
    source a, b;
    int64_t k_left;
} feed;

template <tiling T> __device__ __forceinline__ feed open_feed(const job &j)
{
    const product<double> &p = j.p;
    int64_t row, col, part;
    find_tile<T>(j, &row, &col, &part);
    int64_t k = part * j.part_k;
    source a = {p.a, p.a_row, p.a_col, j.a_wide, 0};
    source b = {p.b, p.b_col, p.b_row, j.b_wide, 0};
    return {open_source<slice_of_a(T), THREADS<T>>(a, p.m, row, k),
            open_source<slice_of_b(T), THREADS<T>>(b, p.n, col, k),
            min(p.k - k, j.part_k)};
}

/* Ends a group of copies even where nothing is left: groups are counted. */
template <tiling T>
__device__ __forceinline__ void fill_slot(double *slot, feed *f)
{
    if (f->k_left > 0) {
        int k_left = (int)min(f->k_left, (int64_t)T.depth);
        copy_next<slice_of_a(T), THREADS<T>>(slot, &f->a, k_left);
        copy_next<slice_of_b(T), THREADS<T>>(slot + A_SLICE<T>, &f->b, k_left);
    }
    f->k_left -= T.depth;
    end_copies();
}

template <tiling T>
__global__ void __launch_bounds__(THREADS<T>, T.blocks)
    dmma_kernel(const __grid_constant__ job j)
{
    extern __shared__ __align__(1024) double ring[];
    feed f = open_feed<T>(j);
    int slots = (int)((f.k_left + T.depth - 1) / T.depth);
    for (int n = 0; n < T.stages - 1; n++)
        fill_slot<T>(ring + n * SLOT<T>, &f);
    wait_for_copies<T.stages - 2>();
    __syncthreads(); /* the first slot is filled */
    warp_work<T> w = {};
    begin_work(&w, ring);
    int reading = 0;
#pragma unroll 1
    for (; slots > 0; slots--) {
        int used = reading == 0 ? T.stages - 1 : reading - 1;
        int next = reading == T.stages - 1 ? 0 : reading + 1;
        fill_slot<T>(ring + used * SLOT<T>, &f);
        multiply_slot(&w, ring + reading * SLOT<T>);
        wait_for_copies<T.stages - 2>();
        __syncthreads(); /* the next slot is filled, this one read */
        finish_slot(&w, ring + next * SLOT<T>);
        reading = next;
    }
    write_tile(j, w);
}

/* --- a ring filled by Hopper's copy engine ------------------------------ */

/* An operand in boxes of a panel, or of all panels of a slice where these are
 * whole: along rows or columns, a multiple of 16 of them. */
typedef struct box_map {
    CUtensorMap map;
    bool whole;
} box_map;

typedef struct maps {
    box_map a, b;
} maps;

/* The ring and its barriers: 32-bit addresses in shared memory. */
typedef struct pipe {
    uint32_t slots, full, empty;
} pipe;

/* The ring's next slot and the phase of its barriers. */
typedef struct cursor {
    int slot;
    uint32_t phase;
} cursor;

template <tiling T> __device__ __forceinline__ void advance(cursor *c)
{
    if (++c->slot == T.stages) {
        c->slot = 0;
        c->phase ^= 1;
    }
}

__device__ __forceinline__ void copy_box2(uint32_t to, const CUtensorMap *map,
                                          uint32_t barrier, int x, int y)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global"
        ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y)
        : "memory");
}

/* Fetches what a map says, as the first copies would have to. */
__device__ __forceinline__ void prefetch_map(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* The slice whose first row (or column) is s. Zeros beyond the edges. */
template <slice S>
__device__ __forceinline__ void copy_panels(uint32_t to, const box_map &x,
                                            uint32_t full, int s, int k)
{
    constexpr int bytes = PANEL * (int)sizeof(double); /* of a line */
    if (S.along_k) {
#pragma unroll
        for (int n = 0; n < S.depth / PANEL; n++)
            copy_box2(to + n * S.span * bytes, &x.map, full, k + n * PANEL, s);
    } else if (x.whole) {
        copy_box3(to, &x.map, full, 0, k, s / PANEL);
    } else {
#pragma unroll 1
        for (int n = 0; n < S.span / PANEL; n++)
            copy_box2(to + n * S.depth * bytes, &x.map, full, s + n * PANEL, k);
    }
}

/* Where the copy engine is to read next, and how many slots it is to fill. */
typedef struct request {
    cursor at;
    int row, col, k, slots;
} request;

template <tiling T> __device__ __forceinline__ void skip_slot(request *r)
{
    r->k += T.depth;
    r->slots--;
    advance<T>(&r->at);
}

/* Asks for a slot, once every warp has read what is in it. */
template <tiling T>
__device__ __forceinline__ void ask_for_slot(const maps &m, const pipe &p,
                                             const request &r)
{
    constexpr int size = (int)sizeof(double);
    uint32_t to = p.slots + r.at.slot * SLOT<T> * size;
    uint32_t full = p.full + 8 * r.at.slot;
    barrier_wait(p.empty + 8 * r.at.slot, r.at.phase);
    barrier_expect(full, SLOT<T> * size);
    copy_panels<slice_of_a(T)>(to, m.a, full, r.row, r.k);
    copy_panels<slice_of_b(T)>(to + A_SLICE<T> * size, m.b, full, r.col, r.k);
}

template <tiling T> __device__ __forceinline__ pipe prepare_pipe(double *ring)
{
    pipe p;
    p.slots = shared_address(ring);
    p.full = p.slots + RING_BYTES<T>;
    p.empty = p.full + 8 * T.stages;
    if (threadIdx.x == 0) {
        for (int n = 0; n < T.stages; n++) {
            barrier_init(p.full + 8 * n, 1);
            barrier_init(p.empty + 8 * n, THREADS<T> / 32);
        }
        barriers_ready();
    }
    __syncthreads(); /* the barriers are ready */
    return p;
}

/* This warp has read a slot, and the next one is needed, if there is one. */
template <tiling T>
__device__ __forceinline__ void change_slots(const pipe &p, int used,
                                             const cursor &next, bool more)
{
    __syncwarp(); /* all threads have read the slot */
    if (threadIdx.x % 32 == 0)
        barrier_arrive(p.empty + 8 * used);
    if (more)
        barrier_wait(p.full + 8 * next.slot, next.phase);
}

/* A slot is asked for LAG slots after the warps were done with it: then none
 * of them has to wait for the others. */
template <tiling T> constexpr int LAG = T.stages > 3 ? 2 : 1;

/* Asks for the first slots. */
template <tiling T>
__device__ __forceinline__ request begin_requests(const job &j, const maps &m,
                                                  const pipe &p)
{
    int64_t row, col, part;
    find_tile<T>(j, &row, &col, &part);
    int64_t k = part * j.part_k, depth = min(j.p.k - k, j.part_k);
    int slots = (int)((depth + T.depth - 1) / T.depth);
    request r = {{0, 1}, (int)row, (int)col, (int)k, slots};
#pragma unroll 1
    for (int n = 0; n < T.stages - LAG<T>; n++) {
        if (threadIdx.x == 0 && r.slots > 0)
            ask_for_slot<T>(m, p, r);
        skip_slot<T>(&r);
    }
    return r;
}

/* As dmma_kernel, but the copy engine fills the slots, asked by the warps in
 * turn, and no warp waits for the others. */
template <tiling T>
__global__ void __launch_bounds__(THREADS<T>, T.blocks)
    dmma_fed_kernel(const __grid_constant__ job j,
                    const __grid_constant__ maps m)
{
#if __CUDA_ARCH__ == 900
    extern __shared__ __align__(1024) double ring[];
    if (threadIdx.x == 0) {
        prefetch_map(&m.a.map);
        prefetch_map(&m.b.map);
    }
    pipe p = prepare_pipe<T>(ring);
    request r = begin_requests<T>(j, m, p);
    cursor c = {0, 0};
    barrier_wait(p.full, 0);
    warp_work<T> w = {};
    begin_work(&w, ring);
#pragma unroll 1
    for (int slots = r.slots + T.stages - LAG<T>; slots > 0; slots--) {
        if (threadIdx.x == slots * 32 % THREADS<T> && r.slots > 0)
            ask_for_slot<T>(m, p, r);
        skip_slot<T>(&r);
        int used = c.slot;
        multiply_slot(&w, ring + used * SLOT<T>);
        advance<T>(&c);
        change_slots<T>(p, used, c, slots > 1);
        finish_slot(&w, ring + c.slot * SLOT<T>);
    }
    write_tile(j, w);
#endif
}

/* --- parts of k --------------------------------------------------------- */

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

typedef CUresult encode_function(CUtensorMap *, CUtensorMapDataType, cuuint32_t,
                                 void *, const cuuint64_t *, const cuuint64_t *,
                                 const cuuint32_t *, const cuuint32_t *,
                                 CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill);

/* NULL where the driver has none. */
static encode_function *find_encode(void)
{
    static encode_function *found;
    cudaDriverEntryPointQueryResult result;
    if (found == NULL && (cudaGetDriverEntryPointByVersion(
                              "cuTensorMapEncodeTiled", (void **)&found, 12000,
                              cudaEnableDefault, &result) != cudaSuccess ||
                          result != cudaDriverEntryPointSuccess)) {
        (void)cudaGetLastError();
        found = NULL;
    }
    return found;
}

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
           fits_map(lines_of_a(j)) && fits_map(lines_of_b(j)) &&
           find_encode() != NULL;
}

template <slice S> static gpu_status make_map(box_map *out, const lines &x)
{
    out->whole = !S.along_k && x.length % PANEL == 0;
    const cuuint64_t size[] = {(cuuint64_t)(out->whole ? PANEL : x.length),
                               (cuuint64_t)x.count,
                               (cuuint64_t)x.length / PANEL};
    const cuuint64_t bytes[] = {(cuuint64_t)x.stride * sizeof(double),
                                PANEL * sizeof(double)};
    const cuuint32_t box[] = {PANEL, (cuuint32_t)(S.along_k ? S.span : S.depth),
                              (cuuint32_t)S.span / PANEL};
    const cuuint32_t ones[] = {1, 1, 1};
    CUresult result = find_encode()(
        &out->map, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, out->whole ? 3 : 2,
        (void *)x.data, size, bytes, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: dmma: the driver makes no map of %lld x %lld",
                    (long long)x.count, (long long)x.length);
    return GPU_OK;
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
    const int bytes = RING_BYTES<T> + 16 * T.stages; /* and its barriers */
    auto kernel = dmma_fed_kernel<T>;
    maps m;
    TRY(make_map<slice_of_a(T)>(&m.a, lines_of_a(j)));
    TRY(make_map<slice_of_b(T)>(&m.b, lines_of_b(j)));
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
