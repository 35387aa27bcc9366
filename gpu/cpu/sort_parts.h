/* Sorting, of this folder alone: what is sorted, what its two files share, and
 * what the one of vectors (sort_in_vectors.c) does for the other (sort.c). */
#ifndef GPU_CPU_SORT_PARTS_H
#define GPU_CPU_SORT_PARTS_H

#include <stdatomic.h>
#include "cpu.h"

enum {
    SHORT_LINE = 40, /* up to which merging is faster, where no branch is known
                      * from the same data sorted before */
    PASSES = 4,      /* over a half of a key */
    PIECE = 1024,
    AT_ONCE = 1 << 19, /* numbers at most that are sorted without a look at the
                        * flag, in about 5 ms */
    MOST_CHUNKS = 256  /* a line is cut into at most */
};

#define SIGN ((uint64_t)1 << 63)
#define SHORT_SIGN ((uint32_t)1 << 31)

/* What is sorted: numbers alone, f32 and f64, turned round in sign where the
 * order falls, and infinity in the place of NaN; keys of 4 bytes with their
 * places in the low half, and others beside theirs. */
typedef enum item_kind { SHORT_NUMBERS, NUMBERS, SHORT_PAIRS, PAIRS } item_kind;

typedef union piece {
    uint8_t b[PIECE];
    float f[PIECE];
    double d[PIECE];
} piece;

typedef struct sorting {
    int descending;
    gpu_view from, to, order; /* lines are rows; to.data, or order.data, may
                                 be NULL */
    item_kind kind;
    int is_counted; /* progress, of the only line */
} sorting;

/* Between pieces of work on a line: counts them and looks at the flag. */
static inline int goes_on(const sorting *s, int64_t elements)
{
    if (s->is_counted)
        gpu_cpu_advance(elements);
    return !gpu_cpu_interrupted();
}

/* --- sort.c --- */

/* What a line has that its sorted numbers do not show. */
typedef struct oddities {
    atomic_int zeros; /* 1: there is a 0, 2: a -0 */
    atomic_llong nans;
} oddities;

/* The places of zeros, where they are of both signs, and of NaN; else -1. What
 * comes after the last column of a result is not in it. */
typedef struct mixture {
    int64_t zeros, nans;
} mixture;

typedef struct line_views {
    gpu_view from, to, order;
    oddities *odd; /* of numbers alone; counted as items are made */
} line_views;

/* Keys of n elements, and which of their bits are not all as in `like`. NaN is
 * the largest key; -0 and +0 have one key. */
uint64_t gpu_cpu_keys_of_double(const double *x, int64_t n, int descending,
                                uint64_t like, uint64_t *key);
/* Of f32 and bool, in the low half. */
uint64_t gpu_cpu_keys_of_float(const float *x, int64_t n, int descending,
                               uint64_t like, uint64_t *key);
/* The line of that number; odd may be NULL where places are wanted. */
line_views gpu_cpu_line_of(const sorting *s, int64_t line, oddities *odd);
/* Numbers first .. last - 1 of a line, and what is odd about them. */
gpu_status gpu_cpu_make_numbers(const sorting *s, const gpu_view *line,
                                int64_t first, int64_t last, char *items,
                                oddities *o);
/* Of sorted numbers first .. last - 1. */
gpu_status gpu_cpu_store_numbers(const sorting *s, const gpu_view *to,
                                 int64_t first, int64_t last,
                                 const char *items);
/* n of the results, 1 at least, from number first on: what lies at those
 * places. */
void gpu_cpu_store_places(const gpu_view *from, const gpu_view *to,
                          const gpu_view *order, int64_t first, int64_t n,
                          const int64_t *place);
/* The first zero of sorted numbers. */
int64_t gpu_cpu_find_zero(const sorting *s, const char *items, int64_t n);
/* Puts zeros of both signs, and NaN, in the order of the source. */
gpu_status gpu_cpu_mend_mixture(const sorting *s, const gpu_view *from,
                                const gpu_view *to, mixture m);
/* With all of the line sorted and stored. */
gpu_status gpu_cpu_end_line(const sorting *s, const line_views *v,
                            const char *items);

/* --- sort_in_vectors.c --- */

/* May lines be sorted with their places in vectors, where these fit, so many
 * that what is alike stays little? And does one, on the caller's thread: room
 * is of as many u64; GPU_UNSUPPORTED: it is left as it is. */
int gpu_cpu_fits_packed(const sorting *s);
gpu_status gpu_cpu_sort_packed_line(const sorting *s, int64_t line, void *room);
/* May lines be sorted in vectors by all cores? And does one. GPU_UNSUPPORTED:
 * it is to be sorted otherwise. wanted: so many of a line's first; of numbers
 * there may be fewer, which is not supported either. */
int gpu_cpu_fits_vectors(const sorting *s);
gpu_status gpu_cpu_sort_in_vectors(const sorting *s, int64_t line,
                                   int64_t wanted);

#endif
