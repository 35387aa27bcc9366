/* matmul padded: copies a and b into scratch, row-major and padded with zeros
 * to multiples of the tile, multiplies without a single edge test, and writes
 * the product back.
 *
 * The question it answers: are edge tests dearer than copies? It is the one
 * rung that copies. The tile loop is limited by shared memory as in `tiled`,
 * the copies by bytes. Any GPU, any strides; tiles of 8, 16 or 32. */
#include "kernel.h"
#include "op_list.h"

/* c' = a' b', all row-major: (down tile) x k, k x (across tile). */
template <class T, int TILE>
__global__ void __launch_bounds__(TILE *TILE)
    padded_kernel(const T *a, const T *b, T *c, int64_t down, int64_t across,
                  int64_t k)
{
    __shared__ __align__(16) T a_tile[TILE][TILE], b_tile[TILE][TILE];
    int64_t n = across * TILE;
    for (int64_t t = blockIdx.x; t < down * across; t += gridDim.x) {
        int64_t row, col;
        T sum = 0;
        tile_of(t, down, across, &row, &col);
        row = row * TILE + threadIdx.y;
        col = col * TILE + threadIdx.x;
        const T *from_a = a + row * k + threadIdx.x;
        const T *from_b = b + threadIdx.y * n + col;
        for (int64_t done = 0; done < k; done += TILE) {
            a_tile[threadIdx.y][threadIdx.x] = from_a[done];
            b_tile[threadIdx.y][threadIdx.x] = from_b[done * n];
            __syncthreads(); /* both tiles are there */
#pragma unroll
            for (int e = 0; e < TILE; e++)
                sum += a_tile[threadIdx.y][e] * b_tile[e][threadIdx.x];
            __syncthreads(); /* both are used up */
        }
        c[row * n + col] = sum;
    }
}

/* v's elements at the start of a rows x cols block of zeros. */
static gpu_status pad(cuda_device *d, const gpu_view *v, void *data,
                      int64_t rows, int64_t cols)
{
    gpu_program identity = {};
    identity.inputs = 1;
    identity.compute = (uint8_t)v->dtype;
    gpu_view inside = {data, v->dtype, v->rows, v->cols, cols, 1};
    size_t bytes = (size_t)(rows * cols) * dtype_bytes(v->dtype);
    if (rows != v->rows || cols != v->cols)
        CHECK(d, cudaMemsetAsync(data, 0, bytes, d->stream));
    return gpu_cuda_map(d, &identity, v, &inside);
}

/* c = alpha product + beta c, as an elementwise program. */
static gpu_status write_back(cuda_device *d, const gpu_gemm *g, void *data,
                             int64_t cols)
{
    const gpu_view *c = &g->c;
    gpu_view in[2] = {{data, c->dtype, c->rows, c->cols, cols, 1}, *c};
    gpu_program p = {};
    p.inputs = p.constants = 2;
    p.length = g->beta == 0 ? 1 : 3;
    p.compute = (uint8_t)c->dtype;
    p.constant[0] = g->alpha;
    p.constant[1] = g->beta;
    p.code[0] = {GPU_OP_mul, 0, 2, 0}; /* value 4 */
    p.code[1] = {GPU_OP_mul, 1, 3, 0}; /* value 5 */
    p.code[2] = {GPU_OP_add, 4, 5, 0};
    return gpu_cuda_map(d, &p, in, c);
}

template <class T, int TILE>
static gpu_status launch(cuda_device *d, const gpu_gemm *g)
{
    int64_t down = ceil_div(g->c.rows, TILE);
    int64_t across = ceil_div(g->c.cols, TILE);
    int64_t k = ceil_div(g->a.cols, TILE) * TILE;
    int64_t m = down * TILE, n = across * TILE;
    T *a;
    TRY(gpu_cuda_scratch(d, (size_t)(m * k + k * n + m * n) * sizeof(T),
                         (void **)&a));
    T *b = a + m * k, *c = b + k * n;
    TRY(pad(d, &g->a, a, m, k));
    TRY(pad(d, &g->b, b, k, n));
    padded_kernel<T, TILE>
        <<<grid_for(down * across), dim3(TILE, TILE), 0, d->stream>>>(
            a, b, c, down, across, k);
    LAUNCHED(d);
    return write_back(d, g, c, n);
}

template <class T>
static gpu_status launch_tile(cuda_device *d, const gpu_gemm *g)
{
    switch (g->tile) {
    case 8:
        return launch<T, 8>(d, g);
    case 16:
        return launch<T, 16>(d, g);
    case 0:
    case 32:
        return launch<T, 32>(d, g);
    default:
        return FAIL(GPU_ARGUMENT, "matmul: tile %d is not one of 8, 16, 32",
                    g->tile);
    }
}

static gpu_status padded(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul("padded", p, &g));
    return g.c.dtype == GPU_F64 ? launch_tile<double>(d, &g)
                                : launch_tile<float>(d, &g);
}

const gpu_kernel gpu_cuda_matmul_padded = {
    .operation = "matmul",
    .name = "padded",
    .idea = "operands copied and padded to whole tiles, no edge tests",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = gpu_cuda_matmul_bound,
    .matmul = padded,
    .dot = NULL,
};
