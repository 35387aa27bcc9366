/* What liblumat-cuda-solver.so gives to liblumat-cuda.so, its only caller:
 * factorisations by the CUDA toolkit's cuSOLVER, and triangles by cuBLAS.
 *
 * Of the object the same holds as of liblumat-cuda-la.so: la_table.h. Matrices
 * lie column by column in device memory, and are the caller's until the stream
 * has done what was issued. What is worked in comes from the caller's alloc.
 *
 * Of complex matrices ^T means the conjugate transpose, and singular values and
 * those of eigh are f32 or f64.
 *
 * Errors: a status, with the message already set through the caller's fail.
 * What the numbers themselves forbid stands in *info, in device memory, as
 * LAPACK has it. */
#ifndef GPU_CUDA_SOLVER_TABLE_H
#define GPU_CUDA_SOLVER_TABLE_H

#include "la_table.h"

enum { SOLVER_ABI = 2 };

typedef struct solver_device solver_device;

/* rows x cols, columns ld apart. */
typedef struct solver_matrix {
    void *data;
    gpu_dtype dtype; /* any but bool; of all matrices of a call the same */
    int64_t rows, cols, ld;
} solver_matrix;

/* Which half of a square matrix is meant, and how: transposed where it is
 * turned, then conjugated as well or not. */
typedef struct solver_half {
    int is_lower, is_unit, is_turned, is_conjugated;
} solver_half;

/* a = u diag(s) v^T, of a with no more columns than rows, which is lost. u: m x
 * n, or m x m; v: n x n; where only s is wanted the polar way works in both all
 * the same, and they may be NULL by QR. */
typedef struct solver_svd {
    solver_matrix a, u, v;
    void *s;
    int wants_vectors;
    /* By the polar decomposition: fast, and where a value is near zero all are
     * off by `off`, which is known when it returns. Else by QR, v being v^T. */
    int is_polar;
    double off;
} solver_svd;

typedef struct solver_table {
    int abi;
    gpu_status (*open)(const la_setup *setup, solver_device **out);
    void (*close)(solver_device *d); /* nothing may be running */
    /* a becomes L and U; pivots: as many as a's shorter side, from 1. */
    gpu_status (*lu)(solver_device *d, const solver_matrix *a, int64_t *pivots,
                     int *info);
    /* b becomes the x of a x = b, or a^T x = b. */
    gpu_status (*lu_solve)(solver_device *d, int turned, const solver_matrix *a,
                           const int64_t *pivots, const solver_matrix *b,
                           int *info);
    /* a's lower triangle becomes L. */
    gpu_status (*cholesky)(solver_device *d, const solver_matrix *a, int *info);
    /* a becomes R and Householder vectors, tau their factors. */
    gpu_status (*qr)(solver_device *d, const solver_matrix *a, void *tau,
                     int *info);
    /* q, whose first `reflections` columns are such vectors, becomes Q. */
    gpu_status (*make_q)(solver_device *d, const solver_matrix *q,
                         const void *tau, int64_t reflections, int *info);
    /* b becomes Q b, or Q^T b; a: such vectors. */
    gpu_status (*apply_q)(solver_device *d, int turned, const solver_matrix *a,
                          const void *tau, const solver_matrix *b, int *info);
    /* b becomes the x of a x = b; a is a triangle. */
    gpu_status (*triangle)(solver_device *d, const solver_half *how,
                           const solver_matrix *a, const solver_matrix *b);
    gpu_status (*svd)(solver_device *d, solver_svd *p, int *info);
    /* values: of a's lower half; a becomes their vectors, or is lost. */
    gpu_status (*eigh)(solver_device *d, int wants_vectors,
                       const solver_matrix *a, void *values, int *info);
} solver_table;

/* NULL when the abi is not the one it was built for. */
typedef const solver_table *solver_entry(int abi);
#define SOLVER_SYMBOL "lumat_cuda_solver"

#endif
