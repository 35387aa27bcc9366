/* What liblumat-cuda-la.so gives to liblumat-cuda.so, its only caller:
 * products by the CUDA toolkit's cuBLAS and cuSPARSE.
 *
 * The object has no CUDA runtime of its own: it works in the context that its
 * caller made current, on the caller's stream and in the caller's memory. A
 * stream is the driver's handle in every copy of the runtime, so it may cross
 * from one object to another. Calls return before the work is done.
 *
 * Errors: a status, with the message already set through the caller's fail. */
#ifndef GPU_CUDA_LA_TABLE_H
#define GPU_CUDA_LA_TABLE_H

#include "backend.h"

enum { LA_ABI = 3 };

/* What a device is opened with. alloc and free are ordered with the stream. */
typedef struct la_setup {
    gpu_status (*fail)(gpu_status status, const char *format, ...);
    gpu_status (*alloc)(void *device, size_t bytes, void **data);
    void (*free)(void *device, void *data, size_t bytes);
    void *device;
    void *stream; /* cudaStream_t */
    /* before a call: the error it is to give without being made, or 0 */
    int (*fault)(gpu_fault_site *site);
} la_setup;

/* The libraries' handles for one device. */
typedef struct la_device la_device;

/* Types of a and b, and how they are multiplied. c and the sums are f64 in
 * the first mode, f32 in the others. */
typedef enum la_mode {
    LA_F64,
    LA_F32,
    LA_TF32, /* f32, multiplied in TF32 */
    LA_BF16
} la_mode;

/* Column-major, columns ld apart; or the transpose of what lies there so. */
typedef struct la_operand {
    void *data;
    int64_t ld;
    int transposed;
} la_operand;

/* c = alpha a b + beta c, and c is not transposed. beta = 0: c is not read. */
typedef struct la_product {
    la_mode mode;
    int64_t m, n, k;
    la_operand a, b, c; /* m x k, k x n, m x n */
    double alpha, beta;
} la_product;

/* Strides may be negative; x and y point at their first elements. */
typedef struct la_dot {
    gpu_dtype dtype;
    int64_t n;
    const void *x, *y;
    int64_t x_stride, y_stride;
    void *out; /* the sum, of dtype; written by the GPU */
} la_dot;

/* y = alpha s x. */
typedef struct la_sparse {
    gpu_csr s; /* m x k, at least one element */
    const void *x;
    void *y; /* k and m elements without gaps, of s's dtype */
    double alpha;
} la_sparse;

typedef struct la_table {
    int abi;
    gpu_status (*open)(const la_setup *setup, la_device **out);
    void (*close)(la_device *d); /* nothing may be running */
    gpu_status (*matmul)(la_device *d, const la_product *p);
    gpu_status (*dot)(la_device *d, const la_dot *p);
    gpu_status (*sparse_product)(la_device *d, const la_sparse *p);
} la_table;

/* NULL when the abi is not the one it was built for. */
typedef const la_table *la_entry(int abi);
#define LA_SYMBOL "lumat_cuda_la"

#endif
