/* Single operations over what lies without gaps: a kernel of its own for each,
 * which does nothing but read, compute and write. The interpreter's reading of
 * steps and operands costs a sixth of the memory's bandwidth. */
#include "op_list.h"
#include "op_macros.h"
#include "cuda_device.h"

enum { THREADS = 256, ITEMS = 4 };

typedef enum operand_kind { CONSTANT, ELEMENTS, TRUTHS } operand_kind;

/* size elements; operands and result begin at multiples of 16 bytes, truths of
 * 4. */
template <class T> struct stream_job {
    const void *in[3];
    T constant[3];
    operand_kind kind[3];
    void *out;
    int64_t size;
};

template <class T> struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) quad {
    T at[ITEMS];
};

/* The operation on numbers; op is known when this is compiled. */
#define M(f) f
#define OP(name, arity, expression, vector, help, example, result) \
    case GPU_OP_##name:                                            \
        return (T)(expression);
#define TEST OP
#define REDUCTION(...)
template <class T>
__device__ __forceinline__ T apply(int op, [[maybe_unused]] T x,
                                   [[maybe_unused]] T y, [[maybe_unused]] T z)
{
    switch (op) {
#include "ops.def"
    }
    return x;
}
#undef M

template <class T>
__device__ __forceinline__ quad<T> read(const stream_job<T> &job, int operand,
                                        int64_t at)
{
    quad<T> r;
    if (job.kind[operand] == ELEMENTS)
        return *(const quad<T> *)((const T *)job.in[operand] + at);
    if (job.kind[operand] == CONSTANT) {
        r = {job.constant[operand], job.constant[operand],
             job.constant[operand], job.constant[operand]};
        return r;
    }
    quad<uint8_t> truths =
        *(const quad<uint8_t> *)((const uint8_t *)job.in[operand] + at);
    for (int k = 0; k < ITEMS; k++)
        r.at[k] = truths.at[k] != 0;
    return r;
}

template <class T>
__device__ __forceinline__ T read_one(const stream_job<T> &job, int operand,
                                      int64_t at)
{
    if (job.kind[operand] == CONSTANT)
        return job.constant[operand];
    return job.kind[operand] == ELEMENTS
               ? ((const T *)job.in[operand])[at]
               : (T)(((const uint8_t *)job.in[operand])[at] != 0);
}

/* The last elements, fewer than four. */
template <int KIND, int ARITY, class T, class R>
__device__ void finish(const stream_job<T> &job)
{
    int64_t at = job.size / ITEMS * ITEMS + threadIdx.x;
    if (blockIdx.x > 0 || at >= job.size)
        return;
    T x = ARITY > 0 ? read_one(job, 0, at) : 0;
    T y = ARITY > 1 ? read_one(job, 1, at) : 0;
    T z = ARITY > 2 ? read_one(job, 2, at) : 0;
    T r = apply<T>(KIND, x, y, z);
    ((R *)job.out)[at] = sizeof(R) == 1 ? (R)(r != 0) : (R)r;
}

/* How many fours a thread has, all on their way at once: 64 bytes of each
 * operand. Blocks that come and go are faster than a few that stay. */
template <class T> constexpr int fours = 16 / sizeof(T);

template <int KIND, int ARITY, class T, class R>
__global__ void __launch_bounds__(THREADS)
    stream_kernel(const __grid_constant__ stream_job<T> job)
{
    constexpr int UNROLL = fours<T>;
    const int64_t apart = THREADS * ITEMS, last = job.size / ITEMS * ITEMS;
    int64_t at = blockIdx.x * apart * UNROLL + threadIdx.x * ITEMS;
    quad<T> in[3][UNROLL];
#pragma unroll
    for (int o = 0; o < ARITY; o++)
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (at + u * apart < last)
                in[o][u] = read<T>(job, o, at + u * apart);
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        quad<R> r;
        if (at + u * apart >= last)
            break;
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            T value = apply<T>(KIND, ARITY > 0 ? in[0][u].at[k] : 0,
                               ARITY > 1 ? in[1][u].at[k] : 0,
                               ARITY > 2 ? in[2][u].at[k] : 0);
            r.at[k] = sizeof(R) == 1 ? (R)(value != 0) : (R)value;
        }
        *(quad<R> *)((R *)job.out + at + u * apart) = r;
    }
    finish<KIND, ARITY, T, R>(job);
}

template <int KIND, int ARITY, class T, class R>
static gpu_status launch(cuda_device *d, const stream_job<T> &job)
{
    int64_t blocks = ceil_div(job.size, THREADS * ITEMS * fours<T>);
    stream_kernel<KIND, ARITY, T, R>
        <<<(unsigned)blocks, THREADS, 0, d->stream>>>(job);
    LAUNCHED(d);
    return GPU_OK;
}

/* Those that CUDA's library works out at length are left to the interpreter,
 * which they do not feel. */
template <int KIND>
constexpr bool is_long =
    KIND == GPU_OP_gamma || KIND == GPU_OP_lgamma || KIND == GPU_OP_logaddexp;

template <int KIND, int ARITY, class T, class R>
static gpu_status start(cuda_device *d, const stream_job<T> &job,
                        gpu_dtype result)
{
    if constexpr (is_long<KIND>) {
        return GPU_UNSUPPORTED;
    } else {
        if (dtype_bytes(result) != sizeof(R))
            return GPU_UNSUPPORTED;
        return launch<KIND, ARITY, T, R>(d, job);
    }
}

/* The number of operands, or the kernel's start. */
#define OP(name, arity, ...) \
    case GPU_OP_##name:      \
        return arity;
#define TEST OP
#define REDUCTION(...)
static int arity_of(int op)
{
    switch (op) {
#include "ops.def"
    }
    return 0;
}

#define OP(name, arity, ...) \
    case GPU_OP_##name:      \
        return start<GPU_OP_##name, arity, T, T>(d, job, result);
#define TEST(name, arity, ...) \
    case GPU_OP_##name:        \
        return start<GPU_OP_##name, arity, T, uint8_t>(d, job, result);
#define REDUCTION(...)
template <class T>
static gpu_status choose(cuda_device *d, int op, const stream_job<T> &job,
                         gpu_dtype result)
{
    switch (op) {
#include "ops.def"
    }
    return GPU_UNSUPPORTED;
}

/* Without gaps, as one row. */
static int is_plain(const gpu_view *v, gpu_dtype type)
{
    int64_t alignment = v->dtype == GPU_BOOL ? 4 : 16;
    return (v->dtype == type || v->dtype == GPU_BOOL) && v->rows == 1 &&
           v->col_stride == 1 && (uintptr_t)v->data % alignment == 0;
}

template <class T>
static int fill_operands(const gpu_program *p, const gpu_view *in,
                         const gpu_view *out, stream_job<T> *job)
{
    const gpu_instruction *code = &p->code[0];
    const uint8_t operands[] = {code->x, code->y, code->z};
    gpu_dtype type = sizeof(T) == 8 ? GPU_F64 : GPU_F32;
    for (int o = 0; o < arity_of(code->op); o++) {
        int v = operands[o];
        if (v >= p->inputs) {
            job->kind[o] = CONSTANT;
            job->constant[o] = (T)p->constant[v - p->inputs];
            continue;
        }
        if (!is_plain(&in[v], type))
            return 0;
        job->kind[o] = in[v].dtype == GPU_BOOL ? TRUTHS : ELEMENTS;
        job->in[o] = in[v].data;
    }
    return 1;
}

template <class T>
static gpu_status run(cuda_device *d, const gpu_program *p, const gpu_view *in,
                      const gpu_view *out)
{
    stream_job<T> job = {};
    gpu_dtype type = sizeof(T) == 8 ? GPU_F64 : GPU_F32;
    job.out = out->data;
    job.size = out->cols;
    if (!is_plain(out, type) || !fill_operands<T>(p, in, out, &job))
        return GPU_UNSUPPORTED;
    return choose<T>(d, p->code[0].op, job, out->dtype);
}

gpu_status gpu_cuda_stream(cuda_device *d, const gpu_program *p,
                           const gpu_view *in, const gpu_view *out)
{
    if (p->length != 1)
        return GPU_UNSUPPORTED;
    return p->compute == GPU_F64 ? run<double>(d, p, in, out)
                                 : run<float>(d, p, in, out);
}
