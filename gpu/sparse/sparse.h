/* Sparse matrices from the inside: their arrays, and how the CPU does what
 * another device's backend has no entry for. For the files of gpu/ only. */
#ifndef GPU_SPARSE_H
#define GPU_SPARSE_H

#include "core.h"

/* GPU_OK when s is there; d gets its device. */
gpu_status gpu_sparse_check(const char *name, const gpu_sparse *s,
                            gpu_device **d);
/* Refuses what int32 cannot count. */
gpu_status gpu_sparse_check_sizes(int64_t rows, int64_t cols, int64_t count);

/* A new sparse matrix, whose arrays are to be filled: see gpu_rows_of. Refuses
 * what int32 cannot count; nothing is left of one that failed. */
gpu_status gpu_sparse_create_arrays(gpu_device *d, gpu_dtype dtype,
                                    int64_t rows, int64_t cols, int64_t count,
                                    gpu_sparse *out);
/* Only the first count of the entries that there is room for are there: arrays
 * with much room left are copied, as it would never be used. */
gpu_status gpu_sparse_cut_off(gpu_sparse *s, int64_t count);
/* The arrays as a backend reads them, and as it writes new ones. */
typedef struct gpu_rows_out {
    int32_t *starts, *columns;
    void *values;
} gpu_rows_out;
gpu_csr gpu_csr_of(const gpu_sparse *s);
gpu_rows_out gpu_rows_of(const gpu_sparse *s);

/* s on the CPU, which is told of when it lay elsewhere: itself, or a copy. To
 * be released. */
gpu_status gpu_sparse_bring(const gpu_sparse *s, gpu_sparse *here);
/* The other way: out is `here` as dtype on d; `here` is released, also when
 * that fails. */
gpu_status gpu_sparse_send(gpu_sparse *here, gpu_dtype dtype, gpu_device *d,
                           gpu_sparse *out);

/* The same of a vector, converted; its elements lie without gaps. */
gpu_status gpu_sparse_bring_vector(const gpu_matrix *m, gpu_dtype dtype,
                                   gpu_matrix *here);

/* A new vector of n elements, which are read from host; GPU_F32 for an int32_t
 * each as well, of complex types pairs. Nothing is left of one that failed. */
gpu_status gpu_upload_vector(gpu_device *d, gpu_dtype dtype, int64_t n,
                             const void *host, gpu_matrix *out);
/* A vector's elements as f64, of complex types pairs. */
gpu_status gpu_download_wide(const gpu_matrix *vector, double *values);

#endif
