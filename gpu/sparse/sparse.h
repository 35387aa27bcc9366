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

/* One while a backend's entry makes it, who finds out how many entries there
 * are. Given are op, which names it and has the device, dtype and out. */
typedef struct gpu_sparse_making {
    gpu_csr_result told; /* for the entry */
    gpu_operation op;
    gpu_dtype dtype;
    gpu_sparse *out;
} gpu_sparse_making;
/* out becomes rows x cols, with starts alone: they and make_room are told. */
gpu_status gpu_sparse_begin(gpu_sparse_making *m, int64_t rows, int64_t cols);
/* status is the entry's. out is whole, or nothing is left of it. */
gpu_status gpu_sparse_end(gpu_sparse_making *m, gpu_status status);
/* For entries that are called twice, first without columns and values: runs
 * that of the operation's device with what r has. */
typedef gpu_status gpu_sparse_entry(gpu_operation *op, const void *context,
                                    gpu_csr_result *r);
/* Begins, and has the entry count: told.count. Nothing is left of one that
 * failed. */
gpu_status gpu_sparse_count(gpu_sparse_making *m, int64_t rows, int64_t cols,
                            gpu_sparse_entry *entry, const void *context);
/* The second call; ends. */
gpu_status gpu_sparse_fill(gpu_sparse_making *m, gpu_sparse_entry *entry,
                           const void *context);

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
