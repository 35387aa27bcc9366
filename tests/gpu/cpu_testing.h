/* What the tests of the CPU backend share: the backend opened with a host that
 * remembers the last failure, views with memory, and ways to compare. */
#ifndef CPU_TESTING_H
#define CPU_TESTING_H

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backend.h"

static volatile int interrupted;
static char message[256];
static const gpu_backend *cpu;
static void *device;

static inline gpu_status remember(gpu_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return status;
}

static inline int open_cpu(void **state)
{
    static const gpu_host host = {
        .abi = GPU_BACKEND_ABI, .fail = remember, .interrupted = &interrupted};
    (void)state;
    cpu = gpu_cpu_backend(&host);
    return cpu == NULL || cpu->open(0, &device) != GPU_OK;
}

static inline size_t size_of(gpu_dtype t)
{
    return t == GPU_F64 ? 8 : t == GPU_F32 ? 4 : 1;
}

/* --- views: a parent with memory, and parts of it ------------------------- */

typedef struct block {
    gpu_view v;
    void *memory;
    size_t bytes;
} block;

/* Layouts a test should go through. */
typedef enum layout {
    DENSE,
    TURNED,    /* column-major */
    GAPPED,    /* rows with gaps, columns too */
    BACKWARDS, /* both steps negative */
    LAYOUTS
} layout;

static inline block make(gpu_dtype t, int64_t rows, int64_t cols, layout how)
{
    block b;
    int64_t gap = how == GAPPED ? 2 : 1;
    int64_t wide = cols * gap + (how == GAPPED ? 3 : 0);
    int64_t cells = how == GAPPED ? rows * wide : rows * cols;
    b.bytes = (size_t)cells * size_of(t) + 1;
    assert_int_equal(cpu->alloc(device, b.bytes, &b.memory), GPU_OK);
    memset(b.memory, 0, b.bytes);
    b.v = (gpu_view){b.memory, t, rows, cols, wide, gap};
    if (how == TURNED) {
        b.v.row_stride = 1;
        b.v.col_stride = rows;
    }
    if (how == BACKWARDS && cells > 0) {
        b.v.data = (char *)b.memory + (size_t)(cells - 1) * size_of(t);
        b.v.row_stride = -cols;
        b.v.col_stride = -1;
    }
    return b;
}

static inline void drop(block *b)
{
    cpu->free(device, b->memory, b->bytes);
}

static inline double get(const gpu_view *v, int64_t i, int64_t j)
{
    int64_t at = i * v->row_stride + j * v->col_stride;
    if (v->dtype == GPU_F64)
        return ((const double *)v->data)[at];
    if (v->dtype == GPU_F32)
        return ((const float *)v->data)[at];
    return ((const uint8_t *)v->data)[at];
}

static inline void set(const gpu_view *v, int64_t i, int64_t j, double value)
{
    int64_t at = i * v->row_stride + j * v->col_stride;
    if (v->dtype == GPU_F64)
        ((double *)v->data)[at] = value;
    else if (v->dtype == GPU_F32)
        ((float *)v->data)[at] = (float)value;
    else
        ((uint8_t *)v->data)[at] = value != 0;
}

/* --- numbers ---------------------------------------------------------------
 */

/* Marsaglia, Xorshift RNGs, 2003. */
static inline uint64_t next_bits(void)
{
    static uint64_t s = 88172645463325252u;
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return s;
}

static inline double next_uniform(void)
{
    return (double)(next_bits() >> 11) * 0x1p-53;
}

static inline int64_t next_below(int64_t n)
{
    return (int64_t)(next_bits() % (uint64_t)n);
}

static inline void fill_uniform(const gpu_view *v, double low, double high)
{
    for (int64_t i = 0; i < v->rows; i++)
        for (int64_t j = 0; j < v->cols; j++)
            set(v, i, j, low + (high - low) * next_uniform());
}

static inline void fill_integers(const gpu_view *v, int64_t span)
{
    for (int64_t i = 0; i < v->rows; i++)
        for (int64_t j = 0; j < v->cols; j++)
            set(v, i, j, (double)(next_below(2 * span + 1) - span));
}

/* Same number, or both NaN; the sign of zero counts. */
static inline int same(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b && signbit(a) == signbit(b);
}

/* Distance of a result from the exact value in units in the last place of t.
 * Infinite when NaN, infinity or the sign of zero disagree. */
static inline double ulps(gpu_dtype t, double result, long double exact)
{
    double rounded = t == GPU_F64 ? (double)exact : (double)(float)exact;
    int bits = t == GPU_F64 ? 53 : 24, least = t == GPU_F64 ? -1074 : -149;
    int exponent;
    if (isnan(result) || isnan(rounded) || result == rounded)
        return same(result, rounded) ? 0 : (double)INFINITY;
    if (isinf(result) || isinf(rounded))
        return (double)INFINITY;
    frexpl(exact, &exponent);
    exponent = exponent - bits < least ? least : exponent - bits;
    return (double)(fabsl(result - exact) / ldexpl(1, exponent));
}

/* --- programs ---------------------------------------------------------------
 */

static inline gpu_program program_of(gpu_op op, int inputs, gpu_dtype compute)
{
    gpu_program p;
    memset(&p, 0, sizeof p);
    p.inputs = (uint8_t)inputs;
    p.compute = (uint8_t)compute;
    p.length = 1;
    p.code[0] = (gpu_instruction){(uint8_t)op, 0, 1, 2};
    return p;
}

static inline gpu_program empty_program(gpu_dtype compute)
{
    gpu_program p;
    memset(&p, 0, sizeof p);
    p.inputs = 1;
    p.compute = (uint8_t)compute;
    return p;
}

#endif
