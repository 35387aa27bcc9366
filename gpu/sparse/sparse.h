/* Sparse matrices in host memory, where they are made and taken apart. For
 * the files of gpu/ only. */
#ifndef GPU_SPARSE_H
#define GPU_SPARSE_H

#include "core.h"

/* Compressed rows as in gpu_csr, with values in f64 whatever their type. */
typedef struct gpu_host_rows {
    int64_t rows, cols, count;
    int32_t *starts, *columns;
    double *values;
} gpu_host_rows;

/* Arrays for count entries; ended with gpu_host_rows_free, also after a
 * failure. Refuses what int32 cannot count. */
gpu_status gpu_host_rows_create(gpu_host_rows *h, int64_t rows, int64_t cols,
                                int64_t count);
void gpu_host_rows_free(gpu_host_rows *h);

/* Each creates h, which the caller frees on success and on failure. */
gpu_status gpu_host_rows_from_triplets(const gpu_triplets *t, gpu_host_rows *h);
gpu_status gpu_host_rows_transposed(const gpu_host_rows *from,
                                    gpu_host_rows *h);
gpu_status gpu_host_rows_download(const gpu_sparse *s, gpu_host_rows *h);

/* A new vector of n elements, which are read from host; GPU_F32 for an int32_t
 * each as well. Nothing is left of one that failed. */
gpu_status gpu_upload_vector(gpu_device *d, gpu_dtype dtype, int64_t n,
                             const void *host, gpu_matrix *out);

/* Makes the count f32 numbers at the start of values f64, in place. */
void gpu_widen_f32(double *values, int64_t count);

/* GPU_OK when s is there; d gets its device. */
gpu_status gpu_sparse_check(const char *name, const gpu_sparse *s,
                            gpu_device **d);

#endif
