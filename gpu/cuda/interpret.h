/* Programs made ready for the device, and the device code that runs one for
 * four elements of a thread at a time.
 *
 * What a step gives stays in registers for the next one. What is needed later
 * lives in shared memory, in a slot of its own for each thread, so that no
 * thread needs an indexed array of registers (which would be local memory).
 * Inputs are read where an instruction names them: a program of one instruction
 * touches no shared memory at all. */
#ifndef GPU_CUDA_INTERPRET_H
#define GPU_CUDA_INTERPRET_H

#include "op_list.h"
#include "op_macros.h"
#include "cuda_device.h"

enum { ITEMS = 4 };

/* An operand is an input, a constant, a slot, or what the step before gave. */
enum { FIRST_CONSTANT = GPU_MAX_INPUTS };
enum { FIRST_SLOT = GPU_MAX_INPUTS + GPU_MAX_CONSTANTS };
enum { LAST_RESULT = 254, NO_SLOT = 255 };

/* Read at once. */
typedef struct alignas(8) plan_step {
    uint8_t op, arity;
    uint8_t x, y, z; /* operands */
    uint8_t to;      /* slot of the result, or NO_SLOT */
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
    float single[GPU_MAX_CONSTANTS]; /* the same: converting is slow */
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

/* Are the nearer neighbours of an input's elements in its columns? */
static inline int gpu_cuda_reads_columns(const gpu_view *v)
{
    return v->rows > 1 && v->cols > 1 &&
           stride_size(v->row_stride) < stride_size(v->col_stride) &&
           v->row_stride != 0;
}

/* Does the plan use the place of an element? */
int gpu_cuda_plan_has_places(const plan *p);

/* p, of which `made` was made, over its views and the results from out on, as
 * map.cu has turned them: by a kernel compiled for it. GPU_UNSUPPORTED, without
 * a message, where there is none: see compiled.cu. */
gpu_status gpu_cuda_run_compiled(cuda_device *d, const gpu_program *p,
                                 const plan *made, const gpu_view *out);

/* Is there such a kernel? */
int gpu_cuda_has_compiled(cuda_device *d, const gpu_program *p,
                          const plan *made, const gpu_view *out);

/* The same of p's reduction over the lines that reduce.cu has laid out, for
 * that grid: its first stage. out: a column of lines. */
struct jit_lines;
gpu_status gpu_cuda_reduce_compiled(cuda_device *d, const gpu_program *p,
                                    const plan *made, const jit_lines *lines,
                                    const gpu_view *out, dim3 grid);

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
__device__ __forceinline__ quad<T> fetch_at_once(const S *from)
{
    quad<S> four = *(const quad<S> *)from;
    quad<T> r;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if constexpr (sizeof(S) == 1)
            r.at[k] = four.at[k] != 0 ? (T)1 : (T)0;
        else
            r.at[k] = (T)four.at[k];
    return r;
}

/* A spot that may have less than four. */
template <class T>
__device__ __forceinline__ quad<T> fetch(const plan &p, int v, const spot &s)
{
    const gpu_view &in = p.in[v];
    quad<T> r;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        r.at[k] = k < s.count
                      ? load<T>(in, place(in, s.i + k * s.di, s.j + k * s.dj))
                      : (T)0;
    return r;
}

template <class T>
__device__ __forceinline__ T constant_of(const plan &p, int number)
{
    return sizeof(T) == sizeof(float) ? (T)p.single[number]
                                      : (T)p.constant[number];
}

/* The elements of so many spots, which are worked out together: a step is then
 * read once for all of them. */
template <class T, int SPOTS> struct lot {
    quad<T> of[SPOTS];
};

/* Whole spots of an input whose elements may be read four at once. */
template <class S, class T, int SPOTS>
__device__ __forceinline__ void fetch_row(const gpu_view &in, const spot *s,
                                          lot<T, SPOTS> *to)
{
    const S *from = (const S *)in.data + s->i * in.row_stride + s->j;
#pragma unroll
    for (int i = 0; i < SPOTS; i++)
        to->of[i] = fetch_at_once<S, T>(from + (s[i].i - s->i) * in.row_stride +
                                        (s[i].j - s->j));
}

/* The same of an input of any layout. */
template <class S, class T, int SPOTS>
__device__ __forceinline__ void fetch_strided(const gpu_view &in, const spot *s,
                                              lot<T, SPOTS> *to)
{
    const S *from = (const S *)in.data + place(in, s->i, s->j);
    int64_t step = place(in, s->di, s->dj);
#pragma unroll
    for (int i = 0; i < SPOTS; i++) {
        const S *at = from + place(in, s[i].i - s->i, s[i].j - s->j);
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            to->of[i].at[k] =
                sizeof(S) == 1 ? (T)(at[k * step] != 0) : (T)at[k * step];
    }
}

template <class S, class T, int SPOTS>
__device__ __forceinline__ void fetch_whole(const gpu_view &in, bool is_wide,
                                            const spot *s, lot<T, SPOTS> *to)
{
    if (is_wide)
        fetch_row<S>(in, s, to);
    else
        fetch_strided<S>(in, s, to);
}

/* full: all spots are whole. */
template <class T, int SPOTS>
__device__ __forceinline__ void fetch_lot(const plan &p, int v, const spot *s,
                                          bool full, lot<T, SPOTS> *to)
{
    const gpu_view &in = p.in[v];
    if (full) {
        bool is_wide = p.wide >> v & 1;
        if (in.dtype == (sizeof(T) == sizeof(float) ? GPU_F32 : GPU_F64))
            fetch_whole<T>(in, is_wide, s, to);
        else if (in.dtype == GPU_BOOL)
            fetch_whole<uint8_t>(in, is_wide, s, to);
        else if (sizeof(T) == sizeof(float))
            fetch_whole<double>(in, is_wide, s, to);
        else
            fetch_whole<float>(in, is_wide, s, to);
        return;
    }
#pragma unroll
    for (int i = 0; i < SPOTS; i++)
        to->of[i] = fetch<T>(p, v, s[i]);
}

template <class T, int SPOTS>
__device__ __forceinline__ void
operand(const plan &p, int v, const spot *s, bool full, const T *file,
        int threads, const lot<T, SPOTS> &last, lot<T, SPOTS> *to)
{
    if (v == LAST_RESULT) {
        *to = last;
        return;
    }
    if (v < FIRST_CONSTANT) {
        fetch_lot<T, SPOTS>(p, v, s, full, to);
        return;
    }
    if (v < FIRST_SLOT) {
        T value = constant_of<T>(p, v - FIRST_CONSTANT);
#pragma unroll
        for (int i = 0; i < SPOTS; i++)
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                to->of[i].at[k] = value;
        return;
    }
    const T *slot = file + (v - FIRST_SLOT) * SPOTS * ITEMS * threads;
#pragma unroll
    for (int i = 0; i < SPOTS; i++)
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            to->of[i].at[k] = slot[(i * ITEMS + k) * threads];
}

template <class T, int SPOTS>
__device__ __forceinline__ void index_values(const plan &p, int op,
                                             const spot *s, lot<T, SPOTS> *to)
{
    int down = (op == GPU_OP_ROW) != p.swapped;
#pragma unroll
    for (int i = 0; i < SPOTS; i++)
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            to->of[i].at[k] =
                (T)(down ? s[i].i + k * s[i].di : s[i].j + k * s[i].dj);
}

/* Is the operation a function of CUDA's library, which takes many instructions?
 * Those are there once for all spots, which take turns in the first place, so
 * that a program's steps stay in the cache of instructions (a third of the
 * time was spent on waiting for them). vector: see ops.def. */
__host__ __device__ constexpr bool is_function(const char *vector)
{
    return !(vector[0] == 'N' && vector[1] == 'O' && vector[2] == 'N');
}

template <class T, int SPOTS>
__device__ __forceinline__ void take_turns(lot<T, SPOTS> *a)
{
    quad<T> first = a->of[0];
#pragma unroll
    for (int i = 0; i + 1 < SPOTS; i++)
        a->of[i] = a->of[i + 1];
    a->of[SPOTS - 1] = first;
}

/* The functions of CUDA's maths library are overloaded for float and
 * double under their plain names. */
#define M(f) f
#define EACH(count, expression)                                \
    _Pragma("unroll") for (int k = 0; k < (count); k++)        \
    {                                                          \
        [[maybe_unused]] T x = a->of[k / ITEMS].at[k % ITEMS], \
                           y = b.of[k / ITEMS].at[k % ITEMS],  \
                           z = c.of[k / ITEMS].at[k % ITEMS];  \
        a->of[k / ITEMS].at[k % ITEMS] = (T)(expression);      \
    }
#define OP(name, arity, expression, vector, help, example, result)       \
    case GPU_OP_##name:                                                  \
        if constexpr (SPOTS == 1 || !is_function(#vector)) {             \
            EACH(SPOTS *ITEMS, expression)                               \
        } else {                                                         \
            _Pragma("unroll 1") for (int turn = 0; turn < SPOTS; turn++) \
            {                                                            \
                EACH(ITEMS, expression)                                  \
                take_turns(a);                                           \
                if (arity > 1)                                           \
                    take_turns(&b);                                      \
                if (arity > 2)                                           \
                    take_turns(&c);                                      \
            }                                                            \
        }                                                                \
        break;
#define TEST OP
#define REDUCTION(...)

/* The result takes a's place. */
template <class T, int SPOTS>
__device__ __forceinline__ void apply(int op, lot<T, SPOTS> *a, lot<T, SPOTS> b,
                                      lot<T, SPOTS> c)
{
    switch (op) {
#include "ops.def"
    }
}

#undef EACH
#undef M

/* The results for some spots. file is the thread's own column of the shared
 * slots, whose rows are `threads` apart. What a step gives and the first
 * operand of the next are the same registers. */
template <class T, int SPOTS>
__device__ __forceinline__ lot<T, SPOTS>
evaluate_lot(const plan &p, const spot *s, T *file, int threads)
{
    bool full = s[SPOTS - 1].count == ITEMS;
    lot<T, SPOTS> r, y, z; /* only what the operation has is set */
    if (p.length == 0) {
        operand<T, SPOTS>(p, p.result, s, full, file, threads, r, &r);
        return r;
    }
    for (int n = 0; n < p.length; n++) {
        plan_step step;
        *(uint2 *)&step = *(const uint2 *)&p.code[n];
        if (step.arity > 2)
            operand<T, SPOTS>(p, step.z, s, full, file, threads, r, &z);
        if (step.arity > 1)
            operand<T, SPOTS>(p, step.y, s, full, file, threads, r, &y);
        if (step.arity > 0 && step.x != LAST_RESULT)
            operand<T, SPOTS>(p, step.x, s, full, file, threads, r, &r);
        if (step.arity == 0)
            index_values<T, SPOTS>(p, step.op, s, &r);
        else
            apply<T, SPOTS>(step.op, &r, y, z);
        if (step.to == NO_SLOT)
            continue;
#pragma unroll
        for (int i = 0; i < SPOTS; i++)
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                file[((step.to * SPOTS + i) * ITEMS + k) * threads] =
                    r.of[i].at[k];
    }
    return r;
}

template <class T>
__device__ __forceinline__ quad<T> evaluate(const plan &p, const spot &s,
                                            T *file, int threads)
{
    return evaluate_lot<T, 1>(p, &s, file, threads).of[0];
}

#endif
