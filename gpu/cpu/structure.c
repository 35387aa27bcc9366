/* What a square matrix is: where its zeros are, and whether it is symmetric. Of
 * a matrix without structure hardly anything is read. */
#include "cpu.h"

enum { TILE = 64 };

/* Elements lie as x[i * n + j]; of a matrix that lies by columns i is the
 * column. reach: the farthest elements other than zero before and behind the
 * diagonal. */
#define LOOK(type)                                                           \
    static void find_reach_##type(const type *x, int64_t n, int64_t *before, \
                                  int64_t *behind)                           \
    {                                                                        \
        for (int64_t i = 0; i < n; i++) {                                    \
            const type *line = x + i * n;                                    \
            int64_t first = 0, last = n - 1;                                 \
            while (first < i - *before && line[first] == 0)                  \
                first++;                                                     \
            while (last > i + *behind && line[last] == 0)                    \
                last--;                                                      \
            *before = first < i - *before ? i - first : *before;             \
            *behind = last > i + *behind ? last - i : *behind;               \
        }                                                                    \
    }                                                                        \
    static int is_symmetric_##type(const type *x, int64_t n)                 \
    {                                                                        \
        for (int64_t i = 0; i < n; i += TILE)                                \
            for (int64_t j = 0; j <= i; j += TILE)                           \
                for (int64_t r = i; r < i + TILE && r < n; r++)              \
                    for (int64_t c = j; c < j + TILE && c < r; c++)          \
                        if (x[r * n + c] != x[c * n + r])                    \
                            return 0;                                        \
        return 1;                                                            \
    }                                                                        \
    static int is_positive_##type(const type *x, int64_t n)                  \
    {                                                                        \
        for (int64_t i = 0; i < n; i++)                                      \
            if (!(x[i * n + i] > 0))                                         \
                return 0;                                                    \
        return 1;                                                            \
    }                                                                        \
    static void look_##type(gpu_factoring *f)                                \
    {                                                                        \
        const type *x = f->a.data;                                           \
        int64_t n = f->a.rows;                                               \
        find_reach_##type(x, n, &f->above, &f->below);                       \
        f->is_symmetric = f->above == f->below && is_symmetric_##type(x, n); \
        f->is_positive = is_positive_##type(x, n);                           \
    }
LOOK(float)
LOOK(double)

gpu_status gpu_cpu_look(gpu_factoring *f)
{
    f->below = f->above = 0;
    if (f->a.dtype == GPU_F64)
        look_double(f);
    else
        look_float(f);
    return GPU_OK;
}
