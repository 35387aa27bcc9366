/* Products of two sparse matrices: what the files of their kernels share. */
#ifndef GPU_CUDA_SPARSE_MULTIPLY_H
#define GPU_CUDA_SPARSE_MULTIPLY_H

#include "sparse_entries.h"

/* Where entries lie: those of a, and those of the rows of b that they meet. */
struct pattern {
    int64_t rows, count; /* of a */
    const int32_t *starts, *columns;
    const int32_t *b_starts, *b_columns;
    int column_bits;       /* of b */
    const int64_t *before; /* products before each entry of a, and of all */
};

template <class V> struct factors : pattern {
    const V *values, *b_values;
};

/* What rows have: counts, in starts; or entries, from starts on. */
template <class V> struct row_results {
    int32_t *starts, *columns;
    V *values;
};

/* In the place of a type where places are counted and values not looked at. */
struct nothing {
};
template <class V> constexpr bool is_nothing = false;
template <> constexpr bool is_nothing<nothing> = true;

/* Short rows: those of kind k have at most SHORT << k products, which a warp
 * or a part of one sorts in its registers. */
enum { SHORT = 32, SHORT_KINDS = 6 };

template <class V>
gpu_status gpu_cuda_multiply_short(cuda_device *d, const factors<V> *f,
                                   int kind, const int32_t *rows, int64_t count,
                                   const row_results<V> *to);

#endif
