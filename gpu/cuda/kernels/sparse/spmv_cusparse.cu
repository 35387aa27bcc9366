/* spmv cusparse: the peer, with the algorithm that gives the same bits in every
 * run. */
#include "la.h"
#include "op_list.h"
#include "sparse_rows.h"

static gpu_status copy(cuda_device *d, const gpu_view *from, const gpu_view *to)
{
    gpu_program p = {};
    p.inputs = 1;
    p.compute = (uint8_t)to->dtype;
    return gpu_cuda_map(d, &p, from, to);
}

/* c = product + beta c. */
static gpu_status add_scaled(cuda_device *d, const gpu_view *product,
                             const gpu_view *c, double beta)
{
    gpu_view in[2] = {*product, *c};
    gpu_program p = {};
    if (beta == 0)
        return copy(d, product, c);
    p.inputs = p.length = 2;
    p.constants = 1;
    p.compute = (uint8_t)c->dtype;
    p.constant[0] = beta;
    p.code[0] = {GPU_OP_mul, 1, 2, 0}; /* value 3 */
    p.code[1] = {GPU_OP_add, 0, 3, 0};
    return gpu_cuda_map(d, &p, in, c);
}

static bool has_gaps(const gpu_view *column)
{
    return column->rows > 1 && column->row_stride != 1;
}

/* Of a column without gaps, rounded up for what lies behind it. */
static size_t column_bytes(const gpu_view *column)
{
    size_t bytes = (size_t)column->rows * dtype_bytes(column->dtype);
    return (bytes + 255) / 256 * 256;
}

/* Through scratch memory where columns have gaps, or where c takes more than
 * the product. beta stays here: la_library.c says why. */
static gpu_status multiply(void *device, const gpu_sparse_call *p)
{
    ENTER(d, device);
    const gpu_view *x = &p->d, *c = &p->c;
    bool x_apart = has_gaps(x), c_apart = has_gaps(c) || p->beta != 0;
    size_t x_bytes = x_apart ? column_bytes(x) : 0;
    size_t c_bytes = c_apart ? column_bytes(c) : 0;
    gpu_view own_x = *x, own_c = *c;
    char *scratch = NULL;
    if (x_bytes + c_bytes > 0)
        TRY(gpu_cuda_scratch(d, x_bytes + c_bytes, (void **)&scratch));
    if (x_apart) {
        own_x.data = scratch;
        own_x.row_stride = 1;
        TRY(copy(d, x, &own_x));
    }
    if (c_apart) {
        own_c.data = scratch + x_bytes;
        own_c.row_stride = 1;
    }
    la_sparse product = {p->s, own_x.data, own_c.data, p->alpha};
    TRY(gpu_cuda_la_sparse(d, "cusparse", &product));
    return c_apart ? add_scaled(d, &own_c, c, p->beta) : GPU_OK;
}

/* Any order of multiplications and additions. */
static double bound(gpu_dtype dtype, int64_t k)
{
    return gpu_cuda_gamma(dtype, k + 2);
}

const gpu_kernel gpu_cuda_spmv_cusparse = {
    .operation = "spmv",
    .name = "cusparse",
    .idea = "SpMV, CSR_ALG2: the peer",
    .needs = "cuSPARSE",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = bound,
    .sparse = multiply,
};
