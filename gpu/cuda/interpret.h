/* Programs made ready for the device, and the device code that runs one for
 * four elements of a thread at a time.
 *
 * An intermediate value lives in shared memory, in a slot of its own for each
 * thread, so that no thread needs an indexed array of registers (which would
 * be local memory). Inputs are read where an instruction names them: a
 * program of one instruction touches no shared memory at all. */
#ifndef GPU_CUDA_INTERPRET_H
#define GPU_CUDA_INTERPRET_H

#include "op_list.h"
#include "op_macros.h"
#include "cuda_device.h"

enum { ITEMS = 4 };

/* An operand is an input, a constant or a slot. */
enum { FIRST_CONSTANT = GPU_MAX_INPUTS };
enum { FIRST_SLOT = GPU_MAX_INPUTS + GPU_MAX_CONSTANTS };

typedef struct plan_step {
    uint8_t op, arity;
    uint8_t x, y, z; /* operands */
    uint8_t to;      /* slot of the result; the last step has none */
} plan_step;

/* rows x cols elements, their inputs, and the steps. */
typedef struct plan {
    gpu_view in[GPU_MAX_INPUTS];
    int64_t rows, cols;
    int swapped;   /* rows and columns were exchanged: ROW gives j */
    unsigned wide; /* bit v: four elements of input v may be read at once */
    int length, slots;
    int is_f64;     /* what is computed in */
    uint8_t result; /* the operand an empty program gives */
    plan_step code[GPU_MAX_CODE];
    double constant[GPU_MAX_CONSTANTS];
} plan;

/* Fills what does not depend on the views: steps that the result needs, in
 * order, with as few slots as their lifetimes allow. A program in f32 is one in
 * f64 where CUDA's own f32 misses more than four units in the last place. */
void gpu_cuda_plan(const gpu_program *p, plan *out);

/* Shared memory for `threads` threads. */
size_t gpu_cuda_plan_bytes(const plan *p, int threads, size_t type_bytes);

/* May an input's elements be read four at once, in rows that begin at
 * multiples of four? */
static inline int gpu_cuda_is_wide(const gpu_view *v)
{
    int64_t alignment = v->dtype == GPU_BOOL ? 4 : 16;
    return v->col_stride == 1 && (uintptr_t)v->data % alignment == 0 &&
           (v->rows == 1 || v->row_stride % ITEMS == 0);
}

/* Does the plan use the place of an element? */
int gpu_cuda_plan_has_places(const plan *p);

/* Four elements of a thread: element k at (i + k di, j + k dj), of which the
 * first `count` exist. */
typedef struct spot {
    int64_t i, j, di, dj;
    int count;
} spot;

/* Moved at once, 16 bytes at most. */
template <class T> struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) quad {
    T at[ITEMS];
};

template <class S, class T>
__device__ __forceinline__ quad<T> fetch_at_once(const gpu_view &in, int64_t at)
{
    quad<S> four = *(const quad<S> *)((const S *)in.data + at);
    quad<T> r;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        r.at[k] = (T)widened<S>(four.at[k]);
    return r;
}

template <class T>
__device__ __forceinline__ quad<T> fetch(const plan &p, int v, const spot &s)
{
    const gpu_view &in = p.in[v];
    quad<T> r;
    if (s.count == ITEMS && (p.wide >> v & 1)) {
        int64_t at = place(in, s.i, s.j);
        if (in.dtype == GPU_F32)
            return fetch_at_once<float, T>(in, at);
        return in.dtype == GPU_F64 ? fetch_at_once<double, T>(in, at)
                                   : fetch_at_once<uint8_t, T>(in, at);
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        r.at[k] = k < s.count
                      ? load<T>(in, place(in, s.i + k * s.di, s.j + k * s.dj))
                      : (T)0;
    return r;
}

template <class T>
__device__ __forceinline__ quad<T> operand(const plan &p, int v, const spot &s,
                                           const T *file, int threads)
{
    quad<T> r;
    if (v < FIRST_CONSTANT)
        return fetch<T>(p, v, s);
    if (v < FIRST_SLOT) {
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            r.at[k] = (T)p.constant[v - FIRST_CONSTANT];
        return r;
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        r.at[k] = file[((v - FIRST_SLOT) * ITEMS + k) * threads];
    return r;
}

template <class T>
__device__ __forceinline__ quad<T> index_values(const plan &p, int op,
                                                const spot &s)
{
    quad<T> r;
    int down = (op == GPU_OP_ROW) != p.swapped;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        r.at[k] = (T)(down ? s.i + k * s.di : s.j + k * s.dj);
    return r;
}

/* The functions of CUDA's maths library are overloaded for float and
 * double under their plain names. */
#define M(f) f
#define OP(name, arity, expression, vector, help, example, result)    \
    case GPU_OP_##name:                                               \
        _Pragma("unroll") for (int k = 0; k < ITEMS; k++)             \
        {                                                             \
            [[maybe_unused]] T x = a.at[k], y = b.at[k], z = c.at[k]; \
            r.at[k] = (T)(expression);                                \
        }                                                             \
        break;
#define TEST OP
#define REDUCTION(...)

template <class T>
__device__ __forceinline__ quad<T> apply(int op, const quad<T> &a,
                                         const quad<T> &b, const quad<T> &c)
{
    quad<T> r = a;
    switch (op) {
#include "ops.def"
    }
    return r;
}

#undef M

/* The results for one spot. file is the thread's own column of the shared
 * slots, whose rows are `threads` apart. */
template <class T>
__device__ __forceinline__ quad<T> evaluate(const plan &p, const spot &s,
                                            T *file, int threads)
{
    if (p.length == 0)
        return operand<T>(p, p.result, s, file, threads);
    for (int n = 0;; n++) {
        const plan_step &step = p.code[n];
        quad<T> x = {}, y = {}, z = {}, r;
        if (step.arity > 0)
            x = operand<T>(p, step.x, s, file, threads);
        if (step.arity > 1)
            y = operand<T>(p, step.y, s, file, threads);
        if (step.arity > 2)
            z = operand<T>(p, step.z, s, file, threads);
        r = step.arity == 0 ? index_values<T>(p, step.op, s)
                            : apply<T>(step.op, x, y, z);
        if (n + 1 == p.length)
            return r;
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            file[(step.to * ITEMS + k) * threads] = r.at[k];
    }
}

#endif
