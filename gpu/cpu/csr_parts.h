/* What the files of sparse matrices on the CPU have in common: numbers of four
 * types, and rows found by their weight. All is inlined, so that loops over a
 * type that is known are plain. For gpu/cpu/csr*.c only. */
#ifndef GPU_CSR_PARTS_H
#define GPU_CSR_PARTS_H

#include "cpu.h"

/* --- numbers, in f64 whatever the type ------------------------------------ */

typedef struct number {
    double re, im;
} number;

INLINE int is_complex(gpu_dtype t)
{
    return t == GPU_C64 || t == GPU_C128;
}

/* Of f32 or f64: element `at`, or part of a pair. */
INLINE double load_real(const void *values, gpu_dtype t, int64_t at)
{
    return t == GPU_F64 ? ((const double *)values)[at]
                        : (double)((const float *)values)[at];
}

INLINE void store_real(void *values, gpu_dtype t, int64_t at, double x)
{
    if (t == GPU_F64)
        ((double *)values)[at] = x;
    else
        ((float *)values)[at] = (float)x;
}

/* The type of the parts. */
INLINE gpu_dtype part_type(gpu_dtype t)
{
    return t == GPU_F64 || t == GPU_C128 ? GPU_F64 : GPU_F32;
}

INLINE number load(const void *values, gpu_dtype t, int64_t at)
{
    gpu_dtype part = part_type(t);
    if (!is_complex(t))
        return (number){load_real(values, part, at), 0};
    return (number){load_real(values, part, 2 * at),
                    load_real(values, part, 2 * at + 1)};
}

INLINE void store(void *values, gpu_dtype t, int64_t at, number x)
{
    gpu_dtype part = part_type(t);
    store_real(values, part, is_complex(t) ? 2 * at : at, x.re);
    if (is_complex(t))
        store_real(values, part, 2 * at + 1, x.im);
}

INLINE number times(gpu_dtype t, number x, number y)
{
    if (!is_complex(t))
        return (number){x.re * y.re, 0};
    return (number){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

INLINE int is_zero(number x)
{
    return x.re == 0 && x.im == 0;
}

/* --- rows ----------------------------------------------------------------- */

/* The first row that begins at weight w or later; a row weighs one, its entries
 * and, where more is there, the entries that this gives it. */
INLINE int64_t row_at(const int32_t *starts, const int32_t *more, int64_t rows,
                      int64_t w)
{
    int64_t low = 0, high = rows;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (starts[middle] + (more ? more[middle] : 0) + middle >= w)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* From the entries of rows, row i's at i + 1, to where rows begin; how many
 * there are, which may be more than the starts tell. */
INLINE int64_t add_up_rows(int32_t *starts, int64_t rows)
{
    int64_t sum = starts[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        sum += starts[i + 1];
        starts[i + 1] = sum > INT32_MAX ? INT32_MAX : (int32_t)sum;
    }
    return sum;
}

/* The first of entries e .. end - 1 in that column or behind it. */
INLINE int64_t find_column(const int32_t *columns, int64_t e, int64_t end,
                           int64_t column)
{
    enum { COUNTED = 16 }; /* as fast as halving, and never foreseen wrongly */
    int64_t below = e;
    if (end - e <= COUNTED) {
        for (; e < end; e++)
            below += columns[e] < column;
        return below;
    }
    while (e < end) {
        int64_t middle = e + (end - e) / 2;
        if (columns[middle] < column)
            e = middle + 1;
        else
            end = middle;
    }
    return e;
}

#endif
