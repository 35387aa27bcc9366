/* Entries of sparse matrices on the device: the rows that they are in, and
 * lists of them, in order of their places, made into compressed rows. */
#ifndef GPU_CUDA_SPARSE_ENTRIES_H
#define GPU_CUDA_SPARSE_ENTRIES_H

#include "scratch_parts.h"
#include "sort_keys.h"
#include "sparse_rows.h"

enum { THREADS = 256 };

/* Blocks for so many threads. */
static inline unsigned blocks_of(int64_t n)
{
    return (unsigned)larger(1, smaller(ceil_div(n, THREADS), INT32_MAX));
}

/* An entry's place as a number that orders entries: the row above so many bits
 * of the column. */
typedef struct place_bits {
    int row, column;
} place_bits;

static inline place_bits place_bits_of(int64_t rows, int64_t cols)
{
    return {bits_for(rows), bits_for(cols)};
}

/* Where entries that a list names by numbers take their values: `first` has
 * those below split, `second` the others, which count times sign. */
template <class V> struct entry_values {
    const V *first, *second;
    int64_t split;
    double sign;
};

/* What becomes of entries in one place: they are added up in the order of the
 * list; so, but what is 0 then goes; or, of two, multiplied, and what is alone,
 * or 0, goes. */
enum entry_use { ADD_ALL, ADD, MULTIPLY };

/* A list in the order of places: entry k is number entries[k]. */
template <class K> struct entry_list {
    int64_t size;
    const K *places;
    const uint32_t *entries;
    int32_t *kept; /* size + 1; becomes how many stay before each */
};

/* How much room it needs beside the list. */
gpu_status gpu_cuda_count_room(cuda_device *d, int64_t size, size_t *bytes);
/* Counts, of which there are size + 1, become how many come before each. */
gpu_status gpu_cuda_scan_counts(cuda_device *d, int32_t *counts, int64_t size,
                                void *room, size_t bytes);
/* Which stay, and *count of them; waits. starts gets rows + 1 numbers. */
template <class V, class K>
gpu_status gpu_cuda_count_entries(cuda_device *d, const entry_list<K> *l,
                                  const entry_values<V> *v, entry_use use,
                                  int64_t rows, int column_bits, void *room,
                                  size_t bytes, int32_t *starts,
                                  int64_t *count);
/* Those that stay, one behind the other. */
template <class V, class K>
gpu_status gpu_cuda_put_entries(cuda_device *d, const entry_list<K> *l,
                                const entry_values<V> *v, entry_use use,
                                int column_bits, int32_t *columns, V *values);

/* rows[e] = the row of entry e. */
gpu_status gpu_cuda_expand_rows(cuda_device *d, const gpu_csr *s,
                                int32_t *rows);
/* starts[i] = how many of the rising numbers are below i, for i = 0 .. rows. */
gpu_status gpu_cuda_find_starts(cuda_device *d, const uint32_t *numbers,
                                int64_t count, int64_t rows, int32_t *starts);

/* a times b, as sparse_combine gives it. */
gpu_status gpu_cuda_multiply_sparse(cuda_device *d, const gpu_csr *a,
                                    const gpu_csr *b, gpu_csr_result *out);

/* --- rows of entries ------------------------------------------------------ */

/* The row of an entry that lies in one of low .. high. */
__device__ __forceinline__ int64_t row_between(const int32_t *starts,
                                               int64_t low, int64_t high,
                                               int64_t entry)
{
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (starts[middle + 1] > entry)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The first of entries e .. end - 1 in that column or behind it. */
__device__ __forceinline__ int64_t find_column(const int32_t *columns,
                                               int64_t e, int64_t end,
                                               int64_t column)
{
    while (e < end) {
        int64_t middle = e + (end - e) / 2;
        if (columns[middle] < column)
            e = middle + 1;
        else
            end = middle;
    }
    return e;
}

/* Rows of a block's entries, first .. last: of these two alone all rows are
 * searched. */
__device__ __forceinline__ int64_t row_in_block(const int32_t *starts,
                                                int64_t rows, int64_t first,
                                                int64_t last, int64_t entry)
{
    __shared__ int64_t ends[2];
    if (threadIdx.x < 2)
        ends[threadIdx.x] =
            row_between(starts, 0, rows - 1, threadIdx.x ? last : first);
    __syncthreads(); /* ends are there */
    int64_t low = ends[0], high = ends[1];
    __syncthreads(); /* and may be written again */
    return row_between(starts, low, high, min(entry, last));
}

#endif
