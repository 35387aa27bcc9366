/* matmul split16: f32 products on the tensor cores with FP32's accuracy.
 *
 * Each operand is scaled and cut into two FP16 planes (split_planes.cu); c is
 * the sum of lo hi, hi lo and hi hi, accumulated in FP32 in short chunks
 * (split16_hopper.cu on Hopper, split16_ampere.cu elsewhere); what the planes
 * do not make certain is done again here, or where it was multiplied
 * (split_f64_product.h). Planes stay with their operand until it is written to.
 * Limited by the tensor cores' power: three FP16 products for one. Needs sm_80;
 * any strides. */
#include <math.h>
#include "simt.h"
#include "split16.h"
#include "split_f64_product.h"

/* --- repair -----------------------------------------------------------------
 * Where the kernel that multiplied has no blocks left to wait for each other:
 * what is not certain is computed again (split_f64_product.h) in a launch of
 * its own. Where f64 is slow and the product large, the simt kernel behind this
 * one does that: its gate opens. Any GPU. */

__global__ void __launch_bounds__(REDO_THREADS)
    repair(const __grid_constant__ split_product p,
           const __grid_constant__ product<float> g)
{
    extern __shared__ __align__(16) double shared[];
    int thread = threadIdx.x;
    let_next_start();
    wait_for_previous();
    unsigned count = p.tickets[SPLIT_COUNT];
    int again = is_to_redo(p, count);
    if (blockIdx.x == 0 && thread == 0)
        *p.gate = again;
    if (count == 0 && !again)
        return;
    __syncthreads(); /* the block has read the count */
    if (thread == 0 && count > 0)
        clear_count(p);
    mend<0>(p, g, count, again, thread, shared);
}

/* Computes what is not certain again; or, when that is too much for it, opens
 * the gate of the simt kernel. */
static gpu_status launch_repair(cuda_device *d, const split_product *p,
                                const gpu_gemm *g)
{
    static int prepared;
    TRY(keep_division(d, (const void *)repair, REDO_BYTES, &prepared));
    return launch_behind(d, repair, dim3((unsigned)d->sms), REDO_THREADS,
                         REDO_BYTES, 1, *p, typed_product<float>(g));
}

/* --- the product --------------------------------------------------------- */

constexpr int64_t ALIGN = 256, LEAST_LISTED = 1024, MOST_SIZE = 0x7fffff00;
/* See few_beyond. */
constexpr int64_t TILE = 128, LEAST_PEELED = 2048, MOST_BEYOND = 4;
/* Of the device's tickets; the matrix kernels' tiles have those before. */
constexpr int FIRST_TICKET = 248;
/* Multiplications up to which repair does a second attempt itself where f64 is
 * slow: its plain loop has no launch of its own. */
constexpr double SMALL = 3072.0 * 3072 * 3072;

/* Scratch memory, handed out piece by piece; with no memory behind it, the
 * pieces are only counted. */
typedef struct pieces {
    char *memory;
    size_t used;
} pieces;

static void *take_piece(pieces *s, size_t bytes)
{
    void *piece = s->memory ? s->memory + s->used : NULL;
    s->used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return piece;
}

/* Planes kept about the operand, memory to keep them in, or nothing. */
static void *find_planes(gpu_storage *storage, const gpu_view *v, int along_k,
                         size_t bytes, int *is_kept)
{
    gpu_keep_key key = {along_k ? KEPT_A : KEPT_B, *v};
    void *found = gpu_cuda_host->recall(storage, &key);
    *is_kept = found != NULL;
    return found ? found : gpu_cuda_host->keep(storage, &key, bytes);
}

/* What is wanted of a product: all, certified where it does not add; nothing
 * certified; a triangle. */
typedef enum wanted { ALL, NORMWISE, LOWER } wanted;

typedef struct operand_block {
    void *kept; /* or NULL: in scratch */
    size_t bytes;
    int is_kept;
} operand_block;

static operand_block find_block(gpu_storage *storage, const gpu_view *v,
                                int along_k)
{
    int64_t span = along_k ? v->rows : v->cols;
    int64_t depth = along_k ? v->cols : v->rows;
    operand_block b = {};
    b.bytes = gpu_cuda_planes_bytes(span, depth, along_k);
    b.kept = find_planes(storage, v, along_k, b.bytes, &b.is_kept);
    return b;
}

static split_planes place_planes(const operand_block *b, const gpu_view *v,
                                 int along_k, pieces *s)
{
    void *block = b->kept ? b->kept : take_piece(s, b->bytes);
    split_planes p = gpu_cuda_planes_at(block, along_k ? v->rows : v->cols,
                                        along_k ? v->cols : v->rows, along_k);
    p.is_kept = b->is_kept;
    return p;
}

static unsigned list_capacity(int64_t m, int64_t n)
{
    return (unsigned)smaller(larger(LEAST_LISTED, m * n / 10000), 1 << 24);
}

/* Are its tensor cores as fast at f64 as others at f32? */
static bool has_fast_f64(const cuda_device *d)
{
    return d->capability == 80 || d->capability == 90 || d->capability == 100;
}

/* Rows or columns beyond the last whole tile, when so few that they are done
 * apart: tiles of them would cost a round of the whole device. */
static int64_t few_beyond(int64_t size)
{
    int64_t rest = size % TILE;
    return size > LEAST_PEELED && rest <= MOST_BEYOND ? rest : 0;
}

static gpu_gemm without_edges(const gpu_gemm *g)
{
    gpu_gemm whole = *g;
    whole.a.rows = whole.c.rows -= few_beyond(g->c.rows);
    whole.b.cols = whole.c.cols -= few_beyond(g->c.cols);
    return whole;
}

static void *element(const gpu_view *v, int64_t i, int64_t j)
{
    return (float *)v->data + i * v->row_stride + j * v->col_stride;
}

/* The last rows and columns of c. */
static split_edges find_edges(const gpu_gemm *g)
{
    gpu_gemm whole = without_edges(g);
    split_edges e = {*g, *g};
    e.below.a.rows = e.below.c.rows -= whole.c.rows;
    e.below.a.data = element(&g->a, whole.c.rows, 0);
    e.below.c.data = element(&g->c, whole.c.rows, 0);
    e.beside.a.rows = e.beside.c.rows = whole.c.rows;
    e.beside.b.cols = e.beside.c.cols -= whole.c.cols;
    e.beside.b.data = element(&g->b, 0, whole.c.cols);
    e.beside.c.data = element(&g->c, 0, whole.c.cols);
    return e;
}

/* By the vector kernel, which reads both operands again. */
static gpu_status multiply_edges(cuda_device *d, const split_edges *e)
{
    if (e->below.c.rows > 0)
        TRY(gpu_cuda_matmul_vector.matmul(d, &e->below));
    return e->beside.c.cols > 0 ? gpu_cuda_matmul_vector.matmul(d, &e->beside)
                                : GPU_OK;
}

/* Everything of the product but what is in the planes; the same twice, to
 * count the bytes and to place them. Returns what splitting gets. */
static void *place_product(cuda_device *d, const gpu_gemm *g, split_way way,
                           const operand_block *a, const operand_block *b,
                           size_t splitting, split_product *p, pieces *s)
{
    *p = {};
    p->a = place_planes(a, &g->a, 1, s);
    p->b = place_planes(b, &g->b, 0, s);
    p->c = (float *)g->c.data;
    p->m = g->c.rows;
    p->n = g->c.cols;
    p->k = g->a.cols;
    p->c_row = g->c.row_stride;
    p->c_col = g->c.col_stride;
    p->alpha = (float)g->alpha;
    p->adds = g->beta != 0;
    p->then = gpu_cuda_no_epilogue();
    /* each lost part is at most 2^-25 and meets a factor below 2^15 of the
     * other operand: the error so bounded is sqrt(k) 2^-24 of the result */
    p->unit = (float)((1 << 14) / sqrt((double)p->k));
    p->capacity = list_capacity(p->m, p->n);
    p->uncertain = (int64_t *)take_piece(s, p->capacity * sizeof(int64_t));
    p->tickets = d->tickets + FIRST_TICKET;
    p->gate = (int *)take_piece(s, sizeof(int));
    p->redoes =
        has_fast_f64(d) || (double)p->m * (double)p->n * (double)p->k <= SMALL;
    p->partial = (float *)take_piece(
        s, d->capability == 90 ? gpu_cuda_split16_hopper_workspace(p, way)
                               : gpu_cuda_split16_ampere_workspace(d, p));
    return take_piece(s, splitting);
}

/* Multiplies planes, and does what they do not make certain again. */
static gpu_status multiply_split(cuda_device *d, const split_product *p,
                                 split_way way, const gpu_gemm *g,
                                 const split_edges *edges, int *has_edges)
{
    int is_certain = 0;
    *has_edges = 0;
    if (d->capability == 90)
        TRY(gpu_cuda_split16_hopper(d, p, way, g, edges, has_edges,
                                    &is_certain));
    else
        TRY(gpu_cuda_split16_ampere(d, p));
    if (is_certain)
        return GPU_OK;
    TRY(launch_repair(d, p, g));
    return p->redoes ? GPU_OK : gpu_cuda_simt_matmul(d, g, &p->then, p->gate);
}

/* An edge goes through the epilogue apart, as a product does that no kernel
 * takes through it. (i, j): its corner in c. */
static gpu_status finish_edge(cuda_device *d, const gpu_epilogue *e,
                              const gpu_view *edge, int64_t i, int64_t j)
{
    gpu_view in[GPU_MAX_INPUTS];
    if (edge->rows == 0 || edge->cols == 0)
        return GPU_OK;
    for (int v = 0; v < e->program->inputs; v++) {
        in[v] = e->in[v];
        in[v].data =
            (char *)in[v].data + (i * in[v].row_stride + j * in[v].col_stride) *
                                     (int64_t)dtype_bytes(in[v].dtype);
        in[v].rows = edge->rows;
        in[v].cols = edge->cols;
        if (v == e->product)
            in[v] = *edge;
    }
    return gpu_cuda_map(d, e->program, in, edge);
}

/* c = alpha a b, or c += alpha a b, in two launches on Hopper, three where
 * blocks take turns there, else in at most six; four more where edges are done
 * apart from the rest. then: what the rest goes through. */
static gpu_status multiply(cuda_device *d, const gpu_gemm *all,
                           const epilogue *then, wanted part)
{
    gpu_gemm g = all->beta == 0 ? without_edges(all) : *all;
    split_edges edges = find_edges(all);
    operand_block a = find_block(g.a_storage, &g.a, 1);
    operand_block b = find_block(g.b_storage, &g.b, 0);
    split_way way = {};
    if (d->capability == 90)
        way = g.beta == 0
                  ? gpu_cuda_split16_hopper_way(d, g.c.rows, g.c.cols, g.a.cols)
                  : gpu_cuda_split16_hopper_add_way(d, g.c.rows, g.c.cols,
                                                    g.a.cols, part == LOWER);
    split_product p;
    pieces counted = {}, placed = {};
    size_t splitting;
    TRY(gpu_cuda_split_scratch(d, &g, &splitting));
    place_product(d, &g, way, &a, &b, splitting, &p, &counted);
    TRY(gpu_cuda_scratch(d, counted.used, (void **)&placed.memory));
    void *measures = place_product(d, &g, way, &a, &b, splitting, &p, &placed);
    p.then = *then;
    p.is_lower = part == LOWER;
    if (part == NORMWISE)
        p.unit = 0;
    TRY(gpu_cuda_split(d, &g, &p.a, &p.b, measures, p.tickets + SPLIT_STRIPS));
    int has_edges;
    TRY(multiply_split(d, &p, way, &g, &edges, &has_edges));
    if (!has_edges && all->beta == 0) /* what adds has all of c */
        TRY(multiply_edges(d, &edges));
    if (!then->changes)
        return GPU_OK;
    TRY(finish_edge(d, all->epilogue, &edges.below.c, g.c.rows, 0));
    return finish_edge(d, all->epilogue, &edges.beside.c, 0, g.c.cols);
}

/* sum's rows are `pitch` apart. */
__global__ void add_scaled(const product<float> p, const float *sum,
                           int64_t pitch)
{
    int64_t j = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    for (int64_t i = blockIdx.y; j < p.n && i < p.m; i += gridDim.y) {
        float *c = p.c + i * p.c_row + j * p.c_col;
        *c = sum[i * pitch + j] + p.beta * *c;
    }
}

static gpu_status add_product(cuda_device *d, const gpu_gemm *g,
                              const gpu_view *sum)
{
    int64_t m = g->c.rows, n = g->c.cols;
    dim3 grid((unsigned)ceil_div(n, 256), (unsigned)smaller(m, 65535));
    add_scaled<<<grid, 256, 0, d->stream>>>(
        typed_product<float>(g), (const float *)sum->data, sum->row_stride);
    return gpu_cuda_check(d, cudaGetLastError());
}

/* With beta, the product goes to memory of its own first: c's old values
 * must outlive a second attempt, and a failure. Its rows lie for 16-byte
 * writes. */
static gpu_status multiply_and_add(cuda_device *d, const gpu_gemm *g)
{
    gpu_gemm apart = *g;
    apart.beta = 0;
    apart.c.row_stride = ceil_div(g->c.cols, 4) * 4;
    apart.c.col_stride = 1;
    size_t bytes = (size_t)(apart.c.rows * apart.c.row_stride) * sizeof(float);
    gpu_status status = gpu_cuda_alloc(d, bytes, &apart.c.data);
    if (status == GPU_MEMORY)
        return FAIL(status,
                    "matmul: out of memory: adding to c needs %lld MiB more",
                    (long long)(bytes >> 20) + 1);
    TRY(status);
    epilogue none = gpu_cuda_no_epilogue();
    status = multiply(d, &apart, &none, ALL);
    if (status == GPU_OK)
        status = add_product(d, g, &apart.c);
    gpu_cuda_free(d, apart.c.data, bytes);
    return status;
}

gpu_status gpu_cuda_split16_add(cuda_device *d, const gpu_gemm *g)
{
    epilogue none = gpu_cuda_no_epilogue();
    return multiply(d, g, &none, ALL);
}

gpu_status gpu_cuda_split16_normwise(cuda_device *d, const gpu_gemm *g)
{
    epilogue none = gpu_cuda_no_epilogue();
    return multiply(d, g, &none, NORMWISE);
}

gpu_status gpu_cuda_split16_add_lower(cuda_device *d, const gpu_gemm *g)
{
    epilogue none = gpu_cuda_no_epilogue();
    return multiply(d, g, &none, LOWER);
}

/* Can the kernel add to c as it lies? */
static bool lies_for_adding(const cuda_device *d, const gpu_gemm *g)
{
    return d->capability == 90 && g->beta == 1 && g->c.col_stride == 1 &&
           g->c.row_stride % 4 == 0 && g->c.cols % 4 == 0 &&
           (uintptr_t)g->c.data % 16 == 0;
}

static gpu_status split16(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul("split16", p, &g));
    if (g.c.rows > MOST_SIZE || g.c.cols > MOST_SIZE || g.a.cols > MOST_DEPTH)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: kernel split16 cannot do %lldx%lld times "
                    "%lldx%lld: it takes an inner dimension below 2^22",
                    (long long)g.a.rows, (long long)g.a.cols,
                    (long long)g.b.rows, (long long)g.b.cols);
    if (g.beta != 0 && g.a.cols >= LEAST_DEPTH)
        return g.is_update && lies_for_adding(d, &g)
                   ? gpu_cuda_split16_add(d, &g)
                   : multiply_and_add(d, &g);
    epilogue then = gpu_cuda_no_epilogue();
    int is_short = g.a.cols < LEAST_DEPTH;
    int takes = (is_short || d->capability == 90) &&
                gpu_cuda_find_epilogue(p, &g, &then);
    TRY(is_short ? gpu_cuda_simt_matmul(d, &g, &then, NULL)
                 : multiply(d, &g, &then, ALL));
    if (takes)
        p->epilogue->is_done = 1;
    return GPU_OK;
}

/* Three roundings of 2^-22 and less an element pair (hi, lo and the product
 * left out), a truncating sum of 25 bits inside a chunk of 64, and one
 * rounding a chunk; at most a plain FP32 sum's bound from k = 8 on. Source:
 * Ootomo and Yokota, arXiv 2203.03341; Khattak and Mikaitis, arXiv
 * 2512.07004, for the truncation. */
static double bound(gpu_dtype dtype, int64_t k)
{
    return gpu_cuda_gamma(dtype, k + 10);
}

const gpu_kernel gpu_cuda_matmul_split16 = {
    .operation = "matmul",
    .name = "split16",
    .idea = "FP32 accuracy on tensor cores: three FP16 products",
    .needs = "sm_80",
    .precision = "f32",
    .capability = 80,
    .dtypes = 1u << GPU_F32,
    .bound = bound,
    .matmul = split16,
    .dot = NULL,
    .has_epilogue = 1,
};
