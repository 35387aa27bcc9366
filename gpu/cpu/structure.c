/* What a square matrix is: where its zeros are, and whether it is symmetric, or
 * if it is complex Hermitian. Of a matrix without structure hardly anything is
 * read. */
#include <complex.h>
#include "cpu.h"

enum { TILE = 64 };

/* Of a type, its conjugates and its parts. Elements lie as x[i * n + j]; of a
 * matrix that lies by columns i is the column. reach: the farthest elements
 * other than zero before and behind the diagonal. */
#define LOOK(name, type, turned, re, im)                                     \
    static void find_reach_##name(const type *x, int64_t n, int64_t *before, \
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
    static int is_symmetric_##name(const type *x, int64_t n)                 \
    {                                                                        \
        for (int64_t i = 0; i < n; i += TILE)                                \
            for (int64_t j = 0; j <= i; j += TILE)                           \
                for (int64_t r = i; r < i + TILE && r < n; r++)              \
                    for (int64_t c = j; c < j + TILE && c < r; c++)          \
                        if (x[r * n + c] != turned(x[c * n + r]))            \
                            return 0;                                        \
        for (int64_t i = 0; i < n; i++)                                      \
            if (im(x[i * n + i]) != 0)                                       \
                return 0;                                                    \
        return 1;                                                            \
    }                                                                        \
    static int is_positive_##name(const type *x, int64_t n)                  \
    {                                                                        \
        for (int64_t i = 0; i < n; i++)                                      \
            if (!(re(x[i * n + i]) > 0))                                     \
                return 0;                                                    \
        return 1;                                                            \
    }                                                                        \
    static void look_##name(gpu_factoring *f)                                \
    {                                                                        \
        const type *x = f->a.data;                                           \
        int64_t n = f->a.rows;                                               \
        find_reach_##name(x, n, &f->above, &f->below);                       \
        f->is_symmetric = f->above == f->below && is_symmetric_##name(x, n); \
        f->is_positive = is_positive_##name(x, n);                           \
    }
#define ITSELF(x) (x)
#define NOTHING(x) 0
LOOK(f32, float, ITSELF, ITSELF, NOTHING)
LOOK(f64, double, ITSELF, ITSELF, NOTHING)
LOOK(c64, float complex, conjf, crealf, cimagf)
LOOK(c128, double complex, conj, creal, cimag)

gpu_status gpu_cpu_look(gpu_factoring *f)
{
    f->below = f->above = 0;
    switch (f->a.dtype) {
    case GPU_F64:
        look_f64(f);
        break;
    case GPU_C64:
        look_c64(f);
        break;
    case GPU_C128:
        look_c128(f);
        break;
    default:
        look_f32(f);
    }
    return GPU_OK;
}
